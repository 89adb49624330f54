"""The language model: sums by hand, an implementation of dictionaries, and one as total of each distribution."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from math import log10

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.datasets.load import load as load_collection
from shaketable.nlp import ngram_model
from shaketable.nlp.ngram_model import estimate_discounts, learn_ngrams

THREE = ["a b", "a c", "a b c"]
START, END = "<s>", "</s>"


class Plain:
    """The same model out of dictionaries of tuples, by the formula and without a thought for speed."""

    def __init__(self, texts: list[str], order: int):
        self.order = order
        sentences = [(START, *text.split(), END) for text in texts]
        self.words = {word for sentence in sentences for word in sentence} - {START} | {END, "<unk>"}
        raw = [defaultdict(int) for _ in range(order)]
        for sentence in sentences:
            for n in range(order):
                for end in range(n + 1, len(sentence) + 1):
                    raw[n][sentence[end - n - 1 : end]] += 1
        self.counts = []
        for n in range(order):
            counts = dict(raw[n])
            if n < order - 1:
                for gram in counts:
                    if gram[0] != START:
                        counts[gram] = len({longer[0] for longer in raw[n + 1] if longer[1:] == gram})
            counts.pop((START,), None)
            self.counts.append(counts)

    def discount(self, n: int, count: int) -> float:
        if count == 0:
            return 0.0
        of = [0, *(sum(c == k for c in self.counts[n].values()) for k in (1, 2, 3, 4))]
        if not (of[1] and of[2] and of[3]):
            return (0.5, 1.0, 1.5)[min(count, 3) - 1]
        y = of[1] / (of[1] + 2 * of[2])
        found = [k - (k + 1) * y * of[k + 1] / of[k] for k in (1, 2, 3)]
        if not all(0 < d <= k for k, d in enumerate(found, 1)):
            found = [0.5, 1.0, 1.5]
        return found[min(count, 3) - 1]

    def p(self, word: str, context: tuple[str, ...]) -> float:
        context = context[len(context) - self.order + 1 :] if len(context) >= self.order else context
        n = len(context)
        shorter = self.p(word, context[1:]) if n else 1 / len(self.words)
        following = {gram[-1]: count for gram, count in self.counts[n].items() if gram[:-1] == context}
        total = sum(following.values())
        if not total:
            return shorter
        taken = sum(self.discount(n, count) for count in following.values())
        count = following.get(word, 0)
        return (count - self.discount(n, count)) / total + taken / total * shorter

    def logs(self, text: str) -> list[float]:
        words = [word if word in self.words else "<unk>" for word in text.split()]
        sentence = [START, *words, END]
        return [log10(self.p(sentence[i], tuple(sentence[:i]))) for i in range(1, len(sentence))]


def test_three_sentences_by_hand():
    """Single words count by how many different words stand before them: a 1, b 1, c 2, the end 2; total 6."""
    model = learn_ngrams(THREE, order=1)
    # with one word at a time these are plain counts: a 3, b 2, c 2, end 3; no word occurs once, so discounts are usual
    taken = (1.5 + 1.0 + 1.0 + 1.5) / 10
    unknown, a, b, end = (10 ** model.log_probs([text])[0][0] for text in ("tea", "a", "b", ""))
    assert unknown == pytest.approx(taken / 5)  # five: a, b, c, the end, any unknown word
    assert a == pytest.approx(1.5 / 10 + taken / 5)
    assert b == pytest.approx(1.0 / 10 + taken / 5)
    assert end == pytest.approx(1.5 / 10 + taken / 5)

    model = learn_ngrams(THREE, order=2)
    taken = (0.5 + 0.5 + 1.0 + 1.0) / 6
    p_b = 0.5 / 6 + taken / 5
    p_c = 1.0 / 6 + taken / 5
    # pairs: <s>a 3, ab 2, ac 1, bc 1, b</s> 1, c</s> 2: n1 = 3, n2 = 2, n3 = 1, n4 = 0
    y = 3 / (3 + 2 * 2)
    d1, d2, d3 = 1 - 2 * y * 2 / 3, 2 - 3 * y * 1 / 2, 3.0
    first, second, last = 10 ** model.log_probs(["a b"])[0]
    assert first == pytest.approx((3 - d3) / 3 + d3 / 3 * (0.5 / 6 + taken / 5))
    assert second == pytest.approx((2 - d2) / 3 + (d1 + d2) / 3 * p_b)
    assert last == pytest.approx((1 - d1) / 2 + (d1 + d1) / 2 * (1.0 / 6 + taken / 5))
    _, unseen, _ = 10 ** model.log_probs(["c c"])[0]  # "c c" never occurs, c before the end does, twice
    assert unseen == pytest.approx(d2 / 2 * p_c)


some_texts = st.lists(st.lists(st.sampled_from("abcde"), max_size=7).map(" ".join), max_size=12)


@given(texts=some_texts, order=st.integers(1, 4), asked=some_texts)
@settings(deadline=None, max_examples=60)
def test_agrees_with_dictionaries(texts, order, asked):
    model, plain = learn_ngrams(texts, order), Plain(texts, order)
    asked = [*asked, *texts, "", "a zebra b", "zebra"]
    for text, found in zip(asked, model.log_probs(asked), strict=True):
        assert found.tolist() == pytest.approx(plain.logs(text), abs=2e-6)


@given(texts=some_texts, order=st.integers(1, 3))
@settings(deadline=None, max_examples=25)
def test_sums_to_one_after_any_context(texts, order):
    model = learn_ngrams(texts, order)
    words = sorted({word for text in texts for word in text.split()})
    contexts = [" ".join(some) for n in range(3) for some in product([*words[:3], "zebra"], repeat=n)]
    for context in contexts:
        before = len(context.split())
        after = model.log_probs([f"{context} {word}" for word in [*words, "unheard"]])
        total = sum(10 ** logs[before] for logs in after) + 10 ** model.log_probs([context])[0][before]
        assert total == pytest.approx(1, abs=1e-5)


def test_discounts_by_hand():
    assert estimate_discounts(np.array([1] * 8 + [2] * 4 + [3] * 2 + [4])) == (0.5, 1.25, 2.0)
    assert estimate_discounts(np.array([1, 1, 2])) == (0.5, 1.0, 1.5)
    assert estimate_discounts(np.array([1, 2, 3, 3, 3, 4, 4, 4])) == (0.5, 1.0, 1.5), "a negative one is no discount"


def test_texts_are_scored_alike_alone_and_together(monkeypatch):
    texts = [*THREE, "", "b zebra a", "c " * 50, "\ud800 a", "A, b!"]
    model = learn_ngrams(THREE, 3)
    together = model.log_probs(texts)
    assert [len(logs) for logs in together] == [3, 3, 4, 1, 4, 51, 2, 3]
    assert all((a == b).all() for a, b in zip(together, (model.log_probs([text])[0] for text in texts), strict=True))
    monkeypatch.setattr(ngram_model, "BLOCK_TEXTS", 3)
    assert all((a == b).all() for a, b in zip(together, model.log_probs(texts), strict=True))
    assert model.score(texts) == pytest.approx([logs.mean() for logs in together])
    assert model.perplexity(texts) == pytest.approx([10 ** -logs.mean() for logs in together])
    assert model.log_probs([]) == []
    assert model.score([]).shape == (0,)


def test_a_model_of_nothing_is_uniform():
    model = learn_ngrams([], 3)
    assert model.perplexity(["", "tea", "tea tea"]) == pytest.approx([2, 2, 2])


def test_no_more_is_read_than_was_asked_for():
    taken = iter(["a b c", "d e f", "g h i", "j k l"])
    model = learn_ngrams(taken, 2, max_words=8)
    assert next(taken) == "j k l", "two texts have ten words and ends, six of them known"
    assert len(model.word_hashes) == 6 + 3 - 3
    assert len(learn_ngrams(["a b c d e f"], 2, max_words=4).word_hashes) == 4


@pytest.mark.parametrize("order", [0, 10])
def test_an_order_that_makes_no_sense(order):
    with pytest.raises(BadInput, match=f"n-grams of 1 to 9 words, not {order}"):
        learn_ngrams(THREE, order)


def test_it_knows_the_order_of_words_in_real_texts():
    texts = [doc.text for _, doc in load_collection("sample", None).docs.items()]
    model = learn_ngrams(texts[::2])
    unseen = texts[1::2]
    backwards = [" ".join(reversed(text.split())) for text in unseen]
    assert np.mean(model.perplexity(unseen) < model.perplexity(backwards)) > 0.95
