"""Lucene as a search engine under test, through Anserini's server: a URL and a query log are enough."""

from __future__ import annotations

import json

import pytest
from evidence._lucene import HOW, find_lucene, list_texts
from evidence.lucene import ByHand, keep_words, rank_by_both

import shaketable as st
from shaketable.core.documents import rank_docnos
from shaketable.core.errors import RankerFailed
from shaketable.core.registries import RANKERS
from shaketable.measures.rank_distance import RBO
from shaketable.nlp.analyzer import Analyzer
from tests.pages import find_free_port

LUCENE = find_lucene()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(LUCENE is None, reason=f"Lucene is absent: {HOW}")]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of an index of the sample, the folder of the index, and the sample."""
    folder = tmp_path_factory.mktemp("lucene")
    sample = st.load("sample")
    LUCENE.index(list_texts(sample), folder, "sample")
    with LUCENE.serving(folder, find_free_port()) as address:
        yield f"{address}/sample", folder, sample


@pytest.fixture
def log(served, tmp_path):
    """A query log: the first queries of the sample, without judgements and without documents."""
    path = tmp_path / "log.jsonl"
    queries = list(served[2].queries.items())[:24]
    path.write_text("".join(json.dumps({"qid": qid, "query": query.text}) + "\n" for qid, query in queries))
    return path


def test_the_address_of_the_index_is_enough(served):
    address, _, sample = served
    engine = RANKERS.build(f"search:{address}").open(sample)
    (found,) = engine.search([next(iter(sample.queries.values())).text], 5)
    assert engine.profile.dialect == "anserini"
    assert len(found) == 5
    assert set(found) <= set(sample.docs)
    with pytest.raises(RankerFailed, match="has no such index"):
        RANKERS.build(f"search:{address}s").open(sample).search(["water"], 5)


def test_a_verdict_from_a_url_and_a_query_log(served, log, tmp_path):
    tasks = ("query_typos(draws=1)", "consistency", "agreement", "probes")
    audit = st.audit(f"files?queries={log}", {"lucene": f"search:{served[0]}"}, tasks)
    cells = {cell.facet: cell.status for one in audit.verdict.ranker_verdicts for cell in one.facet_cells.values()}
    assert cells["repeatability"] in ("pass", "inconclusive")
    assert "query typos" in cells
    assert not {"input order", "ties", "probes", "attack"} & set(cells)
    assert "not in its index" in audit.skipped["probes"]
    assert "detected anserini" in audit.remarks["lucene"]
    audit.save(tmp_path / "audit")
    assert "lucene" in (tmp_path / "audit" / "report.html").read_text()


def test_other_rankers_re_rank_the_hits(served, log):
    audit = st.audit(f"files?queries={log}", "bm25", "first_stage", first_stage=f"search:{served[0]}", depth=20)
    assert set(audit.runs) == {served[0], "bm25"}
    for qid, scores in audit.runs["bm25"].items():
        assert scores.keys() == audit.runs[served[0]][qid].keys()
    assert audit.provenance["baseline"] == served[0]


def test_our_bm25_ranks_like_that_of_lucene(tmp_path):
    """The same k1, b, stop words, stemmer and words: only the lengths differ, which Lucene keeps in one byte."""
    sample = keep_words(st.load("sample?split=test"))
    ours, theirs = rank_by_both(LUCENE, sample, tmp_path, "words")
    tops = [(rank_docnos(ours[qid])[:10], rank_docnos(theirs[qid])[:10]) for qid in theirs]
    assert sum(RBO().between(*pair) for pair in tops) / len(tops) > 0.95
    by_hand = ByHand({docno: Analyzer()(doc.text) for docno, doc in sample.docs.items()})
    for qid in list(theirs)[:5]:
        query = sample.queries[qid].text
        for docno, score in list(theirs[qid].items())[:10]:
            assert by_hand.score(query, docno, quantised=True) == pytest.approx(score, abs=2e-4)
        for docno, score in list(ours[qid].items())[:10]:
            assert by_hand.score(query, docno, quantised=False) == pytest.approx(score, rel=1e-5)
