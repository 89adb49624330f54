"""Triggers: a few words in front of a document, chosen for what they do to its place, not for what they say.

The trigger begins with words of the document itself. Place after place, round after round, the word at the place is to
give way to one that lowers the loss of the document most, to the first order (HotFlip):

    argmin_c  ∂L/∂e_i · (E[c] - e_i)

The best few are tried on the target, and the one that stands best is kept if it beats all before. The net whose
gradients are asked is a surrogate, as in `attacks.wsra`.

Ebrahimi, Rao, Lowd, Dou. HotFlip. ACL 2018. Wallace, Feng, Kandpal, Gardner, Singh. Universal adversarial triggers for
attacking and analyzing NLP. EMNLP 2019. Wang, Lyu, Anand. BERT rankers are brittle. ICTIR 2022, which moves documents
with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shaketable.attacks.constraints import checks
from shaketable.attacks.knowledge import Knowledge
from shaketable.attacks.search import try_all
from shaketable.attacks.surrogate import SURROGATE, contests, surrogate
from shaketable.attacks.wording import Wording
from shaketable.chance import Draws
from shaketable.errors import check_within
from shaketable.learners.plan import Imitated
from shaketable.text.words import spans
from shaketable.types import Case, Check, Consult, Doc, Steps

if TYPE_CHECKING:
    from shaketable.rankers.nets.gradients import Flip, Gradients


@dataclass(frozen=True, kw_only=True)
class HotFlip:
    """A trigger of a few words in front of the document, chosen by the gradients of a surrogate.

    It has `length` words, gone through in `rounds`; at each place the `tries` best words of the surrogate's vocabulary
    are tried. `rivals`, `surrogate`, `top` and `pairs` are as in the recipe wsra.
    """

    length: int = 5
    rounds: int = 2
    tries: int = 5
    rivals: int = 100
    surrogate: str = SURROGATE
    top: int = 10
    pairs: bool = False
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_within("hotflip", self, length=(1, 100), rounds=(1, 100), tries=(1, 1000), rivals=(1, 10_000))

    def open(self, knowledge: Knowledge) -> Triggers:
        from shaketable.rankers.nets.gradients import Gradients

        net = surrogate(knowledge, self.surrogate, Imitated(self.top, self.pairs)).net
        return Triggers(self, Gradients(net), checks(self.constraints, knowledge))


class Triggers:
    """The search of the module, for each of many documents."""

    def __init__(self, recipe: HotFlip, gradients: Gradients, checks: Sequence[Check]):
        self.recipe = recipe
        self.gradients = gradients
        self.checks = checks

    def steps(self, case: Case, draws: Draws) -> Steps:
        words = self._begin(case.doc, draws)
        best = case.places
        behind = len(spans(case.doc.title))
        for _ in range(self.recipe.rounds if words else 0):
            before = list(words)
            for i in range(len(words)):
                wanted: dict[str, float] = {}
                for contest in contests(replace(case, doc=triggered(case.doc, words)), self.recipe.rivals):
                    flips = yield Consult(self._flips, (contest, behind + i))
                    for flip in flips:
                        wanted[flip.word] = min(wanted.get(flip.word, 0.0), flip.change)
                flipped = {
                    triggered(case.doc, [*words[:i], word, *words[i + 1 :]]): word
                    for word in sorted(wanted, key=lambda word: (wanted[word], word))[: self.recipe.tries]
                }
                for doc, places in (yield from try_all(self.checks, case, list(flipped))):
                    if case.goal.worth(places) > case.goal.worth(best):
                        words[i], best = flipped[doc], places
            if words == before:
                return  # another round would ask the same

    def _begin(self, doc: Doc, draws: Draws) -> list[str]:
        """Words of the document that the surrogate reads as one token each, over and over if they are few."""
        known = [word for word in Wording(doc).places if self.gradients.one_token(word)]
        if not known:
            return []
        shuffled = draws.shuffled(known)
        return [shuffled[i % len(shuffled)] for i in range(self.recipe.length)]

    def _flips(self, questions: Sequence[tuple[Any, int]]) -> list[list[Flip]]:
        texts, places = [contest for contest, _ in questions], [[place] for _, place in questions]
        answers = self.gradients.flips(texts, places, self.recipe.tries)
        return [answer[place] for answer, (_, place) in zip(answers, questions, strict=True)]


def triggered(doc: Doc, words: Sequence[str]) -> Doc:
    """The document with a trigger in front of its body.

    >>> triggered(Doc("a red boat"), ["tidal", "power"]).body
    'tidal power a red boat'
    """
    return replace(doc, body=" ".join(filter(None, [*words, doc.body])))
