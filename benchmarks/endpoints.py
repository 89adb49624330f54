"""Time of requests to a rerank endpoint, against a bare httpx loop, with 4, 16 and 64 concurrent requests.

    python benchmarks/endpoints.py [--quick]

A server on the loopback, in a process of its own, answers each request after 50 ms. A bare httpx loop sends lists to
it, once in threads and once with asyncio; the faster one is the peer. The ranker `http` sends the same lists through
the scoring engine, which validates, sorts and stores each answer on disk. Goal: at most 1.1 times the bare loop. The
discovery of the server's format takes two small requests once and is timed separately.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.protocols import Ranker
from shaketable.rankers.http.reranker import HttpEndpoint
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store

LATENCY_S = 0.05
MAX_RATIO = 1.1
CONCURRENCIES = (4, 16, 64)
EMPTY_COLLECTION = Collection("empty", {}, {})


class Server(asyncio.Protocol):
    """A rerank server in Cohere's format with keep-alive, which waits and scores each text by its length."""

    def connection_made(self, transport):
        self.transport, self.data = transport, b""

    def data_received(self, data):
        self.data += data
        while b"\r\n\r\n" in self.data:
            head, _, rest = self.data.partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
            if len(rest) < length:
                return
            body, self.data = rest[:length], rest[length:]
            asyncio.get_running_loop().call_later(LATENCY_S, self.answer, body)

    def answer(self, body):
        texts = json.loads(body)["documents"]
        rows = [{"index": i, "relevance_score": 1 / (1 + len(text))} for i, text in enumerate(texts)]
        rows.sort(key=lambda row: -row["relevance_score"])
        content = json.dumps({"results": rows}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        if not self.transport.is_closing():
            self.transport.write(head.encode() + content)


def serve(port) -> None:
    """Send the port of a new server through a pipe, and serve forever."""

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=512)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def make_slates(number: int, start: int) -> list[Slate]:
    """Return distinct lists of 20 texts with 30 to 49 words each."""
    words = "words of a passage that was found for a query and is to be ranked now ".split() * 4
    return [
        Slate(f"query {start + q}", tuple(Doc(f"text {q} " + " ".join(words[: 30 + i])) for i in range(20)))
        for q in range(number)
    ]


def make_bodies(slates: list[Slate]) -> list[dict]:
    return [{"query": s.query, "documents": [doc.text for doc in s.docs], "top_n": len(s.docs)} for s in slates]


def send_in_threads(url: str, slates: list[Slate], max_concurrency: int) -> list[list[float]]:
    limits = httpx.Limits(max_connections=max_concurrency, max_keepalive_connections=max_concurrency)
    with httpx.Client(limits=limits) as client, ThreadPoolExecutor(max_concurrency) as pool:
        return list(pool.map(lambda body: client.post(url, json=body).json(), make_bodies(slates)))


def send_with_asyncio(url: str, slates: list[Slate], max_concurrency: int) -> list[list[float]]:
    async def run():
        limits = httpx.Limits(max_connections=max_concurrency, max_keepalive_connections=max_concurrency)
        semaphore = asyncio.Semaphore(max_concurrency)
        async with httpx.AsyncClient(limits=limits) as client:

            async def send(body):
                async with semaphore:
                    return (await client.post(url, json=body)).json()

            return await asyncio.gather(*[send(body) for body in make_bodies(slates)])

    return asyncio.run(run())


def score_with_engine(ranker: Ranker, slates: list[Slate]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        answers = ScoringEngine(Store(Path(folder) / "scores.sqlite")).score(ranker, slates)
        assert all(answer is not None for answer in answers)


def measure_seconds(call, *arguments) -> float:
    started = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - started


@dataclass(frozen=True)
class Lap:
    """The seconds of the same requests with each client, and of the discovery of the server."""

    max_concurrency: int
    requests: int
    threads: float
    asynchronous: float
    engine: float
    discovery: float

    @property
    def ratio(self) -> float:
        """The time of the engine relative to the faster httpx loop."""
        return self.engine / min(self.threads, self.asynchronous)


def measure_laps(rounds: int, repeats: int = 5) -> Iterator[Lap]:
    """Yield the best of several times at each concurrency, because other programs may slow a single one."""
    os.environ["NO_PROXY"] = "127.0.0.1"
    receiver, sender = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(sender,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{receiver.recv()}/rerank"
    send_in_threads(url, make_slates(4, 0), 4)  # imports are not timed
    for max_concurrency in CONCURRENCIES:
        number = max_concurrency * rounds
        ranker = HttpEndpoint(url, concurrency=max_concurrency).open(EMPTY_COLLECTION)
        discovery = measure_seconds(getattr, ranker, "profile")
        threads, engine = [], []
        for repeat in range(repeats):
            slates = make_slates(number, repeat * number)
            threads.append(measure_seconds(send_in_threads, url, slates, max_concurrency))
            engine.append(measure_seconds(score_with_engine, ranker, slates))
        asynchronous = measure_seconds(send_with_asyncio, url, make_slates(number, 0), max_concurrency)
        yield Lap(max_concurrency, number, min(threads), asynchronous, min(engine), discovery)
    server.terminate()


def main() -> int:
    from quick import judge_limits, parse_quick  # works in a script only, and evidence imports this module

    quick = parse_quick(__doc__)
    rounds = 1 if quick else 20
    is_fast = True
    for lap in measure_laps(rounds, 1 if quick else 5):
        is_fast &= lap.ratio <= MAX_RATIO
        print(
            f"{lap.requests} requests, {lap.max_concurrency} concurrent: httpx, threads {lap.threads:.2f} s; httpx, "
            f"asyncio {lap.asynchronous:.2f} s; engine {lap.engine:.2f} s; ratio {lap.ratio:.2f} (goal {MAX_RATIO})"
        )
        print(f"  latency of the server {LATENCY_S * rounds:.2f} s in total; discovery {lap.discovery:.2f} s, once")
    return judge_limits(is_fast, quick)


if __name__ == "__main__":
    sys.exit(main())
