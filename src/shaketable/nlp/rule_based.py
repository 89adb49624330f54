"""A rule-based parser: fast and deterministic, without a model or a library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shaketable.nlp.lemmatizer import lemmatize
from shaketable.nlp.parser import Parsed, Span, Token
from shaketable.nlp.sentences import tokenize_sentences
from shaketable.nlp.tagger import APPROXIMATION_WORDS, tag_words, to_universal_tags

VERSION = 1
"""The version of the rules; raise it when a rule changes the output."""


@dataclass(frozen=True)
class RuleBasedParser:
    """A rule-based parser of English; less accurate than a model.

    >>> parsed = RuleBasedParser().parse(["The old dog didn't bark. It slept."])[0]
    >>> parsed.list_words(), len(parsed.sentences), [" ".join(parsed.list_words(chunk)) for chunk in parsed.chunks]
    (['The', 'old', 'dog', 'did', "n't", 'bark', '.', 'It', 'slept', '.'], 2, ['The old dog', 'It'])
    """

    @property
    def name(self) -> str:
        return f"light {VERSION}"

    def parse(self, texts: Sequence[str]) -> list[Parsed]:
        return [_parse_text(text) for text in texts]


class _TokenCache(dict[tuple[str, str, str], Token]):
    """A cache of (text, part of speech, universal tag) -> token, because lemmatising is slow."""

    def __missing__(self, key: tuple[str, str, str]) -> Token:
        if len(self) > 200_000:
            self.clear()
        text, part, tag = key
        token = self[key] = Token(text, lemmatize(text, part), tag)
        return token


_TOKEN_CACHE = _TokenCache()


def _parse_text(text: str) -> Parsed:
    tokens: list[Token] = []
    sentences: list[Span] = []
    chunks: list[Span] = []
    for words in tokenize_sentences(text):
        start = len(tokens)
        parts = tag_words(words)
        tokens += map(_TOKEN_CACHE.__getitem__, zip(words, parts, to_universal_tags(words, parts), strict=True))
        sentences.append(Span(start, len(tokens)))
        chunks += (Span(start + a, start + b) for a, b in find_noun_chunks(words, parts))
    return Parsed(tuple(tokens), tuple(sentences), tuple(chunks))


NOUN_TAGS = frozenset(("NN", "NS", "NP"))
PARTICIPLE_PHRASE_OPENERS = frozenset(("IN", "PC", "VB", "VZ", "VD", "CC"))
"""Tags before a noun phrase that begins with a participle; after an auxiliary the participle is the verb."""
MAX_CHUNK_TOKENS = 40  # tokens of a noun phrase
PRONOUN_TAGS = frozenset(("PP", "PO", "DP", "WP", "EX"))


def find_noun_chunks(words: Sequence[str], parts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the noun phrases up to their noun: a determiner, numbers, adjectives, nouns; or a pronoun.

    >>> list(find_noun_chunks("a very big dog saw her".split(), ["DT", "RB", "JJ", "NN", "VD", "PO"]))
    [(0, 4), (5, 6)]
    """
    i, last = 0, len(parts)
    while i < last:
        part = parts[i]
        if part in PRONOUN_TAGS:
            if part != "EX":
                yield i, i + 1
            i += 1
        elif (end := _find_phrase_end(words, parts, i)) > i:
            yield i, end
            i = end
        else:
            i += 1


def _find_phrase_end(words: Sequence[str], parts: Sequence[str], start: int) -> int:
    """Return the end of the noun phrase at `start`; `start` if there is none."""
    last = min(len(parts), start + MAX_CHUNK_TOKENS)
    i, end = start, start
    while i < last:
        part = parts[i]
        following = parts[i + 1] if i + 1 < last else ""
        if part in NOUN_TAGS:
            i += 1
            end = i
            if following == "GE":  # the phrase continues if a noun follows
                i += 1
        elif (
            (part in ("DT", "PS") and (i == start or (parts[i - 1] in ("PD", "DT", "GE") and end == start)))
            or (part in ("JJ", "CD", "PD", "SY") and not start < end == i)  # none of these directly follows a noun
            or (part in ("VN", "VG") and i > start and following in ("NN", "NS", "JJ"))
            or (part == "VN" and (i == 0 or parts[i - 1] in PARTICIPLE_PHRASE_OPENERS) and following in ("NN", "NS"))
            or (part == "RB" and following in ("JJ", "VN") and i > start and end < i)
            or (part == "RB" and following == "CD" and words[i].lower() in APPROXIMATION_WORDS and end == start)
            or (part == "CC" and parts[i - 1] == "JJ" and following == "JJ" and end < i)
            or (words[i] == "-" and i > start and following in (*NOUN_TAGS, "JJ", "VN", "CD", "VG", "IN", "RB"))
            or (words[i] == "," and parts[i - 1] == "JJ" and following == "JJ" and _adjectives_then_noun(parts, i + 1))
        ):
            i += 1
        else:
            break
    return end


def _adjectives_then_noun(parts: Sequence[str], i: int) -> bool:
    return next((part for part in parts[i : i + MAX_CHUNK_TOKENS] if part != "JJ"), "") in NOUN_TAGS
