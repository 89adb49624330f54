"""Parity: rankers that differ by a known amount are reported with exactly that difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
import pytest

import shaketable as st
from shaketable.core.documents import Run, Scores, Slate, rank_docnos
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.results import Result
from shaketable.experiment import Experiment
from shaketable.measures.effectiveness import score_table
from shaketable.measures.paired_comparison import compare_paired
from shaketable.measures.parity import PARITY_OUTCOMES
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.tasks.parity import Parity
from shaketable.tasks.runner import list_default_tasks


def base(query: str, text: str) -> float:
    """Return a score between 0 and 1 that depends on query and text alone."""
    digest = blake2b(f"{query}\t{text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def same(scores: Scores, query: str) -> Scores:
    return scores


def round_to_half(scores: Scores, query: str) -> Scores:
    return scores.astype(np.float16).astype(np.float64)


def monotone(scores: Scores, query: str) -> Scores:
    return np.exp(3 * scores)


@dataclass
class Served:
    """A server's model: pointwise, with a fingerprint that never changes."""

    change: Callable[[Scores, str], Scores] = same
    noise_of: float = 0.0
    name: str = "served"
    fingerprint: str = "served 1"
    pointwise: bool = True
    asked: int = 0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        found = []
        for slate in slates:
            self.asked += len(slate.docs)
            scores = np.array([base(slate.query, doc.text) for doc in slate.docs])
            found.append(self.change(scores, slate.query) + self.noise_of * self.rng.uniform(-1, 1, len(scores)))
        return found

    def open(self, collection):
        return self


@dataclass(frozen=True)
class Opened:
    ranker: object

    def open(self, collection):
        return self.ranker


def compare(
    collection, second: Served, first: Served | None = None, engine: ScoringEngine | None = None, **settings
) -> Result:
    experiment = Experiment(
        collection, {"a": Opened(first or Served()), "b": Opened(second)}, engine or ScoringEngine(), depth=20
    )
    return Parity(**settings).run(experiment)


def lists_of(collection, ranker: Served) -> Run:
    """Return the lists of a ranker from a new engine, without scores of another ranker with this fingerprint."""
    return Experiment(collection, {"a": Opened(ranker)}, ScoringEngine(), depth=20).get_run("a")


def number(result: Result, name: str) -> float:
    (finding,) = [one for one in result.findings if one.name == name]
    assert (finding.ranker, finding.against) == ("b", "a")
    return finding.value


def judged_by(result: Result) -> str:
    return str(result.tables["parity"]["verdict"][0])


def test_a_ranker_is_equal_to_itself(collection):
    result = compare(collection, Served())
    assert judged_by(result) == PARITY_OUTCOMES[0]
    assert number(result, "parity") == number(result, "largest difference") == number(result, "noise floor") == 0
    assert number(result, "Kendall tau") == number(result, "overlap@10") == 1
    assert number(result, "nDCG@10 change") == 0
    assert "largest score differences" not in result.tables


def test_cached_scores_hide_no_difference(collection, tmp_path):
    """Both have one fingerprint, so a cached score of the first would be served for the second."""
    store = Store(tmp_path / "scores.sqlite")
    first = Served()
    Experiment(collection, {"a": Opened(first)}, ScoringEngine(store), depth=20).get_run("a")
    second = Served(monotone)
    result = compare(collection, second, Served(), ScoringEngine(store))
    assert judged_by(result) == PARITY_OUTCOMES[1]
    assert second.asked > 0
    kept = Experiment(collection, {"b": Opened(Served(monotone))}, ScoringEngine(store), depth=20).get_run("b")
    again = Experiment(collection, {"a": Opened(Served())}, ScoringEngine(), depth=20).get_run("a")
    assert kept == again, "parity stores no scores, because other tasks would read them by the same fingerprint"


def test_a_monotone_map_changes_scores_and_no_list(collection):
    result = compare(collection, Served(monotone))
    assert judged_by(result) == PARITY_OUTCOMES[1]
    assert number(result, "beyond noise %") == 100
    assert number(result, "lists that change %") == number(result, "new first %") == 0
    assert number(result, "Kendall tau") == number(result, "RBO") == 1
    worst = result.tables["largest score differences"].iloc[0]
    by_hand = max(
        (np.exp(3 * s) - s, qid, docno)
        for qid, scores in lists_of(collection, Served()).items()
        for docno, s in scores.items()
    )
    assert (worst["difference"], worst["query"], worst["document"]) == (pytest.approx(by_hand[0]), *by_hand[1:])
    assert worst["b"] == pytest.approx(np.exp(3 * worst["a"]))
    assert worst["rank by a"] == worst["rank by b"]


def test_half_precision_is_seen_with_its_ties(collection):
    result = compare(collection, Served(round_to_half))
    largest = number(result, "largest difference")
    assert 0 < largest <= 2**-12, "half of the last place of float16 below 1"
    assert number(result, "beyond noise %") > 50
    about = result.tables["each ranker"].set_index("ranker")
    assert about.loc["a", "tied %"] == 0
    old, new = lists_of(collection, Served()), lists_of(collection, Served(round_to_half))
    tied = [list(scores.values()).count(score) > 1 for scores in new.values() for score in scores.values()]
    assert about.loc["b", "tied %"] == pytest.approx(100 * np.mean(tied))
    changed = [rank_docnos(old[qid]) != rank_docnos(new[qid]) for qid in old]
    assert number(result, "lists that change %") == pytest.approx(100 * np.mean(changed))


def test_a_planted_change_on_three_queries_is_found(collection):
    planted = [query.text for query in collection.queries.values()][:3]

    def reverse(scores: Scores, query: str) -> Scores:
        return 1 - scores if query in planted else scores

    result = compare(collection, Served(reverse))
    assert judged_by(result) == PARITY_OUTCOMES[3]
    queries = len(collection.queries)
    assert number(result, "lists that change %") == pytest.approx(100 * 3 / queries)
    assert number(result, "Kendall tau") == pytest.approx(1 - 2 * 3 / queries)
    per_query = result.tables["per query"]
    assert set(per_query[per_query["list changes"]]["query"]) == set(list(collection.queries)[:3])
    runs = {"a": lists_of(collection, Served()), "b": lists_of(collection, Served(reverse))}
    table = score_table("nDCG@10", collection.qrels, runs)
    both = [dict(zip(table.topics, table.row(name).tolist(), strict=True)) for name in ("a", "b")]
    expected = compare_paired(*both)
    (finding,) = [one for one in result.findings if one.name == "nDCG@10 change"]
    assert (finding.value, finding.low, finding.high) == (expected.change, expected.low, expected.high)
    assert {example.query for example in result.examples} <= set(list(collection.queries)[:3])


def test_changes_below_and_within_the_first_ten_differ(collection):
    def swap_last(scores: Scores, query: str) -> Scores:
        order = np.argsort(scores)
        scores = scores.copy()
        scores[order[:2]] = scores[order[1::-1]]
        return scores

    result = compare(collection, Served(swap_last))
    assert judged_by(result) == PARITY_OUTCOMES[2]
    assert number(result, "first ten that change %") == 0
    assert number(result, "lists that change %") > 0


def test_noise_is_no_difference_but_more_than_noise_is(collection):
    noisy = Served(noise_of=0.01, rng=np.random.default_rng(1))
    result = compare(collection, noisy, Served(noise_of=0.01, rng=np.random.default_rng(2)))
    assert judged_by(result) == PARITY_OUTCOMES[0]
    assert 0.01 < number(result, "noise floor") <= 0.02
    assert number(result, "lists that change %") > 0, "the noise itself changes lists"
    assert result.tables["each ranker"]["repeated lists that change %"].min() > 0

    def shift(scores: Scores, query: str) -> Scores:
        return scores + 0.1

    moved = Served(shift, noise_of=0.01, rng=np.random.default_rng(3))
    assert number(compare(collection, moved, Served(noise_of=0.01)), "parity") > 0
    unknown = compare(collection, Served(noise_of=0.01), repeats=0)
    assert np.isnan(unknown.tables["each ranker"]["noise floor"]).all()
    assert number(unknown, "parity") == 3, "the noise is unknown, so that no difference counts as noise"


def test_saturation_is_the_share_at_the_walls(collection):
    def walls(scores: Scores, query: str) -> Scores:
        return np.clip(scores, 0.25, 0.75)

    result = compare(collection, Served(walls))
    scores = [s for of in lists_of(collection, Served()).values() for s in of.values()]
    assert number(result, "at the ends %") == pytest.approx(100 * np.mean([s <= 0.25 or s >= 0.75 for s in scores]))
    assert result.tables["each ranker"]["at the ends %"][0] == 0


def test_runs_are_compared_as_they_are_and_without_documents(tmp_path, collection):
    (tmp_path / "log.tsv").write_text("qid\tquery\nq1\toak\nq2\tash\n")
    (tmp_path / "old.run").write_text("q1 Q0 d1 1 2 x\nq1 Q0 d2 2 1 x\nq2 Q0 d1 1 2 x\nq2 Q0 d2 2 1 x\n")
    (tmp_path / "new.run").write_text("q1 Q0 d1 1 2 x\nq1 Q0 d2 2 1 x\nq2 Q0 d1 1 1 x\nq2 Q0 d2 2 2 x\n")
    runs = {name: f"run:{tmp_path / name}.run" for name in ("old", "new")}
    done = st.parity(runs, f"files?queries={tmp_path / 'log.tsv'}")
    table = done["parity"].tables["parity"]
    assert table["verdict"].tolist() == [PARITY_OUTCOMES[3]]
    assert table["largest difference"][0] == 1
    assert done.check("parity<=3", "new.new first %<=50")
    assert not done.check("parity<=0")
    audited = st.audit(f"files?queries={tmp_path / 'log.tsv'}", runs)
    assert [result.task for result in audited.results] == ["agreement"]
    assert "need judgements" in audited.remarks["without judgements"]


def test_rankers_that_cannot_be_compared_are_an_error(collection):
    with pytest.raises(BadInput, match="at least two rankers"):
        st.parity("bm25")
    with pytest.raises(UnknownName, match="no ranker is called 'c'"):
        compare(collection, Served(), reference="c")
    with pytest.raises(BadInput, match="repeats should be"):
        Parity(repeats=-1)
    assert "parity" not in list_default_tasks()


def test_query_weights_count_in_list_changes(collection):
    first, *others = collection.queries
    heavy = replace(
        collection,
        queries={qid: replace(q, weight=10.0 if qid == first else 1.0) for qid, q in collection.queries.items()},
    )

    def reverse(scores: Scores, query: str) -> Scores:
        return 1 - scores if query == collection.queries[first].text else scores

    result = compare(heavy, Served(reverse))
    assert number(result, "lists that change %") == pytest.approx(100 * 10 / (10 + len(others)))
    assert any("are weighted by their frequency" in note for note in result.notes)
