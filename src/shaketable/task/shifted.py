"""Rankers away from the data they were trained on: the part that shifts of query kind and of corpus share.

An experiment is a list of cells. A cell is a test domain (a kind of queries, a corpus), what was trained for it, and on
what. The reference of a test domain is the cell whose training is its own: one training, or one for each fold, where
each query is ranked by the model that never saw it. Everything is trained by `Bench.fit`, and so kept: a run that was
cut off goes on, and a training that two cells share is done once.

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022 (paper 000), section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.bench import Bench
from shaketable.data.splits import folds, held_out, shuffled
from shaketable.errors import BadInput, NotApplicable, check
from shaketable.learners.fit import FeatureLearner
from shaketable.learners.lexical import LexicalLearner
from shaketable.measure.comparison import starred
from shaketable.measure.effectiveness import Evaluator, parse
from shaketable.measure.facets import SHIFT
from shaketable.measure.shift import Cells, drops, mean_drop_interval, mean_drop_of
from shaketable.measure.significance import FEWEST_QUERIES
from shaketable.rankers import folder
from shaketable.rankers.saved import Saved
from shaketable.registry import LEARNERS
from shaketable.score.executor import Job
from shaketable.text.words import spans
from shaketable.types import Collection, Figure, Finding, Learner, Result, Retriever

if TYPE_CHECKING:
    import pandas as pd

RANKERS = ("bm25", "ql", "ranksvm")
"""What is trained where nothing is named: two formulas and a linear model, which take seconds."""
FOLDS = 5
TRAINED, TESTED, DROP = "trained on", "tested on", "drop %"
MEAN = "mean drop %"
IMPLAUSIBLE = 50
"""A gain in per cent by a training elsewhere that tells of a reference that failed, not of a ranker that is robust."""


@dataclass(frozen=True, eq=False)
class Training:
    """Queries of a collection to learn from and to choose by."""

    name: str
    collection: Collection
    train: tuple[str, ...]
    valid: tuple[str, ...]

    @property
    def pairs(self) -> int:
        """The relevant documents of the queries to learn from."""
        return sum(relevant(self.collection, qid) for qid in self.train)

    def cut(self, pairs: int, seed: int) -> Training:
        """No more relevant pairs to learn from than this: queries in random order, each that still fits."""
        left, taken = pairs, set()
        for qid in shuffled(self.train, seed, "training pairs"):
            if (size := relevant(self.collection, qid)) <= left:
                taken.add(qid)
                left -= size
        return replace(self, train=tuple(qid for qid in self.train if qid in taken))


@dataclass(frozen=True, eq=False)
class Cell:
    """Test queries and who ranks them: each part is a training and the queries that its model ranks.

    `group` says what kind of cell it is, such as "another corpus"; the reference of a test domain has none.
    """

    train: str
    test: str
    collection: Collection
    parts: tuple[tuple[Training, tuple[str, ...]], ...]
    group: str = ""


def relevant(collection: Collection, qid: str) -> int:
    """How many documents are judged relevant to a query."""
    return sum(grade > 0 for grade in collection.qrels.get(qid, {}).values())


def judged(collection: Collection) -> list[str]:
    """The queries that can be learned from and measured on: with words, and with a document that is relevant."""
    return [qid for qid, query in collection.queries.items() if query.text.strip() and relevant(collection, qid)]


def divided(name: str, collection: Collection, qids: Sequence[str], seed: int) -> Training:
    """A training with a fifth of the queries to choose by (paper 000, section 4.3.1)."""
    train, valid = held_out(qids, seed)
    return Training(name, collection, tuple(train), tuple(valid))


def out_of_folds(
    name: str, collection: Collection, qids: Sequence[str], k: int, seed: int
) -> tuple[tuple[Training, tuple[str, ...]], ...]:
    """Parts of a reference: each of k trainings, and the queries that it has not seen."""
    if len(qids) < k:
        raise NotApplicable(f"{name} has {len(qids)} judged queries, too few for {k} folds")
    dealt = folds(qids, k, seed)
    return tuple((Training(name, collection, fold.train, fold.valid), fold.test) for fold in dealt)


def named_learners(texts: Sequence[str], measure: str) -> dict[str, Learner]:
    """name -> learner; the name is short where it says enough. Formulas are tuned, by the measure of the experiment.

    >>> list(named_learners(("bm25", "ranksvm(C=1.0)", "knrm(steps=5)", "knrm(steps=9)"), "nDCG@10"))
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


def check_settings(task: str, rankers: Sequence[str], measure: str, folds_: int, least: int) -> None:
    """What both experiments refuse before anything is trained."""
    check(task, bool(rankers), "rankers", "one learner or more", rankers)
    none = " or 0" if least == 0 else ""
    check(task, 3 <= folds_ <= 100 or folds_ == least, "folds", f"between 3 and 100{none}", folds_)
    parse(measure)
    named_learners(rankers, measure)


def values_of(
    bench: Bench, learners: Mapping[str, Learner], cells: Sequence[Cell], measures: Sequence[str], notes: list[str]
) -> tuple[dict[str, dict[str, Cells]], pd.DataFrame]:
    """measure -> ranker -> (trained on, tested on) -> query -> value; and to what the formulas were tuned.

    They were tuned by the first of the measures. A ranker that cannot be trained is left out, with a note.
    """
    import pandas as pd

    trainings = list(dict.fromkeys(training for cell in cells for training, _ in cell.parts))
    schools: dict[str, Bench] = {}
    found: dict[str, dict[str, Cells]] = {measure: {} for measure in measures}
    tuned: list[dict[str, Any]] = []
    for ranker, learner in learners.items():
        try:
            with bench.road.watch(f"training {ranker}", len(trainings), "trainings") as advance:
                wanted = [_prepared(bench, schools, training, learner) for training in trainings]
                saved = bench.together(wanted, advance)
        except BadInput as error:
            notes.append(f"{ranker} is left out: {error}.")
            continue
        models = {
            training: (f"{ranker}, training {number}", model)
            for number, (training, model) in enumerate(zip(trainings, saved, strict=True), 1)
        }
        for measure, own in _measured(bench, models, cells, measures).items():
            found[measure][ranker] = own
        if isinstance(learner, LexicalLearner):
            tuned += [
                {"ranker": ranker, TRAINED: training.name, "queries": len(training.train) + len(training.valid)}
                | {"tuned to": folder.read(model.path).about["ranker"], measures[0]: model.card()["value"]}
                for training, (_, model) in models.items()
            ]
    if not found[measures[0]]:
        raise NotApplicable(f"no ranker can be trained; {notes[-1].removesuffix('.')}")
    return found, pd.DataFrame(tuned)


def _prepared(bench: Bench, schools: dict[str, Bench], training: Training, learner: Learner) -> Saved | Job:
    """The model of a training, or the job; one bench for each collection, so that what it has opened is shared."""
    name = training.collection.fingerprint
    school = schools.setdefault(name, replace(bench.on(training.collection), models={}, limit=None))
    train, valid = training.train, training.valid
    if isinstance(learner, LexicalLearner):  # has nothing to learn but what others choose by, so it takes both
        train, valid = (*train, *valid), ()
    try:
        return school.prepared(learner, train, valid, where=training.name)
    except BadInput as error:
        raise BadInput(f"it cannot be trained on {training.name} ({error})") from error


def _measured(
    bench: Bench, models: Mapping[Training, tuple[str, Saved]], cells: Sequence[Cell], measures: Sequence[str]
) -> dict[str, Cells]:
    """measure -> the value of each cell's queries, each ranked by the model of its part."""
    named = dict(models.values())
    tables: dict[str, Bench] = {}
    found: dict[str, dict[tuple[str, str], dict[str, float]]] = {measure: {} for measure in measures}
    for cell in cells:
        place = cell.collection.fingerprint
        table = tables.setdefault(place, replace(bench.on(cell.collection), models=named, limit=None))
        for measure in measures:
            found[measure][cell.train, cell.test] = {}
        for training, qids in cell.parts:
            for measure, values in _ranked(table, models[training][0], qids, measures).items():
                found[measure][cell.train, cell.test] |= {qid: values[qid] for qid in qids}
    return dict(found)


def _ranked(table: Bench, name: str, qids: Sequence[str], measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """measure -> its value for these queries, as `Bench.run` would rank them."""
    texts = {qid: table.collection.queries[qid].text for qid in qids}
    if isinstance(table.ranker(name), Retriever) and not table.collection.candidates:
        run = table.answer(name, texts)
    else:
        run = table.rerank(name, texts, table.candidates)
    wanted = {measure: parse(measure) for measure in measures}
    judgements = {qid: table.collection.qrels[qid] for qid in qids}
    values = Evaluator(tuple(wanted.values()), judgements).per_query(run)
    return {measure: dict(values[parsed]) for measure, parsed in wanted.items()}


def tables_of(found: Mapping[str, Cells], cells: Sequence[Cell], measure: str, seed: int) -> dict[str, pd.DataFrame]:
    """The drops cell by cell, their means, and the effectiveness that they come from."""
    import pandas as pd

    groups = {(cell.train, cell.test): cell.group for cell in cells}
    rows = [
        {"ranker": ranker, TRAINED: one.train, TESTED: one.test, measure: one.compared.after}
        | {f"own {measure}": one.compared.before, DROP: one.drop, "low": one.low, "high": one.high}
        | {"queries": one.compared.n, "p": one.compared.p}
        for ranker, values in found.items()
        for one in drops(values, seed)
    ]
    tables = {
        "mean drop": pd.DataFrame(_means(found, groups, seed)),
        "drop": starred(pd.DataFrame(rows)),
        "effectiveness": _matrix(found),
    }
    return tables | {
        f"drop of {ranker}": _map(ranker, values, tables["drop"], measure) for ranker, values in found.items()
    }


def _map(ranker: str, values: Cells, drop: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The drops of one ranker in the order of its cells; those that are the reference lose nothing."""
    import pandas as pd

    own = drop[drop["ranker"] == ranker].drop(columns="ranker").to_dict("records")
    known = {(row[TRAINED], row[TESTED]): row for row in own}
    rows = []
    for (train, test), per_query in values.items():
        mean = float(np.mean(list(per_query.values())))
        reference = {TRAINED: train, TESTED: test, measure: mean, f"own {measure}": mean, DROP: 0.0 if mean else nan}
        rows.append(known.get((train, test), reference | {"queries": len(per_query)}))
    return pd.DataFrame(rows, columns=list(own[0]))


def _means(found: Mapping[str, Cells], groups: Mapping[tuple[str, str], str], seed: int) -> Iterator[dict[str, Any]]:
    for ranker, values in found.items():
        for group in dict.fromkeys(filter(None, groups.values())):
            some = {key: per_query for key, per_query in values.items() if groups[key] in ("", group)}
            low, high = mean_drop_interval(some, seed)
            count = len({(test, qid) for (_, test), per_query in some.items() for qid in per_query})
            yield {
                "ranker": ranker,
                TRAINED: group,
                MEAN: 100 * mean_drop_of(some),
                "low": 100 * low,
                "high": 100 * high,
                "cells": sum(groups[key] == group for key in some),
                "queries": count,
            }


def _matrix(found: Mapping[str, Cells]) -> pd.DataFrame:
    """A row for each ranker and training, a column for each test domain."""
    import pandas as pd

    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for ranker, values in found.items():
        for (train, test), per_query in values.items():
            row = rows.setdefault((ranker, train), {"ranker": ranker, TRAINED: train})
            row[f"on {test}"] = float(np.mean(list(per_query.values())))
    return pd.DataFrame(list(rows.values()))


def figures_of(found: Mapping[str, Cells], noun: str, source: str) -> Iterator[Figure]:
    """The mean drop of each ranker, and a map of its drops: trained on x tested on."""
    yield Figure(
        "bars",
        "mean drop",
        f"What rankers lose on average on {noun} that they were not trained on",
        x="ranker",
        y=MEAN,
        color=TRAINED,
        caption="The whiskers are 95 % intervals over queries. Below zero is a loss.",
    )
    for ranker in found:
        yield Figure(
            "heatmap",
            f"drop of {ranker}",
            f"{ranker}: what it loses or gains, in per cent, against itself trained where it is tested",
            x=TRAINED,
            y=TESTED,
            color=DROP,
            caption="Orange is a loss, blue a gain. Point at a cell to see its interval and its number of queries.",
            source=source,
        )


def findings_of(means: pd.DataFrame) -> Iterator[Finding]:
    """The mean drop of each ranker, for each group of cells."""
    for row in means.to_dict("records"):
        name = f"drop({row[TRAINED]})"
        yield Finding(row["ranker"], name, row[MEAN], row["low"], row["high"], int(row["queries"]), facet=SHIFT)


def notes_of(measure: str, noun: str, tables: Mapping[str, pd.DataFrame], learners: Mapping[str, Learner]) -> list[str]:
    """What the columns mean, and what was trained how."""
    notes = [
        (
            f"'own {measure}' is that of the same ranker trained on the {noun} that it is tested on, on the same "
            f"queries. 'drop %' is the difference of {measure} from it, in per cent of it, and negative where the "
            "shift hurts."
        ),
        (
            "'low' and 'high' are the ends of the 95 % interval of the drop over queries. 'p' is by a paired t-test "
            "over queries, corrected by Holm for all rows of the table, and a star marks p below 0.05. The mean drops "
            "are not tested: their intervals tell."
        ),
        "Each model was trained once, with one seed: the intervals do not hold what another seed would change.",
    ]
    formulas = [name for name, learner in learners.items() if isinstance(learner, LexicalLearner)]
    if formulas:
        notes.append(
            f"{', '.join(formulas)}: a formula has only parameters to learn, which were tuned on the training and "
            f"validation queries of the training {noun}, from a coarse grid to a fine one. The table 'tuned' has what "
            "was chosen, with the value on the queries that it was tuned on."
        )
    gains = tables["drop"][tables["drop"][DROP] > IMPLAUSIBLE].groupby("ranker", sort=False)[TESTED]
    for ranker, where in gains.unique().items():
        notes.append(
            f"{ranker} gains more than {IMPLAUSIBLE} % on {', '.join(where)} by being trained elsewhere. So its own "
            "training there hardly taught it anything, and its drops say little."
        )
    if (tables["drop"]["queries"] < FEWEST_QUERIES).any():
        few = int(tables["drop"]["queries"].min())
        notes.append(
            f"Some cells have only {few} queries. With fewer than {FEWEST_QUERIES} nothing is marked as significant."
        )
    return notes


def query_facts(collection: Collection, qids: Sequence[str]) -> dict[str, float]:
    """What queries are like: their words and their relevant documents, as means (Table 4 of the paper)."""
    lengths = [len(spans(collection.queries[qid].text)) for qid in qids]
    return {
        "relevant documents a query": float(np.mean([relevant(collection, qid) for qid in qids])),
        "words a query": float(np.mean(lengths)),
    }


def from_features(learners: Mapping[str, Learner]) -> list[str]:
    """The names of those that learn from features."""
    return [name for name, learner in learners.items() if isinstance(learner, FeatureLearner)]


def side_by_side(kinds: Result, corpora: Result) -> pd.DataFrame:
    """The mean drops of rankers on kinds of queries and on corpora that they were not trained on (paper 000, 4.5.1).

    Only rankers that both experiments have, and only cells with one training domain.
    """
    import pandas as pd

    rows = []
    means = [result.tables["mean drop"].groupby("ranker", sort=False).first() for result in (kinds, corpora)]
    measures = [_own_measure(result.tables["drop"]) for result in (kinds, corpora)]
    for ranker in means[0].index.intersection(means[1].index, sort=False):
        row: dict[str, Any] = {"ranker": ranker}
        for what, table, measure in zip(("kind", "corpus"), means, measures, strict=True):
            one = table.loc[ranker]
            row |= {f"{what} {DROP} ({measure})": one[MEAN], f"{what} low": one["low"], f"{what} high": one["high"]}
        rows.append(row)
    return pd.DataFrame(rows)


def _own_measure(drop: pd.DataFrame) -> str:
    """The measure of a table of drops, by its heading."""
    return next(name for name in map(str, drop) if name.startswith("own ")).removeprefix("own ")


def compared(results: Sequence[Result]) -> list[Result]:
    """The results; where there is one of each shift, the second of them has both side by side."""
    both = {result.task: place for place, result in enumerate(results) if result.task in (KIND_SHIFT, CORPUS_SHIFT)}
    if len(both) < 2:
        return list(results)
    table = side_by_side(results[both[KIND_SHIFT]], results[both[CORPUS_SHIFT]])
    last = max(both.values())
    if not len(table):
        return list(results)
    added = replace(
        results[last],
        tables={**results[last].tables, "kinds and corpora": table},
        brief=(*results[last].brief, "kinds and corpora"),
        notes=(*results[last].notes, BESIDE),
    )
    return [*results[:last], added, *results[last + 1 :]]


WU = "Wu et al. 2022"
KIND_SHIFT, CORPUS_SHIFT = "query-type-shift", "corpus-shift"
BESIDE = (
    "The table 'kinds and corpora' has the mean drop of each ranker on kinds of queries and on corpora that it was not "
    "trained on, with 95 % intervals. The two rest on other queries, and maybe on other measures, so only intervals "
    "that lie apart tell of a difference."
)
