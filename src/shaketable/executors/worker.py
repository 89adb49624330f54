"""Worker processes: they open the subjects of jobs from specs and keep them open for the next jobs.

A job is sent as a message: a pickle of the function's name and its arguments, mostly texts and numbers, between two
processes of the same user. Pickles are never written to files.

    python -m shaketable.executors.worker FD

starts a worker of `executors.processes`, which receives messages and sends results through that file descriptor.
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
"""The number of objects that a worker keeps open; the least recently used is closed first."""
MAX_JOB_RETRIES = 3
"""The number of retries of a job whose worker died."""


@dataclass(frozen=True)
class WorkerEnvironment:
    """The environment of the submitting process: home folder, working folder, import path and device settings."""

    home: str
    working_folder: str
    sys_path: tuple[str, ...]
    device_settings: device.DeviceSettings

    @classmethod
    def capture(cls) -> WorkerEnvironment:
        return cls(str(home_folder().absolute()), os.getcwd(), tuple(sys.path), device.get_device_settings())

    def apply(self) -> None:
        """Apply the environment as far as its folders exist here; without a shared home, a worker uses its own."""
        if Path(self.home).is_dir():
            os.environ["SHAKETABLE_HOME"] = self.home
        if Path(self.working_folder).is_dir():
            os.chdir(self.working_folder)
        sys.path += [entry for entry in self.sys_path if entry not in sys.path]
        device.set_device_settings(self.device_settings)


@dataclass(frozen=True)
class JobMessage:
    """A job to send to a worker; `payload` is the pickled function and arguments."""

    payload: bytes
    remote_spec: RemoteSpec
    environment: WorkerEnvironment


@dataclass(frozen=True)
class JobResult:
    """The result of a job: a value or an error message, and the ranker's new counts."""

    value: Any = None
    error: tuple[str, str] | None = None
    counters: Mapping[str, int] = field(default_factory=dict)

    def unwrap(self, job: Job) -> Any:
        """Return the value, or raise the error with its original class; add the counts to the local ranker's."""
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
    """Return the job as a message; None if its subject or arguments exist in this process only."""
    if job.remote_spec is None:
        return None
    try:
        work = bytes(ForkingPickler.dumps((job.function, job.arguments)))
    except Exception:  # user objects may raise anything when pickled
        return None
    return JobMessage(work, job.remote_spec, WorkerEnvironment.capture())


def run_job(message: JobMessage) -> JobResult:
    """Run the job of a message and return its result; errors are part of the result."""
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
    """Return the error of a job whose workers all died."""
    return RankerFailed(
        f"{what} failed: {MAX_JOB_RETRIES + 1} workers in a row died while running it, perhaps for lack of memory; "
        "use fewer workers, or smaller batches"
    )


def open_subject(remote_spec: RemoteSpec) -> Any:
    """Return the ranker that a spec names or, without a model, the collection."""
    collection = _open_collection(remote_spec.collection, remote_spec.documents_fingerprint)
    return _open_ranker(remote_spec) if remote_spec.model else collection


@lru_cache(MAX_OPEN_COLLECTIONS)
def _open_collection(text: str, documents: str) -> Collection:
    from shaketable.datasets.load import load

    collection = load(text)
    if documents and collection.docs.fingerprint != documents:
        raise BadInput(f"the collection {text} has different documents on a worker than here")
    return collection


@lru_cache(MAX_OPEN_RANKERS)
def _open_ranker(remote_spec: RemoteSpec) -> Any:
    from shaketable.core.registries import RANKERS

    ranker = RANKERS.build(remote_spec.model).open(
        _open_collection(remote_spec.collection, remote_spec.documents_fingerprint)
    )
    if remote_spec.ranker_fingerprint and getattr(ranker, "fingerprint", None) != remote_spec.ranker_fingerprint:
        raise BadInput(
            f"ranker {remote_spec.model} is different on a worker than here: its files, or what it is made of, differ"
        )
    return ranker


def serve(connection: Connection[Any, Any]) -> None:
    """Run jobs until the connection is closed."""
    while True:
        try:
            parcel = connection.recv()
        except (EOFError, OSError):
            return
        reply = run_job(parcel)
        try:
            connection.send(reply)
        except OSError:  # the submitting process is gone
            return
        except Exception:  # the value cannot be pickled
            connection.send(JobResult(error=("", traceback.format_exc())))


if __name__ == "__main__":
    from shaketable.executors import worker

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the submitting process handles interrupts
    worker.serve(Connection(int(sys.argv[1])))
