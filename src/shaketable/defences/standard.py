"""Standard training: the control that defences are compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shaketable.training.plan import TrainingPlan


@dataclass(frozen=True)
class Standard:
    """Standard training: no defence, the plan is unchanged."""

    def plan(self, plan: TrainingPlan, adversaries: Callable[[], Path]) -> TrainingPlan:
        return plan
