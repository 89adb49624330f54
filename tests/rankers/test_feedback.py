"""RM3: the words that feedback adds, by hand."""

from __future__ import annotations

import math

import pytest

from shaketable.core.documents import Collection, Doc, Slate, fingerprint
from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.rankers.feedback import RM3, FeedbackExpansion
from shaketable.rankers.lexical import BM25, QL, QLJM, Lexical

TEXTS = {
    "d1": "cat cat purr whisker",
    "d2": "cat whisker",
    "d3": "dog bark",
    "d4": "whisker purr purr",
    "d5": "boat sea",
}


class Docs(dict[str, Doc]):
    @property
    def fingerprint(self) -> str:
        return fingerprint(sorted((docno, doc.text) for docno, doc in self.items()))


def toy() -> Collection:
    return Collection("toy", Docs({docno: Doc(text) for docno, text in TEXTS.items()}), {})


def expansion(model: RM3, query: str) -> dict[str, float]:
    base = model.base.open(toy())
    bags = FeedbackExpansion(model, base, toy().docs).make_bags([query])
    return {base.scorer.index.terms[t]: w for t, w in zip(bags.terms, bags.counts, strict=True)}


def test_by_hand() -> None:
    """Two documents with a cat: d1 and d2, with scores s1 and s2.

    p(cat|R) ∝ s1·2/4 + s2·1/2, p(whisker|R) ∝ s1·1/4 + s2·1/2, p(purr|R) ∝ s1·1/4 and is the one too many.
    """
    found = BM25().open(toy()).search(["cat"], 10)[0]
    s1, s2 = found["d1"], found["d2"]
    cat, whisker = s1 / 2 + s2 / 2, s1 / 4 + s2 / 2
    assert expansion(RM3(docs=10, terms=2, original=0.6), "cat") == {
        "cat": pytest.approx(0.6 + 0.4 * cat / (cat + whisker)),
        "whisker": pytest.approx(0.4 * whisker / (cat + whisker)),
    }


def test_likelihoods_weigh_by_their_exponential() -> None:
    found = QL().open(toy()).search(["cat"], 10)[0]
    w1, w2 = math.exp(found["d1"]), math.exp(found["d2"])
    cat, whisker, purr = w1 / 2 + w2 / 2, w1 / 4 + w2 / 2, w1 / 4
    assert expansion(RM3(base=QL(), original=0.0), "cat") == {
        term: pytest.approx(weight / (cat + whisker + purr))
        for term, weight in {"cat": cat, "whisker": whisker, "purr": purr}.items()
    }


def test_query_words_count_as_often_as_they_occur() -> None:
    assert expansion(RM3(original=1.0), "cat dog dog unheard") == {
        "cat": pytest.approx(1 / 3),
        "dog": pytest.approx(2 / 3),
    }


def test_scores_below_zero_lend_no_words_unless_all_are() -> None:
    texts = Docs({**toy().docs, "d6": Doc("cat dog"), "d7": Doc("cat sea")})
    collection = Collection("cats", texts, {})
    model = RM3(base=BM25(idf="robertson"), original=0.0)  # "cat" is in more than half of the documents
    base = model.base.open(collection)
    assert max(base.search(["cat"], 9)[0].values()) < 0
    bags = FeedbackExpansion(model, base, texts).make_bags(["cat"])
    weights = {base.scorer.index.terms[t]: w for t, w in zip(bags.terms, bags.counts, strict=True)}
    # alike: cat 2/4 + 1/2 + 1/2 + 1/2, whisker 1/4 + 1/2, dog 1/2, sea 1/2, purr 1/4, of 4
    assert weights == {
        t: pytest.approx(w / 4) for t, w in {"cat": 2, "whisker": 0.75, "dog": 0.5, "sea": 0.5, "purr": 0.25}.items()
    }


@pytest.mark.parametrize("base", [BM25(), BM25(idf="robertson"), QL(), QLJM()])
def test_feedback_finds_what_has_none_of_the_words(base: BM25 | QL | QLJM) -> None:
    found = RM3(base=base).open(toy()).search(["cat", "", "unheard"], 10)
    assert set(found[0]) == {"d1", "d2", "d4"}  # d4 has whiskers and purrs
    assert found[1:] == [{}, {}]


@pytest.mark.parametrize("base", [BM25(), QL(), QLJM()])
def test_texts_do_not_change_each_other(base: Lexical) -> None:
    ranker = RM3(base=base).open(toy())  # type: ignore[arg-type]
    docs = tuple(toy().docs.values())
    together = ranker.score([Slate("cat", docs), Slate("dog", docs)])
    alone = [[float(ranker.score([Slate(q, (doc,))])[0][0]) for doc in docs] for q in ("cat", "dog")]
    assert [list(scores) for scores in together] == alone
    found = ranker.search(["cat"], 10)[0]
    assert found == {docno: s for docno, s in zip(TEXTS, together[0], strict=True) if docno in found}
    assert ranker.score([Slate("unheard", docs)])[0].tolist() == [0.0] * 5


def test_all_original_is_the_base() -> None:
    ranker, base = RM3(original=1.0).open(toy()), BM25().open(toy())
    assert ranker.search(["cat"], 10) == base.search(["cat"], 10)


def test_text_form_and_face() -> None:
    text = "rm3(base=ql(mu=500), docs=3)"
    ranker = RANKERS.build(text).open(toy())
    assert ranker.name == text
    assert (ranker.pointwise, ranker.cached) == (True, False)
    assert RANKERS.spec(RM3()) == "rm3"
    assert ranker.fingerprint != RM3().open(toy()).fingerprint


@pytest.mark.parametrize(
    "text", ["rm3(docs=0)", "rm3(terms=0)", "rm3(original=1.5)", "rm3(base=rm3)", "rm3(base='bm25')"]
)
def test_parameters_are_checked_at_once(text: str) -> None:
    with pytest.raises(BadInput, match="rm3: "):
        RANKERS.build(text)
