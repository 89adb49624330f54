"""The evidence of a diagnosis: how scores change with roles, templates, order, batch and length of the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from shaketable.core.documents import Slate
from shaketable.core.errors import RankerFailed
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.known_answers import KnownAnswer
from shaketable.rankers.diagnosis.asking import Examiner, make_slate
from shaketable.rankers.diagnosis.questions import AskedQuestions, Numbers, ask_pairs

TEMPLATES = {
    "'query: ' and 'passage: ' (E5)": ("query: {}", "passage: {}"),
    "'Represent this sentence for searching relevant passages: ' (BGE)": (
        "Represent this sentence for searching relevant passages: {}",
        "{}",
    ),
    "'search_query: ' and 'search_document: ' (Nomic)": ("search_query: {}", "search_document: {}"),
    "'<Instruct>', '<Query>' and '<Document>' (Qwen)": (
        "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: {}",
        "<Document>: {}",
    ),
    "'Query: ' and 'Document: ' (monoT5)": ("Query: {}", "Document: {}"),
}
"""The usual templates: name -> the template of the query and of the text."""
MIN_ANSWERED_SHARE = 0.9
"""A ranker in order answers at least this share of the questions."""
LARGER_SHARE = 0.8
"""The share of questions whose margin must be larger in another form; by chance, 32 of 40 have p = 0.0001."""
WEAK_SEPARATION = 2.5
"""The least separation of rankers in order is 3.4 (docs/production.md); below this, templates are tried."""
BATCH_QUESTIONS = 10
LONG_TEXT_WORDS = 250
FILLER_LENGTHS_WORDS = (5, 10, 20, 40, 70, 100, 300, 1000, 3000, 10_000)
"""Words of filler before a sentence that answers the query, to find where a text is truncated."""
FILLER_WORDS = "the weather was mild and the path was long and they said very little on the way".split()
NOISY_QUESTIONS = 5
CLEAR_DIFFERENCE = 0.1
"""A change of order counts if both differences are at least this share of the median margin."""
ROUNDING = 1e-6
"""Relative differences of scores up to this are rounding."""


def separation(margins: Numbers) -> float:
    """Return the mean margin divided by its standard deviation over questions, which no change of scale affects."""
    known = margins[~np.isnan(margins)]
    spread = float(known.std()) if len(known) else 0.0
    return float(known.mean()) / spread if spread else 0.0


@dataclass(frozen=True)
class Exchange:
    """The margins of the questions in another form, compared with the usual form: exchanged roles, or a template."""

    answered: int
    larger: int
    """The questions with a larger margin in the other form."""
    total: int
    usual: float
    """The separation in the usual form."""
    ratio: float
    """The separation in the other form divided by that in the usual form."""

    @property
    def is_better(self) -> bool:
        """True if the separation is weak, and in the other form nearly all margins are larger and it is far better.

        A change of scale alone, such as that of BM25 for shorter texts, increases margins, but not their separation.
        """
        return self.larger >= LARGER_SHARE * self.total and self.ratio >= 2 and self.usual < WEAK_SEPARATION


def compare_margins(usual: Numbers, other: Numbers) -> Exchange:
    """Return the comparison of the margins in another form with those in the usual form."""
    known = ~(np.isnan(usual) | np.isnan(other))
    usual, other = usual[known], other[known]
    below, above = separation(usual), separation(other)
    ratio = above / below if below > 0 else inf if above > 0 else 0.0
    return Exchange(int((other > 0).sum()), int((other > usual).sum()), len(usual), below, ratio)


def exchange_roles(examiner: Examiner, questions: Sequence[KnownAnswer], usual: Numbers) -> Exchange:
    """Send the text as the query and the queries as texts, and compare the margins."""
    exchanged = ask_pairs(examiner, questions, lambda one, other: (one.relevant, one.query, other.query))
    return compare_margins(usual, exchanged)


def ask_usual_pairs(examiner: Examiner, questions: Sequence[KnownAnswer]) -> Numbers:
    """Return the margin of each question between its own relevant text and that of another question."""
    return ask_pairs(examiner, questions, lambda one, other: (one.query, one.relevant, other.relevant))


def find_missing_template(
    examiner: Examiner, questions: Sequence[KnownAnswer], usual: Numbers
) -> tuple[str, Exchange] | None:
    """Return the template with which the ranker answers far better, if there is one."""
    found = []
    for name, (query, text) in TEMPLATES.items():
        compared = compare_margins(usual, ask_pairs(examiner, questions, _make_template(query, text)))
        gained = compared.answered - int((usual > 0).sum())
        if compared.is_better or gained >= 0.2 * len(questions):
            found.append((name, compared))
    return max(found, key=lambda one: (one[1].answered, one[1].ratio), default=None)


def _make_template(query: str, text: str) -> Callable[[KnownAnswer, KnownAnswer], tuple[str, ...]]:
    """Return a function that builds the query and the two texts of a pair with the templates."""
    return lambda one, other: (query.format(one.query), text.format(one.relevant), text.format(other.relevant))


@dataclass(frozen=True)
class Stability:
    """Changes of scores in one list, as shares of the median margin, and of the order of pairs of texts.

    noise         of the same list asked again (95th percentile)
    flips_again   share of pairs of texts whose order changes clearly when the same list is asked again
    flips_order   the same with the list in reverse order
    by_list       change of a text's score when another text of the list is replaced by one of the same length
    by_length     the same when it is replaced by a long text
    by_batch      change between a list and a request with the text alone
    """

    noise: float
    flips_again: float
    flips_order: float
    by_list: float
    by_length: float
    by_batch: float


def measure_stability(examiner: Examiner, asked: AskedQuestions, seed: int) -> Stability:
    """Return how much scores and orders change with the request."""
    scale = float(np.nanmedian(np.abs(asked.margins))) or 1.0
    again: list[float] = []
    flips_again: list[float] = []
    flips_order: list[float] = []
    for i in range(len(asked.questions)):
        first, second, reverse = (asked.get_scores(number, i) for number in range(3))
        if first and second and reverse:
            tables = [np.array([scores[text] for text in first]) for scores in (first, second, reverse)]
            again += np.abs(tables[1] - tables[0]).tolist()
            flips_again.append(_share_of_flips(tables[0], tables[1], CLEAR_DIFFERENCE * scale))
            flips_order.append(_share_of_flips(tables[0], tables[2], CLEAR_DIFFERENCE * scale))
    by_list, by_length, by_batch = _measure_batches(examiner, asked, seed)
    return Stability(
        float(np.percentile(again, 95)) / scale if again else 0.0,
        float(np.mean(flips_again)) if flips_again else 0.0,
        float(np.mean(flips_order)) if flips_order else 0.0,
        by_list / scale,
        by_length / scale,
        by_batch / scale,
    )


def _share_of_flips(before: Numbers, after: Numbers, tolerance: float) -> float:
    """Return the share of pairs of texts that change order by more than the tolerance."""
    upper = np.triu_indices(len(before), 1)
    first, second = (np.subtract.outer(scores, scores)[upper] for scores in (before, after))
    flipped = (first * second < 0) & (np.minimum(np.abs(first), np.abs(second)) > tolerance)
    return float(flipped.mean())


def _measure_batches(examiner: Examiner, asked: AskedQuestions, seed: int) -> tuple[float, float, float]:
    """Return the median of the largest change by another text, by a long text, and by a request with one text."""
    long_text = make_filler(LONG_TEXT_WORDS)
    slates: list[Slate] = []
    for i, question in enumerate(asked.questions[:BATCH_QUESTIONS]):
        rng = make_item_rng(seed, "batch", i)
        others = [one.irrelevant for one in asked.questions if one != question]
        short, second, *rest = sorted(rng.permutation(others)[:6], key=len)
        kept = [question.relevant, question.irrelevant, *rest]
        slates += [make_slate(question.query, [*kept, last]) for last in (short, second, long_text)]
        slates += [make_slate(question.query, [text]) for text in kept[:2]]
    answers = [answer.scores for answer in examiner.ask(slates)]
    changes: list[list[float]] = [[], [], []]
    for start in range(0, len(answers), 5):
        base, changed, longer, relevant, irrelevant = answers[start : start + 5]
        if base is None or changed is None or longer is None or relevant is None or irrelevant is None:
            continue
        alone = np.array([relevant[0], irrelevant[0]])
        if not np.ptp(alone) and np.ptp(base):
            continue  # scores that are normalised over the list depend on it by design
        for change, (one, two) in zip(
            changes, ((base[:-1], changed[:-1]), (base[:-1], longer[:-1]), (base[:2], alone)), strict=True
        ):
            change.append(float(np.abs(one - two).max()))
    by_list, by_length, by_batch = (float(np.median(some)) if some else 0.0 for some in changes)
    return by_list, by_length, by_batch


def make_filler(words: int) -> str:
    """Return a text on no topic with this number of words."""
    return " ".join(FILLER_WORDS[i % len(FILLER_WORDS)] for i in range(words))


@dataclass(frozen=True)
class Truncation:
    """The length at which texts are truncated: `read` words are read, `unread` are too many; 0 if not found.

    `refusal` is the message if longer texts are refused.
    """

    read: int
    unread: int = 0
    refusal: str = ""


def find_truncation(examiner: Examiner, questions: Sequence[KnownAnswer], noise: float) -> Truncation:
    """Find how many words of a text are read: a sentence after so many words of filler changes the score.

    The mean over several questions reduces noise; without noise, one question is enough.
    """
    asked = questions[:NOISY_QUESTIONS] if noise else questions[:1]
    threshold = 2 * noise / len(asked) ** 0.5

    def reads(length: int) -> bool:
        filler, size = make_filler(length), 1.0
        margins: list[float] = []
        for question in asked:
            texts = (f"{filler} {question.relevant}", f"{filler} {question.irrelevant}")
            relevant, irrelevant = examiner.ask_scores(question.query, texts)
            margins.append(float(relevant - irrelevant))
            size = max(size, abs(float(relevant)))
        return bool(abs(np.mean(margins)) > threshold + ROUNDING * size)

    read = 0
    for length in FILLER_LENGTHS_WORDS:
        try:
            if not reads(length):
                break
        except RankerFailed as error:
            return Truncation(read, length, str(error))
        read = length
    else:
        return Truncation(read)
    unread = length
    while unread - read > max(1, read // 10):
        middle = (read + unread) // 2
        read, unread = (middle, unread) if reads(middle) else (read, middle)
    return Truncation(read, unread)
