"""Transforms from questions to keywords and from keywords to questions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.nlp.words import NLTK_STOPWORDS, TOKEN_PARTS, word_set
from shaketable.transforms.categories import NATURALITY
from shaketable.transforms.questions import (
    AUXILIARIES,
    QUESTION_WORDS,
    count_frame_words,
    is_question,
    split_core_words,
)

MEANINGFUL_FUNCTION_WORDS = word_set(
    "no not without before after between against under over during vs versus off per near"
)
"""Function words that change the meaning of a keyword query."""
DROPPABLE_WORDS = (ENGLISH_STOPWORDS | NLTK_STOPWORDS) - MEANINGFUL_FUNCTION_WORDS

QUANTITY_WORDS = word_set("many much long far old often fast big tall deep high heavy")
"""Words that ask for a quantity after "how" and are kept."""


@dataclass(frozen=True)
class ToKeywords:
    """Turn a question into keywords: drop its frame, auxiliaries and function words; keep order, negation and quantity.

    "can you tell me how many calories are in a banana?" becomes "how many calories banana".
    """

    category: ClassVar[str] = NATURALITY

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        if not is_question(text):
            return None
        plain = split_core_words(text)
        start = count_frame_words(plain)
        amount = {i for i, (a, b) in enumerate(pairwise(plain)) if a == "how" and b in QUANTITY_WORDS}
        kept = [
            i
            for i, word in enumerate(plain)
            if i >= start and (word not in DROPPABLE_WORDS or i in amount or i - 1 in amount)
        ]
        words = text.split()
        keywords = " ".join(words[i] for i in kept).rstrip("?!. ")
        topical = any(plain[i] not in DROPPABLE_WORDS for i in kept)
        return keywords if topical and keywords != " ".join(words) else None


PLURAL_ASPECTS = word_set(
    """
    symptoms benefits types examples uses effects signs advantages disadvantages ingredients parts functions
    characteristics properties risks rules laws requirements
    """
)
QUESTION_TEMPLATES = {
    "definition": ("what is the definition of {}", "what is {}"),
    "meaning": ("what is the meaning of {}", "what does {} mean"),
    "cost": ("how much does {} cost", "what is the cost of {}"),
    "price": ("what is the price of {}", "how much does {} cost"),
    "causes": ("what causes {}", "what are the causes of {}"),
    "cause": ("what causes {}", "what is the cause of {}"),
    "history": ("what is the history of {}",),
    "location": ("where is {}", "what is the location of {}"),
    "address": ("what is the address of {}", "where is {}"),
    "treatment": ("what is the treatment for {}", "how is {} treated"),
    "cure": ("what is the cure for {}", "how is {} cured"),
    "population": ("what is the population of {}",),
    "capital": ("what is the capital of {}",),
    "inventor": ("who invented {}", "who is the inventor of {}"),
    "author": ("who wrote {}", "who is the author of {}"),
    "age": ("how old is {}", "what is the age of {}"),
    "height": ("how tall is {}", "what is the height of {}"),
    "length": ("how long is {}", "what is the length of {}"),
    "date": ("when is {}", "what is the date of {}"),
    "difference": ("what is the difference in {}",),
    **{plural: (f"what are the {plural} of {{}}",) for plural in PLURAL_ASPECTS},
}
"""First or last word of a query -> question templates."""

HOW_TO_VERBS = word_set(
    """
    add apply boil build buy calculate change choose clean connect convert cook create cut delete draw find fix get
    grow install learn make measure open paint plant play prepare prevent print reduce remove repair replace reset
    save sell send set start stop train treat unlock update use wash write
    """
)
"""First words of queries that ask how to do something."""
NON_KEYWORDS = AUXILIARIES | QUESTION_WORDS
"""Words that do not occur in keyword queries."""


@dataclass(frozen=True)
class ToQuestion:
    """Turn keywords into a question and guess the question word from the topic.

    "flu symptoms" becomes "what are the symptoms of flu", "convert miles to km" "how do you convert miles to km".
    """

    category: ClassVar[str] = NATURALITY

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        plain = split_core_words(text)
        if is_question(text) or not NON_KEYWORDS.isdisjoint(plain):
            return None
        words = text.rstrip("?!. ").split()
        if not any(TOKEN_PARTS[word] and core not in DROPPABLE_WORDS for word, core in zip(words, plain, strict=False)):
            return None
        ways, rest = _find_question_templates(words, plain[: len(words)])
        return rng.choice(ways).replace("{}", " ".join(rest))


def _find_question_templates(words: list[str], plain: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return question templates and the words that fill their gap."""
    for sign in ("vs", "vs.", "versus"):
        if sign in plain[1:-1]:
            middle = plain.index(sign, 1)
            return ("what is the difference between {}",), [*words[:middle], "and", *words[middle + 1 :]]
    if plain[0] == "define" and words[1:]:
        return QUESTION_TEMPLATES["definition"], words[1:]
    if plain[0] in QUESTION_TEMPLATES and plain[1:2] in (["of"], ["for"]) and words[2:]:
        return QUESTION_TEMPLATES[plain[0]], words[2:]
    if plain[-1] in QUESTION_TEMPLATES and words[:-1]:
        return QUESTION_TEMPLATES[plain[-1]], words[:-1]
    if plain[0] in HOW_TO_VERBS and words[1:]:
        return ("how do you {}", "how do i {}", "how can i {}"), words
    head = plain[plain.index("of") - 1] if "of" in plain[1:-1] else plain[-1]
    verb = "are" if head.endswith("s") and not head.endswith(("ss", "us", "is")) else "is"
    the = "the " if "of" in plain[1:-1] and plain[0] not in ("the", "a", "an") else ""
    return (f"what {verb} {the}{{}}", "what should i know about {}"), words
