"""Flags for workers, the device of neural rankers, and the cost and the budget of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from shaketable.cli.help import Panel
from shaketable.cli.options.groups import make_option

if TYPE_CHECKING:
    from shaketable.api.options import BudgetOptions, DryRunOptions, RunOptions, WorkOptions

KeepGoing = Annotated[
    bool,
    make_option(Panel.PERFORMANCE, "--keep-going",
        help="If a ranker fails on a query, leave this query out for the ranker and continue. The report counts "
             "such queries."),
]  # fmt: skip
Jobs = Annotated[
    int | None,
    make_option(Panel.PERFORMANCE, "--jobs", metavar="NUMBER", min=1,
        help="The number of processes for scoring, training and attacks; each process opens the rankers again. By "
             "default, there is one process, in which searches and neural rankers use all cores."),
]  # fmt: skip
Ray = Annotated[
    str | None,
    make_option(Panel.PERFORMANCE, "--ray", metavar="CLUSTER",
        help="Send the work to a Ray cluster: 'auto' (the cluster of this machine), 'local' (a new one here, with "
             "--jobs workers) or HOST:PORT."),
]  # fmt: skip
WorkerCpus = Annotated[
    float | None,
    make_option(Panel.PERFORMANCE, "--worker-cpus", metavar="NUMBER", min=0.01,
        help="With --ray: the number of cores for each job. By default, it is one."),
]  # fmt: skip
WorkerGpus = Annotated[
    float | None,
    make_option(Panel.PERFORMANCE, "--worker-gpus", metavar="NUMBER", min=0.0,
        help="With --ray: the number of GPUs for each job. By default, it is one if neural rankers use a GPU here, "
             "and none otherwise."),
]  # fmt: skip
Device = Annotated[
    str,
    make_option(Panel.PERFORMANCE, "--device", metavar="DEVICE",
        help="The device of neural rankers: 'auto' (a GPU if there is one), 'cpu' or 'cuda'."),
]  # fmt: skip
Dtype = Annotated[
    str | None,
    make_option(Panel.PERFORMANCE, "--dtype", metavar="TYPE",
        help="The number type of neural rankers: float32, bfloat16 or float16. By default, each model uses its own."),
]  # fmt: skip
BatchTokens = Annotated[
    int | None,
    make_option(Panel.PERFORMANCE, "--batch-tokens", metavar="NUMBER", min=1,
        help="The maximum number of tokens in a batch of a neural ranker, including padding. If memory runs out, "
             "the batches become smaller."),
]  # fmt: skip
DryRunOnly = Annotated[
    bool,
    make_option(Panel.PERFORMANCE, "--dry-run",
        help="Measure nothing and send nothing. Show how many query-document pairs and requests each task needs "
             "from each ranker, and how long they would take."),
]  # fmt: skip
Budget = Annotated[
    str,
    make_option(Panel.PERFORMANCE, "--budget", metavar="AMOUNT",
        help="The work of the rankers, without lexical ones: a time (10m), a number of query-document pairs (20000), "
             "money ($5, with --price-per-1k) or 'none'. The audit plans its tests to fit. By default, a slow ranker "
             "gets about ten minutes, and a fast one has no limit."),
]  # fmt: skip
PricePer1k = Annotated[
    float | None,
    make_option(Panel.PERFORMANCE, "--price-per-1k", metavar="PRICE", min=0,
        help="With --dry-run or a --budget in money: the price of 1,000 requests to an endpoint, in any currency."),
]  # fmt: skip
SecondsPerRequest = Annotated[
    float,
    make_option(Panel.PERFORMANCE, "--seconds-per-request", metavar="SECONDS", min=0,
        help="With --dry-run: the duration of a request to an endpoint."),
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
class CostFlags:
    """The budget, the switch for a dry run, and the cost of a request."""

    budget: Budget = "auto"
    dry_run: DryRunOnly = False
    price_per_1k: PricePer1k = None
    seconds_per_request: SecondsPerRequest = 0.2

    def to_options(self) -> BudgetOptions:
        """Return the options of API functions."""
        return {"budget": self.budget, "price_per_1k": self.price_per_1k}

    def to_dry_run_options(self) -> DryRunOptions:
        """Return the options of a dry run."""
        return {**self.to_options(), "seconds_per_request": self.seconds_per_request}
