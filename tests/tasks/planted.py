"""Collections in which what a ranker learns is known: by which rule the relevant one of a query's four documents is."""

from __future__ import annotations

from collections.abc import Mapping

from shaketable.core.documents import Collection, Doc, Query
from shaketable.datasets.corpus import MemoryCorpus

SHORT, LONG = "short", "long"
FILLER = "bark root leaf twig seed cone moss fern".split()


def make_planted_collection(
    name: str, rules: Mapping[str, str], queries: int = 30, train: int = 0, title: bool = False
) -> Collection:
    """Queries of several kinds, each a word of its own that four documents have, of four lengths.

    By its rule the shortest or the longest of them is relevant, and no other. With `train`, so many queries of each
    kind are the split train and all others the split test. Documents have a title that says nothing where one is asked
    for.
    """
    docs: dict[str, Doc] = {}
    asked: dict[str, Query] = {}
    qrels: dict[str, dict[str, int]] = {}
    splits: dict[str, list[str]] = {"train": [], "test": []}
    for number, (kind, rule) in enumerate(rules.items()):
        for i in range(queries):
            qid, word = f"{name}-{kind}-{i:02}", f"{name}{chr(97 + number)}{chr(97 + i // 26)}{chr(97 + i % 26)}x"
            asked[qid] = Query(word, kind)
            for size in range(4):
                # docnos that say nothing of the length, for ties are broken by them
                docno = f"{(size * 7 + i * 3) % 4}-{name}-{kind}-{i:02}-{size}"
                body = " ".join([word, *FILLER[: 2 * size]])
                docs[docno] = Doc(body, title=FILLER[i % 8] if title else "")
                if size == (0 if rule == SHORT else 3):
                    qrels[qid] = {docno: 1}
            splits["train" if i < train else "test"].append(qid)
    named = {split: tuple(qids) for split, qids in splits.items() if qids} if train else {}
    return Collection(name, MemoryCorpus(docs), asked, qrels, named)
