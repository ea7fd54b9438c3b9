"""Playing what was trained: the policy of a checkpoint."""

from __future__ import annotations

import os

import torch
from torch import nn

from doorstep.errors import StateError
from doorstep.policy import Policy, SamplingParams
from doorstep.training.checkpoint import Checkpoint, load_checkpoint
from doorstep.training.networks import ActorCritic
from doorstep.training.trainer import make_observation_moments


def load_policy(path: str | os.PathLike[str], *, sampling: SamplingParams | None = None) -> Policy:
    """The policy of a checkpoint, evaluated by the library. It takes observations as the simulator makes them.

    >>> import doorstep, tempfile
    >>> from doorstep.training import load_policy, preset, train
    >>> folder = tempfile.mkdtemp()
    >>> _ = train(preset("default").changed("simulator.num_worlds=8", "ppo.num_minibatches=1", "num_updates=1"), folder)
    >>> policy = load_policy(f"{folder}/checkpoint.safetensors")
    >>> sim = doorstep.Simulator(4, flat_observations=True)
    >>> policy.act(sim.observations).shape
    (4, 2, 4)

    Args:
        path: the file of a checkpoint.
        sampling: how actions are chosen; None: `SamplingParams()`.

    Raises:
        StateError: the file is not a checkpoint, damaged, or of a network that sees pixels.
        LibraryError, OSError: as `load_checkpoint()`.
    """
    checkpoint = load_checkpoint(path)
    if checkpoint.config.sees_pixels:
        raise StateError(f"{os.fsdecode(path)} has a network that sees pixels, which a Policy cannot evaluate")
    return Policy.from_torch(restored_network(checkpoint).actor_modules(), sampling=sampling)


def restored_network(checkpoint: Checkpoint) -> ActorCritic:
    """The network of a checkpoint of flat observations, which takes them as the simulator makes them."""
    config = checkpoint.config
    inputs = checkpoint.tensors["network.encoder.0.weight"].shape[1]
    network = ActorCritic(config.network, (inputs,))
    network.load_state_dict(checkpoint.part("network"))
    moments = make_observation_moments(config, (inputs,))
    if moments is not None:
        moments.load_state_dict(checkpoint.part("observation_moments"))
        mean, deviation = moments.scale()
        for encoder in (network.encoder, network.critic_encoder):
            if encoder is not None:
                fold_scale(encoder[0], mean, deviation)
    return network


@torch.no_grad()  # type: ignore[untyped-decorator]
def fold_scale(layer: nn.Module, mean: torch.Tensor, deviation: torch.Tensor) -> None:
    """Makes a layer of (x - mean) / deviation one of x: W (x - m) / d + b = (W / d) x + (b - (W / d) m)."""
    assert isinstance(layer, nn.Linear)
    layer.weight /= deviation
    layer.bias -= layer.weight @ mean
