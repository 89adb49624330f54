"""Other prefixes of an encoder: what they change, and where there is nothing to change."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from shaketable.api.audit import audit
from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import NotApplicable
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.experiment import Experiment
from shaketable.measures.facets import PROMPT_WORDING
from shaketable.rankers.lexical import BM25
from shaketable.rankers.neural.prefixes import reword_prefixes
from shaketable.scoring.engine import ScoringEngine
from shaketable.tasks.prompt_wording import PromptWording
from shaketable.tasks.runner import list_default_tasks
from tests.toys import text

QUERIES, SIZE = 24, 15


@dataclass(frozen=True)
class PrefixedRanker:
    """A ranker that counts common words if its query prefix is the right one, and prefers long texts otherwise."""

    query_prefix: str
    passage_prefix: str
    pointwise = True

    @property
    def name(self) -> str:
        return repr(self)

    def score(self, slates):
        if self.query_prefix == "query: ":
            return [[len(set(s.query.split()) & set(doc.text.split())) for doc in s.docs] for s in slates]
        return [[len(doc.text) for doc in s.docs] for s in slates]


@dataclass(frozen=True)
class PrefixedModel:
    """An encoder with prefixes, as a model."""

    query_prefix: str = "query: "
    passage_prefix: str = ""

    def open(self, collection):
        return PrefixedRanker(self.query_prefix, self.passage_prefix)

    def reword_prompts(self):
        others = reword_prefixes(self.query_prefix, self.passage_prefix)
        return {change: replace(self, query_prefix=q, passage_prefix=p) for change, (q, p) in others.items()}


def make_collection(judged: bool = True) -> Collection:
    docs = {f"d{i:02}": Doc(f"{text(i, 7)} {'x' * (i * 7 % SIZE)}") for i in range(SIZE)}
    queries = {f"q{i}": Query(text(300 + i, 3)) for i in range(QUERIES)}
    candidates = {qid: {docno: float(-i) for i, docno in enumerate(docs)} for qid in queries}
    qrels = {
        qid: {docno: int(len(set(q.text.split()) & set(doc.body.split())) > 1) for docno, doc in docs.items()}
        for qid, q in queries.items()
    }
    return Collection("small", MemoryCorpus(docs), queries, qrels if judged else {}, candidates=candidates)


def run(model, judged: bool = True, **settings):
    experiment = Experiment(make_collection(judged), {"mine": model, "bm25": BM25()}, ScoringEngine(), depth=SIZE)
    return PromptWording(**settings).run(experiment)


def test_the_loss_by_each_change_is_found():
    result = run(PrefixedModel())
    table = result.tables["prompt wording"]
    assert table["change"].tolist() == ["missing prefix", "swapped prefixes", "reworded prefix"]
    assert table["query prefix"].tolist() == ["''", "''", "'question: '"]
    assert table["passage prefix"].tolist() == ["''", "'query: '", "''"]
    assert (table["drop %"] < -20).all()
    assert [one.name for one in result.findings] == [
        "drop(missing prefix)",
        "drop(swapped prefixes)",
        "drop(reworded prefix)",
    ]
    assert {(one.ranker, one.facet, one.n) for one in result.findings} == {("mine", PROMPT_WORDING, QUERIES)}
    assert result.examples[0].after == result.examples[0].before, "the prefix is missing"


def test_without_judgements_the_overlap_counts():
    result = run(PrefixedModel(), judged=False, queries=20)
    assert result.findings[0].name == "overlap(missing prefix)"
    assert all(0 < one.value < 1 and one.n == 20 for one in result.findings)


def test_a_ranker_that_ignores_its_prefix_loses_nothing():
    result = run(PrefixedModel(query_prefix="", passage_prefix="passage: "))
    assert (result.tables["prompt wording"]["drop %"] == 0).all()
    assert not result.examples


def test_without_a_prefix_there_is_nothing_to_test():
    with pytest.raises(NotApplicable, match="no ranker has a prefix of queries or passages"):
        run(PrefixedModel(query_prefix=""))


def test_it_runs_by_default_for_encoders_only():
    assert "prompt_wording" not in list_default_tasks([BM25()])
    assert "prompt_wording" in list_default_tasks([BM25(), PrefixedModel()])


def test_the_verdict_has_the_facet():
    done = audit(make_collection(), {"mine": PrefixedModel()}, ("prompt-wording", "effectiveness"), budget=None)
    (card,) = [one for one in done.verdict.ranker_verdicts if one.ranker == "mine"]
    assert card.facet_cells[PROMPT_WORDING].status == "fail"
    assert "missing prefix" in str([cell.text for cell in card.facet_cells.values()])
