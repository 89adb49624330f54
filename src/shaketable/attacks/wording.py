"""The words of a document, numbered through title and body, and the same document with other words in their places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from shaketable.text.words import like, spans
from shaketable.types import Doc


@dataclass(frozen=True)
class Wording:
    """A document as words; what stands between them stays as it is.

    >>> wording = Wording(Doc("The boat, a red boat!", title="Boats"))
    >>> wording.words
    ('Boats', 'The', 'boat', 'a', 'red', 'boat')
    >>> wording.put({0: "ships", 5: "ship"})
    Doc(body='The boat, a red ship!', title='Ships', url='')
    """

    doc: Doc

    @cached_property
    def _spans(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        return spans(self.doc.title), spans(self.doc.body)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """As they are spelled."""
        texts = zip((self.doc.title, self.doc.body), self._spans, strict=True)
        return tuple(text[start:end] for text, parts in texts for start, end in parts)

    @cached_property
    def places(self) -> dict[str, tuple[int, ...]]:
        """Each word in lower case, and the numbers of its occurrences, in the order of the text."""
        found: dict[str, list[int]] = {}
        for number, word in enumerate(self.words):
            found.setdefault(word.lower(), []).append(number)
        return {word: tuple(numbers) for word, numbers in found.items()}

    def put(self, changes: Mapping[int, str], as_is: bool = False) -> Doc:
        """The document with other words at these numbers, in the case of the words that go; or spelled as they are.

        An empty word takes the space before it along.
        """
        title, body = self._spans
        fields, number = [], 0
        for text, parts in ((self.doc.title, title), (self.doc.body, body)):
            pieces, last = [], 0
            for start, end in parts:
                if number in changes:
                    new = changes[number]
                    before = text[last:start] if new else text[last:start].rstrip(" ")
                    pieces += [before, new if as_is or not new else like(new, text[start:end])]
                    last = end
                number += 1
            fields.append("".join(chain(pieces, [text[last:]])))
        return replace(self.doc, title=fields[0], body=fields[1])
