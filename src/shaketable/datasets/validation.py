"""Validation of collections, runs and the installation."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator, Sequence, ValuesView
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import nan
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Collection, Corpus, Qrels, Run, rank_docnos
from shaketable.core.extras import CORE_EXTRA, format_install_command, installed_version, list_extra_libraries
from shaketable.core.home import home_folder

Severity = Literal["error", "warning", "ok"]

MAX_EXAMPLES = 3
TOP_DOCUMENTS = 10
TOLERATED_SHARE = 0.05
"""The tolerated share of unjudged documents in the top, and of tied documents in a list."""


@dataclass(frozen=True)
class ValidationCheck:
    """The outcome of one check: count, total, examples and advice.

    An error means that the collection or run cannot be used. A check with severity "ok" has no advice.
    """

    check: str
    severity: Severity
    count: int
    total: int
    examples: tuple[str, ...] = ()
    advice: str = ""


@dataclass(frozen=True)
class CollectionStatistics:
    """The size of a collection: the numbers of paper 000, Table 1.

    Words are separated by white space. Relevant documents are counted over the judged queries. A mean over nothing is
    NaN.
    """

    queries: int
    judged_queries: int
    documents: int
    words_per_document: float
    relevant_per_query: float

    def format_rows(self) -> dict[str, str]:
        """Return the formatted numbers by name."""
        return {
            "queries": f"{self.queries:,}",
            "judged queries": f"{self.judged_queries:,}",
            "documents": f"{self.documents:,}",
            "words in a document, on average": f"{self.words_per_document:,.1f}",
            "relevant documents of a judged query, on average": f"{self.relevant_per_query:,.1f}",
        }


def compute_statistics(collection: Collection) -> CollectionStatistics:
    """Return the statistics of a collection, in one pass over the documents.

    >>> from shaketable.datasets.sample import read_sample
    >>> compute_statistics(read_sample()).format_rows()["documents"]
    '384'
    """
    words = sum(len(doc.text.split()) for _, doc in collection.docs.items())
    relevant = [sum(grade > 0 for grade in grades.values()) for grades in collection.qrels.values()]
    return CollectionStatistics(
        len(collection.queries),
        len(relevant),
        len(collection.docs),
        words / len(collection.docs) if len(collection.docs) else nan,
        sum(relevant) / len(relevant) if relevant else nan,
    )


def validate_collection(collection: Collection) -> list[ValidationCheck]:
    """Check a collection in one pass over the documents, with eight bytes of memory per document."""
    return list(_check_collection(collection))


def validate_run(run: Run, qrels: Qrels) -> list[ValidationCheck]:
    """Check a run against judgements; without judgements, check only the run."""
    return list(_check_run(run, qrels))


def validate_installation() -> list[ValidationCheck]:
    """Check the libraries of each extra and the cache folder."""
    return list(_check_installation())


def _check_installation() -> Iterator[ValidationCheck]:
    for extra, name in ((extra, name) for extra, names in list_extra_libraries().items() for name in names):
        if number := installed_version(name):
            yield ValidationCheck(f"{name} {number}", "ok", 0, 0)
        else:
            advice = format_install_command(extra) if extra != CORE_EXTRA else "install shaketable again"
            yield ValidationCheck(
                f"{name} is not installed", "error" if extra == CORE_EXTRA else "warning", 0, 0, (), advice
            )
    try:
        home_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home_folder()):
            yield ValidationCheck(f"the folder {home_folder()} can be written to", "ok", 0, 0)
    except OSError as error:
        advice = f"set SHAKETABLE_HOME to a folder that you can write to ({error.strerror})"
        yield ValidationCheck(f"the folder {home_folder()} cannot be written to", "error", 0, 0, (), advice)


def _check_collection(collection: Collection) -> Iterator[ValidationCheck]:
    docs, queries, qrels = collection.docs, collection.queries, collection.qrels
    yield _report_required("documents", len(docs), "a collection needs documents")
    yield _report_required("queries", len(queries), "a collection needs queries")
    yield from _check_texts(docs)
    empty = [qid for qid, query in queries.items() if not query.text.strip()]
    yield _report_ids("empty queries", empty, len(queries), "remove them, because no ranker can answer an empty query")

    unjudged = [qid for qid in queries if qid not in qrels]
    yield _report_ids(
        "queries without judgements", unjudged, len(queries), "they are left out of the measures of effectiveness"
    )
    unanswered = [qid for qid, grades in qrels.items() if not any(grade > 0 for grade in grades.values())]
    advice = "every ranker scores 0 on them; remove them, as most evaluations do"
    yield _report_ids("judged queries without a relevant document", unanswered, len(qrels), advice)
    yield from _check_dangling_ids("judged", qrels, collection)
    yield from _check_dangling_ids("candidate", collection.candidates, collection)
    if collection.candidates:
        for finding in _check_run(collection.candidates, qrels):
            yield replace(finding, check=f"candidates: {finding.check}")


def _check_dangling_ids(what: str, lists: Run | Qrels, collection: Collection) -> Iterator[ValidationCheck]:
    """Report ids in judgements or candidates that are not in the collection."""
    if lists:
        qids = [qid for qid in lists if qid not in collection.queries]
        advice = "they are ignored; if this affects all queries, the file belongs to another collection"
        yield _report_ids(
            f"{what} queries that the collection does not have", qids, len(lists), advice, fatal=len(qids) == len(lists)
        )
        named = {docno for scores in lists.values() for docno in scores}
        docnos = sorted(docno for docno in named if docno not in collection.docs)
        advice = "rankers cannot find them; if this affects all documents, the two files write ids differently"
        yield _report_ids(
            f"{what} documents that the collection does not have",
            docnos,
            len(named),
            advice,
            fatal=len(docnos) == len(named),
        )


def _check_texts(docs: Corpus) -> Iterator[ValidationCheck]:
    empty: list[str] = []
    blank = 0
    hashes = array("Q")
    for docno, doc in docs.items():
        if text := doc.text.strip():
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            hashes.append(int.from_bytes(digest, "little"))
        else:
            hashes.append(0)
            blank += 1
            if len(empty) < MAX_EXAMPLES:
                empty.append(docno)
    yield _report_count(
        "empty documents", blank, len(docs), empty, "rankers cannot find them; remove them, or add their texts"
    )

    repeated = _find_repeated(np.array(hashes, np.uint64))
    wanted = set(repeated[:MAX_EXAMPLES].tolist())
    examples = [docno for place, docno in enumerate(docs) if place in wanted] if wanted else []
    advice = "copies have equal scores, and perhaps only one copy is judged; keep one"
    yield _report_count("documents with the text of an earlier document", len(repeated), len(docs), examples, advice)


def _find_repeated(hashes: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the sorted positions of texts that repeat an earlier text; hash 0 means an empty text."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    again = np.flatnonzero((ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)) + 1
    return np.sort(order[again])


def _check_run(run: Run, qrels: Qrels) -> Iterator[ValidationCheck]:
    lists = {qid: _to_float32(scores.values()) for qid, scores in run.items() if scores}
    total = sum(map(len, lists.values()))
    yield _report_required("documents in the run", total, "a run needs lists of documents")

    broken = [qid for qid, scores in lists.items() if not np.isfinite(scores).all()]
    advice = "NaN and infinite scores cannot be sorted; find out why the ranker returns them"
    yield _report_ids("queries with scores that are not finite", broken, len(lists), advice, fatal=True)

    longer = {qid: scores for qid, scores in lists.items() if len(scores) > 1}
    constant = [qid for qid, scores in longer.items() if (scores == scores[0]).all()]
    advice = "the order of such a list comes from the ids alone"
    check = "queries whose documents all have the same score"
    yield _report_ids(check, constant, len(longer), advice, fatal=len(constant) == len(longer))

    tied = {qid: count for qid, scores in lists.items() if (count := _count_tied(scores))}
    worst = sorted(tied, key=lambda qid: -tied[qid] / len(lists[qid]))
    advice = "their order comes from the ids, not from the ranker"
    yield _report_count(
        "documents with the same score as another document of their list",
        sum(tied.values()),
        total,
        worst,
        advice,
        TOLERATED_SHARE,
    )
    if qrels:
        yield from _check_judged(run, qrels)


def _check_judged(run: Run, qrels: Qrels) -> Iterator[ValidationCheck]:
    """Report the overlap of a run and judgements, and the unjudged documents in the top."""
    shared = [qid for qid, scores in run.items() if scores and qid in qrels]
    advice = "the run and the judgements have no query in common; check that both write ids in the same way"
    yield _report_required("judged queries in the run", len(shared), advice)
    missing = [qid for qid in qrels if not run.get(qid)]
    yield _report_ids("judged queries that the run does not have", missing, len(qrels), "each of them counts as zero")
    extra = [qid for qid in run if qid not in qrels]
    yield _report_ids("queries of the run that are not judged", extra, len(run), "they are left out")

    tops = {
        qid: rank_docnos(run[qid])[:TOP_DOCUMENTS]
        for qid in shared
        if np.isfinite(_to_float32(run[qid].values())).all()
    }
    unjudged = {qid: count for qid, top in tops.items() if (count := sum(d not in qrels[qid] for d in top))}
    worst = sorted(unjudged, key=lambda qid: -unjudged[qid])
    advice = "they count as not relevant, which underestimates good rankers; judge them, or compare with care"
    total = sum(map(len, tops.values()))
    yield _report_count(
        f"unjudged documents in the top {TOP_DOCUMENTS}", sum(unjudged.values()), total, worst, advice, TOLERATED_SHARE
    )


def _to_float32(scores: ValuesView[float]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # a score beyond 32 bits becomes infinite and is reported
        return np.fromiter(scores, np.float64, len(scores)).astype(np.float32)


def _count_tied(scores: NDArray[np.float32]) -> int:
    """Return the number of documents that share their score with another document of the list."""
    counts = np.unique(scores, return_counts=True)[1]
    return int(counts[counts > 1].sum())


def _report_required(check: str, there: int, advice: str) -> ValidationCheck:
    """Return an error if the count is 0."""
    return ValidationCheck(check, "ok" if there else "error", there, there, advice="" if there else advice)


def _report_ids(check: str, found: Sequence[str], total: int, advice: str, fatal: bool = False) -> ValidationCheck:
    return _report_count(check, len(found), total, found, advice, fatal=fatal)


def _report_count(
    check: str,
    count: int,
    total: int,
    examples: Sequence[str],
    advice: str,
    tolerated: float = 0.0,
    fatal: bool = False,
) -> ValidationCheck:
    """Return a warning, or an error if fatal, if the count exceeds the tolerated share."""
    severity: Severity = "ok" if count <= tolerated * total else "error" if fatal else "warning"
    return ValidationCheck(
        check, severity, count, total, tuple(examples[:MAX_EXAMPLES]), "" if severity == "ok" else advice
    )
