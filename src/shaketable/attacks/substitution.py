"""Words that give way to synonyms, by what the target's lists tell alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from shaketable.attacks.constraints import checks
from shaketable.attacks.knowledge import Knowledge
from shaketable.attacks.replacing import Rewrite, replace_words
from shaketable.chance import Draws
from shaketable.errors import check_within
from shaketable.registry import SYNONYMS
from shaketable.text.synonyms import Synonyms
from shaketable.text.words import like
from shaketable.types import Case, Check, Steps


@dataclass(frozen=True)
class Greedy:
    """Words of title and body are replaced by synonyms, one after the other, as long as the place gets better.

    The importance of a word is what the goal gains when all its occurrences are deleted. The words are then taken in
    the order of importance; all synonyms of a word are tried at once, in the case of the word, at all its occurrences,
    and the best stays if the document then stands strictly better than before. At most `words` words differ from the
    original (Hamming distance), all others and what stands between them stay as they are. There is no surrogate: every
    trial is a question to the target.

    The search is that of Jin, Jin, Zhou, Szolovits. Is BERT really robust? AAAI 2020, as in Morris et al. TextAttack.
    EMNLP 2020, on the places of Wu et al. PRADA: practical black-box adversarial attacks against neural ranking models.
    TOIS 2023.
    """

    words: int = 20
    synonyms: str = "thesaurus"
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_within("greedy", self, words=(1, 10_000))
        SYNONYMS.build(self.synonyms)

    def open(self, knowledge: Knowledge) -> SynonymSearch:
        source: Synonyms = SYNONYMS.build(self.synonyms)
        source.of("word")  # read it now: a file that is missing is one error, not one for each document
        return SynonymSearch(source, self.words, checks(self.constraints, knowledge))


@dataclass(frozen=True, eq=False)
class SynonymSearch:
    """Greedy substitution with a source of synonyms at hand."""

    source: Synonyms
    words: int
    checks: Sequence[Check] = ()

    def steps(self, case: Case, draws: Draws) -> Steps:
        yield from replace_words(self.checks, case, self._rewrites, self.words)

    def _rewrites(self, word: str) -> list[Rewrite]:
        return [partial(like, synonym) for synonym in self.source.of(word)]
