"""Naturality: between the language of questions and that of keywords."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from shaketable.chance import Draws
from shaketable.edit.question import AUXILIARIES, CORE, QUESTION_WORDS, cores, frame, is_question
from shaketable.edit.taxonomy import NATURALITY
from shaketable.text.stopwords import ENGLISH
from shaketable.text.words import NLTK, PARTS, word_set
from shaketable.types import Context


@dataclass(frozen=True)
class RemoveStopWords:
    """Remove all stop-words of NLTK's list; it does not apply where there are none, or where nothing would be left."""

    category: ClassVar[str] = NATURALITY

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        words = text.split()
        kept = [word for word in words if CORE[word] not in NLTK]
        return " ".join(kept) if 0 < len(kept) < len(words) else None


TELLING = word_set("no not without before after between against under over during vs versus off per near")
"""Function words without which a keyword query asks for something else."""
DROPPED = (ENGLISH | NLTK) - TELLING

MEASURED = word_set("many much long far old often fast big tall deep high heavy")
"""After "how", these ask for a quantity and stay."""


@dataclass(frozen=True)
class ToKeywords:
    """Turn a question into keywords: drop its frame, auxiliaries and function words; keep order, negation and quantity.

    "can you tell me how many calories are in a banana?" becomes "how many calories banana".
    """

    category: ClassVar[str] = NATURALITY

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        if not is_question(text):
            return None
        plain = cores(text)
        start = frame(plain)
        amount = {i for i, (a, b) in enumerate(pairwise(plain)) if a == "how" and b in MEASURED}
        kept = [
            i for i, word in enumerate(plain) if i >= start and (word not in DROPPED or i in amount or i - 1 in amount)
        ]
        words = text.split()
        keywords = " ".join(words[i] for i in kept).rstrip("?!. ")
        topical = any(plain[i] not in DROPPED for i in kept)
        return keywords if topical and keywords != " ".join(words) else None


PLURALS = word_set(
    """
    symptoms benefits types examples uses effects signs advantages disadvantages ingredients parts functions
    characteristics properties risks rules laws requirements
    """
)
HEADS = {
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
    **{plural: (f"what are the {plural} of {{}}",) for plural in PLURALS},
}
"""What a query is about, by its first or last word, and how one asks for it."""

TASKS = word_set(
    """
    add apply boil build buy calculate change choose clean connect convert cook create cut delete draw find fix get
    grow install learn make measure open paint plant play prepare prevent print reduce remove repair replace reset
    save sell send set start stop train treat unlock update use wash write
    """
)
"""A query that begins with one of these asks how to do it."""
PHRASAL = AUXILIARIES | QUESTION_WORDS
"""Keywords have none of these."""


@dataclass(frozen=True)
class ToQuestion:
    """Turn keywords into a question, the question word guessed from what they ask for.

    "flu symptoms" becomes "what are the symptoms of flu", "convert miles to km" "how do you convert miles to km".
    """

    category: ClassVar[str] = NATURALITY

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        plain = cores(text)
        if is_question(text) or not PHRASAL.isdisjoint(plain):
            return None
        words = text.rstrip("?!. ").split()
        if not any(PARTS[word] and core not in DROPPED for word, core in zip(words, plain, strict=False)):
            return None
        ways, rest = _asked(words, plain[: len(words)])
        return draws.choice(ways).replace("{}", " ".join(rest))


def _asked(words: list[str], plain: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """Ways to ask for it, with a gap, and the words that go into the gap."""
    for sign in ("vs", "vs.", "versus"):
        if sign in plain[1:-1]:
            middle = plain.index(sign, 1)
            return ("what is the difference between {}",), [*words[:middle], "and", *words[middle + 1 :]]
    if plain[0] == "define" and words[1:]:
        return HEADS["definition"], words[1:]
    if plain[0] in HEADS and plain[1:2] in (["of"], ["for"]) and words[2:]:
        return HEADS[plain[0]], words[2:]
    if plain[-1] in HEADS and words[:-1]:
        return HEADS[plain[-1]], words[:-1]
    if plain[0] in TASKS and words[1:]:
        return ("how do you {}", "how do i {}", "how can i {}"), words
    head = plain[plain.index("of") - 1] if "of" in plain[1:-1] else plain[-1]
    verb = "are" if head.endswith("s") and not head.endswith(("ss", "us", "is")) else "is"
    the = "the " if "of" in plain[1:-1] and plain[0] not in ("the", "a", "an") else ""
    return (f"what {verb} {the}{{}}", "what should i know about {}"), words


@dataclass(frozen=True)
class ChangeCase:
    """Write the query in capitals, in lower case, with a capital first, or With Capitals Everywhere."""

    category: ClassVar[str] = NATURALITY

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        words = text.split()
        plain = " ".join(words)
        titled = " ".join([word[:1].upper() + word[1:] for word in words])
        return _another(plain, [plain.upper(), plain.lower(), plain.capitalize(), titled], draws)


@dataclass(frozen=True)
class ChangePunctuation:
    """Add or remove the mark at the end, put quotes around the query, or remove all punctuation; the words stay."""

    category: ClassVar[str] = NATURALITY

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        words = text.split()
        plain = " ".join(words)
        if not any(c.isalnum() for c in plain):
            return None
        bare = plain.rstrip("?!. ")
        stripped = [found.core if (found := PARTS[word]) else word for word in words]
        ends = [f"{bare}?"] if is_question(plain) else [f"{bare}.", f"{bare}!"]
        return _another(plain, [bare, " ".join(stripped), f'"{bare}"', *ends], draws)


def _another(text: str, choices: list[str], draws: Draws) -> str | None:
    """One of the choices that is not the text itself."""
    others = [choice for choice in dict.fromkeys(choices) if choice != text and choice]
    return draws.choice(others) if others else None
