"""Setup of attacks on an experiment: targets, the attacker's knowledge, and the rankings after an attack."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from shaketable.attacks.knowledge import AttackerKnowledge, draw_attacker_queries
from shaketable.attacks.target import ScoreFunction, Target
from shaketable.core.attack_types import (
    AdversarialDocument,
    Attack,
    AttackCase,
    AttackOutcome,
    Goal,
    Ranks,
    Recipe,
    TargetRanking,
    WhiteBoxRecipe,
)
from shaketable.core.documents import Collection, Doc, Run, Scores, Slate, rank_docnos
from shaketable.core.errors import BadInput, NotApplicable
from shaketable.core.progress import no_progress
from shaketable.core.protocols import Ranker
from shaketable.core.results import Failure
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.parser import open_parser
from shaketable.rankers.saved import SavedModel
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.uncached import Uncached
from shaketable.training.plan import TrainingPlan

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

FIRST_ATTACKED_RANK = 11
"""The first rank of the target ranges; the top ten have little to gain."""
ATTACKER_QUERY_COUNT = 200
"""Number of queries whose target rankings an attacker collects to train a surrogate."""

RankRange = tuple[int, int]


def split_rank_range(count: int, depth: int) -> list[RankRange]:
    """Split the ranks from 11 to the end of the list into equal ranges (paper 003: nine of ten ranks).

    >>> split_rank_range(9, 100)[0], split_rank_range(9, 100)[-1], split_rank_range(2, 30)
    ((11, 20), (91, 100), [(11, 20), (21, 30)])
    """
    rank_count = depth - FIRST_ATTACKED_RANK + 1
    if count < 1 or rank_count < count:
        raise NotApplicable(
            f"{count} ranges of ranks from {FIRST_ATTACKED_RANK} on do not fit into lists of {depth} documents; "
            "choose fewer targets, or longer lists with --depth"
        )
    ends = [FIRST_ATTACKED_RANK + rank_count * part // count for part in range(count + 1)]
    return [(start, end - 1) for start, end in pairwise(ends)]


@dataclass(frozen=True)
class AttackTarget:
    """A document to attack, its query and the range of ranks it was drawn from."""

    qid: str
    docno: str
    doc: Doc
    rank_range: RankRange


def draw_targets(
    listing: TargetRanking, grades: Mapping[str, int], rank_ranges: Sequence[RankRange], seed: int, any_grade: bool
) -> list[AttackTarget]:
    """Return one random document of each rank range, from those of grade 0 or unjudged unless `any_grade`.

    A range beyond the end of the list, or without such a document, yields no target.
    """
    drawn = []
    for start, end in rank_ranges:
        places = range(start - 1, min(end, len(listing.docnos)))
        fitting = [i for i in places if any_grade or grades.get(listing.docnos[i], 0) <= 0]
        if fitting:
            at = make_item_rng(seed, "target", listing.qid, start).choice(fitting)
            drawn.append(AttackTarget(listing.qid, listing.docnos[at], listing.docs[at], (start, end)))
    return drawn


@dataclass(frozen=True)
class AttackResult:
    """The outcome of an attack on a document; `rank_range` is the range it was drawn from, if any.

    `control_ranks` are the ranks of the document with the best harmless text, if the recipe has a control and the
    attack reached the top ten; they are empty otherwise.
    """

    ranker: str
    recipe: str
    case: AttackCase
    outcome: AttackOutcome
    rank_range: RankRange | None = None
    control_ranks: Ranks = ()


def draw_attacked_queries(experiment: Experiment, count: int) -> dict[str, str]:
    """Return `count` random queries in their original order; all queries if the count is 0."""
    texts = experiment.texts
    if not count or count >= len(texts):
        return texts
    drawn = set(make_item_rng(experiment.seed, "attacked queries").permutation(sorted(texts))[:count])
    return {qid: text for qid, text in texts.items() if qid in drawn}


def draw_new_documents(
    experiment: Experiment, target: Target, count: int, group_size: int
) -> list[tuple[str, Doc, list[str]]]:
    """Return documents to promote for several queries at once.

    Each group of `group_size` queries gets `count` documents of the collection that are in none of its lists.
    """
    qids = list(target.target_lists)
    groups = [qids[at : at + group_size] for at in range(0, len(qids) - group_size + 1, group_size)]
    if not groups:
        raise BadInput(
            f"one text for {group_size} queries needs at least {group_size} attacked queries; there are {len(qids)}"
        )
    drawn = []
    for group in groups:
        listed = {docno for qid in group for docno in target.target_lists[qid].docnos}
        others = sorted(docno for docno in experiment.collection.docs if docno not in listed)
        if len(others) < count:
            raise BadInput("all documents of the collection are in the lists, so no document can be added")
        for docno in make_item_rng(experiment.seed, "newcomers", *group).permutation(others)[:count]:
            drawn.append((docno, experiment.collection.docs[docno], group))
    return drawn


def open_target(experiment: Experiment, name: str, texts: Mapping[str, str], candidates: Run) -> Target:
    """Return a ranker of the experiment as an attack target, with the candidates of these queries."""
    ranker, origin = experiment.get_ranker(name), experiment.get_remote_spec(name)
    traits = experiment.get_traits(name)
    quiet = replace(experiment.engine, progress=no_progress)  # the runner shows its own progress bar
    target = Target(lambda slates: quiet.score(ranker, slates, name, origin), traits.pointwise, traits.noise)
    if traits.fingerprint is None or traits.volatile:
        target.confirm_score = _make_confirmation(quiet, ranker, name)
    target.read_lists(build_slates(experiment, texts, candidates))
    return target


def _make_confirmation(engine: ScoringEngine, ranker: Ranker, name: str) -> ScoreFunction:
    """Return a function that calls the ranker for each slate, without the cache of the engine."""
    uncached = Uncached(ranker)
    known: dict[Slate, Scores | None] = {}

    def score(slates: Sequence[Slate]) -> list[Scores | None]:
        new = [slate for slate in dict.fromkeys(slates) if slate not in known]
        known.update(zip(new, engine.score(uncached, new, name), strict=True))
        return [known[slate] for slate in slates]

    return score


def build_slates(
    experiment: Experiment, texts: Mapping[str, str], candidates: Run
) -> dict[str, tuple[Slate, list[str]]]:
    """Return the slate of each query, best candidate first, and the docnos of its documents."""
    docnos = {qid: rank_docnos(candidates[qid]) for qid in texts if candidates.get(qid)}
    return {qid: (Slate(texts[qid], experiment.get_documents(some)), some) for qid, some in docnos.items()}


def build_attacker_knowledge(
    experiment: Experiment, name: str, attacked_qids: Sequence[str], parser_name: str = "light"
) -> AttackerKnowledge:
    """Return the attacker's knowledge: the documents, and the ranker's rankings for the attacker's own queries."""
    whole = experiment.collection

    @cache
    def rank_attacker_queries() -> Collection:
        own = draw_attacker_queries(whole, attacked_qids, ATTACKER_QUERY_COUNT, experiment.seed)
        texts = {qid: query.text for qid, query in own.items()}
        run = experiment.rerank(name, texts, experiment.search_first_stage(texts))
        orders = {qid: rank_docnos(scores) for qid, scores in run.items()}
        places = {qid: {docno: float(-i) for i, docno in enumerate(order, 1)} for qid, order in orders.items()}
        return Collection(whole.name, whole.docs, own, candidates=places, source=whole.source)

    def fit(learner: str, plan: TrainingPlan, collection: Collection) -> SavedModel:
        return experiment.with_collection(collection).fit(learner, tuple(collection.queries), plan=plan)

    return AttackerKnowledge(whole.docs, rank_attacker_queries, fit, open_parser(parser_name), experiment.seed)


def open_recipe(experiment: Experiment, name: str, recipe: Any, known: AttackerKnowledge) -> Attack:
    """Open a recipe against a ranker of the experiment; a white-box recipe receives the ranker's net."""
    if isinstance(recipe, WhiteBoxRecipe):
        net = getattr(experiment.get_ranker(name), "net", None)
        if net is None:
            raise BadInput(f"ranker {name} has no gradients, because it is not a neural net; use a black-box recipe")
        return recipe.open_net(known, net)
    if not isinstance(recipe, Recipe):
        raise BadInput(f"{type(recipe).__name__} is not a recipe: it has no method open")
    return recipe.open(known)


def explain_missing_targets(
    targets: Sequence[AttackTarget], rank_ranges: Sequence[RankRange], list_lengths: Sequence[int]
) -> str:
    """Return the reason why there are fewer targets than ranges."""
    beyond = sum(start > size for size in list_lengths for start, _ in rank_ranges)
    relevant = len(rank_ranges) * len(list_lengths) - len(targets) - beyond
    reasons = [
        *([f"{beyond} are beyond the end of their list"] if beyond else []),
        *([f"{relevant} have relevant documents only"] if relevant else []),
    ]
    wanted = (
        f"{len(targets)} documents were attacked in {len(list_lengths)} lists, where "
        f"{len(rank_ranges) * len(list_lengths)} were requested"
    )
    return f"{wanted}: of the rank ranges, {' and '.join(reasons)}."


def group_by_origin(documents: Sequence[AdversarialDocument]) -> dict[str, list[AdversarialDocument]]:
    """Group given texts by recipe, and by ranker if a recipe was used against several."""
    rankers: dict[str, set[str]] = {}
    for one in documents:
        rankers.setdefault(one.recipe, set()).add(one.ranker)
    groups: dict[str, list[AdversarialDocument]] = {}
    for one in documents:
        several = len(rankers[one.recipe]) > 1
        groups.setdefault(f"{one.recipe} against {one.ranker}" if several else one.recipe, []).append(one)
    return groups


def evaluate_given_texts(
    name: str, target: Target, documents: Sequence[AdversarialDocument], goal: Goal, recipe: str
) -> Iterator[AttackResult]:
    """Yield the result of each given text in place of its original, whether its rank improves or not."""
    wanted = [
        (
            one.docno or f"new-{number}",
            target.find_text(one.docno, list(one.queries)) or one.original,
            list(one.queries),
        )
        for number, one in enumerate(documents)
    ]
    texts: dict[tuple[str, ...], deque[Doc]] = {}
    for (docno, _, qids), one in zip(wanted, documents, strict=True):
        texts.setdefault((docno, *qids), deque()).append(one.doc)
    # `build_cases` keeps the order, and keeps all or none of the cases with the same key
    trials = [(case, texts[case.key].popleft()) for case in target.build_cases(wanted, goal)]
    for (case, doc), places in zip(trials, target.rank_trials(trials), strict=True):
        if places is not None:
            won = int(goal.utility(places) > goal.utility(case.ranks))
            yield AttackResult(
                name, recipe, case, AttackOutcome(doc, case.ranks, places, 1, target.count_pairs_per_trial(case), won)
            )


def has_arrived(outcome: AttackOutcome) -> bool:
    """Return True if an attack brought a document from below the top ten into it, in one of its lists."""
    moves = zip(outcome.ranks_before, outcome.ranks_after, strict=True)
    return any(before >= FIRST_ATTACKED_RANK > after for before, after in moves)


def confirm_outcomes(
    target: Target, cases: Sequence[AttackCase], outcomes: Sequence[AttackOutcome | Failure]
) -> list[AttackOutcome | Failure]:
    """Return the outcomes with the ranks that the final texts get when the ranker is asked again.

    Outcomes of a ranker that is known to be deterministic are returned unchanged, and so are those of attacks that
    changed nothing. The pairs of the new answers count as costs, not as trials.
    """
    confirmed = list(outcomes)
    if target.confirm_score is None:
        return confirmed
    changed = [
        (i, case, outcome)
        for i, (case, outcome) in enumerate(zip(cases, outcomes, strict=True))
        if isinstance(outcome, AttackOutcome) and outcome.doc != case.doc
    ]
    ranks = target.confirm_trials([(case, outcome.doc) for _, case, outcome in changed])
    for (i, case, outcome), after in zip(changed, ranks, strict=True):
        if after is None:
            confirmed[i] = Failure("", case.query, "the ranker failed when it scored the final text again")
            continue
        holds = case.goal.utility(after) > case.goal.utility(outcome.ranks_before)
        confirmed[i] = replace(
            outcome,
            ranks_after=after,
            scored_pairs=outcome.scored_pairs + target.count_pairs_per_trial(case),
            first_success_trial=outcome.first_success_trial if holds else 0,
        )
    return confirmed


def collect_changed_texts(attempts: Sequence[AttackResult]) -> dict[str, dict[str, Doc]]:
    """Return query id -> docno -> attacked text, for all documents attacked in the query's list."""
    changed: dict[str, dict[str, Doc]] = {}
    for attempt in attempts:
        for listing in attempt.case.lists:
            changed.setdefault(listing.qid, {})[attempt.case.docno] = attempt.outcome.doc
    return changed


def rank_attacked_lists(target: Target, changed: Mapping[str, Mapping[str, Doc]]) -> tuple[Run, Run]:
    """Return the rankings before the attacks, and with every changed document in place of its original."""
    robust = target.score_changed_lists(changed)
    clean = {
        qid: {docno: float(-place) for place, docno in enumerate(target.target_lists[qid].target_ranking.docnos)}
        for qid in robust
    }
    return clean, robust
