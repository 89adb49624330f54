"""Rerankers of real frameworks are rankers; what is missing or unscored is handled and remarked on."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import shaketable as st
from shaketable.api.ranker_names import build_models
from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.core.registries import RANKERS
from shaketable.rankers.frameworks import ReturnedDocument, align_documents, find_reranker
from shaketable.rankers.python import adapt
from shaketable.scoring.traits import RankerTraits
from shaketable.testing import SAMPLE_SLATES, check_ranker

pytestmark = [
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # PyTerrier with pandas 3.1
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the frameworks' own libraries
]
NOWHERE = Collection("empty", {}, {})
SLATE = Slate("red boat", tuple(map(Doc, ("a small red boat", "a blue car", "the red boat", "a boat", "a boat"))))


def worth(query: str, text: str) -> float:
    return len(set(query.split()) & set(text.split())) / (1 + len(text))


EXPECTED = [[worth(slate.query, doc.text) for doc in slate.docs] for slate in SAMPLE_SLATES]


def make_langchain(top_n: int | None = None, key: str = "relevance_score", copies: bool = False):
    """Return a compressor that, like those of LangChain, writes its score, if any, into the metadata."""
    documents = pytest.importorskip("langchain_core.documents")

    class Compressor(documents.BaseDocumentCompressor):
        top_n: int | None = None

        def compress_documents(self, documents, query, callbacks=None):
            made = []
            for one in documents:
                metadata = {key: worth(query, one.page_content)} if copies else one.metadata
                metadata[key] = worth(query, one.page_content)
                made.append(one.model_copy(update={"metadata": metadata}))
            return sorted(made, key=lambda one: -one.metadata[key])[: self.top_n]

    return Compressor(top_n=top_n)


def make_llama_index(top_n: int | None = None):
    types = pytest.importorskip("llama_index.core.postprocessor.types")

    class Postprocessor(types.BaseNodePostprocessor):
        top_n: int | None = None

        def _postprocess_nodes(self, nodes, query_bundle=None):
            for one in nodes:
                one.score = worth(query_bundle.query_str, one.node.get_content())
            return sorted(nodes, key=lambda one: -one.score)[: self.top_n]

    return Postprocessor(top_n=top_n)


def make_haystack(top_k: int | None = None):
    haystack = pytest.importorskip("haystack")

    @haystack.component
    class Ranker:
        def __init__(self, top_k: int | None = None):
            self.top_k, self.warm = top_k, False

        def warm_up(self) -> None:
            self.warm = True

        @haystack.component.output_types(documents=list[haystack.Document])
        def run(self, query: str, documents: list[haystack.Document]):
            assert self.warm
            scored = [haystack.Document(id=d.id, content=d.content, score=worth(query, d.content)) for d in documents]
            return {"documents": sorted(scored, key=lambda one: -one.score)[: self.top_k]}

    return Ranker(top_k)


def make_rerankers():
    ranker = pytest.importorskip("rerankers.models.ranker")
    results = pytest.importorskip("rerankers.results")
    documents = pytest.importorskip("rerankers.documents")

    class Ranker(ranker.BaseRanker):
        def __init__(self):
            pass

        def score(self, query, doc):
            return worth(query, doc)

        def rank(self, query, docs, doc_ids=None):
            found = [results.Result(documents.Document(d, doc_id=i), worth(query, d)) for i, d in enumerate(docs)]
            return results.RankedResults(sorted(found, key=lambda one: -one.score), query, has_scores=True)

    return Ranker()


def make_pyterrier(cut: int | None = None):
    pt = pytest.importorskip("pyterrier")
    transformer = pt.apply.doc_score(lambda row: worth(row["query"], row["text"]))
    return transformer if cut is None else transformer % cut


MAKERS = [make_langchain, make_llama_index, make_haystack, make_rerankers, make_pyterrier]


@pytest.mark.parametrize("make", MAKERS)
def test_each_framework_scores_the_same(make):
    ranker = adapt(make(), NOWHERE, "mine")
    for scores, expected in zip(ranker.score(SAMPLE_SLATES), EXPECTED, strict=True):
        assert scores == pytest.approx(expected, abs=1e-7)
    check_ranker(ranker)
    assert (ranker.name, ranker.remark) == ("mine", "")


@pytest.mark.parametrize("make", [make_langchain, make_llama_index, make_haystack, make_pyterrier])
def test_missing_documents_come_last_and_a_remark_counts_them(make):
    ranker = adapt(make(2), NOWHERE, "mine")
    (scores,) = ranker.score([SLATE])
    kept = [worth(SLATE.query, doc.text) for doc in SLATE.docs]
    assert scores[[2, 3]].tolist() == [kept[2], kept[3]]
    assert len({*scores[[0, 1, 4]].tolist()}) == 1
    assert scores[1] < min(kept)
    assert ranker.remark == "1 of 1 lists lacked documents (3 in all), which are ranked last"
    assert RankerTraits.from_ranker(ranker) == RankerTraits("mine", pointwise=False, fingerprint=None, cached=True)


def test_documents_without_our_metadata_are_found_by_their_text():
    (scores,) = adapt(make_langchain(copies=True), NOWHERE, "mine").score([SLATE])
    assert scores.tolist() == [worth(SLATE.query, doc.text) for doc in SLATE.docs]


def test_ranks_count_if_a_reranker_returns_no_scores():
    ranker = adapt(make_langchain(key="hidden"), NOWHERE, "mine")
    assert ranker.score([SLATE])[0].tolist() == [2.0, 1.0, 5.0, 4.0, 3.0]
    assert ranker.remark == "1 of 1 lists had no scores, so ranks count"


@pytest.mark.parametrize("make", [make_rerankers, make_pyterrier])
def test_a_ranker_of_whole_lists_does_not_say_whether_it_is_pointwise(make):
    assert adapt(make(), NOWHERE, "mine").pointwise is None


def test_a_declaration_wins():
    assert adapt(make_langchain(), NOWHERE, "mine", pointwise=True).pointwise is True


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([ReturnedDocument(0, "a", 2.0)], "returned 1 of 5 documents, so a score depends on the list; say so with"),
        ([ReturnedDocument(0, "a"), ReturnedDocument(0, "a")], "returned the same document twice"),
        ([ReturnedDocument(None, "unknown")], "returned a document that was not in its input ('unknown')"),
        ([ReturnedDocument(at, "", float("nan")) for at in range(5)], "score nan for the text 'a small red boat'"),
    ],
)
def test_wrong_answers_are_named(returned, said):
    with pytest.raises(RankerFailed, match=re.escape(said)):
        align_documents("mine", SLATE, returned, False, Counter())


def test_ranks_count_if_scores_contradict_the_order():
    counters: Counter[str] = Counter()
    returned = [ReturnedDocument(at, "", score) for at, score in ((4, 1.0), (3, 2.0), (2, 0.0), (1, 0.0), (0, 0.0))]
    assert align_documents("mine", SLATE, returned, False, counters).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert counters == {"lists": 1, "disordered": 1}


def test_an_empty_answer_ties_all():
    assert align_documents("mine", SLATE, [], True, Counter()).tolist() == [-1.0] * 5


def test_objects_of_no_framework_are_not_taken():
    assert find_reranker(lambda query, texts: texts) is None
    assert find_reranker(3) is None


def test_a_langchain_retriever_gets_advice():
    retrievers = pytest.importorskip("langchain_core.retrievers")

    class Retriever(retrievers.BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return []

    with pytest.raises(BadInput, match="mine is a Retriever of LangChain, which ranks no documents; pass a document"):
        adapt(Retriever(), NOWHERE, "mine")


def test_a_haystack_pipeline_or_a_component_without_query_gets_advice():
    haystack = pytest.importorskip("haystack")
    rankers = pytest.importorskip("haystack.components.rankers")
    for thing in (haystack.Pipeline(), rankers.LostInTheMiddleRanker()):
        with pytest.raises(BadInput, match=r"of Haystack, .*pass a component whose run\(\) takes query and documents"):
            adapt(thing, NOWHERE, "mine")


def test_a_pyterrier_retriever_is_named():
    pt = pytest.importorskip("pyterrier")
    pd = pytest.importorskip("pandas")
    retriever = pt.apply.generic(lambda frame: pd.DataFrame({"qid": ["0"], "docno": ["17"], "score": [1.0]}))
    with pytest.raises(RankerFailed, match="returned a document that was not in its input"):
        adapt(retriever, NOWHERE, "mine").score([SLATE])


def test_pyterrier_starts_no_java():
    pt = pytest.importorskip("pyterrier")
    adapt(make_pyterrier(), NOWHERE, "mine").score([SLATE])
    assert not pt.java.started()


def test_the_order_of_a_list_does_not_change_a_framework_score():
    ranker = adapt(make_llama_index(), NOWHERE, "mine")
    forward, backward = ranker.score([SLATE, Slate(SLATE.query, SLATE.docs[::-1])])
    assert np.array_equal(forward, backward[::-1])


def test_a_lone_component_is_one_ranker_although_it_is_iterable():
    compressor = make_langchain()
    assert len(list(compressor)) == 1, "a pydantic model yields its fields"
    assert list(build_models(compressor)) == ["Compressor"]


def test_a_ranker_of_ours_is_a_transformer():
    pt = pytest.importorskip("pyterrier")
    queries = pd.DataFrame([("1", "oak tree leaves"), ("2", "winter")], columns=["qid", "query"])
    collection = st.load("sample")
    searching = st.to_pyterrier("bm25", collection, depth=5)
    found = searching(queries)
    expected = RANKERS.build("bm25").open(collection).search(list(queries["query"]), 5)
    for qid, scores in zip(("1", "2"), expected, strict=True):
        mine = found[found["qid"] == qid].sort_values("rank")
        assert dict(zip(mine["docno"], mine["score"], strict=True)) == pytest.approx(scores)
        assert mine["rank"].tolist() == list(range(len(scores)))
    shorter = st.to_pyterrier(lambda query, texts: [-len(text) for text in texts], collection)
    pipeline = searching >> shorter % 2
    again = pipeline(queries).sort_values(["qid", "rank"])
    assert isinstance(pipeline, pt.Transformer)
    assert again["rank"].tolist() == [0, 1, 0, 1]
    lengths = [len(collection.docs[docno].text) for docno in again["docno"]]
    assert lengths[0] <= lengths[1]
    assert lengths[2] <= lengths[3]
    texts = pd.DataFrame(
        [("1", "q", "a", "long text"), ("1", "q", "b", "text")], columns=["qid", "query", "docno", "text"]
    )
    assert shorter(texts)["rank"].tolist() == [1, 0]
    with pytest.raises(BadInput, match="cannot search; put a retriever before it"):
        shorter(queries)
    with pytest.raises(BadInput, match="document 'zz' is not in sample; add a column text"):
        shorter(queries.assign(docno="zz"))
