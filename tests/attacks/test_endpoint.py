"""An endpoint under attack: one that fails now and then costs time, and changes nothing."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from shaketable.attacks.runner import run_attacks
from shaketable.attacks.synonyms import GreedySynonyms
from shaketable.core.attack_types import AttackOutcome
from shaketable.core.documents import Collection
from shaketable.rankers.http.dialects import DIALECTS
from shaketable.rankers.http.reranker import HttpEndpoint
from shaketable.scoring.engine import ScoringEngine
from tests.attacks.setups import cases_on, knowledge_of, load_sample, target_for

pytestmark = pytest.mark.slow

NOWHERE = Collection("empty", {}, {})
SAMPLE = load_sample()
TIMEOUT = 1.0
HALF = b'{"results": [{"index": 0, "relev'

Trouble = Callable[[bytes, int], str]
"""What goes wrong with a request, by its body and how often it came before; "" is nothing."""


def none(body: bytes, before: int) -> str:
    return ""


def one_in_ten(body: bytes, before: int) -> str:
    """Select a tenth of all requests by a hash, so that every run and thread order selects the same."""
    number = int.from_bytes(blake2b(body + bytes([before]), digest_size=4).digest(), "big")
    if number % 10:
        return ""
    kind = number // 10 % 20  # waiting for what does not come is slow, so it comes up seldom
    return "late" if kind == 0 else "busy" if kind < 7 else "page" if kind < 13 else "half"


@dataclass
class Endpoint:
    """A rerank server on the loopback that counts the scored pairs and the requests that it failed on purpose."""

    dialect: str
    trouble: Trouble
    by_list: bool = False
    """A text's score depends on the list that it stands in."""
    pairs: int = 0
    spoiled: Counter[str] = field(default_factory=Counter)
    url: str = ""
    _seen: Counter[bytes] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, body: bytes) -> tuple[int, bytes]:
        with self._lock:
            wrong = self.trouble(body, self._seen[body])
            self._seen[body] += 1
            self.spoiled[wrong] += 1
        if wrong == "late":
            time.sleep(1.5 * TIMEOUT)
        if wrong == "busy":
            return 503, b'{"error": "overloaded"}'
        if wrong:
            return 200, b"<html>please wait</html>" if wrong == "page" else HALF
        asked = json.loads(body)
        scores = [self._worth(asked["query"], text) for text in asked[DIALECTS[self.dialect].documents_field]]
        mean = sum(scores) / len(scores) if self.by_list else 0.0
        with self._lock:
            self.pairs += len(scores)
        name = "score" if self.dialect == "tei" else "relevance_score"
        rows = [{"index": i, name: score - mean} for i, score in enumerate(scores)]
        rows.sort(key=lambda row: -row[name])
        return 200, json.dumps(rows if self.dialect == "tei" else {"results": rows}).encode()

    def _worth(self, query: str, text: str) -> float:
        shared = set(query.lower().split()) & set(text.lower().split())
        return len(shared) + 20 * text.count("e") / (1 + len(text))


@contextmanager
def served(endpoint: Endpoint) -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, content = endpoint.answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *args: object) -> None:  # a client that waited long enough hangs up
            pass

    http = Quiet(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    endpoint.url = f"http://127.0.0.1:{http.server_address[1]}/rerank"
    try:
        yield endpoint
    finally:
        http.shutdown()
        http.server_close()


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def attack_endpoint(endpoint: Endpoint, **settings: Any) -> tuple[list[Any], list[int], int]:
    """Return the outcomes, the lengths of the lists, and the number of pairs that the server scored for the trials."""
    patience = 30.0 if endpoint.trouble is none else TIMEOUT
    with served(endpoint):
        model = HttpEndpoint(endpoint.url, timeout=patience, retries=6, backoff=0.001, revision="1", **settings)
        engine = ScoringEngine(keep_going=True)
        target = target_for(model.open(NOWHERE), engine)
        cases = cases_on(SAMPLE, target, queries=3, places=(11, 30))
        lists = endpoint.pairs
        outcomes = run_attacks(GreedySynonyms(words=2).open(knowledge_of(SAMPLE)), cases, target)
        assert not engine.failures
        return outcomes, [len(case.lists[0].docnos) for case in cases], endpoint.pairs - lists


@pytest.mark.parametrize("dialect", ["cohere", "tei"])
@pytest.mark.parametrize("pointwise", [True, False])
def test_a_tenth_of_the_answers_are_bad_and_no_outcome_changes(dialect, pointwise):
    settings: dict[str, Any] = {"dialect": dialect, "pointwise": pointwise, "batch": 4 if pointwise else 0}
    clean = Endpoint(dialect, none, by_list=not pointwise)
    outcomes, lengths, scored = attack_endpoint(clean, **settings)
    assert any(outcome.ranks_after < outcome.ranks_before for outcome in outcomes)
    for outcome, length in zip(outcomes, lengths, strict=True):
        assert isinstance(outcome, AttackOutcome)
        assert outcome.trials > 0
        assert outcome.scored_pairs == outcome.trials * (1 if pointwise else length)
    assert 0 < scored <= sum(outcome.scored_pairs for outcome in outcomes)

    shaky = Endpoint(dialect, one_in_ten, by_list=not pointwise)
    assert attack_endpoint(shaky, **settings)[:2] == (outcomes, lengths)
    total = sum(shaky.spoiled.values())
    assert 0.05 * total < total - shaky.spoiled[""] < 0.15 * total
    assert {"busy", "page", "half"} <= shaky.spoiled.keys()


def test_a_server_that_does_not_answer_in_time_is_asked_again():
    """The first request for every twentieth text is left waiting."""

    def late(body: bytes, before: int) -> str:
        return "late" if not before and blake2b(body, digest_size=1).digest()[0] < 12 else ""

    settings: dict[str, Any] = {"dialect": "cohere", "pointwise": True, "batch": 4, "concurrency": 8}
    outcomes, *_ = attack_endpoint(Endpoint("cohere", none), **settings)
    slow = Endpoint("cohere", late)
    assert attack_endpoint(slow, **settings)[0] == outcomes
    assert slow.spoiled["late"] >= 1
