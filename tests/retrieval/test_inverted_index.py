"""The index: its counts, equal in memory and from files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.files import arrays
from shaketable.files.staging import staging_folder
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.feedback import RM3
from shaketable.rankers.lexical import BM25, QL
from shaketable.retrieval import inverted_index, kernels
from shaketable.retrieval.inverted_index import (
    InvertedIndex,
    QueryBags,
    build_index,
    open_index,
    read_index,
    save_index,
)
from tests.processes import in_a_process

ODD = st.text(st.sampled_from("ab ß東\ud800’👩_\n"), max_size=30)
PLAIN = Analyzer(stopwords="none", stemmer="none")


class Docs(dict[str, Doc]):
    """A corpus in memory."""

    def __init__(self, texts: dict[str, str], name: str = "docs"):
        super().__init__({docno: Doc(text) for docno, text in texts.items()})
        self.fingerprint = name


def forget() -> None:
    """Forget the open indexes, as a new process does; a collection of garbage takes seconds in a large process."""
    inverted_index._open_indexes.clear()


def counts(index: InvertedIndex) -> dict[str, dict[str, int]]:
    """docno -> term -> count, read back from the postings."""
    first, docs, tf, _ = index.postings
    found: dict[str, dict[str, int]] = {docno: {} for docno in index.docnos}
    for number, term in enumerate(index.terms):
        span = slice(first[number], first[number + 1])
        assert (np.diff(docs[span]) > 0).all()
        for doc, count in zip(docs[span], tf[span], strict=True):
            found[index.docnos[doc]][term] = int(count)
    return found


@settings(deadline=None)  # kernels are compiled on the way
@given(st.dictionaries(st.text(max_size=4), ODD, max_size=12))
def test_it_counts(texts: dict[str, str]) -> None:
    index = build_index(Docs(texts), PLAIN)
    assert list(index.docnos) == sorted(texts, reverse=True)
    assert counts(index) == {docno: dict(Counter(PLAIN(text))) for docno, text in texts.items()}
    assert index.postings.lengths.tolist() == [len(PLAIN(texts[docno])) for docno in index.docnos]
    everything = Counter(term for text in texts.values() for term in PLAIN(text))
    assert dict(zip(index.terms, index.cf.tolist(), strict=True)) == everything
    assert index.token_count == everything.total()


def test_title_and_body_count_the_url_does_not() -> None:
    docs = Docs({})
    docs["d"] = Doc("red boat", title="Boats", url="http://boats.example")
    assert counts(build_index(docs, Analyzer())) == {"d": {"boat": 2, "red": 1}}


@pytest.mark.parametrize(("times", "dtype"), [(255, np.uint8), (256, np.uint16), (70_000, np.uint32)])
def test_counts_take_the_smallest_type_that_holds_them(times: int, dtype: type) -> None:
    index = build_index(Docs({"a": "x " * times, "b": "y"}), PLAIN)
    assert index.postings.counts.dtype == dtype
    assert counts(index) == {"a": {"x": times}, "b": {"y": 1}}


def test_more_words_than_the_table_starts_with() -> None:
    texts = {f"{i:04}": " ".join(f"w{(i * 7 + j) % 5000}" for j in range(20)) for i in range(5000)}
    index = build_index(Docs(texts), PLAIN)
    assert counts(index) == {docno: dict(Counter(text.split())) for docno, text in texts.items()}


def test_one_very_long_text() -> None:
    words = [f"word{i}" for i in range(50_000)]
    assert list(build_index(Docs({"a": " ".join(words)}), PLAIN).terms) == words


@settings(deadline=None)
@given(texts=st.dictionaries(st.text(max_size=4), ODD, max_size=5))
def test_saved_and_loaded_is_the_same(texts: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("indexes") / "one"
    built = build_index(Docs(texts), Analyzer(stemmer="snowball"), "name")
    save_index(built, folder)
    loaded = read_index(folder)
    assert (loaded.fingerprint, loaded.analyzer) == ("name", Analyzer(stemmer="snowball"))
    assert counts(loaded) == counts(built)
    for ours, theirs in zip((*built.postings, built.cf), (*loaded.postings, loaded.cf), strict=True):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


def test_open_builds_once(home: Path) -> None:
    texts = {"a": "red boat", "b": "blue boat"}
    index = open_index(Docs(texts), PLAIN)
    folder = home / "indexes" / index.fingerprint
    assert folder.is_dir()
    assert open_index(Docs(texts), PLAIN) is index
    stamp = folder.stat().st_mtime_ns
    del index
    again = open_index(Docs({}), PLAIN)  # named like the first one, so its texts are not even read
    assert counts(again) == {"a": {"red": 1, "boat": 1}, "b": {"blue": 1, "boat": 1}}
    assert folder.stat().st_mtime_ns == stamp
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_other_words_or_another_corpus_are_another_index() -> None:
    docs = Docs({"a": "red boats"})
    names = {open_index(docs, t).fingerprint for t in (PLAIN, Analyzer(), Analyzer(stopwords="none"))}
    names.add(open_index(Docs({"a": "red boats"}, name="other"), PLAIN).fingerprint)
    assert len(names) == 4


def test_the_second_writer_keeps_the_index_of_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "indexes" / "one"
    save_index(build_index(Docs({"a": "first"}), PLAIN), folder)
    save_index(build_index(Docs({"a": "second"}), PLAIN), folder)
    assert list(read_index(folder).terms) == ["first"]
    assert [path.name for path in folder.parent.iterdir()] == ["one"]


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: (folder / "postings.docs.bin").write_bytes(b"\x93NUMPY"),
        lambda folder: (folder / "postings.docs.bin").unlink(),
        lambda folder: (folder / "about.json").unlink(),
        lambda folder: (folder / "about.json").write_text("{}"),
        lambda folder: os.truncate(folder / "cf.bin", 24),
        lambda folder: os.truncate(folder / "docnos.offsets.bin", 8),
        lambda folder: flip(folder / "postings.counts.bin"),
    ],
)
def test_a_damaged_index_is_built_again_and_this_is_said(home: Path, harm: Callable[[Path], object]) -> None:
    docs = Docs({"a": "red boat", "b": "boat"}, str(home))
    folder = home / "indexes" / open_index(docs, PLAIN).fingerprint
    forget()  # what is in use is not opened again
    assert open_index(docs, PLAIN).remark == ""
    forget()
    harm(folder)
    again = open_index(docs, PLAIN)
    assert counts(again) == {"a": {"red": 1, "boat": 1}, "b": {"boat": 1}}
    assert again.remark.startswith(f"the index was built again, because the cached one is damaged ({folder}")
    del again
    forget()
    third = open_index(docs, PLAIN)
    assert (third.remark, counts(third)) == ("", {"a": {"red": 1, "boat": 1}, "b": {"boat": 1}})


def test_a_damaged_index_that_cannot_be_removed_is_done_without(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = Docs({"a": "red boat", "b": "boat"}, str(home))
    folder = home / "indexes" / open_index(docs, PLAIN).fingerprint
    forget()
    flip(folder / "postings.counts.bin")
    monkeypatch.setattr(arrays, "discard_array_folder", lambda folder: None)
    again = open_index(docs, PLAIN)
    assert counts(again) == {"a": {"red": 1, "boat": 1}, "b": {"boat": 1}}
    assert "built again" in again.remark


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


def test_rankers_tell_of_a_damaged_index(home: Path) -> None:
    collection = Collection("docs", Docs({"a": "red boat", "b": "boat"}), {})
    before = BM25().open(collection).search(["boat"], 2)
    (folder,) = (home / "indexes").iterdir()
    for model in (BM25(), QL(), RM3()):
        flip(folder / "cf.bin")
        forget()
        assert "built again" in model.open(collection).notice
    forget()
    assert BM25().open(collection).search(["boat"], 2) == before


def test_a_home_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path / "file"))
    index = open_index(Docs({"a": "boat"}), PLAIN)
    assert counts(index) == {"a": {"boat": 1}}
    assert index.remark.endswith("(Not a directory); the next run builds it again")


FULL = """
import resource
from shaketable.retrieval.inverted_index import open_index
from tests.retrieval.test_inverted_index import PLAIN, Docs
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
index = open_index(Docs({str(i): f"word{i}" for i in range(2000)}), PLAIN)
print(len(index.docnos), index.remark)
"""


def test_a_full_disk_is_done_without_and_nothing_is_left(home: Path) -> None:
    done = in_a_process(FULL)
    assert done.stdout.startswith("2000 the index cannot be cached in "), done.stderr
    assert "(File too large); the next run builds it again" in done.stdout
    assert list((home / "indexes").iterdir()) == []


KILLED = """
import os, signal, sys
import shaketable.files.arrays as arrays
from shaketable.retrieval.inverted_index import open_index
from tests.retrieval.test_inverted_index import PLAIN, Docs
arrays.sync_folder = lambda folder: os.kill(os.getpid(), signal.SIGKILL)
open_index(Docs({"a": "red boat"}, name=sys.argv[1]), PLAIN)
"""


def test_what_killed_builds_leave_is_removed_but_not_what_others_build(home: Path) -> None:
    assert in_a_process(KILLED, "one").returncode == -signal.SIGKILL
    (left,) = (home / "indexes").iterdir()
    assert (left / "new" / "cf.bin").exists()
    with staging_folder(home / "indexes") as new:  # a build that goes on
        assert not left.exists()
        (new / "mine").write_text("in the making")
        index = open_index(Docs({"a": "red boat"}, name="two"), PLAIN)
        assert (new / "mine").read_text() == "in the making"
    assert [path.name for path in (home / "indexes").iterdir()] == [index.fingerprint]


def test_old_leftovers_without_a_lock_are_removed(home: Path) -> None:
    old, fresh = (home / "indexes" / f".building-{name}" for name in ("old", "fresh"))
    for folder in (old, fresh):
        folder.mkdir(parents=True)
        (folder / "docs.npy").write_bytes(b"half")
    os.utime(old, (0, 0))
    open_index(Docs({"a": "boat"}), PLAIN)
    assert not old.exists()
    assert fresh.exists()


def test_a_docno_twice_is_refused() -> None:
    class Twice(Docs):
        def items(self):  # type: ignore[no-untyped-def]
            return [("a", Doc("x")), ("a", Doc("y"))]

    with pytest.raises(BadInput, match="'a' occurs twice"):
        build_index(Twice({}), PLAIN)


def test_bags_add_up() -> None:
    owners, terms = np.array([2, 0, 2, 2]), np.array([5, 1, 3, 5])
    bags = QueryBags.from_triples(3, owners, terms, np.array([1.0, 1.0, 0.5, 0.25]))
    assert bags.starts.tolist() == [0, 1, 1, 3]
    assert bags.terms.tolist() == [1, 3, 5]
    assert bags.counts.tolist() == [1.0, 0.5, 1.25]


def test_queries_lose_what_the_collection_does_not_have() -> None:
    index = build_index(Docs({"a": "red boat"}), PLAIN)
    bags = index.make_bags(["boat green boat", "", "green"])
    assert bags.starts.tolist() == [0, 1, 1, 1]
    assert [index.terms[t] for t in bags.terms] == ["boat"]
    assert bags.counts.tolist() == [2.0]
    assert index.make_bags([]).starts.tolist() == [0]


def test_kernels_work_without_a_writable_cache(tmp_path: Path) -> None:
    """A copy of the package in a read-only folder, and no home folder: numba then has no folder for its cache."""
    code = (
        "import numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = []\n"
        "from shaketable.retrieval import kernels\n"
        "import numpy as np\n"
        "assert not kernels.rehash(np.zeros((2, 2), np.int64), 4).any()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "HOME": str(tmp_path)}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("model", [BM25(), QL()])
def test_a_long_query_scores_like_its_parts(model):
    """The terms of a long query are counted at once, and those of a short one are searched one by one."""
    words = [f"word{i}x" for i in range(3 * kernels.MAX_SCANNED_TERMS)]
    docs = [Doc(" ".join(words[i:] + words[: i // 2])) for i in range(0, len(words), 7)] + [Doc("other")]
    collection = Collection("x", MemoryCorpus({f"d{i}": doc for i, doc in enumerate(docs)}), {})
    ranker = model.open(collection)
    whole, *parts = ranker.score(
        [
            Slate(" ".join(words), (*docs, Doc("unseen word1x"))),
            *(Slate(word, (*docs, Doc("unseen word1x"))) for word in words),
        ]
    )
    assert whole == pytest.approx(np.sum(parts, axis=0), rel=1e-12)
