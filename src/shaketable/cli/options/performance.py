"""Flags for workers, the device of neural rankers, and the cost of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shaketable.api.options import RunOptions, WorkOptions

KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", help="Do not stop when a ranker fails on a query: leave the query out for this "
                 "ranker, and report how many there were."),
]  # fmt: skip
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, metavar="NUMBER", help="Divide scoring, training and attacks among this many "
                 "processes of this machine, each of which opens the rankers for itself. By default one process does "
                 "all; searches and neural rankers use all cores in any case."),
]  # fmt: skip
Ray = Annotated[
    str | None,
    typer.Option("--ray", metavar="CLUSTER", help="Give the work to a Ray cluster: 'auto' is the one that this machine "
                 "is in, 'local' starts one here (with --jobs workers), and HOST:PORT is any other."),
]  # fmt: skip
WorkerCpus = Annotated[
    float | None,
    typer.Option("--worker-cpus", min=0.01, metavar="NUMBER", help="With --ray: the number of cores that a job takes. "
                 "By default it is one."),
]  # fmt: skip
WorkerGpus = Annotated[
    float | None,
    typer.Option("--worker-gpus", min=0.0, metavar="NUMBER", help="With --ray: the number of GPUs that a job takes. By "
                 "default it is none, or one if neural rankers compute on a GPU here."),
]  # fmt: skip
Device = Annotated[
    str,
    typer.Option("--device", metavar="DEVICE", help="The device of neural rankers: 'auto' (a GPU if there is one), "
                 "'cpu' or 'cuda'."),
]  # fmt: skip
Dtype = Annotated[
    str | None,
    typer.Option("--dtype", metavar="TYPE", help="The number type of neural rankers: float32, bfloat16 or float16. By "
                 "default it is that of each model."),
]  # fmt: skip
BatchTokens = Annotated[
    int | None,
    typer.Option("--batch-tokens", min=1, metavar="NUMBER", help="The number of tokens that a neural ranker reads at a "
                 "time, padding included; if memory is too small, it reads fewer."),
]  # fmt: skip
DryRunOnly = Annotated[
    bool,
    typer.Option("--dry-run", help="Send nothing and measure nothing: show how many query-document pairs and requests "
                 "each task would ask of each ranker, and how long they would take."),
]  # fmt: skip
PricePer1k = Annotated[
    float | None,
    typer.Option("--price-per-1k", min=0, metavar="PRICE", help="With --dry-run: the price of 1,000 requests to an "
                 "endpoint, in any currency."),
]  # fmt: skip
SecondsPerRequest = Annotated[
    float,
    typer.Option("--seconds-per-request", min=0, metavar="SECONDS", help="With --dry-run: how long one request to an "
                 "endpoint takes."),
]  # fmt: skip


@dataclass(frozen=True)
class WorkerFlags:
    """The workers, and the device of neural rankers."""

    jobs: Jobs = None
    ray: Ray = None
    worker_cpus: WorkerCpus = None
    worker_gpus: WorkerGpus = None
    device: Device = "auto"
    dtype: Dtype = None
    batch_tokens: BatchTokens = None

    def to_options(self) -> WorkOptions:
        """Return the options of API functions, with the progress bars and messages of the command line."""
        from shaketable.api.workers import make_executor
        from shaketable.cli.console import notify
        from shaketable.cli.progress import show_progress

        workers = (self.jobs, self.ray, self.worker_cpus, self.worker_gpus)
        executor = make_executor(*workers, self.device, self.dtype, self.batch_tokens)
        return {"progress": show_progress, "notify": notify, "executor": executor}


@dataclass(frozen=True)
class RunFlags(WorkerFlags):
    """`WorkerFlags` for commands that run rankers."""

    keep_going: KeepGoing = False

    def to_options(self) -> RunOptions:
        """Return the options of API functions."""
        return {**super().to_options(), "keep_going": self.keep_going}


@dataclass(frozen=True)
class DryRunFlags:
    """The switch for a dry run, and the cost of a request."""

    dry_run: DryRunOnly = False
    price_per_1k: PricePer1k = None
    seconds_per_request: SecondsPerRequest = 0.2
