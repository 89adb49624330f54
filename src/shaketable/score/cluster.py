"""A Ray cluster: jobs go to whatever machines it has.

Workers open rankers and collections from their texts, as `score.worker` does, and keep them. A path that some machine
of the cluster does not see is shipped: put into Ray's object store once, and written below that machine's home folder.
Ray runs a job again whose worker died. Replies come to this process, which alone writes to the store of scores.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Any

from shaketable.data.load import paths_of
from shaketable.errors import BadInput, MissingExtra
from shaketable.files import DRAFT
from shaketable.score.executor import Here, Job, Origin
from shaketable.score.shipping import Shipment, arrived, shipped
from shaketable.score.worker import AGAIN, Parcel, Reply, died, packed, run

LOCAL, AUTO = "local", "auto"
"""A cluster that is started on this machine for as long as this process lives; and the one that this machine is in."""
PATIENCE = 5.0  # seconds for an address to answer
PORT = 6379
QUIET = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""What Ray reads when it is imported: it warns of no later version, and reports to nobody."""
IMPATIENT = {"RAY_NUM_REDIS_GET_RETRIES": "3"}
"""Seconds that it asks an address again that answers, and is no Ray cluster."""


@dataclass
class Cluster:
    """Runs jobs on a Ray cluster: at `address`, or "auto" for the one around, or "local" for one of this machine alone.

    `cpus` and `gpus` are what a job takes, whatever the ranker says; a local cluster has room for `workers` jobs.
    """

    address: str = AUTO
    cpus: float | None = None
    gpus: float | None = None
    workers: int | None = None
    _lock: Lock = field(init=False, repr=False, default_factory=Lock)
    _shared: dict[Path, bool] = field(init=False, repr=False, default_factory=dict)
    """Folders: do all machines see what we write there?"""
    _shipped: dict[Origin, list[Shipment]] = field(init=False, repr=False, default_factory=dict)
    elsewhere = "--ray"

    def __post_init__(self) -> None:
        self._ray = connected(self.address, self.workers)
        self._perform = self._ray.remote(perform)

    @cached_property
    def in_flight(self) -> int:
        """The jobs for which the cluster has room."""
        return self._room({"num_cpus": 1.0} | self._given)

    @property
    def _given(self) -> dict[str, float]:
        given = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        return {name: value for name, value in given.items() if value is not None}

    def _room(self, needs: Mapping[str, float]) -> int:
        """How many jobs with these needs there is room for; where there is none, Ray would wait for ever."""
        has: Mapping[str, float] = self._ray.cluster_resources()
        rooms = [has.get(name[4:-1].upper(), 0.0) / value for name, value in needs.items() if value]
        if min(rooms, default=1) < 1:
            raise BadInput(
                f"the Ray cluster at {self.address} has {has.get('CPU', 0):g} cores and {has.get('GPU', 0):g} GPUs, "
                "less than one job takes; ask for less with --worker-cpus and --worker-gpus"
            )
        return int(min(rooms, default=1))

    @property
    def ahead(self) -> int:
        """Jobs that wait in the cluster, so that no worker waits for us."""
        return self.in_flight

    def submit(self, job: Job) -> Future[Any]:
        parcel = packed(job)
        if parcel is None or (job.leaves is not None and not self._shares(job.leaves)):
            return Here().submit(job)
        needs = {"num_cpus": 1.0, **job.needs, **self._given}
        if needs != {"num_cpus": 1.0}:
            self._room(needs)
        task = self._perform.options(**needs, max_retries=AGAIN)
        return self._future(job, task.remote(parcel, self._shipments(parcel.origin)))

    def _future(self, job: Job, reference: Any) -> Future[Any]:
        """What will come of a job, its counts and errors included."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        def settle(done: Future[Reply]) -> None:
            try:
                with self._lock:
                    future.set_result(done.result().result(job))
            except self._ray.exceptions.RayTaskError as error:
                future.set_exception(RuntimeError(str(error)))  # a mistake of ours
            except self._ray.exceptions.RayError:
                future.set_exception(died(job.origin.model if job.origin and job.origin.model else "a training"))
            except BaseException as error:
                future.set_exception(error)

        reference.future().add_done_callback(settle)
        return future

    def _shipments(self, origin: Origin) -> list[Shipment]:
        """What must be shipped for an origin: its paths that some machine does not see."""
        if origin not in self._shipped:
            paths = [path for path in (*paths_of(origin.collection), origin.model) if path and Path(path).exists()]
            lacking = self._lacking([str(Path(path)) for path in paths]) if paths else []
            marks = {path: origin.documents if path != origin.model else origin.ranker for path in lacking}
            self._shipped[origin] = [shipped(path, marks[path], self._ray.put) for path in lacking]
        return self._shipped[origin]

    def _shares(self, folder: Path) -> bool:
        """Would all machines write where we read? A file that we leave there tells."""
        place = next(parent for parent in folder.absolute().parents if parent.is_dir())
        if place not in self._shared:
            with NamedTemporaryFile(prefix=DRAFT, dir=place) as token:
                self._shared[place] = not self._lacking([token.name])
        return self._shared[place]

    def _lacking(self, paths: Sequence[str]) -> list[str]:
        """Those of the paths that some other machine of the cluster does not see; each machine is asked."""
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        if len(nodes) == 1:
            return []
        aim = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        ask = self._ray.remote(unseen)
        asked = [
            ask.options(num_cpus=0, scheduling_strategy=aim(node["NodeID"], soft=False)).remote(paths) for node in nodes
        ]
        missing = {path for some in self._ray.get(asked) for path in some}
        return [path for path in paths if path in missing]


def perform(parcel: Parcel, shipments: Sequence[Shipment]) -> Reply:
    """A job, in a worker of the cluster."""
    import ray

    os.environ.setdefault("NUMBA_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))  # what Ray gives to the job
    if shipments:
        parcel = replace(parcel, origin=arrived(parcel.origin, shipments, ray.get))
    return run(parcel)


def unseen(paths: Sequence[str]) -> list[str]:
    """Those of the paths that are not on this machine."""
    return [path for path in paths if not Path(path).exists()]


def connected(address: str, workers: int | None = None) -> Any:
    """Ray, speaking to a cluster; its own words go nowhere."""
    for name, value in {**QUIET, **({} if address == LOCAL else IMPATIENT)}.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise MissingExtra("cluster", "--ray") from error
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    if ray.is_initialized():
        return ray
    quiet: Any = {"log_to_driver": False, "logging_level": logging.CRITICAL, "configure_logging": False}
    if address == LOCAL:
        ray.init(address=LOCAL, num_cpus=workers, include_dashboard=False, **quiet)
        return ray
    if address != AUTO:
        _refuse_silent(address)
    try:
        with _hushed():
            ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        where = "around this machine" if address == AUTO else f"at {address}"
        raise BadInput(f"there is no Ray cluster {where} ({_first(error)}); --ray local starts one here") from error
    return ray


def _refuse_silent(address: str) -> None:
    """Ray waits long for an address where nobody is; a plain connection tells at once."""
    host, _, port = address.rpartition("://")[2].partition(":")
    try:
        number = int(port or PORT)
        socket.create_connection((host, number), timeout=PATIENCE).close()
    except (OSError, ValueError, OverflowError) as error:
        raise BadInput(
            f"no Ray cluster answers at {address} ({error}); --ray is auto, local, or HOST:PORT of a head node"
        ) from error


@contextmanager
def _hushed() -> Iterator[None]:
    """What libraries in C++ write to stderr by themselves goes nowhere: the sentence that follows says it."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _first(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].partition(". ")[0]
