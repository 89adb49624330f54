"""Corpora: documents are found again, and errors name the line."""

from __future__ import annotations

import gzip
import json
import threading
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from shaketable.datasets import corpus as corpus_module
from shaketable.datasets.corpus import JsonlCorpus, MemoryCorpus
from shaketable.datasets.tables import read_docs_table
from shaketable.files import reading

GOOD = '{"_id": "d1", "title": "Boats", "text": "a boat", "url": "http://a/b"}'


def write(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def test_documents_are_found_by_docno(tmp_path: Path) -> None:
    corpus = JsonlCorpus.read(write(tmp_path / "c.jsonl", GOOD, '{"_id": "d2", "text": "a train"}'))
    assert corpus["d1"] == Doc("a boat", "Boats", "http://a/b")
    assert corpus["d2"] == Doc("a train")
    assert list(corpus) == ["d1", "d2"]
    assert len(corpus) == 2
    assert "d2" in corpus
    assert "d3" not in corpus
    assert cast(object, 7) not in corpus
    assert dict(corpus.items()) == {"d1": corpus["d1"], "d2": corpus["d2"]}
    assert list(corpus.items()) == list(corpus.items()), "a second pass sees the same"
    assert corpus.get("d3") is None
    with pytest.raises(KeyError, match="d3"):
        corpus["d3"]


def test_url_in_metadata_null_title_and_number_as_id(tmp_path: Path) -> None:
    line = '{"_id": 7, "title": null, "text": "x", "metadata": {"url": "http://u", "year": 3}}'
    corpus = JsonlCorpus.read(write(tmp_path / "c.jsonl", line, '{"_id": 8, "text": "y", "metadata": {"url": 5}}'))
    assert dict(corpus.items()) == {"7": Doc("x", url="http://u"), "8": Doc("y")}


def test_bom_crlf_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode() + b'\r\n\r\n  \n{"_id": "d2", "text": "no line end"}')
    corpus = JsonlCorpus.read(path)
    assert [doc.body for _, doc in corpus.items()] == ["a boat", "no line end"]
    assert corpus["d2"].body == "no line end"


def test_a_blank_first_line_behind_a_bom(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\n" + GOOD.encode())
    assert JsonlCorpus.read(path)["d1"].body == "a boat"


def test_half_a_character_becomes_the_replacement_character(tmp_path: Path) -> None:
    r"""JSON can spell "\ud83d" alone; a file in UTF-8 can never hold it."""
    lines = [r'{"_id": "a", "text": "cut \ud83d", "title": "\uDE00"}', r'{"_id": "b", "text": "whole \ud83d\ude00"}']
    corpus = JsonlCorpus.read(write(tmp_path / "c.jsonl", *lines))
    assert corpus["a"] == Doc("cut \ufffd", "\ufffd")
    assert corpus["b"].body == "whole \U0001f600"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"_id": "d2", "text": "cut', "is not JSON (Unterminated string"),
        ("[" * 100_000, "is not valid JSON"),
        ("[1, 2]", "is not an object"),
        ('{"id": "d2", "contents": "x"}', 'has no "_id"; each line needs "_id" and "text", this one has: id, contents'),
        ('{"_id": "d2"}', 'has no "text"'),
        ('{"_id": null, "text": "x"}', '"_id" is null'),
        ('{"_id": true, "text": "x"}', '"_id" is true'),
        ('{"_id": 1.5, "text": "x"}', '"_id" is 1.5'),
        ('{"_id": "", "text": "x"}', '"_id" is ""'),
        ('{"_id": "d2", "text": null}', "\"text\" of 'd2' is not a string"),
        ('{"_id": "d2", "text": "x", "title": ["a"]}', "\"title\" of 'd2' is not a string"),
        ('{"_id": "d1", "text": "x"}', "the id 'd1' is taken; line 1 has it too"),
        ('{"_id": "d 2", "text": "x"}', "the id 'd 2' has ' ' in it"),
        (r'{"_id": "d\u0000", "text": "x"}', r"the id 'd\x00' has '\x00' in it"),
        ('{"_id": "d\u3000", "text": "x"}', r"the id 'd\u3000' has '\u3000' in it"),
        (f'{{"_id": "{"d" * 1001}", "text": "x"}}', "has 1,001 characters, more than 1,000"),
        (f'{{"_id": {"1" * 5000}, "text": "x"}}', "is not valid JSON"),
        ('{"_id": [[["d2"]]], "text": "x"}', '"_id" is a list'),
    ],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_a_bad_line_is_named(tmp_path: Path, home: Path, line: str, says: str, packed: bool) -> None:
    path = write(tmp_path / "c.jsonl", GOOD, "", line)
    if packed:
        path = tmp_path / "c.jsonl.gz"
        path.write_bytes(gzip.compress((tmp_path / "c.jsonl").read_bytes()))
    with pytest.raises(BadInput) as caught:
        JsonlCorpus.read(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert says in str(caught.value)
    assert not list((home / "corpora").iterdir() if packed else []), "what was refused leaves nothing behind"


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(GOOD.encode() + b'\n{"_id": "d2", "text": "caf\xe9"}\n')
    with pytest.raises(BadInput, match=r"c\.jsonl:2: is not UTF-8 text"):
        JsonlCorpus.read(path)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="holds no documents"):
        JsonlCorpus.read(path)


@pytest.mark.parametrize("name", ["no.jsonl", "no.jsonl.gz"])
def test_a_missing_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="there is no such file"):
        JsonlCorpus.read(tmp_path / name)


def test_gz_is_unpacked_once_and_is_the_same_corpus(tmp_path: Path, home: Path) -> None:
    plain = JsonlCorpus.read(write(tmp_path / "c.jsonl", GOOD))
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(plain.path.read_bytes()))
    packed = JsonlCorpus.read(path)
    assert packed["d1"] == plain["d1"]
    assert packed.fingerprint == plain.fingerprint
    before = {p: p.stat().st_mtime_ns for p in (home / "corpora").iterdir()}
    assert {p.suffix for p in before} == {".jsonl", ".json"}
    assert JsonlCorpus.read(path).notice == ""
    assert {p: p.stat().st_mtime_ns for p in (home / "corpora").iterdir()} == before


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"no gzip at all", lambda b: b[:12] + b"\xff" * 40]
)
def test_broken_gz(tmp_path: Path, home: Path, damage) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(damage(gzip.compress(GOOD.encode() * 50)))
    with pytest.raises(BadInput, match="is not a complete gzip file"):
        JsonlCorpus.read(path)
    assert not list((home / "corpora").iterdir()), "nothing half-written stays"


def test_a_gz_that_unpacks_without_end(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "UNCHECKED_UNPACKED_BYTES", 1 << 16)
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(f'{{"_id": "d1", "text": "{" " * (1 << 20)}"}}'.encode()))
    with pytest.raises(BadInput, match=r"c\.jsonl\.gz: unpacks to more than"):
        JsonlCorpus.read(path)
    assert not list((home / "corpora").iterdir())


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "MAX_LINE_BYTES", 1 << 16)
    path = write(tmp_path / "c.jsonl", GOOD, f'{{"_id": "d2", "text": "{"x" * (1 << 17)}"}}')
    with pytest.raises(BadInput, match=r"c\.jsonl:2: has a line of more than 65,536 bytes"):
        JsonlCorpus.read(path)


def test_a_file_that_changes_under_us_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", GOOD, '{"_id": "d2", "text": "a train"}')
    corpus = JsonlCorpus.read(path)
    write(path, GOOD, '{"_id": "d9", "text": "a train"}')
    with pytest.raises(BadInput, match="changed after it was loaded"):
        corpus["d2"]


def test_fingerprint_follows_the_content(tmp_path: Path) -> None:
    one = JsonlCorpus.read(write(tmp_path / "a.jsonl", GOOD)).fingerprint
    assert one == JsonlCorpus.read(write(tmp_path / "b.jsonl", GOOD)).fingerprint
    assert one != JsonlCorpus.read(write(tmp_path / "c.jsonl", GOOD.replace("boat", "goat"))).fingerprint


def test_threads_read_at_once(tmp_path: Path) -> None:
    lines = [json.dumps({"_id": f"d{i}", "text": f"text {i}"}) for i in range(500)]
    corpus = JsonlCorpus.read(write(tmp_path / "c.jsonl", *lines))
    wrong: list[int] = []

    def look() -> None:
        wrong.extend(i for i in range(500) if corpus[f"d{i}"].body != f"text {i}")

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_stays_small(tmp_path: Path) -> None:
    """50,000 documents of half a kilobyte: 25 megabytes of text, a few megabytes of memory."""
    path = tmp_path / "c.jsonl"
    with path.open("w") as out:
        out.writelines(f'{{"_id": "document-{i}", "text": "{"word " * 100}"}}\n' for i in range(50_000))
    tracemalloc.start()
    try:
        corpus = JsonlCorpus.read(path)
        assert sum(1 for _ in islice(corpus.items(), 10_000)) == 10_000
        assert corpus["document-43210"].body.startswith("word")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(corpus) == 50_000
    assert peak < 7.5e6


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ids = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=20)
docs = st.builds(Doc, body=words, title=words, url=words)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    docs=st.dictionaries(ids, docs, min_size=1, max_size=8),
    ascii_only=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_whatever_json_holds_comes_back(tmp_path: Path, docs: dict[str, Doc], ascii_only: bool, end: str) -> None:
    rows = [{"_id": docno, "title": d.title, "text": d.body, "url": d.url} for docno, d in docs.items()]
    path = write(tmp_path / "c.jsonl", *(json.dumps(row, ensure_ascii=ascii_only) for row in rows), end=end)
    corpus = JsonlCorpus.read(path)
    assert list(corpus.items()) == list(docs.items())
    assert {docno: corpus[docno] for docno in docs} == docs


@given(docs=st.dictionaries(words, docs, max_size=8))
def test_memory_corpus_is_the_dictionary_and_order_does_not_matter(docs: dict[str, Doc]) -> None:
    corpus = MemoryCorpus(docs)
    assert dict(corpus.items()) == docs == {docno: corpus[docno] for docno in corpus}
    assert len(corpus) == len(docs)
    turned = MemoryCorpus(dict(reversed(docs.items())))
    assert turned.fingerprint == corpus.fingerprint
    assert MemoryCorpus({**docs, "new one": Doc("x")}).fingerprint != corpus.fingerprint or "new one" in docs


def test_memory_fingerprint_tells_the_fields_apart() -> None:
    assert MemoryCorpus({"a": Doc("x", title="y")}).fingerprint != MemoryCorpus({"a": Doc("y", title="x")}).fingerprint


def make_table(folder: Path) -> JsonlCorpus:
    path = folder / "docs.csv"
    path.write_text("docno,text\n" + "".join(f"d{i},a boat number {i}\n" for i in range(20)))
    return read_docs_table(path)


def make_packed(folder: Path) -> JsonlCorpus:
    path = folder / "c.jsonl.gz"
    lines = "".join(json.dumps({"_id": f"d{i}", "text": f"a boat number {i}"}) + "\n" for i in range(20))
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))
    return JsonlCorpus.read(path)


@pytest.mark.parametrize("read", [make_table, make_packed])
@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@pytest.mark.parametrize("cut", [False, True])
def test_a_damaged_copy_is_made_again(tmp_path: Path, home: Path, read, suffix: str, cut: bool) -> None:  # type: ignore[no-untyped-def]
    """One letter of a text changes, or an object that is no longer closed; the user's file is intact."""
    whole = read(tmp_path)
    content = dict(whole.items())
    (damaged,) = (home / "corpora").glob(f"*{suffix}")
    raw = damaged.read_bytes()
    damaged.write_bytes(
        raw[:-3] if cut else raw.replace(b"boat number 7", b"goat number 7").replace(b'"size"', b'"sizf"')
    )
    again = read(tmp_path)
    assert dict(again.items()) == content
    assert again.fingerprint == whole.fingerprint
    assert again.notice.startswith(f"the copy of {'docs.csv' if read is make_table else 'c.jsonl.gz'} in ")
    assert "was damaged, and was made again from that file" in again.notice
    assert damaged.read_bytes() == raw
    assert read(tmp_path).notice == ""


@pytest.mark.parametrize("read", [make_table, make_packed])
def test_a_copy_without_a_checksum_is_made_again(tmp_path: Path, home: Path, read) -> None:  # type: ignore[no-untyped-def]
    """As an earlier version wrote it, or a killed process."""
    content = dict(read(tmp_path).items())
    (about,) = (home / "corpora").glob("*.json")
    (copy,) = (home / "corpora").glob("*.jsonl")
    about.unlink()
    copy.write_bytes(copy.read_bytes().replace(b"boat", b"goat"))
    assert dict(read(tmp_path).items()) == content
    assert about.is_file()


@pytest.mark.parametrize("read", [make_table, make_packed])
def test_a_copy_where_the_home_cannot_be_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read,  # type: ignore[no-untyped-def]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        corpus = read(tmp_path)
        assert corpus["d7"].body == "a boat number 7"
        assert "cannot be written (Not a directory)" in corpus.notice
    assert (tmp_path / "file").read_text() == ""
