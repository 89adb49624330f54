"""How evenly the rankers serve their queries (paper 000, section 3.4, Figure 2 and Table 3).

make evidence PAGE=variance        (a minute where the page rankers was made before: it uses the same scores)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evidence import DATA, Guard, Page, Rows, fold, need_data, prose, table
from evidence._claims import MEASUREMENTS
from evidence._intervals import (
    bound,
    draw_topics,
    measure_correlation,
    measure_share_difference,
    measure_statistic_difference,
)
from evidence._published_runs import read_published_runs
from evidence._rankers import NET_NAMES, RANKERS, Values, name_training, open_collection, score_named
from evidence._verdicts import Measurement
from evidence.summary import tabulate_claims
from shaketable.datasets.scores import read_scores
from shaketable.measures.rates import measure_rate
from shaketable.measures.variance import GMAP, VAP, VNAP, mean_variance_correlation

MEASURES = ("AP", "Success@10")
GRADED_MEASURES = ("AP(rel=2)", "Success(rel=2)@10")
"""The measures on dl19, where grade 1 is not relevant."""
SEARCHED = ("nfcorpus", "cranfield", "rag24")
JUDGED_BY_ALL = ("nfcorpus", "dl19", "rag24")
VNAP_CLAIMS = {
    "000-vnap-bm25": (SEARCHED, (("bm25", "ql"),)),
    "000-vnap-ltr": (SEARCHED, tuple((a, b) for a in ("lambdamart", "ranksvm") for b in ("bm25", "ql"))),
    "000-vnap-pretrained": (
        JUDGED_BY_ALL,
        tuple(("minilm-l12", b) for b in ("bm25", "ql", "lambdamart", "conv_knrm")),
    ),
}
"""claim -> its collections, and the pairs of rankers whose VNAP it compares"""
NO_PAIRS = (("minilm-l12", "bm25"), ("bge-small", "bm25"))
NO_COLLECTIONS = ("nfcorpus", "rag24")
MATRICES = ("robust2004_ap", "adhoc8_ap", "web2010_err20", "web2011_err20", "web2013_err20", "web2014_err20")
HEAD = ("ranker", "MAP", "VNAP", "variance of AP", "gMAP", "%no@10")

Scores = dict[str, tuple[Values, Values]]
"""ranker -> AP and Success@10 of each query"""


def score(collection: str, name: str) -> tuple[Values, Values]:
    """Return AP and Success@10 of a ranker for each query."""
    ap, success = score_named(collection, name, GRADED_MEASURES if collection == "dl19" else MEASURES)
    return ap, success


def build_row(name: str, ap: Values, success: Values) -> list[str]:
    """Return the row of a ranker; VNAP and gMAP have bootstrap intervals, %no an exact one."""
    drawn = ap[draw_topics(len(ap))]
    cells = []
    for statistic in (VNAP(), GMAP()):
        value = float(statistic.over(ap))
        low, high = bound(value, statistic.over(drawn))
        cells.append(f"{value:.3f} [{low:.3f}, {high:.3f}]")
    none = measure_rate({str(i): 100 * (1 - float(one)) for i, one in enumerate(success)})
    shown = f"{none.value:.1f} [{none.low:.1f}, {none.high:.1f}]"
    return [name, f"{ap.mean():.3f}", cells[0], f"{float(VAP().over(ap)):.4f}", cells[1], shown]


def compare(collection: str, scores: Scores) -> Iterator[Measurement]:
    """Yield the measurements of all claims on a collection: paired differences of VNAP and of %no."""
    for claim, (collections, pairs) in VNAP_CLAIMS.items():
        for a, b in (pair for pair in pairs if collection in collections and set(pair) <= set(scores)):
            training = name_training(collection, a) or name_training(collection, b)
            ap = scores[a][0], scores[b][0]
            yield measure_statistic_difference(claim, f"{a} - {b}", collection, *ap, VNAP().over, training)
    for a, b in (pair for pair in NO_PAIRS if collection in NO_COLLECTIONS and set(pair) <= set(scores)):
        failed = 1 - scores[a][1], 1 - scores[b][1]
        yield measure_share_difference("000-no-pretrained", f"{a} - {b}", collection, *failed)


def correlate(name: str) -> Measurement:
    """Return Pearson's r of mean and VNAP over all runs of a track, or over the published runs on dl19."""
    if name == "dl19-runs":
        values = read_published_runs(("AP(rel=2)",))["AP(rel=2)"].values
    else:
        values = read_scores(DATA / "scores" / f"{name}.csv").values
    vnap = VNAP().over(values)
    r = mean_variance_correlation(values.mean(axis=1), vnap)
    return measure_correlation("000-map-vnap", name, r, int((~np.isnan(vnap)).sum()))


def measure() -> Rows:
    need_data("collections", "nfcorpus")
    rows: Rows = {MEASUREMENTS: [correlate(name).to_row() for name in ("dl19-runs", *MATRICES)]}
    for collection, names in RANKERS.items():
        scores = {name: score(collection, name) for name in names}
        rows[collection] = [build_row(name, *scores[name]) for name in names]
        rows[f"{collection}: queries"] = len(open_collection(collection).queries)
        rows[MEASUREMENTS] += [one.to_row() for one in compare(collection, scores)]
        print(collection, flush=True)
    return rows


def tabulate(found: Rows) -> list[list[str]]:
    """Return the main table: VNAP of each ranker on each collection, with its interval."""
    cells = {(name, row[0]): row[2] for name in RANKERS for row in found[name]}
    names = dict.fromkeys(row[0] for name in RANKERS for row in found[name])
    return [[ranker, *(cells.get((name, ranker), "") for name in RANKERS)] for ranker in names]


def describe(found: Rows) -> str:
    """Return the answer: differences in VNAP, and how mean and VNAP go together over runs."""
    known = [Measurement(**row) for row in found[MEASUREMENTS]]
    r = [one for one in known if one.claim == "000-map-vnap"]
    paired = [one for one in known if one.claim in VNAP_CLAIMS]
    lower, higher = sum(one.high < 0 for one in paired), sum(one.low > 0 for one in paired)
    against_bm25 = [one for one in paired if one.ranker == "minilm-l12 - bm25"]
    cross = "; ".join(f"{one} on {one.collection}" for one in against_bm25)
    return prose(f"""VNAP of the cross-encoder differs from that of BM25 by {cross or "an amount not measured yet"}. Of
    {len(paired)} paired differences in VNAP that the paper expects below 0, {lower} are significantly below and
    {higher} significantly above. Mean and VNAP are negatively correlated over all runs of each of {len(r)} tracks
    (r {min(one.value for one in r):.2f} to {max(one.value for one in r):.2f}), and r is -.98 or below on
    {sum(one.value <= -0.98 for one in r)} of them (the paper has -.9869 over 11 rankers).""")


def compose(found: Rows) -> list[str]:
    toys = any(row["training"] for row in found[MEASUREMENTS])
    nets = any(name in names for names in RANKERS.values() for name in NET_NAMES)
    queries = ", ".join(f"{name} {found[f'{name}: queries']}" for name in RANKERS)
    return [
        describe(found),
        prose("""VNAP is the variance of AP over its squared mean, with a 95 % bootstrap interval over queries; lower is
        more even. An empty cell was not measured:"""),
        table(("ranker", *RANKERS), tabulate(found)),
        "## Verdicts",
        tabulate_claims("variance", found),
        *([prose("† a ranker that does not reach BM25 on its validation queries: a toy training.")] if toys else []),
        "## How it was made",
        prose(f"""Data and models are those of [rankers](rankers.md) (int8 inference), whose scores are stored; queries:
        {queries}. On dl19 the judged passages are re-ranked and grades from 2 up count. Differences are paired: both
        rankers have the same 1,000 resamples of queries. Differences of %no combine exact intervals. r has the interval
        of Fisher's z over runs, which takes runs as independent; runs of one group are not. Seed 0; from
        stored scores the page takes less than a minute of CPU time. An undecided row says how many queries would decide
        it."""
        + ("" if nets else " Nets have not been trained yet, so the comparison with conv_knrm is missing.")),
        *(fold(f"{name}: all measures", table(HEAD, found[name])) for name in RANKERS),
    ]  # fmt: skip


def find_row(collection: str, name: str) -> list[str]:
    """Return the row of a ranker, computed again."""
    return build_row(name, *score(collection, name))


PAGE = Page(
    __file__,
    "How evenly the rankers serve their queries",
    measure,
    compose,
    (
        Guard("nfcorpus", "the row of rm3 on nfcorpus", lambda: find_row("nfcorpus", "rm3")),
        Guard("rag24", "the row of ranksvm on rag24, trained again", lambda: find_row("rag24", "ranksvm")),
        Guard(MEASUREMENTS, "the correlation on web2013_err20", lambda: correlate("web2013_err20").to_row()),
        Guard(MEASUREMENTS, "the correlation of published runs on dl19", lambda: correlate("dl19-runs").to_row()),
        Guard("dl19", "the row of minilm-l12 on dl19", lambda: find_row("dl19", "minilm-l12"), slow=True),
    ),
)

if __name__ == "__main__":
    PAGE.main()
