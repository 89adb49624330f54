"""How far workers carry: 8.8 million passages and 6,980 queries on paper, from costs that are measured here.

make evidence PAGE=scale        (some minutes)
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evidence import ROOT, Page, Rows, prose, table
from shaketable.core.documents import Doc, Scores, Slate
from shaketable.core.registries import RANKERS
from shaketable.datasets.load import load
from shaketable.executors.base import Job, RemoteSpec
from shaketable.executors.worker import pack_job
from shaketable.rankers.lexical import BM25
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.scoring.units import SlateRequest, run_request

PASSAGES, QUERIES, DEPTH = 8_841_823, 6_980, 100
"""MS MARCO's passages and its small development queries."""
LISTS = 11
"""Lists of a query in an audit with a query attack of five draws: the original one, and two levels of five."""
WORKERS = (1, 8, 64)
NETWORK = 125e6
"""Bytes a second between the machines: one gigabit."""
DOCUMENTS, PAIRS, TEXTS = 100_000, 20_000, 48
"""What costs are measured on."""


@dataclass(frozen=True)
class Costs:
    """Seconds of one core, but for the bytes."""

    read_document: float
    """To open a collection, which each worker does for itself."""
    index_document: float
    search_document: float
    """To search for a query, for each document of the collection: what grows with it."""
    commit_pair: float
    """All that the driver does for a pair: name, look up, hand out, check, commit."""
    task: float
    """All that the driver does for a job of a Ray cluster, whatever is in it."""
    bytes_pair: float
    minilm_pair: float
    """A net of the size of MiniLM that reads a query and a passage of sixty words."""


@dataclass(frozen=True)
class Forecast:
    """The seconds of an audit's scoring by one ranker, and what bounds them."""

    workers: float
    driver: float
    network: float

    @property
    def seconds(self) -> float:
        return max(self.workers, self.driver, self.network)

    @property
    def bound(self) -> str:
        parts = {"the workers": self.workers, "the driver": self.driver, "the network": self.network}
        return max(parts, key=lambda name: parts[name])


def forecast(costs: Costs, pair: float, workers: int, chunk: int = 512) -> Forecast:
    """Workers, driver and network do their parts at the same time, so the slowest of them decides."""
    pairs = QUERIES * DEPTH * LISTS
    driver = pairs * (costs.commit_pair + costs.task / chunk)
    return Forecast(pairs * pair / workers, driver, pairs * costs.bytes_pair / NETWORK)


def saturation(costs: Costs, pair: float, chunk: int = 512) -> float:
    """The workers beyond which the driver, or the network, is the slowest."""
    return pair / max(costs.commit_pair + costs.task / chunk, costs.bytes_pair / NETWORK)


def clock(seconds: float) -> str:
    """
    >>> clock(30), clock(5400), clock(300_000)
    ('30 s', '1.5 h', '3.5 d')
    """
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size or (unit == "h" and seconds >= size):
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def rows(costs: Costs) -> Iterator[list[object]]:
    for name, pair in pairs_of(costs).items():
        found = [forecast(costs, pair, count) for count in WORKERS]
        times = [f"{clock(one.seconds)} ({one.bound})" for one in found]
        yield [name, f"{pair * 1000:.3g}", *times, f"{saturation(costs, pair):,.0f}"]


def pairs_of(costs: Costs) -> dict[str, float]:
    """ranker -> seconds a pair."""
    return {
        "a Python function": 0.0001,
        "a net of MiniLM's size, on a core": costs.minilm_pair,
        "a model that takes 20 ms": 0.02,
    }


# measuring


def spent(call: Callable[[], Any]) -> float:
    """Seconds of the processor: other programs on the machine hardly change them."""
    started = time.process_time()
    call()
    return time.process_time() - started


class Instant:
    """Costs nothing."""

    name = fingerprint = "instant"
    pointwise = True

    def score(self, slates: list[Slate]) -> list[Scores]:
        return [np.zeros(len(slate.docs)) for slate in slates]


def measured(folder: Path) -> Costs:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from generated import zipf_texts

    texts = list(zipf_texts(1, DOCUMENTS, 60, 60))
    (folder / "c" / "qrels").mkdir(parents=True)
    (folder / "c" / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": f"doc{n}", "text": text}) + "\n" for n, text in enumerate(texts))
    )
    (folder / "c" / "queries.jsonl").write_text('{"_id": "q", "text": "a"}\n')
    reading = spent(lambda: load(folder / "c"))
    collection = load(folder / "c")
    BM25().open(load("sample")).search(["warm"], 10)  # compiles, if need be
    indexing = spent(lambda: BM25(stemmer="none").open(collection))
    ranker = BM25(stemmer="none").open(collection)
    queries = list(zipf_texts(2, 500, 3, 5))
    searching = spent(lambda: ranker.search(queries, DEPTH)) / len(queries)
    docs = [Doc(text) for text in texts[:PAIRS]]
    slates = [Slate(f"query {q}", tuple(docs[q : q + DEPTH])) for q in range(0, PAIRS, DEPTH)]
    committing = spent(lambda: ScoringEngine(Store(folder / "s.sqlite")).score(Instant(), slates))
    request = run_request, Instant(), ("instant", SlateRequest(slates[:5], per_pair=True), False), RemoteSpec("sample")
    parcel = pack_job(Job(*request))
    assert parcel is not None
    packing = spent(lambda: [pack_job(Job(*request)) for _ in range(20)]) / 20 / (5 * DEPTH)
    net: Any = RANKERS.build("dense").open(load("sample"))
    net.encode_texts(texts[:4])
    reading_net = spent(lambda: net._fresh(texts[100 : 100 + TEXTS])) / TEXTS
    return Costs(
        reading / DOCUMENTS,
        indexing / DOCUMENTS,
        searching / DOCUMENTS,
        committing / PAIRS + packing,
        per_task(),
        len(parcel.payload) / (5 * DEPTH) + 9,
        reading_net,
    )


def per_task(count: int = 200) -> float:
    """What a job of a Ray cluster costs the driver."""
    from shaketable import make_executor

    hands = make_executor(2, "local")
    hands.submit(Job(id, None, (), RemoteSpec("sample"))).result()

    def submit() -> None:
        for future in [hands.submit(Job(id, None, (), RemoteSpec("sample"))) for _ in range(count)]:
            future.result()

    return spent(submit) / count


def measure() -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHAKETABLE_HOME"] = f"{folder}/home"
        return {"costs": asdict(measured(Path(folder)))}


def compose(found: Rows) -> Iterator[str]:
    costs = Costs(**found["costs"])
    pairs = QUERIES * DEPTH * LISTS
    yield prose(
        f"""On paper: {PASSAGES:,} passages (MS MARCO), {QUERIES:,} queries, {DEPTH} candidates each, in an audit with a
        query attack of five draws, which is {LISTS} lists a query and {pairs:,} pairs for each ranker. Costs were
        measured on one core of the machine that made this page, as time of the processor, on {DOCUMENTS:,} generated
        passages of sixty words; whatever grows with the collection is taken to grow in proportion, which is more than
        searches do. Nobody ran this on 64 machines."""
    )
    yield "## What things cost"
    yield table(
        ["what", "measured", f"for {PASSAGES / 1e6:.1f} M passages"],
        [
            ["open the collection, on each worker", micro(costs.read_document), clock(costs.read_document * PASSAGES)],
            ["index it, once", micro(costs.index_document), clock(costs.index_document * PASSAGES)],
            [
                f"search for {QUERIES:,} queries with BM25",
                f"{costs.search_document * DOCUMENTS * 1e6:,.0f} µs a query",
                clock(costs.search_document * PASSAGES * QUERIES),
            ],
            ["the driver, for a pair", micro(costs.commit_pair), clock(costs.commit_pair * pairs)],
            ["the driver, for a job of 512 pairs", micro(costs.task), clock(costs.task * pairs / 512)],
            ["the network, for a pair", f"{costs.bytes_pair:,.0f} bytes", clock(costs.bytes_pair * pairs / NETWORK)],
        ],
    )
    yield "## Scoring with workers"
    yield table(
        [
            "ranker",
            "ms a pair",
            *(f"{n} worker{'s' * (n > 1)}" for n in WORKERS),
            "workers until another is the slowest",
        ],
        rows(costs),
    )
    yield prose(
        f"""In brackets stands what is the slowest. Workers, driver and network work at the same time. The network is
        one gigabit; the driver is one process, which names each pair by its content, hands it out, checks the answer
        and commits it to SQLite ({1 / costs.commit_pair:,.0f} pairs a second)."""
    )
    yield "## What saturates first"
    driver, wire = costs.commit_pair + costs.task / 512, costs.bytes_pair / NETWORK
    start = (costs.read_document + costs.index_document) * PASSAGES
    first = "the driver" if driver >= wire else "the network"
    yield prose(
        f"""It is {first}: {driver * 1e6:,.0f} µs a pair against {wire * 1e6:,.1f} µs. A ranker that takes less than
        {64 * driver * 1000:,.1f} ms a pair cannot keep 64 workers busy, one that takes less than
        {8 * driver * 1000:,.2f} ms not even eight: such rankers belong on one machine, where no pair has
        to travel. Before the first pair is scored, every worker opens the collection
        ({clock(costs.read_document * PASSAGES)}), and the index has to be there: it is built once
        ({clock(costs.index_document * PASSAGES)} of one core) and shared where the home folder is. For a net of the
        size of MiniLM on cores, that start is {start / forecast(costs, costs.minilm_pair, 64).seconds:.0%} of the time
        that 64 workers take."""
    )


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs"


PAGE = Page(__file__, "How far workers carry", measure, compose, ())
"""Costs are those of a machine, and a test measures no time: there is nothing to guard."""

if __name__ == "__main__":
    PAGE.main()
