"""A greedy recipe that replaces words by synonyms, guided by the target's ranks alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from shaketable.attacks.constraints import open_constraints
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.word_replacement import Rewrite, replace_words
from shaketable.core.attack_types import AttackCase, AttackSteps, ConstraintCheck
from shaketable.core.errors import check_parameter, check_ranges
from shaketable.core.registries import RECIPES, SYNONYMS
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.synonyms import SynonymSource
from shaketable.nlp.words import match_case

WordOrder = Literal["deletion", "query"]


@dataclass(frozen=True)
class GreedySynonyms:
    """Replace words of title and body by synonyms, one by one, while the rank improves.

    The importance of a word is the gain of the goal when all its occurrences are deleted. The recipe takes the words by
    importance. It tries all synonyms of a word at once, in the case of the word, at all its occurrences. It keeps the
    best one if the rank strictly improves. At most `words` words differ from the original (Hamming distance). There is
    no surrogate: every trial queries the target. With `order` "query", no trial is spent on importance: words with a
    synonym in the query come first, then the others in the order of the text, which suits a small budget.

    The search is that of Jin, Jin, Zhou, Szolovits. Is BERT really robust? AAAI 2020, as in Morris et al. TextAttack.
    EMNLP 2020, on the ranks of Wu et al. PRADA: practical black-box adversarial attacks against neural ranking models.
    TOIS 2023.
    """

    words: int = 20
    synonyms: str = "thesaurus"
    constraints: tuple[str, ...] = ()
    order: WordOrder = "deletion"

    def __post_init__(self) -> None:
        check_ranges("greedy", self, words=(1, 10_000))
        check_parameter("greedy", self.order in get_args(WordOrder), "order", "deletion or query", self.order)
        SYNONYMS.build(self.synonyms)

    def open(self, knowledge: AttackerKnowledge) -> SynonymSearch:
        source: SynonymSource = SYNONYMS.build(self.synonyms)
        source.lookup("word")  # read it now, so that a missing file is one error and not one for each document
        return SynonymSearch(source, self.words, open_constraints(self.constraints, knowledge), self.order)


@dataclass(frozen=True, eq=False)
class SynonymSearch:
    """A greedy synonym substitution with an opened source of synonyms."""

    source: SynonymSource
    max_words: int
    checks: Sequence[ConstraintCheck] = ()
    order: WordOrder = "deletion"

    def steps(self, case: AttackCase, rng: ItemRandom) -> AttackSteps:
        if self.order == "deletion":
            yield from replace_words(
                self.checks, case, lambda word: _make_rewrites(self.source.lookup(word)), self.max_words
            )
            return
        asked = {term for listing in case.lists for term in _analyze(listing.query)}

        def matches_query(text: str) -> bool:
            return not asked.isdisjoint(_analyze(text))

        def find_rewrites(word: str) -> list[Rewrite]:
            return _make_rewrites(sorted(self.source.lookup(word), key=lambda synonym: not matches_query(synonym)))

        yield from replace_words(
            self.checks,
            case,
            find_rewrites,
            self.max_words,
            is_preferred=lambda word: not matches_query(word) and any(map(matches_query, self.source.lookup(word))),
        )


def _make_rewrites(synonyms: Iterable[str]) -> list[Rewrite]:
    return [partial(match_case, synonym) for synonym in synonyms]


_analyze = Analyzer()


def describe_synonym_sources(recipes: Iterable[str]) -> Iterator[str]:
    """Yield a note on the synonyms of each recipe, if its source has one."""
    for recipe in dict.fromkeys(recipes):
        if source := getattr(RECIPES.build(recipe), "synonyms", ""):
            note = getattr(SYNONYMS.build(source), "note", "")
            if note:
                yield f"{recipe}: {note}."
