"""Tables of topics x systems: read to the number, refused in a sentence."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from shaketable.core.errors import BadInput
from shaketable.datasets.scores import read_scores

TABLE = "topic,bm25,my ranker (k=3)\n301,0.25,1\n302, 0.5 ,1e-3\n"


@pytest.mark.parametrize(
    "text",
    [
        TABLE,
        "\ufeff" + TABLE,
        TABLE.replace("\n", "\r\n"),
        TABLE.replace(",", "\t"),
        TABLE.replace("\n", "\n\n"),
        TABLE.replace("301", '"301"').replace("0.25", '"0.25"'),
    ],
)
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_a_table(tmp_path: Path, text: str, name: str) -> None:
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    table = read_scores(tmp_path / name, "AP")
    assert (table.measure, table.systems, table.topics) == ("AP", ("bm25", "my ranker (k=3)"), ("301", "302"))
    np.testing.assert_array_equal(table.values, [[0.25, 0.5], [1, 0.001]])


def test_topics_are_counted_where_none_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n0,1\n1,0\n")
    assert read_scores(tmp_path / "x.csv").topics == ("1", "2")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"topic,a\r1,0.5\r2,0.5\r", ":1: has a carriage return in a line"),
        (b"topic,a\n1,0.5\r2,0.5\n", ":2: has a carriage return in a line"),
        (b"topic,a\n1," + b"9" * 200_000 + b"\n", ":2: is not a line of a table (field larger than field limit"),
        (b'topic,a\n1,"0.5\n', ":2: is not a line of a table (unexpected end of data)"),
        (b'topic,a\n1,"0.5"x\n', ":2: is not a line of a table"),
        (b"topic,a\n1,0.5,0.5\n", ":2: 3 cells where the header has 2"),
        (b"topic,a\n1\n", ":2: 1 cells where the header has 2"),
        (b"topic,a\n1,1_5\n", ":2: the score of a is '1_5', not a number"),
        ("topic,a\n1,\u0661\n".encode(), ":2: the score of a is '\u0661', not a number"),
        ("topic,a\n1,0.5\u00a0\n".encode(), ":2: the score of a is '0.5\\xa0', not a number"),
        (b"topic,a\n1,1e39\n", ":2: the score of a is 1e+39; scores are finite"),
        (b"topic,a\n1,inf\n", ":2: the score of a is inf; scores are finite"),
        (b"topic,a\n1,\n", ":2: the score of a is '', not a number"),
        (b"topic,a\n,1\n", ":2: the topic '' is empty"),
        (b"topic,a\na b,1\n", ":2: the topic 'a b' has ' ' in it"),
        (b"topic,a\n1\x1b[2J,1\n", ":2: the topic '1\\x1b[2J' has '\\x1b' in it"),
        (b"topic,a\n1\0,1\n", ":2: has the control character"),
        (b"topic,a\x1b[2J\n1,1\n", ":1: each column needs its own printable name"),
        (b"topic,\n1,1\n", ":1: each column needs its own printable name"),
        (b"topic,a\xed\xa0\x80\n1,1\n", ":1: is not UTF-8 text"),
        (b"topic\n1\n", ": has no scores"),
        (b"topic," + b"a" * 100_000 + b"\n1,x\n", ":2: the score of a"),
    ],
    ids=range(22),
)
def test_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_scores(path)
    assert str(caught.value).startswith(f"{path}{says}")
    assert len(str(caught.value)) <= 1000
    assert str(caught.value).isprintable()
