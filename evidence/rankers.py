"""How effective the rankers of four families are on four collections (paper 000, Table 2; paper 003, Table 1).

make evidence PAGE=rankers        (ten minutes of CPU time; scores and models are stored, so it may be cut off)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from evidence import FOLDER, Guard, Page, Rows, fold, need_data, prose, read_interval, table
from evidence._claims import MEASUREMENTS
from evidence._intervals import measure_difference, show_interval
from evidence._published_runs import BASELINE, read_published_runs
from evidence._rankers import (
    DEPTHS,
    FIRST_STAGE,
    FOLDS,
    LEARNING_TO_RANK,
    NET_NAMES,
    PIECES,
    RANKERS,
    TRAIN_QUERIES,
    TRAINED_ON,
    Values,
    name_training,
    open_collection,
    score_named,
    validate,
)
from evidence._verdicts import Measurement
from evidence.summary import tabulate_claims
from shaketable.core.results import Figure
from shaketable.files.atomic import atomic_write
from shaketable.report.charts import draw_svg

MEASURES = ("nDCG@10", "RR@10", "AP")
GRADED_MEASURES = ("nDCG@10", "RR(rel=2)@10", "AP(rel=2)")
"""The measures on dl19, where grade 1 is not relevant."""
CLAIMS = {
    "000-ltr-better": ("AP", ("lambdamart", "ranksvm"), ("nfcorpus", "cranfield", "rag24")),
    "000-nets-worse": ("AP", NET_NAMES, ("nfcorpus", "dl19", "rag24")),
    "000-pretrained-best": ("nDCG@10", ("minilm-l12", "bge-small", "minilm-l6"), ("dl19", "nfcorpus", "rag24")),
}
"""claim -> its measure, the rankers that it compares with BM25, and the collections"""
PUBLISHED = ("minilm-reranker", "monot5-base-reranker", "rankt5-base-reranker", "colbert")
FIGURE = FOLDER / "rankers-differences.svg"
ENDS = ("difference", "difference low", "difference high")
HEAD = ("ranker", *MEASURES, "nDCG@10 - BM25's")


def score(collection: str, name: str) -> dict[str, Values]:
    """Return the measures of a ranker for each query."""
    measures = GRADED_MEASURES if collection == "dl19" else MEASURES
    return dict(zip(MEASURES, score_named(collection, name, measures), strict=True))


def build_row(name: str, values: dict[str, Values], base: dict[str, Values]) -> list[str]:
    """Return the row of a ranker: its means, and its difference from BM25."""
    difference = measure_difference("", name, "", values["nDCG@10"], base["nDCG@10"])
    shown = "" if name == FIRST_STAGE else show_interval(difference)
    return [name, *(f"{values[one].mean():.3f}" for one in MEASURES), shown]


def compare(collection: str, scores: dict[str, dict[str, Values]]) -> Iterator[Measurement]:
    """Yield the measurements of all claims on a collection, each a difference from BM25."""
    for claim, (measure, names, collections) in CLAIMS.items():
        for name in (one for one in names if one in scores and collection in collections):
            pair = scores[name][measure], scores[FIRST_STAGE][measure]
            yield measure_difference(claim, f"{name} - bm25", collection, *pair, name_training(collection, name))


def compare_published() -> Iterator[Measurement]:
    """Yield the differences of published runs on TREC DL 2019 from the published run of BM25."""
    ndcg = read_published_runs(("nDCG@10",))["nDCG@10"]
    for name in PUBLISHED:
        yield measure_difference("003-superior", f"{name} - bm25", "dl19", ndcg.row(name), ndcg.row(BASELINE))


def list_validation(collection: str) -> list[list[str]]:
    """Return a row for each trained ranker of a collection: does it reach BM25 on the validation queries?"""
    rows = []
    for name in (one for one in RANKERS[collection] if one in (*LEARNING_TO_RANK, *NET_NAMES)):
        ours, base = validate(collection, name)
        rows.append([name, collection, f"{ours:.3f}", f"{base:.3f}", "yes" if ours >= base else "no"])
    return rows


def draw(found: Rows) -> None:
    """Write the figure of the page from its rows: differences from BM25 by ranker and collection."""
    rows = [
        dict(zip(("ranker", "collection", *ENDS), (row[0], name, *read_interval(row[-1])), strict=True))
        for name in RANKERS
        for row in found[name]
        if row[-1]
    ]
    figure = Figure("bars", "differences", "Difference from BM25 in nDCG@10", x="ranker", y=ENDS[0], color="collection")
    with atomic_write(FIGURE) as out:
        out.write(draw_svg(figure, pd.DataFrame(rows)))


def measure() -> Rows:
    need_data("collections", "nfcorpus")
    rows: Rows = {MEASUREMENTS: []}
    for collection, names in RANKERS.items():
        scores = {}
        for name in names:
            scores[name] = score(collection, name)
            print(collection, name, flush=True)
        rows[collection] = [build_row(name, scores[name], scores[FIRST_STAGE]) for name in names]
        rows[f"{collection}: queries"] = len(open_collection(collection).queries)
        rows[MEASUREMENTS] += [one.to_row() for one in compare(collection, scores)]
    rows[MEASUREMENTS] += [one.to_row() for one in compare_published()]
    draw(rows)
    rows["validation"] = [row for name in dict.fromkeys(TRAINED_ON.values()) for row in list_validation(name)]
    return rows


def tabulate(found: Rows) -> list[list[str]]:
    """Return the main table: nDCG@10 of each ranker on each collection, with its difference from BM25."""
    cells = {(name, row[0]): row for name in RANKERS for row in found[name]}
    names = dict.fromkeys(row[0] for name in RANKERS for row in found[name])
    rows = []
    for ranker in names:
        known = [cells.get((name, ranker)) for name in RANKERS]
        rows.append([ranker, *("" if row is None else f"{row[1]} ({row[-1]})" if row[-1] else row[1] for row in known)])
    return rows


def describe(found: Rows) -> str:
    """Return the answer: what the cross-encoder, the other families and the published runs gain over BM25."""
    known = [Measurement(**row) for row in found[MEASUREMENTS]]
    gains = {one.collection: one for one in known if one.ranker == "minilm-l12 - bm25"}
    said = "; ".join(f"{show_interval(one)} on {name}" for name, one in gains.items()) or "an amount not measured yet"
    ltr = [one for one in known if one.claim == "000-ltr-better"]
    better, worse = sum(one.low > 0 for one in ltr), sum(one.high < 0 for one in ltr)
    runs = [one for one in known if one.claim == "003-superior"]
    return prose(f"""The cross-encoder differs from BM25 in nDCG@10 by {said}. Learning to rank is significantly better
    than BM25 in {better} and significantly worse in {worse} of {len(ltr)} comparisons by AP. The four published neural
    runs on TREC DL 2019 are {min(one.value for one in runs):.3f} to {max(one.value for one in runs):.3f} above the
    published run of BM25, each with an interval above {min(one.low for one in runs):.3f}.""")


def describe_power(found: Rows) -> str:
    """Return how small a difference each collection can show."""
    cells = []
    for name in RANKERS:
        reach = [measured_reach(row[-1]) for row in found[name] if row[-1]]
        cells.append(f"{name} ({found[f'{name}: queries']} queries) ±{sorted(reach)[len(reach) // 2]:.3f}")
    return prose(f"""Power: the median half-width of the intervals is {", ".join(cells)}; smaller differences cannot be
    told from 0 there.""")


def measured_reach(cell: str) -> float:
    """Return half the width of a printed interval.

    >>> measured_reach("+0.100 [+0.050, +0.150]")
    0.05
    """
    low, high = (float(end) for end in cell.partition("[")[2].rstrip("]").split(", "))
    return round((high - low) / 2, 4)


def compose(found: Rows) -> list[str]:
    toys = any(row["training"] for row in found[MEASUREMENTS])
    depths = ", ".join(f"{depth} on {name}" for name, depth in DEPTHS.items())
    return [
        describe(found),
        f"![Difference from BM25 in nDCG@10, with 95 % intervals]({FIGURE.name})",
        prose("""nDCG@10, and in brackets the difference from BM25 with its paired 95 % interval; an empty cell was not
        measured:"""),
        table(("ranker", *RANKERS), tabulate(found)),
        describe_power(found),
        "## Verdicts",
        tabulate_claims("rankers", found),
        *([prose("† a ranker that does not reach BM25 on its validation queries: a toy training.")] if toys else []),
        "## How it was made",
        prose(f"""Data: NFCorpus, TREC RAG 2024 and Cranfield are searched: BM25, QL and RM3 search, all others re-rank
        BM25's first documents ({depths}). dl19 has judged passages only, so there every ranker orders the judged
        passages of a query and nothing is searched: its numbers are of re-ranking and higher than those of a search.
        Binary measures count grades from 2 up on dl19. A query that BM25 finds nothing for counts 0."""),
        prose(f"""Models: minilm-l12 is the cross-encoder ms-marco-MiniLM-L-12-v2 and bge-small the bi-encoder
        bge-small-en-v1.5, both as int8 ONNX files that `make models` builds, which also compute in
        int8. This is two to three times as fast as float32, but scores differ from those of
        the original and lists can change their order;
        minilm-l6 is all-MiniLM-L6-v2. They read {PIECES} word pieces and learned nothing here. LambdaMART, RankSVM
        and PRank use 28 features; they learn from {TRAIN_QUERIES} train queries of nfcorpus, from 172 of rag24 (43
        validate; the model of rag24 also ranks dl19), and in {FOLDS} folds on cranfield. {describe_nets()} One seed
        (0). About ten minutes of CPU time, an estimate: the page was made in steps and not from an empty store; scores
        and models are stored."""),
        fold(
            "Do trained rankers reach BM25 on their validation queries? (nDCG@10)",
            table(("ranker", "collection", "ranker", "BM25", "reaches BM25"), found["validation"]),
        ),
        *(fold(f"{name}: nDCG@10, RR@10 and AP", table(HEAD, found[name])) for name in RANKERS),
    ]


def describe_nets() -> str:
    """Return how the nets were trained, or that none was."""
    named = [name for name in NET_NAMES if any(name in names for names in RANKERS.values())]
    if not named:
        return "Nets (K-NRM, Conv-KNRM) have not been trained yet, so claims about nets are not tested here."
    return f"""{" and ".join(named)} train their word vectors, and learn from the scores of minilm-l12."""


def find_row(collection: str, name: str) -> Sequence[str]:
    """Return the row of a ranker, computed again."""
    return build_row(name, score(collection, name), score(collection, FIRST_STAGE))


PAGE = Page(
    __file__,
    "How effective the rankers are",
    measure,
    compose,
    (
        Guard("nfcorpus", "the row of ql on nfcorpus", lambda: find_row("nfcorpus", "ql")),
        Guard("rag24", "the row of ranksvm on rag24, trained again", lambda: find_row("rag24", "ranksvm")),
        Guard(MEASUREMENTS, "the published run of colbert", lambda: list(compare_published())[-1].to_row()),
        Guard("dl19", "the row of minilm-l12 on dl19", lambda: find_row("dl19", "minilm-l12"), slow=True),
    ),
)

if __name__ == "__main__":
    PAGE.main()
