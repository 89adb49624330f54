"""Two texts side by side: differences are marked, and texts of attackers stay text."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from shaketable.report.diff import CONTEXT_WORDS, mark_differences

words = st.lists(st.sampled_from(["a", "b", "c", "<b>", "&amp;"]), max_size=12)


def plain(html: Markup) -> str:
    return Markup(re.sub(r"</?(ins|del)>", "", html)).unescape()


@given(words, words)
def test_without_marks_both_texts_are_whole(left, right):
    before, after = mark_differences(" ".join(left), " ".join(right))
    assert plain(before).split() == left
    assert plain(after).split() == right
    assert "<ins>" not in before
    assert "<del>" not in after


def test_long_common_passages_are_shortened():
    same = " ".join(f"w{i}" for i in range(100))
    before, after = mark_differences(f"old {same} end", f"new {same} stop")
    assert before.startswith("<del>old</del> w0 ")
    assert "… w88" in before
    assert after.count("w") == 2 * CONTEXT_WORDS + 1  # and that of "new"


def test_two_texts_that_have_little_in_common_are_not_marked():
    before, after = mark_differences(" ".join("abcdefghijklmn"), " ".join("opqrstuvwxyzab"))
    assert "<del>" not in before
    assert "<ins>" not in after


def test_texts_are_escaped():
    before, after = mark_differences("x <script>alert(1)</script>", "x <img src=x onerror=alert(2)>\x1b[31m")
    assert "<script" not in before
    assert "<img" not in after
    assert "\x1b" not in after
