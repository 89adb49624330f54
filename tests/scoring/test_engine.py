"""The scoring engine requests each distinct unit once, caches the scores, and refuses invalid ones."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Doc, Slate
from shaketable.core.errors import RankerFailed
from shaketable.executors.base import ThreadExecutor
from shaketable.scoring.chunks import split_chunks
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.scoring.units import PairUnits, QueryUnits, SlateUnits, digest_texts
from shaketable.scoring.validation import FoundList
from tests.toys import Normalised, Overlap, Vectors, slates


@pytest.mark.parametrize("make", [Overlap, Normalised, Vectors])
@pytest.mark.parametrize("chunk", [1, 7, 512])
def test_same_scores_as_asking_directly(make, chunk):
    expected = make().score(slates())
    actual = ScoringEngine(chunk=chunk).score(make(), slates())
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)


def test_a_pair_is_asked_for_once():
    ranker, engine = Overlap(), ScoringEngine()
    distinct = {(s.query, d) for s in slates() for d in s.docs}
    engine.score(ranker, slates() + slates())
    engine.score(ranker, slates())
    assert ranker.asked == len(distinct)
    assert engine.usage["overlap"].asked == 3 * sum(len(s.docs) for s in slates())


def test_a_list_is_scored_whole_and_once():
    ranker, engine = Normalised(), ScoringEngine(chunk=3)
    one = slates(1, 10)
    whole = engine.score(ranker, one)[0]
    best = int(whole.argmax())
    fewer = [Slate(one[0].query, one[0].docs[:best] + one[0].docs[best + 1 :])]
    part = engine.score(ranker, fewer)[0]
    assert ranker.asked == 19
    assert not np.allclose(np.delete(whole, best), part), "without its best the list reads differently"
    engine.score(ranker, one)
    assert ranker.asked == 19


def test_a_ranker_that_is_cheaper_than_a_lookup_is_just_asked():
    ranker, engine = Overlap(), ScoringEngine()
    ranker.cached = False
    engine.score(ranker, slates())
    engine.score(ranker, slates())
    assert ranker.asked == 2 * sum(len(s.docs) for s in slates())


def test_the_store_serves_a_second_process_of_the_same_ranker(tmp_path):
    first = Overlap()
    expected = ScoringEngine(Store(tmp_path / "s.sqlite")).score(first, slates())
    second = Overlap()
    actual = ScoringEngine(Store(tmp_path / "s.sqlite")).score(second, slates())
    assert second.asked == 0
    np.testing.assert_array_equal(actual, expected)


def test_another_fingerprint_is_another_ranker(tmp_path):
    ScoringEngine(Store(tmp_path / "s.sqlite")).score(Overlap(), slates())
    other = Overlap(fingerprint="overlap 2")
    ScoringEngine(Store(tmp_path / "s.sqlite")).score(other, slates())
    assert other.asked > 0


def test_scores_without_fingerprint_are_never_cached_on_disk(tmp_path):
    first, second = Vectors(), Vectors()
    engine = ScoringEngine(Store(tmp_path / "s.sqlite"))
    engine.score(first, slates())
    assert engine.store.get([digest_texts(b"", "anything")]) == {}
    engine.score(second, slates())
    assert second.encoded == first.encoded > 0, "two objects without a fingerprint are two rankers"


def test_perturbed_text_under_the_same_query_is_scored_anew():
    ranker, engine = Overlap(), ScoringEngine()
    before = engine.score(ranker, [Slate("oak", (Doc("an oak"),))])[0]
    after = engine.score(ranker, [Slate("oak", (Doc("an elm"),))])[0]
    assert before[0] > after[0] == 0


def test_fields_are_distinguished():
    ranker, engine = Overlap(), ScoringEngine()
    engine.score(ranker, [Slate("oak", (Doc("b", title="oak"), Doc("oak b"), Doc("b", url="oak")))])
    assert ranker.asked == 3


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_keys_of_different_texts_differ(left, right):
    assert (digest_texts(b"s", *left) == digest_texts(b"s", *right)) == (left == right)


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 12))
def test_chunks_keep_order_and_size(weights, size):
    items = list(range(len(weights)))
    parts = list(split_chunks(items, weights, lambda: size))
    assert [i for part in parts for i in part] == items
    assert all(len(part) == 1 or sum(weights[i] for i in part) <= size for part in parts)


class Answers:
    """Return the given answers."""

    name = "answers"

    def __init__(self, answer):
        self.answer = answer

    def score(self, slates):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ([np.zeros(2)], r"shape \(2,\) for 3 documents"),
        ([], "0 arrays for 1 slates"),
        ([np.array([0, np.nan, 1])], "score nan for the text 'two'"),
        ([np.array([np.inf, 0, 1])], "score inf for the text 'one'"),
        ([np.array([0, 0, 1e39])], r"score 1e\+39 for the text 'three'"),
        ([["a", "b", "c"]], "not numbers"),
        ([np.zeros((3, 1))], r"shape \(3, 1\)"),
        (ValueError("boom"), "failed on 1 slates .*'some query'.*boom"),
    ],
)
def test_a_wrong_answer_names_ranker_query_and_text(answer, complaint):
    slate = Slate("some query", (Doc("one"), Doc("two"), Doc("three")))
    with pytest.raises(RankerFailed, match=complaint) as caught:
        ScoringEngine().score(Answers(answer), [slate])
    assert "answers" in str(caught.value)


class FailsOn(Overlap):
    def score(self, slates):
        if any("elm" in slate.query for slate in slates):
            raise RuntimeError("no elms")
        return super().score(slates)


@pytest.mark.parametrize("pointwise", [True, False])
def test_going_on_records_the_culprit_and_scores_the_rest(pointwise):
    ranker = FailsOn()
    ranker.pointwise = pointwise
    given = [Slate(q, (Doc("oak"), Doc("elm"))) for q in ("oak", "elm", "fir")]
    engine = ScoringEngine(keep_going=True)
    first, second, third = engine.score(ranker, given)
    assert second is None
    assert first[0] > 0
    assert third is not None
    (failure,) = engine.failures
    assert (failure.ranker, failure.query) == ("overlap", "elm")
    assert "no elms" in failure.reason


def test_progress_reaches_the_total():
    from contextlib import contextmanager

    seen = []

    @contextmanager
    def progress(what, total, unit):
        seen.append((what, total, unit))
        yield lambda done: seen.append(done)

    ScoringEngine(progress=progress, chunk=7).score(Overlap(), slates())
    (what, total, unit), *steps = seen
    assert (what, unit) == ("scoring with overlap", "query-document pairs")
    assert sum(steps) == total > 0


def test_memory_is_bounded():
    engine = ScoringEngine(cache_size=10)
    engine.score(Overlap(), slates())
    assert len(engine._cache) == 10


def test_a_broken_cache_file_is_set_aside_and_said(tmp_path):
    path = tmp_path / "s.sqlite"
    path.write_bytes(b"this is no database" * 100)
    engine, ranker = ScoringEngine(Store(path)), Overlap()
    engine.score(ranker, slates())
    assert ranker.asked > 0
    assert "damaged" in engine.list_warnings()[0]
    (aside,) = tmp_path.glob("s.sqlite.damaged-*")
    assert aside.read_bytes() == b"this is no database" * 100, "the file is kept, even if another program wrote it"


def test_a_damaged_answer_is_asked_for_again_never_served(tmp_path):
    expected = ScoringEngine(Store(tmp_path / "s.sqlite")).score(Overlap(), slates())
    db = sqlite3.connect(tmp_path / "s.sqlite")
    rows = db.execute("SELECT key, value FROM kept").fetchall()
    for number, (key, value) in enumerate(rows):  # one bit of each value
        flipped = bytearray(value)
        flipped[number % 8] ^= 1 << number % 7
        db.execute("UPDATE kept SET value = ? WHERE key = ?", (bytes(flipped), key))
    db.commit()
    engine, ranker = ScoringEngine(Store(tmp_path / "s.sqlite")), Overlap()
    np.testing.assert_array_equal(engine.score(ranker, slates()), expected)
    assert ranker.asked == len(rows)
    assert f"{len(rows)} cached scores were damaged" in engine.list_warnings()[0]
    third = Overlap()
    ScoringEngine(Store(tmp_path / "s.sqlite")).score(third, slates())
    assert third.asked == 0, "what was damaged has been written anew"


def test_two_classes_of_one_fingerprint_do_not_share_scores(tmp_path):
    class Other(Overlap):
        def score(self, slates):
            return [-scores for scores in super().score(slates)]

    first = ScoringEngine(Store(tmp_path / "s.sqlite")).score(Overlap(), slates())
    second = ScoringEngine(Store(tmp_path / "s.sqlite")).score(Other(), slates())
    np.testing.assert_array_equal(first, [-scores for scores in second])


class Finds:
    """A retriever that counts its queries."""

    name = "finds"
    fingerprint = "finds 1"

    def __init__(self):
        self.searched = []

    def search(self, queries, k):
        self.searched += queries
        return [{f"d{i}": float(10 - i) for i in range(min(k, 7))} if query else {} for query in queries]


def test_a_list_is_searched_for_once_whatever_its_depth(tmp_path):
    ranker, engine = Finds(), ScoringEngine(Store(tmp_path / "s.sqlite"))
    five = engine.search(ranker, ["oak", "elm", "oak"], 5)
    assert ranker.searched == ["oak", "elm"]
    assert engine.search(ranker, ["elm"], 2) == [{"d0": 10.0, "d1": 9.0}]
    assert ranker.searched == ["oak", "elm"], "the head of a known list is known"
    assert len(engine.search(ranker, ["oak"], 9)[0]) == 7
    assert ranker.searched == ["oak", "elm", "oak"]
    engine.search(ranker, ["oak"], 50)
    assert ranker.searched[3:] == [], "who found 7 of 9 has no more"
    again = Finds()
    assert ScoringEngine(Store(tmp_path / "s.sqlite")).search(again, ["oak", "elm", "oak"], 5) == five
    assert again.searched == []
    assert (engine.usage["finds"].asked, engine.usage["finds"].searches) == (5 * 3 + 2 + 7 + 7, 3)


def test_a_search_fails_like_scoring_does():
    class Breaks(Finds):
        def search(self, queries, k):
            if "elm" in queries:
                raise SystemExit(0)
            return super().search(queries, k)

    with pytest.raises(RankerFailed, match=r"finds failed to search for 2 queries.*SystemExit"):
        ScoringEngine().search(Breaks(), ["oak", "elm"], 3)
    engine = ScoringEngine(keep_going=True)
    first, second = engine.search(Breaks(), ["oak", "elm"], 3)
    assert (len(first), second) == (3, None)
    assert [(f.ranker, f.query) for f in engine.failures] == [("finds", "elm")]


def test_a_ranker_that_ends_the_program_has_failed():
    class Quits(Overlap):
        def score(self, slates):
            raise SystemExit(0)

    with pytest.raises(RankerFailed, match="SystemExit"):
        ScoringEngine().score(Quits(), slates())


def test_chunks_may_finish_in_any_order():
    class Uneven(Overlap):
        def score(self, slates):
            time.sleep(0.02 if "oak" in slates[0].query else 0.0)
            return super().score(slates)

    for make in (Uneven, Normalised):
        expected = ScoringEngine().score(make(), slates(20))
        actual = ScoringEngine(executor=ThreadExecutor(4), chunk=7).score(make(), slates(20))
        np.testing.assert_array_equal(actual, expected)


def test_requests_in_flight_at_a_failure_are_cached(tmp_path):
    class Fails(Overlap):
        max_concurrency = 3

        def score(self, slates):
            if "elm" in slates[0].query:
                raise ValueError("no elms")
            time.sleep(0.05)
            return super().score(slates)

    given = [Slate(q, (Doc("oak"), Doc("fir"))) for q in ("elm", "oak", "fir", "yew")]
    with pytest.raises(RankerFailed, match="no elms"):
        ScoringEngine(Store(tmp_path / "s.sqlite"), chunk=2).score(Fails(), given)
    again = Fails()
    ScoringEngine(Store(tmp_path / "s.sqlite")).score(again, given[1:3])
    assert again.asked == 0, "two were under way, came back and were paid for"


def test_values_come_back_exactly(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    store.put([(b"list", b"\0\xff" * 40), (b"none", b"")])
    assert Store(tmp_path / "s.sqlite").get([b"list", b"none", b"absent"]) == {b"list": b"\0\xff" * 40, b"none": b""}


def test_known_unknown_and_damaged_rows_are_distinguished(tmp_path):
    sound = {i.to_bytes(4, "big"): bytes([i % 251]) * (i % 5) for i in range(1500)}
    Store(tmp_path / "s.sqlite").put(sound.items())
    harmed = {200: 7, 201: None, 600: "text", 1400: b"", 1401: b"abc", 1402: 0.5}
    db = sqlite3.connect(tmp_path / "s.sqlite")
    for i, value in harmed.items():
        db.execute("UPDATE kept SET value = ? WHERE key = ?", (value, i.to_bytes(4, "big")))
    (one, other) = db.execute("SELECT value FROM kept WHERE key IN (?, ?)", [*sound][50:52]).fetchall()
    for key, value in zip([*sound][50:52], (other, one), strict=True):  # each whole, and in the other's place
        db.execute("UPDATE kept SET value = ? WHERE key = ?", (value[0], key))
    db.commit()
    store = Store(tmp_path / "s.sqlite")
    wrong = {*(i.to_bytes(4, "big") for i in harmed), *[*sound][50:52]}
    absent = [i.to_bytes(4, "big") for i in range(5000, 5400)]
    for asked in ([*sound], [*sound, *absent], [*sound][::2], absent, [*sound][900:1350], []):
        store.damaged_count = 0
        assert store.get(asked) == {key: sound[key] for key in asked if key in sound and key not in wrong}
        assert store.damaged_count == len(wrong & set(asked))


@given(st.floats(allow_nan=False, allow_infinity=False), st.lists(st.text(min_size=1).filter(lambda t: "\0" not in t)))
def test_answers_are_encoded_exactly(score, docnos):
    docnos = list(dict.fromkeys(docnos))
    pairs, lists, searches = PairUnits(lambda doc: b""), SlateUnits(lambda doc: b""), QueryUnits(5)
    assert pairs.decode({b"a": pairs.encode(score), b"b": pairs.encode(1.0)}) == {b"a": score, b"b": 1.0}
    array = np.full(3, score)
    np.testing.assert_array_equal(lists.decode({b"a": lists.encode(array)})[b"a"], array)
    found = FoundList(7, tuple(docnos), np.full(len(docnos), score))
    back = searches.decode({b"a": searches.encode(found)})[b"a"]
    assert (back.k, back.docnos) == (7, tuple(docnos))
    np.testing.assert_array_equal(back.scores, found.scores)


def _fill(path: Path, start: int) -> None:
    store = Store(path)
    for i in range(start, start + 50):
        store.put([(i.to_bytes(4, "big"), bytes([i]))])


def test_two_processes_write_at_once(tmp_path):
    path = tmp_path / "s.sqlite"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(path, start)) for start in (0, 25)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    found = Store(path).get([i.to_bytes(4, "big") for i in range(75)])
    assert found == {i.to_bytes(4, "big"): bytes([i]) for i in range(75)}


def test_a_kill_loses_at_most_the_chunk_in_flight(tmp_path):
    """Kill a scoring process, run again: the same scores, and finished chunks are not asked for again."""
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from shaketable.scoring.engine import ScoringEngine
        from shaketable.scoring.store import Store
        from tests.toys import Overlap, slates

        at_once = Overlap.score

        def slowly(self, slates):
            time.sleep(0.02)
            answer = at_once(self, slates)
            print("chunk", flush=True)
            return answer

        Overlap.score = slowly
        ScoringEngine(Store(Path(sys.argv[1])), chunk=10).score(Overlap(), slates(100))
        """
    )
    path = tmp_path / "s.sqlite"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert child.stdout is not None
    for _ in range(5):
        child.stdout.readline()
    time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()

    ranker = Overlap()
    actual = ScoringEngine(Store(path), chunk=10).score(ranker, slates(100))
    fresh = Overlap()
    expected = ScoringEngine().score(fresh, slates(100))
    np.testing.assert_array_equal(actual, expected)
    assert ranker.asked <= fresh.asked - 40, "four committed chunks of ten are not scored again"
