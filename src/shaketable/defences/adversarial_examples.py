"""Adversarial training examples: documents of training queries after an attack on the ranker itself.

An attack on a deployed ranker sees ranks and keeps changes that move a document up. Here the ranker is our own, and the
training needs more than ranks: the neighbour of a document whose score gains most (paper 003, Eq. 10), whether or not
it passes another document. So attacks see a finer scale, the rank of a score among all numbers of float32. A document
stays unchanged if no change raises its score.

Examples are cached under $SHAKETABLE_HOME/adversaries, in a file named by everything that they depend on, with a
checksum; a file with a wrong checksum is made again. Finished parts of an interrupted run are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from shaketable.attacks.goals import Promote
from shaketable.attacks.runner import run_attacks
from shaketable.attacks.target import ScoredList, Target
from shaketable.core.attack_types import AdversarialDocument, Attack
from shaketable.core.documents import Collection, Run, fingerprint, rank_docnos
from shaketable.core.errors import BadInput, check_ranges
from shaketable.core.home import home_folder
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.core.registries import DEFENCES, RECIPES
from shaketable.core.registry import find_named_files
from shaketable.core.results import Failure
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.adversarial_documents import read_adversarial_documents, write_adversarial_documents
from shaketable.files.atomic import atomic_write
from shaketable.files.checksums import digest_file, digest_files, read_sealed_json, seal_json
from shaketable.files.scratch import find_writable_path
from shaketable.scoring.validation import collapse_ties

SCHEMA = "adversaries/1"
QUERIES_PER_PART = 32
"""Queries per part: the most work that is lost when a process is killed."""
DEFAULT_RECIPE = "white_wsra"
"""Replaces at most 20 words by synonyms, chosen by the gradients of the net itself."""
AdversarialDocsByQuery: TypeAlias = Mapping[str, Sequence[AdversarialDocument]]
"""query id -> its attacked documents, in the order of the file."""


@dataclass(frozen=True)
class ExampleSpec:
    """The settings of adversarial examples: the recipe, documents per query, and number of queries (0 for all)."""

    recipe: str = DEFAULT_RECIPE
    documents: int = 10
    queries: int = 0


@dataclass(frozen=True, kw_only=True)
class ExampleBasedDefence:
    """Base class of defences that learn from adversarial examples.

    recipe      the attack on the ranker of standard training
    documents   attacked documents per query, drawn from its candidates that are not relevant
    queries     training queries whose documents are attacked, drawn at random; 0 for all of them
    """

    recipe: str = DEFAULT_RECIPE
    documents: int = 10
    queries: int = 0

    def __post_init__(self) -> None:
        check_ranges(DEFENCES.get_name(self), self, documents=(1, 10_000), queries=(0, 100_000_000))
        RECIPES.build(self.recipe)

    @property
    def examples(self) -> ExampleSpec:
        """The adversarial examples that the defence learns from."""
        return ExampleSpec(self.recipe, self.documents, self.queries)


def read_adversarial_examples(path: Path, collection: Collection, qids: Sequence[str]) -> AdversarialDocsByQuery:
    """Return the attacked documents of these queries from a file, all rows of which must belong to the collection.

    Other queries of the file are ignored, so validation and test queries stay unseen.
    """
    found: dict[str, list[AdversarialDocument]] = {}
    wanted = set(qids)
    for one in read_adversarial_documents(path):
        for qid, text in one.queries.items():
            if qid not in collection.queries or collection.queries[qid].text != text:
                raise BadInput(
                    f"does not belong to the collection {collection.name}, which has no query {qid!r} with this text",
                    path,
                )
        if one.docno not in collection.docs:
            raise BadInput(
                f"does not belong to the collection {collection.name}, which has no document {one.docno!r}", path
            )
        if one.original.text and one.original.text != collection.docs[one.docno].text:
            raise BadInput(
                f"does not belong to the collection {collection.name}, whose document {one.docno!r} has another text",
                path,
            )
        for qid in one.queries:
            if qid in wanted:
                found.setdefault(qid, []).append(one)
    if not found:
        raise BadInput("has no attacked document for the training queries", path)
    return found


class ScoreTarget(Target):
    """A target that reveals scores: the rank of a document is that of its score among the numbers of float32.

    The order of its lists does not change.
    """

    def rank_documents(self, lists: Sequence[ScoredList]) -> list[int]:
        return [
            0 if scores is None else rank_score(float(collapse_ties(scores, self.noise)[pool.find_index(docno)]))
            for pool, docno, scores in lists
        ]


def rank_score(score: float) -> int:
    """Return the rank of a score among all numbers of float32, in descending order from infinity at rank 1.

    >>> rank_score(float("inf")), rank_score(0.0) == rank_score(-0.0), rank_score(1.0) - rank_score(float(np.nextafter(
    ...     np.float32(1), np.float32(2))))
    (1, True, 1)
    """
    infinity, number = (int(np.float32(x).view(np.int32)) for x in (np.inf, score + 0.0))
    return 1 + infinity - (number if number >= 0 else -(number & 0x7FFFFFFF))


def as_score_target(target: Target) -> Target:
    """Return the same target with ranks that reveal the smallest differences in score."""
    return ScoreTarget(target.score, target.pointwise, target.noise, target.target_lists)


DocnosByQuery = Mapping[str, Sequence[str]]
"""query id -> the docnos to attack."""


def draw_documents(
    collection: Collection, candidates: Run, qids: Sequence[str], examples: ExampleSpec, seed: int
) -> DocnosByQuery:
    """Return the documents to attack: for each query some candidates that are not relevant, unjudged ones included.

    A query with fewer than two candidates is left out, because its list has only one rank.
    """
    if examples.queries and examples.queries < len(qids):
        some = set(make_item_rng(seed, "adversaries, queries").permutation(sorted(qids))[: examples.queries])
        qids = [qid for qid in qids if qid in some]
    chosen: dict[str, Sequence[str]] = {}
    for qid in qids:
        grades, listed = collection.qrels.get(qid, {}), rank_docnos(candidates.get(qid, {}))
        fitting = [docno for docno in listed if grades.get(docno, 0) <= 0 and docno in collection.docs]
        if fitting and len(listed) > 1:
            rng = make_item_rng(seed, "adversaries, documents", qid)
            chosen[qid] = rng.permutation(fitting)[: examples.documents]
    if not chosen:
        raise BadInput(
            f"collection {collection.name}: no training query has candidates that are not relevant, so there is "
            "nothing to attack"
        )
    return chosen


@dataclass(frozen=True)
class ExampleCost:
    """The cost of adversarial examples: seconds, and query-text pairs that the ranker scored."""

    seconds: float = 0.0
    pairs: int = 0

    def __add__(self, other: ExampleCost) -> ExampleCost:
        return ExampleCost(round(self.seconds + other.seconds, 1), self.pairs + other.pairs)


@dataclass(frozen=True)
class StoredExamples:
    """Adversarial examples on disk: the file, its counts, and the cost of making it."""

    path: Path
    document_count: int
    changed_count: int
    failed_count: int
    cost: ExampleCost

    def to_card(self) -> dict[str, Any]:
        """Return the numbers for the card of a model."""
        numbers = {"documents": self.document_count, "changed": self.changed_count, "failed": self.failed_count}
        return numbers | {"seconds": self.cost.seconds, "pairs": self.cost.pairs}


@dataclass(frozen=True, eq=False)
class ExampleGenerator:
    """A generator of adversarial examples; `open_attack` and `open_target` are called only when they are needed.

    `open_target` takes queries and returns the ranker with their lists loaded. `target_fingerprint` identifies the
    ranker and the candidates.
    """

    ranker: str
    target_fingerprint: str
    collection: Collection
    recipe: str
    documents: DocnosByQuery
    open_attack: Callable[[], Attack]
    open_target: Callable[[Sequence[str]], Target]
    seed: int = 0
    progress: ProgressFactory = no_progress

    @cached_property
    def path(self) -> Path:
        """The file that stores the examples."""
        docnos = [(qid, tuple(some)) for qid, some in self.documents.items()]
        recipe = self.recipe, digest_files(find_named_files(self.recipe))
        parts = (SCHEMA, self.target_fingerprint, self.collection.fingerprint, recipe, docnos, self.seed)
        kept = home_folder() / "adversaries" / f"{fingerprint(*parts)}.jsonl"
        return kept if kept.exists() else find_writable_path(kept)[0]

    def run(self, notify: Callable[[str], None] = lambda message: None) -> StoredExamples:
        """Return the examples from the cache, or make them; `notify` receives estimates of the time."""
        if not self._is_complete():
            self._make(notify)
        rows = read_adversarial_documents(self.path)
        changed = sum(one.doc != self.collection.docs[one.docno] for one in rows)
        failed = sum(map(len, self.documents.values())) - len(rows)
        return StoredExamples(self.path, len(rows), changed, failed, self._read_cost())

    def _make(self, notify: Callable[[str], None]) -> None:
        attack: Attack | None = None
        rows: list[AdversarialDocument] = []
        qids = list(self.documents)
        count = sum(map(len, self.documents.values()))
        notify(f"attacking {count:,} documents of {len(qids):,} queries with {self.recipe}; the result is cached")
        parts = self._read_manifest().get("parts", {})
        for start in range(0, len(qids), QUERIES_PER_PART):
            part = self._part_path(start)
            if parts.get(part.name, {}).get("checksum") == _digest_if_file(part):
                rows += read_adversarial_documents(part) if part.is_file() else []
                continue
            began = time.perf_counter()
            attack = attack or self.open_attack()
            found, pairs = self._attack_queries(attack, qids[start : start + QUERIES_PER_PART])
            rows += found
            if found:
                write_adversarial_documents(found, part)
            seconds = time.perf_counter() - began
            parts[part.name] = {"checksum": _digest_if_file(part), "seconds": seconds, "pairs": pairs}
            self._write_manifest(_add_costs(parts.values()), parts=parts)
            if (left := len(qids) - start - QUERIES_PER_PART) > 0 and start == 0:
                notify(
                    f"the first {QUERIES_PER_PART} queries took {seconds:.0f} s, the others may take "
                    f"{seconds / QUERIES_PER_PART * left:.0f} s"
                )
        if not rows:
            raise BadInput(f"{self.recipe} failed on all documents, so there is nothing to learn from")
        write_adversarial_documents(rows, self.path)
        self._write_manifest(_add_costs(parts.values()), digest_file(self.path))
        self._remove_parts(range(0, len(qids), QUERIES_PER_PART))

    def _is_complete(self) -> bool:
        """Return True if the file exists and has the checksum of its manifest."""
        return _digest_if_file(self.path) == self._read_manifest().get("examples") != ""

    def _attack_queries(self, attack: Attack, qids: Sequence[str]) -> tuple[list[AdversarialDocument], int]:
        """Return the attacked documents of some queries, and the number of scored pairs."""
        plain = self.open_target(qids)
        fine = as_score_target(plain)
        docs = self.collection.docs
        wanted = [
            (docno, docs[docno], [qid]) for qid in qids if qid in plain.target_lists for docno in self.documents[qid]
        ]
        cases = fine.build_cases(wanted, Promote())
        what = f"attacking with {self.recipe}"
        outcomes = run_attacks(attack, cases, fine, seed=self.seed, progress=self.progress, progress_label=what)
        done = [(c, o) for c, o in zip(cases, outcomes, strict=True) if not isinstance(o, Failure)]
        before = {case.key: case.ranks for case in plain.build_cases(wanted, Promote())}
        after = plain.rank_trials([(case, outcome.doc) for case, outcome in done])  # cached by now
        rows = [
            AdversarialDocument(
                {case.lists[0].qid: case.query},
                case.docno,
                outcome.doc,
                case.doc,
                self.recipe,
                self.ranker,
                before[case.key],
                ranks or (),
                outcome.trials,
            )
            for (case, outcome), ranks in zip(done, after, strict=True)
        ]
        return rows, sum(len(pool.docnos) for pool in plain.target_lists.values()) + sum(
            o.scored_pairs for _, o in done
        )

    def _part_path(self, start: int) -> Path:
        return self.path.with_suffix("") / f"part-{start:08}.jsonl"

    def _read_cost(self) -> ExampleCost:
        noted = self._read_manifest()
        return ExampleCost(noted.get("seconds", 0.0), noted.get("pairs", 0))

    def _read_manifest(self) -> dict[str, Any]:
        """Return the manifest, or an empty one if it is missing or damaged."""
        try:
            return read_sealed_json(self.path.with_suffix(".json"))
        except BadInput:
            return {}

    def _write_manifest(self, cost: ExampleCost, examples: str = "", parts: Mapping[str, str] | None = None) -> None:
        """Write the cost, and the checksums of the complete file or of its parts."""
        noted = {"seconds": cost.seconds, "pairs": cost.pairs, "examples": examples, "parts": dict(parts or {})}
        with atomic_write(self.path.with_suffix(".json")) as out:
            out.write(seal_json(noted))

    def _remove_parts(self, starts: Iterable[int]) -> None:
        for start in starts:
            self._part_path(start).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.with_suffix("").rmdir()


def _add_costs(parts: Iterable[Mapping[str, Any]]) -> ExampleCost:
    return sum((ExampleCost(part["seconds"], part["pairs"]) for part in parts), ExampleCost())


def _digest_if_file(path: Path) -> str:
    return digest_file(path) if path.is_file() else ""
