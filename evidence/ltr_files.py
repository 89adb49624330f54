"""Risk-sensitive LambdaMART on real feature files: the paper's table of reward and risk (Table 7), with intervals.

    make evidence PAGE=ltr-files        (some minutes on two cores)

The files are samples: what the page shows is that everything runs as in the paper, not who wins.

The paper's own experiment (section 6.1, Table 7) is one command where MSLR-Web10k is at hand; the three parts of a fold
are together all of its queries:

    python -m evidence.ltr_files --paper --bm25 110 --out table7.md --letor train.txt vali.txt test.txt
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evidence import DATA, Guard, Page, Rows, need_data, prose, table
from shaketable.core.errors import BadInput
from shaketable.datasets.letor import Letor, read_letor
from shaketable.datasets.splits import make_folds
from shaketable.files.atomic import atomic_write
from shaketable.measures.risk import reward_risk
from shaketable.measures.significance import adjust_p_values, bootstrap_interval, t_test
from shaketable.training.baselines import BaselineNDCG, Baselines, make_feature_baseline, make_model_baseline
from shaketable.training.boosted import GBRT
from shaketable.training.feature_learner import FeatureLearner, learn
from shaketable.training.lambdamart import LambdaMART
from shaketable.training.linear import AFS, AdaRank
from shaketable.training.ndcg import NDCG

Values = NDArray[np.float64]

LTR = DATA / "ltr"
SMALL = LambdaMART(trees=200, leaves=10, min_docs=20, early_stop=50)
PAPER = LambdaMART(trees=500, leaves=50, learning_rate=0.1, min_docs=1500, early_stop=100)
"""LambdaMART for samples, and as in the paper."""
HELD_OUT, FOLDS, SEED = 5, 5, 1
TRIED = [
    ("ndcg", 0.0),
    *((name, alpha) for name in ("u-cro", "t-saro", "t-faro", "t*-faro", "georisk") for alpha in (1.0, 5.0)),
]


def learned(how: LambdaMART) -> dict[str, FeatureLearner]:
    """The four baselines of the paper, to be learned on queries that nothing else sees."""
    trees = GBRT(how.trees, how.leaves, how.learning_rate, how.min_docs, how.early_stop)
    return {"lambdamart": how, "gbrt": trees, "afs": AFS(), "adarank": AdaRank()}


@dataclass(frozen=True)
class Source:
    """Files of one collection, and its BM25 if one of the features is that."""

    name: str
    files: tuple[Path, ...]
    dims: int | None
    bm25: int | None

    def read(self) -> Letor:
        """All queries of all files."""
        first = read_letor(self.files[0], self.dims)
        parts = [first, *(read_letor(file, first.feature_count) for file in self.files[1:])]
        if len({qid for part in parts for qid in part.qids}) < sum(part.query_count for part in parts):
            raise BadInput(f"{self.name}: two of the files have a query of the same id")
        sizes = np.concatenate([part.list_sizes for part in parts])
        return Letor(
            np.concatenate([part.features for part in parts]),
            np.concatenate([part.labels for part in parts]),
            np.concatenate(([0], np.cumsum(sizes))),
            tuple(qid for part in parts for qid in part.qids),
            tuple(docno for part in parts for docno in part.docnos),
        )


SOURCES = (
    Source("mslr-5k", (LTR / "mslr-5k" / "train.txt.gz", LTR / "mslr-5k" / "test.txt.gz"), 136, 110),
    Source("mq2008", (LTR / "mq2008" / "test.txt",), 46, 25),
    Source(
        "lightgbm-lambdarank",
        (LTR / "lightgbm-lambdarank" / "train.txt", LTR / "lightgbm-lambdarank" / "test.txt"),
        300,
        None,
    ),
)


@dataclass(frozen=True, eq=False)
class Tested:
    """NDCG of models [models, queries] and baselines on queries that have something to find."""

    source: Source
    single: str
    models: Values
    one: Values
    many: Values
    barren: int


def single(source: Source, held: Letor) -> tuple[str, BaselineNDCG]:
    """BM25, or else the feature that ranks the held-out queries best by itself."""
    if source.bm25 is not None:
        return f"BM25 (feature {source.bm25})", make_feature_baseline(source.bm25)
    ndcg = NDCG(held)
    best = max(
        range(1, held.feature_count + 1), key=lambda number: float(make_feature_baseline(number)(held, ndcg).mean())
    )
    return f"feature {best}, the best one on the held-out queries", make_feature_baseline(best)


def cut(data: Letor, k: int) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """The numbers of the queries of each fold: to learn from, to validate on, to test on."""
    places = {qid: place for place, qid in enumerate(data.qids)}
    for fold in make_folds(data.qids, k, SEED):
        yield tuple(np.array([places[qid] for qid in part]) for part in (fold.train, fold.valid, fold.test))


def parts(source: Source) -> tuple[Letor, Letor]:
    """The fifth of the queries that is held out for baselines, and the others."""
    data = source.read()
    *_, kept_out = next(cut(data, HELD_OUT))
    return data.select_queries(kept_out), data.select_queries(np.setdiff1d(np.arange(data.query_count), kept_out))


def test(source: Source, how: LambdaMART) -> Tested:
    """Baselines from a fifth of the queries; on the others five folds, each tested on once by every objective."""
    held, rest = parts(source)
    two_thirds = 2 * held.query_count // 3
    teach, check = held.select_queries(range(two_thirds)), held.select_queries(range(two_thirds, held.query_count))
    many = Baselines(
        {name: make_model_baseline(learn(each, teach, check, seed=SEED)) for name, each in learned(how).items()}
    )
    name, system = single(source, held)
    one = Baselines({name: system})
    ndcg = NDCG(rest)
    models = np.empty((len(TRIED), rest.query_count))
    for numbers in cut(rest, FOLDS):
        train, valid, tested = (rest.select_queries(part) for part in numbers)
        measure = NDCG(tested)
        for row, (objective, alpha) in enumerate(TRIED):
            against = many if objective in ("t*-faro", "georisk") else one
            fit = replace(how, objective=objective, alpha=alpha).fit_rows(train, valid, SEED, against)
            models[row, numbers[-1]] = measure.compute(fit.predictor.predict(tested.features))
    found = ~ndcg.without_relevant
    return Tested(
        source,
        name,
        models[:, found],
        one.compute_ndcg(rest, ndcg)[0, found],
        many.compute_ndcg(rest, ndcg)[:, found],
        int(ndcg.without_relevant.sum()),
    )


def describe(tested: Tested) -> Rows:
    """The rows of one source: against one baseline, and against the four learned ones."""
    name = tested.source.name
    return {
        f"{name}: queries": tested.models.shape[1],
        f"{name}: without relevant documents": tested.barren,
        f"{name}: baseline": [tested.single, f"{tested.one.mean():.4f}"],
        f"{name}: against one": list(rows(tested.models, tested.one[None])),
        f"{name}: mean of four": f"{tested.many.mean():.3f}",
        f"{name}: against four": list(rows(tested.models, tested.many)),
    }


def section(name: str, found: Rows) -> Iterator[str]:
    """The tables of one source."""
    barren = found[f"{name}: without relevant documents"]
    left_out = f"; {barren} without a relevant document are left out" if barren else ""
    yield f"## {name}: {found[f'{name}: queries']} test queries{left_out}"
    baseline, mean = found[f"{name}: baseline"]
    yield f"Against {baseline} (mean NDCG {mean}):"
    yield table(HEAD, found[f"{name}: against one"])
    yield f"Against four models learned on held-out queries (mean NDCG {found[f'{name}: mean of four']}):"
    yield table(HEAD, found[f"{name}: against four"])


HEAD = ("", "α", "NDCG", "reward", "risk", "reward/risk", "wins", "losses", "W/L", "L > 20 %", "p of risk")


def rows(models: Values, baselines: Values) -> Iterator[list[str]]:
    found = reward_risk(models, baselines)
    losses = np.maximum(baselines[:, None] - models, 0).mean(axis=0)
    low, high = bootstrap_interval(models, SEED)
    risk_low, risk_high = bootstrap_interval(losses, SEED)
    p = adjust_p_values([1.0 if row == 0 else float(t_test(losses[0], losses[row])) for row in range(len(models))][1:])
    for row, (objective, alpha) in enumerate(TRIED):
        yield [
            "lambdamart" if row == 0 else objective,
            f"{alpha:g}",
            f"{models[row].mean():.3f} [{low[row]:.3f}, {high[row]:.3f}]",
            f"{found.reward[row]:.3f}",
            f"{found.risk[row]:.3f} [{risk_low[row]:.3f}, {risk_high[row]:.3f}]",
            f"{found.ratio[row]:.2f}",
            f"{found.wins[row]:g}",
            f"{found.losses[row]:g}",
            f"{found.win_loss[row]:.2f}",
            f"{found.heavy_losses[row]:g}",
            "" if row == 0 else f"{p[row - 1]:.2f}",
        ]


def intro(how: LambdaMART) -> str:
    """What was done."""
    size = "not 500 of 50 with 1500, for small files" if how is SMALL else "as in the paper"
    return prose(f"""As in section 6.1 of the paper: a fifth of the queries is held out, and four baselines (LambdaMART,
    GBRT, AFS, AdaRank) learn on two thirds of it and are validated on the rest. The other queries go into {FOLDS}
    folds, 60/20/20, and each is tested on once. U-CRO, T-SARO and T-FARO are trained against one baseline; T*-FARO and
    GeoRisk against the four learned ones, whose numbers below are means over the four. All is
    nDCG(dcg='exp-log2')@10 of ir_measures, the NDCG of the paper: the gain is exponential, and ties are broken against
    the ranking. Columns are those of Table 7. Lists without a relevant document are no topics of GeoRisk, in
    training either. LambdaMART has {how.trees} trees of {how.leaves} leaves with {how.min_docs} rows at least, {size}.
    Brackets hold 95 % bootstrap intervals over queries; p is of a paired t-test of the loss against plain LambdaMART's,
    corrected by Holm over the ten rows.""")


TITLE = "Risk-sensitive LambdaMART on feature files"
SAMPLES = prose("""**These tables show that every objective trains and is measured on real files. With so few queries
they do not say which is better, and nothing is claimed from them; the page on generated data is there for that.
`mslr-5k` is the first 86 of the 10,000 queries of MSLR-Web10k, which the paper's Table 7 is of; given `--paper` and all
of them, the script makes that table.**""")


def measure() -> Rows:
    need_data("ltr")
    found: Rows = {}
    for source in SOURCES:
        print(source.name, flush=True)
        found |= describe(test(source, SMALL))
    return found


def compose(found: Rows) -> list[str]:
    return [intro(SMALL), SAMPLES, *(part for source in SOURCES for part in section(source.name, found))]


def print_files(given: Sequence[str]) -> None:
    """Print the table of the files that the command line names."""
    parser = argparse.ArgumentParser(description="The paper's table of reward and risk, on feature files.")
    parser.add_argument("--letor", nargs="+", type=Path, help="LETOR files, together one set of queries")
    parser.add_argument("--bm25", type=int, help="the feature that is BM25; else the best single one is taken")
    parser.add_argument("--paper", action="store_true", help="500 trees of 50 leaves with 1500 rows, as in the paper")
    parser.add_argument("--out", type=Path, help="where the page of these files goes; else it is printed")
    options = parser.parse_args(given)
    how = PAPER if options.paper else SMALL
    source = Source(options.letor[0].parent.name or "files", tuple(options.letor), None, options.bm25)
    parts = section(source.name, describe(test(source, how)))
    text = "\n\n".join([f"# {TITLE}", intro(how), *parts]) + "\n"
    if options.out:
        with atomic_write(options.out) as out:
            out.write(text)
    print(text)


def baseline_row() -> list[str]:
    source = SOURCES[1]
    held, rest = parts(source)
    name, system = single(source, held)
    ndcg = NDCG(rest)
    return [name, f"{system(rest, ndcg)[~ndcg.without_relevant].mean():.4f}"]


PAGE = Page(
    __file__,
    TITLE,
    measure,
    compose,
    (
        Guard("mq2008: baseline", "the mean of BM25 on mq2008", baseline_row),
        Guard(
            "mq2008: against one",
            "all of mq2008 against one baseline, trained again",
            lambda: describe(test(SOURCES[1], SMALL))["mq2008: against one"],
            slow=True,
        ),
    ),
)

if __name__ == "__main__":
    if "--letor" in sys.argv:
        print_files(sys.argv[1:])
    else:
        PAGE.main()
