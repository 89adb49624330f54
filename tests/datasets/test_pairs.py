"""Data sets of text pairs, in the layouts they are published in, made here line by line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from shaketable.core.errors import BadInput
from shaketable.datasets.pairs import CrossedPair, PairRow, read_crossed_pairs, read_pairs
from shaketable.datasets.published_pairs import (
    GYAFC,
    JFLEG,
    NEVIR,
    SUMMARIES,
    TURK,
    WNC,
    AnsweredQuestion,
    is_sampled,
    read_facts,
    read_gyafc,
    read_jfleg,
    read_msrp,
    read_parallel_lines,
    read_summaries,
    read_turk,
    read_wnc,
)


def write_rows(path: Path, *rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def json_lines(path: Path, *rows: Any) -> Path:
    return write_rows(path, *(json.dumps(row) for row in rows))


def jfleg(folder: Path, apart: bool) -> str:
    for split in ("dev", "test"):
        place = folder / split if apart else folder
        write_rows(place / f"{split}.src", "he go home", "", "i likes it")
        write_rows(place / f"{split}.spellchecked.src", "he go home.", "", "i likes it.")
        for i in range(4):
            write_rows(place / f"{split}.ref{i}", f"He goes home {i}", "", f"I like it {i}")
    return str(folder)


@pytest.mark.parametrize("apart", [True, False], ids=["a folder a split", "one folder"])
def test_jfleg_as_its_repository_has_it(apart, tmp_path):
    pairs = list(read_jfleg(jfleg(tmp_path, apart)))
    assert len(pairs) == 2 * 3 * 4
    assert pairs[0] == PairRow("dev-1", "He goes home 0", "he go home")
    assert pairs[-1] == PairRow("test-3", "I like it 3", "i likes it")
    assert (pairs[4].first, pairs[4].second) == ("", "")  # an empty line is a line
    assert next(iter(read_jfleg(str(tmp_path), spellchecked=True))).second == "he go home."


def test_jfleg_as_lines_of_json(tmp_path):
    row = {"id": "dev-1", "rewrite": 0, "a": "he go", "b": "He goes", "a_spellchecked": "he  go"}
    path = json_lines(tmp_path / "dev.jsonl", row, row | {"b": "He went"})
    pairs = [PairRow("dev-1", "He goes", "he go"), PairRow("dev-1", "He went", "he go")]
    assert list(read_jfleg(str(path))) == list(read_jfleg(str(tmp_path))) == pairs
    assert [pair.second for pair in read_jfleg(str(path), spellchecked=True)] == ["he  go"] * 2


def test_lines_that_belong_together_must_be_as_many(tmp_path):
    folder = Path(jfleg(tmp_path, False))
    write_rows(folder / "dev.ref2", "He goes home", "")
    with pytest.raises(BadInput, match=r"dev\.ref2: has 2 lines, dev\.src has 3; they belong together"):
        list(read_jfleg(str(folder)))


def test_a_last_line_without_an_end_counts(tmp_path):
    (tmp_path / "a").write_text("one\n\ntwo")
    (tmp_path / "b").write_text("eins\n\nzwei\n")
    assert list(read_parallel_lines(tmp_path / "a", tmp_path / "b")) == [("one", "eins"), ("", ""), ("two", "zwei")]


def test_turkcorpus_in_both_layouts(tmp_path):
    write_rows(tmp_path / "files" / "test.8turkers.tok.norm", "a hard sentence -lrb- it is -rrb-", "second")
    for i in range(8):
        write_rows(tmp_path / "files" / f"test.8turkers.tok.turk.{i}", f"easy {i}", "second")
    pairs = list(read_turk(str(tmp_path / "files")))
    assert len(pairs) == 16
    assert pairs[0] == PairRow("test-1", "easy 0", "a hard sentence ( it is )")
    path = json_lines(tmp_path / "test.jsonl", {"id": "test-1", "rewrite": 0, "a": "hard", "b": "easy"})
    assert list(read_turk(str(path))) == [PairRow("test-1", "easy", "hard")]


def gyafc(folder: Path) -> Path:
    for split in ("tune", "test"):
        place = folder / "Music" / split
        write_rows(place / "formal", "Good evening", "It is late")
        write_rows(place / "informal", "yo", "gotta run")
        write_rows(place / "formal.qids", "7-q", "_")
        write_rows(place / "informal.qids", "_", "7-q")
        for i in range(4):
            write_rows(place / f"formal.ref{i}", f"Hello {i}", f"I must leave {i}")
            write_rows(place / f"informal.ref{i}", f"evening {i}", f"so late {i}")
    write_rows(folder / "questions.tsv", "7-q\thow do you greet people")
    return folder


def test_gyafc_in_both_directions(tmp_path):
    pairs = list(read_gyafc(str(gyafc(tmp_path))))
    assert len(pairs) == 2 * 2 * 2 * 4
    question = "how do you greet people"
    assert PairRow("Music-tune-informal-2", "I must leave 0", "gotta run", question) in pairs
    assert PairRow("Music-test-formal-1", "Good evening", "evening 3", question) in pairs
    assert PairRow("Music-test-formal-2", "It is late", "so late 3", None) in pairs
    assert sum(pair.query is None for pair in pairs) == len(pairs) / 2


def test_an_unknown_question(tmp_path):
    write_rows(gyafc(tmp_path) / "questions.tsv", "8-q\tanother")
    with pytest.raises(BadInput, match=r"informal\.qids:2: the question '7-q' is not in questions\.tsv"):
        list(read_gyafc(str(tmp_path)))


def test_gyafc_without_its_questions_is_lacking(tmp_path):
    (gyafc(tmp_path) / "questions.tsv").unlink()
    assert "questions.tsv" in GYAFC.unavailable_reason(str(tmp_path))


ARTICLE = {"id": "1", "title": "Otters", "summary": "Otters are back.", "body": "They were filmed in March."}


def test_summaries_as_json_and_as_a_table(tmp_path):
    json_lines(tmp_path / "a.jsonl", ARTICLE, ARTICLE | {"id": "2", "title": ""})
    write_rows(tmp_path / "b.tsv", "id\tbody\ttitle\tsummary", "3\tthe body\tthe title\tthe summary")
    assert list(read_summaries(str(tmp_path), every=1)) == [
        PairRow("1", "Otters are back.", "They were filmed in March.", "Otters"),
        PairRow("2", "Otters are back.", "They were filmed in March.", None),
        PairRow("3", "the summary", "the body", "the title"),
    ]


def test_the_sample_of_articles_is_a_tenth_by_hash(tmp_path):
    ids = [sha256(bytes(number)).hexdigest()[:40] for number in range(2000)]
    json_lines(tmp_path / "a.jsonl", *(ARTICLE | {"id": name} for name in ids))
    taken = [pair.qid for pair in read_summaries(str(tmp_path))]
    assert taken == [name for name in ids if sha256(name.encode()).digest()[0] % 10 == 0]
    assert 140 < len(taken) < 270
    bbc = [str(number) for number in range(10_000_000, 10_000_300)]
    assert [n for n in bbc if is_sampled(n, 10)] == [
        n for n in bbc if sha256(f"{n}.summary".encode()).digest()[0] % 10 == 0
    ]
    assert all(is_sampled(f"cnn:{name}", 10) == is_sampled(name, 10) for name in ids[:300])


def test_msrp_takes_paraphrases_only(tmp_path):
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    write_rows(tmp_path / "msr_paraphrase_train.txt", header, '1\t10\t11\tHe said "no\tHe refused', "0\t12\t13\tx\ty")
    write_rows(tmp_path / "msr_paraphrase_test.txt", header, "1\t14\t15\tone\tother")
    assert list(read_msrp(str(tmp_path))) == [
        PairRow("10-11", 'He said "no', "He refused"),
        PairRow("14-15", "one", "other"),
    ]


def test_the_neutral_sentence_is_first(tmp_path):
    row = "882\ttok ##ens\tother tok ##ens\tA brilliant film .\tA film ."
    path = write_rows(tmp_path / "biased.full", row, f"{row}\tADJ NOUN\tamod")
    assert list(read_wnc(str(path))) == [PairRow("882", "A film .", "A brilliant film .")] * 2
    write_rows(tmp_path / "biased.word.dev", row)
    assert len(list(read_wnc(str(tmp_path)))) == 2  # biased.full has all of them


def test_facts_in_both_layouts(tmp_path):
    question = {"question": "who sang", "answer": "Ann Lee", "entity_type": "PERSON", "passage": "Ann Lee sang."}
    sentences = [{"text": t, "supported": s, "votes": []} for t, s in (("a", True), ("b", False), ("c", True))]
    path = json_lines(tmp_path / "a.jsonl", question, {"id": "x", "article": "...", "sentences": sentences})
    assert list(read_facts(str(path))) == [
        AnsweredQuestion("1", "who sang", "Ann Lee", "PERSON", "Ann Lee sang."),
        PairRow("x", "a", "b"),
        PairRow("x", "c", "b"),
    ]


def test_crossed_pairs_by_either_name(tmp_path):
    ours = {"id": "p", "query_a": "open", "query_b": "closed", "a": "it is open", "b": "it is closed", "topic": "x"}
    nevir = {"id": "q", "q1": "open", "q2": "closed", "doc1": "it is open", "doc2": "it is closed"}
    path = json_lines(tmp_path / "a.jsonl", ours, nevir)
    texts = ("open", "closed", "it is open", "it is closed")
    assert list(read_crossed_pairs(path)) == [CrossedPair("p", *texts), CrossedPair("q", *texts)]
    json_lines(path, nevir, nevir)
    with pytest.raises(BadInput, match=r"a\.jsonl:2: the id 'q' is taken; line 1 has it too"):
        list(read_crossed_pairs(path))


def test_pairs_may_have_a_grade(tmp_path):
    path = json_lines(tmp_path / "a.jsonl", {"id": 3, "query": "q", "a": "x", "b": "y", "grade": 2})
    assert list(read_pairs(path)) == [PairRow("3", "x", "y", "q", 2)]


READERS: dict[str, tuple[Callable[[Path], Iterable[Any]], Any]] = {
    "jfleg": (lambda path: read_jfleg(str(path)), {"a": "x", "b": "y"}),
    "turk": (lambda path: read_turk(str(path)), {"a": "x", "b": "y"}),
    "summaries": (lambda path: read_summaries(str(path), 1), ARTICLE),
    "facts": (
        lambda path: read_facts(str(path)),
        {"question": "q", "answer": "a", "entity_type": "GPE", "passage": "p"},
    ),
    "crossed": (read_crossed_pairs, {"q1": "a", "q2": "b", "doc1": "c", "doc2": "d"}),
    "pairs": (read_pairs, {"query": "q", "a": "x", "b": "y"}),
}


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_line_is_reported_with_its_number(name, tmp_path):
    read, row = READERS[name]
    path = tmp_path / "x.jsonl"
    lacking = {key: value for key, value in row.items() if key != list(row)[-1]}
    wrong = row | {list(row)[-1]: 5}
    for bad, message in ((lacking, "has no"), (wrong, "should be a text, not 5"), ([1], "is not an object")):
        json_lines(path, row, bad)
        with pytest.raises(BadInput, match=rf"x\.jsonl:2: .*{message}"):
            list(read(path))
    write_rows(path, json.dumps(row), "{")
    with pytest.raises(BadInput, match=r"x\.jsonl:2: is not JSON"):
        list(read(path))


@pytest.mark.parametrize(
    ("read", "line", "message"),
    [
        (read_msrp, "1\t2\t3\tone", "should have 5 columns .* it has 4"),
        (read_msrp, "2\t2\t3\tone\tother", "Quality should be 0 or 1, not '2'"),
        (read_wnc, "1\tx\ty", "should have 5 columns or more .* it has 3"),
    ],
)
def test_a_damaged_table_is_reported_with_its_line(read, line, message, tmp_path):
    path = write_rows(tmp_path / "x.tsv", "1\t2\t3\tone\tother", line)
    with pytest.raises(BadInput, match=rf"x\.tsv:2: {message}"):
        list(read(str(path)))


def test_a_table_of_summaries_has_a_header(tmp_path):
    path = write_rows(tmp_path / "x.tsv", "id\ttitle\tsummary", "1\tt\ts")
    with pytest.raises(BadInput, match=r'x\.tsv:1: has no "body"'):
        list(read_summaries(str(path)))
    write_rows(path, "id\ttitle\tsummary\tbody", "1\tt\ts")
    with pytest.raises(BadInput, match=r"x\.tsv:2: the header has 4 columns, this line has 3"):
        list(read_summaries(str(path)))


@pytest.mark.parametrize("source", [NEVIR, GYAFC, JFLEG, SUMMARIES, TURK, WNC], ids=lambda source: source.name)
@pytest.mark.parametrize("name", ["nowhere", "empty", "\0"])
def test_a_missing_data_set_is_named_with_layout_and_origin(source, name, tmp_path):
    (tmp_path / "empty").mkdir()
    path = str(tmp_path / name)
    why = source.unavailable_reason(path)
    assert source.name in why
    assert source.layout in why
    assert source.publication in why
    with pytest.raises(BadInput, match="is not at"):
        source.require_files(path)


def test_the_real_jfleg_has_four_rewrites_of_each_sentence(shared_data):
    pairs = list(read_jfleg(str(shared_data / "pairs" / "jfleg")))
    assert len(pairs) == 3016 + 2988
    assert len({pair.qid for pair in pairs}) == 754 + 747


def test_the_real_turkcorpus_has_eight_simplifications_of_each_sentence(shared_data):
    pairs = list(read_turk(str(shared_data / "pairs" / "turkcorpus")))
    assert len(pairs) == 2 * 359 * 8
    assert (
        sum(pair.first == pair.second for pair in pairs if pair.qid.startswith("test")) == 463
    )  # as its README has it


def test_the_real_summaries_of_qags(shared_data):
    pairs = list(read_facts(str(shared_data / "pairs" / "factuality")))
    assert all(isinstance(pair, PairRow) for pair in pairs)
    assert len({pair.qid for pair in pairs}) == 108  # articles with true and false sentences; xsum has one a piece
    assert all(pair.qid.startswith("cnndm") for pair in pairs)


def test_pairs_of_one_query_share_its_id_and_have_a_title(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"id": "p1", "query": "boats", "a": "old", "b": "new", "title": "Boats"},
        {"id": "p2", "query": "boats", "a": "red", "b": "blue"},
        {"id": "p3", "query": "tea", "query_id": "q7", "a": "hot", "b": "cold"},
        {"id": "p4", "query": "teas", "query_id": "q7", "a": "hot", "b": "cold"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [(row.qid, row.title) for row in read_pairs(path)] == [("p1", "Boats"), ("p1", ""), ("q7", ""), ("q7", "")]
    path.write_text(json.dumps(rows[0] | {"title": 3}))
    with pytest.raises(BadInput, match='"title" should be a text, not 3'):
        list(read_pairs(path))


def test_source_bias_counts_the_queries_of_the_published_file(shared_data):
    """Ten documents of each of 80 queries are judged."""
    rows = list(read_pairs(shared_data / "pairs" / "source-bias" / "nq-utd.jsonl"))
    assert len(rows) == 800
    assert len({row.qid for row in rows}) == len({row.query for row in rows}) == 80
