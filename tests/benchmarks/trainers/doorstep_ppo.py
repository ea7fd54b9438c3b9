"""doorstep's own PPO, with the files that `doorstep train` writes."""

from __future__ import annotations

import tempfile

from tests.benchmarks.trainers.meter import Meter

from doorstep.training import Trainer, TrainingConfig
from doorstep.training import train as train_in
from doorstep.training.logs import Record


def train(config: TrainingConfig, meter: Meter) -> None:
    trainers: list[Trainer] = []

    def on_update(record: Record) -> None:
        meter.add(record.world_steps, trainers[0].worlds.sim.episode_returns.to_numpy())

    with tempfile.TemporaryDirectory() as folder:
        train_in(folder, config=config, on_begin=trainers.append, on_update=on_update)
