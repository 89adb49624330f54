"""Paper 004 on its own queries and variations: Tables 3 and 5 to 7, re-ranking the judged pools of TREC DL 2019.

make evidence PAGE=dl19-variations        (half an hour on two cores; scores and models are stored)
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evidence import DATA, Guard, Page, Rows, need_data, prose, read_number, table
from evidence._rag24 import LEXICAL, LTR, NETS, learned, open_rag24
from shaketable.core.home import home_folder
from shaketable.core.registries import RANKERS
from shaketable.datasets.load import load
from shaketable.datasets.splits import split_held_out
from shaketable.experiment import Experiment
from shaketable.measures.significance import adjust_p_values, t_test
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.tasks.fusion import Fusion
from shaketable.tasks.query_variation import QueryVariation
from shaketable.transforms.presets import PAPER_004
from shaketable.transforms.published import METHOD_ALIASES

Values = NDArray[np.float64]

FILES = {name: DATA / "variations" / f"qvg-{name}.csv" for name in ("trec-dl-2019", "antique")}
DL19 = str(FILES["trec-dl-2019"])
TABLE_3 = {
    "NeighbCharSwap": (100.00, 99.50),
    "RandomCharSub": (97.67, 91.00),
    "QWERTYCharSub": (97.67, 98.50),
    "RemoveStopWords": (86.05, 99.50),
    "T5DescToTitle": (81.40, 68.00),
    "RandomOrderSwap": (100.00, 100.00),
    "BackTranslation": (53.49, 46.50),
    "T5QQP": (60.47, 52.50),
    "WordEmbedSynSwap": (62.79, 62.00),
    "WordNetSynSwap": (37.21, 35.50),
}
"""Method -> valid variations in per cent, TREC DL 2019 and ANTIQUE."""
TABLE_4 = (334, 1706)
"""Valid variations of both."""
PLACES, QUERIES = ("DL 2019", "ANTIQUE"), (43, 200)
CLASSES = {
    "traditional": LEXICAL,
    "learning to rank": tuple(LTR),
    "neural": NETS,
    "transformer": ("dense",),
}
CATEGORIES = ("misspelling", "naturality", "ordering", "paraphrasing")
SEARCHING = (*LEXICAL, "dense")
LEVEL = 0.05


def judged_pools(rankers: Sequence[str] = SEARCHING) -> Experiment:
    """TREC DL 2019 where a query's candidates are all its judged passages, and nothing is searched."""
    whole = load(DATA / "collections" / "dl19")
    pools = {qid: dict.fromkeys(grades, 0.0) for qid, grades in whole.qrels.items()}
    models = {name: RANKERS.build(name) for name in rankers}
    engine = ScoringEngine(Store(home_folder() / "scores.sqlite"))
    return Experiment(replace(whole, candidates=pools, source=""), models, engine, depth=max(map(len, pools.values())))


def labels() -> list[Counter[str]]:
    """How many variations of each method people found valid, in each file."""
    counts = []
    for path in FILES.values():
        with path.open(newline="", encoding="utf-8") as file:
            counts.append(
                Counter(METHOD_ALIASES[row["method"]] for row in csv.DictReader(file) if row["valid"] == "True")
            )
    return counts


def table_3(counts: list[Counter[str]]) -> list[list[str]]:
    """The counts, beside the paper's per cent."""
    rows = []
    for name, said in TABLE_3.items():
        own = [valid[PAPER_004[name]] for valid in counts]
        shares = [f"{n} ({100 * n / queries:.2f})" for n, queries in zip(own, QUERIES, strict=True)]
        rows.append([PAPER_004[name], shares[0], f"{said[0]:.2f}", shares[1], f"{said[1]:.2f}"])
    totals = [str(valid.total()) for valid in counts]
    return [*rows, ["all", totals[0], str(TABLE_4[0]), totals[1], str(TABLE_4[1])]]


@dataclass(frozen=True, eq=False)
class Changes:
    """What each variation changes for one ranker [variations], by its original's value, and which are valid."""

    before: Values
    after: Values
    valid: NDArray[np.bool_]
    methods: NDArray[np.str_]
    categories: NDArray[np.str_]
    queries: NDArray[np.str_]
    clean: Mapping[str, float]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Changes:
        """From the rows of one ranker in the table of variations per query."""
        texts = (frame[name].to_numpy(dtype=str) for name in ("method", "category", "query"))
        clean = dict(zip(frame["query"], frame["before"], strict=True))
        values = (frame[name].to_numpy(dtype=float) for name in ("before", "after"))
        return cls(*values, frame["valid"].to_numpy(dtype=bool), *texts, clean)

    @property
    def mean(self) -> float:
        """Of the queries as they are."""
        return float(np.mean(list(self.clean.values())))

    def replaced(self, method: str) -> tuple[Values, Values]:
        """Each query's value before and after, where the original stands in for what is not valid or not there."""
        new = dict(self.clean)
        for i in np.flatnonzero((self.methods == method) & self.valid):
            new[self.queries[i]] = self.after[i]
        return np.array(list(self.clean.values())), np.array([new[qid] for qid in self.clean])

    def cell(self, method: str) -> tuple[float, float]:
        """The mean as in Table 5, and p of a paired t-test without correction."""
        before, after = self.replaced(method)
        return float(after.mean()), float(t_test(before, after))

    def drop(self, part: NDArray[np.bool_] | None = None) -> float:
        """The relative change over valid variations, in per cent."""
        some = self.valid if part is None else self.valid & part
        return float(100 * (self.after[some].mean() / self.before[some].mean() - 1))

    def change(self, category: str) -> float:
        """The mean change by the methods of a category, originals standing in."""
        methods = dict.fromkeys(self.methods[self.categories == category].tolist())
        return float(np.mean([np.subtract(*self.replaced(method)[::-1]).mean() for method in methods]))


Found = Mapping[str, Changes]
"""ranker -> what variations change"""


def rank_variations(experiment: Experiment) -> Found:
    per_query = QueryVariation(variations=DL19, depths=()).run(experiment).tables["variations per query"]
    return {str(ranker): Changes.of(part) for ranker, part in per_query.groupby("ranker", sort=False)}


def table_5(found: Found) -> list[list[str]]:
    first = next(iter(found.values()))
    rows = [["", "the original", *(f"{c.mean:.4f}" for c in found.values()), str(len(first.clean))]]
    for method, category in dict(zip(first.methods, first.categories, strict=True)).items():
        cells = []
        for changes in found.values():
            mean, p = changes.cell(method)
            cells.append(f"{mean:.4f}" + ("" if p >= LEVEL else "↓" if mean < changes.mean else "↑"))
        valid = int((first.valid & (first.methods == method)).sum())
        rows.append([category, method, *cells, str(valid)])
    return rows


def count_losses(found: Found) -> int:
    """Return how many cells of Table 5 fall significantly after Holm's correction over all of them."""
    cells = [
        (changes.cell(method), changes.mean) for changes in found.values() for method in dict.fromkeys(changes.methods)
    ]
    p = np.array([p for (_, p), _ in cells])
    down = np.array([mean < start for (mean, _), start in cells])
    return int(((adjust_p_values(p) < LEVEL) & down).sum())


def members(found: Found) -> dict[str, list[str]]:
    """The rankers of each class."""
    named = {kind: [name for name in names if name in found] for kind, names in CLASSES.items()}
    return {kind: names for kind, names in named.items() if names}


def by_class(found: Found) -> dict[str, dict[str, float]]:
    """class -> category -> mean change."""
    return {
        kind: {category: float(np.mean([found[name].change(category) for name in names])) for category in CATEGORIES}
        for kind, names in members(found).items()
    }


def correlated(found: Found) -> dict[str, tuple[float, float]]:
    """category -> the mean of Pearson's r of the changes of two rankers: of one class, and of two."""
    kind_of = {name: kind for kind, names in members(found).items() for name in names}
    means = {}
    for category in CATEGORIES:
        within, between = [], []
        for one, other in combinations(kind_of, 2):
            some = found[one].valid & (found[one].categories == category)
            left, right = (found[name].after[some] - found[name].before[some] for name in (one, other))
            if np.ptp(left) > 0 and np.ptp(right) > 0:
                r = float(np.corrcoef(left, right)[0, 1])
                (within if kind_of[one] == kind_of[other] else between).append(r)
        if within and between:  # where no two of a class move there is nothing to compare
            means[category] = (float(np.mean(within)), float(np.mean(between)))
    return means


def table_7(frame: pd.DataFrame) -> Iterator[list[str]]:
    """RRF of the lists of valid variations, without and with that of the original query; and the best query."""
    rankers = list(dict.fromkeys(frame["ranker"]))
    start = frame.groupby("ranker", sort=False)["before"].first()
    yield ["the original", *(f"{start[name]:.4f}" for name in rankers)]
    shown = frame[frame["fusion"].isin(["rrf", "oracle"])]
    for (what, own), rows in shown.groupby(["lists of", "with original"], sort=False):
        if what == "ordering":
            continue
        cells = {
            row["ranker"]: f"{row['after']:.4f}"
            + ("" if not row["p (Holm)"] < LEVEL else "↓" if row["change"] < 0 else "↑")
            for _, row in rows.iterrows()
        }
        title = what if what == "best query" else f"RRF, {what}{' and the original' if own else ''}"
        yield [title, *(cells[name] for name in rankers)]


def claims(found: Rows) -> list[list[str]]:
    """What the paper says, and whether the printed tables say the same."""
    return [*label_claims(found["labels"]), *variation_claims(found), *fusion_claims(found), *UNKNOWN]


UNKNOWN = [
    ["unjudged documents are not to blame", "all that is ranked here is judged", "cannot be told"],
    ["Tables 5 to 7 of ANTIQUE", "its passages are not at hand", "cannot be told"],
]
"""Claims that these data cannot decide."""


def label_claims(labels: Sequence[Sequence[str]]) -> list[list[str]]:
    """Claims about the number of valid variations."""
    *methods, totals = labels
    unlike = [
        f"{cells[0]} of {place}: {there} there, {here.split('(')[1].rstrip(')')} here"
        for cells in methods
        for place, here, there in zip(PLACES, cells[1::2], cells[2::2], strict=True)
        if here.split("(")[1].rstrip(")") != there
    ]
    numbers = 2 * len(methods)
    agree = f"{numbers - len(unlike)} of {numbers} numbers are those of the published labels"
    return [
        [
            "Table 3: valid variations in per cent, by method",
            "; ".join([agree, *unlike]),
            _verdict(not unlike),
        ],
        *(
            [f"Table 4: {there} valid variations of {name}", f"{here} in the published labels", _verdict(here == there)]
            for name, here, there in zip(PLACES, totals[1::2], totals[2::2], strict=True)
        ),
    ]


def read_changes(printed: Sequence[Sequence[str]]) -> dict[str, list[float]]:
    """Return the mean change of each ranker in each category, by the printed means of Table 5."""
    original, *methods = ([read_number(cell) for cell in cells[2:-1]] for cells in printed)
    kinds = [cells[0] for cells in printed[1:]]
    return {
        kind: [
            float(np.mean([means[place] - start for means, of in zip(methods, kinds, strict=True) if of == kind]))
            for place, start in enumerate(original)
        ]
        for kind in CATEGORIES
    }


def variation_claims(found: Rows) -> list[list[str]]:
    """Claims about single variations: Tables 5 and 6, and the pipeline."""
    tested = [(cells[0], cell) for cells in found["table 5"][1:] for cell in cells[2:-1]]
    down = [category for category, cell in tested if cell.endswith("↓")]
    typos, up = down.count("misspelling"), sum(cell.endswith("↑") for _, cell in tested)
    sure = found["losses after Holm"]
    alone, whole = (float(np.mean([float(cells[2]) for cells in found[name]])) for name in ("drops", "pipeline"))
    changes = read_changes(found["table 5"])
    mean = {kind: float(np.mean(values)) for kind, values in changes.items()}
    order = sorted(CATEGORIES, key=mean.__getitem__)
    kinds = {cells[0]: dict(zip(CATEGORIES, map(float, cells[2:]), strict=True)) for cells in found["classes"]}
    trad, encoders = kinds["traditional"], kinds["transformer"]
    still = dict(zip(found["rankers"], changes["ordering"], strict=True))
    moved = [name for name in ("bm25", "rm3", "knrm") if abs(still[name]) > 1e-9]
    r = [(category, float(within), float(between)) for category, within, between in found["table 6"]]
    return [
        [
            "most cells of Table 5 fall significantly: 49 of 70",
            f"{len(down)} of {len(tested)}, {typos} of these misspelled; {sure} after Holm's correction",
            _verdict(len(down) > len(tested) / 2),
        ],
        ["no set of variations gains significantly", f"{up} of {len(tested)} cells gain", _verdict(up == 0)],
        [
            "valid variations cost a pipeline 20.62 % (DL 2019)",
            f"{whole:+.1f} % on average over {len(found['pipeline'])} rankers that search the judged passages",
            _verdict(_near(whole, -20.62)),
        ],
        [
            "they cost a re-ranker alone less: 9 %",
            f"{alone:+.1f} % on average over {len(found['drops'])} rankers of judged pools",
            _verdict(whole < alone and _near(alone, -9)),
        ],
        [
            "misspelling costs most, then paraphrasing, naturality, ordering (-.25, -.08, -.05, under .01)",
            ", ".join(f"{c} {mean[c]:+.3f}" for c in order),
            _verdict(order == ["misspelling", "paraphrasing", "naturality", "ordering"]),
        ],
        [
            "naturality costs transformers more than traditional rankers (-.05, -.03)",
            f"{encoders['naturality']:+.3f}, {trad['naturality']:+.3f}",
            _verdict(encoders["naturality"] < trad["naturality"]),
        ],
        [
            "word order moves transformers by less than .01",
            f"{encoders['ordering']:+.4f}",
            _verdict(abs(encoders["ordering"]) < 0.01),
        ],
        [
            "and BM25, RM3 and KNRM not at all",
            f"{'none moves' if not moved else ', '.join(moved) + ' move'}",
            _verdict(not moved),
        ],
        [
            "rankers of a class fail on the same queries (Table 6, there of ANTIQUE)",
            "mean r within / between classes: " + ", ".join(f"{c} {a:.2f} / {b:.2f}" for c, a, b in r),
            _verdict(all(a > b for _, a, b in r)),
        ],
    ]


def fusion_claims(found: Rows) -> list[list[str]]:
    """Claims about fused lists and the best query: Table 7."""
    lists = {cells[0]: [read_number(cell) for cell in cells[1:]] for cells in found["table 7"]}
    original = sum(lists["the original"])
    rrf = 100 * (sum(lists["RRF, all"]) / original - 1)
    alone = float(np.mean([float(cells[2]) for cells in found["drops"]]))
    best = float(np.mean(np.subtract(lists["best query"], lists["the original"])))
    return [
        ["fusing all variations costs 3 %", f"RRF of all {rrf:+.1f} %", _verdict(_near(rrf, -3))],
        [
            "it costs less than a single variation does",
            f"RRF of all {rrf:+.1f} %, a single valid one {alone:+.1f} %",
            _verdict(alone < rrf),
        ],
        [
            "fusing does not gain over the original",
            f"{found['gaining fusions']} of {found['fusions']} fusions gain significantly",
            _verdict(not found["gaining fusions"]),
        ],
        ["the best query of all would gain .08", f"{best:+.3f}", _verdict(_near(best, 0.08))],
    ]


def _verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def _near(here: float, there: float) -> bool:
    """Is a number between half and double of the paper's?"""
    return 0.5 <= here / there <= 2


def drop_rows(found: Found) -> list[list[str]]:
    """The relative change over valid variations, all and by category."""
    return [
        [name, f"{c.mean:.4f}", f"{c.drop():+.1f}", *(f"{c.drop(c.categories == each):+.1f}" for each in CATEGORIES)]
        for name, c in found.items()
    ]


def measure() -> Rows:
    need_data("collections", "dl19")
    experiment = judged_pools()
    experiment.models = {**experiment.models, **learned(open_rag24("bm25"))}
    found = rank_variations(experiment)
    fusion = Fusion(variations=DL19).run(experiment).tables["fusion"]
    whole = judged_pools()
    whole = replace(whole.with_collection(replace(whole.collection, candidates={}), None), depth=100)
    searched = QueryVariation(variations=DL19, depths=(10, 100)).run(whole).tables
    pipeline = {str(name): Changes.of(part) for name, part in searched["variations per query"].groupby("ranker")}
    rrf = fusion[fusion["fusion"] == "rrf"]
    return {
        "queries": len(experiment.queries),
        "rankers": list(found),
        "labels": table_3(labels()),
        "table 5": table_5(found),
        "losses after Holm": count_losses(found),
        "drops": drop_rows(found),
        "classes": [
            [kind, ", ".join(members(found)[kind]), *(f"{means[c]:+.4f}" for c in CATEGORIES)]
            for kind, means in by_class(found).items()
        ],
        "table 6": [[c, f"{a:.2f}", f"{b:.2f}"] for c, (a, b) in correlated(found).items()],
        "table 7": table_7(fusion),
        "fusions": len(rrf),
        "gaining fusions": int(((rrf["change"] > 0) & (rrf["p (Holm)"] < LEVEL)).sum()),
        "pipeline": drop_rows(pipeline),
        "recall": recall_rows(searched["recall of the first stage"]),
    }


def recall_rows(frame: pd.DataFrame) -> list[list[str]]:
    """The share of relevant passages that the first stage finds, by category and depth."""
    return [
        [
            row["category"],
            str(row["depth"]),
            *(f"{row[name]:.3f}" for name in ("before", "after")),
            f"{row['change']:+.3f}",
            f"{row['p (Holm)']:.3f}",
        ]
        for _, row in frame.iterrows()
    ]


def compose(found: Rows) -> list[str]:
    columns = ("ranker", "original", "all", *CATEGORIES)
    return [
        prose(f"""The {found["queries"]} queries of TREC DL 2019 with the variations that the paper
        published, by all ten of its generators, and its labels of which are valid. Of the 8.8 million passages only
        the 9,139 judged ones are at hand, so each ranker re-ranks the judged pool of each query, the same for the
        query and for its variations: the first stage sees no variation, and nothing unjudged is ranked. That is
        nearest to the paper's experiment where only the re-ranker sees the variation. dense is MiniLM as it comes;
        what learns learned from the 215 train queries of rag24, with one seed, where the
        paper's models learned from 367,013 of MS MARCO. Nets on words know the words of rag24 only. conv_knrm and
        tuned encoders are left out for the time that they take, so the class of transformers is dense alone."""),
        "## What the paper says, and what is so here",
        prose("""A claim of a size holds if the number here is between half and double of the paper's; one of an
        order or a sign if that is the same; all of means, and chance may have decided what is close."""),
        table(("claim", "here", "verdict"), claims(found), numbers=False),
        "## Table 3: valid variations",
        "Counted in the published files; in brackets in per cent of 43 and 200 queries, then the paper's per cent.",
        table(("method", "DL 2019", "paper", "ANTIQUE", "paper"), found["labels"]),
        "## Table 5: nDCG@10, originals in the place of what is not valid",
        "↓, ↑: paired t-test, p < 0.05, not corrected, as in the paper.",
        table(("category", "method", *found["rankers"], "valid"), found["table 5"]),
        "Relative change over valid variations, in per cent:",
        table(columns, found["drops"]),
        "Mean change by class of ranker, originals in the place of what is not valid:",
        table(("class", "rankers", *CATEGORIES), found["classes"]),
        "## Table 6: do the same variations break two rankers?",
        prose("""Pearson's r of the changes of two rankers over valid variations; means over pairs of rankers of one
        class, and of two classes. A ranker that a category does not move takes no part, and a category in which no
        two of a class move is left out."""),
        table(("category", "within a class", "between classes"), found["table 6"]),
        "## Table 7: fusion",
        prose("""RRF of the lists of valid variations; where a query has none, its own list stands in (in the paper
        that is so for each variation that is not valid). ↓, ↑: p < 0.05 after Holm's correction over all fusions;
        the best query is chosen by the judgements, and not tested."""),
        table(("lists", *found["rankers"]), found["table 7"]),
        "## Searching the judged passages",
        prose("""The whole pipeline on the 9,139 passages: a query's own pool among those of the other 42, so a far
        easier search than that of the paper. Relative change over valid variations, in per cent:"""),
        table(columns, found["pipeline"]),
        "Share of the relevant passages among the first that BM25 finds (all variations, as they are):",
        table(("category", "depth", "original", "variations", "change", "p (Holm)"), found["recall"]),
        "The paper has .06 at 10 and .25 at 100 for misspelled queries, among all passages of MS MARCO.",
    ]


def prank_row() -> list[str]:
    """Return the row of a model that is trained for it."""
    source = open_rag24("bm25")
    train, valid = split_held_out(source.collection.splits["train"], source.seed)
    experiment = replace(judged_pools(()), models={"prank": source.fit(LTR["prank"], train, valid=valid)})
    return drop_rows(rank_variations(experiment))[0]


PAGE = Page(
    __file__,
    "Paper 004 on its own queries",
    measure,
    compose,
    (
        Guard("labels", "the row of all labels", lambda: table_3(labels())[-1]),
        Guard(
            "drops", "the row of bm25 in judged pools", lambda: drop_rows(rank_variations(judged_pools(("bm25",))))[0]
        ),
        Guard("drops", "the row of prank in judged pools, trained again", prank_row, slow=True),
    ),
)

if __name__ == "__main__":
    PAGE.main()
