"""A surrogate of a black-box ranker: a net trained to reproduce the ranker's orderings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaketable.attacks.goals import Demote
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.core.attack_types import AttackCase
from shaketable.core.errors import BadInput, MissingExtra
from shaketable.core.extras import has_extra
from shaketable.training.plan import ImitationSource, TrainingPlan

if TYPE_CHECKING:
    from shaketable.rankers.neural.gradients import RankContest
    from shaketable.rankers.neural.net import Net

DEFAULT_SURROGATE = "knrm(steps=300)"
"""A small net that trains in half a minute. Wu et al. use BERT, which needs a GPU."""
SURROGATE_OBJECTIVE = "hinge"
"""Wu et al. train the surrogate with a pairwise hinge loss of margin 1."""


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A trained net, with its agreement on held-out lists: nDCG@10 against the target's order."""

    net: Net
    agreement: float
    list_count: int
    pair_count: int


def train_surrogate(knowledge: AttackerKnowledge, learner: str, lists: ImitationSource) -> Surrogate:
    """Train a net on the target's rankings for the attacker's own queries; recipes of one attacker share it.

    The training uses only the order of these lists.
    """
    if not has_extra("neural"):
        raise MissingExtra("neural", "an attack with a surrogate net")
    key = "surrogate", learner, lists
    if key not in knowledge.cache:
        asked = knowledge.collect_target_rankings()
        model = knowledge.fit(learner, TrainingPlan(lists, SURROGATE_OBJECTIVE), asked)
        net = getattr(model.open(asked), "net", None)
        if net is None:
            raise BadInput(
                f"the surrogate {learner} has no gradients, because it is not a neural net; use knrm, conv_knrm or bert"
            )
        value = float(model.read_card()["value"])
        pairs = sum(map(len, asked.candidates.values()))
        knowledge.cache[key] = Surrogate(net, value, len(asked.candidates), pairs)
    found: Surrogate = knowledge.cache[key]
    return found


def build_rank_contests(case: AttackCase, max_rivals: int) -> list[RankContest]:
    """Return one contest per list: the document against the best other documents, to overtake or to fall behind."""
    from shaketable.rankers.neural.gradients import RankContest

    down = isinstance(case.goal, Demote)
    rivalries = [(listing.query, listing.get_other_documents(case.docno)[:max_rivals]) for listing in case.lists]
    return [
        RankContest(query, case.doc.text, tuple(doc.text for doc in docs), down) for query, docs in rivalries if docs
    ]
