"""The bundled questions with known answers: each has a relevant text and a text on another topic.

They were written for this project (CC0) and are so easy that a ranker in order answers nearly all of them. They show
whether a ranker works, not how good it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from shaketable.core.documents import Collection, Doc, Query
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.pairs import read_json_objects

BUNDLED_QUESTIONS = Path(__file__).with_name("known_answers.jsonl")


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """A question, a text that answers it, and a text on another topic."""

    query: str
    relevant: str
    irrelevant: str


@lru_cache(maxsize=1)
def read_known_answers() -> tuple[KnownAnswer, ...]:
    """Return the bundled questions.

    >>> len(read_known_answers()), read_known_answers()[0].query
    (40, 'how do bees make honey')
    """
    names = ("query", "relevant", "irrelevant")
    return tuple(
        KnownAnswer(*(str(row[name]) for name in names)) for _, row in read_json_objects(BUNDLED_QUESTIONS, names)
    )


def build_question_collection() -> Collection:
    """Return the questions and their texts as a collection, on which a ranker can be opened."""
    questions = read_known_answers()
    texts = [text for one in questions for text in (one.relevant, one.irrelevant)]
    return Collection(
        "questions with known answers",
        MemoryCorpus({f"d{i}": Doc(text) for i, text in enumerate(texts)}),
        {f"q{i}": Query(one.query) for i, one in enumerate(questions)},
    )
