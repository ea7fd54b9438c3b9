"""Small runs."""

import torch

from doorstep.training import Trainer, TrainingConfig

SMALL = (
    *("simulator.num_worlds=6", "simulator.num_threads=1", "simulator.episode_length=20", "experience.num_steps=16"),
    *("experience.inference=torch", "network.widths=[16,16]", "ppo.num_minibatches=2", "ppo.chunk_length=4"),
    "num_threads=1",
)
WITHOUT_MEMORY = ("network.type=mlp",)
WITH_MEMORY = ("network.type=lstm", "network.memory=8")
RETRYING = ("experience.retries=0.5", "experience.staggered=false")  # a retry follows each episode with a save


def small(*changes):
    """A config whose updates take milliseconds."""
    return TrainingConfig(num_updates=4).changed(*SMALL, *changes)


def rolled_out(*changes):
    """A run that has gathered and judged a rollout, and the rollout."""
    trainer = Trainer(small(*changes))
    trainer.update()
    return trainer, trainer._rollout


def equal_bits(one, other):
    return one.dtype == other.dtype and bool(torch.equal(one, other))


def assert_equal_tensors(one, other):
    """Of checkpoints."""
    assert one.tensors.keys() == other.tensors.keys()
    for name, tensor in one.tensors.items():
        assert equal_bits(tensor, other.tensors[name]), name
