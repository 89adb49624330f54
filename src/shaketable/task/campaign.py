"""A bench under attack: which documents are attacked in whose lists, what the attacker knows, and lists afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from shaketable.attacks.knowledge import Knowledge, own_queries
from shaketable.attacks.target import Target
from shaketable.chance import draws_for
from shaketable.errors import BadInput, NotApplicable
from shaketable.learners.plan import Plan
from shaketable.rankers.saved import Saved
from shaketable.score.road import Traits
from shaketable.text.language import language_tool
from shaketable.types import (
    Attack,
    Attacked,
    Case,
    Collection,
    Doc,
    Goal,
    Listing,
    Outcome,
    Recipe,
    Run,
    Slate,
    WhiteBox,
    ranking,
    unwatched,
)

if TYPE_CHECKING:
    from shaketable.bench import Bench

FIRST = 11
"""The place where ranges begin: what stands among the first ten has little to gain."""
OWN_QUERIES = 200
"""Queries whose lists an attacker asks the target for, to learn a surrogate from."""

Range = tuple[int, int]


def ranges(count: int, depth: int) -> list[Range]:
    """The places from 11 to the end of the list in so many parts, as even as can be (paper 003: nine of ten places).

    >>> ranges(9, 100)[0], ranges(9, 100)[-1], ranges(2, 30)
    ((11, 20), (91, 100), [(11, 20), (21, 30)])
    """
    places = depth - FIRST + 1
    if count < 1 or places < count:
        raise NotApplicable(
            f"{count} ranges of places from {FIRST} on do not fit into lists of {depth} documents; "
            "ask for fewer targets, or for longer lists with --depth"
        )
    ends = [FIRST + places * part // count for part in range(count + 1)]
    return [(start, end - 1) for start, end in pairwise(ends)]


@dataclass(frozen=True)
class Aim:
    """A document to attack: the query, the document, and the range of places that it was drawn from."""

    qid: str
    docno: str
    doc: Doc
    range: Range


def aims(listing: Listing, grades: Mapping[str, int], parts: Sequence[Range], seed: int, any_grade: bool) -> list[Aim]:
    """One document from each range of a list, drawn at random from those of grade 0 and those that nobody judged.

    A range beyond the end of a list, or without such a document, has none.
    """
    drawn = []
    for start, end in parts:
        places = range(start - 1, min(end, len(listing.docnos)))
        fitting = [i for i in places if any_grade or grades.get(listing.docnos[i], 0) <= 0]
        if fitting:
            at = draws_for(seed, "target", listing.qid, start).choice(fitting)
            drawn.append(Aim(listing.qid, listing.docnos[at], listing.docs[at], (start, end)))
    return drawn


@dataclass(frozen=True)
class Attempt:
    """An attack on a document, and what it came to; `range` is where the document was drawn from, if it was."""

    ranker: str
    recipe: str
    case: Case
    outcome: Outcome
    range: Range | None = None


def attacked_queries(bench: Bench, count: int) -> dict[str, str]:
    """So many of the queries, drawn at random, in their own order; all of them if the count is 0."""
    texts = bench.texts
    if not count or count >= len(texts):
        return texts
    drawn = set(draws_for(bench.seed, "attacked queries").shuffled(sorted(texts))[:count])
    return {qid: text for qid, text in texts.items() if qid in drawn}


def newcomers(bench: Bench, target: Target, count: int, size: int) -> list[tuple[str, Doc, list[str]]]:
    """Documents that are to do well for several queries at once: groups of `size` queries, and for each of these
    `count` documents of the collection that are in none of the lists."""
    qids = list(target.pools)
    groups = [qids[at : at + size] for at in range(0, len(qids) - size + 1, size)]
    if not groups:
        raise BadInput(f"one text for {size} queries needs as many queries to attack; there are {len(qids)}")
    drawn = []
    for group in groups:
        listed = {docno for qid in group for docno in target.pools[qid].docnos}
        others = sorted(docno for docno in bench.collection.docs if docno not in listed)
        if len(others) < count:
            raise BadInput("all documents of the collection are in the lists, so none is left to be added to them")
        for docno in draws_for(bench.seed, "newcomers", *group).shuffled(others)[:count]:
            drawn.append((docno, bench.collection.docs[docno], group))
    return drawn


def open_target(bench: Bench, name: str, texts: Mapping[str, str], candidates: Run) -> Target:
    """A ranker of the bench as the target of attacks, by the road, on the candidates of these queries."""
    ranker, origin = bench.ranker(name), bench.origin(name)
    traits = Traits.of(ranker, name)
    quiet = replace(bench.road, watch=unwatched)  # the driver shows how far it is, in attacks
    target = Target(lambda slates: quiet.score(ranker, slates, name, origin), traits.pointwise, traits.noise)
    target.read(slates(bench, texts, candidates))
    return target


def slates(bench: Bench, texts: Mapping[str, str], candidates: Run) -> dict[str, tuple[Slate, list[str]]]:
    """query id -> its slate, best candidate first, and the docnos of its documents."""
    docnos = {qid: ranking(candidates[qid]) for qid in texts if candidates.get(qid)}
    return {
        qid: (Slate(texts[qid], tuple(bench.collection.docs[docno] for docno in some)), some)
        for qid, some in docnos.items()
    }


def knowledge(bench: Bench, name: str, attacked: Sequence[str], language: str = "light") -> Knowledge:
    """What an attacker of this ranker knows: the documents, and how it orders the lists of queries of his own."""
    whole = bench.collection

    @cache
    def asked() -> Collection:
        own = own_queries(whole, attacked, OWN_QUERIES, bench.seed)
        texts = {qid: query.text for qid, query in own.items()}
        run = bench.rerank(name, texts, bench.first_stage_finds(texts))
        orders = {qid: ranking(scores) for qid, scores in run.items()}
        places = {qid: {docno: float(-i) for i, docno in enumerate(order, 1)} for qid, order in orders.items()}
        return Collection(whole.name, whole.docs, own, candidates=places, source=whole.source)

    def fit(learner: str, plan: Plan, collection: Collection) -> Saved:
        return bench.on(collection).fit(learner, tuple(collection.queries), plan=plan)

    return Knowledge(whole.docs, asked, fit, language_tool(language), bench.seed)


def opened(bench: Bench, name: str, recipe: Any, known: Knowledge) -> Attack:
    """A recipe against a ranker of the bench. One that needs the net itself is given it, if there is one."""
    if isinstance(recipe, WhiteBox):
        net = getattr(bench.ranker(name), "net", None)
        if net is None:
            raise BadInput(f"the ranker {name} has no net to open, so it has no gradients; attack it as a black box")
        return recipe.open_net(known, net)
    if not isinstance(recipe, Recipe):
        raise BadInput(f"{type(recipe).__name__} is no recipe: it has no method open")
    return recipe.open(known)


def shortage(drawn: Sequence[Aim], parts: Sequence[Range], sizes: Sequence[int]) -> str:
    """Why there are fewer targets than ranges."""
    beyond = sum(start > size for size in sizes for start, _ in parts)
    relevant = len(parts) * len(sizes) - len(drawn) - beyond
    reasons = [
        *([f"{beyond} lie beyond the end of their list"] if beyond else []),
        *([f"{relevant} hold relevant documents only"] if relevant else []),
    ]
    wanted = f"{len(drawn)} documents were attacked in {len(sizes)} lists, where {len(parts) * len(sizes)} were wanted"
    return f"{wanted}: of the ranges of places to take them from, {' and '.join(reasons)}."


def by_origin(documents: Sequence[Attacked]) -> dict[str, list[Attacked]]:
    """Texts of others by recipe; where one recipe was used against several rankers, by these too."""
    rankers: dict[str, set[str]] = {}
    for one in documents:
        rankers.setdefault(one.recipe, set()).add(one.ranker)
    groups: dict[str, list[Attacked]] = {}
    for one in documents:
        several = len(rankers[one.recipe]) > 1
        groups.setdefault(f"{one.recipe} against {one.ranker}" if several else one.recipe, []).append(one)
    return groups


def tried(name: str, target: Target, documents: Sequence[Attacked], goal: Goal, recipe: str) -> Iterator[Attempt]:
    """Texts of others, as they are: each takes the place of its original, whether it stands better for it or not."""
    wanted = [
        (one.docno or f"new-{number}", target.text(one.docno, list(one.queries)) or one.original, list(one.queries))
        for number, one in enumerate(documents)
    ]
    texts: dict[tuple[str, ...], deque[Doc]] = {}
    for (docno, _, qids), one in zip(wanted, documents, strict=True):
        texts.setdefault((docno, *qids), deque()).append(one.doc)
    # the cases come in the order that was wanted, and of one name all are there or none
    trials = [(case, texts[case.name].popleft()) for case in target.cases(wanted, goal)]
    for (case, doc), places in zip(trials, target.places(trials), strict=True):
        if places is not None:
            won = int(goal.worth(places) > goal.worth(case.places))
            yield Attempt(name, recipe, case, Outcome(doc, case.places, places, 1, target.cost(case), won))


def changed_texts(attempts: Sequence[Attempt]) -> dict[str, dict[str, Doc]]:
    """query id -> docno -> the text that an attack left, for all that was attacked in the query's list."""
    changed: dict[str, dict[str, Doc]] = {}
    for attempt in attempts:
        for listing in attempt.case.lists:
            changed.setdefault(listing.qid, {})[attempt.case.docno] = attempt.outcome.doc
    return changed


def attacked_lists(
    bench: Bench, name: str, target: Target, changed: Mapping[str, Mapping[str, Doc]]
) -> tuple[Run, Run]:
    """The lists of these queries before, and with every changed document in the place of its original."""
    lists = {}
    for qid, docs in changed.items():
        pool = target.pools[qid]
        texts = {**dict(zip(pool.docnos, pool.docs, strict=True)), **docs}
        lists[qid] = list(texts), Slate(pool.query, tuple(texts.values()))
    answers = bench.road.score(bench.ranker(name), [slate for _, slate in lists.values()], name, bench.origin(name))
    robust = {
        qid: dict(zip(docnos, scores.tolist(), strict=True))
        for (qid, (docnos, _)), scores in zip(lists.items(), answers, strict=True)
        if scores is not None
    }
    clean = {
        qid: {docno: float(-place) for place, docno in enumerate(target.pools[qid].listing.docnos)} for qid in robust
    }
    return clean, robust
