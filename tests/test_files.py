"""Files appear whole or not at all."""

from __future__ import annotations

import gzip
import json
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shaketable.errors import BadInput, Damaged
from shaketable.files import home, lines, read_sealed, staged, write_sealed, written_whole
from tests.processes import in_a_process


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


LIMITED = """
import resource, sys
from pathlib import Path
from shaketable.errors import BadInput
from shaketable.files import written_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    with written_whole(Path(sys.argv[1])) as out:
        out.write("x" * 1000)
except BadInput as error:
    print(error)
"""


def test_a_full_disk_is_one_sentence(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    done = in_a_process(LIMITED, tmp_path / "a.txt")
    assert done.stdout.strip() == f"{tmp_path / 'a.txt'}: cannot be written (File too large)", done.stderr
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir() if p.name != "home"] == ["a.txt"]


SAID = {"a": [1, 2.5, 1e-300, None, True], "ä": {"3": "\ud800", "x": float("inf")}, "t": (1, 2), 7: "seven"}


def test_sealed_is_read_as_it_was_written(tmp_path):
    write_sealed(tmp_path / "a.json", SAID)
    assert read_sealed(tmp_path / "a.json") == json.loads(json.dumps(SAID))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_flipped_bit_changes_nothing_or_is_told(tmp_path, at, bit):
    path = tmp_path / "a.json"
    write_sealed(path, SAID)
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1 << bit
    path.write_bytes(content)
    with suppress(Damaged):
        assert read_sealed(path) == json.loads(json.dumps(SAID))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", '{"a": 1}', '{"checksum": null}', "[" * 100_000])
def test_what_was_never_sealed_is_told(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(Damaged):
        read_sealed(tmp_path / "a.json")


def test_a_folder_that_is_built_goes_when_it_was_not_moved(tmp_path):
    (tmp_path / "all").mkdir()
    with staged(tmp_path / "all") as new:
        (new / "a").write_text("a")
        with staged(tmp_path / "all") as other:
            (other / "b").write_text("b")
        assert (new / "a").exists()
        new.rename(tmp_path / "all" / "kept")
    assert [path.name for path in (tmp_path / "all").rglob("*")] == ["kept", "a"]


def test_many_may_build_and_sweep_at_once(tmp_path):
    """Nobody's folder is swept while it is built."""

    def build(number: int) -> str:
        with staged(tmp_path) as new:
            (new / "a").write_text(str(number))
            return (new / "a").read_text()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(build, range(200))) == list(map(str, range(200)))
    assert list(tmp_path.glob(".building-*")) == []
