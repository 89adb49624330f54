"""What the road to an endpoint adds to a bare httpx loop, with 4, 16 and 64 requests in flight.

    python benchmarks/endpoints.py [--quick]

A server on the loopback, in a process of its own, answers each request after 50 ms. The same lists are sent to it by
httpx in a loop, in threads and by asyncio, of which the faster counts, and by the ranker `http` through the road, with
a store on disk, each answer checked, put in order and kept. Goal: at most 1.1 times the bare loop, in the same run.
What the ranker finds out in its first words with the server, two small requests once, is timed apart.
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

WAIT = 0.05
GOAL = 1.1
NOWHERE = Collection("empty", {}, {})


class Server(asyncio.Protocol):
    """A rerank server that does nothing but wait: keep-alive, Cohere's shape, a score for each text by its length."""

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
            asyncio.get_running_loop().call_later(WAIT, self.answer, body)

    def answer(self, body):
        texts = json.loads(body)["documents"]
        rows = [{"index": i, "relevance_score": 1 / (1 + len(text))} for i, text in enumerate(texts)]
        rows.sort(key=lambda row: -row["relevance_score"])
        content = json.dumps({"results": rows}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        if not self.transport.is_closing():
            self.transport.write(head.encode() + content)


def serve(port) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=512)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def slates(number: int, start: int) -> list[Slate]:
    """Lists of 20 texts of 30 to 49 words, no two lists alike."""
    words = "words of a passage that was found for a query and is to be ranked now ".split() * 4
    return [
        Slate(f"query {start + q}", tuple(Doc(f"text {q} " + " ".join(words[: 30 + i])) for i in range(20)))
        for q in range(number)
    ]


def bodies(work: list[Slate]) -> list[dict]:
    return [{"query": s.query, "documents": [doc.text for doc in s.docs], "top_n": len(s.docs)} for s in work]


def in_threads(url: str, work: list[Slate], max_concurrency: int) -> list[list[float]]:
    limits = httpx.Limits(max_connections=max_concurrency, max_keepalive_connections=max_concurrency)
    with httpx.Client(limits=limits) as client, ThreadPoolExecutor(max_concurrency) as pool:
        return list(pool.map(lambda body: client.post(url, json=body).json(), bodies(work)))


def by_asyncio(url: str, work: list[Slate], max_concurrency: int) -> list[list[float]]:
    async def run():
        limits = httpx.Limits(max_connections=max_concurrency, max_keepalive_connections=max_concurrency)
        room = asyncio.Semaphore(max_concurrency)
        async with httpx.AsyncClient(limits=limits) as client:

            async def one(body):
                async with room:
                    return (await client.post(url, json=body)).json()

            return await asyncio.gather(*[one(body) for body in bodies(work)])

    return asyncio.run(run())


def by_the_road(ranker: Ranker, work: list[Slate], max_concurrency: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        answers = ScoringEngine(Store(Path(folder) / "scores.sqlite")).score(ranker, work)
        assert all(answer is not None for answer in answers)


def timed(call, *arguments) -> float:
    started = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - started


@dataclass(frozen=True)
class Lap:
    """The seconds that the same requests took by each way, and the first words with the server once before."""

    max_concurrency: int
    requests: int
    threads: float
    asynchronous: float
    engine: float
    first_words: float

    @property
    def ratio(self) -> float:
        return self.engine / min(self.threads, self.asynchronous)


def laps(rounds: int, times: int) -> Iterator[Lap]:
    """Measured at 4, 16 and 64 in flight; the best of several times counts, for others use this machine too."""
    os.environ["NO_PROXY"] = "127.0.0.1"
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{here.recv()}/rerank"
    in_threads(url, slates(4, 0), 4)  # what is imported on first use
    for max_concurrency in (4, 16, 64):
        number = max_concurrency * rounds
        ranker = HttpEndpoint(url, concurrency=max_concurrency).open(NOWHERE)
        first_words = timed(getattr, ranker, "profile")
        bare, ours = [], []
        for lap in range(times):
            work = slates(number, lap * number)
            bare.append(timed(in_threads, url, work, max_concurrency))
            ours.append(timed(by_the_road, ranker, work, max_concurrency))
        asynchronous = timed(by_asyncio, url, slates(number, 0), max_concurrency)
        yield Lap(max_concurrency, number, min(bare), asynchronous, min(ours), first_words)
    server.terminate()


def main() -> int:
    from quick import judge_limits, parse_quick  # as a script; tests and evidence import this module otherwise

    quick = parse_quick(__doc__)
    rounds = 1 if quick else 20
    fast = True
    for lap in laps(rounds, 1 if quick else 5):
        fast &= lap.ratio <= GOAL
        print(
            f"{lap.max_concurrency} in flight, {lap.requests} requests: httpx in threads {lap.threads:.2f} s, by "
            f"asyncio {lap.asynchronous:.2f} s; by the engine {lap.engine:.2f} s, ratio {lap.ratio:.2f} (goal {GOAL})"
        )
        print(f"  waiting alone takes {WAIT * rounds:.2f} s; the first words took {lap.first_words:.2f} s, once")
    return judge_limits(fast, quick)


if __name__ == "__main__":
    sys.exit(main())
