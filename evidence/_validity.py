"""How well automatic verdicts about query variations agree with labels.

There are two sets of labels. The first is that of paper 004 for variations by ten methods. Only rows that people looked
at count: the authors set misspellings and orderings valid and copies invalid by rule. The second is ours, for what
`syn_swap` makes of queries of five collections (syn_swap_labels.tsv: ids, places and new words). A swap is valid there
if a reader would look for the same as before.

Thresholds are fitted on the paper's labels for ANTIQUE and on ours for msmarco-types; all else is test. Phrases are
counted in the collection that the queries belong to; the passages of ANTIQUE are not at hand, so there in those of
rag24.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from evidence import DATA, Rows
from shaketable.core.documents import Collection
from shaketable.datasets.load import load
from shaketable.datasets.sample import read_sample
from shaketable.nlp.bigrams import Bigrams
from shaketable.nlp.words import split_token
from shaketable.rankers.similarity import count_bigrams, make_encoder_similarity
from shaketable.transforms.categories import CATEGORIES, NATURALITY, PARAPHRASING, classify_variation
from shaketable.transforms.published import CATEGORY_ALIASES, METHOD_ALIASES, find_sources
from shaketable.transforms.validity import Similarity, Validity, ValidityCase
from shaketable.transforms.vary import normalise_query

FILES = {"ANTIQUE": "qvg-antique.csv", "TREC DL 2019": "qvg-trec-dl-2019.csv"}
LABELS = Path(__file__).with_name("syn_swap_labels.tsv")
BY_RULE = ("mispelling", "ordering")
FIT = "msmarco-types"
TEXTS = {"antique": "rag24", "msmarco": "dl19"}
"""A data set of the paper -> the collection in which phrases are counted."""
SHARES = np.round(np.arange(0.1, 1.0, 0.1), 1)
DRIFTS = np.round(np.arange(0.1, 1.6, 0.1), 1)
THRESHOLDS = (
    "min_kept_share",
    "max_added_words",
    "min_expressed_share",
    "max_drift_words",
    "max_supported_drift_words",
)
HEAD = ("labels, evidence", "variations", "precision", "recall", "kappa")


@dataclass(frozen=True)
class Row:
    """A variation, where its phrases are counted, and what people said of it."""

    texts: str
    case: ValidityCase
    valid: bool
    follows: bool = False


def read_published(name: str) -> list[Row]:
    """Return all rows of a file of the paper."""
    with (DATA / "variations" / FILES[name]).open(newline="", encoding="utf-8") as file:
        return [
            Row(
                TEXTS[row["dataset"]],
                ValidityCase(
                    CATEGORY_ALIASES[row["transformation_type"]],
                    row["original_query"],
                    row["variation"],
                    find_sources(METHOD_ALIASES[row["method"]]),
                ),
                row["valid"] == "True",
                row["valid"] == row["follow_category"] == "True",
            )
            for row in csv.DictReader(file)
        ]


def select_read(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that people looked at."""
    rule = {CATEGORY_ALIASES[kind] for kind in BY_RULE}
    return [row for row in rows if row.case.category not in rule and row.case.text != row.case.original]


@cache
def open_texts(name: str) -> Collection:
    """Return a collection, or the bundled sample."""
    return read_sample() if name == "sample" else load(str(DATA / "collections" / name))


@cache
def count_phrases(name: str) -> Bigrams:
    """Count the word pairs of a collection."""
    return count_bigrams(open_texts(name))


def read_swaps() -> Iterator[Row]:
    """Yield our labels of what `syn_swap` makes."""
    with LABELS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            written = open_texts(row["collection"]).queries[row["query"]].text
            original = normalise_query(written)
            tokens = original.split()
            old = split_token(tokens[int(row["place"])])
            assert old is not None
            tokens[int(row["place"])] = f"{old.head}{row['word']}{old.tail}"
            case = ValidityCase(PARAPHRASING, original, " ".join(tokens), find_sources("syn_swap"), written)
            yield Row(row["collection"], case, row["valid"] == "yes")


def measure_agreement(truth: Sequence[bool], verdicts: Sequence[bool]) -> tuple[float, float, float]:
    """Return precision and recall of "valid", and Cohen's kappa.

    >>> measure_agreement([True, True, False, False], [True, False, False, False])
    (1.0, 0.5, 0.5)
    """
    pairs = Counter(zip(truth, verdicts, strict=True))
    n, hits, positive, claimed = len(truth), pairs[True, True], sum(truth), sum(verdicts)
    observed = (hits + pairs[False, False]) / n
    expected = (positive * claimed + (n - positive) * (n - claimed)) / n**2
    nan = float("nan")
    precision, recall = hits / claimed if claimed else nan, hits / positive if positive else nan
    return precision, recall, (observed - expected) / (1 - expected) if expected < 1 else 0.0


def judge(validity: Validity, rows: Sequence[Row], counted: bool = True) -> list[bool]:
    """Return verdicts about rows, each with the phrases of its own texts, or without any."""
    verdicts: dict[int, bool] = {}
    for name in dict.fromkeys(row.texts for row in rows):
        places = [i for i, row in enumerate(rows) if row.texts == name]
        informed = replace(validity, bigrams=count_phrases(name)) if counted else validity
        reasons = informed.judge_all([rows[i].case for i in places])
        verdicts |= {i: not reason for i, reason in zip(places, reasons, strict=True)}
    return [verdicts[i] for i in range(len(rows))]


def choose(choices: Sequence[Validity], rows: Sequence[Row]) -> Validity:
    """Return the choice with the highest kappa; of equals the first."""
    truth = [row.valid for row in rows]
    return max(choices, key=lambda choice: round(measure_agreement(truth, judge(choice, rows))[2], 6))


def fit_thresholds(rows: Sequence[Row], similarity: Similarity | None) -> Validity:
    """Return fitted thresholds, lenient ones first: those of the words, then those of an encoder."""
    part = {c: [row for row in rows if row.case.category == c] for c in (NATURALITY, PARAPHRASING)}
    choices = [Validity(min_kept_share=k, max_added_words=a) for k, a in product(SHARES, (1, 2, 0))]
    rules = choose(choices, part[NATURALITY])
    rules = choose([replace(rules, min_expressed_share=m) for m in SHARES], part[PARAPHRASING])
    if similarity is None:
        return rules
    rules = replace(rules, similarity=similarity)
    choices = [
        replace(rules, max_drift_words=d, max_supported_drift_words=max(v, d))
        for d, v in product(DRIFTS, (1.0, 1.5, 2.0, 3.0))
    ]
    return choose(choices, part[PARAPHRASING])


def remember(similarity: Similarity | None) -> Similarity | None:
    """Return the same similarity, which computes each pair once."""
    if similarity is None:
        return None
    known: dict[tuple[str, str], float] = {}

    def look_up(left: list[str], right: list[str]) -> np.ndarray:
        new = [pair for pair in dict.fromkeys(zip(left, right, strict=True)) if pair not in known]
        if new:
            known.update(zip(new, similarity(*map(list, zip(*new, strict=True))).tolist(), strict=True))
        return np.array([known[pair] for pair in zip(left, right, strict=True)])

    return look_up


def build_row(labels: str, evidence: str, rows: Sequence[Row], verdicts: Sequence[bool]) -> list[str]:
    """Return the row of a judge on a set of labels."""
    found = measure_agreement([row.valid for row in rows], verdicts)
    return [f"{labels}, {evidence}", str(len(rows)), *(f"{value:.2f}" for value in found)]


def judge_swaps() -> list[str]:
    """Return how well the rules judge our test labels without an encoder."""
    rows = [row for row in read_swaps() if row.texts != FIT]
    return build_row("`syn_swap` (test)", "words and phrases", rows, judge(Validity(), rows))


def count_kinds() -> list[list[str]]:
    """Return how often words alone tell the category that is meant, by category, for methods and for people.

    Variations by methods are those that follow their category by the labels of the paper.
    """
    methods = [
        (row.case.category, classify_variation(row.case.original, row.case.text))
        for name in FILES
        for row in read_published(name)
        if row.follows
    ]
    sample = read_sample()
    people = [
        (variant.category, classify_variation(query.text.lower(), variant.text.lower()))
        for qid, query in sample.queries.items()
        for variant in sample.variants.get(qid, ())
    ]
    rows = []
    for category in CATEGORIES:
        told = [[answer for meant, answer in pairs if meant == category] for pairs in (methods, people)]
        rows.append([category, *(f"{some.count(category)} of {len(some)}" if some else "" for some in told)])
    return rows


def measure_validity() -> Rows:
    """Return the agreement of the rules with labels, the fitted thresholds and the defaults."""
    similarity = remember(make_encoder_similarity())
    swaps = list(read_swaps())
    ours = [row for row in swaps if row.texts != FIT]
    train, test = (select_read(read_published(name)) for name in FILES)
    default = Validity()
    informed = replace(default, similarity=similarity)
    sets = {"`syn_swap` (test)": ours, "TREC DL 2019 (test)": test, "ANTIQUE (fitted here)": train}
    rows = []
    for name, some in sets.items():
        rows.append(build_row(name, "words and phrases", some, judge(default, some)))
        if similarity is not None:
            rows.append(build_row(name, "words and an encoder", some, judge(informed, some, counted=False)))
            rows.append(build_row(name, "all of them", some, judge(informed, some)))
    fitted = fit_thresholds(train + [row for row in swaps if row.texts == FIT], similarity)
    return {
        "validity": rows,
        "valid swaps": [sum(row.valid for row in swaps), len(swaps)],
        "thresholds": [[name, str(getattr(fitted, name)), str(getattr(default, name))] for name in THRESHOLDS],
        "kinds": count_kinds(),
    }
