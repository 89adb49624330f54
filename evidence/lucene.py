"""Lucene's BM25 beside ours, with the same k1, b, stop words and stemmer, and a verdict on Lucene from its URL."""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from pathlib import Path
from socket import socket

import numpy as np

import shaketable as st
from evidence import DATA, Guard, Page, Rows, need_data, prose, table
from evidence._lucene import HOW, Lucene, find_lucene, list_texts
from shaketable.core.documents import Collection, Doc, Run, rank_docnos
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.measures.effectiveness import score_table
from shaketable.measures.rank_distance import RBO
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS

K1, B, TOP = 1.2, 0.75, 10
SPEC = f"bm25(k1={K1}, b={B}, stopwords='english', stemmer='porter')"
COLLECTIONS = ("cranfield", "nfcorpus")
FREE_VALUES = 24
"""The lengths that Lucene stores exactly: up to this number of words."""


def quantise_length(length: int) -> int:
    """Return the length that Lucene keeps of a document: one byte, with three bits of mantissa above 24 words.

    >>> quantise_length(20), quantise_length(100), quantise_length(167)
    (20, 96, 152)
    """
    if length < FREE_VALUES:
        return length
    rest = length - FREE_VALUES
    shift = max(rest.bit_length() - 4, 0)
    return FREE_VALUES + (rest >> shift << shift)


@dataclass(frozen=True)
class ByHand:
    """BM25 with the words of our analyzer, by the formula, with exact lengths or with those of Lucene."""

    terms: Mapping[str, list[str]]

    def score(self, query: str, docno: str, *, quantised: bool) -> float:
        words, length = self.terms[docno], len(self.terms[docno])
        average = self.average
        length = quantise_length(length) if quantised else length
        total = 0.0
        for term in Analyzer()(query):
            if tf := words.count(term):
                df = sum(term in one for one in self.sets)
                idf = log(1 + (len(self.terms) - df + 0.5) / (df + 0.5))
                total += idf * tf / (tf + K1 * (1 - B + B * length / average))
        return total

    @cached_property
    def average(self) -> float:
        return float(np.mean([len(one) for one in self.terms.values()]))

    @cached_property
    def sets(self) -> list[frozenset[str]]:
        return [frozenset(one) for one in self.terms.values()]


def keep_words(collection: Collection) -> Collection:
    """Return a collection whose texts and queries are the words of our analyzer, so that both engines see the same."""
    split = Analyzer(stopwords="none", stemmer="none")
    letters = {docno: " ".join(w for w in split(doc.text) if w.isalpha()) for docno, doc in collection.docs.items()}
    queries = {
        qid: replace(query, text=" ".join(w for w in split(query.text) if w.isalpha()))
        for qid, query in collection.queries.items()
    }
    docs = MemoryCorpus({docno: Doc(text) for docno, text in letters.items()})
    return replace(collection, docs=docs, queries=queries, source="")


def rank_by_both(lucene: Lucene, collection: Collection, folder: Path, name: str) -> tuple[Run, Run]:
    """Return our run and that of Lucene over the judged queries."""
    judged = {qid: query.text for qid, query in collection.queries.items() if qid in collection.qrels}
    queries = {qid: text for qid, text in judged.items() if text.strip()}  # Anserini fails on an empty query
    folder.mkdir(parents=True, exist_ok=True)
    stopped = folder / "stopwords.txt"
    stopped.write_text("\n".join(sorted(ENGLISH_STOPWORDS)) + "\n")
    same = ("-stemmer", "porter", "-stopwords", str(stopped))
    index = lucene.index(list_texts(collection), folder, name, *same)
    theirs = lucene.search(index, queries, "-bm25.k1", str(K1), "-bm25.b", str(B), "-hits", "100", *same)
    ours = RANKERS.build(SPEC).open(collection).search(list(queries.values()), 100)
    return dict(zip(queries, ours, strict=True)), theirs


def compare(collection: Collection, ours: Run, theirs: Run) -> list[str]:
    """Return the agreement of two runs, and the nDCG@10 of each."""
    both = [qid for qid in ours if ours[qid] and theirs.get(qid)]
    tops = [(rank_docnos(ours[qid])[:TOP], rank_docnos(theirs[qid])[:TOP]) for qid in both]
    qrels = {qid: collection.qrels[qid] for qid in both}
    values = score_table("nDCG@10", qrels, {"ours": ours, "theirs": theirs})
    means = [f"{float(np.mean(values.values[i])):.4f}" for i in range(2)]
    return [
        str(len(both)),
        f"{100 * np.mean([a == b for a, b in tops]):.1f} %",
        f"{100 * np.mean([a[0] == b[0] for a, b in tops]):.1f} %",
        f"{np.mean([RBO().between(a, b) for a, b in tops]):.4f}",
        *means,
    ]


def measure_rows(lucene: Lucene, name: str, folder: Path) -> list[list[str]]:
    """Return the rows of one collection: as it is, and with the same words."""
    collection = st.load(str(DATA / "collections" / name))
    plain = keep_words(collection)
    return [
        [name, "as it is", *compare(collection, *rank_by_both(lucene, collection, folder / "plain", name))],
        [name, "letters only", *compare(plain, *rank_by_both(lucene, plain, folder / "words", name))],
    ]


def explain_scores(lucene: Lucene, folder: Path, queries: int = 25) -> list[list[str]]:
    """Return the relative differences of Lucene's scores to the formula: with exact lengths, and with Lucene's.

    The collection is cranfield with letters only, and the lists are the first ten of some queries.
    """
    collection = keep_words(st.load(str(DATA / "collections" / "cranfield")))
    _, theirs = rank_by_both(lucene, collection, folder, "cranfield")
    analyzer = Analyzer()
    by_hand = ByHand({docno: analyzer(doc.text) for docno, doc in collection.docs.items()})
    found: dict[str, list[float]] = {"exact": [], "Lucene's": []}
    for qid in list(theirs)[:queries]:
        for docno in rank_docnos(theirs[qid])[:TOP]:
            for lengths, differences in found.items():
                score = by_hand.score(collection.queries[qid].text, docno, quantised=lengths != "exact")
                differences.append(100 * abs(score - theirs[qid][docno]) / score)
    return [
        [name, *(f"{np.percentile(values, share):.3f}" for share in (50, 95)), f"{max(values):.3f}"]
        for name, values in found.items()
    ]


def audit_server(lucene: Lucene, folder: Path) -> tuple[str, float]:
    """Return the verdict of an audit from a URL and a query log, and its seconds."""
    from shaketable.cli import main as shaketable

    collection = st.load(str(DATA / "collections" / "cranfield"))
    lucene.index(list_texts(collection), folder, "cranfield")
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps({"qid": q, "query": one.text}) + "\n" for q, one in collection.queries.items()))
    with lucene.serving(folder, _find_port()) as address:
        started, shown = time.perf_counter(), io.StringIO()
        ranker = f"lucene=search:{address}/cranfield"
        with redirect_stdout(shown), suppress(SystemExit):
            shaketable(["audit", "--queries", str(log), "--ranker", ranker, "--out", str(folder / "audit")])
        return shown.getvalue().replace(str(folder), "."), time.perf_counter() - started


def _find_port() -> int:
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def measure() -> Rows:
    need_data("collections", *COLLECTIONS[:1])
    lucene = find_lucene()
    if lucene is None:
        print(f"skipped: Lucene is absent; {HOW}")
        sys.exit(0)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        rows = [row for name in COLLECTIONS for row in measure_rows(lucene, name, folder / name)]
        differences = explain_scores(lucene, folder / "by-hand")
        (folder / "served").mkdir()
        shown, seconds = audit_server(lucene, folder / "served")
    return {
        "agreement": rows,
        "differences": differences,
        "seconds": round(seconds),
        "verdict": shown.strip().splitlines(),
    }


def compose(found: Rows) -> Iterator[str]:
    yield prose(
        """Lucene, through Anserini 1.7.1 (`make lucene`), is a peer of our BM25 and a search engine under test."""
    )
    yield "## BM25"
    yield prose(f"""Both have k1 = {K1} and b = {B}, our list of stop words and Porter's stemmer, and rank the judged
    queries. 'Same ten' is the share of queries whose first ten documents are the same in the same order.""")
    yield table(
        ("collection", "texts", "queries", "same ten", "same first", "RBO", "nDCG@10 ours", "Lucene's"),
        found["agreement"],
    )
    yield prose("""Three things differ. Lucene's tokenizer keeps numbers with a decimal point and some words with
    apostrophes in one piece, and ours splits them; the rows 'letters only' have texts of letters and spaces, so that
    both see the same words. And Lucene keeps the length of a document in one byte: above 24 words, with three bits of
    precision. And its version of Porter's stemmer has a later rule, by which 'possibly' has the stem of 'possible'.""")
    yield prose("""The table shows the difference of Lucene's scores to the formula of BM25 with our stems, in per cent
    of the score, over the first ten documents of 25 queries of cranfield with letters only. Anserini prints its scores
    with four decimals.""")
    yield table(("lengths of documents", "median", "95th percentile", "largest"), found["differences"])
    yield "## A verdict from a URL and a query log"
    yield prose(f"""Anserini's server has cranfield, and the audit gets the address of the index and the 225 queries:
    no documents and no judgements. `shaketable audit --queries log.jsonl --ranker lucene=search:URL` took
    {found["seconds"]} seconds on two shared cores.""")
    yield "\n".join(["```text", *found["verdict"], "```"])


def recompute_letters_only() -> list[str]:
    import pytest

    lucene = find_lucene()
    if lucene is None or not DATA.is_dir():
        pytest.skip(f"Lucene or its collection is absent: {HOW}")
    with tempfile.TemporaryDirectory() as folder:
        collection = keep_words(st.load(str(DATA / "collections" / "cranfield")))
        row = compare(collection, *rank_by_both(lucene, collection, Path(folder) / "words", "cranfield"))
    return ["cranfield", "letters only", *row]


PAGE = Page(
    __file__,
    "Lucene",
    measure,
    compose,
    (Guard("agreement", "cranfield with letters only", recompute_letters_only),),
)

if __name__ == "__main__":
    PAGE.main()
