"""A canary key is planted, servers repeat it in every way they can, and it must be in no file, log or stream."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import traceback

import pytest

from shaketable.cli.console import emit_text, notify
from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import RankerFailed
from shaketable.core.redaction import redact, register_secret
from shaketable.files.atomic import atomic_write
from shaketable.rankers.http.reranker import HttpEndpoint
from tests.processes import SOURCE
from tests.rankers.http.echoing import CANARY, ENCODINGS, SERVERS, echoing, find_leaks

AUDITS = 6
"""The number of audits among which the servers are divided."""
RUN_COMMANDS = """
import json, logging, sys
from shaketable.cli import main
logging.basicConfig(level=logging.DEBUG, filename=sys.argv[2])
for words in json.load(open(sys.argv[1])):
    try:
        main(words)
    except SystemExit as end:
        print("exit code", end.code)
"""


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_key_is_removed_however_it_is_encoded(name):
    register_secret(CANARY)
    encoded = ENCODINGS[name](CANARY)
    assert find_leaks(f"before {encoded} after"), "the search of these tests finds it"
    cleaned = redact(f"before {encoded} after")
    assert not find_leaks(cleaned)
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")


@pytest.mark.parametrize("length", [0, 1, 50, 150, 190, 199, 200, 201, 780, 800, 5000])
@pytest.mark.parametrize("name", ["plain", "unicode", "html-numbers", "base64-user"])
def test_a_text_that_is_cut_ends_within_no_key(name, length):
    register_secret(CANARY)
    for text in ("x" * length + ENCODINGS[name](CANARY) * 3, ENCODINGS[name](CANARY) * (1 + length)):
        assert not find_leaks(redact(text, 200)[:200])


def test_output_and_files_contain_no_key(tmp_path, capsys):
    """Whatever came past the errors."""
    register_secret(CANARY)
    notify(f"the key {CANARY}", always=True)
    emit_text(f"the key {CANARY}\n", "-")
    for name in ("a.txt", "b.txt.gz"):
        with atomic_write(tmp_path / name) as out:
            out.write(f"the key {CANARY}\n")
            out.writelines([f"the key {CANARY}\n"])
    shown = capsys.readouterr()
    written = [(tmp_path / "a.txt").read_text(), gzip.decompress((tmp_path / "b.txt.gz").read_bytes()).decode()]
    assert [shown.err, shown.out] == ["the key ***\n"] * 2
    assert written == ["the key ***\n" * 2] * 2


def test_ordinary_texts_stay():
    register_secret(CANARY)
    register_secret("EMPTY")  # what people give to servers that want any key
    register_secret("9081726354")
    for text in ("EMPTY results", "score 0.90817263549", "a=b&amp;c", "", "x" * 1000):
        assert redact(text) == text
    assert redact("9081726354 is wrong") == "*** is wrong"


@pytest.mark.parametrize(("place", "encoding"), SERVERS)
def test_no_traceback_has_the_key(monkeypatch, place, encoding):
    """Not even the errors that caused an error, which Python prints for a caller that does not catch it."""
    monkeypatch.setenv("CANARY_KEY", CANARY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    known = {} if place == "models" else {"dialect": "cohere", "pointwise": False, "revision": "1"}
    sent: list[bytes] = []
    with echoing(sent) as port:
        url = f"http://127.0.0.1:{port}/doctor/{place}/{encoding}/rerank"
        ranker = HttpEndpoint(url, key_env="CANARY_KEY", retries=0, **known).open(Collection("empty", {}, {}))
        with pytest.raises(RankerFailed) as caught:
            ranker.score([Slate("red boat", tuple(map(Doc, "abcde")))])
    assert sent
    assert not find_leaks("".join(traceback.format_exception(caught.value)))


@pytest.mark.slow
def test_the_canary_is_in_no_file_and_no_stream(folder, tmp_path):
    sent: list[bytes] = []
    with echoing(sent) as port:
        commands = []
        audited: dict[object, list[str]] = {}
        for number, (place, encoding) in enumerate(SERVERS):
            url = f"http://127.0.0.1:{port}/{{}}/{place}/{encoding}/rerank"
            known = "" if place == "models" else "dialect='cohere', pointwise=False, revision='1', "
            settings = f"{known}key_env='CANARY_KEY', retries=0, backoff=0.0, timeout=5)"
            ends_audit = place in ("models", "location-within")  # they answer no query
            group = number if ends_audit else number % AUDITS
            spec = f"mine{number}=http(url='{url.format('audit')}', {settings}"
            audited.setdefault((ends_audit, group), []).extend(["--ranker", spec])
            commands.append(["doctor", f"http(url='{url.format('doctor')}', {settings}", "--json", "-"])
            asked = f"mine=llm(url='{url.format('llm')}/completions', key_env='CANARY_KEY', retries=0, timeout=5)"
            words = ["rank", "--data", str(folder), "--ranker", asked, "--write-run", str(tmp_path / "a.run"), "-v"]
            commands.append([*words, "--keep-going"] if number % 2 else words)
        for number, rankers in enumerate(audited.values()):
            out = str(tmp_path / f"out{number}")
            shown = ["--out", out, "--json", "-", "--tables", "--verbose", "--keep-going"]
            commands.append(["audit", "--data", str(folder), *rankers, "--task", "effectiveness", *shown])
        (tmp_path / "commands.json").write_text(json.dumps(commands))
        (tmp_path / "temporary").mkdir()
        env = os.environ | {
            "PYTHONPATH": str(SOURCE),
            "SHAKETABLE_HOME": str(tmp_path / "home"),
            "HOME": str(tmp_path / "user"),
            "TMPDIR": str(tmp_path / "temporary"),
            "CANARY_KEY": CANARY,
            "NO_PROXY": "127.0.0.1",
            "COLUMNS": "300",
        }
        ended = subprocess.run(
            [sys.executable, "-c", RUN_COMMANDS, str(tmp_path / "commands.json"), str(tmp_path / "log.txt")],
            env=env, capture_output=True, text=True, check=True, timeout=500,
        )  # fmt: skip
    assert len(sent) > 3 * len(SERVERS)
    assert ended.stdout.count("exit code") == len(commands)
    assert "exit code 70" not in ended.stdout, list((tmp_path / "temporary").iterdir())
    results = [path.read_text() for path in tmp_path.glob("out*/results.json")]
    assert len(results) == AUDITS, [line for line in ended.stderr.splitlines() if line.startswith("shaketable: ")][-10:]
    failures = [str(failure) for text in results for failure in json.loads(text)["results"][0]["failures"]]
    assert len(failures) > len(SERVERS) - 10, "the failures are in the results"
    assert sum("***" in failure for failure in failures) > 20
    assert "***" in ended.stderr
    assert not find_leaks(ended.stdout)
    assert not find_leaks(ended.stderr)
    for path in tmp_path.rglob("*"):
        if path.is_file() and not path.is_relative_to(folder):
            assert not find_leaks(path.read_bytes().decode("latin-1")), path
