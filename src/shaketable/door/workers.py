"""Who does the work of an audit: this process, others of this machine, or a Ray cluster; and what nets compute on."""

from __future__ import annotations

from shaketable.bench import Bench
from shaketable.errors import BadInput
from shaketable.score.executor import Executor, Here
from shaketable.score.hardware import Hardware, choose


def workers(
    jobs: int | None = None,
    ray: str | None = None,
    cpus: float | None = None,
    gpus: float | None = None,
    device: str = "auto",
    dtype: str | None = None,
    batch_tokens: int | None = None,
) -> Executor:
    """Workers for the parameter `executor` of other functions: `st.audit(data, "dense", executor=st.workers(jobs=4))`.

    jobs            processes of this machine; with `ray="local"`, those of its cluster
    ray             a Ray cluster: "auto" for the one that this machine is in, "local" to start one here, or HOST:PORT
    cpus, gpus      what a job of the cluster takes, whatever the ranker says
    device, dtype   what nets compute on (auto, cpu, cuda) and how exactly (float32, bfloat16, float16)
    batch_tokens    tokens that a net reads at a time, padding included

    Without jobs and ray, this process does everything: searches and nets then use the cores by threads of their own.
    What nets compute on is a setting of this process, and of the workers.
    """
    choose(Hardware(device, dtype or "", batch_tokens or 0))
    if jobs is not None and jobs < 1:
        raise BadInput(f"the work needs one process or more, not {jobs}")
    if ray is not None:
        from shaketable.score.cluster import Cluster

        return Cluster(ray, cpus, gpus, jobs)
    if cpus is not None or gpus is not None:
        raise BadInput("cores and GPUs of a worker are counted by a Ray cluster; name one with --ray")
    if jobs is None or jobs == 1:
        return Here()
    from shaketable.score.processes import Processes

    return Processes(jobs)


def refuse_homebound(bench: Bench) -> None:
    """Refuse what cannot be handed out, where somebody asked for workers."""
    option = getattr(bench.road.executor, "elsewhere", "")
    if not option:
        return
    if not bench.collection.source:
        raise BadInput(
            f"the collection {bench.collection.name} lives only in this process, so no worker can open it: save it as "
            f"a folder and name that, or leave out {option}"
        )
    for name in bench.models:
        if bench.origin(name) is None:
            raise BadInput(
                f"ranker {name} lives only in this process, so no worker can open it: name it by a text, such as "
                f"./my.py:function, or leave out {option}"
            )
