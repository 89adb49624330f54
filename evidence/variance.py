"""How evenly rankers serve their queries (paper 000, Tables 2 and 3, Figures 2 and 3), by five folds.

make evidence PAGE=variance        (an hour on one core; models are kept, so it may be cut off)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from evidence import DATA, Guard, Page, Rows, need_data, prose, read_interval, table
from evidence.neural import VECTORS, open_rag24
from shaketable.core.documents import Qrels, Run
from shaketable.core.home import home_folder
from shaketable.core.protocols import Model
from shaketable.core.registries import RANKERS
from shaketable.datasets.load import load
from shaketable.datasets.splits import make_folds
from shaketable.experiment import Experiment
from shaketable.measures.effectiveness import score_tables
from shaketable.measures.variance import GMAP, VAP, VNAP
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store

COLLECTIONS = ("cranfield", "rag24")
LEXICAL = ("ql", "bm25")
LEARNED = {
    "prank": "prank",
    "ranksvm": "ranksvm",
    "lambdamart": "lambdamart(trees=100, leaves=8)",
    "dssm": "dssm(steps=150)",
    "drmm": f"drmm(steps=300, vectors={str(VECTORS)!r})",
    "knrm": f"knrm(steps=300, vectors={str(VECTORS)!r})",
    "duet": f"duet(steps=150, vectors={str(VECTORS)!r})",
}
"""knrm stands for Conv-KNRM, whose folds would take hours here."""
K = 5
DEPTH = 20
"""Documents of a list that bert and colbert re-rank."""
COURSE = "lists=2, size=4, steps=60, every=60"
ENCODERS = {"bert": f"bert(max_length=64, {COURSE})", "colbert": f"colbert(text_length=64, {COURSE})"}
HEAD = ("ranker", "MAP", "nDCG@20", "P@20", "RR@100", "VNAP", "variance of AP", "%no", "gMAP")


def opened(name: str) -> Experiment:
    models = {model: RANKERS.build(model) for model in LEXICAL}
    return Experiment(load(DATA / "collections" / name), models, ScoringEngine(Store(home_folder() / "scores.sqlite")))


def out_of_folds(experiment: Experiment, learner: str) -> Run:
    """The lists of five models, each of the queries that it has not seen."""
    judged = [qid for qid in experiment.collection.queries if experiment.collection.qrels.get(qid)]
    joined: dict[str, Mapping[str, float]] = {}
    for fold in make_folds(judged, K, experiment.seed):
        model = experiment.fit(learner, fold.train, valid=fold.valid)
        texts = {qid: experiment.collection.queries[qid].text for qid in fold.test}
        part = replace(experiment, models={learner: model})
        joined |= part.rerank(learner, texts, experiment.search_first_stage(texts))
    return joined


def runs(name: str) -> tuple[Qrels, dict[str, Run]]:
    experiment = opened(name)
    found: dict[str, Run] = {model: experiment.get_run(model) for model in LEXICAL}
    for ranker, learner in LEARNED.items():
        found[ranker] = out_of_folds(experiment, learner)
        print(name, ranker, flush=True)
    return experiment.qrels, found


def rows(qrels: Qrels, found: Mapping[str, Run]) -> list[list[str]]:
    """Effectiveness, then what varies; VNAP with its interval over queries."""
    tables = score_tables(("AP", "nDCG@20", "P@20", "RR@100", "Success@10"), qrels, found)
    lines = []
    for place, name in enumerate(found):
        ap, *others = (one.values[place] for one in tables)
        spread = [VNAP().over(ap[draw]) for draw in draws(len(ap))]
        low, high = np.quantile(spread, (0.025, 0.975))
        means = [f"{values.mean():.4f}" for values in (ap, *others[:3])]
        vnap = f"{VNAP().over(ap):.3f} [{low:.3f}, {high:.3f}]"
        none = 100 * (1 - others[3].mean())
        lines.append([name, *means, vnap, f"{VAP().over(ap):.4f}", f"{none:.2f}", f"{GMAP().over(ap):.4f}"])
    return lines


def draws(count: int, times: int = 1000) -> np.ndarray:
    """Queries drawn again, the same for all rankers."""
    return np.random.default_rng(0).integers(count, size=(times, count))


def correlated(lines: list[list[str]]) -> str:
    """How MAP goes with VNAP, with gMAP and with %no, over the rankers."""
    frame = pd.DataFrame(
        {
            "MAP": [float(row[1]) for row in lines],
            "VNAP": [float(row[5].split()[0]) for row in lines],
            "gMAP": [float(row[8]) for row in lines],
            "%no": [float(row[7]) for row in lines],
        }
    )
    corr = frame.corr()["MAP"]
    return ", ".join(f"{name} {corr[name]:+.3f}" for name in ("VNAP", "gMAP", "%no"))


def encoders() -> list[list[str]]:
    """bert and colbert on rag24's own split, beside the formulas there."""
    experiment = open_rag24(*LEXICAL).with_depth(DEPTH)
    models: dict[str, Model] = {name: experiment.fit(text, "train") for name, text in ENCODERS.items()}
    whole = replace(experiment, models={**experiment.models, **models})
    reranked = {name: whole.rerank(name, whole.texts, whole.candidates) for name in models}
    return rows(experiment.qrels, {name: experiment.get_run(name) for name in LEXICAL} | reranked)


def ends(lines: list[list[str]]) -> dict[str, tuple[float, float, float]]:
    """VNAP of each ranker, with the ends of its interval."""
    return {row[0]: read_interval(row[HEAD.index("VNAP")]) for row in lines}


def compared(lines: list[list[str]], lower: Sequence[str], higher: Sequence[str]) -> str:
    """Whether all of some rankers are steadier than all others: by the values, and by intervals that lie apart."""
    known = ends(lines)
    pairs = [(known[a], known[b]) for a in lower for b in higher]
    told = sum(a[2] < b[1] for a, b in pairs), sum(b[2] < a[1] for a, b in pairs)
    verdict = "holds" if told[0] == len(pairs) else "does not hold" if told[1] else "cannot be told"
    by_value = sum(a[0] < b[0] for a, b in pairs)
    said = f"{by_value} of {len(pairs)} by the values; intervals lie apart for it in {told[0]}, against it in {told[1]}"
    return f"{said}: {verdict}"


def claims(found: Mapping[str, list[list[str]]], tuned: list[list[str]]) -> list[list[str]]:
    """What 3.4 says of Figure 2 and Table 3, and what these tables say."""
    ltr, nets = ("ranksvm", "lambdamart"), ("dssm", "drmm", "knrm", "duet")
    lines = []
    for name, rows_ in found.items():
        lines.append([f"BM25 is steadier than QL ({name})", compared(rows_, ["bm25"], ["ql"])])
        lines.append([f"RankSVM and LambdaMART are steadier than both formulas ({name})",
                      compared(rows_, ltr, LEXICAL)])  # fmt: skip
        others = [row[0] for row in rows_ if row[0] != "dssm"]
        lines.append([f"DSSM is the least steady of all ({name})", compared(rows_, others, ["dssm"])])
        lines.append([f"nets are less steady than RankSVM and LambdaMART ({name})", compared(rows_, ltr, nets)])
    beside = "BERT and ColBERT are the steadiest (rag24's own split, beside formulas alone)"
    return [*lines, [beside, compared(tuned, ["bert", "colbert"], LEXICAL)]]


def measure() -> Rows:
    need_data("collections", "cranfield")
    return {name: rows(*runs(name)) for name in COLLECTIONS} | {"encoders": encoders()}


def of_encoders(lines: list[list[str]]) -> list[str]:
    return [
        "## bert and colbert, on rag24's own split",
        prose(f"""86 test queries, lists of {DEPTH}; both on MiniLM with 64 word pieces, trained for 60 steps of
        two lists of four texts on the train queries, which is little."""),
        table(HEAD, lines),
    ]


def compose(found: Rows) -> list[str]:
    folds = {name: found[name] for name in COLLECTIONS}
    parts = []
    for name, lines in folds.items():
        parts += [f"## {name}, five folds", table(HEAD, lines)]
        parts.append(prose(f"Correlation with MAP over these rankers (Pearson): {correlated(lines)}."))
    return [
        prose("""All judged queries, each ranked by a model that has not seen it, one of five; learned rankers
        re-rank BM25's first 100. VNAP: the variance of AP over its squared mean, with a 95 % interval over queries;
        lower is steadier. %no: the share of queries without a relevant document among the first ten. gMAP: the
        geometric mean of AP. Nets learn for 300 steps (dssm and duet for 150) from some 140 queries: small
        trainings, so that what weak nets show is weakness. knrm stands for the paper's Conv-KNRM, whose folds take
        hours. One seed."""),
        *parts,
        *of_encoders(found["encoders"]),
        "## What the paper says, and what is found here",
        prose("""Figures 2 and 3 of paper 000, on Robust04, MQ2007 and MS MARCO. Each claim is a number of
        comparisons of two rankers by VNAP: it holds if the intervals of all lie apart for it, it does not hold if
        those of one lie apart against it, and else it cannot be told here."""),
        table(("claim", "here"), claims(folds, found["encoders"])),
        prose("""MAP and VNAP go together (the paper has a Pearson correlation of -0.9869): the correlations stand
        below the tables."""),
    ]


def variance_row(name: str) -> list[str]:
    """Return the row of one ranker on cranfield, which is trained in five folds if it learns."""
    experiment = opened("cranfield")
    run = out_of_folds(experiment, LEARNED[name]) if name in LEARNED else experiment.get_run(name)
    return rows(experiment.qrels, {name: run})[0]


PAGE = Page(
    __file__,
    "How evenly rankers serve their queries",
    measure,
    compose,
    (
        Guard("cranfield", "the row of ql on cranfield", lambda: variance_row("ql")),
        Guard(
            "cranfield",
            "the row of ranksvm on cranfield, trained in five folds",
            lambda: variance_row("ranksvm"),
            slow=True,
        ),
    ),
)

if __name__ == "__main__":
    PAGE.main()
