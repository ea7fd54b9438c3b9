"""doorstep's own PPO, with the files that `doorstep train` writes."""

from __future__ import annotations

import tempfile
from typing import Any

from tests.benchmarks.trainers.meter import Meter

import doorstep
from doorstep.training import TrainingConfig


def train(config: TrainingConfig, meter: Meter) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        doorstep.train(
            folder,
            config=config,
            on_update=lambda record: meter.add(record.world_steps),
            should_stop=meter.is_time_up,
        )
        return doorstep.load_policy(folder)
