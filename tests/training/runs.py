"""Training of one experiment, as a test has made it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from rrn.training.experiment import Experiment
from rrn.training.trainer import Outcome, train_stages


def train(experiment: Experiment[Any], folder: str | Path, **options: Any) -> Outcome:
    return train_stages(replace(experiment.preset, stages=()), lambda *_: experiment, folder, **options)
