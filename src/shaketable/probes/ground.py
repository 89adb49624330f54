"""What probes draw from: a collection, some of its queries, a linguistic tool, the index's tokeniser, a seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from shaketable.text.language import Language, Parsed
from shaketable.text.tokens import Tokenizer
from shaketable.types import Collection, Doc, Run


@dataclass(frozen=True, slots=True)
class JudgedDoc:
    """A document that was judged for a query."""

    qid: str
    query: str
    docno: str
    doc: Doc
    grade: int


@dataclass(frozen=True, eq=False)
class Ground:
    """What probes draw from. `lists` is a first stage's run, for probes that also look at what nobody judged."""

    collection: Collection
    qids: Sequence[str]
    language: Language
    tokenizer: Tokenizer
    seed: int = 0
    lists: Run = field(default_factory=dict)
    _parsed: dict[str, Parsed] = field(default_factory=dict, repr=False)

    @cached_property
    def judged(self) -> Mapping[str, tuple[JudgedDoc, ...]]:
        """query id -> its judged documents, in the order of their ids; queries without any are left out."""
        rows = {qid: tuple(self._judged(qid)) for qid in self.qids}
        return {qid: found for qid, found in rows.items() if found}

    def _judged(self, qid: str) -> Iterator[JudgedDoc]:
        text = self.collection.queries[qid].text
        for docno, grade in sorted(self.collection.qrels.get(qid, {}).items()):
            if docno in self.collection.docs:
                yield JudgedDoc(qid, text, docno, self.collection.docs[docno], grade)

    def parse(self, text: str) -> Parsed:
        """What the linguistic tool says of a text; each distinct text is read once."""
        if text not in self._parsed:
            self.read([text])
        return self._parsed[text]

    def read(self, texts: Iterable[str]) -> None:
        """Let the linguistic tool read many texts at once, which is faster than one by one."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._parsed]
        self._parsed.update(zip(fresh, self.language.parse(fresh), strict=True))
