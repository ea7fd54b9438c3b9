"""Small runs."""

from __future__ import annotations

from typing import Any

import torch

from doorstep.training import Trainer, TrainingConfig

SMALL = (
    "simulator.num_worlds=6",
    "simulator.num_threads=1",
    "simulator.episode_length=20",
    "experience.num_steps=16",
    "experience.inference=torch",
    "network.widths=[16,16]",
    "ppo.num_minibatches=2",
    "ppo.chunk_length=4",
    "num_threads=1",
)

WITHOUT_MEMORY = ("network.type=mlp",)
WITH_MEMORY = ("network.type=lstm", "network.memory=8")


def small(*changes: str) -> TrainingConfig:
    """A config whose updates take milliseconds."""
    return TrainingConfig(num_updates=4).changed(*SMALL, *changes)


def rolled_out(*changes: str) -> tuple[Trainer, Any]:
    """A run that has gathered and judged a rollout, and the rollout."""
    trainer = Trainer(small(*changes))
    trainer.update()
    return trainer, trainer._rollout


def equal_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and bool(torch.equal(one, other))
