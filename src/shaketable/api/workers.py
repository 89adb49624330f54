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
    """Return an executor, which runs scoring, training and attacks in this process, in other processes, or on Ray.

    Parameters
    ----------
    jobs
        The number of processes on this machine; with ``ray="local"``, the number of workers of its cluster. By default,
        this process does all the work, and searches and neural rankers use all cores.
    ray
        A Ray cluster: "auto" (the cluster of this machine), "local" (start one here) or "HOST:PORT".
    cpus
        The number of cores for each job on the cluster; by default, what the ranker requests.
    gpus
        The number of GPUs for each job on the cluster; by default, what the ranker requests.
    device
        The device of neural rankers: "auto", "cpu" or "cuda". It applies to this process and to the workers.
    dtype
        The number type of neural rankers: "float32", "bfloat16" or "float16"; by default, that of each model.
    batch_tokens
        The maximum number of tokens in a batch of a neural ranker, including padding.

    Returns
    -------
    Executor
        An executor for the option `executor` of other functions.

    Raises
    ------
    BadInput
        If `jobs` is below 1, or if `cpus` or `gpus` is given without `ray`.

    Examples
    --------
    >>> import shaketable as st
    >>> st.audit("my-folder", "dense", executor=st.make_executor(jobs=4))  # doctest: +SKIP
    """
    set_device_settings(DeviceSettings(device, dtype or "", batch_tokens or 0))
    if jobs is not None and jobs < 1:
        raise BadInput(f"the number of processes must be at least 1, not {jobs}")
    if ray is not None:
        from shaketable.executors.ray import RayExecutor

        return RayExecutor(ray, cpus, gpus, jobs)
    if cpus is not None or gpus is not None:
        raise BadInput("the numbers of cores and GPUs apply to a Ray cluster; name one with --ray")
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
            f"collection {experiment.collection.name} exists only in this process, so workers cannot open it: save it "
            f"to a folder and pass its path, or leave out {option}"
        )
    for name in experiment.models:
        if experiment.get_remote_spec(name) is None:
            raise BadInput(
                f"ranker {name} exists only in this process, so workers cannot open it: name it by a text, such as "
                f"./my.py:function, or leave out {option}"
            )
