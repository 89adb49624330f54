"""The texts of hand_tagged.txt, and how far a linguistic tool agrees with them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from shaketable.nlp.parser import Parsed, Parser, Span, Token, find_offsets

PATH = Path(__file__).with_name("hand_tagged.txt")


def read() -> list[tuple[str, Parsed]]:
    """Each text with what a hand says of it."""
    found: list[tuple[str, Parsed]] = []
    for block in PATH.read_text().split("\n== ")[1:]:
        lines = block.strip().splitlines()[1:]
        tokens: list[Token] = []
        sentences: list[Span] = []
        chunks: list[Span] = []
        for line in lines[1::2]:
            start, opened = len(tokens), -1
            for item in line.split():
                if item[0] == "[":
                    opened = len(tokens)
                text, tag, *lemma = item.strip("[]").split("_")
                tokens.append(Token(text, lemma[0] if lemma else text if tag == "PROPN" else text.lower(), tag))
                if item[-1] == "]":
                    chunks.append(Span(opened, len(tokens)))
            sentences.append(Span(start, len(tokens)))
        found.append((" ".join(lines[::2]), Parsed(tuple(tokens), tuple(sentences), tuple(chunks))))
    return found


class Agreement(NamedTuple):
    """Shares of tokens with the right tag and the right lemma; F1 of sentences' ends and of noun chunks."""

    tags: float
    lemmas: float
    sentences: float
    chunks: float


def agreement(language: Parser, wrong: list[str] | None = None) -> Agreement:
    """Return the agreement of a parser with the hand-made tags; `wrong` collects the errors."""
    right = read()
    tags = lemmas = total = 0
    ends, phrases = [0, 0], [0, 0]
    for (text, hand), tool in zip(right, language.parse([text for text, _ in right]), strict=True):
        places = dict(zip(find_offsets(text, tool.tokens), tool.tokens, strict=True))
        for place, token in zip(find_offsets(text, hand.tokens), hand.tokens, strict=True):
            found = places.get(place)
            total += 1
            tags += found is not None and found.tag == token.tag
            lemmas += found is not None and found.lemma == token.lemma
            if wrong is not None and found != token:
                wrong.append(f"{token} {found and found[1:]}: {text[max(0, place.start - 25) : place.end + 25]}")
        for pair, spans in ((ends, "sentences"), (phrases, "chunks")):
            ours, theirs = _places(text, hand, spans), _places(text, tool, spans)
            if spans == "sentences":
                ours, theirs = {(0, end) for _, end in ours}, {(0, end) for _, end in theirs}
            elif wrong is not None:
                wrong += [
                    f"chunk {'missed' if p in ours else 'wrong'}: {text[p[0] : p[1]]}" for p in sorted(ours ^ theirs)
                ]
            pair[0] += 2 * len(ours & theirs)
            pair[1] += len(ours) + len(theirs)
    return Agreement(tags / total, lemmas / total, ends[0] / ends[1], phrases[0] / phrases[1])


def _places(text: str, parsed: Parsed, spans: str) -> set[tuple[int, int]]:
    where = find_offsets(text, parsed.tokens)
    return {(where[span.start].start, where[span.end - 1].end) for span in getattr(parsed, spans)}
