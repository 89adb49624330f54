"""The query attacks of paper 000: each edit by hand, its laws, and the shares it must have."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Query
from shaketable.core.errors import BadInput
from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.edit_distance import damerau_levenshtein
from shaketable.transforms.noise import CharNoise, WordNoise
from shaketable.transforms.vary import make_rng, vary
from tests.transforms.scripted import Scripted

ADD, REMOVE, SUBSTITUTE, SWAP = range(4)
QUERIES = st.lists(st.text("abcdefgh", min_size=1, max_size=9), min_size=1, max_size=6).map(" ".join)


@pytest.mark.parametrize(
    ("numbers", "expected", "kind"),
    [
        ((0, ADD, 0, 25), "bzoat on lakes", "add"),
        ((1, ADD, 3, 0), "boat on lakeas", "add"),
        ((0, REMOVE, 1), "bot on lakes", "remove"),
        ((1, REMOVE, 2), "boat on laks", "remove"),
        ((0, SUBSTITUTE, 0, 13), "bnat on lakes", "substitute"),  # without o, the fourteenth letter is n
        ((0, SUBSTITUTE, 0, 14), "bpat on lakes", "substitute"),
        ((0, SWAP, 0), "baot on lakes", "swap"),
        ((1, SWAP, 1), "boat on laeks", "swap"),
    ],
)
def test_character_edits_by_hand(numbers, expected, kind):
    """Of "boat on lakes" the words of four letters and more are the first and the last."""
    assert CharNoise().attack("boat on lakes", Scripted(*numbers)) == (expected, (kind,))


def test_swapping_equal_letters_is_drawn_again():
    assert CharNoise().attack("noon", Scripted(0, SWAP, REMOVE, 0)) == ("non", ("remove",))
    assert CharNoise().attack("abbcd", Scripted(0, SWAP, 0)) == ("abcbd", ("swap",))  # bb cannot be swapped, bc can


def test_short_words_serve_only_where_there_is_none_longer():
    assert CharNoise().attack("tea or", Scripted(0, REMOVE, 0)) == ("ta or", ("remove",))
    assert CharNoise().attack("to", Scripted(0, 0, 0, 3)) == ("tdo", ("add",))
    assert CharNoise().attack("a b", Scripted()) is None


def test_two_edits_never_restore_the_original():
    undone = Scripted(0, SWAP, 0, 0, SWAP, 0, 0, SWAP, 0, 0, REMOVE, 0)
    assert CharNoise(2).attack("boat", undone) == ("bot", ("swap", "remove"))


def test_punctuation_around_a_word_is_not_part_of_it():
    assert CharNoise().attack("(boat?", Scripted(0, SWAP, 0)) == ("(baot?", ("swap",))


@given(QUERIES, st.integers(0, 99))
def test_one_edit_inside_one_word(text, seed):
    new = CharNoise().apply(text, make_item_rng(seed), TransformContext())
    if new is None:
        assert all(len(word) < 2 for word in text.split())
        return
    assert damerau_levenshtein(text, new) == 1
    (old, changed), *others = [pair for pair in zip(text.split(), new.split(), strict=True) if pair[0] != pair[1]]
    assert not others
    assert (old[0], old[-1]) == (changed[0], changed[-1])


@given(QUERIES, st.integers(0, 99))
def test_two_edits_are_two_at_most(text, seed):
    new = CharNoise(2).apply(text, make_item_rng(seed), TransformContext())
    assert new is None or 1 <= damerau_levenshtein(text, new) <= 4  # two edits of one place are no "alignment" of two


@given(QUERIES, st.integers(0, 99), st.integers(2, 4))
def test_more_edits_build_on_fewer(text, seed, edits):
    """Paper 000 attacks the text of one edit a second time."""
    less, more = (CharNoise(k).attack(text, make_rng(CharNoise(k), seed, "q", 3)) for k in (edits - 1, edits))
    if more is None:
        return
    assert less is not None
    assert more[1][:-1] == less[1]
    assert damerau_levenshtein(less[0], more[0]) == 1
    assert more[0] not in (text, less[0])


def test_two_characters_are_an_edit_of_one_for_every_query_and_draw():
    """The same through `vary`, which gives each edit its draws."""
    queries = {f"q{i}": Query(text) for i, text in enumerate(["red boat on a lake", "green tea", "who built it"])}
    for seed in range(5):
        one, two = (vary(queries, [CharNoise(k)], seed=seed) for k in (1, 2))
        for left, right in zip(one, two, strict=True):
            assert damerau_levenshtein(left.text, right.text) == 1


def test_two_characters_are_an_edit_of_one_on_real_queries(shared_data):
    """As the task draws them: in any order, and with or without the single change."""
    one, two = CharNoise(1), CharNoise(2)
    with (shared_data / "collections" / "msmarco-types" / "queries.jsonl").open() as file:
        queries = {row["_id"]: row["text"] for row in map(json.loads, file)}
    twice = {qid: two.attack(text, make_rng(two, 0, qid, 1)) for qid, text in reversed(queries.items())}
    for qid, text in queries.items():
        once = one.attack(text, make_rng(one, 0, qid, 1))
        assert once is not None
        assert damerau_levenshtein(once[0], twice[qid][0]) == 1
        assert twice[qid][1][:1] == once[1]


@given(QUERIES, st.integers(0, 99))
def test_a_word_attack_adds_removes_or_substitutes_one_word(text, seed):
    attacked = WordNoise().attack(text, make_item_rng(seed), TransformContext(vocabulary=("zulu", "YANKEE")))
    assert attacked
    new, (kind,) = attacked
    gone, come = Counter(text.split()) - Counter(new.split()), Counter(new.split()) - Counter(text.split())
    expected = {"add": (0, 1), "remove": (1, 0), "substitute": (1, 1)}[kind]
    assert (gone.total(), come.total()) == expected
    assert set(come) <= {"zulu", "yankee"}


def test_word_edits_by_hand():
    add, remove, substitute = range(3)
    known = TransformContext(vocabulary=("sail", "anchor"))
    assert WordNoise().attack("red boat", Scripted(add, 2, 1), known) == ("red boat anchor", ("add",))
    assert WordNoise().attack("red boat", Scripted(add, 0, 0), known) == ("sail red boat", ("add",))
    assert WordNoise().attack("red boat", Scripted(remove, 0), known) == ("boat", ("remove",))
    assert WordNoise().attack("red sail", Scripted(substitute, 1, 0, 1), known) == ("red anchor", ("substitute",))
    assert WordNoise().attack("boat", Scripted(remove, remove, substitute, 0, 0), known) == ("sail", ("substitute",))


def test_a_vocabulary_without_another_word_gives_nothing():
    known = TransformContext(vocabulary=("sail", "42"))
    assert WordNoise().attack("sail", make_item_rng(0, "substitute"), known) in (None, ("sail sail", ("add",)))


def test_the_thesaurus_serves_where_there_is_no_vocabulary():
    new = [WordNoise().apply("red boat", make_item_rng(seed), TransformContext()) for seed in range(20)]
    assert all(new)
    assert all(text == text.lower() for text in new)


def test_edits_are_counted():
    with pytest.raises(BadInput, match="char_noise: edits should be between 1 and 1,000, not 0"):
        CharNoise(0)


@pytest.mark.parametrize(("attack", "share"), [(CharNoise(), 0.25), (WordNoise(), 1 / 3)], ids=["char", "word"])
def test_shares_are_even_on_real_queries(attack, share, shared_data):
    """Paper 000 reports 25.32, 24.96, 23.34 and 24.42 % for characters."""
    with (shared_data / "collections" / "rag24" / "queries.jsonl").open() as file:
        queries = [json.loads(line)["text"] for line in file]
    texts = [(queries[i % len(queries)], i) for i in range(10_000)]
    kinds = Counter(attacked[1] for text, i in texts if (attacked := attack.attack(text, make_item_rng(0, "share", i))))
    assert kinds.total() == 10_000
    assert all(abs(count / 10_000 - share) < 0.02 for count in kinds.values()), kinds
