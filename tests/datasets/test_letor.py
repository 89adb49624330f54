"""LETOR lines: reading, writing, and errors with their position."""

from __future__ import annotations

import gzip
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shaketable.core.errors import BadInput
from shaketable.datasets import letor
from shaketable.datasets.letor import Letor, minmax_scale, read_letor, write_letor

TEXT = """\
# made by hand
2 qid:10 1:0.5 3:0.25 # docid = GX001 inc = 1
0 qid:10 2:-1e3
1 qid:b 1:1 2:2 3:3 #docid=X
"""


def test_lines_become_a_matrix(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(TEXT)
    data = read_letor(path)
    assert data.features.tolist() == [[0.5, 0, 0.25], [0, -1000, 0], [1, 2, 3]]
    assert data.labels.tolist() == [2, 0, 1]
    assert data.starts.tolist() == [0, 2, 3]
    assert data.qids == ("10", "b")
    assert data.docnos == ("GX001", "10-2", "X")
    assert (data.query_count, data.row_count, data.feature_count) == (2, 3, 3)
    assert data.list_sizes.tolist() == [2, 1]
    assert data.query_numbers.tolist() == [0, 0, 1]
    assert data.mixed_labels.tolist() == [True, False]
    assert data.to_qrels() == {"10": {"GX001": 2, "10-2": 0}, "b": {"X": 1}}
    assert data.to_run(np.array([3.0, 1.0, 2.0])) == {"10": {"GX001": 3.0, "10-2": 1.0}, "b": {"X": 2.0}}


def test_gzip_a_given_width_and_many_blocks(tmp_path, monkeypatch):
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    assert read_letor(path, feature_count=5).features.shape == (3, 5)
    whole = read_letor(path)
    monkeypatch.setattr(letor, "BLOCK_ROWS", 1)
    assert (read_letor(path).features == whole.features).all()


def test_queries_can_be_selected_in_any_order(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(TEXT)
    turned = read_letor(path).select_queries([1, 0])
    assert turned.qids == ("b", "10")
    assert turned.docnos == ("X", "GX001", "10-2")
    assert turned.labels.tolist() == [1, 2, 0]
    assert turned.features[:, 0].tolist() == [1, 0.5, 0]
    assert turned.starts.tolist() == [0, 1, 3]
    assert turned.select_queries([]).row_count == 0


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("0 qid:1 2:1 1:1", "feature 1 comes after 2"),
        ("0 qid:1 2:1 2:1", "feature 2 comes after 2"),
        ("0 qid:1 0:1", "numbered from 1"),
        ("0 1:1 2:1", "no query"),
        ("0", "no query"),
        ("0 qid: 1:1", "no query"),
        ("x qid:1 1:1", "label"),
        ("1.5 qid:1 1:1", "label"),
        ("32 qid:1 1:1", "labels are 0 to 31"),
        ("-1 qid:1 1:1", "labels are 0 to 31"),
        ("0 qid:1 1:nan", "feature 1 is nan"),
        ("0 qid:1 1:0 2:inf", "feature 2 is inf"),
        ("0 qid:1 1:1e39", "feature 1 is 1e"),
        ("0 qid:1 1:one", "not a number"),
        ("0 qid:1 1", "'1' is not a feature"),
        ("0 qid:1 1:2:3", "'1:2:3' is not a feature"),
        ("0 qid:1 a:2", "'a:2' is not a feature"),
        ("0 qid:1 1:12:34:5", "'1:12:34:5' is not a feature"),
        ("0 qid:1 1:12 " + "1:1" * 5000, "is not a feature"),
        ("0 qid:1 1:1_5", "not a number"),
        ("0 qid:1 1:\u0661", "'1:\u0661' is not a feature"),
        ("0 qid:1 \u0661:1", "'\u0661:1' is not a feature"),
        ("0 qid:1 1:5\u00a06", "is not a feature"),
        ("0 qid:1 10001:1", "has a feature '10001'; features are numbered to 10,000"),
        ("0 qid:1 300000000:1", "has a feature '300000000'; features are numbered to 10,000"),
        ("0 qid:1 3000000000:1", "has a feature '3000000000'; features are numbered to 10,000"),
        (f"0 qid:1 {'9' * 5000}:1", "features are numbered to 10,000"),
        ("1_0 qid:1 1:1", "label"),
        ("\u0661 qid:1 1:1", "label"),
        ("9223372036854775807 qid:1 1:1", "labels are 0 to 31"),
        (f"{'9' * 5000} qid:1 1:1", "label"),
        ("0 qid:a\0b 1:1", "control character"),
        ("0 qid:a\u00a0b 1:1", r"the query id 'a\\xa0b' has '\\xa0' in it"),
        ("0 qid:1 1:1 # docid = a\u3000b", r"the document id 'a\\u3000b' has '\\u3000' in it"),
        ("0 qid:0 1:1", "began on line 1"),
        ("0 qid:2 1:1 # docid = same", "twice"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, complaint):
    path = tmp_path / "train.txt"
    path.write_text(f"0 qid:0 1:1\n0 qid:2 1:1 # docid = same\n{line}\n")
    with pytest.raises(BadInput, match=complaint) as error:
        read_letor(path)
    assert f"{path}:3: " in str(error.value)
    assert "\n" not in str(error.value)


def test_other_bad_files(tmp_path):
    path = tmp_path / "train.txt"
    with pytest.raises(BadInput, match="no such file"):
        read_letor(path)
    path.write_text("\n# nothing\n")
    with pytest.raises(BadInput, match="is empty"):
        read_letor(path)
    path.write_text("0 qid:1\n1 qid:1 # docid = x\n")
    with pytest.raises(BadInput, match="has 0 features; there should be 1 to 10,000"):
        read_letor(path)
    path.write_text(f"# features: {'a ' * 10_001}\n0 qid:1 1:1\n")
    with pytest.raises(BadInput, match="has 10,001 features; there should be 1 to 10,000"):
        read_letor(path)
    path.write_text("0 qid:1 7:1\n")
    with pytest.raises(BadInput, match="has feature 7, but there should be 5"):
        read_letor(path, feature_count=5)
    path.write_text("# features: a b\n0 qid:1 3:1\n")
    with pytest.raises(BadInput, match="names 2 features but has 3"):
        read_letor(path)


def test_a_few_values_do_not_make_a_vast_table(tmp_path, monkeypatch):
    monkeypatch.setattr(letor, "UNCHECKED_TABLE_CELLS", 1000)
    path = tmp_path / "train.txt"
    path.write_text("".join(f"0 qid:{q} {90 if q == 1 else 1}:1\n" for q in range(1, 20)))
    assert read_letor(path).features.shape == (19, 90)
    path.write_text("".join(f"0 qid:{q} 9999:1\n" for q in range(1, 20)))
    with pytest.raises(BadInput, match=r"train\.txt:1: makes a table of 1 rows and 9,999 features with 1 values in it"):
        read_letor(path)
    monkeypatch.setattr(letor, "MAX_TABLE_CELLS", 10)
    path.write_text("".join(f"0 qid:{q} 1:1 2:1\n" for q in range(1, 20)))
    with pytest.raises(BadInput, match=r"train\.txt:6: makes a table of 6 rows and 2 features with 12 values"):
        read_letor(path)


def test_a_comment_may_be_indented(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("  # features: a b\n \t# nothing\n0 qid:1 1:1 2:2\n")
    assert read_letor(path).names == ("a", "b")


def test_names_are_kept_in_a_comment(tmp_path):
    names = ("tf(title)", "dl(url)")
    data = Letor(np.zeros((1, 2), np.float32), np.array([1]), np.array([0, 1]), ("q",), ("d",), names)
    write_letor(data, tmp_path / "a.txt")
    again = read_letor(tmp_path / "a.txt")
    assert again.names == names
    assert again.feature_count == 2


@pytest.mark.parametrize("qid", ["a b", "", "a#b"])
def test_an_id_that_no_line_can_hold_is_refused(tmp_path, qid):
    data = Letor(np.ones((1, 1), np.float32), np.array([1]), np.array([0, 1]), (qid,), ("d",))
    with pytest.raises(BadInput, match="id"):
        write_letor(data, tmp_path / "a.txt")
    assert not (tmp_path / "a.txt").exists()


IDS = st.text(st.characters(categories=("L", "N", "P"), exclude_characters="#"), min_size=1)
LISTS = st.lists(st.tuples(IDS, st.lists(st.tuples(st.integers(0, 31), IDS), min_size=1, unique_by=lambda row: row[1])),
                 min_size=1, unique_by=lambda item: item[0])  # fmt: skip


@given(lists=LISTS, dims=st.integers(1, 5), data=st.data())
def test_written_data_are_read_back(tmp_path_factory, lists, dims, data):
    rows = [row for _, docs in lists for row in docs]
    values = st.floats(width=32, allow_nan=False, allow_infinity=False)
    features = data.draw(arrays.arrays(np.float32, (len(rows), dims), elements=values))
    starts = np.cumsum([0] + [len(docs) for _, docs in lists])
    labels = np.array([label for label, _ in rows])
    given_ = Letor(features, labels, starts, tuple(qid for qid, _ in lists), tuple(docno for _, docno in rows))
    path = tmp_path_factory.mktemp("letor") / "a.txt"
    write_letor(given_, path)
    read = read_letor(path)
    assert (read.features == given_.features).all()
    assert read.labels.tolist() == labels.tolist()
    assert read.starts.tolist() == starts.tolist()
    assert (read.qids, read.docnos) == (given_.qids, given_.docnos)


@given(data=st.data(), sizes=st.lists(st.integers(0, 4), max_size=4))
def test_minmax_brings_each_list_to_0_and_1_and_does_nothing_twice(data, sizes):
    starts = np.cumsum([0, *sizes])
    values = st.floats(-1e6, 1e6, width=32)
    features = data.draw(arrays.arrays(np.float64, (int(starts[-1]), 2), elements=values))
    scaled = minmax_scale(features, starts)
    for start, end in pairwise(starts):
        for before, after in zip(features[start:end].T, scaled[start:end].T, strict=True):
            if len(set(before)) > 1:
                assert (after.min(), after.max()) == (0, 1)
                assert (np.diff(after[np.argsort(before)]) >= 0).all()
            else:
                assert not after.any()
    assert (minmax_scale(scaled, starts) == scaled).all()


@pytest.mark.parametrize(
    ("name", "rows", "queries", "dims"),
    [
        ("mq2008/test.txt", 2874, 156, 46),
        ("mslr-5k/train.txt.gz", 5000, 43, 136),
        ("lightgbm-lambdarank/train.txt", 3005, 201, 300),
    ],
)
def test_real_files(shared_data, tmp_path, name, rows, queries, dims):
    data = read_letor(shared_data / "ltr" / name)
    assert (data.row_count, data.query_count, data.feature_count) == (rows, queries, dims)
    write_letor(data, tmp_path / "again.txt.gz")
    again = read_letor(tmp_path / "again.txt.gz")
    assert (again.features == data.features).all()
    assert (again.qids, again.docnos) == (data.qids, data.docnos)
