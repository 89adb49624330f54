"""Queries and documents from tables: JSONL, TSV, CSV and Parquet, with several column names."""

from __future__ import annotations

import csv
import json
import sys

import pytest

from shaketable.core.documents import Doc, Query
from shaketable.core.errors import BadInput
from shaketable.datasets.load import format_files_source, load, select_source
from shaketable.datasets.tables import read_docs_table, read_queries_table

ROWS = [("a1", "oak and ash", 3), ("a2", 'a "quoted", text', 1), ("a3", "naïve 木", 2.5)]


def write_table(path, header, rows):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows))
    else:
        with path.open("w", newline="", encoding="utf-8") as out:
            if path.suffix == ".csv":
                csv.writer(out).writerows([header, *rows])
            else:
                out.writelines("\t".join(map(str, row)) + "\n" for row in [header, *rows])
    return path


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv"])
@pytest.mark.parametrize("names", [("qid", "query", "count"), ("_id", "text", "frequency"), ("id", "Question", "n")])
def test_queries_with_counts(tmp_path, ending, names):
    found = read_queries_table(write_table(tmp_path / f"log{ending}", names, ROWS))
    assert found == {qid: Query(text, weight=float(count)) for qid, text, count in ROWS}


def test_a_log_without_ids_counts_repeated_queries(tmp_path):
    asked = write_table(tmp_path / "log.csv", ["query"], [["oak"], ["ash"], ["oak"], [" "], ["oak "]])
    assert read_queries_table(asked) == {"q1": Query("oak", weight=3.0), "q2": Query("ash", weight=1.0)}
    counted = write_table(tmp_path / "counted.csv", ["query", "count"], [["oak", 2], ["ash", 1], ["oak", 5]])
    assert read_queries_table(counted)["q1"].weight == 7


def test_lines_without_a_header_are_ids_and_texts(tmp_path):
    (tmp_path / "q.tsv").write_text("1\toak\n2\tash\n")
    assert read_queries_table(tmp_path / "q.tsv") == {"1": Query("oak"), "2": Query("ash")}
    (tmp_path / "d.tsv").write_text("d1\toak trees\nd2\tash trees\n")
    assert dict(read_docs_table(tmp_path / "d.tsv").items()) == {"d1": Doc("oak trees"), "d2": Doc("ash trees")}
    (tmp_path / "t.xml").write_text('<topics><topic number="7"><query>oak</query></topic></topics>')
    assert read_queries_table(tmp_path / "t.xml") == {"7": Query("oak")}


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv"])
def test_documents_of_any_table_are_the_same(tmp_path, ending):
    rows = [("d1", "Oaks", "oak and ash", "http://a"), ("d2", "", "elm", "")]
    header = ["docno", "title", "body", "url"]
    corpus = read_docs_table(write_table(tmp_path / f"docs{ending}", header, rows))
    assert dict(corpus.items()) == {docno: Doc(body, title, url) for docno, title, body, url in rows}
    unnamed = read_docs_table(write_table(tmp_path / f"plain{ending}", ["passage"], [["oak"], ["elm"]]))
    assert list(unnamed) == ["d1", "d2"]


def test_a_long_text_with_line_breaks_is_one_document(tmp_path):
    text = "oak\n" * 50_000
    corpus = read_docs_table(write_table(tmp_path / "docs.csv", ["id", "text"], [["d1", text]]))
    assert len(corpus["d1"].body) > 131_072, "more than the csv library takes by itself"


def test_a_collection_of_files_has_a_source(tmp_path):
    queries = write_table(tmp_path / "my log&1.csv", ["query", "count"], [["oak", 2], ["ash", 1]])
    docs = write_table(tmp_path / "docs.tsv", ["id", "text"], [["d1", "oak"], ["d2", "ash"]])
    found = load(format_files_source(docs, queries))
    assert (found.name, len(found.docs), [q.weight for q in found.queries.values()]) == ("my log&1", 2, [2, 1])
    assert load(found.source).fingerprint == found.fingerprint
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    judged = load(select_source("sample", queries, docs, tmp_path / "qrels.tsv"))
    assert judged.qrels == {"q1": {"d1": 1}}
    assert load(judged.source + "&query_types=rules").queries["q1"].weight == 2


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("q.csv", "a,b\n1,2\n", r"the first line should name the columns, among them query \(or text\); it has: a, b"),
        ("q.csv", "query,count\noak,many\n", "the count of a query is a number above 0 in plain digits, .* not 'many'"),
        ("q.csv", "query,count\noak,0\n", "a number above 0 .* not '0'"),
        ("q.csv", "query,count\noak,inf\n", "a number above 0"),
        *(
            ("q.csv", f"query,count\noak,{count}\n", "in plain digits, at most 15 of them")
            for count in ("1_5", "١٥", "１５", "1e308", "1e3", "+5", "-5", "0x10", "1" * 16, "nan", "5\u3000", "1.")
        ),
        ("q.csv", "id,query\n1,oak\n1,ash\n", "the id '1' is taken; line 2 has it too"),
        ("q.csv", "id,query\n1,oak,3\n", "3 cells where the header has 2"),
        ("q.csv", "query\n", "holds no queries"),
        ("q.jsonl", '{"id": 1, "txt": "oak"}\n', "there is no query .or text. here, only: id, txt"),
        ("q.jsonl", '{"query": "oak"}\n[1]\n', "a line is a JSON object with query"),
        ("q.csv", 'query\n"oak\n', "is not a line of a table"),
    ],
)
def test_errors_are_one_sentence(tmp_path, name, text, complaint):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=complaint):
        read_queries_table(tmp_path / name)


def test_errors_in_documents(tmp_path):
    for text, complaint in (("id,text\n1,oak\n1,ash\n", "the id '1' is taken"), ("id,text\n", "holds no documents")):
        (tmp_path / "d.csv").write_text(text)
        with pytest.raises(BadInput, match=complaint):
            read_docs_table(tmp_path / "d.csv")
    with pytest.raises(BadInput, match="there is no such file"):
        load(format_files_source(tmp_path / "gone.csv", tmp_path / "gone.tsv"))
    with pytest.raises(BadInput, match="needs queries"):
        load(format_files_source(tmp_path / "d.csv", None))


def test_parquet_without_its_library_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "q.parquet").write_bytes(b"PAR1" + bytes(20))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for read in (read_queries_table, read_docs_table):
        with pytest.raises(BadInput, match="pip install pyarrow"):
            read(tmp_path / "q.parquet")


def test_parquet_is_a_table_like_others(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(("qid", "query", "count"), map(list, zip(*ROWS, strict=True)), strict=True))
    parquet.write_table(arrow.table(columns), tmp_path / "q.parquet")
    found = read_queries_table(tmp_path / "q.parquet")
    assert found == {qid: Query(text, weight=float(count)) for qid, text, count in ROWS}
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(BadInput, match="cannot be read as Parquet"):
        read_queries_table(tmp_path / "bad.parquet")
