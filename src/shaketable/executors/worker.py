"""The work of a process that is given jobs: it opens what they are about from texts, and keeps it for the next job.

A job travels as a parcel: bytes that Python's own serialisation makes of a function's name and its arguments, texts and
numbers for the most part, from one process of a user to another one of the same user. No such bytes are ever put into
a file of ours.

    python -m shaketable.executors.worker FD

is a worker of `executors.processes`, which hands it parcels through that file descriptor and waits for replies.
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

from shaketable.core import errors
from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput, RankerFailed, ShaketableError
from shaketable.core.home import home_folder
from shaketable.executors import device
from shaketable.executors.base import Job, RemoteSpec

MAX_OPEN_COLLECTIONS, MAX_OPEN_RANKERS = 2, 4
"""What a worker keeps open; the longest unused goes first."""
MAX_JOB_RETRIES = 3
"""How often a job is given to another worker after the one that had it died."""


@dataclass(frozen=True)
class WorkerEnvironment:
    """The place of the process that hands out jobs: what relative paths, imports and caches mean to it."""

    home: str
    working_folder: str
    sys_path: tuple[str, ...]
    device_settings: device.DeviceSettings

    @classmethod
    def capture(cls) -> WorkerEnvironment:
        return cls(str(home_folder().absolute()), os.getcwd(), tuple(sys.path), device.get_device_settings())

    def apply(self) -> None:
        """Stand there too, as far as this machine has it: without a shared home, a worker has its own."""
        if Path(self.home).is_dir():
            os.environ["SHAKETABLE_HOME"] = self.home
        if Path(self.working_folder).is_dir():
            os.chdir(self.working_folder)
        sys.path += [entry for entry in self.sys_path if entry not in sys.path]
        device.set_device_settings(self.device_settings)


@dataclass(frozen=True)
class JobMessage:
    """A job on its way: `work` are the bytes of function and arguments."""

    payload: bytes
    remote_spec: RemoteSpec
    environment: WorkerEnvironment


@dataclass(frozen=True)
class JobResult:
    """What became of a job: a value, or an error in words; and what the ranker counted meanwhile."""

    value: Any = None
    error: tuple[str, str] | None = None
    counters: Mapping[str, int] = field(default_factory=dict)

    def unwrap(self, job: Job) -> Any:
        """The value, here; errors are raised as what they were, and counts added to those of the ranker at hand."""
        counts = getattr(job.subject, "counters", None)
        if counts is not None:
            counts.update(self.counters)
        if self.error is None:
            return self.value
        name, message = self.error
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, ShaketableError):
            error = kind.__new__(kind)
            Exception.__init__(error, message)
            raise error
        raise RuntimeError(message)


def pack_job(job: Job) -> JobMessage | None:
    """The job as a parcel; None if it stays here, for what it is about, or is given, is nowhere else."""
    if job.remote_spec is None:
        return None
    try:
        work = bytes(ForkingPickler.dumps((job.function, job.arguments)))
    except Exception:  # whatever a user's object raises there: it cannot travel
        return None
    return JobMessage(work, job.remote_spec, WorkerEnvironment.capture())


def run_job(message: JobMessage) -> JobResult:
    """Do the job of a parcel. Whatever goes wrong is part of the reply: only a worker that dies gives none."""
    try:
        message.environment.apply()
        function, arguments = ForkingPickler.loads(message.payload)
        subject = open_subject(message.remote_spec)
        before = Counter(getattr(subject, "counters", {}))
        value = function(subject, *arguments)
        return JobResult(value, counters=dict(Counter(getattr(subject, "counters", {})) - before))
    except ShaketableError as error:
        return JobResult(error=(type(error).__name__, str(error)))
    except Exception:
        return JobResult(error=("", traceback.format_exc()))


def make_crash_error(what: str) -> RankerFailed:
    """The error of a job that killed its workers."""
    return RankerFailed(
        f"{what} was given up: {MAX_JOB_RETRIES + 1} workers in a row died of it, for want of memory perhaps; "
        "hand out less at a time, or to fewer workers"
    )


def open_subject(remote_spec: RemoteSpec) -> Any:
    """The ranker, or without a model the collection, that an origin names."""
    collection = _open_collection(remote_spec.collection, remote_spec.documents_fingerprint)
    return _open_ranker(remote_spec) if remote_spec.model else collection


@lru_cache(MAX_OPEN_COLLECTIONS)
def _open_collection(text: str, documents: str) -> Collection:
    from shaketable.datasets.load import load

    collection = load(text)
    if documents and collection.docs.fingerprint != documents:
        raise BadInput(f"the collection {text} has other documents on a worker than where the work is handed out")
    return collection


@lru_cache(MAX_OPEN_RANKERS)
def _open_ranker(remote_spec: RemoteSpec) -> Any:
    from shaketable.core.registries import RANKERS

    ranker = RANKERS.build(remote_spec.model).open(
        _open_collection(remote_spec.collection, remote_spec.documents_fingerprint)
    )
    if remote_spec.ranker_fingerprint and getattr(ranker, "fingerprint", None) != remote_spec.ranker_fingerprint:
        raise BadInput(
            f"ranker {remote_spec.model} is another one on a worker than where the work is handed out: its files, or "
            "what it is made of, differ"
        )
    return ranker


def serve(connection: Connection[Any, Any]) -> None:
    """Do jobs until no more are handed out."""
    while True:
        try:
            parcel = connection.recv()
        except (EOFError, OSError):
            return
        reply = run_job(parcel)
        try:
            connection.send(reply)
        except OSError:  # no process waits for it any more
            return
        except Exception:  # a value that cannot travel
            connection.send(JobResult(error=("", traceback.format_exc())))


if __name__ == "__main__":
    from shaketable.executors import worker

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that hands out the work
    worker.serve(Connection(int(sys.argv[1])))
