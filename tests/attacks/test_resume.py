"""An attack that is killed in the middle goes on where it was: the same documents, and nothing is paid for twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shaketable as st
from shaketable.datasets.adversarial_documents import read_adversarial_documents
from shaketable.rankers import similarity
from tests.processes import ROOT

pytestmark = pytest.mark.slow

COUNTING = """
import os, time
import numpy as np


class Counting:
    \"\"\"Shared words, and the letter e. Each call is noted before it is answered, and one of them may never be.\"\"\"

    name, fingerprint, calls = "counting", "counting 1", 0
    pointwise = os.environ["COUNTING_POINTWISE"] == "yes"

    def score(self, slates):
        self.calls += 1
        with open(os.environ["COUNTING_LOG"], "a") as log:
            log.write(f"{sum(len(slate.docs) for slate in slates)}\\n")
        while self.calls == int(os.environ["COUNTING_HANGS"]):
            time.sleep(60)
        return [np.array([self.worth(slate.query, doc.text) for doc in slate.docs]) for slate in slates]

    def worth(self, query, text):
        return len(set(query.lower().split()) & set(text.lower().split())) + 20 * text.count("e") / (1 + len(text))
"""

ATTACK = """
import sys
from shaketable.rankers import similarity
from tests.attacks.test_resume import attack
similarity.has_extra = lambda name: False  # as without the extra, whose libraries take most of the time to load
attack(sys.argv[1])
"""
LISTS = 3 * 30
PATIENCE = 120


def attack(documents: str) -> None:
    few = {"targets": 3, "max_queries": 3, "depth": 30}
    st.attack("sample", "counting_ranker:Counting", "greedy(words=3)", write_documents=documents, **few)


@pytest.mark.parametrize("pointwise", ["yes", "no"])
def test_killed_in_the_middle_and_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pointwise: str):
    (tmp_path / "counting_ranker.py").write_text(COUNTING)

    def make_environment(name: str, log: str, hangs: int = 0) -> dict[str, str]:
        return {
            "SHAKETABLE_HOME": str(tmp_path / f"home {name}"),
            "COUNTING_LOG": str(tmp_path / log),
            "COUNTING_POINTWISE": pointwise,
            "COUNTING_HANGS": str(hangs),
        }

    def run(name: str, log: str) -> None:
        """Run the attack in this process, with the ranker imported anew."""
        with monkeypatch.context() as patch:
            for variable, value in make_environment(name, log).items():
                patch.setenv(variable, value)
            patch.syspath_prepend(tmp_path)
            patch.delitem(sys.modules, "counting_ranker", raising=False)
            patch.setattr(similarity, "has_extra", lambda name: False)
            attack(str(tmp_path / f"{name}.jsonl"))

    def begin(name: str, log: str, hangs: int) -> subprocess.Popen[bytes]:
        places = os.pathsep.join([str(tmp_path), str(ROOT), *sys.path])
        environment = {**os.environ, **make_environment(name, log, hangs), "PYTHONPATH": places}
        return subprocess.Popen([sys.executable, "-c", ATTACK, f"{name}.jsonl"], env=environment, cwd=tmp_path)

    def count_scored(log: str) -> list[int]:
        path = tmp_path / log
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    run("whole", "whole.log")
    whole = count_scored("whole.log")
    middle = 1 + len(whole) // 2
    assert sum(whole[: middle - 1]) > 1.5 * LISTS, "the first half scores trials too, not only the original lists"

    victim = begin("cut", "first.log", hangs=middle)
    deadline = time.monotonic() + PATIENCE
    while len(count_scored("first.log")) < middle:
        assert victim.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert not (tmp_path / "cut.jsonl").exists()
    first = count_scored("first.log")
    assert first == whole[:middle]

    run("cut", "second.log")
    second = count_scored("second.log")
    assert (tmp_path / "cut.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert sum(first) + sum(second) == sum(whole) + first[-1], "what was in flight is asked for again, nothing else"
    documents = read_adversarial_documents(tmp_path / "whole.jsonl")
    assert len(documents) >= 3
    assert all(one.ranks_after < one.ranks_before for one in documents)
