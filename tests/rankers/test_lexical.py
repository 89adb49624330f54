"""BM25 and query likelihood: by hand, against plain formulas, and on real collections."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Slate, fingerprint, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.rankers.lexical import BM25, QL, QLJM, Lexical, LexicalRanker
from shaketable.retrieval import kernels

MODELS = [BM25(), BM25(0.0), BM25(0.9, 0.4), BM25(idf="robertson"), QL(), QL(mu=3), QLJM(), QLJM(0.7)]
BOATS = {"d1": "red boat red", "d2": "blue boat", "d3": "green sea, sea, sea"}
CHARS = st.sampled_from("aabbcdeéz東 \ud800’👩")


class Docs(dict[str, Doc]):
    @property
    def fingerprint(self) -> str:
        return fingerprint(sorted((docno, doc.text) for docno, doc in self.items()))


def collection(texts: dict[str, str]) -> Collection:
    return Collection("toy", Docs({docno: Doc(text) for docno, text in texts.items()}), {})


def plain(model: Lexical) -> Lexical:
    return replace(model, stemmer="none", stopwords="none")


def zipf(seed: int, count: int, words: int, vocabulary: int = 400) -> list[str]:
    rng = np.random.default_rng(seed)
    odds = 1 / np.arange(1, vocabulary + 1)
    drawn = rng.choice(vocabulary, p=odds / odds.sum(), size=(count, words))
    sizes = rng.integers(1, words + 1, size=count)
    return [" ".join(f"w{n}" for n in row[:size]) for row, size in zip(drawn, sizes, strict=True)]


def by_the_book(model: Lexical, texts: list[str], query: str, text: str) -> float:
    """Compute the formulas of the papers from word lists."""
    words = model.analyzer
    bags = [Counter(words(t)) for t in texts]
    cf = sum(bags, Counter())
    N, C = len(texts), max(1, cf.total())
    tf, total = Counter(words(text)), 0.0
    dl = tf.total()
    for t, qtf in Counter(words(query)).items():
        df = sum(t in bag for bag in bags)
        if df == 0:
            continue
        p = cf[t] / C
        match model:
            case BM25(k1=k1, b=b, idf="lucene"):
                K = k1 * (1 - b + b * dl / (C / N))
                total += math.log(1 + (N - df + 0.5) / (df + 0.5)) * qtf * tf[t] / (tf[t] + K) if tf[t] else 0.0
            case BM25(k1=k1, b=b):
                K = k1 * (1 - b + b * dl / (C / N))
                idf = math.log2((N - df + 0.5) / (df + 0.5))
                total += idf * 9 * qtf / (8 + qtf) * tf[t] * (k1 + 1) / (tf[t] + K) if tf[t] else 0.0
            case QL(mu=mu):
                total += qtf * (math.log(1 + tf[t] / (mu * p)) + math.log(mu / (dl + mu)))
            case QLJM(lambda_=lam):
                total += qtf * math.log(1 + (1 - lam) * tf[t] / (lam * dl * p)) if tf[t] else 0.0
    return total


def test_bm25_by_hand() -> None:
    ranker = BM25().open(collection(BOATS))
    # N 3, average length 3; idf(red) = ln(1 + 2.5/1.5), idf(boat) = ln(1 + 1.5/2.5)
    # d1: norm 1.2; d2: norm 1.2 (0.25 + 0.75 · 2/3) = 0.9
    d1 = 0.980829 * 2 / 3.2 + 0.470004 * 1 / 2.2
    d2 = 0.470004 * 1 / 1.9
    assert ranker.search(["red boats"], 10) == [{"d1": pytest.approx(d1, rel=1e-5), "d2": pytest.approx(d2, rel=1e-5)}]
    assert ranker.search(["boats boat"], 1) == [{"d2": pytest.approx(2 * d2, rel=1e-5)}]


def test_robertson_by_hand() -> None:
    ranker = BM25(idf="robertson").open(collection(BOATS))
    # log2(1.5/2.5) = -0.736966: a word of two documents in three takes away
    found = ranker.search(["boat"], 10)[0]
    assert found == {
        "d1": pytest.approx(-0.736966 * 2.2 / 2.2, rel=1e-5),
        "d2": pytest.approx(-0.736966 * 2.2 / 1.9, rel=1e-5),
    }
    assert list(found) == ["d1", "d2"]
    twice = ranker.search(["red red"], 10)[0]["d1"]  # log2(2.5/1.5), 9 · 2 / 10
    assert twice == pytest.approx(0.736966 * 1.8 * 2 * 2.2 / 3.2, rel=1e-5)


def test_ql_by_hand() -> None:
    ranker = QL(mu=9).open(collection(BOATS))
    # p(boat) = 2/9; d1: ln(1 + 1/2) + ln(9/12), d2: ln(1 + 1/2) + ln(9/11)
    assert ranker.search(["boat"], 10) == [
        {"d2": pytest.approx(math.log(1.5 * 9 / 11)), "d1": pytest.approx(math.log(1.5 * 9 / 12))}
    ]
    # the second word is not in d2 but in the collection, the third is not: its part is left out
    assert ranker.search(["boat green purple"], 10)[0]["d2"] == pytest.approx(math.log(1.5 * (9 / 11) ** 2))
    assert ranker.score([Slate("boat", (Doc("sea"),))])[0] == pytest.approx(math.log(9 / 10))


def test_ql_jm_by_hand() -> None:
    ranker = QLJM(0.5).open(collection(BOATS))
    # p(boat) = 2/9; d1: ln(1 + 1/(3 · 2/9)), d2: ln(1 + 1/(2 · 2/9))
    assert ranker.search(["boat"], 10) == [{"d2": pytest.approx(math.log(3.25)), "d1": pytest.approx(math.log(2.5))}]


@pytest.mark.parametrize("model", MODELS)
@settings(deadline=None, max_examples=40)
@given(
    texts=st.dictionaries(st.text(max_size=3), st.text(CHARS, max_size=20), min_size=1, max_size=8),
    queries=st.lists(st.text(CHARS, max_size=8), max_size=4),
    others=st.lists(st.text(CHARS, max_size=20), max_size=3),
    k=st.integers(1, 10),
)
def test_search_is_scoring_and_sorting(
    model: Lexical, texts: dict[str, str], queries: list[str], others: list[str], k: int
) -> None:
    model = plain(model)
    ranker = model.open(collection(texts))
    every = [*texts.values(), *others]
    scored = ranker.score([Slate(query, tuple(map(Doc, every))) for query in queries])
    found = ranker.search(queries, k)
    assert len(scored) == len(found) == len(queries)
    for query, scores, run in zip(queries, scored, found, strict=True):
        expected = [by_the_book(model, list(texts.values()), query, text) for text in every]
        assert scores == pytest.approx(expected, rel=1e-9, abs=1e-12)
        words = set(model.analyzer(query))
        whole = {d: s for d, s in zip(texts, scores, strict=False) if words & set(model.analyzer(texts[d]))}
        best = rank_docnos(whole)[:k]
        assert list(run) == best
        assert list(run.values()) == [whole[docno] for docno in best]


@pytest.mark.parametrize("model", MODELS)
def test_skipped_documents_are_not_among_the_best(model: Lexical) -> None:
    """A collection large enough for several windows and every way through the search, with many ties."""
    texts = {f"d{i}": text for i, text in enumerate(zipf(1, 2 * kernels.WINDOW_DOCUMENTS + 100, 20))}
    queries = [*zipf(2, 4, 8), "w0 w1 w2 w3", "w399 w0", "w0 w0 w0 w1", "w5"]
    ranker = plain(model).open(collection(texts))
    docs = tuple(map(Doc, texts.values()))
    scored = ranker.score([Slate(query, docs) for query in queries])
    words = {docno: set(text.split()) for docno, text in texts.items()}
    expected = []
    for query, scores in zip(queries, scored, strict=True):
        whole = {d: float(s) for d, s in zip(texts, scores, strict=True) if not words[d].isdisjoint(query.split())}
        expected.append([(docno, whole[docno]) for docno in rank_docnos(whole)])
    for k in (1, 5, 40, 5000, 50_000):
        assert [list(run.items()) for run in ranker.search(queries, k)] == [ranked[:k] for ranked in expected]


@pytest.mark.parametrize("model", [BM25(), QL(), QLJM()])
def test_batches_and_threads_change_nothing(model: Lexical, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"d{i}": text for i, text in enumerate(zipf(3, 500, 25))}
    queries = zipf(4, 100, 6)
    ranker = plain(model).open(collection(texts))
    together = ranker.search(queries, 20)
    assert [ranker.search([query], 20)[0] for query in queries] == together
    for threads in (1, 3, 7):
        monkeypatch.setattr(kernels, "NUMBA_THREADS", threads)
        assert ranker.search(queries, 20) == together
    slates = [
        Slate(query, tuple(Doc(texts[docno]) for docno in run)) for query, run in zip(queries, together, strict=True)
    ]
    assert [list(run.values()) for run in together] == [list(scores) for scores in ranker.score(slates)]
    assert [ranker.score([slate])[0].tolist() for slate in slates] == [s.tolist() for s in ranker.score(slates)]


def test_a_mapped_index_gives_the_same(home: Path) -> None:
    texts = collection({f"d{i}": text for i, text in enumerate(zipf(5, 300, 25))})
    queries = zipf(6, 30, 6)
    before = BM25().open(texts).search(queries, 10)
    assert list((home / "indexes").iterdir())
    assert BM25().open(texts).search(queries, 10) == before


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("query", ["", "   ", "the", "unheard", "🙂", "\ud800", "\x00"])
def test_a_query_of_no_known_word(model: Lexical, query: str) -> None:
    ranker = model.open(collection(BOATS))
    assert ranker.search([query, "boat"], 5)[0] == {}
    assert ranker.score([Slate(query, (Doc("red boat"), Doc("")))])[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("model", MODELS)
def test_nothing_to_do(model: Lexical) -> None:
    for texts in ({}, {"a": ""}, {"a": "the of"}):
        ranker = model.open(collection(texts))
        assert ranker.search(["boat"], 5) == [{}]
        assert ranker.score([Slate("boat", (Doc("boat"),))])[0].tolist() == [0.0]
    assert ranker.search([], 5) == []
    assert ranker.score([]) == []
    assert [s.shape for s in ranker.score([Slate("boat", ()), Slate("x", (Doc("x"),))])] == [(0,), (1,)]


def test_the_face_of_a_ranker() -> None:
    ranker = BM25(k1=0.9).open(collection(BOATS))
    assert (ranker.name, ranker.pointwise, ranker.cached) == ("bm25(k1=0.9)", True, False)
    others = [
        BM25().open(collection(BOATS)),
        BM25(0.9, stemmer="none").open(collection(BOATS)),
        QL().open(collection({})),
    ]
    assert len({r.fingerprint for r in (ranker, *others)}) == 4
    assert BM25(k1=0.9).open(collection(BOATS)).fingerprint == ranker.fingerprint


@pytest.mark.parametrize("text", ["bm25", "bm25(k1=0.9, b=0.4)", "ql(mu=500.0)", "ql_jm(lambda_=0.5, stemmer='none')"])
def test_text_and_object(text: str) -> None:
    assert RANKERS.spec(RANKERS.build(text)) == text


@pytest.mark.parametrize(
    "text",
    """
    bm25(k1=-1) bm25(b=1.1) bm25(idf='x') bm25(stemmer='x') bm25(stopwords='x') bm25(k1='a')
    ql(mu=0) ql(mu=(1,)) ql_jm(lambda_=0) ql_jm(lambda_=1)
    """.split(),
)
def test_parameters_are_checked_at_once(text: str) -> None:
    with pytest.raises(BadInput):
        RANKERS.build(text)


def test_nan_is_refused() -> None:
    with pytest.raises(BadInput, match="k1 should be a number"):
        BM25(k1=math.nan)
    with pytest.raises(BadInput, match="mu should be"):
        QL(mu=math.inf)


def test_k_is_checked() -> None:
    with pytest.raises(BadInput, match="k must be at least 1"):
        BM25().open(collection(BOATS)).search(["boat"], 0)


def test_listing_loads_no_numba() -> None:
    code = (
        "from shaketable.core.registries import RANKERS; import sys;"
        "[RANKERS.summary(name) for name in ('bm25', 'ql', 'ql_jm', 'rm3')];"
        "sys.exit(len({'numba', 'Stemmer', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("name", "goal"), [("cranfield", 0.28), ("medline", 0.50), ("cacm", 0.33), ("time", 0.60), ("vaswani", 0.26)]
)
def test_mean_average_precision(name: str, goal: float, shared_data: Path) -> None:
    import pytrec_eval

    folder = shared_data / "collections" / name
    corpus, topics = (
        [json.loads(line) for line in (folder / file).read_text(encoding="utf-8").split("\n") if line]
        for file in ("corpus.jsonl", "queries.jsonl")
    )
    docs = Docs({row["_id"]: Doc(row["text"], row.get("title", "")) for row in corpus})
    queries = {row["_id"]: row["text"] for row in topics}
    qrels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        qid, docno, grade = line.split("\t")
        qrels.setdefault(qid, {})[docno] = int(grade)
    ranker: LexicalRanker = BM25().open(Collection(name, docs, {}))
    run = dict(zip(queries, ranker.search(list(queries.values()), 1000), strict=True))
    measured = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run)
    assert np.mean([measured[qid]["map"] if qid in measured else 0.0 for qid in qrels]) >= goal
