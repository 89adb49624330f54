"""The query type shift task: rankers on query types that they were not trained on (paper 000, 4.1, 4.3, 4.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from shaketable.core.errors import BadInput, NotApplicable, UnknownName, check_parameter, quote_value
from shaketable.core.results import Result
from shaketable.datasets.splits import TRAIN, VALIDATION, shuffle_queries
from shaketable.experiment import Experiment
from shaketable.tasks._domain_shift import (
    DEFAULT_LEARNERS,
    QUERY_TYPE_SHIFT,
    WU_2022,
    ShiftCell,
    TrainingParts,
    TrainingSet,
    build_learners,
    build_per_query_table,
    build_shift_figures,
    build_shift_findings,
    build_shift_notes,
    build_shift_tables,
    check_settings,
    describe_queries,
    hold_out_validation,
    list_judged_queries,
    make_fold_trainings,
    train_and_measure,
)

if TYPE_CHECKING:
    import pandas as pd

MIN_LEARNED_QUERIES = 5
"""The minimum number of queries of a type that a model learns from, without those that validate."""
MIN_QUERIES = {"train": MIN_LEARNED_QUERIES + 1, "test": 5}
"""The minimum number of queries of a type; one of six training queries validates."""
OTHER_TYPE = "another query type"
ALL_OTHER_TYPES = "ALL*"
ALL_OTHER_TYPES_CUT = "ALL* cut"


@dataclass(frozen=True, eq=False)
class QueryTypeSplit:
    """The training and test queries of one type."""

    name: str
    train: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True)
class QueryTypeShift:
    """Loss of rankers on query types that they were not trained on: trained on each, tested on each.

    rankers      learners; formulas such as bm25 are tuned; `shaketable list learners` shows them all
    measure      the effectiveness measure
    query_types  the query types; by default all types of the queries
    train        training queries of each type, a fifth of them for validation; None is the most that all types have
    test         test queries of each type; None is the most that all types have, 0 is all that each type has
    folds        0: train on the split train, test on the evaluated queries. k: test on all queries, with k-fold
                 cross-validation for the queries of a model's own type

    Besides each type alone, rankers learn from all other types together: ALL* uses all their queries, and ALL* cut has
    the size of one type.

    Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022.
    """

    rankers: tuple[str, ...] = DEFAULT_LEARNERS
    measure: str = "RR@100"
    query_types: tuple[str, ...] = ()
    train: int | None = None
    test: int | None = None
    folds: int = 0

    needs_judgements: ClassVar[bool] = True
    needs_scoring: ClassVar[bool] = False
    needs_rankers: ClassVar[bool] = False
    opt_in: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings("query_type_shift", self.rankers, self.measure, self.folds, 0)
        for name in ("train", "test"):
            size, all_of_each = getattr(self, name), name == "test"
            check_parameter(
                "query_type_shift",
                size is None or size >= MIN_QUERIES[name] or (size == 0 and all_of_each),
                name,
                f"{MIN_QUERIES[name]} or more, or None{', or 0' if all_of_each else ''}",
                size,
            )
        fine = not (self.folds and self.test)
        check_parameter("query_type_shift", fine, "test", "left out with folds, which test on all queries", self.test)
        check_parameter(
            "query_type_shift", len(self.query_types) != 1, "query_types", "two query types or more", self.query_types
        )

    def run(self, experiment: Experiment) -> Result:
        query_types = self._sample_types(experiment, self._group_by_type(experiment))
        cells, trainings = self._build_cells(experiment, query_types)
        learners = build_learners(self.rankers, self.measure)
        notes: list[str] = []
        measured, tuned = train_and_measure(experiment, learners, cells, [self.measure], notes)
        found = measured[self.measure]
        tables = {"query types": _build_statistics(experiment, query_types, trainings)} | build_shift_tables(
            found, cells, self.measure, experiment.seed
        )
        if len(tuned):
            tables["tuned"] = tuned
        tables["per query"] = build_per_query_table(measured)
        return Result(
            QUERY_TYPE_SHIFT,
            "How well does a ranker work on query types that it was not trained on?",
            tables,
            tuple(build_shift_figures(found, "query types", f"{WU_2022}, Fig. 4")),
            (
                *notes,
                *self._build_notes(query_types, trainings),
                *build_shift_notes(self.measure, "query type", tables, learners),
            ),
            tuple(build_shift_findings(tables["mean drop"])),
            brief=("query types", "mean drop", "effectiveness"),
        )

    def _group_by_type(self, experiment: Experiment) -> dict[str, QueryTypeSplit]:
        """Return the query types with all their queries."""
        collection = experiment.collection
        able = list_judged_queries(collection)
        if self.folds:
            learned = tested = able[: experiment.limit]
        else:
            asked = set(experiment.queries)
            names = [name for name in (TRAIN, VALIDATION, "dev") if name in collection.splits]
            if TRAIN not in names:
                raise NotApplicable(
                    f"{collection.name} has no train split; create splits with --split-ratio 60/20/20, or use "
                    "cross-validation with query_type_shift(folds=5)"
                )
            part = {qid for name in names for qid in collection.splits[name]}
            taught = set(collection.splits[TRAIN])
            learned = [qid for qid in able if qid in part and (qid not in asked or qid in taught)]
            tested = [qid for qid in able if qid in asked and qid not in taught]
        of = {qid: query.type for qid, query in collection.queries.items()}
        present = list(dict.fromkeys(of[qid] for qid in (*learned, *tested) if of[qid]))
        for name in self.query_types:
            if name not in present:
                raise UnknownName("query type", name, present)
        names = list(self.query_types) or sorted(present)
        if len(names) < 2:
            raise NotApplicable(
                f"the queries of {collection.name} have {len(names)} query types, but two are needed; add the field "
                "type to each query in queries.jsonl, or use --query-types"
            )
        return {
            name: QueryTypeSplit(
                name,
                tuple(qid for qid in learned if of[qid] == name),
                tuple(qid for qid in tested if of[qid] == name),
            )
            for name in names
        }

    def _sample_types(self, experiment: Experiment, known: Mapping[str, QueryTypeSplit]) -> list[QueryTypeSplit]:
        """Draw the same number of training queries of each type, and of test queries unless all are asked for."""
        drawn: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in known}
        for side, doing in (("train", "learn from"), ("test", "test on")):
            sizes = {name: len(getattr(query_type, side)) for name, query_type in known.items()}
            asked = getattr(self, side)
            size = min(sizes.values()) if asked is None else asked
            needed = max(MIN_QUERIES[side], size)
            if small := {name: count for name, count in sizes.items() if count < needed}:
                name, count = min(small.items(), key=lambda item: item[1])
                left = tuple(other for other in known if other not in small)
                advice = f"; leave it out by query_types={left!r}" if len(left) > 1 else ""
                raise NotApplicable(
                    f"the query type {quote_value(name)} has {count} queries to {doing}, "
                    f"and {needed} are needed{advice}"
                )
            for name, query_type in known.items():
                qids = getattr(query_type, side)
                chosen = set(shuffle_queries(qids, experiment.seed, f"{side} of a kind")[: size or None])
                drawn[name][side] = tuple(qid for qid in qids if qid in chosen)
        if self.folds:  # cross-validation trains and tests on the same queries
            return [QueryTypeSplit(name, parts["train"], parts["train"]) for name, parts in drawn.items()]
        return [QueryTypeSplit(name, parts["train"], parts["test"]) for name, parts in drawn.items()]

    def _build_cells(
        self, experiment: Experiment, query_types: Sequence[QueryTypeSplit]
    ) -> tuple[list[ShiftCell], dict[str, TrainingSet]]:
        """Return a cell for each training and test type, and two for all other types together."""
        collection, seed = experiment.collection, experiment.seed
        alone = {one.name: hold_out_validation(one.name, collection, one.train, seed) for one in query_types}
        own: dict[str, TrainingParts] = {one.name: ((alone[one.name], one.test),) for one in query_types}
        if self.folds:
            own = {k.name: make_fold_trainings(k.name, collection, k.test, self.folds, seed) for k in query_types}
            own, alone = _even_out(own, alone, seed)
        self._check_training_sizes(alone)
        cells = []
        for one in query_types:
            others = [alone[other.name] for other in query_types if other is not one]
            cells.append(ShiftCell(one.name, one.name, collection, own[one.name]))
            cells += [
                ShiftCell(training.name, one.name, collection, ((training, one.test),), OTHER_TYPE)
                for training in others
            ]
            union = TrainingSet(
                f"all query types but {one.name}",
                collection,
                tuple(qid for training in others for qid in training.train),
                tuple(qid for training in others for qid in training.valid),
            )
            short = TrainingSet(
                union.name,
                collection,
                _sample_in_turn([training.train for training in others], len(others[0].train), seed),
                _sample_in_turn([training.valid for training in others], len(others[0].valid), seed),
            )
            cells.append(ShiftCell(ALL_OTHER_TYPES, one.name, collection, ((union, one.test),), ALL_OTHER_TYPES))
            if len(others) > 1:  # with one other type, this cell would equal the cell of that type
                cells.append(
                    ShiftCell(
                        ALL_OTHER_TYPES_CUT,
                        one.name,
                        collection,
                        ((short, one.test),),
                        ALL_OTHER_TYPES_CUT,
                    )
                )
        return cells, alone

    def _check_training_sizes(self, trainings: Mapping[str, TrainingSet]) -> None:
        """Refuse training sets that are too small once test folds and validation queries are taken away."""
        sizes = {name: len(training.train) for name, training in trainings.items()}
        name = min(sizes, key=sizes.__getitem__)
        if sizes[name] < MIN_LEARNED_QUERIES:
            raise NotApplicable(
                f"folds={self.folds} leaves {sizes[name]} queries of the query type {quote_value(name)} to learn from, "
                f"and {MIN_LEARNED_QUERIES} are needed; use more folds, or leave out small query types with "
                "query_types=(...)"
            )

    def _build_notes(self, query_types: Sequence[QueryTypeSplit], trainings: Mapping[str, TrainingSet]) -> list[str]:
        one = next(iter(trainings.values()))
        size = f"{len(one.train)} queries to learn from, {len(one.valid)} to validate on"
        if self.folds:
            where = (
                "Rankers were tested on all queries of a type. Queries of the training type were ranked by "
                f"{self.folds} models, each for the queries that it was not trained on; models for other types were "
                "trained and validated on as many queries as each of these."
            )
        else:
            where = "Rankers were trained on the splits train and validation, and tested on the queries of the audit."
        tested = sorted({len(query_type.test) for query_type in query_types})
        many = f"{tested[0]}" if len(tested) == 1 else f"{tested[0]} to {tested[-1]}"
        return [
            f"{where} Each query type has {size}, and {many} to test on, drawn at random.",
            (
                f"'{ALL_OTHER_TYPES}' was trained on all query types but the one that it is tested on, with "
                f"{len(query_types) - 1} times as many queries. '{ALL_OTHER_TYPES_CUT}' was trained on the same types, "
                "with as many queries as one type has. The gain of the first over the second is due to more data; "
                "the gain of the second over a single type is due to variety."
            ),
        ]


def _even_out(
    own: Mapping[str, TrainingParts], alone: Mapping[str, TrainingSet], seed: int
) -> tuple[dict[str, TrainingParts], dict[str, TrainingSet]]:
    """Return the training sets of folds and of whole types, all with the same numbers of queries."""
    every = [*alone.values(), *(training for parts in own.values() for training, _ in parts)]
    sizes = min(len(training.train) for training in every), min(len(training.valid) for training in every)
    return (
        {name: tuple((one.limit_queries(*sizes, seed), part) for one, part in parts) for name, parts in own.items()},
        {name: training.limit_queries(*sizes, seed) for name, training in alone.items()},
    )


def _sample_in_turn(parts: Sequence[Sequence[str]], size: int, seed: int) -> tuple[str, ...]:
    """Draw `size` queries in random order, in turn from each part."""
    orders = [shuffle_queries(part, seed, "ALL* cut") for part in parts]
    return tuple([qid for turn in zip_longest(*orders) for qid in turn if qid is not None][:size])


def _build_statistics(
    experiment: Experiment, query_types: Sequence[QueryTypeSplit], trainings: Mapping[str, TrainingSet]
) -> pd.DataFrame:
    """Return a row for each query type (Table 4 of the paper)."""
    import pandas as pd

    rows = []
    for query_type in query_types:
        training = trainings[query_type.name]
        if not query_type.test:
            raise BadInput(f"the query type {quote_value(query_type.name)} has no query to test on")
        rows.append(
            {
                "query type": query_type.name,
                "training queries": len(training.train),
                "validation queries": len(training.valid),
                "test queries": len(query_type.test),
            }
            | describe_queries(experiment.collection, tuple(dict.fromkeys((*query_type.train, *query_type.test))))
        )
    return pd.DataFrame(rows)
