"""Words that give way to synonyms, by what the target's lists tell alone."""

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
        check_ranges("greedy", self, words=(1, 10_000))
        SYNONYMS.build(self.synonyms)

    def open(self, knowledge: AttackerKnowledge) -> SynonymSearch:
        source: SynonymSource = SYNONYMS.build(self.synonyms)
        source.lookup("word")  # read it now: a file that is missing is one error, not one for each document
        return SynonymSearch(source, self.words, open_constraints(self.constraints, knowledge))


@dataclass(frozen=True, eq=False)
class SynonymSearch:
    """Greedy substitution with a source of synonyms at hand."""

    source: SynonymSource
    max_words: int
    checks: Sequence[ConstraintCheck] = ()

    def steps(self, case: AttackCase, rng: ItemRandom) -> AttackSteps:
        yield from replace_words(self.checks, case, self._find_rewrites, self.max_words)

    def _find_rewrites(self, word: str) -> list[Rewrite]:
        return [partial(match_case, synonym) for synonym in self.source.lookup(word)]


def describe_synonym_sources(recipes: Iterable[str]) -> Iterator[str]:
    """Say of each recipe which synonyms it found on this machine, where its source has something to say."""
    for recipe in dict.fromkeys(recipes):
        if source := getattr(RECIPES.build(recipe), "synonyms", ""):
            note = getattr(SYNONYMS.build(source), "note", "")
            if note:
                yield f"{recipe}: {note}."
