"""Domain shift: rankers on query types or corpora that they were not trained on.

A shift is measured in cells. A cell is a test domain (a query type or a corpus) and the training set of the model that
ranks its queries. The reference cell of a test domain is trained on the domain itself, either once or in
cross-validation. `Experiment` caches all models, so an interrupted run continues, and cells share models.

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022 (paper 000), section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput, NotApplicable, check_parameter
from shaketable.core.protocols import Learner, Retriever
from shaketable.core.registries import LEARNERS
from shaketable.core.results import Figure, Finding, Result
from shaketable.datasets.splits import make_folds, shuffle_queries, split_held_out
from shaketable.executors.base import Job
from shaketable.experiment import Experiment
from shaketable.measures.domain_shift import Cells, compute_drops, mean_drop_interval, mean_drop_of_cells
from shaketable.measures.effectiveness import Evaluator
from shaketable.measures.facets import SHIFT
from shaketable.measures.measure_names import parse_measure
from shaketable.measures.paired_comparison import CORRECTED_INTERVAL_NOTE, add_significance_stars
from shaketable.measures.significance import MIN_QUERIES
from shaketable.nlp.words import find_word_spans
from shaketable.rankers import persistence
from shaketable.rankers.saved import SavedModel
from shaketable.training.feature_learner import FeatureLearner
from shaketable.training.lexical import LexicalLearner

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_LEARNERS = ("bm25", "ql", "ranksvm")
"""The default learners: two formulas and a linear model, which train in seconds."""
DEFAULT_FOLDS = 5
TRAINED_COLUMN, TESTED_COLUMN, DROP_COLUMN = "trained on", "tested on", "drop %"
MEAN_DROP_COLUMN = "mean drop %"
IMPLAUSIBLE_GAIN_PERCENT = 50
"""The gain over the reference, in per cent, above which the training of the reference has probably failed."""


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The training and validation queries of a collection."""

    name: str
    collection: Collection
    train: tuple[str, ...]
    valid: tuple[str, ...]

    @property
    def relevant_pairs(self) -> int:
        """The number of relevant documents of the training queries."""
        return sum(count_relevant(self.collection, qid) for qid in self.train)

    def limit_pairs(self, max_pairs: int, seed: int) -> TrainingSet:
        """Return a copy with at most `max_pairs` relevant pairs: adds queries in random order while they fit."""
        left, taken = max_pairs, set()
        for qid in shuffle_queries(self.train, seed, "training pairs"):
            if (size := count_relevant(self.collection, qid)) <= left:
                taken.add(qid)
                left -= size
        return replace(self, train=tuple(qid for qid in self.train if qid in taken))

    def limit_queries(self, train: int, valid: int, seed: int) -> TrainingSet:
        """Return a copy with at most so many training and validation queries, drawn at random."""
        learned = set(shuffle_queries(self.train, seed, "training queries")[:train])
        held = set(shuffle_queries(self.valid, seed, "validation queries")[:valid])
        return replace(
            self,
            train=tuple(qid for qid in self.train if qid in learned),
            valid=tuple(qid for qid in self.valid if qid in held),
        )


TrainingParts: TypeAlias = tuple[tuple[TrainingSet, tuple[str, ...]], ...]
"""Training sets, each with the queries that its model ranks."""


@dataclass(frozen=True, eq=False)
class ShiftCell:
    """A test domain and the models that rank its queries: each part is a training set and its test queries.

    `group` names the relation to the test domain, such as "another corpus"; the reference has none.
    """

    train: str
    test: str
    collection: Collection
    parts: TrainingParts
    group: str = ""


def count_relevant(collection: Collection, qid: str) -> int:
    """Count the documents that are judged relevant to a query."""
    return sum(grade > 0 for grade in collection.qrels.get(qid, {}).values())


def list_judged_queries(collection: Collection) -> list[str]:
    """Return the queries that have words and a relevant document."""
    return [qid for qid, query in collection.queries.items() if query.text.strip() and count_relevant(collection, qid)]


def hold_out_validation(name: str, collection: Collection, qids: Sequence[str], seed: int) -> TrainingSet:
    """Return a training set with a fifth of the queries for validation (paper 000, section 4.3.1)."""
    train, valid = split_held_out(qids, seed)
    return TrainingSet(name, collection, tuple(train), tuple(valid))


def make_fold_trainings(name: str, collection: Collection, qids: Sequence[str], k: int, seed: int) -> TrainingParts:
    """Return the parts of a reference cell: the training set of each of k folds, and its held-out queries."""
    if len(qids) < k:
        raise NotApplicable(f"{name} has {len(qids)} judged queries, too few for {k} folds")
    dealt = make_folds(qids, k, seed)
    return tuple((TrainingSet(name, collection, fold.train, fold.valid), fold.test) for fold in dealt)


def build_learners(texts: Sequence[str], measure: str) -> dict[str, Learner]:
    """Return name -> learner, with short names if they are unique. Formulas are tuned on the measure.

    >>> list(build_learners(("bm25", "ranksvm(C=1.0)", "knrm(steps=5)", "knrm(steps=9)"), "nDCG@10"))
    ['bm25', 'ranksvm', 'knrm(steps=5)', 'knrm(steps=9)']
    """
    counts = Counter(text.partition("(")[0] for text in dict.fromkeys(texts))
    named: dict[str, Learner] = {}
    for text in dict.fromkeys(texts):
        short, learner = text.partition("(")[0], LEARNERS.build(text)
        if isinstance(learner, LexicalLearner):
            learner = replace(learner, tuned=True, measure=measure)
        named[short if counts[short] == 1 else text] = learner
    return named


def check_settings(task: str, rankers: Sequence[str], measure: str, n_folds: int, min_folds: int) -> None:
    """Check the settings of both shift tasks before training."""
    check_parameter(task, bool(rankers), "rankers", "one learner or more", rankers)
    none = " or 0" if min_folds == 0 else ""
    check_parameter(task, 3 <= n_folds <= 100 or n_folds == min_folds, "folds", f"between 3 and 100{none}", n_folds)
    parse_measure(measure)
    build_learners(rankers, measure)


def train_and_measure(
    experiment: Experiment,
    learners: Mapping[str, Learner],
    cells: Sequence[ShiftCell],
    measures: Sequence[str],
    notes: list[str],
) -> tuple[dict[str, dict[str, Cells]], pd.DataFrame]:
    """Return measure -> ranker -> (trained on, tested on) -> query -> value, and the tuned formulas.

    Formulas are tuned on the first measure. A ranker that cannot be trained is left out, with a note.
    """
    import pandas as pd

    trainings = list(dict.fromkeys(training for cell in cells for training, _ in cell.parts))
    training_experiments: dict[str, Experiment] = {}
    found: dict[str, dict[str, Cells]] = {measure: {} for measure in measures}
    tuned: list[dict[str, Any]] = []
    for ranker, learner in learners.items():
        try:
            with experiment.engine.progress(f"training {ranker}", len(trainings), "trainings") as advance:
                wanted = [
                    _make_training_job(experiment, training_experiments, training, learner) for training in trainings
                ]
                saved = experiment.run_jobs(wanted, advance)
        except BadInput as error:
            notes.append(f"{ranker} is left out: {error}.")
            continue
        models = {
            training: (f"{ranker}, training {number}", model)
            for number, (training, model) in enumerate(zip(trainings, saved, strict=True), 1)
        }
        for measure, own in _measure_cells(experiment, models, cells, measures).items():
            found[measure][ranker] = own
        if isinstance(learner, LexicalLearner):
            tuned += [
                {"ranker": ranker, TRAINED_COLUMN: training.name, "queries": len(training.train) + len(training.valid)}
                | {
                    "tuned to": persistence.read_manifest(model.path).metadata["ranker"],
                    measures[0]: model.read_card()["value"],
                }
                for training, (_, model) in models.items()
            ]
    if not found[measures[0]]:
        raise NotApplicable(f"no ranker can be trained; {notes[-1].removesuffix('.')}")
    return found, pd.DataFrame(tuned)


def _make_training_job(
    experiment: Experiment, training_experiments: dict[str, Experiment], training: TrainingSet, learner: Learner
) -> SavedModel | Job:
    """Return the cached model of a training set, or its training job; each collection has one experiment."""
    name = training.collection.fingerprint
    training_experiment = training_experiments.setdefault(
        name, replace(experiment.with_collection(training.collection), models={}, limit=None)
    )
    train, valid = training.train, training.valid
    if isinstance(learner, LexicalLearner):  # a formula is only tuned, so it also uses the validation queries
        train, valid = (*train, *valid), ()
    try:
        return training_experiment.training_job(learner, train, valid, training_name=training.name)
    except BadInput as error:
        raise BadInput(f"it cannot be trained on {training.name} ({error})") from error


def _measure_cells(
    experiment: Experiment,
    models: Mapping[TrainingSet, tuple[str, SavedModel]],
    cells: Sequence[ShiftCell],
    measures: Sequence[str],
) -> dict[str, Cells]:
    """Return measure -> the values of each cell's queries."""
    named = dict(models.values())
    tables: dict[str, Experiment] = {}
    found: dict[str, dict[tuple[str, str], dict[str, float]]] = {measure: {} for measure in measures}
    for cell in cells:
        key = cell.collection.fingerprint
        table = tables.setdefault(key, replace(experiment.with_collection(cell.collection), models=named, limit=None))
        for measure in measures:
            found[measure][cell.train, cell.test] = {}
        for training, qids in cell.parts:
            for measure, values in _measure_queries(table, models[training][0], qids, measures).items():
                found[measure][cell.train, cell.test] |= {qid: values[qid] for qid in qids}
    return dict(found)


def _measure_queries(
    table: Experiment, name: str, qids: Sequence[str], measures: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return measure -> the values of these queries, ranked as by `Experiment.get_run`."""
    texts = {qid: table.collection.queries[qid].text for qid in qids}
    if isinstance(table.get_ranker(name), Retriever) and not table.collection.candidates:
        run = table.run_pipeline(name, texts)
    else:
        run = table.rerank(name, texts, table.candidates)
    wanted = {measure: parse_measure(measure) for measure in measures}
    judgements = {qid: table.collection.qrels[qid] for qid in qids}
    values = Evaluator(tuple(wanted.values()), judgements).evaluate(run)
    return {measure: dict(values[parsed]) for measure, parsed in wanted.items()}


def build_per_query_table(measured: Mapping[str, Mapping[str, Cells]]) -> pd.DataFrame:
    """Return the values of each query in each cell, a column for each measure, from measure -> ranker -> cells."""
    import pandas as pd

    measures, first = list(measured), next(iter(measured.values()))
    return pd.DataFrame(
        [
            {"ranker": ranker, TRAINED_COLUMN: train, TESTED_COLUMN: test, "query": qid}
            | {measure: measured[measure][ranker][train, test][qid] for measure in measures}
            for ranker, cells in first.items()
            for (train, test), values in cells.items()
            for qid in values
        ]
    )


def build_shift_tables(
    found: Mapping[str, Cells], cells: Sequence[ShiftCell], measure: str, seed: int
) -> dict[str, pd.DataFrame]:
    """Return the drop of each cell, the mean drops, and the effectiveness."""
    import pandas as pd

    groups = {(cell.train, cell.test): cell.group for cell in cells}
    rows = [
        {"ranker": ranker, TRAINED_COLUMN: one.train, TESTED_COLUMN: one.test, measure: one.comparison.after}
        | {f"own {measure}": one.comparison.before, DROP_COLUMN: one.drop, "low": one.low, "high": one.high}
        | {"queries": one.comparison.n, "p": one.comparison.p}
        for ranker, values in found.items()
        for one in compute_drops(values, seed)
    ]
    tables = {
        "mean drop": pd.DataFrame(_build_mean_rows(found, groups, seed)),
        "drop": add_significance_stars(pd.DataFrame(rows), interval=(DROP_COLUMN, "low", "high")),
        "effectiveness": _build_matrix(found),
    }
    return tables | {
        f"drop of {ranker}": _build_drop_map(ranker, values, tables["drop"], measure)
        for ranker, values in found.items()
    }


def _build_drop_map(ranker: str, values: Cells, drop: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the drops of one ranker in the order of its cells; reference cells have drop 0."""
    import pandas as pd

    own = drop[drop["ranker"] == ranker].drop(columns="ranker").to_dict("records")
    known = {(row[TRAINED_COLUMN], row[TESTED_COLUMN]): row for row in own}
    rows = []
    for (train, test), per_query in values.items():
        mean = float(np.mean(list(per_query.values())))
        reference = {
            TRAINED_COLUMN: train,
            TESTED_COLUMN: test,
            measure: mean,
            f"own {measure}": mean,
            DROP_COLUMN: 0.0 if mean else nan,
        }
        rows.append(known.get((train, test), reference | {"queries": len(per_query)}))
    return pd.DataFrame(rows, columns=list(own[0]))


def _build_mean_rows(
    found: Mapping[str, Cells], groups: Mapping[tuple[str, str], str], seed: int
) -> Iterator[dict[str, Any]]:
    for ranker, values in found.items():
        for group in dict.fromkeys(filter(None, groups.values())):
            some = {key: per_query for key, per_query in values.items() if groups[key] in ("", group)}
            low, high = mean_drop_interval(some, seed)
            count = len({(test, qid) for (_, test), per_query in some.items() for qid in per_query})
            yield {
                "ranker": ranker,
                TRAINED_COLUMN: group,
                MEAN_DROP_COLUMN: 100 * mean_drop_of_cells(some),
                "low": 100 * low,
                "high": 100 * high,
                "cells": sum(groups[key] == group for key in some),
                "queries": count,
            }


def _build_matrix(found: Mapping[str, Cells]) -> pd.DataFrame:
    """Return a row for each ranker and training, a column for each test domain."""
    import pandas as pd

    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for ranker, values in found.items():
        for (train, test), per_query in values.items():
            row = rows.setdefault((ranker, train), {"ranker": ranker, TRAINED_COLUMN: train})
            row[f"on {test}"] = float(np.mean(list(per_query.values())))
    return pd.DataFrame(list(rows.values()))


def build_shift_figures(found: Mapping[str, Cells], noun: str, source: str) -> Iterator[Figure]:
    """Yield charts of the mean drop of each ranker, and a heat map of its drops: trained on x tested on."""
    yield Figure(
        "bars",
        "mean drop",
        f"Mean loss of rankers on {noun} that they were not trained on",
        x="ranker",
        y=MEAN_DROP_COLUMN,
        color=TRAINED_COLUMN,
        caption="The whiskers are 95 % intervals over queries. Below zero is a loss.",
    )
    for ranker in found:
        yield Figure(
            "heatmap",
            f"drop of {ranker}",
            f"{ranker}: loss or gain in per cent, against the same ranker trained on the test domain",
            x=TRAINED_COLUMN,
            y=TESTED_COLUMN,
            color=DROP_COLUMN,
            caption="Orange is a loss, blue a gain. Point at a cell to see its interval and its number of queries.",
            source=source,
        )


def build_shift_findings(means: pd.DataFrame) -> Iterator[Finding]:
    """Yield the mean drop of each ranker, for each group of cells."""
    for row in means.to_dict("records"):
        name = f"drop({row[TRAINED_COLUMN]})"
        yield Finding(
            row["ranker"], name, row[MEAN_DROP_COLUMN], row["low"], row["high"], int(row["queries"]), facet=SHIFT
        )


def build_shift_notes(
    measure: str, noun: str, tables: Mapping[str, pd.DataFrame], learners: Mapping[str, Learner]
) -> list[str]:
    """Return notes on the columns and on the training."""
    notes = [
        (
            f"'own {measure}' is the {measure} of the same ranker trained on the {noun} that it is tested on, on the "
            "same queries. 'drop %' is the difference from it in per cent; it is negative if the shift hurts."
        ),
        (
            "'p' is by a paired t-test over queries, corrected by Holm for all rows of the table, and a star marks p "
            "below 0.05. 'low' and 'high' are the ends of the 95 % interval of the drop over queries; beside a p, it "
            f"is {CORRECTED_INTERVAL_NOTE}. The mean drops are not tested; read their intervals. The table 'per query' "
            "has the values of all of them."
        ),
        "Each model was trained once, with one seed: the intervals do not include the variation between seeds.",
    ]
    formulas = [name for name, learner in learners.items() if isinstance(learner, LexicalLearner)]
    if formulas:
        notes.append(
            f"{', '.join(formulas)}: these formulas have only a few parameters, which were tuned on the training and "
            f"validation queries of the training {noun}, from a coarse grid to a fine one. The table 'tuned' has the "
            "chosen parameters, with the value on the tuning queries."
        )
    gains = tables["drop"][tables["drop"][DROP_COLUMN] > IMPLAUSIBLE_GAIN_PERCENT].groupby("ranker", sort=False)[
        TESTED_COLUMN
    ]
    for ranker, where in gains.unique().items():
        notes.append(
            f"{ranker} gains more than {IMPLAUSIBLE_GAIN_PERCENT} % on {', '.join(where)} when trained elsewhere. "
            "Its own training there was hardly effective, so its drops are not informative."
        )
    if (tables["drop"]["queries"] < MIN_QUERIES).any():
        few = int(tables["drop"]["queries"].min())
        notes.append(
            f"Some cells have only {few} queries. With fewer than {MIN_QUERIES} nothing is marked as significant."
        )
    return notes


def describe_queries(collection: Collection, qids: Sequence[str]) -> dict[str, float]:
    """Return the mean numbers of words and of relevant documents of queries (Table 4 of the paper)."""
    lengths = [len(find_word_spans(collection.queries[qid].text)) for qid in qids]
    return {
        "relevant documents a query": float(np.mean([count_relevant(collection, qid) for qid in qids])),
        "words a query": float(np.mean(lengths)),
    }


def list_feature_learners(learners: Mapping[str, Learner]) -> list[str]:
    """Return the names of the learners that use features."""
    return [name for name, learner in learners.items() if isinstance(learner, FeatureLearner)]


def compare_shifts(query_types: Result, corpora: Result) -> pd.DataFrame:
    """Return the mean drops on other query types and on other corpora (paper 000, 4.5.1).

    The table has the rankers of both results, and cells with one training domain.
    """
    import pandas as pd

    rows = []
    means = [result.tables["mean drop"].groupby("ranker", sort=False).first() for result in (query_types, corpora)]
    measures = [_find_own_measure(result.tables["drop"]) for result in (query_types, corpora)]
    for ranker in means[0].index.intersection(means[1].index, sort=False):
        row: dict[str, Any] = {"ranker": ranker}
        for what, table, measure in zip(("query type", "corpus"), means, measures, strict=True):
            one = table.loc[ranker]
            row |= {
                f"{what} {DROP_COLUMN} ({measure})": one[MEAN_DROP_COLUMN],
                f"{what} low": one["low"],
                f"{what} high": one["high"],
            }
        rows.append(row)
    return pd.DataFrame(rows)


def _find_own_measure(drop: pd.DataFrame) -> str:
    """Return the measure that the headings of a drop table name."""
    return next(name for name in map(str, drop) if name.startswith("own ")).removeprefix("own ")


def add_shift_comparison(results: Sequence[Result]) -> list[Result]:
    """Add a table with both shifts to the second shift result, if the results have both."""
    both = {result.task: i for i, result in enumerate(results) if result.task in (QUERY_TYPE_SHIFT, CORPUS_SHIFT)}
    if len(both) < 2:
        return list(results)
    table = compare_shifts(results[both[QUERY_TYPE_SHIFT]], results[both[CORPUS_SHIFT]])
    last = max(both.values())
    if not len(table):
        return list(results)
    added = replace(
        results[last],
        tables={**results[last].tables, "query types and corpora": table},
        brief=(*results[last].brief, "query types and corpora"),
        notes=(*results[last].notes, SHIFT_COMPARISON_NOTE),
    )
    return [*results[:last], added, *results[last + 1 :]]


WU_2022 = "Wu et al. 2022"
QUERY_TYPE_SHIFT, CORPUS_SHIFT = "query-type-shift", "corpus-shift"
SHIFT_COMPARISON_NOTE = (
    "The table 'query types and corpora' has the mean drop of each ranker on query types and on corpora that it was "
    "not trained on, with 95 % intervals. The two use different queries, and perhaps different measures, so only "
    "intervals that do not overlap show a difference."
)
