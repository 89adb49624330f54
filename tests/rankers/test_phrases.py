"""Features of phrases: a text by hand, tuples of words as a second computation, and L-GBM on them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Query, Slate, rank_docnos
from shaketable.core.registries import LEARNERS
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.ngram_model import learn_ngrams
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.rankers.features import PHRASE_COLUMNS, PHRASE_FEATURES, FeatureExtractor
from shaketable.rankers.phrases import MAX_PHRASE_WORDS, PhraseReader, Phrases
from shaketable.training.feature_learner import build_letor
from shaketable.training.feature_learner import learn as fit

TEXTS = ["the red boat on the lake", "a red tea", "tea on the red boat", "the lake at night", "boat boat the tea"]
MODEL = learn_ngrams(TEXTS)


def find_phrases(query: str, text: str) -> dict[str, float]:
    one = np.zeros(1, np.int64)
    phrases = PhraseReader.from_model(MODEL).find_phrases([query], one, [Doc(text)], one)
    return {name: float(values[0]) for name, values in vars(phrases).items()}


def log(phrase: str) -> float:
    """log10 p of a phrase at any position, without the start and the end of a text."""
    words = phrase.split()
    return float(
        MODEL.compute_conditional_logs(
            np.array([MODEL.find_word_number(w) for w in words]), np.arange(len(words))
        ).sum()
    )


def test_a_text_by_hand():
    row = find_phrases("the red boat tea", "a boat the red boat of the lake tea")
    # at "boat": boat; at "the": "the red boat"; at "the" (second): a stop-word alone, no phrase; at "tea": tea
    assert row["phrases"] == 2, "boat is part of a longer one"
    assert row["logs"] == pytest.approx(log("the red boat") + log("tea"))
    assert row["mass"] == pytest.approx(3 * log("the red boat") + log("tea"))
    assert row["longest"] == 3
    assert (row["query_length"], row["content_words"], row["covered"]) == (4, 3, 3)
    assert row["neighbours"] == 2  # the red, red boat; not boat tea
    assert row["missing"] == 0
    assert row["fluency"] == pytest.approx(MODEL.score(["a boat the red boat of the lake tea"])[0])


def test_what_is_missing_counts_if_the_model_knows_it():
    row = find_phrases("red zeppelin lake lake", "a red boat")
    assert (row["content_words"], row["covered"]) == (3, 1)
    assert row["missing"] == pytest.approx(log("lake")), "once, and the zeppelin not at all"


def test_nothing_asked_and_nothing_said():
    assert set(find_phrases("", "").values()) == {0.0}
    row = find_phrases("red", "")
    assert {name for name, value in row.items() if value} == {"query_length", "content_words", "missing"}
    assert find_phrases("", "tea")["fluency"] < 0


def plainly(query: list[str], text: list[str]) -> dict[str, float]:
    """Compute the same numbers from tuples of words."""
    grams = {
        tuple(query[start:end])
        for start in range(len(query))
        for end in range(start + 1, min(len(query), start + MAX_PHRASE_WORDS) + 1)
    }
    taken: set[tuple[str, ...]] = set()
    at = 0
    while at < len(text):
        here = [gram for gram in grams if tuple(text[at : at + len(gram)]) == gram]
        longest = max(here, key=len, default=())
        if longest and not (len(longest) == 1 and longest[0] in ENGLISH_STOPWORDS):
            taken.add(longest)
        at += max(1, len(longest))
    kept = [
        gram
        for gram in taken
        if not any(
            len(other) > len(gram) and any(other[i : i + len(gram)] == gram for i in range(len(other) - len(gram) + 1))
            for other in taken
        )
    ]
    covered = {word for gram in kept for word in gram}
    content = {word for word in query if word not in ENGLISH_STOPWORDS}
    pairs = set(pairwise(text))
    lost = [word for word in content - covered if MODEL.find_word_number(word)]
    return {
        "query_length": len(query),
        "content_words": len(content),
        "covered": len(content & covered),
        "phrases": len(kept),
        "logs": sum(log(" ".join(gram)) for gram in kept),
        "mass": sum(len(gram) * log(" ".join(gram)) for gram in kept),
        "longest": max(map(len, kept), default=0),
        "neighbours": sum(pair in pairs for pair in pairwise(query)),
        "missing": sum(map(log, lost)),
        "fluency": float(MODEL.score([" ".join(text)])[0]) if text else 0.0,
    }


some_words = st.lists(st.sampled_from(["the", "red", "boat", "tea", "of", "zeppelin"]), max_size=12)


@given(pairs=st.lists(st.tuples(some_words, some_words), min_size=1, max_size=6))
@settings(deadline=None, max_examples=80)
def test_agrees_with_tuples(pairs):
    queries, docs = [" ".join(query) for query, _ in pairs], [Doc(" ".join(text)) for _, text in pairs]
    every = np.arange(len(pairs))
    together = PhraseReader.from_model(MODEL).find_phrases(queries, every, docs, every)
    for number, (query, text) in enumerate(pairs):
        row = {name: float(values[number]) for name, values in vars(together).items()}
        assert row == pytest.approx(plainly(query, text), abs=1e-5)


DOCS = MemoryCorpus({str(number): Doc(text, title=text.split()[-1]) for number, text in enumerate(TEXTS)})


def test_columns_are_named_like_all_others_and_mix_with_them():
    assert len(PHRASE_COLUMNS) == 3 * len(PHRASE_FEATURES)
    names = ("fluency(document)", "bm25(body)", "coverage(title)", "neighbours(body)")
    extractor = FeatureExtractor.open(DOCS, Analyzer(), names)
    slates = [Slate("red boat", tuple(DOCS.values())), Slate("tea", (Doc("green tea"), Doc("")))]
    rows = extractor.extract(slates)
    bag = FeatureExtractor.open(DOCS, Analyzer(), ["bm25(body)"])
    assert rows[:, [1]].tolist() == bag.extract(slates).tolist()
    assert rows[:, 2].tolist() == [0, 0, 0.5, 0, 0, 0, 0]  # the title of the third is "boat"
    assert rows[:, 3].tolist() == [1, 0, 1, 0, 0, 0, 0]
    texts = [doc.text for doc in DOCS.values()]
    assert rows[:6, 0] == pytest.approx(learn_ngrams(texts).score([*texts, "green tea"]))
    alone = np.concatenate([extractor.extract([Slate(s.query, (doc,))]) for s in slates for doc in s.docs])
    assert (rows == alone).all()
    assert bag.fingerprint != extractor.fingerprint


def test_the_order_of_words_is_seen():
    extractor = FeatureExtractor.open(DOCS, Analyzer(), PHRASE_COLUMNS)
    texts = Doc("the red boat on the lake"), Doc("lake the on boat red the")
    right, wrong = extractor.extract([Slate("red boat", texts)])
    changed = {name for name, a, b in zip(PHRASE_COLUMNS, right, wrong, strict=True) if a != b}
    assert changed == {f"{f}({part})" for f in PHRASE_FEATURES for part in ("body", "document")} - {
        f"{f}({part})" for f in ("coverage", "missing_log") for part in ("body", "document")
    }


def test_a_row_of_the_table_is_all_that_a_new_feature_needs(monkeypatch):
    def phrases(view: Phrases):
        return view.phrases

    monkeypatch.setitem(PHRASE_FEATURES, "phrases", phrases)
    rows = FeatureExtractor.open(DOCS, Analyzer(), ["phrases(body)"]).extract(
        [Slate("red boat tea", tuple(DOCS.values()))]
    )
    assert rows[:, 0].tolist() == [1, 2, 2, 0, 2]


def test_lgbm_learns_from_order_what_counting_words_cannot_tell():
    pytest.importorskip("lightgbm")
    words = [f"w{number}" for number in range(40)]
    docs, queries, qrels, candidates = {}, {}, {}, {}
    for q in range(30):
        qid = f"q{q}"
        asked = make_item_rng(1, qid).permutation(words)[:4]
        queries[qid] = Query(" ".join(asked))
        for d in range(8):
            rest = make_item_rng(2, qid, d).permutation([word for word in words if word not in asked])[:8]
            phrase = asked if d < 2 else asked[::-1]  # the same words, in the order asked or not
            docs[f"{qid}-{d}"] = Doc(" ".join([*rest[:4], *phrase, *rest[4:]]))
        qrels[qid] = {f"{qid}-{d}": int(d < 2) for d in range(8)}
        candidates[qid] = {f"{qid}-{d}": 0.0 for d in range(8)}
    collection = Collection("order", MemoryCorpus(docs), queries, qrels)
    train, test = dict(list(queries.items())[:20]), dict(list(queries.items())[20:])

    learner = LEARNERS.build("lgbm(trees=20, min_docs=5)")
    names = learner.feature_names
    model = fit(learner, build_letor(collection, train, candidates, qrels, names=names))
    lists = build_letor(collection, test, candidates, qrels, names=names)
    slates = [Slate(test[qid].text, tuple(docs[d] for d in rank_docnos(candidates[qid]))) for qid in lists.qids]
    scores = np.stack(model.open(collection).score(slates))
    assert scores.reshape(-1) == pytest.approx(model.score_letor(lists), abs=1e-6)
    relevant = lists.labels.reshape(scores.shape) > 0
    assert all(row[good].min() > row[~good].max() for row, good in zip(scores, relevant, strict=True))
    counted = build_letor(collection, test, candidates, qrels).features.reshape(*scores.shape, -1)
    assert np.ptp(counted, axis=1).max() < 1e-4, "words, counted, are the same in all of a query's texts"
