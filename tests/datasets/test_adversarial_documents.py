"""Files of attacked documents: written files can be read again, and each error is one sentence."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.attack_types import AdversarialDocument
from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from shaketable.datasets.adversarial_documents import (
    POISON_ALONE_RECIPE,
    POISON_RECIPE,
    WordChange,
    find_word_changes,
    read_adversarial_documents,
    write_adversarial_documents,
)
from shaketable.datasets.limits import describe_id_problem

ids = st.text(min_size=1, max_size=8).filter(lambda name: not describe_id_problem(name))
docs = st.builds(Doc, st.text(max_size=40), st.text(max_size=20), st.text(max_size=20))
sentences = st.lists(st.sampled_from(["a", "red", "blue", "boat", "sails", "东京"]), max_size=8)


@st.composite
def attacked(draw: st.DrawFn) -> AdversarialDocument:
    queries = draw(st.dictionaries(ids, st.text(min_size=1, max_size=20).filter(str.strip), min_size=1, max_size=3))
    places = st.lists(st.integers(1, 10**6), min_size=len(queries), max_size=len(queries)).map(tuple)
    return AdversarialDocument(
        queries,
        draw(ids | st.just("")),
        draw(docs),
        draw(docs),
        draw(st.text(min_size=1, max_size=20)),
        draw(st.text(max_size=20)),
        draw(places | st.just(())),
        draw(places | st.just(())),
        draw(st.integers(0, 10**9)),
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attacked")


@given(documents=st.lists(attacked(), min_size=1, max_size=4), packed=st.booleans())
def test_written_data_are_read_back(place, documents, packed):
    path = place / ("a.jsonl.gz" if packed else "a.jsonl")
    write_adversarial_documents(documents, path)
    assert read_adversarial_documents(path) == documents
    if packed:
        assert len(gzip.decompress(path.read_bytes()).splitlines()) >= len(documents)


def write_rows(path: Path, *rows: object) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


class TestEdits:
    def test_as_many_words_are_compared_one_by_one(self):
        before = Doc("the quick fox and the quick hare", title="A quick one")
        after = Doc("the fast fox and the swift hare", title="A fast one")
        assert find_word_changes(before, after) == [
            WordChange("title", 1, "quick", "fast"),
            WordChange("text", 1, "quick", "fast"),
            WordChange("text", 5, "quick", "swift"),
        ]

    def test_a_word_that_moves_is_two_changes_where_the_length_is_the_same(self):
        assert find_word_changes(Doc("a b c"), Doc("b a c")) == [
            WordChange("text", 0, "a", "b"),
            WordChange("text", 1, "b", "a"),
        ]

    def test_words_that_are_put_in_and_taken_out(self):
        assert find_word_changes(Doc("one two three"), Doc("new words one two three")) == [
            WordChange("text", 0, "", "new words")
        ]
        assert find_word_changes(Doc("one two three"), Doc("one three")) == [WordChange("text", 1, "two", "")]
        assert find_word_changes(Doc("one two"), Doc("one two", title="a title")) == [
            WordChange("title", 0, "", "a title")
        ]

    def test_nothing_changed(self):
        assert find_word_changes(Doc("a  b\n c", title="t"), Doc("a b c", title="t")) == []

    @given(before=sentences, after=sentences)
    def test_edits_turn_one_text_into_the_other(self, before, after):
        """Apply from the last to the first, so that offsets stay valid."""
        words = list(before)
        for change in reversed(find_word_changes(Doc(" ".join(before)), Doc(" ".join(after)))):
            old = change.before.split()
            assert words[change.word : change.word + len(old)] == old
            words[change.word : change.word + len(old)] = change.after.split()
        assert words == after

    def test_they_stand_in_the_file(self, tmp_path):
        one = AdversarialDocument({"q1": "tidal power"}, "d7", Doc("a blue boat", "t"), Doc("a red boat", "t"), "wsra")
        write_adversarial_documents([one], tmp_path / "a.jsonl")
        row = json.loads((tmp_path / "a.jsonl").read_text())
        assert row["edits"] == [{"field": "text", "word": 1, "before": "red", "after": "blue"}]
        assert row["queries"] == {"q1": "tidal power"}
        assert row["docno"] == "d7"


class TestForms:
    def test_a_text_that_a_person_wrote_for_a_query(self, tmp_path):
        path = write_rows(tmp_path / "a.jsonl", "", {"query": "tidal power", "text": "The tide.", "more": [1]})
        (one,) = read_adversarial_documents(path)
        assert one == AdversarialDocument(
            {"line-2": "tidal power"}, "", Doc("The tide."), recipe="a text of unknown origin"
        )

    def test_a_query_may_be_called_query(self, tmp_path):
        """An id is an id, also where it is the name of a field."""
        path = write_rows(tmp_path / "a.jsonl", {"queries": {"query": "tidal power"}, "text": "x"})
        assert read_adversarial_documents(path)[0].queries == {"query": "tidal power"}

    def test_poisoned_texts_are_read_twice(self, tmp_path):
        path = write_rows(tmp_path / "a.jsonl", {"id": "7", "question": "who won", "texts": ["We did.", "They did."]})
        read = read_adversarial_documents(path)
        assert [(one.recipe, one.doc.body) for one in read] == [
            (POISON_RECIPE, "who won. We did."),
            (POISON_ALONE_RECIPE, "We did."),
            (POISON_RECIPE, "who won. They did."),
            (POISON_ALONE_RECIPE, "They did."),
        ]
        assert {tuple(one.queries.items()) for one in read} == {(("line-1", "who won"),)}
        assert {one.docno for one in read} == {""}

    def test_all_forms_in_one_file_in_their_order(self, tmp_path):
        rows = (
            {"queries": {"q1": "a", "q2": "b"}, "docno": "d1", "text": "x", "before": [3, 4], "after": [1, 2]},
            {"query": "c", "text": "y"},
            {"question": "d", "texts": ["z"]},
        )
        read = read_adversarial_documents(write_rows(tmp_path / "a.jsonl", *rows))
        assert [one.doc.body for one in read] == ["x", "y", "d. z", "z"]
        assert (read[0].ranks_before, read[0].ranks_after) == ((3, 4), (1, 2))

    def test_published_files(self, shared_data):
        folder = shared_data / "attacks" / "poison"
        if not folder.is_dir():
            pytest.skip(f"poisoned texts are not at {folder}")
        for path in sorted(folder.glob("*.jsonl")):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            read = read_adversarial_documents(path)
            assert len(read) == 2 * sum(len(row["texts"]) for row in rows)
            poison = [one.doc.body for one in read if one.recipe == POISON_RECIPE]
            assert poison == [f"{row['question']}. {text}" for row in rows for text in row["texts"]]


OURS = {"queries": {"q1": "a"}, "text": "x"}
MALFORMED = {
    "did not answer with JSON": ("{", "is not JSON"),
    "a list": ([1], "is not an object"),
    "a text": ('"x"', "is not an object"),
    "no query": ({"text": "x"}, 'needs "query"'),
    "a query that is a number": ({"query": 5, "text": "x"}, 'needs "query"'),
    "a blank query": ({"query": " ", "text": "x"}, 'needs "query"'),
    "no queries": ({"queries": {}, "text": "x"}, 'needs "query"'),
    "queries in a list": ({"queries": ["a"], "text": "x"}, 'needs "query"'),
    "queries that are nothing": ({"queries": None, "query": "a", "text": "x"}, 'needs "query"'),
    "a query of queries that is no text": ({"queries": {"q1": None}, "text": "x"}, 'needs "query"'),
    "a query id": ({"queries": {"q 1": "a"}, "text": "x"}, "the query id 'q 1' has ' ' in it"),
    "an empty query id": ({"queries": {"": "a"}, "text": "x"}, "is empty"),
    "a docno": ({**OURS, "docno": "d\n1"}, "the docno"),
    "a docno that is a number": ({**OURS, "docno": 7}, '"docno" is 7'),
    "no text": ({"query": "a"}, 'has no "text"'),
    "a text that is a list": ({"query": "a", "text": ["x"]}, 'has no "text"'),
    "a title": ({**OURS, "title": 3}, '"title" is 3'),
    "a url": ({**OURS, "url": {}}, '"url" is {}'),
    "a recipe": ({**OURS, "recipe": True}, '"recipe" is True'),
    "a ranker": ({**OURS, "ranker": 1}, '"ranker" is 1'),
    "an original": ({**OURS, "original": "x"}, '"original" should be an object'),
    "an original's text": ({**OURS, "original": {"text": 1}}, '"text" is 1'),
    "places that are one number": ({**OURS, "before": 3}, '"before" is 3'),
    "places that are no numbers": ({**OURS, "after": ["1"]}, '"after" is'),
    "places that are true": ({**OURS, "after": [True]}, '"after" is'),
    "places that are fractions": ({**OURS, "after": [1.5]}, '"after" is'),
    "a place before the first": ({**OURS, "before": [0]}, '"before" is [0]'),
    "more places than queries": ({**OURS, "before": [1, 2]}, "one for each query"),
    "trials": ({**OURS, "trials": "many"}, "\"trials\" is 'many'"),
    "trials below 0": ({**OURS, "trials": -1}, '"trials" is -1'),
    "trials that are nothing": ({**OURS, "trials": None}, '"trials" is None'),
    "a question without texts": ({"question": "a"}, '"question" should be a text and "texts" a list'),
    "a question that is none": ({"question": "", "texts": ["x"]}, '"question" should be a text'),
    "texts that are no texts": ({"question": "a", "texts": [1]}, '"texts" a list of texts'),
}


@pytest.mark.parametrize("what", MALFORMED)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_a_malformed_line_is_named_by_its_number(tmp_path, what, packed):
    row, said = MALFORMED[what]
    path = write_rows(tmp_path / "a.jsonl", OURS, row)
    if packed:
        data, path = path.read_bytes(), tmp_path / "a.jsonl.gz"
        path.write_bytes(gzip.compress(data))
    with pytest.raises(BadInput, match=re.escape(said)) as caught:
        read_adversarial_documents(path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert "\n" not in str(caught.value)


def test_files_without_documents(tmp_path):
    for rows in ((), ("", "  "), ({"question": "a", "texts": []},)):
        with pytest.raises(BadInput, match="holds no documents"):
            read_adversarial_documents(write_rows(tmp_path / "empty.jsonl", *rows))
    with pytest.raises(BadInput, match="there is no such file"):
        read_adversarial_documents(tmp_path / "gone.jsonl")
    with pytest.raises(BadInput, match="a folder"):
        read_adversarial_documents(tmp_path)


def test_half_a_character_is_not_written_half(tmp_path):
    whole = AdversarialDocument({"q": "a"}, "d", Doc("x"))
    write_adversarial_documents([whole], tmp_path / "a.jsonl")
    before = (tmp_path / "a.jsonl").read_bytes()
    with pytest.raises(BadInput, match="half of a surrogate pair"):
        write_adversarial_documents([whole, AdversarialDocument({"q": "a"}, "d", Doc("\ud800"))], tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_texts_of_one_query_are_grouped(tmp_path, shared_data):
    """By "query_id", so that the judgements of the collection count; otherwise by the text of the query."""
    path = tmp_path / "a.jsonl"
    rows = [
        {"query": "tea", "text": "a"},
        {"query": "tea", "text": "b"},
        {"query": "tea", "query_id": "7", "text": "c"},
        {"question": "tea", "texts": ["d"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [next(iter(one.queries)) for one in read_adversarial_documents(path)] == [
        "line-1", "line-1", "7", "line-1", "line-1",
    ]  # fmt: skip
    published = read_adversarial_documents(shared_data / "attacks" / "injection" / "generated-dl19.jsonl")
    assert len(published) == 129
    assert len({qid for one in published for qid in one.queries}) == 43
