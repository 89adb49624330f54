"""A stand-in for a ranker that one cannot open: a net that learned to order lists as the ranker did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaketable.attacks.goals import Demote
from shaketable.attacks.knowledge import Knowledge
from shaketable.errors import BadInput, MissingExtra
from shaketable.extras import has
from shaketable.learners.plan import Imitated, Plan
from shaketable.types import Case

if TYPE_CHECKING:
    from shaketable.rankers.nets.gradients import Contest
    from shaketable.rankers.nets.net import Net

SURROGATE = "knrm(steps=300)"
"""A small net that learns in half a minute. Wu et al. have BERT, which takes a GPU, or patience."""
OBJECTIVE = "hinge"
"""Wu et al. train the surrogate with a pairwise hinge of margin 1."""


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The net, and how well it orders lists that it did not learn from, by nDCG@10 of the target's own order."""

    net: Net
    agreement: float
    lists: int
    pairs: int


def surrogate(knowledge: Knowledge, learner: str, lists: Imitated) -> Surrogate:
    """Learn a net from the lists of the target for the attacker's own queries; recipes of one attacker share it.

    Nothing but the order of these lists is learned from.
    """
    if not has("neural"):
        raise MissingExtra("neural", "an attack by a surrogate, which is a net,")
    key = "surrogate", learner, lists
    if key not in knowledge.shared:
        asked = knowledge.asked()
        model = knowledge.fit(learner, Plan(lists, OBJECTIVE), asked)
        net = getattr(model.open(asked), "net", None)
        if net is None:
            raise BadInput(f"the surrogate {learner} is no net, so it has no gradients; knrm, conv_knrm and bert have")
        value = float(model.card()["value"])
        pairs = sum(map(len, asked.candidates.values()))
        knowledge.shared[key] = Surrogate(net, value, len(asked.candidates), pairs)
    found: Surrogate = knowledge.shared[key]
    return found


def contests(case: Case, rivals: int) -> list[Contest]:
    """What a net is asked about: in each list the document against the best of the others, to pass or to be passed."""
    from shaketable.rankers.nets.gradients import Contest

    down = isinstance(case.goal, Demote)
    rivalries = [(listing.query, listing.others(case.docno)[:rivals]) for listing in case.lists]
    return [Contest(query, case.doc.text, tuple(doc.text for doc in docs), down) for query, docs in rivalries if docs]
