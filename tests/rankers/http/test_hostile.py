"""Hostile servers: every request ends soon after its deadline, in bounded memory, with one sentence."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import RankerFailed
from shaketable.rankers.http.reranker import HttpEndpoint
from shaketable.rankers.llm.model import LLM
from tests.rankers.http.hostile import MODES, UNREAD_MODES

pytestmark = pytest.mark.slow

NOWHERE = Collection("empty", {}, {})
SLATE = Slate("red boat", (Doc("tea"), Doc("a red boat"), Doc("boat")))
LONG_SLATE = Slate("red boat", (Doc("boat " * 4_000_000),) * 2)
SETTINGS = {"dialect": "cohere", "pointwise": False, "revision": "1", "retries": 0, "timeout": 0.6, "deadline": 1.0}
MAX_SECONDS = SETTINGS["deadline"] + 1
MAX_GROWTH_MB = 200

LATE, LONG, BROKEN = r"within (0\.6|1) seconds", r"more than \d+ (MB|KB)", "no valid HTTP response"
SENTENCES = {
    "continue-fast": "more than 128 KB of headers",
    "early-hints": "more than 128 KB of headers",
    "status-endless": f"{LONG}|{BROKEN}",
    "gibberish": BROKEN,
    "gibberish-drip": f"{LATE}|{BROKEN}",
    "no-response": BROKEN,
    "header-endless": f"{LONG}|{BROKEN}",
    "headers-many": f"{LONG}|{BROKEN}",
    "switching": BROKEN,
    "body-endless": "more than 16 MB",
    "body-until-close": "more than 16 MB",
    "body-too-short": BROKEN,
    "error-body-endless": "more than 16 MB",
    "chunks-endless": "more than 16 MB",
    "chunks-of-one-byte": f"{LATE}|{LONG}",
    "chunk-extension-endless": f"{LONG}|{BROKEN}",
    "chunk-size-endless": f"{LONG}|{BROKEN}",
    "chunk-huge": "more than 16 MB",
    "trailers-endless": f"{LONG}|{BROKEN}",
    "gzip-bomb": "more than 16 MB",
    "deflate-bomb": "more than 16 MB",
    "gzip-stacked": "Content-Encoding 'gzip, gzip, gzip', of which only gzip is read",
    "gzip-repeated": "Content-Encoding 'gzip, gzip, gzip', of which only gzip is read",
    "encoding-unknown": "Content-Encoding 'br', of which only gzip is read",
    "gzip-empty-blocks": f"{LATE}|{LONG}",
    "gzip-name-endless": f"{LATE}|{LONG}",
    "gzip-members": f"{LATE}|{LONG}",
    "gzip-damaged": "damaged compressed data",
    "json-lists": "did not answer with JSON",
    "json-objects": "did not answer with JSON",
    "json-deep": "did not answer with JSON",
    "json-deep-but-few": "did not answer with JSON",
    "json-wide-characters": "in a format of no known dialect",
    "json-number": "did not answer with JSON",
    "json-rows-repeated": "scored 150,000 texts of 3",
    "json-row-of-text": "its indexes are texts",
    "json-score-of-text": "in a format of no known dialect",
    "json-scores-of-text": "its scores are not numbers",
    "redirect-circle": "answered 307",
    "wait-long": "a pause of 50 seconds",
    "wait-endless": "a pause of inf seconds",
}
"""What is said of a mode; of others, that they gave no answer in time."""


@pytest.fixture(scope="module")
def ports() -> Iterator[list[int]]:
    command = [sys.executable, "-m", "tests.rankers.http.hostile"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield [int(port) for port in server.stdout.readline().split()]
        server.kill()


def reset_peak() -> float:
    """Forget the peak of this process's memory, where Linux allows it, and return the memory in use, in MB."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    try:
        said = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        said = None
    return (int(said[1]) if said else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024


def fail(ranker, slate=SLATE) -> str:
    """Return the error message of a ranker; fail if it takes too much time or memory."""
    before, started = reset_peak(), time.monotonic()
    with pytest.raises(RankerFailed) as caught:
        ranker.score([slate])
    assert time.monotonic() - started < MAX_SECONDS
    assert peak() - before < MAX_GROWTH_MB
    return str(caught.value)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_ends_with_a_sentence(ports, mode):
    message = fail(HttpEndpoint(f"http://127.0.0.1:{ports[0]}/{mode}", **SETTINGS).open(NOWHERE))
    assert re.search(SENTENCES.get(mode, LATE), message), message


@pytest.mark.parametrize("mode", UNREAD_MODES)
def test_a_request_that_is_not_read_ends(ports, mode):
    ranker = HttpEndpoint(f"http://127.0.0.1:{ports[0]}/{mode}", **SETTINGS).open(NOWHERE)
    assert re.search(LATE, fail(ranker, LONG_SLATE))


def test_a_handshake_that_drips_ends(ports):
    assert re.search(LATE, fail(HttpEndpoint(f"https://127.0.0.1:{ports[1]}/rerank", **SETTINGS).open(NOWHERE)))


@pytest.mark.parametrize("mode", ["continue-slow", "chunk-extension-drip", "gzip-bomb", "json-lists"])
def test_a_language_model_ends_too(ports, mode):
    url = f"http://127.0.0.1:{ports[0]}/{mode}"
    ranker = LLM(f"{url}/completions", model="m", timeout=0.5, retries=0).open(NOWHERE)
    ranker.client.http_client.url = url  # its deadline is twice its timeout
    fail(ranker)


def test_a_late_answer_is_read_if_there_is_time(ports):
    ranker = HttpEndpoint(f"http://127.0.0.1:{ports[0]}/late-answer", **SETTINGS | {"timeout": 9.0, "deadline": 9.0})
    assert ranker.open(NOWHERE).score([SLATE])[0].tolist() == [1.0, 2.0, 3.0]
