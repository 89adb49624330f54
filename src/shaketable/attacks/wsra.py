"""The word substitution ranking attack: replaces a few words by synonyms to improve the rank of a document.

For a document d of a query's list, and a net with accessible gradients:

    1. I(w) = ‖∂L/∂E[w]‖ is the importance of a word, L = Σ_{d'} max(0, 1 - s(q, d) + s(q, d')) over the other documents
    2. projected gradient descent moves the word vectors from E to E', where the loss is smaller
    3. the replacement of an important word is its synonym c with the vector nearest to E'[w]:
       argmax_c cos(E[c], E'[w])
    4. word by word, most important first, and occurrence by occurrence, the replacement is tried on the target,
       and kept if the rank is strictly better than ever before

Steps 1 to 3 query a net; step 4 queries the ranker under attack, which reveals only ranks. The net is a surrogate
trained on the order of the target's lists for other queries or, in the white-box variant, the target itself.

Wu, Zhang, Guo, de Rijke, Fan, Cheng. PRADA: practical black-box adversarial attacks against neural ranking models. ACM
Transactions on Information Systems 41(4), 2023; with the settings of paper 003, section 4.1, which uses this attack.
Three details differ from PRADA's code. Gradients are taken at the document's own words (`shared` restores PRADA's way).
Each attack has its own list. At most `words` words differ from the original, although an occurrence that did not help
may stay replaced while the next one is tried.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shaketable.attacks.constraints import open_constraints
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.search import search_greedily
from shaketable.attacks.surrogate import DEFAULT_SURROGATE, build_rank_contests, train_surrogate
from shaketable.attacks.tokenized_document import TokenizedDocument
from shaketable.core.attack_types import AttackCase, AttackSteps, ConstraintCheck, ModelQuery, RankQuery
from shaketable.core.documents import Doc
from shaketable.core.errors import check_ranges
from shaketable.core.registries import SYNONYMS
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.synonyms import SynonymSource
from shaketable.training.plan import ImitationSource

if TYPE_CHECKING:
    from shaketable.rankers.neural.gradients import Gradients
    from shaketable.rankers.neural.net import Net

Vectors = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class _WSRASettings:
    """The settings that both variants share.

    words       maximum number of words that differ from the original (paper 003: 20; PRADA: 10)
    synonyms    a source of synonyms; paper 003's is "counterfitted", PRADA's "counterfitted(threshold=0.7, count=50)"
    steps       steps of gradient descent
    epsilon     total length of these steps
    rivals      number of top documents of the list in the loss
    shared      gradients as in PRADA's code: of the embedding table that the query and other documents also use
    """

    words: int = 20
    synonyms: str = "thesaurus"
    steps: int = 3
    epsilon: float = 45.0
    rivals: int = 100
    shared: bool = False
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("wsra", self, words=(1, 1000), steps=(1, 1000), epsilon=(1e-6, 1e6), rivals=(1, 10_000))

    def _build_attack(self, knowledge: AttackerKnowledge, net: Net) -> WordSubstitution:
        from shaketable.rankers.neural.gradients import Gradients

        gradients = Gradients(net, shared=self.shared)
        source: SynonymSource = SYNONYMS.build(self.synonyms)
        return WordSubstitution(self, gradients, source, open_constraints(self.constraints, knowledge))


@dataclass(frozen=True, kw_only=True)
class WSRA(_WSRASettings):
    """Replace words by synonyms that a surrogate of the target selects; the target's ranks decide.

    `surrogate` is the learner of a net; `top` and `pairs` select its training data from a list
    (`training.plan.ImitationSource`).
    """

    surrogate: str = DEFAULT_SURROGATE
    top: int = 10
    pairs: bool = False

    def open(self, knowledge: AttackerKnowledge) -> WordSubstitution:
        return self._build_attack(
            knowledge, train_surrogate(knowledge, self.surrogate, ImitationSource(self.top, self.pairs)).net
        )


@dataclass(frozen=True, kw_only=True)
class WhiteWSRA(_WSRASettings):
    """Replace words by synonyms that the target's own gradients select (white box)."""

    def open_net(self, knowledge: AttackerKnowledge, net: Net) -> WordSubstitution:
        return self._build_attack(knowledge, net)


class WordSubstitution:
    """Steps 1 to 4 of the module for one document at a time."""

    def __init__(
        self, settings: _WSRASettings, gradients: Gradients, synonyms: SynonymSource, checks: Sequence[ConstraintCheck]
    ):
        self.settings = settings
        self.gradients = gradients
        self.synonyms = synonyms
        self.checks = checks
        self._compute_word_gradients = partial(gradients.analyze, steps=settings.steps, epsilon=settings.epsilon)

    def steps(self, case: AttackCase, rng: ItemRandom) -> AttackSteps:
        replacements = yield from self.choose_replacements(case)
        tokenized = TokenizedDocument(case.doc)
        occurrences = tokenized.occurrences

        def replace(word: str, changes: dict[int, str]) -> list[tuple[dict[int, str], Doc]]:
            """Return the document with the first occurrence replaced, the first two, and so on, within the limit."""
            remaining = self.settings.words - len(changes)
            grown = [
                changes | dict.fromkeys(occurrences[word][: n + 1], replacements[word])
                for n in range(min(remaining, len(occurrences[word])))
            ]
            return [(more, tokenized.substitute(more)) for more in grown]

        unchanged: dict[int, str] = {}
        yield from search_greedily(self.checks, case, unchanged, [partial(replace, word) for word in replacements])

    def choose_replacements(self, case: AttackCase) -> Generator[RankQuery | ModelQuery, Any, dict[str, str]]:
        """Return the replacement of each important word that has synonyms, most important first."""
        importance: dict[str, float] = {}
        moved: dict[str, Vectors] = {}
        for contest in build_rank_contests(case, self.settings.rivals):
            study = yield ModelQuery(self._compute_word_gradients, contest)
            for word, value in study.importance.items():
                importance[word] = importance.get(word, 0.0) + value
            for word, vector in study.perturbed_vectors.items():
                moved[word] = moved[word] + vector if word in moved else vector
        ranked = sorted(filter(importance.get, importance), key=lambda w: -importance[w])  # ties keep text order
        candidates = {word: self.synonyms.lookup(word) for word in ranked[: self.settings.words] if word in moved}
        nearest = {word: self._find_nearest(moved[word], some) for word, some in candidates.items()}
        return {word: best for word, best in nearest.items() if best}

    def _find_nearest(self, vector: Vectors, words: Sequence[str]) -> str:
        """Return the word with the highest cosine to the vector, or "" if the net knows none of the words."""
        rows = self.gradients.look_up_vectors(words)
        sizes = np.linalg.norm(rows, axis=1)
        known = np.flatnonzero(sizes > 0)  # excludes NaN, the vector of a word unknown to the net
        if not len(known):
            return ""
        return words[int(known[np.argmax(rows[known] @ vector / sizes[known])])]
