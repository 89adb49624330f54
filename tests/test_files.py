"""Files appear whole or not at all."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from shaketable.errors import BadInput
from shaketable.files import folder_whole, home, lines, written_whole


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "deep" / "a.txt"
    with written_whole(path) as out:
        out.write("héllo\n")
        assert not path.exists()
    assert path.read_text(encoding="utf-8") == "héllo\n"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_nothing_is_left_of_a_block_that_fails(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted() -> None:
        with written_whole(path) as out:
            out.write("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir() if p.name != "home"] == ["a.txt"]


def test_gzip_by_name_and_the_same_bytes_every_time(tmp_path):
    for name in ("a.gz", "b.gz"):
        with written_whole(tmp_path / name) as out:
            out.write("one\ntwo\n")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"one\ntwo\n"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_lines_number_what_is_not_blank(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\n\r\n  two \n".encode())
    assert list(lines(path)) == [(1, "one"), (3, "  two ")]


def broken_gzip(path: Path) -> None:
    whole = gzip.compress(b"some lines\n" * 1000)
    path.write_bytes(whole[: len(whole) // 2])


def scrambled_gzip(path: Path) -> None:
    whole = bytearray(gzip.compress(bytes(range(256)) * 100))
    whole[15:40] = b"\xff" * 25
    path.write_bytes(whole)
    with pytest.raises((zlib.error, OSError, EOFError)):
        gzip.decompress(bytes(whole))


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.write_bytes(b"ok\n\xff\xfe\n"), "not"),
        (broken_gzip, "not a whole gzip file"),
        (scrambled_gzip, "not a whole gzip file"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, make, complaint):
    path = tmp_path / "a.gz"
    make(path)
    with pytest.raises(BadInput, match=rf"a\.gz.*{complaint}"):
        list(lines(path))


def test_not_utf8_names_the_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"ok\n\xff\xfe\n")
    with pytest.raises(BadInput, match=r"a\.txt:2: is not UTF-8"):
        list(lines(path))


def test_home_follows_the_environment(monkeypatch, tmp_path):
    assert home() == tmp_path / "home"
    monkeypatch.setenv("SHAKETABLE_HOME", "")
    assert home() == Path.home() / ".cache" / "shaketable"


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "new" / "folder"

    def fail() -> None:
        with folder_whole(target) as fresh:
            (fresh / "a").write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(target.parent.iterdir()) == []
    with folder_whole(target) as fresh:
        (fresh / "a").write_text("whole")
        assert not target.exists()
    assert (target / "a").read_text() == "whole"


def test_of_two_folders_the_first_stays(tmp_path):
    with folder_whole(tmp_path / "x") as slow:
        (slow / "a").write_text("slow")
        with folder_whole(tmp_path / "x") as quick:
            (quick / "a").write_text("quick")
    assert (tmp_path / "x" / "a").read_text() == "quick"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
