"""A document as words, numbered through title and body, with substitution by number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from shaketable.core.documents import Doc
from shaketable.nlp.words import find_word_spans, match_case
from shaketable.transforms.synonyms import replace_spans


@dataclass(frozen=True)
class TokenizedDocument:
    """A document as words; substitution keeps the text between them.

    >>> wording = TokenizedDocument(Doc("The boat, a red boat!", title="Boats"))
    >>> wording.words
    ('Boats', 'The', 'boat', 'a', 'red', 'boat')
    >>> wording.substitute({0: "ships", 5: "ship"})
    Doc(body='The boat, a red ship!', title='Ships', url='')
    """

    doc: Doc

    @cached_property
    def _spans(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        return find_word_spans(self.doc.title), find_word_spans(self.doc.body)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words as spelled in the document."""
        texts = zip((self.doc.title, self.doc.body), self._spans, strict=True)
        return tuple(text[start:end] for text, parts in texts for start, end in parts)

    @cached_property
    def occurrences(self) -> dict[str, tuple[int, ...]]:
        """Lower-case word -> the numbers of its occurrences, in text order."""
        found: dict[str, list[int]] = {}
        for number, word in enumerate(self.words):
            found.setdefault(word.lower(), []).append(number)
        return {word: tuple(numbers) for word, numbers in found.items()}

    def substitute(self, changes: Mapping[int, str], keep_spelling: bool = False) -> Doc:
        """Replace the words at these numbers, in the case of the old words, or exactly with `keep_spelling`.

        An empty word also removes the spaces before it.
        """
        fields, number = [], 0
        for text, spans in zip((self.doc.title, self.doc.body), self._spans, strict=True):
            new = {span: changes[n] for n, span in enumerate(spans, number) if n in changes}
            if not keep_spelling:
                new = {(start, end): match_case(word, text[start:end]) for (start, end), word in new.items()}
            fields.append(replace_spans(text, new))
            number += len(spans)
        return replace(self.doc, title=fields[0], body=fields[1])
