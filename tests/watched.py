"""Rankers of a user's that leave traces below the home folder, for tests of workers: "tests.watched:Watched"."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from shaketable.core.documents import Collection, Scores, Slate
from shaketable.core.home import home_folder
from tests.toys import Normalised, Overlap

ASKED, DEATH = "asked.txt", "death.txt"


def read_scored_pairs() -> list[str]:
    """Return the pairs that all processes scored, in order."""
    path = home_folder() / ASKED
    return path.read_text().splitlines() if path.exists() else []


def doom(who: str, after: int = 0) -> None:
    """Kill the process that scores next after `after` pairs: the worker alone, or the caller too."""
    home_folder().mkdir(parents=True, exist_ok=True)
    (home_folder() / DEATH).write_text(f"{who} {after} {os.getpid()}")


@dataclass
class Watched:
    """Shared words, pointwise; it writes down each pair when it is done, and may be killed before."""

    name: str = "watched"
    fingerprint: str = "watched 1"
    pointwise: bool = True
    chunk: int = 10
    counters: Counter[str] = field(default_factory=Counter)

    @property
    def remark(self) -> str:
        return f"{self.counters['pairs']} pairs were read" if self.counters else ""

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        _meet_death()
        scores = Overlap().score(slates)
        self.counters["pairs"] += sum(len(slate.docs) for slate in slates)
        home_folder().mkdir(parents=True, exist_ok=True)
        with (home_folder() / ASKED).open("a") as out:
            out.write(
                "".join(
                    f"{os.getpid()} {slate.query}: {crc32(doc.text.encode())}\n"
                    for slate in slates
                    for doc in slate.docs
                )
            )
        return [value + len(doc) / 1e6 for value, doc in zip(scores, (slate.query for slate in slates), strict=True)]


def _meet_death() -> None:
    path = home_folder() / DEATH
    if not path.exists():
        return
    who, after, driver = path.read_text().split()
    if len(read_scored_pairs()) < int(after):
        return
    if who != "everybody":
        path.unlink(missing_ok=True)
    if who == "driver":
        os.kill(int(driver), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class Listwise(Normalised):
    """Shared words as a share of the list's best."""


class Broken:
    """Fails on some queries."""

    name = "broken"

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        if any("oak" in slate.query for slate in slates):
            raise ValueError("no oaks, please")
        return [np.zeros(len(slate.docs)) for slate in slates]


class Elsewhere:
    """A model that is another ranker in another process."""

    def open(self, collection: Collection) -> Any:
        return Overlap(fingerprint=f"process {os.getpid()}")
