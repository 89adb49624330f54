"""Manipulations of texts: what each does to examples, what it keeps, and what it leaves out."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaketable.core.documents import Doc, Slate
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Skipped, TextPair
from shaketable.core.registries import PROBES
from shaketable.nlp.parser import Parsed, find_offsets
from shaketable.nlp.rule_based import RuleBasedParser
from shaketable.nlp.spacy_parser import SpacyParser, list_english_models
from shaketable.probes.document_transform import Manipulation
from shaketable.probes.manipulations import (
    AddNonrelevantSentence,
    AddQueriesProbe,
    AppendBoilerplate,
    BuryAnswer,
    DeletePunctuation,
    DeleteSentence,
    DuplicateDocument,
    FoldCase,
    KeywordStuffingProbe,
    Lemmatize,
    PrependQuery,
    RemoveStopsPunct,
    ReplaceWithQuery,
    Retokenize,
    ReverseNounPhrases,
    ReverseSentences,
    ReverseWords,
    ShuffleNounPhrases,
    ShufflePrepositions,
    ShuffleSentences,
    ShuffleSentenceWords,
    ShuffleSomeWords,
    ShuffleWords,
    TyposProbe,
)
from shaketable.rankers.lexical import BM25, QL
from shaketable.transforms.insertion import BOILERPLATE
from tests.probes.contexts import after, context, one, reason
from tests.toys import WORDS

ORDERS: list[Manipulation] = [
    ShuffleWords(),
    ShuffleWords(keep_phrases=True),
    ShuffleSentenceWords(),
    ShuffleSentenceWords(keep_phrases=True),
    ShuffleNounPhrases(),
    ReverseNounPhrases(),
    ShuffleSomeWords(),
    ShufflePrepositions(),
    ShuffleSentences(),
    ReverseSentences(),
    ReverseWords(),
    BuryAnswer(),
]
"""What changes nothing but the order."""
OTHERS: list[Manipulation] = [
    RemoveStopsPunct(),
    Lemmatize(),
    Retokenize(),
    FoldCase(),
    DeletePunctuation(),
    TyposProbe(),
    ShufflePrepositions(as_published=True),
    *(DeleteSentence(which) for which in ("first", "last", "random")),
    ReplaceWithQuery(),
    PrependQuery(),
    AddNonrelevantSentence(),
    AddNonrelevantSentence("start"),
    KeywordStuffingProbe(),
    DuplicateDocument(),
    AppendBoilerplate(),
]
ALL = [*ORDERS, *OTHERS]
TEXT = (
    "The old boats of the harbour weren't safe. A sailor from Genoa, who had seen many storms, walked along the pier "
    "with his dog. He received a letter in the morning! Was it about the boats?"
)
TEXTS = {
    "a": TEXT,
    "b": "Pines grow slowly in the cold north. Their wood is used for ships and for houses.",
    "c": "One sentence about an oak, nothing else",
    "d": "",
    "e": "...",
    "f": "The ship sank. It was beyond repair. Nobody on the island knew of it until spring.",
    "g": "word",
}


def parse(text: str) -> Parsed:
    return RuleBasedParser().parse([text])[0]


def wide(seed: int = 0, order: list[str] | None = None):
    """All the texts, judged in several grades for two queries."""
    docs = {docno: Doc(TEXTS[docno], title="A title", url="u") for docno in order or TEXTS}
    grades = {docno: grade for grade, docno in enumerate(TEXTS)}
    qrels = {"q1": {docno: grades[docno] % 3 for docno in docs}, "q2": {docno: grades[docno] % 2 for docno in docs}}
    return context(docs, qrels, {"q1": "old boats", "q2": "wood for ships"}, seed=seed)


def test_every_row_of_the_catalogue_is_tested_here():
    rows = {name for name, row in PROBES.builtin_rows.items() if row.startswith("shaketable.probes.manipulations:")}
    tested = {PROBES.spec(probe).partition("(")[0] for probe in ALL}
    assert rows == tested | {"add_queries"}


@pytest.mark.parametrize("probe", ALL, ids=repr)
def test_the_contract(probe):
    """Every judged document is answered for; a contrast differs in the body alone and is never empty."""
    place = wide()
    cases = [case for cases in place.judged_documents.values() for case in cases]
    found = list(probe.draw_pairs(place))
    assert len(found) == len(cases) == 14
    assert any(isinstance(contrast, TextPair) for contrast in found)
    assert probe.unavailable_reason(place) == ""
    assert (probe.strategy, probe.symmetric) == ("manipulation", False)
    for case, it in zip(cases, found, strict=True):
        if isinstance(it, Skipped):
            assert it.reason
            continue
        assert (it.query, it.qid, it.docno, it.grade) == (case.query, case.qid, case.docno, case.grade)
        assert it.first.body.strip()
        assert it.first != it.second
        assert {(doc.title, doc.url) for doc in (it.first, it.second)} == {("A title", "u")}
        assert "".join(it.second.body.split()) == "".join(case.doc.body.split()), "the original, but for spaces"


@pytest.mark.parametrize("probe", ALL, ids=repr)
def test_samples_do_not_depend_on_order_but_on_the_seed(probe):
    shuffled = list(TEXTS)
    random.Random(1).shuffle(shuffled)
    alone = wide(order=["a", "b", "f", "d"])
    place = wide()
    whole = dict(zip(_keys(place), probe.draw_pairs(place), strict=True))
    other = wide(order=shuffled)
    assert dict(zip(_keys(other), probe.draw_pairs(other), strict=True)) == whole
    if not isinstance(probe, AddNonrelevantSentence):  # its sentences come from the other documents
        some = dict(zip(_keys(alone), probe.draw_pairs(alone), strict=True))
        assert some == {key: whole[key] for key in some}
    texts = {tuple(o.first.body for o in probe.draw_pairs(wide(seed)) if isinstance(o, TextPair)) for seed in range(4)}
    chancy = "shuffle" in PROBES.spec(probe) or isinstance(probe, AddNonrelevantSentence | TyposProbe)
    chancy = chancy or probe == DeleteSentence("random")
    assert (len(texts) > 1) == chancy


def _keys(place):
    return [(case.qid, case.docno) for cases in place.judged_documents.values() for case in cases]


@pytest.mark.parametrize("probe", ALL, ids=repr)
def test_each_distinct_text_is_read_once(probe):
    class Counting(RuleBasedParser):
        def parse(self, texts):
            texts = list(texts)
            read.append(texts)
            return super().parse(texts)

    read: list[list[str]] = []
    docs = {docno: Doc(text) for docno, text in TEXTS.items()} | {"again": Doc(TEXT)}
    place = context(docs, {"q": {docno: i % 3 for i, docno in enumerate(docs)}}, language=Counting())
    list(probe.draw_pairs(place))
    assert [sorted(texts) for texts in read] == ([sorted(set(TEXTS.values()))] if probe.needs_parser else [])


@pytest.mark.parametrize("probe", ALL, ids=repr)
def test_the_contract_with_spacy(probe):
    pytest.importorskip("spacy")
    if not list_english_models():
        pytest.skip("no English model of spaCy's is installed")
    place = context(TEXTS, {"q": {docno: i % 2 for i, docno in enumerate(TEXTS)}}, language=SpacyParser())
    found = list(probe.draw_pairs(place))
    assert len(found) == len(TEXTS)
    for contrast in found:
        if isinstance(contrast, TextPair):
            assert contrast.first.body.strip()
            assert contrast.first != contrast.second
            if probe in ORDERS:
                assert Counter(contrast.first.body.split()) == Counter(contrast.second.body.split())


def test_nothing_judged_is_said():
    place = context({"d": "text"}, {"other": {"d": 1}})
    assert ShuffleWords().unavailable_reason(place) == "none of the queries has a judged document"
    assert list(ShuffleWords().draw_pairs(place)) == []


WORD = st.sampled_from(
    [*WORDS, "The", "of", "in", "a", "it", "is", "don't", "well-known", "U.S.", "Old", "boats", "3.5"]
)
MARK = st.sampled_from(["", "", "", ".", ",", "!", "?", '."', ";", "..."])
ENGLISH = st.lists(st.builds("{}{}".format, WORD, MARK), min_size=1, max_size=40).map(" ".join)


class Counts:
    """How often the query's words are there: a bag of words and nothing else."""

    name = "counts"

    def score(self, slates):
        return [
            np.array([sum(Counter(doc.text.lower().split())[w] for w in slate.query.split()) for doc in slate.docs])
            for slate in slates
        ]


@pytest.mark.parametrize("probe", ORDERS, ids=repr)
@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.one_of(ENGLISH, st.text(max_size=60)), min_size=1, max_size=4), seed=st.integers(0, 5))
def test_a_bag_of_words_does_not_see_the_order(probe, texts, seed):
    place = context({f"d{i}": text for i, text in enumerate(texts)}, queries={"q": "old oak pine in"}, seed=seed)
    found = [it for it in probe.draw_pairs(place) if isinstance(it, TextPair)]
    slates = [Slate(it.query, (it.first, it.second)) for it in found]
    for ranker in (BM25().open(SCALE.collection), QL().open(SCALE.collection), Counts()):
        for scores in ranker.score(slates):
            assert scores[0] == scores[1], "not even by a bit"
    for it in found:
        assert Counter(it.first.body.split()) == Counter(it.second.body.split())


SCALE = context({f"s{i}": f"{word} oak pine in the old wood" for i, word in enumerate(WORDS)})


@pytest.mark.parametrize("probe", ALL, ids=repr)
@settings(max_examples=20, deadline=None)
@given(texts=st.lists(st.one_of(ENGLISH, st.text(max_size=60)), min_size=2, max_size=3), query=st.text(max_size=12))
def test_no_text_and_no_query_breaks_a_manipulation(probe, texts, query):
    place = context({f"d{i}": text for i, text in enumerate(texts)}, {"q": {"d0": 1, "d1": 0}}, {"q": query})
    for it in probe.draw_pairs(place):
        assert isinstance(it, Skipped) or (it.first.body.strip() and it.first != it.second)


# Words and their forms.


def test_stop_words_and_punctuation_go():
    text = "The boats weren't safe; a well-known sailor left."
    found = one(RemoveStopsPunct(), text)
    assert found.second.body == "The boats were n't safe ; a well - known sailor left ."
    assert found.first.body.split() == "boats safe well known sailor left".split()
    assert found.first.body == "boats safe   well   known sailor left  "
    assert after(RemoveStopsPunct("none"), text).split() == "The boats were n t safe a well known sailor left".split()
    assert reason(RemoveStopsPunct(), "It is the.") == "nothing is left"


def test_stop_words_from_a_file(tmp_path: Path):
    path = tmp_path / "stops.txt"
    path.write_text("Boats\nsafe the\n")
    probe = RemoveStopsPunct(str(path))
    assert after(probe, "The BOATS were safe").split() == ["were"]
    path.write_text("were")
    assert after(probe, "The BOATS were safe").split() == ["The", "BOATS", "safe"], "a changed file is read again"
    path.write_text("\n")
    with pytest.raises(BadInput, match="must not be empty"):
        after(probe, "The boats")
    with pytest.raises(BadInput, match="nowhere"):
        after(RemoveStopsPunct(str(tmp_path / "nowhere")), "The boats")


def test_lemmas_of_words_that_are_no_stop_words():
    found = one(Lemmatize(), "The children were running to better houses.")
    assert found.first.body == "The child were run to good house ."
    assert found.second.body == "The children were running to better houses ."
    assert after(Lemmatize("none"), "They were running") == "they be run"
    assert reason(Lemmatize(), "a small boat") == "nothing changes"


def test_the_effect_of_the_tokeniser_alone():
    found = one(Retokenize(), "It isn't\n old.")
    assert (found.first.body, found.second.body) == ("It is n't old .", "It isn't\n old.")
    assert reason(Retokenize(), "two words") == "nothing changes"


def test_case_and_punctuation():
    assert after(FoldCase(), "The BOAT, Émile!") == "the boat, émile!"
    assert reason(FoldCase(), "low") == "nothing changes"
    assert after(DeletePunctuation(), "A well-known (old) boat.") == "A well known  old  boat "
    assert reason(DeletePunctuation(), "none") == "nothing changes"
    assert reason(DeletePunctuation(), "?!") == "nothing is left"


def test_typos_of_the_package():
    assert after(TyposProbe(), "You receive it.") in ("You recieve it.", "You receve it.")
    assert after(TyposProbe(), "Receive it, RECEIVE") in {
        f"{a} it, {b}" for a in ("Recieve", "Receve") for b in ("RECIEVE", "RECEVE")
    }
    assert reason(TyposProbe(), "xyzzy") == "nothing changes"


def test_typos_are_made_in_one_pass(tmp_path: Path):
    """A misspelling that is itself a listed word, or holds one, is left alone; entries of several words come first."""
    path = tmp_path / "typos.jsonl"
    rows = [
        {"a": "their", "b": "there"},
        {"a": "there", "b": "their"},
        {"a": "a lot", "b": "alot", "choices": ["alot"]},
        {"a": "abouta", "b": "about a", "choices": ["about a"]},
        {"a": "abuot", "choices": ["about"]},
        {"a": "carribean", "b": "Caribbean"},
        {"a": "to", "choices": ["too", "two"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    probe = TyposProbe(str(path))
    assert after(probe, "their boats, there") == "there boats, their"
    assert after(probe, "alot of talk about  a boat, About boats") == "a lot of talk abouta boat, Abuot boats"
    assert after(probe, "too the Caribbean, two") == "to the carribean, to"
    assert reason(probe, "thereof, a-there-b, caribbean") == "nothing changes"
    assert (
        after(TyposProbe(str(path), spare="english"), "too there, about the Caribbean")
        == "too there, about the carribean"
    )


@pytest.mark.parametrize(
    "line", ['{"a": "x"}', '{"a": "", "b": "y"}', '{"a": 1, "b": "y"}', "[1]", '{"a": "x", "choices": []}']
)
def test_a_bad_list_of_typos_is_refused_where_it_is_bad(tmp_path: Path, line):
    path = tmp_path / "typos.jsonl"
    path.write_text('{"a": "teh", "b": "the"}\n' + line + "\n")
    with pytest.raises(BadInput, match=r"typos\.jsonl:2: write a misspelling as"):
        after(TyposProbe(str(path)), "the boats")


def test_the_published_list_of_typos(shared_data: Path):
    path = shared_data / "pairs" / "abnirml-typos" / "typos.jsonl"
    listed = {(row["a"], right) for row in map(json.loads, path.read_text().splitlines()) for right in row["choices"]}
    assert len(listed) > 4282
    wrong = after(TyposProbe(str(path)), "An abandoned boat.").removesuffix(".").split()
    assert wrong[0] == "An"
    assert {*zip(wrong[1:], ("abandoned", "boat"), strict=True)} <= listed


# Orders.


def split(text: str) -> list[list[str]]:
    found = parse(text)
    return [found.list_words(span) for span in found.sentences]


def test_all_words_are_shuffled():
    words = " ".join(parse(TEXT).list_words())
    found = one(ShuffleWords(), TEXT)
    assert found.second.body == words
    assert sorted(found.first.body.split()) == sorted(words.split())
    kept = sum(a == b for a, b in zip(found.first.body.split(), words.split(), strict=True))
    assert kept < len(words.split()) / 3


def test_noun_phrases_stay_whole_where_they_should():
    found = parse(TEXT)
    shuffled = after(ShuffleWords(keep_phrases=True), TEXT)
    inside = after(ShuffleSentenceWords(keep_phrases=True), TEXT)
    for chunk in found.chunks:
        assert " ".join(found.list_words(chunk)) in shuffled
        assert " ".join(found.list_words(chunk)) in inside


def test_words_are_shuffled_within_sentences():
    after_it = after(ShuffleSentenceWords(), TEXT).split()
    for sentence in split(TEXT):
        head, after_it = after_it[: len(sentence)], after_it[len(sentence) :]
        assert sorted(head) == sorted(sentence)
        assert head[-1] == sentence[-1]
        assert len(sentence) < 4 or head != sentence
    assert after_it == []


def test_every_order_of_words_is_as_likely():
    counts = Counter(after(ShuffleWords(), "a b c d", seed=seed) for seed in range(600) if _changes("a b c d", seed))
    assert len(counts) == 23, "all but the one that changes nothing"
    assert max(counts.values()) < 60


def _changes(text: str, seed: int) -> bool:
    return isinstance(one(ShuffleWords(), text, seed=seed), TextPair)


@pytest.mark.parametrize("probe", [ShuffleNounPhrases(), ReverseNounPhrases()], ids=repr)
def test_noun_phrases_change_places(probe):
    before = parse(TEXT)
    phrases = [" ".join(before.list_words(chunk)) for chunk in before.chunks]
    rest = _without(before.list_words(), phrases)
    moved = after(probe, TEXT)
    slots = _slots(moved.split(), rest, phrases)
    assert sorted(slots) == sorted(phrases)
    assert slots != phrases
    if isinstance(probe, ReverseNounPhrases):
        assert slots == phrases[::-1]


def _without(words: list[str], phrases: list[str]) -> list[str]:
    """Return the words outside all phrases, with a mark in place of each phrase."""
    text = f" {' '.join(words)} "
    for phrase in phrases:
        text = text.replace(f" {phrase} ", " # ", 1)
    return text.split()


def _slots(words: list[str], rest: list[str], phrases: list[str]) -> list[str]:
    """Return the words in place of the phrases; fail if any other word moved."""
    found = []
    for item in rest:
        if item == "#":
            fitting = [p for p in phrases if words[: len(p.split())] == p.split() and phrases.count(p) > found.count(p)]
            best = max(fitting, key=len)
            found.append(best)
            words = words[len(best.split()) :]
        else:
            assert words[0] == item
            words = words[1:]
    assert words == []
    return found


def test_noun_phrases_by_hand():
    found = after(ReverseNounPhrases(), "The old man saw a small dog near Paris.")
    assert found == "Paris saw a small dog near The old man ."
    assert reason(ShuffleNounPhrases(), "He slept.") == "nothing changes"


def test_some_words_are_shuffled():
    words = parse(TEXT).list_words()
    moved = sum(a != b for a, b in zip(after(ShuffleSomeWords(), TEXT).split(), words, strict=True))
    assert 0 < moved <= len(parse(TEXT).chunks)


def test_prepositions_change_places():
    text = "The boat of the man with the dog sailed from Genoa to Rome."
    words = parse(text).list_words()
    where = {i for i, token in enumerate(parse(text).tokens) if token.tag == "ADP"}
    assert [words[i] for i in sorted(where)] == ["of", "with", "from", "to"]
    seen = set()
    for seed in range(8):
        moved = one(ShufflePrepositions(), text, seed=seed)
        if isinstance(moved, TextPair):
            after_it = moved.first.body.split()
            assert {i for i, (a, b) in enumerate(zip(after_it, words, strict=True)) if a != b} <= where
            assert sorted(after_it) == sorted(words)
            seen.add(moved.first.body)
    assert len(seen) > 2
    assert reason(ShufflePrepositions(), "A man of honour") == "it has no two prepositions"


def test_prepositions_as_published():
    """Where a preposition begins, in characters, is taken for the number of a token: here 2, 9 and 14."""
    text = "A of b c by d in e f g h i j k l m n"
    tokens = parse(text).tokens
    places = [i for i, token in enumerate(tokens) if token.tag == "ADP"]
    begins = [find_offsets(text, tokens)[i].start for i in places]
    assert (places, begins) == ([1, 4, 6], [2, 9, 14])
    words = text.split()
    for seed in range(6):
        after_it = after(ShufflePrepositions(as_published=True), text, seed=seed).split()
        assert {i for i, (a, b) in enumerate(zip(after_it, words, strict=True)) if a != b} == set(begins)
        assert sorted(after_it[i] for i in begins) == ["by", "in", "of"]
    assert after(ShufflePrepositions(as_published=True), "We go to a b c d e") == "We go to a b c to e"
    assert reason(ShufflePrepositions(as_published=True), "We go to a place") == "nothing changes"


def test_sentences_change_places():
    text = "One boat. Two old boats! Three boats? Four."
    assert after(ReverseSentences(), text) == "Four . Three boats ? Two old boats ! One boat ."
    whole = ["One boat .", "Two old boats !", "Three boats ?", "Four ."]
    seen = {after(ShuffleSentences(), text, seed=seed) for seed in range(6)}
    assert len(seen) > 3
    for moved in seen:
        assert all(sentence in moved for sentence in whole)
        assert len(moved) == len(" ".join(whole))
    for probe in (ShuffleSentences(), ReverseSentences()):
        assert reason(probe, "One boat, and no more.") == "it has one sentence"
        assert reason(probe, "No. No.") == "nothing changes"


def test_words_are_reversed():
    assert after(ReverseWords(), "The boat isn't old.") == ". old n't is boat The"
    assert reason(ReverseWords(), "word") == "nothing changes"


# What is there.


def test_sentences_are_deleted_as_they_are_written():
    text = "First, e.g. this.  Second (isn't)!\nThird?"
    assert after(DeleteSentence("first"), text) == "Second (isn't)!\nThird?"
    assert after(DeleteSentence("last"), text) == "First, e.g. this.  Second (isn't)!"
    rest = {after(DeleteSentence("random"), text, seed=seed) for seed in range(12)}
    assert rest == {
        "Second (isn't)!\nThird?",
        "First, e.g. this.  Third?",
        "First, e.g. this.  Second (isn't)!",
    }
    assert reason(DeleteSentence("first"), "Only one.") == "it has one sentence"
    with pytest.raises(BadInput, match="which should be first, last or random"):
        DeleteSentence("middle")


def test_the_query_replaces_the_text():
    assert after(ReplaceWithQuery(), "A text.", "old boats") == "old boats"
    assert after(PrependQuery(), "A text.", "old boats") == "old boats A text."
    assert after(KeywordStuffingProbe(2), "A text.", "old  boats") == "A text. old boats old boats"
    assert reason(ReplaceWithQuery(), "old boats") == "nothing changes"
    assert reason(ReplaceWithQuery(), "A text.", " ") == "nothing is left"
    for probe in (PrependQuery(), KeywordStuffingProbe()):
        assert reason(probe, "A text.", " ") == "nothing changes"
    with pytest.raises(BadInput, match="times should be between 1 and"):
        KeywordStuffingProbe(0)


def test_copies_and_boilerplate():
    assert after(DuplicateDocument(), "A text.") == "A text. A text."
    assert after(AppendBoilerplate(), "A text.") == f"A text. {BOILERPLATE}"
    assert after(AppendBoilerplate("Call us."), "A text.") == "A text. Call us."
    assert reason(AppendBoilerplate(""), "A text.") == "nothing changes"


def test_the_answer_is_buried():
    text = "No word here. Old boats rot.  A boat is old.\nThe end."
    found = one(BuryAnswer(), text)
    assert found.first.body == "No word here. A boat is old. The end. Old boats rot."
    assert found.second.body == "No word here. Old boats rot. A boat is old. The end."
    assert reason(BuryAnswer(), "Nothing. Old boats.") == "the sentence with most query words is already the last"
    assert reason(BuryAnswer(), "Nothing. Nor here.") == "no sentence has a word of the query"
    assert reason(BuryAnswer(), "Old boats") == "it has one sentence"


DOCS = {"good": "Old boats float.", "bad": "Dogs bark. Cats meow!", "worse": "Pigs grunt, e.g. loudly.", "mute": "..."}


@pytest.mark.parametrize("place", ["end", "start"])
def test_a_sentence_that_is_not_relevant_is_added(place):
    qrels = {"q": {"good": 2, "bad": 0, "worse": 0, "mute": 0}}
    added = set()
    for seed in range(20):
        probe = AddNonrelevantSentence(place)
        at = context(DOCS, qrels, seed=seed)
        found = {one.docno: one for one in probe.draw_pairs(at) if isinstance(one, TextPair)}
        assert found["good"].second.body == DOCS["good"]
        assert probe.remark(at) == ""
        ends = ("removesuffix", " " + DOCS["good"]) if place == "start" else ("removeprefix", DOCS["good"] + " ")
        added.add(getattr(found["good"].first.body, ends[0])(ends[1]))
        assert "Pigs" in found["bad"].first.body, "never a sentence of its own"
    assert added == {"Dogs bark.", "Cats meow!", "Pigs grunt, e.g. loudly."}


def test_where_nothing_has_grade_0_another_query_lends_a_sentence():
    qrels = {"q": {"good": 2, "bad": 1}, "r": {"worse": 1, "bad": 1}}
    place = context(DOCS, qrels, {"q": "old boats", "r": "pigs"})
    probe = AddNonrelevantSentence()
    found = {(o.qid, o.docno): o.first.body for o in probe.draw_pairs(place) if isinstance(o, TextPair)}
    assert found["q", "good"] == "Old boats float. Pigs grunt, e.g. loudly."
    assert found["q", "bad"] == "Dogs bark. Cats meow! Pigs grunt, e.g. loudly."
    assert found["r", "worse"] == "Pigs grunt, e.g. loudly. Old boats float."
    assert "documents that were judged for other queries" in probe.remark(place)


def test_where_nothing_can_be_added_it_is_said():
    few = context(DOCS, {"q": {"good": 2, "bad": 0}})
    found = {bool(isinstance(o, Skipped)) for o in AddNonrelevantSentence().draw_pairs(few)}
    assert found == {True, False}, "the one document of grade 0 has none to draw from"
    alone = context(DOCS, {"q": {"good": 2}})
    (none,) = AddNonrelevantSentence().draw_pairs(alone)
    assert none == Skipped("no other document is known not to be relevant to the query")
    with pytest.raises(BadInput, match="place should be end or start"):
        AddNonrelevantSentence("middle")


def test_queries_need_a_model():
    place = context(DOCS)
    assert "the model no/such is not installed" in AddQueriesProbe("no/such").unavailable_reason(place)
    assert (
        AddQueriesProbe("no/such").unavailable_reason(context(DOCS, {"r": {"good": 1}}))
        == "none of the queries has a judged document"
    )
    with pytest.raises(BadInput, match="n should be between 1 and"):
        AddQueriesProbe(n=0)


def test_a_model_that_cannot_be_opened_is_named(tmp_path: Path):
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text("{}")
    assert AddQueriesProbe(str(tmp_path)).unavailable_reason(context(DOCS))


def test_queries_are_added(tmp_path: Path, monkeypatch):
    pytest.importorskip("transformers")
    from shaketable.transforms import add_queries
    from shaketable.transforms.generated import open_generator
    from tests.rankers.neural import tiny

    monkeypatch.setattr(add_queries, "MAX_QUERY_TOKENS", 8)  # random models never come to an end by themselves
    open_generator.cache_clear()
    probe = AddQueriesProbe(str(tiny.t5(tmp_path)), n=2)
    place = context({"a": "an old oak", "b": "pine", "c": "an old oak", "d": " "})
    assert probe.unavailable_reason(place) == ""
    found = list(probe.draw_pairs(place))
    for contrast, text in zip(found[:3], ("an old oak", "pine", "an old oak"), strict=True):
        assert contrast.second.body == text
        assert contrast.first.body.startswith(f"{text} ")
    assert found[0].first == found[2].first
    assert found[3] == Skipped("it has no body")


def test_real_passages(shared_data: Path):
    """All manipulations of the passages of a real query, with both ways of counting."""
    from shaketable.datasets.load import load
    from shaketable.nlp.analyzer import Analyzer
    from shaketable.probes.context import ProbeContext

    collection = load(str(shared_data / "collections" / "dl19"))
    qids = sorted(collection.qrels)[:2]
    place = ProbeContext(collection, qids, RuleBasedParser(), Analyzer())
    cases = sum(map(len, place.judged_documents.values()))
    for probe in ALL:
        found = list(probe.draw_pairs(place))
        assert len(found) == cases
        share = sum(isinstance(one, TextPair) for one in found) / cases
        assert share > (0.2 if isinstance(probe, TyposProbe) else 0.6), (probe, share)


@pytest.mark.parametrize(
    "name",
    [
        "remove_stops_punct",
        "lemmatize",
        "shuffle_words",
        "shuffle_sentence_words",
        "shuffle_prepositions",
        "shuffle_sentences",
        "reverse_words",
    ],
)
def test_token_manipulations_are_compared_with_tokens_or_with_the_raw_text(name):
    """The code of paper 001 compares with the raw text; only "raw" therefore includes the effect of tokenisation."""
    body = "Boats aren't in the lake, (they) sail on a sea near it.  Trees grew of old by the shore, too!"
    here = context({"d": body})
    pairs = {}
    for against in ("tokens", "raw"):
        probe = PROBES.build(f"{name}(against={against!r})")
        (pairs[against],) = probe.draw_pairs(here)
        assert (against == "raw") == ("against" in PROBES.spec(probe))
    assert pairs["raw"].first == pairs["tokens"].first
    assert pairs["raw"].second.body == body
    assert pairs["tokens"].second.body == " ".join(here.parse(body).list_words()) != body


def test_a_manipulation_of_tokens_knows_its_originals():
    with pytest.raises(BadInput, match="against should be 'tokens' or 'raw', not 'text'"):
        PROBES.build("shuffle_words(against='text')")
