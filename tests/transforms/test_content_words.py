"""Two queries compared: lost, new and repeated words, and the single replaced word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shaketable.transforms.content_words import SharedContent, WordSwap, find_swap

WORDS = st.lists(st.sampled_from("red boat lake tea green".split()), min_size=1, max_size=6)


def test_a_word_that_is_repeated_may_go_once():
    shared = SharedContent("information retrieval and information systems", "information retrieval and data systems")
    assert (shared.lost_words, shared.new_words, shared.reduced_words, shared.unrelated_words) == (
        [],
        ["data"],
        ["information"],
        [],
    )
    assert SharedContent("information systems", "information data systems").unrelated_words == ["data"]


def test_without_the_thesaurus_only_the_spelling_counts():
    assert SharedContent("flu remedies", "flu cures").unrelated_words == []
    assert SharedContent("flu remedies", "flu cures", use_thesaurus=False).unrelated_words == ["cures"]
    assert SharedContent("weather forecast", "wether forecast", use_thesaurus=False).unrelated_words == []


def test_a_query_without_content_words_keeps_all_of_them():
    shared = SharedContent("of the", "boats")
    assert (shared.kept_share, shared.expressed_share) == (1.0, 1.0)


def test_a_doubled_word():
    assert SharedContent("big large house", "large large house").repeated_words == ["large"]
    assert SharedContent("large large house", "large large homes").repeated_words == []


@given(WORDS, st.data(), st.lists(st.sampled_from(["ship", "vessel"]), min_size=1, max_size=2))
def test_the_one_word_that_was_swapped_is_found(words, data, new):
    place = data.draw(st.integers(0, len(words) - 1))
    changed = [*words[:place], *new, *words[place + 1 :]]
    assert find_swap(" ".join(words), " ".join(changed)) == WordSwap(words, place, new)


@given(WORDS, WORDS)
def test_a_found_swap_turns_one_query_into_the_other(left, right):
    swap = find_swap(" ".join(left), " ".join(right))
    if swap is not None:
        assert [*left[: swap.position], *swap.new_words, *left[swap.position + 1 :]] == right
        assert swap.old_word not in swap.new_words[:1]
