"""Prompts are filled in once, and answers are read as far as they leave no doubt."""

from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.rankers.llm.prompts import (
    METHODS,
    WORDINGS,
    build_prompt,
    fill_template,
    read_choice,
    read_letter,
    read_log_odds,
    read_ranking,
    read_template,
)


@pytest.mark.parametrize("method", METHODS)
def test_every_wording_contains_all_values(method, tmp_path):
    assert len(WORDINGS[method]) >= 3
    texts = ["oak leaves", "pine needles"][: 1 if method == "pointwise" else 2]
    for name, template in WORDINGS[method].items():
        file = tmp_path / f"{name}.txt"
        file.write_text(template)
        assert read_template(file, method) == template, "it would do as a file too"
        asked = build_prompt(method, template, "which trees", texts)
        for part in ("which trees", *texts):
            assert part in asked
        assert "{" not in asked


@given(st.text(), st.text())
def test_values_are_never_looked_at(query, passage):
    template = "{query}|{passage}"
    assert fill_template(template, {"query": query, "passage": passage}) == f"{query}|{passage}"


def test_braces_of_a_passage_stay():
    hostile = "{query} {passages} {0.__class__.__mro__} %s {{count}}"
    asked = build_prompt("listwise", "{query}: {passages} ({count})", "tea", [hostile])
    assert asked == f"tea: [1] {hostile} (1)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank {passages}", r"a listwise template needs \{query\}"),
        ("{query} {passages} {answer}", r"\{answer\} is not a placeholder of a listwise template"),
        ("{query} {passages} {__class__}", r"\{__class__\} is not a placeholder"),
    ],
)
def test_a_template_that_cannot_work_is_refused(tmp_path, text, message):
    file = tmp_path / "mine.txt"
    file.write_text(text)
    with pytest.raises(BadInput, match=message) as caught:
        read_template(file, "listwise")
    assert str(file) in str(caught.value)
    with pytest.raises(BadInput, match="there is no such file"):
        read_template(tmp_path / "absent.txt", "listwise")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe{query}")
    with pytest.raises(BadInput, match="cannot be read"):
        read_template(tmp_path / "bytes.txt", "listwise")


def test_braces_without_a_word_are_plain_text(tmp_path):
    file = tmp_path / "json.txt"
    file.write_text('{query} {passages} as {"order": [1]} and {0.x} and { count }')
    assert build_prompt("listwise", read_template(file, "listwise"), "q", ["a"]).endswith(
        'as {"order": [1]} and {0.x} and { count }'
    )


@given(st.permutations(range(12)), st.sampled_from([" > ", ", ", "\n", ">"]))
def test_a_permutation_in_form_is_read_as_it_stands(order, between):
    answer = between.join(f"[{i + 1}]" for i in order)
    assert read_ranking(answer, 12).order == tuple(order)
    assert read_ranking(answer, 12).fault == ""


@pytest.mark.parametrize(
    ("answer", "order", "fault"),
    [
        ("3 > 1 > 2", (2, 0, 1), ""),
        ("3, 1, 2.", (2, 0, 1), ""),
        ("Here is my ranking: [3] > [1] > [2].", (2, 0, 1), ""),
        ("[3]", (2, 0, 1), "repaired"),
        ("[3] > [3] > [1] > [2]", (2, 0, 1), "repaired"),
        ("[9] > [2] > [0] > [1] > [3]", (1, 0, 2), "repaired"),
        ("[2] is best, in 2019 it had 3 of 1", (1, 0, 2), "repaired"),
        ("In 2019, 3 of 1", (0, 1, 2), "unreadable"),
        ("[8] > [9]", (0, 1, 2), "unreadable"),
        ("", (0, 1, 2), "unreadable"),
        ("[" + "9" * 5000 + "]", (0, 1, 2), "unreadable"),
    ],
)
def test_rankings_that_are_not_in_form(answer, order, fault):
    reading = read_ranking(answer, 3)
    assert (reading.order, reading.fault) == (order, fault)


@given(st.text(), st.integers(1, 30))
def test_whatever_is_answered_every_passage_comes_out_once(answer, count):
    assert sorted(read_ranking(answer, count).order) == list(range(count))
    assert len(read_choice(answer, count).order) <= 1
    assert len(read_letter(answer).order) <= 1


def test_choices_and_letters():
    assert read_choice("[3]", 3).order == (2,)
    assert read_choice("3", 3).fault == ""
    assert read_choice("[4]", 3).fault == "unreadable"
    assert read_letter("b.").order == (1,)
    assert read_letter("Passage B").order == (1,)
    assert read_letter("It is a better text").fault == "unreadable", "an article is no verdict"


def test_log_odds_add_up_tokens_that_mean_the_same():
    tops = {"Yes": log(0.4), " yes": log(0.2), "No": log(0.1), "Maybe": log(0.05)}
    odds, fault = read_log_odds("Yes", tops)
    assert odds == pytest.approx(log(0.6 / 0.1))
    assert fault == ""
    # no is not among the tokens: it is at most as probable as the least of them
    odds, _ = read_log_odds("Yes", {"Yes": log(0.9), "Well": log(0.02)})
    assert exp(odds) == pytest.approx(45)
    assert read_log_odds("", {"Well": -1.0}) == (0.0, "unreadable")
    assert read_log_odds("Yes, it does.", {}) == (20.0, "repaired")
    assert read_log_odds("yes and no", {}) == (0.0, "unreadable")
