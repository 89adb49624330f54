"""HotFlip triggers: a few words before a document, selected for their effect on its rank.

The initial trigger consists of words of the document. In each round and at each position, the search looks for the word
that decreases the loss of the document most, to the first order (HotFlip):

    argmin_c  ∂L/∂e_i · (E[c] - e_i)

The best candidates are tried on the target, and the best one is kept if it beats all earlier ones. The gradients come
from a surrogate, as in `attacks.wsra`.

Ebrahimi, Rao, Lowd, Dou. HotFlip. ACL 2018. Wallace, Feng, Kandpal, Gardner, Singh. Universal adversarial triggers for
attacking and analyzing NLP. EMNLP 2019. Wang, Lyu, Anand. BERT rankers are brittle. ICTIR 2022, which applies them to
documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shaketable.attacks.constraints import open_constraints
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.search import try_all
from shaketable.attacks.surrogate import DEFAULT_SURROGATE, build_rank_contests, train_surrogate
from shaketable.attacks.tokenized_document import TokenizedDocument
from shaketable.core.attack_types import AttackCase, AttackSteps, ConstraintCheck, ModelQuery
from shaketable.core.documents import Doc
from shaketable.core.errors import check_ranges
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.words import find_word_spans
from shaketable.training.plan import ImitationSource
from shaketable.transforms.insertion import prepend_text

if TYPE_CHECKING:
    from shaketable.rankers.neural.gradients import Gradients, WordFlip


@dataclass(frozen=True, kw_only=True)
class HotFlip:
    """Prepend a trigger of a few words selected by the gradients of a surrogate.

    The trigger has `length` words and is optimised for `rounds` rounds. At each position the `tries` best words of the
    surrogate's vocabulary are tried. `rivals`, `surrogate`, `top` and `pairs` are as in the recipe wsra.
    """

    length: int = 5
    rounds: int = 2
    tries: int = 5
    rivals: int = 100
    surrogate: str = DEFAULT_SURROGATE
    top: int = 10
    pairs: bool = False
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("hotflip", self, length=(1, 100), rounds=(1, 100), tries=(1, 1000), rivals=(1, 10_000))

    def open(self, knowledge: AttackerKnowledge) -> Triggers:
        from shaketable.rankers.neural.gradients import Gradients

        net = train_surrogate(knowledge, self.surrogate, ImitationSource(self.top, self.pairs)).net
        return Triggers(self, Gradients(net), open_constraints(self.constraints, knowledge))


class Triggers:
    """The trigger search for one document at a time."""

    def __init__(self, recipe: HotFlip, gradients: Gradients, checks: Sequence[ConstraintCheck]):
        self.recipe = recipe
        self.gradients = gradients
        self.checks = checks

    def steps(self, case: AttackCase, rng: ItemRandom) -> AttackSteps:
        words = self._draw_initial_trigger(case.doc, rng)
        best = case.ranks
        behind = len(find_word_spans(case.doc.title))
        for _ in range(self.recipe.rounds if words else 0):
            before = list(words)
            for i in range(len(words)):
                wanted: dict[str, float] = {}
                for contest in build_rank_contests(
                    replace(case, doc=prepend_trigger(case.doc, words)), self.recipe.rivals
                ):
                    flips = yield ModelQuery(self._find_flips, (contest, behind + i))
                    for flip in flips:
                        wanted[flip.word] = min(wanted.get(flip.word, 0.0), flip.loss_change)
                flipped = {
                    prepend_trigger(case.doc, [*words[:i], word, *words[i + 1 :]]): word
                    for word in sorted(wanted, key=lambda word: (wanted[word], word))[: self.recipe.tries]
                }
                for doc, places in (yield from try_all(self.checks, case, list(flipped))):
                    if case.goal.utility(places) > case.goal.utility(best):
                        words[i], best = flipped[doc], places
            if words == before:
                return  # another round would repeat the same requests

    def _draw_initial_trigger(self, doc: Doc, rng: ItemRandom) -> list[str]:
        """Draw words of the document that are single tokens of the surrogate, repeated if there are few."""
        known = [word for word in TokenizedDocument(doc).occurrences if self.gradients.is_single_token(word)]
        if not known:
            return []
        shuffled = rng.permutation(known)
        return [shuffled[i % len(shuffled)] for i in range(self.recipe.length)]

    def _find_flips(self, questions: Sequence[tuple[Any, int]]) -> list[list[WordFlip]]:
        texts, places = [contest for contest, _ in questions], [[place] for _, place in questions]
        answers = self.gradients.find_flips(texts, places, self.recipe.tries)
        return [answer[place] for answer, (_, place) in zip(answers, questions, strict=True)]


def prepend_trigger(doc: Doc, words: Sequence[str]) -> Doc:
    """Return the document with a trigger before its body.

    >>> prepend_trigger(Doc("a red boat"), ["tidal", "power"]).body
    'tidal power a red boat'
    """
    return replace(doc, body=prepend_text(doc.body, " ".join(words)))
