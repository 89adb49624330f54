"""Competitions: reading, errors, and the competition of the sample."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from shaketable.core.documents import Competition, Doc, Query
from shaketable.core.errors import BadInput
from shaketable.datasets.competition import read_competition
from shaketable.datasets.load import load

DOCS = [
    {"_id": f"{turn}-{author}", "round": turn, "query_id": "q1", "author": author, "text": f"boat {turn} of {author}"}
    for turn in (1, 2)
    for author in ("ann", "bob")
]


@pytest.fixture
def write(tmp_path: Path):
    def write(docs: list, qrels: str = "", queries: str = '{"_id": "q1", "text": "boats"}\n') -> Path:
        folder = tmp_path / "race"
        folder.mkdir(exist_ok=True)
        rows = [doc if isinstance(doc, str) else json.dumps(doc) for doc in docs]
        (folder / "documents.jsonl").write_text("".join(f"{row}\n" for row in rows))
        (folder / "queries.jsonl").write_text(queries)
        if qrels:
            (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}")
        return folder

    return write


def change_document(place: int, **fields: object) -> list:
    """Return the documents with one changed document; None removes a field."""
    docs = [dict(doc) for doc in DOCS]
    docs[place] = {key: value for key, value in (docs[place] | fields).items() if value is not None}
    return docs


def test_what_is_read(write):
    docs = [
        {"_id": 7, "round": 0, "query_id": "q1", "author": 0, "text": "an example", "stuffed": 2},
        *change_document(0, title="Boats", url="https://boats.example/", text="a boat"),
    ]
    race = read_competition(write(docs, "q1\t2-bob\t3\nq1\t7\t1\n"))
    assert race.name == "race"
    assert race.queries == {"q1": Query("boats")}
    assert list(race.rounds) == [0, 1, 2]
    assert race.rounds[1]["q1"] == {
        "ann": Doc("a boat", "Boats", "https://boats.example/"),
        "bob": Doc("boat 1 of bob"),
    }
    assert race.grades == {2: {"q1": {"bob": 3}}, 0: {"q1": {"0": 1}}}
    assert list(race.get_contested_rounds("q1")) == [1, 2], "a round with one author has no competition"


def test_it_may_be_gzipped(write):
    folder = write(DOCS)
    plain = read_competition(folder)
    for path in list(folder.iterdir()):
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert read_competition(folder) == plain
    assert plain.grades == {}


@pytest.mark.parametrize(
    ("docs", "complaint"),
    [
        (change_document(2, author=None), r'documents.jsonl:3: has no "author": who wrote the document'),
        (change_document(2, query_id=None), r'documents.jsonl:3: has no "query_id": whom it was written for'),
        (change_document(2, author=["x"]), r"documents.jsonl:3: \"author\" is \['x'\]; it must be a string"),
        (change_document(2, author="a b"), r"documents.jsonl:3: the author 'a b' has ' ' in it"),
        (change_document(1, round=None), r'documents.jsonl:2: "round" should be a whole number, 0 or more, not None'),
        (change_document(1, round="1"), r"documents.jsonl:2: \"round\" should be a whole number, 0 or more, not '1'"),
        (change_document(1, round=True), r'documents.jsonl:2: "round" should be a whole number, 0 or more, not True'),
        (change_document(1, round=-1), r'documents.jsonl:2: "round" should be a whole number, 0 or more, not -1'),
        (change_document(3, query_id="q9"), r"documents.jsonl:4: query 'q9' has no text in queries.jsonl"),
        (change_document(3, _id="2 bob"), r"documents.jsonl:4: the id '2 bob' has ' ' in it"),
        (change_document(3, query_id="q 1"), r"documents.jsonl:4: the query id 'q 1' has ' ' in it"),
        (change_document(3, _id="1-ann"), r"documents.jsonl:4: the id '1-ann' is taken; line 1 has it too"),
        (
            change_document(3, author="ann"),
            r"documents.jsonl:4: author 'ann' has two documents .* round 2; line 3 has the other",
        ),
        (change_document(3, text=None), r'documents.jsonl:4: has no "text"'),
        ([*DOCS[:2], '{"_id": "x", '], r"documents.jsonl:3: is not JSON"),
        ([*DOCS, "[]"], r"documents.jsonl:5: is not an object"),
        ([], r"documents.jsonl: holds no documents"),
        (DOCS[:2], r"documents.jsonl: race: no query has two rounds with documents of two authors or more in each"),
        (DOCS[:3], r"documents.jsonl: race: no query has two rounds"),
    ],
)
def test_what_is_refused(write, docs, complaint):
    with pytest.raises(BadInput, match=complaint):
        read_competition(write(docs))


def test_judgements_that_belong_to_nothing(write):
    with pytest.raises(BadInput, match=r"qrels.tsv: judges document 'x', which is not in documents.jsonl"):
        read_competition(write(DOCS, "q1\tx\t1\n"))
    with pytest.raises(BadInput, match=r"qrels.tsv: judges document '1-ann' for query 'q2'; it was written for 'q1'"):
        read_competition(write(DOCS, "q2\t1-ann\t1\n"))
    with pytest.raises(BadInput, match=r"qrels.tsv:2: grade 'x' is not a whole number"):
        read_competition(write(DOCS, "q1\t1-ann\tx\n"))


def test_a_folder_that_is_none(tmp_path):
    for source in (tmp_path, tmp_path / "absent", "sampel"):
        with pytest.raises(
            BadInput, match=r"there is no competition .*; it is 'sample', or a folder with documents.jsonl"
        ):
            read_competition(source)
    with pytest.raises(BadInput, match="is not a valid file name"):
        read_competition("a\0b")


def test_one_that_is_in_memory_keeps_the_same_contract():
    match = {"q": {"ann": Doc("a"), "bob": Doc("b")}}
    assert list(Competition("mine", {"q": Query("boats")}, {3: match, 1: match}).get_contested_rounds("q")) == [1, 3]
    with pytest.raises(BadInput, match="mine: no query has two rounds"):
        Competition("mine", {"q": Query("boats")}, {1: match})
    for queries in ({}, {"q": Query(" ")}):
        with pytest.raises(BadInput, match="mine: query 'q' of round 1 has no text"):
            Competition("mine", queries, {1: match, 2: match})


def test_asrc(shared_data):
    asrc = read_competition(shared_data / "competition" / "asrc")
    assert len(asrc.queries) == 31
    assert [sum(map(len, asrc.rounds[turn].values())) for turn in range(9)] == [31, *[156] * 8]
    assert all(list(asrc.get_contested_rounds(qid)) == list(range(1, 9)) for qid in asrc.queries)
    grades = [grade for turn in asrc.grades.values() for row in turn.values() for grade in row.values()]
    assert (len(grades), sum(grade > 0 for grade in grades)) == (1279, 1113)


@pytest.fixture(scope="module")
def race() -> Competition:
    return read_competition("sample")


class TestTheSample:
    def test_it_is_complete(self, race):
        assert race.name == "sample"
        assert len(race.queries) >= 12
        assert list(race.rounds) == [1, 2, 3, 4]
        authors = {"honest", "stuffer", "copier", "rephraser", "researcher"}
        for turn, matches in race.rounds.items():
            assert matches.keys() == race.queries.keys() == race.grades[turn].keys()
            assert all(docs.keys() == authors == race.grades[turn][qid].keys() for qid, docs in matches.items())
            assert all(0 <= grade <= 3 for row in race.grades[turn].values() for grade in row.values())
        texts = [doc.body for matches in race.rounds.values() for docs in matches.values() for doc in docs.values()]
        assert all(40 <= len(text.split()) <= 80 for text in texts)

    def test_queries_are_those_of_the_sample(self, race):
        queries = load("sample").queries
        assert all(query.text == queries[qid].text for qid, query in race.queries.items())

    def test_no_two_queries_share_a_sentence_or_a_phrase(self, race):
        phrases: Counter[tuple[str, ...]] = Counter()
        for qid in race.queries:
            own = set()
            for matches in race.rounds.values():
                for doc in matches[qid].values():
                    words = doc.body.lower().split()
                    own |= {tuple(words[i : i + 6]) for i in range(len(words) - 5)}
            phrases.update(own)
        assert [phrase for phrase, n in phrases.items() if n > 1] == []

    def test_sample_authors_behave_as_named(self, race):
        def docs(author: str, turn: int) -> dict[str, str]:
            return {qid: race.rounds[turn][qid][author].body for qid in race.queries}

        def repeats(qid: str, text: str) -> float:
            words = [word.strip(".,:;?").lower() for word in text.split()]
            asked = set(race.queries[qid].text.split())
            return sum(word in asked for word in words) / len(words)

        for qid in race.queries:
            peak = max(repeats(qid, docs("stuffer", turn)[qid]) for turn in race.rounds)
            assert peak > max(repeats(qid, docs("honest", turn)[qid]) for turn in race.rounds), qid
            others = " ".join(docs(author, 3)[qid] for author in ("honest", "stuffer", "rephraser", "researcher"))
            assert sum(part in others for part in docs("copier", 4)[qid].rstrip(".").split(". ")) >= 2, qid
            assert docs("rephraser", 1)[qid] != docs("rephraser", 4)[qid]
        assert {race.grades[4][qid]["researcher"] for qid in race.queries} == {3}
