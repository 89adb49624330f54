"""An executor that sends jobs to a Ray cluster.

Workers open rankers and collections from their specs, as `executors.worker` does, and keep them open. A path that some
machine of the cluster does not see is put into Ray's object store once and written to that machine's home folder. Ray
retries a job whose worker died. Only this process writes to the score cache.
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

from shaketable.core.errors import BadInput, MissingExtra
from shaketable.datasets.load import list_source_paths
from shaketable.executors.base import Job, RemoteSpec, SerialExecutor
from shaketable.executors.file_sync import FileBundle, bundle_files, localize
from shaketable.executors.worker import MAX_JOB_RETRIES, JobMessage, JobResult, make_crash_error, pack_job, run_job
from shaketable.files.atomic import DRAFT_MARK

LOCAL, AUTO = "local", "auto"
"""A new cluster on this machine that lives as long as this process; and the cluster that this machine belongs to."""
CONNECT_TIMEOUT_S = 5.0
DEFAULT_PORT = 6379
QUIET_ENV = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""Settings that Ray reads on import: no warning about later versions, no usage reports."""
FEW_RETRIES_ENV = {"RAY_NUM_REDIS_GET_RETRIES": "3"}
"""Seconds of retries at an address that responds but is not a Ray cluster."""


@dataclass
class RayExecutor:
    """An executor on a Ray cluster: at `address`, "auto" for the surrounding cluster, "local" for a new one.

    `cpus` and `gpus` override the resources that a ranker requests per job; a local cluster runs `workers` jobs at a
    time.
    """

    address: str = AUTO
    cpus: float | None = None
    gpus: float | None = None
    workers: int | None = None
    _lock: Lock = field(init=False, repr=False, default_factory=Lock)
    _shared_by_folder: dict[Path, bool] = field(init=False, repr=False, default_factory=dict)
    """Folders -> whether all machines of the cluster share them."""
    _bundles: dict[RemoteSpec, list[FileBundle]] = field(init=False, repr=False, default_factory=dict)
    cli_option = "--ray"

    def __post_init__(self) -> None:
        self._ray = connect_to_ray(self.address, self.workers)
        self._remote_run = self._ray.remote(run_on_cluster)

    @cached_property
    def max_concurrency(self) -> int:
        """The number of jobs that the cluster can run at a time."""
        return self._count_slots({"num_cpus": 1.0} | self._resource_overrides)

    @property
    def _resource_overrides(self) -> dict[str, float]:
        given = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        return {name: value for name, value in given.items() if value is not None}

    def _count_slots(self, resources: Mapping[str, float]) -> int:
        """Return how many jobs with these resources fit; raise `BadInput` if none does, as Ray would wait for ever."""
        has: Mapping[str, float] = self._ray.cluster_resources()
        jobs_per_resource = [has.get(name[4:-1].upper(), 0.0) / value for name, value in resources.items() if value]
        if min(jobs_per_resource, default=1) < 1:
            raise BadInput(
                f"the Ray cluster at {self.address} has {has.get('CPU', 0):g} cores and {has.get('GPU', 0):g} GPUs, "
                "fewer than one job needs; request less with --worker-cpus and --worker-gpus"
            )
        return int(min(jobs_per_resource, default=1))

    @property
    def max_queued(self) -> int:
        """Jobs that wait in the cluster, so that no worker is idle."""
        return self.max_concurrency

    def submit(self, job: Job) -> Future[Any]:
        parcel = pack_job(job)
        if parcel is None or (job.output_folder is not None and not self._is_shared(job.output_folder)):
            return SerialExecutor().submit(job)
        needs = {"num_cpus": 1.0, **job.resources, **self._resource_overrides}
        if needs != {"num_cpus": 1.0}:
            self._count_slots(needs)
        task = self._remote_run.options(**needs, max_retries=MAX_JOB_RETRIES)
        return self._make_future(job, task.remote(parcel, self._bundle_missing_files(parcel.remote_spec)))

    def _make_future(self, job: Job, reference: Any) -> Future[Any]:
        """Return the future of a job, with its counts and errors."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        def settle(done: Future[JobResult]) -> None:
            try:
                with self._lock:
                    future.set_result(done.result().unwrap(job))
            except self._ray.exceptions.RayTaskError as error:
                future.set_exception(RuntimeError(str(error)))  # a bug in Shaketable
            except self._ray.exceptions.RayError:
                future.set_exception(
                    make_crash_error(
                        job.remote_spec.model if job.remote_spec and job.remote_spec.model else "a training"
                    )
                )
            except BaseException as error:
                future.set_exception(error)

        reference.future().add_done_callback(settle)
        return future

    def _bundle_missing_files(self, remote_spec: RemoteSpec) -> list[FileBundle]:
        """Return bundles of the spec's paths that some machine does not see."""
        if remote_spec not in self._bundles:
            paths = [
                path
                for path in (*list_source_paths(remote_spec.collection), remote_spec.model)
                if path and Path(path).exists()
            ]
            lacking = self._find_missing_paths([str(Path(path)) for path in paths]) if paths else []
            marks = {
                path: remote_spec.documents_fingerprint if path != remote_spec.model else remote_spec.ranker_fingerprint
                for path in lacking
            }
            self._bundles[remote_spec] = [bundle_files(path, marks[path], self._ray.put) for path in lacking]
        return self._bundles[remote_spec]

    def _is_shared(self, folder: Path) -> bool:
        """Return True if all machines see this folder; a temporary file in it serves as the test."""
        place = next(parent for parent in folder.absolute().parents if parent.is_dir())
        if place not in self._shared_by_folder:
            with NamedTemporaryFile(prefix=DRAFT_MARK, dir=place) as token:
                self._shared_by_folder[place] = not self._find_missing_paths([token.name])
        return self._shared_by_folder[place]

    def _find_missing_paths(self, paths: Sequence[str]) -> list[str]:
        """Return the paths that some machine of the cluster does not see; each machine checks them."""
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        if len(nodes) == 1:
            return []
        aim = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        ask = self._ray.remote(list_missing_paths)
        asked = [
            ask.options(num_cpus=0, scheduling_strategy=aim(node["NodeID"], soft=False)).remote(paths) for node in nodes
        ]
        missing = {path for some in self._ray.get(asked) for path in some}
        return [path for path in paths if path in missing]


def run_on_cluster(message: JobMessage, bundles: Sequence[FileBundle]) -> JobResult:
    """Run a job in a worker of the cluster."""
    import ray

    os.environ.setdefault("NUMBA_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))  # Ray sets OMP_NUM_THREADS
    if bundles:
        message = replace(message, remote_spec=localize(message.remote_spec, bundles, ray.get))
    return run_job(message)


def list_missing_paths(paths: Sequence[str]) -> list[str]:
    """Return the paths that do not exist on this machine."""
    return [path for path in paths if not Path(path).exists()]


def connect_to_ray(address: str, workers: int | None = None) -> Any:
    """Return the ray module, connected to a cluster and with its logging off."""
    for name, value in {**QUIET_ENV, **({} if address == LOCAL else FEW_RETRIES_ENV)}.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise MissingExtra("cluster", "--ray") from error
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    if address not in (AUTO, LOCAL):
        _refuse_unreachable(address)
    if ray.is_initialized():
        return ray
    quiet: Any = {"log_to_driver": False, "logging_level": logging.CRITICAL, "configure_logging": False}
    if address == LOCAL:
        ray.init(address=LOCAL, num_cpus=workers, include_dashboard=False, **quiet)
        return ray
    try:
        with _silence_stderr():
            ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        where = "around this machine" if address == AUTO else f"at {address}"
        raise BadInput(
            f"there is no Ray cluster {where} ({_extract_first_sentence(error)}); --ray local starts one here"
        ) from error
    return ray


def _refuse_unreachable(address: str) -> None:
    """Raise an error if a plain connection to the address fails, because Ray waits long for a missing server."""
    host, _, port = address.rpartition("://")[2].partition(":")
    try:
        number = int(port or DEFAULT_PORT)
        socket.create_connection((host, number), timeout=CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise BadInput(
            f"no Ray cluster answers at {address} ({error}); --ray is auto, local, or HOST:PORT of a head node"
        ) from error


@contextmanager
def _silence_stderr() -> Iterator[None]:
    """Discard the stderr output of C++ libraries inside the block; the caller raises an error message instead."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _extract_first_sentence(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].partition(". ")[0]
