"""Files appear whole or not at all."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shaketable.core.errors import BadInput, Damaged
from shaketable.core.home import home_folder
from shaketable.files import reading
from shaketable.files.atomic import atomic_folder, atomic_write, atomic_write_binary
from shaketable.files.checksums import read_sealed_json, seal_json
from shaketable.files.reading import (
    open_binary,
    parse_float,
    parse_floats,
    parse_int,
    parse_json,
    read_json,
    read_lines,
    split_columns,
)
from shaketable.files.staging import staging_folder
from tests.processes import in_a_process


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "deep" / "a.txt"
    with atomic_write(path) as out:
        out.write("héllo\n")
        assert not path.exists()
    assert path.read_text(encoding="utf-8") == "héllo\n"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_nothing_is_left_of_a_block_that_fails(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_and_interrupt() -> None:
        with atomic_write(path) as out:
            out.write("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_interrupt()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir() if p.name != "home"] == ["a.txt"]


def test_gzip_by_name_and_the_same_bytes_every_time(tmp_path):
    for name in ("a.gz", "b.gz"):
        with atomic_write(tmp_path / name) as out:
            out.write("one\ntwo\n")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"one\ntwo\n"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_lines_number_what_is_not_blank(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\n\r\n  two \n".encode())
    assert list(read_lines(path)) == [(1, "one"), (3, "  two ")]


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
        (broken_gzip, "not a complete gzip file"),
        (scrambled_gzip, "not a complete gzip file"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, make, complaint):
    path = tmp_path / "a.gz"
    make(path)
    with pytest.raises(BadInput, match=rf"a\.gz.*{complaint}"):
        list(read_lines(path))


def test_not_utf8_names_the_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"ok\n\xff\xfe\n")
    with pytest.raises(BadInput, match=r"a\.txt:2: is not UTF-8"):
        list(read_lines(path))


def test_home_follows_the_environment(monkeypatch, tmp_path):
    assert home_folder() == tmp_path / "home"
    monkeypatch.setenv("SHAKETABLE_HOME", "")
    assert home_folder() == Path.home() / ".cache" / "shaketable"


LIMITED = """
import resource, sys
from pathlib import Path
from shaketable.core.errors import BadInput
from shaketable.files.atomic import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    with atomic_write(Path(sys.argv[1])) as out:
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
    (tmp_path / "a.json").write_text(seal_json(SAID))
    assert read_sealed_json(tmp_path / "a.json") == json.loads(json.dumps(SAID))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_flipped_bit_has_no_effect_or_is_reported(tmp_path, at, bit):
    path = tmp_path / "a.json"
    path.write_text(seal_json(SAID))
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1 << bit
    path.write_bytes(content)
    with suppress(Damaged):
        assert read_sealed_json(path) == json.loads(json.dumps(SAID))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", '{"a": 1}', '{"checksum": null}', "[" * 100_000])
def test_a_file_without_a_checksum_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(Damaged):
        read_sealed_json(tmp_path / "a.json")


def test_a_folder_that_is_built_goes_when_it_was_not_moved(tmp_path):
    (tmp_path / "all").mkdir()
    with staging_folder(tmp_path / "all") as new:
        (new / "a").write_text("a")
        with staging_folder(tmp_path / "all") as other:
            (other / "b").write_text("b")
        assert (new / "a").exists()
        new.rename(tmp_path / "all" / "kept")
    assert [path.name for path in (tmp_path / "all").rglob("*")] == ["kept", "a"]


def test_many_may_build_and_sweep_at_once(tmp_path):
    """A folder is not removed while it is built."""

    def build(number: int) -> str:
        with staging_folder(tmp_path) as new:
            (new / "a").write_text(str(number))
            return (new / "a").read_text()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(build, range(200))) == list(map(str, range(200)))
    assert list(tmp_path.glob(".building-*")) == []


def test_blocks_make_no_difference(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\n\r\n \t\nzwölf\n\nthree".encode())
    whole = list(read_lines(path))
    assert whole == [(1, "one"), (4, "zwölf"), (6, "three")]
    for size in range(1, 12):
        monkeypatch.setattr(reading, "READ_BLOCK_BYTES", size)
        assert list(read_lines(path)) == whole


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"one\ntwo\n\nth\0ree\n", r"a\.txt:4: has the control character '\\x00'"),
        (b"one\ntw\ro\n", r"a\.txt:2: has a carriage return in a line"),
        (b"one\rtwo\rthree\r", r"a\.txt:1: has a carriage return in a line"),
        (b"one\n\ntw\xff\n", r"a\.txt:3: is not UTF-8 text"),
        (b"one\n\xed\xa0\x80\n", r"a\.txt:2: is not UTF-8 text"),
        (b"x" * 5000, r"a\.txt: has a line of more than 4,096 bytes"),
    ],
)
def test_lines_that_are_no_text(tmp_path, monkeypatch, content, complaint):
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 4096)
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    for size in (1, 3, 1 << 20):
        monkeypatch.setattr(reading, "READ_BLOCK_BYTES", size)
        with pytest.raises(BadInput, match=complaint):
            list(read_lines(path))


BOMB = gzip.compress(b"\n" * (1 << 20))


@pytest.mark.parametrize(
    "read", [lambda path: list(read_lines(path)), read_json, lambda path: open_binary(path).read()]
)
@pytest.mark.parametrize(("bound", "value"), [("UNCHECKED_UNPACKED_BYTES", 1 << 18), ("MAX_UNPACKED_BYTES", 1 << 19)])
def test_a_file_that_unpacks_without_end(tmp_path, monkeypatch, read, bound, value):
    path = tmp_path / "a.gz"
    path.write_bytes(BOMB)
    monkeypatch.setattr(reading, bound, value)
    with pytest.raises(BadInput, match=rf"a\.gz: unpacks to more than {value:,} bytes"):
        read(path)


def test_real_text_is_far_from_the_bounds(tmp_path, monkeypatch):
    """Even a small file of one word, repeated, may unpack; and text that is not one word always may."""
    path = tmp_path / "a.gz"
    path.write_bytes(BOMB)
    assert list(read_lines(path)) == []
    monkeypatch.setattr(reading, "UNCHECKED_UNPACKED_BYTES", 0)
    path.write_bytes(gzip.compress("".join(f"{i * i} Q0 d{i} 1 {i / 7} tag\n" for i in range(20_000)).encode()))
    assert len(list(read_lines(path))) == 20_000


def test_several_gzip_members_are_one_file(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert list(read_lines(path)) == [(1, "one"), (2, "two")]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here fails to be read")
def test_a_disk_that_fails_while_reading():
    with pytest.raises(BadInput, match=r"/proc/self/mem: cannot be read \(Input/output error\)"):
        list(read_lines(Path("/proc/self/mem")))


@pytest.mark.parametrize(("name", "complaint"), [("x" * 5000, "cannot be read"), ("a\0b", "is not a valid file name")])
def test_names_that_no_file_has(tmp_path, name, complaint):
    with pytest.raises(BadInput, match=complaint) as caught:
        list(read_lines(tmp_path / name))
    assert len(str(caught.value)) <= 1000
    complaint = complaint.replace("cannot be read", "cannot be written")
    with pytest.raises(BadInput, match=complaint), atomic_write(tmp_path / name):
        pass
    with pytest.raises(BadInput, match=complaint), atomic_folder(tmp_path / name):
        pass


def test_a_name_as_long_as_names_may_be(tmp_path):
    with atomic_write(tmp_path / ("é" * 127)) as out:
        out.write("x")
    assert (tmp_path / ("é" * 127)).read_text() == "x"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    (tmp_path / "a.txt").touch(0)
    with pytest.raises(BadInput, match="permission denied"):
        list(read_lines(tmp_path / "a.txt"))


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Limit the file size by the operating system, which has the effect of a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("size", [1, 1 << 17], ids=["at the end", "on the way"])
def test_a_disk_that_is_full(tmp_path, name, size):
    (tmp_path / name).write_text("old")
    text = "".join(f"{i * i} " for i in range(5000 + size))
    said = pytest.raises(BadInput, match=r"a\.txt(\.gz)?: cannot be written \(File too large\)")
    with said, largest_file(1000), atomic_write(tmp_path / name) as out:
        out.write(text)
    assert (tmp_path / name).read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_written_over(tmp_path, make):
    make(tmp_path / "a")
    said = pytest.raises(BadInput, match=r"a: is (a folder|not a regular file); name a file to write to")
    with said, atomic_write(tmp_path / "a"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    with pytest.raises(BadInput, match="cannot be written"), atomic_write(Path("/proc/none/a")):
        pass


def test_half_a_character_cannot_be_written(tmp_path):
    said = pytest.raises(BadInput, match=r"a\.txt: cannot be written: UTF-8 cannot encode '\\ud800'")
    with said, atomic_write(tmp_path / "a.txt") as out:
        out.write("x\ud800")
    assert not list(tmp_path.iterdir())


def test_the_content_is_on_the_disk_before_the_name(tmp_path, monkeypatch):
    calls: list[str] = []

    def record_call(name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def call(*args: object) -> object:
            target = os.readlink(f"/proc/self/fd/{args[0]}") if name == "fsync" else str(args[-1])
            calls.append(f"{name} {'folder' if Path(target) == tmp_path else 'file'}")
            return real(*args)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, record_call(name))
    with atomic_write_binary(tmp_path / "a") as raw:
        raw.write(b"x")
        assert not calls
    assert calls == ["fsync file", "replace file", "fsync folder"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    def write_and_interrupt() -> None:
        with atomic_folder(tmp_path / "new") as draft:
            (draft / "a").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_interrupt()
    assert not list(tmp_path.iterdir())
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        with atomic_folder(tmp_path / name) as draft:
            (draft / "a").write_text("x")
        assert (tmp_path / name / "a").read_text() == "x"
        with pytest.raises(BadInput, match="exists already"), atomic_folder(tmp_path / name):
            pass
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "new"]


NO_NUMBERS = [
    "",
    " ",
    "1_5",
    "1_000.5",
    "\u0661\u0662",
    " 5",
    "5 ",
    "5\n",
    "\t5",
    "5\u3000",
    "\uff15",
    "five",
    "0x10",
    "1e",
    "--1",
]


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize("read", [parse_int, parse_float, lambda text: parse_floats(["1", text, "2"])])
def test_python_takes_more_for_numbers_than_we_do(read, text):
    with pytest.raises(ValueError):  # noqa: PT011  the reader of the file says what it expects
        read(text)


def test_what_is_a_number():
    assert [parse_int(text) for text in ("0", "-12", "+3", "007")] == [0, -12, 3, 7]
    assert parse_floats(["1", "-1.5", ".5", "5.", "+1e-3", "1E5"]) == [1, -1.5, 0.5, 5, 0.001, 100_000]
    assert [str(parse_float(text)) for text in ("inf", "nan", "-Infinity")] == ["inf", "nan", "-inf"]
    with pytest.raises(ValueError, match="is not a whole number"):
        parse_int("1.5")


@given(st.lists(st.floats(allow_nan=False).map(repr) | st.text("0123456789+-.eE_ x", max_size=6)))
def test_many_numbers_are_as_one_by_one(texts):
    def one_by_one() -> list[float] | None:
        try:
            return [parse_float(text) for text in texts]
        except ValueError:
            return None

    expected = one_by_one()
    if expected is None:
        with pytest.raises(ValueError):  # noqa: PT011
            parse_floats(texts)
    elif not any(value != value for value in expected):
        assert parse_floats(texts) == expected


@given(st.text(st.sampled_from(" \t\x0b\x0c\xa0\u3000\x85abé"), max_size=12), st.integers(-1, 3))
def test_columns_are_those_of_c(line, most):
    assert split_columns(line, most) == [cell.decode() for cell in line.encode().split(None, most)]


def test_json_that_is_none(tmp_path):
    path = tmp_path / "a.json"
    for text, complaint in {
        "{": r"is not JSON \(Expecting property name",
        "[" * 100_000: r"nested too deeply",
        '{"a":' * 100_000: r"nested too deeply",
        "1" * 5000: r"is not valid JSON",
        "": r"is not JSON",
    }.items():
        with pytest.raises(BadInput, match=complaint):
            parse_json(text, path, 1)
        path.write_text(text)
        with pytest.raises(BadInput, match=complaint):
            read_json(path)
    path.write_bytes(b'"\xff"')
    with pytest.raises(BadInput, match="is not UTF-8 text"):
        read_json(path)
    path.write_bytes('\ufeff["a\\ud800", "\\ud83d\\ude00"]'.encode())
    assert read_json(path) == ["a\ufffd", "\U0001f600"]


@given(
    st.recursive(
        st.none() | st.text(st.characters(exclude_categories=())), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_json_as_python_reads_it_but_for_halves_of_characters(value):
    found = parse_json(json.dumps(value), Path("x"))
    assert json.dumps(found, ensure_ascii=False).encode()
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert found == value


def test_an_open_file_can_be_read_as_any_other(tmp_path):
    for name, content in (("a", b"one\ntwo\n"), ("a.gz", gzip.compress(b"one\ntwo\n"))):
        (tmp_path / name).write_bytes(content)
        with open_binary(tmp_path / name) as raw:
            assert raw.readline() == b"one\n"
            assert list(raw) == [b"two\n"]
        assert raw.closed
        with open_binary(tmp_path / name) as raw, io.TextIOWrapper(raw) as text:
            assert text.read() == "one\ntwo\n"
