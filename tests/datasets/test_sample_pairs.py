"""The text pairs of the sample keep the promises of its data card."""

from __future__ import annotations

import json
import re

import pytest

from shaketable.datasets.pairs import (
    BUNDLED_FOLDER,
    CrossedPair,
    PairRow,
    read_bundled_crossed_pairs,
    read_bundled_pairs,
)
from shaketable.datasets.sample import SAMPLE_FOLDER
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.edit_distance import damerau_levenshtein

SIDED = ("fluency", "formality", "summary", "simplification", "paraphrase", "bias", "factuality")
OTHERS = ("source", "position", "brevity", "repetition", "literal_match")
CROSSED = ("negation", "exclusion", "number", "date", "entity")
KINDS = (*SIDED, *OTHERS, *CROSSED)

FURTHEST = {"factuality": 3, "number": 2, "date": 4, "negation": 7, "entity": 6, "exclusion": 7}
"""Words by which the texts of a minimal pair differ at most."""

terms = Analyzer()


def rows(kind: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (BUNDLED_FOLDER / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()]


def words_apart(left: str, right: str) -> int:
    """Edits of whole words that turn one text into the other."""
    numbers: dict[str, str] = {}
    one, other = (
        "".join(numbers.setdefault(word, chr(0x4E00 + len(numbers))) for word in text.split()) for text in (left, right)
    )
    return damerau_levenshtein(one, other)


def test_word_edits_by_hand():
    assert words_apart("the cat sat", "the dog sat down") == 2


def test_these_are_all_types_of_pairs():
    assert sorted(path.stem for path in BUNDLED_FOLDER.iterdir()) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_each_type_has_forty_short_pairs(kind):
    pairs = rows(kind)
    assert len(pairs) >= 40
    queries = ("query_a", "query_b") if kind in CROSSED else ("query",)
    assert all(list(row) == ["id", *queries, "a", "b", "topic"] for row in pairs)
    assert [row["id"] for row in pairs] == [f"{kind.replace('_', '-')}-{n:02}" for n in range(1, len(pairs) + 1)]
    for row in pairs:
        for text in (row["a"], row["b"]):
            assert 15 <= len(text.split()) <= 80, row["id"]
            assert len(re.findall(r"[.!?]+(?:\s|$)", text)) <= 8, row["id"]
            assert text == " ".join(text.split()), row["id"]
            assert not re.search(r"[{}]", text), row["id"]
        for query in queries:
            assert row[query] == row[query].lower().strip() or kind == "summary", row["id"]
            assert 2 <= len(row[query].split()) <= 14, row["id"]
    assert len({row["topic"] for row in pairs}) >= 25


def test_no_text_is_there_twice_and_no_two_are_the_same():
    texts = [row[side] for kind in KINDS for row in rows(kind) for side in ("a", "b")]
    assert len(set(texts)) == len(texts)
    ids = [row["id"] for kind in KINDS for row in rows(kind)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("kind", FURTHEST)
def test_minimal_pairs_differ_in_little(kind):
    assert max(words_apart(row["a"], row["b"]) for row in rows(kind)) <= FURTHEST[kind]


@pytest.mark.parametrize("kind", CROSSED)
def test_the_two_queries_of_a_pair_differ(kind):
    assert all(row["query_a"] != row["query_b"] for row in rows(kind))


@pytest.mark.parametrize("kind", [*SIDED, "source", "brevity", "position", "repetition"])
def test_query_and_texts_have_a_word_in_common(kind):
    """A pair must mention the subject of the query; otherwise its difference would have no meaning."""
    apart = [r["id"] for r in rows(kind) if not set(terms(r["query"])) & {*terms(r["a"]), *terms(r["b"])}]
    assert apart == []


def test_summaries_and_brief_answers_are_much_shorter():
    for row in (*rows("summary"), *rows("brevity")):
        assert 2 * len(row["a"].split()) <= len(row["b"].split()), row["id"]


def test_positions_differ_in_the_order_of_sentences_alone():
    for row in rows("position"):
        (first, *rest), other = (re.split(r"(?<=\.) (?=[A-Z])", row[side]) for side in ("a", "b"))
        assert other == [*rest, first], row["id"]


def test_repetitions_add_words_of_the_query_and_nothing_is_lost():
    for row in rows("repetition"):
        query, a, b = set(terms(row["query"])), terms(row["a"]), terms(row["b"])
        assert sum(t in query for t in b) >= sum(t in query for t in a) + 3, row["id"]
        rest = iter(b)
        assert all(term in rest for term in a), row["id"]


def test_literal_matches_have_more_of_the_querys_words():
    for row in rows("literal_match"):
        query = set(terms(row["query"]))
        assert len(query & set(terms(row["a"]))) < len(query & set(terms(row["b"]))), row["id"]


def test_simplifications_have_shorter_words():
    for row in rows("simplification"):
        simple, hard = (sum(map(len, row[side].split())) / len(row[side].split()) for side in ("a", "b"))
        assert simple + 0.3 < hard, row["id"]


def test_the_readers_give_them_back():
    for kind in KINDS:
        if kind in CROSSED:
            expected = [CrossedPair(r["id"], r["query_a"], r["query_b"], r["a"], r["b"]) for r in rows(kind)]
            assert list(read_bundled_crossed_pairs(kind)) == expected
        else:
            assert list(read_bundled_pairs(kind)) == [PairRow(r["id"], r["a"], r["b"], r["query"]) for r in rows(kind)]


def test_the_data_card_counts_them():
    card = (SAMPLE_FOLDER / "README.md").read_text()
    assert f"| text pairs | {sum(len(rows(kind)) for kind in KINDS)} " in card
