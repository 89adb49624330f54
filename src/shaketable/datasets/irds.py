"""Collections of ir_datasets (https://ir-datasets.com), which downloads missing data."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shaketable.core.documents import Collection, Doc, Query, fingerprint
from shaketable.core.errors import BadInput, MissingExtra, quote_value
from shaketable.datasets.corpus import StreamedCorpus
from shaketable.datasets.limits import check_id, check_ids, check_qrels, check_run

BODY_FIELDS = ("text", "body", "abstract", "contents", "passage")
QUERY_FIELDS = ("text", "title", "query")
"""The fields that may hold the text, in order of preference; the fallback is the library's `default_text()`."""


@dataclass(frozen=True, eq=False)
class IrdsCorpus(StreamedCorpus):
    """A corpus of ir_datasets, read from its document store."""

    dataset: Any = field(repr=False)
    store: Any = field(repr=False)
    count: int
    fingerprint: str

    @classmethod
    def open(cls, dataset: Any, *version: str) -> IrdsCorpus:
        """Return the corpus with its document count; some collections know the count only after a first lookup."""
        store = dataset.docs_store()
        if (count := dataset.docs_count()) is None:
            store.get_many([""])
            count = dataset.docs_count()
        count = sum(1 for _ in dataset.docs_iter()) if count is None else int(count)
        return cls(dataset, store, count, fingerprint("irds", *version, count))

    def __getitem__(self, docno: str) -> Doc:
        return _to_doc(self.store.get(docno))

    def __iter__(self) -> Iterator[str]:
        return map(_get_docno, self.dataset.docs_iter())

    def __len__(self) -> int:
        return self.count

    def iter_items(self) -> Iterator[tuple[str, Doc]]:
        return ((_get_docno(doc), _to_doc(doc)) for doc in self.dataset.docs_iter())


def read_irds(name: str, split: str | None = None) -> Collection:
    """Return the collection with that id; a split is appended to the id, as in "beir/scifact/test"."""
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise MissingExtra("data", f"the collection 'irds:{name}'") from error

    full = name if split is None else f"{name}/{split}"
    try:
        dataset = ir_datasets.load(full)
    except KeyError as error:
        near = difflib.get_close_matches(full, list(ir_datasets.registry), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "https://ir-datasets.com lists the ids"
        raise BadInput(f"ir_datasets has no collection {quote_value(full)}; {hint}") from error
    if not (dataset.has_docs() and dataset.has_queries()):
        raise BadInput(
            f"irds:{full} has no {'queries' if dataset.has_docs() else 'documents'}; choose a part that has them"
        )
    try:
        docs = IrdsCorpus.open(dataset, ir_datasets.docs_parent_id(full), ir_datasets.__version__)
        queries = {str(query.query_id): _to_query(query) for query in dataset.queries_iter()}
        qrels: dict[str, dict[str, int]] = {}
        for judgement in dataset.qrels_iter() if dataset.has_qrels() else ():
            qrels.setdefault(str(judgement.query_id), {})[str(judgement.doc_id)] = int(judgement.relevance)
        candidates: dict[str, dict[str, float]] = {}
        for scored in dataset.scoreddocs_iter() if dataset.has_scoreddocs() else ():
            candidates.setdefault(str(scored.query_id), {})[str(scored.doc_id)] = float(scored.score)
    except (OSError, RuntimeError, ModuleNotFoundError) as error:
        why = next((part for part in error.args if isinstance(part, str)), type(error).__name__)
        raise BadInput(
            f"ir_datasets cannot get {quote_value(full)} ({why}): it looked in its cache ($IR_DATASETS_HOME or "
            "~/.ir_datasets) and on the network; you can use a BEIR folder of the same data instead"
        ) from error
    check_ids(queries, "query id")
    check_qrels(qrels)
    check_run(candidates)
    splits = {} if split is None else {split: tuple(queries)}
    return Collection(full, docs, queries, qrels, splits, candidates)


def _get_docno(doc: Any) -> str:
    docno = str(doc.doc_id)
    check_id(docno, "document id")
    return docno


def _to_doc(doc: Any) -> Doc:
    body = _get_first_text(doc, BODY_FIELDS)
    if body is None:  # the library's default text may already include the title
        return Doc(str(doc.default_text()), url=_get_first_text(doc, ("url",)) or "")
    return Doc(body, _get_first_text(doc, ("title",)) or "", _get_first_text(doc, ("url",)) or "")


def _to_query(query: Any) -> Query:
    text = _get_first_text(query, QUERY_FIELDS)
    return Query(
        str(query.default_text()) if text is None else text, description=_get_first_text(query, ("description",)) or ""
    )


def _get_first_text(thing: Any, names: tuple[str, ...]) -> str | None:
    """Return the first of these fields that holds a string."""
    values = (getattr(thing, name, None) for name in names)
    return next((value for value in values if isinstance(value, str)), None)
