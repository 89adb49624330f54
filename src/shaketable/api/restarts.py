"""The second attempt of work whose scores were wrong, because a ranker turned out to be list-wise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shaketable.api.options import Notify
from shaketable.experiment import Experiment
from shaketable.scoring.pointwise import PointwiseRefuted

T = TypeVar("T")


def restart_if_refuted(experiment: Experiment, work: Callable[[], T], notify: Notify) -> T:
    """Return the result of work on an experiment; start over whenever a ranker turns out to be list-wise.

    The engine treats such a ranker as list-wise from then on, so each ranker causes at most one new start.
    """
    while True:
        try:
            return work()
        except PointwiseRefuted as refuted:
            notify(str(refuted))
            experiment.discard_scores()
