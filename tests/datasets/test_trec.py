"""TREC files and data frames: written files can be read again, and errors name the line."""

from __future__ import annotations

import gzip
import math
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import pytrec_eval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shaketable.core.documents import Query, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.datasets.trec import (
    qrels_from_frame,
    read_qrels,
    read_run,
    read_run_and_tag,
    read_topics,
    run_from_frame,
    run_to_frame,
    write_qrels,
    write_run,
)

READERS = [read_run, read_qrels, read_topics]


def file(tmp_path: Path, text: str, name: str = "f.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


RUN = 'q1 Q0 d#1 1 2.5 tag\nq1\tQ0\té"2 2 -1e-3 tag\n\nq2 Q0 d#1 1 0 tag\nq1 Q0 d3 3 -7 tag\n'


@pytest.mark.parametrize("name", ["f.run", "f.run.gz"])
@pytest.mark.parametrize("text", [RUN, "\ufeff" + RUN, RUN.replace("\n", "\r\n"), RUN.rstrip("\n")])
def test_read_run(tmp_path: Path, text: str, name: str) -> None:
    expected = {"q1": {"d#1": 2.5, 'é"2': -0.001, "d3": -7.0}, "q2": {"d#1": 0.0}}
    assert read_run(file(tmp_path, text, name)) == expected
    assert read_run(str(tmp_path / name)) == expected


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("q1 Q0 d1 1 2.5\n", 1, "has 5 columns where 6 were expected: query Q0 document rank score tag"),
        ("q1 Q0 d1 1 2.5 t\n\nq1 Q0 d2 2\n", 3, "has 4 columns"),
        ("q1 Q0 d1 1 1_5 t\n", 1, "score '1_5' is not a number"),
        ("q1 Q0 d1 1 \u0661\u0662 t\n", 1, "score '\u0661\u0662' is not a number"),
        ("q1 Q0 d1 1 2.5 t\nq1 Q0 d\0x 1 2.5 t\n", 2, "has the control character '\\x00'"),
        ("q1 Q0 d1 1 2.5 t\n\nq1 Q0 d\x1cx 1 2.5 t\n", 3, "has the control character '\\x1c'"),
        ("q1 Q0 d\xa0x 1 2.5 t\n", 1, "the document id 'd\\xa0x' has '\\xa0' in it"),
        ("q\x851 Q0 d 1 2.5\n", 1, "has 5 columns where 6 were expected"),
        ("q\x851 Q0 d 1 2.5 t\n", 1, "the query id 'q\\x851' has '\\x85' in it"),
        (f"q Q0 {'d' * 1001} 1 2.5 t\n", 1, "has 1,001 characters, more than 1,000"),
        ("q1 Q0 d1 1 2.5 t\rq1 Q0 d2 2 1.5 t\r", 1, "has a carriage return in a line"),
        ("q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 high t\n", 2, "score 'high' is not a number"),
        ("q1 Q0 d1 1 nan t\n", 1, "score 'nan' is not a finite 32-bit number"),
        ("q1 Q0 d1 1 -inf t\n", 1, "score '-inf' is not a finite"),
        ("q1 Q0 d1 1 1e300 t\n", 1, "score '1e300' is not a finite"),
        ("q1 Q0 d1 1 3 t\nq2 Q0 d1 1 3 t\nq1 Q0 d1 2 2 t\n", 3, "document 'd1' is in the list of query 'q1' on line 1"),
    ],
)
def test_bad_run(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert says in str(caught.value)


def test_a_run_as_trec_eval_10_takes_it(tmp_path: Path) -> None:
    """Comments, text after the tag, and blank lines are skipped; the tag is that of the last list."""
    text = (
        "# made by hand\n#\n  # 2 Q0 d1 1 2.5 commented\n\n1 Q0 d#1 1 2.5 old # why\n1 Q0 d2 2 1.5 old more\n \n"
        "2 Q0 d1 1 7 bm25 x\n#2 Q0 d2 1 7 no 8 9\n2 Q0 d3 1 6 bm25"
    )
    expected = {"1": {"d#1": 2.5, "d2": 1.5}, "2": {"d1": 7.0, "d3": 6.0}}
    assert read_run_and_tag(file(tmp_path, text)) == (expected, "bm25")
    assert read_run(file(tmp_path, text)) == expected
    with pytest.raises(BadInput, match="is empty"):
        read_run(file(tmp_path, "# q Q0 d 1 2.5 t\n"))


def test_a_document_twice_below_comments(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"f\.txt:4: document 'd' is in the list of query 'q' on line 2 already"):
        read_run(file(tmp_path, "# x\nq Q0 d 1 3 t\n# y\nq Q0 d 2 2 t\n"))


TOPIC = "<top><num> Number: 1 <title> a </top>"
QRELS = {"q1": {"d#1": 2, "d2": 0}, "q2": {"d#1": -1}}


@pytest.mark.parametrize(
    "text",
    [
        "q1 0 d#1 2\nq1 0 d2 0\n\nq2 Q0 d#1 -1\n",
        "q1\t0\td#1\t2\nq1\t0\td2\t0\nq2\t0\td#1\t-1",
        "query-id\tcorpus-id\tscore\nq1\td#1\t2\nq1\td2\t0\nq2\td#1\t-1\n",
        "query-id corpus-id score\nq1 d#1 2\nq1 d2 0\nq2 d#1 -1\n",
        "\ufeffquery_id\tdoc_id\trelevance\r\nq1\td#1\t2\r\nq1\td2\t0\r\nq2\td#1\t-1\r\n",
        "docno\tlabel\tqid\nd#1\t2\tq1\nd2\t0\tq1\nd#1\t-1\tq2\n",
        "q1 0 d#1 2\nq1 0 d#1 2\nq1 0 d2 0\nq2 0 d#1 -1\n",
        "# q0 0 d#1 2\n#\nq1 0 d#1 2\n # q1 0 d3 1\nq1 0 d2 0\nq2 0 d#1 -1\n",
    ],
    ids=["trec", "trec tabs", "beir", "beir spaces", "bom crlf names", "other order", "said twice", "comments"],
)
@pytest.mark.parametrize("name", ["q.tsv", "q.tsv.gz"])
def test_read_qrels(tmp_path: Path, text: str, name: str) -> None:
    assert read_qrels(file(tmp_path, text, name)) == QRELS


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("q1\td1\t1\n", 1, "has three columns and no header; begin the file with query-id, corpus-id, score"),
        ("q1 0 d1 1 x\n", 1, "has 5 columns where 4 were expected: query iteration document grade"),
        ("q1 0 d1 1\nq1 0 d2\n", 2, "has 3 columns where 4 were expected"),
        ("query-id\tcorpus-id\tscore\nq1\td1\n", 2, "has 2 columns where 3 were expected: query-id corpus-id score"),
        ("q1 0 d1 1\nq1 0 d2 yes\n", 2, "grade 'yes' is not a whole number"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t0.5\n", 2, "grade '0.5' is not a whole number"),
        ("query-id\tcorpus-id\tscore\n\td1\t1\n", 2, "the query id '' is empty"),
        ("query-id\tcorpus-id\tscore\nq1\t\t1\n", 2, "the document id '' is empty"),
        ("query-id\tcorpus-id\tscore\nq1\ta b\t1\n", 2, "the document id 'a b' has ' ' in it"),
        ("query-id\tcorpus-id\tscore\nq\u30001\td\t1\n", 2, "the query id 'q\\u30001' has '\\u3000' in it"),
        ("query-id\tcorpus-id\tscore\nq1\td1\0\t1\n", 2, "has the control character '\\x00'"),
        ("q1 0 a 1\nq1 0 d\0x 1\n", 2, "has the control character '\\x00'"),
        ("q1 0 d\x07 1\n", 1, "has the control character '\\x07'"),
        ("q1 0 d\xa0 1\n", 1, "the document id 'd\\xa0' has '\\xa0' in it"),
        ("q1 0 d 9223372036854775807\n", 1, "grade 9223372036854775807 is not a whole number from -127 to 127"),
        ("q1 0 d 2000000000\n", 1, "grade 2000000000 is not"),
        (f"q1 0 d {'9' * 5000}\n", 1, "is not a whole number"),
        ("q1 0 d -128\n", 1, "grade -128 is not"),
        ("q1 0 d 1_5\n", 1, "grade '1_5' is not a whole number"),
        ("q1 0 d \u0661\n", 1, "grade '\u0661' is not a whole number"),
        ("query-id\tcorpus-id\tscore\nq1\td\t 1\n", 2, "grade ' 1' is not a whole number"),
        ("q1 0 d1 1\nq2 0 d1 1\nq1 0 d1 2\n", 3, "'d1' has grade 2 for query 'q1', on line 1 it has 1"),
        (
            "query-id\tcorpus-id\tscore\nq\ta\t1\nq\ta\t0\n",
            3,
            "document 'a' has grade 0 for query 'q', on line 2 it has 1",
        ),
    ],
)
def test_bad_qrels(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        read_qrels(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert says in str(caught.value)


def test_header_without_judgements(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a header but no judgements"):
        read_qrels(file(tmp_path, "query-id\tcorpus-id\tscore\n"))


def test_topics(tmp_path: Path) -> None:
    path = file(tmp_path, "qid\tquery\n1\twhere is it? \n\n2b\ta\u00a0b\r\n3\t\n")
    assert read_topics(path) == {"1": Query("where is it?"), "2b": Query("a\u00a0b"), "3": Query("")}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1\ta\n2 b\n", ":2: is not a query id, a tab and a text"),
        ("\ta\n", ":1: is not a query id"),
        ("1\ta\n2\tb\n1\tc\n", ":3: the id '1' is taken; line 1 has it too"),
        ("qid\ttext\n", "is empty"),
        ("1\ta\n2\tb\tc\n", ":2: has 3 columns; topics have two"),
        ("qid\ttext\tcategory\n", ":1: has 3 columns; topics have two"),
        ("1\ta\n2 b\tc\n", ":2: the query id '2 b' has ' ' in it"),
        ("1\ta\0b\n", ":1: has the control character '\\x00'"),
    ],
)
def test_bad_topics(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_topics(file(tmp_path, text))
    assert says in str(caught.value)


@pytest.mark.parametrize("read", READERS)
def test_missing_empty_folder_and_broken(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    with pytest.raises(BadInput, match="there is no such file"):
        read(tmp_path / "none")
    with pytest.raises(BadInput, match="is a folder"):
        read(tmp_path)
    for text in ("", "\n \n"):
        with pytest.raises(BadInput, match="is empty"):
            read(file(tmp_path, text))
    (tmp_path / "a.gz").write_bytes(b"no gzip")
    with pytest.raises(BadInput, match="is not a complete gzip file"):
        read(tmp_path / "a.gz")


@pytest.mark.parametrize(
    ("read", "text"), [(read_run, RUN), (read_qrels, "# x\nq1 0 d1 1\n"), (read_topics, "1\ta\n"), (read_topics, TOPIC)]
)
def test_a_pipe_is_read_once(tmp_path: Path, read: Callable[[Path], Any], text: str) -> None:
    """As `--run <(zcat a.gz)` hands it over: there is no second time."""
    expected = read(file(tmp_path, text))
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,))
    writer.start()
    assert read(tmp_path / "pipe") == expected
    writer.join()


def test_written_ranks_follow_the_ranking(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "o.run"
    write_run({"q": {"a": 1.0, "b": 1.0, "c": 2.5}}, path, "mine")
    assert path.read_text() == "q Q0 c 1 2.5 mine\nq Q0 b 2 1.0 mine\nq Q0 a 3 1.0 mine\n"


@pytest.mark.parametrize(
    ("run", "tag", "says"),
    [
        ({"q": {"a b": 1.0}}, "t", "the document id 'a b'"),
        ({"q": {"": 1.0}}, "t", "the document id ''"),
        ({"q\u00a01": {"a": 1.0}}, "t", "the query id 'q\\xa01'"),
        ({"q": {"a": 1.0}}, "my tag", "the tag 'my tag'"),
        ({"#q": {"a": 1.0}}, "t", "the query id '#q' begins with #"),
        ({"q": {"a\0": 1.0}}, "t", "the document id 'a\\x00'"),
        ({"q": {"a": math.nan}}, "t", "score nan of document 'a' for query 'q' is not finite"),
        ({"q": {}}, "t", "the run has no documents to write"),
    ],
)
def test_runs_that_cannot_be_written(tmp_path: Path, run: dict[str, dict[str, float]], tag: str, says: str) -> None:
    path = tmp_path / "o.run"
    with pytest.raises(BadInput) as caught:
        write_run(run, path, tag)
    assert says in str(caught.value)
    assert not [p for p in tmp_path.iterdir() if p.is_file()], "nothing half-written stays"


def test_qrels_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the document id 'a b'"):
        write_qrels({"q": {"a b": 1}}, tmp_path / "q.txt")
    with pytest.raises(BadInput, match="no judgements to write"):
        write_qrels({}, tmp_path / "q.txt")
    with pytest.raises(BadInput, match="grade 200 is not a whole number from -127 to 127"):
        write_qrels({"q": {"a": 200}}, tmp_path / "q.txt")


# A byte order mark in front of the file is taken for one, and # begins a comment, so no id may begin with them.
ids = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="\ufeff#"),
    min_size=1,
    max_size=8,
)
scores = st.floats(allow_nan=False, allow_infinity=False, width=32) | st.floats(-1e6, 1e6)
by_file = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def lists(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    return st.dictionaries(ids, st.dictionaries(ids, values, min_size=1, max_size=5), min_size=1, max_size=4)


@by_file
@given(run=lists(scores), suffix=st.sampled_from(["", ".gz"]))
def test_run_round_trip(tmp_path: Path, run: dict[str, dict[str, float]], suffix: str) -> None:
    path = tmp_path / f"o.run{suffix}"
    write_run(run, path)
    again = read_run(path)
    assert again == run
    assert [list(row) for row in again.values()] == [rank_docnos(row) for row in run.values()]


@by_file
@given(qrels=lists(st.integers(-2, 5)))
def test_qrels_round_trip(tmp_path: Path, qrels: dict[str, dict[str, int]]) -> None:
    write_qrels(qrels, tmp_path / "q.txt")
    assert read_qrels(tmp_path / "q.txt") == qrels


plain = st.text("abcXYZ019-_#", min_size=1, max_size=6).filter(lambda text: text[0] != "#")


@by_file
@given(
    run=st.dictionaries(plain, st.dictionaries(plain, st.floats(-9, 9), min_size=1, max_size=5), min_size=1, max_size=4)
)
def test_pytrec_eval_reads_our_files_as_we_do(tmp_path: Path, run: dict[str, dict[str, float]]) -> None:
    write_run(run, tmp_path / "o.run")
    with (tmp_path / "o.run").open() as lines:
        assert pytrec_eval.parse_run(lines) == read_run(tmp_path / "o.run")


@given(run=lists(scores))
def test_frame_round_trip(run: dict[str, dict[str, float]]) -> None:
    frame = run_to_frame(run)
    assert list(frame.columns) == ["qid", "docno", "score", "rank"]
    assert run_from_frame(frame) == run
    assert run_from_frame(frame.sample(frac=1, random_state=1)) == run


def test_frames_by_hand() -> None:
    assert run_to_frame({"q": {"a": 1.0, "b": 2.0}}).to_numpy().tolist() == [["q", "b", 2.0, 1], ["q", "a", 1.0, 2]]
    assert run_from_frame(pd.DataFrame({"query_id": [1, 1], "doc_id": ["a", 7], "score": [1, 2.5]})) == {
        "1": {"a": 1.0, "7": 2.5}
    }
    assert qrels_from_frame(pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "label": [1.0, 0.0]})) == {
        "q": {"a": 1, "b": 0}
    }
    assert qrels_from_frame(pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "relevance": ["2"]})) == {"q": {"a": 2}}


@pytest.mark.parametrize(
    ("make", "columns", "says"),
    [
        (run_from_frame, {"qid": ["q"], "document": ["a"]}, "no column 'docno'; it has: qid, document"),
        (
            run_from_frame,
            {"qid": ["q"], "docno": ["a"], "score": ["x"]},
            "row 0 of the frame: score 'x' is not a number",
        ),
        (run_from_frame, {"qid": ["q"], "docno": ["a"], "score": [None]}, "score None is not a number"),
        (run_from_frame, {"qid": ["q"], "docno": ["a"], "score": [math.inf]}, "is not a finite"),
        (
            run_from_frame,
            {"qid": ["q", None], "docno": ["a", "b"], "score": [1.0, 2.0]},
            "row 1 of the frame has no query",
        ),
        (
            run_from_frame,
            {"qid": ["q"] * 2, "docno": ["a"] * 2, "score": [1.0, 2.0]},
            "row 1 of the frame: document 'a'",
        ),
        (qrels_from_frame, {"qid": ["q"], "docno": ["a"], "label": [0.5]}, "grade 0.5 is not a whole number"),
        (qrels_from_frame, {"qid": ["q"], "docno": ["a"], "label": [math.nan]}, "grade nan is not a whole number"),
        (qrels_from_frame, {"qid": ["q"], "docno": ["a"], "label": [2**63]}, "is not a whole number from -127 to 127"),
        (qrels_from_frame, {"qid": ["q"], "docno": ["a"], "label": ["1_5"]}, "grade '1_5' is not a whole number"),
        (qrels_from_frame, {"qid": ["q"], "docno": ["a b"], "label": [1]}, "the document id 'a b' has ' ' in it"),
        (run_from_frame, {"qid": ["q\0"], "docno": ["a"], "score": [1.0]}, "the query id 'q\\x00' has '\\x00' in it"),
        (run_from_frame, {"qid": ["q"], "docno": ["a"], "score": ["1_5"]}, "score '1_5' is not a number"),
        (
            qrels_from_frame,
            {"qid": ["q"] * 2, "docno": ["a"] * 2, "label": [1, 2]},
            "'a' has grade 2 for 'q', before it had 1",
        ),
    ],
)
def test_bad_frames(make: Callable[[pd.DataFrame], Any], columns: dict[str, list[Any]], says: str) -> None:
    with pytest.raises(BadInput) as caught:
        make(pd.DataFrame(columns))
    assert says in str(caught.value)
