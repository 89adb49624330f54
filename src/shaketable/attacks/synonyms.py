"""A greedy recipe that replaces words by synonyms, guided by the target's ranks alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from shaketable.attacks.constraints import open_constraints
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.word_replacement import Rewrite, replace_words
from shaketable.core.attack_types import AttackCase, AttackSteps, ConstraintCheck
from shaketable.core.errors import check_ranges
from shaketable.core.registries import RECIPES, SYNONYMS
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.synonyms import SynonymSource
from shaketable.nlp.words import match_case


@dataclass(frozen=True)
class GreedySynonyms:
    """Replace words of title and body by synonyms, one by one, while the rank improves.

    The importance of a word is the gain of the goal when all its occurrences are deleted. The recipe takes the words by
    importance. It tries all synonyms of a word at once, in the case of the word, at all its occurrences. It keeps the
    best one if the rank strictly improves. At most `words` words differ from the original (Hamming distance). There is
    no surrogate: every trial queries the target.

    The search is that of Jin, Jin, Zhou, Szolovits. Is BERT really robust? AAAI 2020, as in Morris et al. TextAttack.
    EMNLP 2020, on the ranks of Wu et al. PRADA: practical black-box adversarial attacks against neural ranking models.
    TOIS 2023.
    """

    words: int = 20
    synonyms: str = "thesaurus"
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("greedy", self, words=(1, 10_000))
        SYNONYMS.build(self.synonyms)

    def open(self, knowledge: AttackerKnowledge) -> SynonymSearch:
        source: SynonymSource = SYNONYMS.build(self.synonyms)
        source.lookup("word")  # read it now, so that a missing file is one error and not one for each document
        return SynonymSearch(source, self.words, open_constraints(self.constraints, knowledge))


@dataclass(frozen=True, eq=False)
class SynonymSearch:
    """A greedy synonym substitution with an opened source of synonyms."""

    source: SynonymSource
    max_words: int
    checks: Sequence[ConstraintCheck] = ()

    def steps(self, case: AttackCase, rng: ItemRandom) -> AttackSteps:
        yield from replace_words(self.checks, case, self._find_rewrites, self.max_words)

    def _find_rewrites(self, word: str) -> list[Rewrite]:
        return [partial(match_case, synonym) for synonym in self.source.lookup(word)]


def describe_synonym_sources(recipes: Iterable[str]) -> Iterator[str]:
    """Yield a note on the synonyms of each recipe, if its source has one."""
    for recipe in dict.fromkeys(recipes):
        if source := getattr(RECIPES.build(recipe), "synonyms", ""):
            note = getattr(SYNONYMS.build(source), "note", "")
            if note:
                yield f"{recipe}: {note}."
