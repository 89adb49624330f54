"""Rules that judge whether a variation is valid: it belongs to its category and asks for the same information.

The rules approximate human judgement. Misspellings and orderings are valid by construction, as in paper 004. The
thresholds of the other categories were fitted to that paper's labels for ANTIQUE and to our own labels, and tested on
TREC DL 2019 and on further labels of our own (`evidence/_validity.py`). A verdict depends only on the case and on the
evidence given to `Validity`. `rankers.similarity.build_validity_judge` collects all evidence available on this machine
and in a collection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

from shaketable.nlp.bigrams import Bigrams
from shaketable.nlp.edit_distance import damerau_levenshtein
from shaketable.nlp.fixed_phrases import find_capitalised_name, find_fixed_phrase
from shaketable.nlp.pos_context import FUNCTION_WORDS, find_pos_in_context, lookup_pos
from shaketable.nlp.unicode_words import fold_text
from shaketable.nlp.words import word_set
from shaketable.transforms.categories import (
    MISSPELLING,
    MIXED_LANGUAGES,
    NATURALITY,
    ORDERING,
    PARAPHRASING,
    SCRIPT,
)
from shaketable.transforms.content_words import SharedContent, WordSwap, find_swap, split_words, split_written_words

Similarity: TypeAlias = Callable[[list[str], list[str]], NDArray[Any]]
"""A function from two lists of texts of equal length to the cosine similarity of each pair."""

THESAURUS, SIMILARITY, BIGRAMS = "thesaurus", "similarity", "bigrams"
"""Sources of evidence. A source that a transform uses must not judge the transform's texts."""

NON_FINAL_WORDS = word_set(
    """
    a an the my your his her its our their this these those i we he she they and or but if because than that as of
    at by for with about between into from to in on is are was were be been has had do does did can could may might
    must should will would
    """
)
"""Words that cannot end a query unless they end the original."""

NOT_JUDGED = "Not judged:"
"""The beginning of the reason for a variation that is neither known to be valid nor known to be invalid."""
NO_EVIDENCE_REASON = (
    f"{NOT_JUDGED} only the thesaurus that it comes from supports it; "
    "install the extra 'neural', or name the collection, to have it judged."
)
NO_PHRASES_REASON = (
    f"{NOT_JUDGED} it may break the phrase {{old!r}}; name the collection, whose texts show whether {{new!r}} is used."
)


class ValidityCase(NamedTuple):
    """A variation to judge, with its category and the sources used to make it, which are excluded as evidence.

    `written` is the query as its author wrote it, whose capital letters show names; by default, the original.
    """

    category: str
    original: str
    text: str
    sources: tuple[str, ...] = ()
    written: str = ""


class _WordJudgement(NamedTuple):
    """The verdict of the word rules, and whether the encoder must judge as well."""

    reason: str
    needs_encoder: bool = False


@dataclass(frozen=True)
class Validity:
    """Validity rules for variations by category, with the evidence they use.

    misspelling    at most `max_letter_changes` insertions, deletions, substitutions and swaps
    ordering       exactly the words of the original
    naturality     at least `min_kept_share` of the content words, at most `max_added_words` others, and no end in the
                   middle of a phrase
    paraphrasing   no word twice that was there once; a replaced word keeps its part of speech and breaks no name and
                   no fixed phrase; at least `min_expressed_share` of the content words, in themselves or by a synonym
    script         the words of the original in other characters: the same letters after transliteration
    mixed-languages
                   all words of the original, and one more
    translation    valid, because a person wrote it for the collection

    A name is a run of capitalised words. A fixed phrase is one of the bundled list, or two neighbouring content words
    that `bigrams` counts at least `min_phrase_count` times, in a share of at least `min_phrase_share` of all
    occurrences of the rarer word; such a pair is broken if the new pair never occurs.

    The `similarity` function, if given, judges paraphrases and the naturality variations that the words reject. A
    query of n words with similarity s to its original has drifted by (1 - s) n words. The limit is `max_drift_words`,
    or `max_supported_drift_words` for a paraphrase that the words support.

    The sources of a transform do not judge its texts. A thesaurus swap is judged by the other evidence. Without
    bigrams, the similarity function can reject it, but can approve it only if the word has no content word or "of"
    beside it: otherwise the swap may break a phrase that the list lacks, and is not judged. Without a similarity
    function as well, no thesaurus swap is judged.
    """

    max_letter_changes: int = 2
    min_kept_share: float = 0.5
    max_added_words: int = 1
    min_expressed_share: float = 0.4
    min_phrase_count: int = 3
    min_phrase_share: float = 0.05
    max_drift_words: float = 0.7
    max_supported_drift_words: float = 1.5
    similarity: Similarity | None = None
    bigrams: Bigrams | None = None

    def judge(self, category: str, original: str, text: str, sources: tuple[str, ...] = (), written: str = "") -> str:
        """Return the reason why a variation is invalid or not judged, or "" if it is valid."""
        return self.judge_all([ValidityCase(category, original, text, sources, written)])[0]

    def judge_all(self, cases: Sequence[ValidityCase]) -> list[str]:
        """Return the result of `judge` for each case, with a single call of the similarity function."""
        said = [self._judge_by_words(case) for case in cases]
        asked = [
            i
            for i, case in enumerate(cases)
            if said[i].needs_encoder and self.similarity is not None and SIMILARITY not in case.sources
        ]
        whys = [one.reason for one in said]
        if asked and self.similarity is not None:
            alike = self.similarity([cases[i].original for i in asked], [cases[i].text for i in asked])
            for i, value in zip(asked, alike, strict=True):
                whys[i] = self._judge_by_encoder(cases[i], said[i].reason, float(value))
        for i, case in enumerate(cases):
            if said[i].needs_encoder and THESAURUS in case.sources:
                whys[i] = self._complete_swap_judgement(case, whys[i], i in asked)
        return whys

    def _complete_swap_judgement(self, case: ValidityCase, why: str, encoded: bool) -> str:
        """Return the reason for a thesaurus swap, given the reason so far and whether the encoder judged it."""
        if self._select_bigrams(case):
            return why if encoded else ""
        if not encoded:
            return NO_EVIDENCE_REASON if why else ""
        swap = None if why else find_swap(case.original, case.text)
        phrase = _find_unknown_phrase(swap) if swap else None
        return NO_PHRASES_REASON.format(old=phrase[0], new=phrase[1]) if phrase else why

    def _judge_by_encoder(self, case: ValidityCase, why: str, similarity: float) -> str:
        moved = round(
            (1 - similarity) * len(split_words(case.original)), 3
        )  # rounded, because an encoder's last digits depend on the batch
        limit = self.max_drift_words if why else self.max_supported_drift_words
        return (
            ""
            if moved <= limit
            else f"{why} Its meaning changes by {moved:.2f} words; at most {limit} are allowed.".strip()
        )

    def _judge_by_words(self, case: ValidityCase) -> _WordJudgement:
        category, original, text = case[:3]
        if not text.strip():
            return _WordJudgement("The text is empty.")
        if text.split() == original.split():
            return _WordJudgement("It is the original.")
        if category == MISSPELLING:
            distance = damerau_levenshtein(original, text, self.max_letter_changes)
            return _WordJudgement(
                f"More than {self.max_letter_changes} letters are changed."
                if distance > self.max_letter_changes
                else ""
            )
        if category == ORDERING:
            same = Counter(text.split()) == Counter(original.split())
            return _WordJudgement("" if same else "Its words are not those of the original.")
        if category == NATURALITY:
            why = self._judge_naturality(original, text)
            return _WordJudgement(why, bool(why) and split_words(text) not in ([], split_words(original)))
        if category == PARAPHRASING:
            return self._judge_paraphrase(case)
        if category == SCRIPT:
            return _WordJudgement(
                "" if is_same_script_variant(original, text) else "Its letters are not the original's."
            )
        if category == MIXED_LANGUAGES:
            lost = Counter(original.split()) - Counter(text.split())
            added = Counter(text.split()) - Counter(original.split())
            return _WordJudgement(
                "" if not lost and added.total() == 1 else "It is not the original and one more word."
            )
        return _WordJudgement("")  # translations, and the categories that change the meaning

    def _judge_naturality(self, original: str, text: str) -> str:
        shared = SharedContent(original, text)
        if shared.kept_share < self.min_kept_share:
            return f"It loses {_format_word_list(shared.lost_words)}."
        if len(shared.unrelated_words) > self.max_added_words:
            return f"It adds {_format_word_list(shared.unrelated_words)}."
        last, end = split_words(original)[-1:], split_words(text)[-1:]
        return (
            f"It ends in the middle of a phrase, in {end[0]!r}."
            if end != last and end and end[0] in NON_FINAL_WORDS
            else ""
        )

    def _judge_paraphrase(self, case: ValidityCase) -> _WordJudgement:
        original, text, sources = case.original, case.text, case.sources
        if not split_words(text):
            return _WordJudgement("It has no words.")
        if split_words(original) == split_words(text):
            return _WordJudgement("Only case and punctuation differ from the original.")
        shared = SharedContent(original, text, THESAURUS not in sources)
        if shared.repeated_words:
            return _WordJudgement(f"It repeats {_format_word_list(shared.repeated_words)}.")
        if (swap := find_swap(original, text)) and (
            flaw := self._find_flaw(swap, self._select_bigrams(case))
            or _find_broken_phrase(swap, case.written or original)
        ):
            return _WordJudgement(flaw)
        if shared.unrelated_words:
            return _WordJudgement(
                f"No word of the original is known to mean {_format_word_list(shared.unrelated_words, 'or')}.",
                needs_encoder=True,
            )
        return _WordJudgement(
            f"It loses {_format_word_list(shared.unreplaced_words)}."
            if shared.expressed_share < self.min_expressed_share
            else "",
            needs_encoder=True,
        )

    def _select_bigrams(self, case: ValidityCase) -> Bigrams | None:
        """Return the bigram counts, or None if the variation was made with them."""
        return None if BIGRAMS in case.sources else self.bigrams

    def _find_flaw(self, swap: WordSwap, bigrams: Bigrams | None) -> str:
        """Return the reason why the new words do not fit the neighbours of the old word, or ""."""
        parts = (
            lookup_pos(swap.new_words[0])
            if len(swap.new_words) == 1 and swap.old_word not in FUNCTION_WORDS
            else frozenset()
        )
        if parts and not parts & find_pos_in_context(swap.words, swap.position):
            return f"The word {swap.new_words[0]!r} has another part of speech than {swap.old_word!r} in this query."
        for old, new in _iterate_changed_pairs(swap) if bigrams else ():
            assert bigrams is not None
            count = bigrams.count_pair(*old)
            if count >= max(
                self.min_phrase_count, self.min_phrase_share * min(map(bigrams.count_word, old))
            ) and not bigrams.count_pair(*new):
                return f"The collection has the phrase {' '.join(old)!r} but not {' '.join(new)!r}."
        return ""


def is_same_script_variant(original: str, text: str) -> bool:
    """Return True if two texts are the same but for width, case, accents and script.

    >>> is_same_script_variant("Größe", "Groesse"), is_same_script_variant("рынок", "rynok")
    (True, True)
    >>> is_same_script_variant("рынок", "rynka")
    False
    """
    if fold_text(original) == fold_text(text):
        return True
    return bool({*_list_romanisations(original)} & {*_list_romanisations(text)})


def _list_romanisations(text: str) -> Iterator[str]:
    from shaketable.transforms.languages import GERMAN, romanise

    for language in ("", GERMAN):
        yield fold_text(romanise(text, language))


def _find_broken_phrase(swap: WordSwap, written: str) -> str:
    """Return the reason why a swap breaks a name of the query as written or a phrase of the bundled list, or ""."""
    changed = [*swap.words[: swap.position], *swap.new_words, *swap.words[swap.position + 1 :]]
    phrase = find_fixed_phrase(swap.words, swap.position)
    if phrase and not find_fixed_phrase(changed, swap.position):
        return f"It breaks the fixed phrase {phrase!r}."
    words = split_written_words(written)
    name = find_capitalised_name(words, swap.position) if len(words) == len(swap.words) else ""
    return f"It breaks the name {name!r}." if name else ""


def _find_unknown_phrase(swap: WordSwap) -> tuple[str, str] | None:
    """Return the words before and after a swap that may be a phrase, or None: a content word beside the swapped one.

    The preposition "of" joins words as in "treaty of versailles".
    """
    for old, new in _iterate_changed_pairs(swap):
        return " ".join(old), " ".join(new)
    left, right = swap.words[: swap.position], swap.words[swap.position + 1 :]
    if right[:1] == ["of"] and len(right) > 1:
        return " ".join((swap.old_word, *right[:2])), " ".join((*swap.new_words, *right[:2]))
    if left[-1:] == ["of"] and len(left) > 1:
        return " ".join((*left[-2:], swap.old_word)), " ".join((*left[-2:], *swap.new_words))
    return None


def _iterate_changed_pairs(swap: WordSwap) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the content-word pairs that the old word forms with its neighbours, each with its new pair."""
    if swap.position:
        left = swap.words[swap.position - 1]
        if FUNCTION_WORDS.isdisjoint((left, swap.old_word)):
            yield (left, swap.old_word), (left, swap.new_words[0])
    if swap.position + 1 < len(swap.words):
        right = swap.words[swap.position + 1]
        if FUNCTION_WORDS.isdisjoint((swap.old_word, right)):
            yield (swap.old_word, right), (swap.new_words[-1], right)


def _format_word_list(texts: Sequence[str], conjunction: str = "and") -> str:
    """Return the words as an enumeration: a, b and c."""
    *head, last = map(repr, texts)
    return f"{', '.join(head)} {conjunction} {last}" if head else last
