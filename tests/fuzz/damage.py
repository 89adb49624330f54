"""Damage to files: by a disk, by a mail program, by an editor, or on purpose."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable

from shaketable.core.seeding import ItemRandom

Damage = Callable[[bytes, ItemRandom], bytes]

LARGEST = 1 << 20

NUMBERS = (
    "0", "-1", "127", "128", "-128", "32", "300000000", "2000000000", "3000000000", "9223372036854775807",
    "-9223372036854775808", "18446744073709551616", "1e38", "1e39", "1e308", "1e309", "-1e999", "nan", "inf",
    "-Infinity", "1_5", "\u0661\u0662", "\uff15", " 5", "5\u3000", "0x10", "1.5", "1,5", "+", "-", ".", "e5", "1e",
    "0" * 400, "9" * 5000,
)  # fmt: skip
PIECES = (
    b"\0", b"\x01", b"\x07", b"\x0b", b"\x0c", b"\x1a", b"\x1b[31m", b"\x1c", b"\x1f", b"\x7f", b"\r", b"\n", b"\n\n",
    b"\t", b" ", b"\xc2\x85", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xe3\x80\x80", b"\xef\xbb\xbf", b"\xe2\x80\xae",
    b"\xed\xa0\x80", b"\xff", b"\xfe\xff", b"\xc3", b"\xf8\x88\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x99\x82",
    b"\\u0000", b"\\ud800", b"\\udc00\\ud800", b"\\", b'"', b"'", b"#", b":", b"::", b",", b"|", b">", b"<",
    b"<!DOCTYPE a>", b"&a;", b"&#0;", b"</top>", b"<top>", b"<topic number='1'>", b"]]>", b"<!--", b"{}", b"[]",
    b"null", b"true", b"NaN", b"1e400", b"-", b"--", b"%s", b"{0}", b"../..", b"x" * 300,
)  # fmt: skip


def flip(data: bytes, rng: ItemRandom) -> bytes:
    """Flip a few bits."""
    found = bytearray(data)
    for _ in range(1 + rng.randbelow(8)):
        if found:
            found[rng.randbelow(len(found))] ^= 1 << rng.randbelow(8)
    return bytes(found)


def noise(data: bytes, rng: ItemRandom) -> bytes:
    at = rng.randbelow(len(data) + 1)
    return data[:at] + bytes(rng.randbelow(256) for _ in range(1 + rng.randbelow(20))) + data[at + rng.randbelow(20) :]


def cut_end(data: bytes, rng: ItemRandom) -> bytes:
    return data[: rng.randbelow(len(data) + 1)]


def cut_out(data: bytes, rng: ItemRandom) -> bytes:
    at = rng.randbelow(len(data) + 1)
    return data[:at] + data[at + 1 + rng.randbelow(30) :]


def insert(data: bytes, rng: ItemRandom) -> bytes:
    """Something that has a meaning somewhere."""
    at = rng.randbelow(len(data) + 1)
    return data[:at] + rng.choice(PIECES) + data[at:]


def renumber(data: bytes, rng: ItemRandom) -> bytes:
    """Another number for one that is there."""
    places = [match.span() for match in re.finditer(rb"[0-9][0-9.eE+-]*", data)]
    if not places:
        return data
    start, end = rng.choice(places)
    return data[:start] + rng.choice(NUMBERS).encode() + data[end:]


def _on_lines(change: Callable[[list[bytes], int, ItemRandom], None]) -> Damage:
    def damage(data: bytes, rng: ItemRandom) -> bytes:
        rows = data.split(b"\n")
        change(rows, rng.randbelow(len(rows)), rng)
        return b"\n".join(rows)

    damage.__name__ = change.__name__.strip("_")
    return damage


def _double_line(rows: list[bytes], at: int, rng: ItemRandom) -> None:
    rows.insert(rng.randbelow(len(rows) + 1), rows[at])


def _drop_line(rows: list[bytes], at: int, rng: ItemRandom) -> None:
    del rows[at]


def _swap_lines(rows: list[bytes], at: int, rng: ItemRandom) -> None:
    other = rng.randbelow(len(rows))
    rows[at], rows[other] = rows[other], rows[at]


def _times(piece: bytes, rng: ItemRandom, most: int) -> int:
    """How often to repeat something, so that damage upon damage does not fill the memory."""
    return 1 + rng.randbelow(max(1, min(most, LARGEST // (1 + len(piece)))))


def _long_line(rows: list[bytes], at: int, rng: ItemRandom) -> None:
    rows[at] *= _times(rows[at], rng, 500)


def _long_word(rows: list[bytes], at: int, rng: ItemRandom) -> None:
    words = rows[at].split(b" ")
    place = rng.randbelow(len(words))
    words[place] *= _times(words[place], rng, 3000)
    rows[at] = b" ".join(words)


def _shuffle_words(rows: list[bytes], at: int, rng: ItemRandom) -> None:
    rows[at] = b" ".join(rng.permutation(rows[at].split(b" ")))


def _drop_word(rows: list[bytes], at: int, rng: ItemRandom) -> None:
    words = rows[at].split(b" ")
    del words[rng.randbelow(len(words))]
    rows[at] = b" ".join(words)


def _repeat_line(rows: list[bytes], at: int, rng: ItemRandom) -> None:
    rows[at:at] = [rows[at]] * _times(rows[at], rng, 300)


def nest(data: bytes, rng: ItemRandom) -> bytes:
    """Brackets or tags, as deep as it goes, in place of something or around it."""
    opening, closing = rng.choice([(b"[", b"]"), (b'{"a":', b"}"), (b"<a>", b"</a>"), (b"(", b")"), (b"<top>", b"")])
    depth = rng.choice([10, 500, 900, 1000, 5000, 100_000])
    start = rng.randbelow(len(data) + 1)
    end = start + rng.randbelow(20)
    return (
        data[:start] + opening * depth + data[start:end] + (closing * depth if rng.randbelow(2) else b"") + data[end:]
    )


def carriage_returns(data: bytes, rng: ItemRandom) -> bytes:
    return data.replace(b"\n", b"\r")


def other_gaps(data: bytes, rng: ItemRandom) -> bytes:
    gap = rng.choice([b"\t", b"  ", b",", b"\xc2\xa0", b"\xe3\x80\x80", b"\x0b", b""])
    return data.replace(rng.choice([b" ", b"\t", b","]), gap)


def other_encoding(data: bytes, rng: ItemRandom) -> bytes:
    return data.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-16-le", "utf-32", "latin-1"]), "replace")


def nothing_left(data: bytes, rng: ItemRandom) -> bytes:
    return rng.choice([b"", b"\n", b" \n\t\n", b"\xef\xbb\xbf", b"\r\n", b"#", b"\0"])


DAMAGES: tuple[Damage, ...] = (
    flip, noise, cut_end, cut_out, insert, insert, insert, renumber, renumber, renumber, nest, carriage_returns,
    other_gaps, other_encoding, nothing_left,
    *map(_on_lines, (_double_line, _drop_line, _swap_lines, _long_line, _long_word, _shuffle_words, _drop_word,
                     _repeat_line)),
)  # fmt: skip


def pack(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def badly_packed(data: bytes, rng: ItemRandom) -> bytes:
    """Gzip that is cut, scrambled, doubled, followed by something, or none at all."""
    whole = pack(data)
    return rng.choice([
        lambda: cut_end(whole, rng), lambda: flip(whole, rng), lambda: noise(whole, rng), lambda: pack(whole),
        lambda: whole + whole, lambda: whole + b"\0" * 100, lambda: whole + b"more", lambda: data,
    ])()  # fmt: skip


HARMLESS: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: data.rstrip(b"\n"),
    lambda data: data + b"\n\n",
)
"""What editors and systems do to a text, and no reader should mind."""
