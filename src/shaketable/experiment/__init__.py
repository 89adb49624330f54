"""An experiment: a collection, the rankers opened on it, their runs, and the models trained on it."""

from shaketable.experiment.experiment import Experiment

__all__ = ["Experiment"]
