"""`make_executor`: executors in this process, in other processes, or on a Ray cluster, and their device."""

from __future__ import annotations

from shaketable.core.errors import BadInput
from shaketable.executors.base import Executor, SerialExecutor
from shaketable.executors.device import DeviceSettings, set_device_settings
from shaketable.experiment import Experiment


def make_executor(
    jobs: int | None = None,
    ray: str | None = None,
    cpus: float | None = None,
    gpus: float | None = None,
    device: str = "auto",
    dtype: str | None = None,
    batch_tokens: int | None = None,
) -> Executor:
    """Return an executor for other functions: `st.audit(data, "dense", executor=st.make_executor(jobs=4))`.

    jobs            processes of this machine; with `ray="local"`, those of its cluster
    ray             a Ray cluster: "auto" for this machine's cluster, "local" to start one here, or HOST:PORT
    cpus, gpus      the cores and GPUs of a job on the cluster; the default is the request of the ranker
    device, dtype   the device (auto, cpu, cuda) and the number type (float32, bfloat16, float16) of neural rankers
    batch_tokens    tokens that a neural ranker reads at a time, padding included

    Without jobs and ray, this process does all the work, and searches and neural rankers use all cores by threads. The
    device applies to this process and to the workers.
    """
    set_device_settings(DeviceSettings(device, dtype or "", batch_tokens or 0))
    if jobs is not None and jobs < 1:
        raise BadInput(f"the work needs one process or more, not {jobs}")
    if ray is not None:
        from shaketable.executors.ray import RayExecutor

        return RayExecutor(ray, cpus, gpus, jobs)
    if cpus is not None or gpus is not None:
        raise BadInput("cores and GPUs of a worker are counted by a Ray cluster; name one with --ray")
    if jobs is None or jobs == 1:
        return SerialExecutor()
    from shaketable.executors.processes import ProcessExecutor

    return ProcessExecutor(jobs)


def check_remote_loadable(experiment: Experiment) -> None:
    """Raise an error if there are workers that cannot open the collection or a ranker."""
    option = getattr(experiment.engine.executor, "cli_option", "")
    if not option:
        return
    if not experiment.collection.source:
        raise BadInput(
            f"the collection {experiment.collection.name} lives only in this process, so no worker can open it: save "
            f"it as a folder and name that, or leave out {option}"
        )
    for name in experiment.models:
        if experiment.get_remote_spec(name) is None:
            raise BadInput(
                f"ranker {name} lives only in this process, so no worker can open it: name it by a text, such as "
                f"./my.py:function, or leave out {option}"
            )
