"""What a process does that is given jobs: it opens what they are about from texts, and keeps it for the next job.

A job travels as a parcel: bytes that Python's own serialisation makes of a function's name and its arguments, texts and
numbers for the most part, from one process of a user to another one of the same user. No such bytes are ever put into
a file of ours.

    python -m shaketable.score.worker FD

is a worker of `score.processes`, which hands it parcels through that file descriptor and waits for replies.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from shaketable import errors
from shaketable.errors import BadInput, RankerFailed, ShaketableError
from shaketable.files import home
from shaketable.score import hardware
from shaketable.score.executor import Job, Origin
from shaketable.types import Collection

COLLECTIONS, RANKERS_KEPT = 2, 4
"""What a worker keeps open; the longest unused goes first."""
AGAIN = 3
"""How often a job is given to another worker after the one that had it died."""


@dataclass(frozen=True)
class Standing:
    """Where whoever hands out jobs stands: what relative paths, imports and caches mean to it."""

    home: str
    folder: str
    path: tuple[str, ...]
    hardware: hardware.Hardware

    @classmethod
    def here(cls) -> Standing:
        return cls(str(home().absolute()), os.getcwd(), tuple(sys.path), hardware.chosen())

    def take(self) -> None:
        """Stand there too, as far as this machine has it: without a shared home, a worker has its own."""
        if Path(self.home).is_dir():
            os.environ["SHAKETABLE_HOME"] = self.home
        if Path(self.folder).is_dir():
            os.chdir(self.folder)
        sys.path += [entry for entry in self.path if entry not in sys.path]
        hardware.choose(self.hardware)


@dataclass(frozen=True)
class Parcel:
    """A job on its way: `work` are the bytes of function and arguments."""

    work: bytes
    origin: Origin
    standing: Standing


@dataclass(frozen=True)
class Reply:
    """What became of a job: a value, or an error in words; and what the ranker counted meanwhile."""

    value: Any = None
    error: tuple[str, str] | None = None
    counted: Mapping[str, int] = field(default_factory=dict)

    def result(self, job: Job) -> Any:
        """The value, here; errors are raised as what they were, and counts added to those of the ranker at hand."""
        counts = getattr(job.subject, "counted", None)
        if counts is not None:
            counts.update(self.counted)
        if self.error is None:
            return self.value
        name, message = self.error
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, ShaketableError):
            error = kind.__new__(kind)
            Exception.__init__(error, message)
            raise error
        raise RuntimeError(message)


def packed(job: Job) -> Parcel | None:
    """The job as a parcel; None if it stays here, for what it is about, or is given, is nowhere else."""
    if job.origin is None:
        return None
    try:
        work = bytes(ForkingPickler.dumps((job.function, job.arguments)))
    except Exception:  # whatever a user's object raises there: it cannot travel
        return None
    return Parcel(work, job.origin, Standing.here())


def run(parcel: Parcel) -> Reply:
    """Do the job of a parcel. Whatever goes wrong is part of the reply: only a worker that dies gives none."""
    try:
        parcel.standing.take()
        function, arguments = ForkingPickler.loads(parcel.work)
        subject = opened(parcel.origin)
        before = Counter(getattr(subject, "counted", {}))
        value = function(subject, *arguments)
        return Reply(value, counted=dict(Counter(getattr(subject, "counted", {})) - before))
    except ShaketableError as error:
        return Reply(error=(type(error).__name__, str(error)))
    except Exception:
        return Reply(error=("", traceback.format_exc()))


def died(what: str) -> RankerFailed:
    """The error of a job that killed its workers."""
    return RankerFailed(
        f"{what} was given up: {AGAIN + 1} workers in a row died of it, for want of memory perhaps; "
        "hand out less at a time, or to fewer workers"
    )


def opened(origin: Origin) -> Any:
    """The ranker, or without a model the collection, that an origin names."""
    collection = _collection(origin.collection, origin.documents)
    return _ranker(origin) if origin.model else collection


@lru_cache(COLLECTIONS)
def _collection(text: str, documents: str) -> Collection:
    from shaketable.data.load import load

    collection = load(text)
    if documents and collection.docs.fingerprint != documents:
        raise BadInput(f"the collection {text} has other documents on a worker than where the work is handed out")
    return collection


@lru_cache(RANKERS_KEPT)
def _ranker(origin: Origin) -> Any:
    from shaketable.registry import RANKERS

    ranker = RANKERS.build(origin.model).open(_collection(origin.collection, origin.documents))
    if origin.ranker and getattr(ranker, "fingerprint", None) != origin.ranker:
        raise BadInput(
            f"ranker {origin.model} is another one on a worker than where the work is handed out: its files, or what "
            "it is made of, differ"
        )
    return ranker


def serve(line: Connection[Any, Any]) -> None:
    """Do jobs until nobody hands out any more."""
    while True:
        try:
            parcel = line.recv()
        except (EOFError, OSError):
            return
        reply = run(parcel)
        try:
            line.send(reply)
        except OSError:  # nobody waits for it any more
            return
        except Exception:  # a value that cannot travel
            line.send(Reply(error=("", traceback.format_exc())))


if __name__ == "__main__":
    from shaketable.score import worker  # by its name: parcels name it so

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who is at the keyboard speaks to whoever hands out the work
    worker.serve(Connection(int(sys.argv[1])))
