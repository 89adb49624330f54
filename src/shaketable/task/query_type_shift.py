"""How does a ranker fare on kinds of queries that it was not trained on? (paper 000, sections 4.1, 4.3, 4.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

from shaketable.bench import Bench
from shaketable.data.splits import TRAIN, VALIDATION, shuffled
from shaketable.errors import BadInput, NotApplicable, UnknownName, check, quoted
from shaketable.task.shifted import (
    KIND_SHIFT,
    RANKERS,
    WU,
    Cell,
    Training,
    check_settings,
    divided,
    figures_of,
    findings_of,
    judged,
    named_learners,
    notes_of,
    out_of_folds,
    query_facts,
    tables_of,
    values_of,
)
from shaketable.types import Result

if TYPE_CHECKING:
    import pandas as pd

LEAST = 5
"""Queries of a kind to learn from and to test on: with fewer nothing can be learned, and nothing told."""
OTHER = "another kind"
UNION = "ALL*"
CUT = "ALL* cut"


@dataclass(frozen=True, eq=False)
class Kind:
    """Queries of one kind: to learn from, and to test on."""

    name: str
    train: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True)
class QueryTypeShift:
    """What rankers lose on kinds of queries that they were not trained on: trained on each kind, tested on each.

    rankers     learners; formulas such as bm25 are tuned; `shaketable list learners` shows them all
    measure     what is measured
    kinds       the kinds; without names, all that the queries have
    train       queries of each kind to learn from, a fifth of them to validate on; None is the most that all kinds have
    test        queries of each kind to test on; None is the most that all kinds have
    folds       0: learn from the split train, test on the queries that are measured on. k: all queries are tested on,
                those of a model's own kind by a model that has not seen them, one of k

    Besides each kind alone, rankers learn from all other kinds together: ALL*, which is more data and more variety, and
    ALL* cut, which has the size of one kind.

    Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022.
    """

    rankers: tuple[str, ...] = RANKERS
    measure: str = "RR@100"
    kinds: tuple[str, ...] = ()
    train: int | None = None
    test: int | None = None
    folds: int = 0

    needs_judgements: ClassVar[bool] = True
    needs_scoring: ClassVar[bool] = False
    needs_rankers: ClassVar[bool] = False
    asked_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings("query_type_shift", self.rankers, self.measure, self.folds, 0)
        for name in ("train", "test"):
            size = getattr(self, name)
            check("query_type_shift", size is None or size >= LEAST, name, f"{LEAST} or more, or None", size)
        fine = not (self.folds and self.test)
        check("query_type_shift", fine, "test", "left out where there are folds, which test on all queries", self.test)
        check("query_type_shift", len(self.kinds) != 1, "kinds", "two kinds or more", self.kinds)

    def run(self, bench: Bench) -> Result:
        kinds = self._drawn(bench, self._known(bench))
        cells, trainings = self._cells(bench, kinds)
        learners = named_learners(self.rankers, self.measure)
        notes: list[str] = []
        measured, tuned = values_of(bench, learners, cells, [self.measure], notes)
        found = measured[self.measure]
        tables = {"kinds": _statistics(bench, kinds, trainings)} | tables_of(found, cells, self.measure, bench.seed)
        if len(tuned):
            tables["tuned"] = tuned
        return Result(
            KIND_SHIFT,
            "How does a ranker fare on kinds of queries that it was not trained on?",
            tables,
            tuple(figures_of(found, "kinds of queries", f"{WU}, Fig. 4")),
            (*notes, *self._notes(kinds, trainings), *notes_of(self.measure, "kind", tables, learners)),
            tuple(findings_of(tables["mean drop"])),
            brief=("kinds", "mean drop", "effectiveness"),
        )

    def _known(self, bench: Bench) -> dict[str, Kind]:
        """The kinds with all queries that there are of them."""
        collection = bench.collection
        able = judged(collection)
        if self.folds:
            learned = tested = able[: bench.limit]
        else:
            asked = set(bench.queries)
            names = [name for name in (TRAIN, VALIDATION, "dev") if name in collection.splits]
            if TRAIN not in names:
                raise NotApplicable(
                    f"{collection.name} has no split train to learn from; cut its queries with --cut 60/20/20, or "
                    "learn in folds with query_type_shift(folds=5)"
                )
            part = {qid for name in names for qid in collection.splits[name]}
            taught = set(collection.splits[TRAIN])
            learned = [qid for qid in able if qid in part and (qid not in asked or qid in taught)]
            tested = [qid for qid in able if qid in asked and qid not in taught]
        of = {qid: query.kind for qid, query in collection.queries.items()}
        present = list(dict.fromkeys(of[qid] for qid in (*learned, *tested) if of[qid]))
        for name in self.kinds:
            if name not in present:
                raise UnknownName("kind of query", name, present)
        names = list(self.kinds) or sorted(present)
        if len(names) < 2:
            raise NotApplicable(
                f"the queries of {collection.name} have {len(names)} kinds, and two are needed; "
                "the field kind in queries.jsonl says of each query what it asks for"
            )
        return {
            name: Kind(
                name,
                tuple(qid for qid in learned if of[qid] == name),
                tuple(qid for qid in tested if of[qid] == name),
            )
            for name in names
        }

    def _drawn(self, bench: Bench, known: Mapping[str, Kind]) -> list[Kind]:
        """As many queries of each kind, drawn by chance, to learn from and to test on."""
        drawn: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in known}
        for side, doing in (("train", "learn from"), ("test", "test on")):
            sizes = {name: len(getattr(kind, side)) for name, kind in known.items()}
            asked = getattr(self, side)
            size = min(sizes.values()) if asked is None else asked
            needed = max(LEAST, size)
            if small := {name: count for name, count in sizes.items() if count < needed}:
                name, count = min(small.items(), key=lambda item: item[1])
                left = tuple(other for other in known if other not in small)
                advice = f"; leave it out by kinds={left!r}" if len(left) > 1 else ""
                raise NotApplicable(
                    f"the kind {quoted(name)} has {count} queries to {doing}, and {needed} are needed{advice}"
                )
            for name, kind in known.items():
                qids = getattr(kind, side)
                chosen = set(shuffled(qids, bench.seed, f"{side} of a kind")[:size])
                drawn[name][side] = tuple(qid for qid in qids if qid in chosen)
        if self.folds:  # then what is learned from is what is tested on
            return [Kind(name, parts["train"], parts["train"]) for name, parts in drawn.items()]
        return [Kind(name, parts["train"], parts["test"]) for name, parts in drawn.items()]

    def _cells(self, bench: Bench, kinds: Sequence[Kind]) -> tuple[list[Cell], dict[str, Training]]:
        """A cell for each kind to learn from and each to test on, and two for all others together."""
        collection, seed = bench.collection, bench.seed
        alone = {kind.name: divided(kind.name, collection, kind.train, seed) for kind in kinds}
        own: dict[str, Any] = {kind.name: ((alone[kind.name], kind.test),) for kind in kinds}
        if self.folds:
            own = {k.name: out_of_folds(k.name, collection, k.test, self.folds, seed) for k in kinds}
            # as many to learn from as a model of a fold has
            size = min(len(training.train) for parts in own.values() for training, _ in parts)
            alone = {name: _shorter(training, size, seed) for name, training in alone.items()}
        cells = []
        for kind in kinds:
            others = [alone[other.name] for other in kinds if other is not kind]
            cells.append(Cell(kind.name, kind.name, collection, own[kind.name]))
            cells += [
                Cell(training.name, kind.name, collection, ((training, kind.test),), OTHER) for training in others
            ]
            union = Training(
                f"all kinds but {kind.name}",
                collection,
                tuple(qid for training in others for qid in training.train),
                tuple(qid for training in others for qid in training.valid),
            )
            short = Training(
                union.name,
                collection,
                _dealt([training.train for training in others], len(others[0].train), seed),
                _dealt([training.valid for training in others], len(others[0].valid), seed),
            )
            cells.append(Cell(UNION, kind.name, collection, ((union, kind.test),), UNION))
            if len(others) > 1:  # of one kind, it is that kind
                cells.append(Cell(CUT, kind.name, collection, ((short, kind.test),), CUT))
        return cells, alone

    def _notes(self, kinds: Sequence[Kind], trainings: Mapping[str, Training]) -> list[str]:
        one = next(iter(trainings.values()))
        size = f"{len(one.train)} queries to learn from, {len(one.valid)} to validate on"
        if self.folds:
            where = (
                f"Rankers were tested on all queries of a kind. Those of the kind that a ranker learned from were "
                f"ranked by {self.folds} models that had not seen them; a model for other kinds learned from as many "
                "queries as each of these."
            )
        else:
            where = "Rankers learned from the splits train and validation, and were tested on the queries of the audit."
        return [
            f"{where} Each kind has {size}, and {len(kinds[0].test)} to test on, drawn at random.",
            (
                f"'{UNION}' was trained on all kinds but the one that it is tested on, with {len(kinds) - 1} times as "
                f"many queries. '{CUT}' was trained on the same kinds, with as many queries as one kind has. What the "
                "first gains over the second is due to more data; what the second gains over a single kind is due to "
                "variety."
            ),
        ]


def _shorter(training: Training, size: int, seed: int) -> Training:
    """The training with so many queries to learn from."""
    taken = set(shuffled(training.train, seed, "training queries")[:size])
    return Training(
        training.name, training.collection, tuple(qid for qid in training.train if qid in taken), training.valid
    )


def _dealt(parts: Sequence[Sequence[str]], size: int, seed: int) -> tuple[str, ...]:
    """So many queries of all parts, in turn one of each, in an order that chance decides."""
    orders = [shuffled(part, seed, "ALL* cut") for part in parts]
    return tuple([qid for turn in zip_longest(*orders) for qid in turn if qid is not None][:size])


def _statistics(bench: Bench, kinds: Sequence[Kind], trainings: Mapping[str, Training]) -> pd.DataFrame:
    """A row for each kind (Table 4 of the paper)."""
    import pandas as pd

    rows = []
    for kind in kinds:
        training = trainings[kind.name]
        if not kind.test:
            raise BadInput(f"the kind {quoted(kind.name)} has no query to test on")
        rows.append(
            {
                "kind": kind.name,
                "training queries": len(training.train),
                "validation queries": len(training.valid),
                "test queries": len(kind.test),
            }
            | query_facts(bench.collection, tuple(dict.fromkeys((*kind.train, *kind.test))))
        )
    return pd.DataFrame(rows)
