"""Two queries side by side: what is lost, new, doubled, and the one word in which they differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shaketable.edit.meaning import Shared, Swap, swap_of

WORDS = st.lists(st.sampled_from("red boat lake tea green".split()), min_size=1, max_size=6)


def test_a_word_that_is_repeated_may_go_once():
    shared = Shared("information retrieval and information systems", "information retrieval and data systems")
    assert (shared.lost, shared.new, shared.fewer, shared.foreign) == ([], ["data"], ["information"], [])
    assert Shared("information systems", "information data systems").foreign == ["data"]


def test_without_the_thesaurus_only_the_spelling_counts():
    assert Shared("flu remedies", "flu cures").foreign == []
    assert Shared("flu remedies", "flu cures", thesaurus=False).foreign == ["cures"]
    assert Shared("weather forecast", "wether forecast", thesaurus=False).foreign == []


def test_a_doubled_word():
    assert Shared("big large house", "large large house").doubled == ["large"]
    assert Shared("large large house", "large large homes").doubled == []


@given(WORDS, st.data(), st.lists(st.sampled_from(["ship", "vessel"]), min_size=1, max_size=2))
def test_the_one_word_that_was_swapped_is_found(words, data, new):
    place = data.draw(st.integers(0, len(words) - 1))
    changed = [*words[:place], *new, *words[place + 1 :]]
    assert swap_of(" ".join(words), " ".join(changed)) == Swap(words, place, new)


@given(WORDS, WORDS)
def test_what_is_found_makes_the_one_out_of_the_other(left, right):
    swap = swap_of(" ".join(left), " ".join(right))
    if swap is not None:
        assert [*left[: swap.place], *swap.new, *left[swap.place + 1 :]] == right
        assert swap.old not in swap.new[:1]
