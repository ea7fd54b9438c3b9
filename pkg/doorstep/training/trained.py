"""What was trained as a policy: the one that every checkpoint holds, and a small file of it for others."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import nn

from doorstep._observations import or_default
from doorstep.policy import SamplingParams
from doorstep.policy.files import StoredPolicy, read_stored, write_policy
from doorstep.policy.sampling import check_sampling
from doorstep.policy.torch_policy import stored_layers
from doorstep.training.networks import ActorCritic
from doorstep.training.normalization import make_observation_moments

if TYPE_CHECKING:
    from doorstep.training.checkpoint import Checkpoint


def export_policy(
    path: str | os.PathLike[str], output: str | os.PathLike[str], *, sampling: SamplingParams | None = None
) -> None:
    """Writes the policy of a checkpoint alone, without its critic, optimiser and worlds: about a tenth of the size.
    `doorstep.load_policy()` reads both, without PyTorch.

    >>> import doorstep, pathlib, tempfile
    >>> from doorstep.training import export_policy, train
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = train(folder, num_worlds=8, num_minibatches=1, num_updates=1)
    >>> export_policy(folder / "checkpoint.safetensors", folder / "policy.safetensors")
    >>> doorstep.load_policy(folder / "policy.safetensors")
    Policy(94 inputs, 7 layers)

    Args:
        path: the file of a checkpoint.
        output: the file of the policy, which is replaced.
        sampling: how it chooses actions; None: as the checkpoint says, `SamplingParams()`.

    Raises:
        ArgumentError: `sampling` is something else.
        StateError: the file is not a checkpoint, damaged, or of a network that sees pixels.
        OSError: a file cannot be read or written.
    """
    check_sampling(sampling)
    stored = read_stored(path)
    write_policy(output, stored if sampling is None else stored._replace(sampling=sampling))


def stored_policy(checkpoint: Checkpoint) -> StoredPolicy:
    """The policy of a checkpoint of flat observations, which takes them as the simulator makes them."""
    layers = stored_layers(restored_network(checkpoint).actor_modules())
    about = {"world_steps": checkpoint.world_steps, "config": checkpoint.config.to_dict()}
    return StoredPolicy(layers, SamplingParams(), or_default(checkpoint.config.simulator.observations), about)


def restored_network(checkpoint: Checkpoint) -> ActorCritic:
    """The network of a checkpoint of flat observations, which takes them as the simulator makes them.

    Raises:
        StateError: its tensors are not those of its config.
    """
    config = checkpoint.config
    first = checkpoint.tensors.get("network.encoder.0.weight")
    inputs = first.shape[1] if first is not None and first.ndim == 2 else 1
    shape = (inputs + config.num_critic_inputs,)
    network = ActorCritic(config.network, shape, config.num_critic_inputs)
    moments = make_observation_moments(config, shape)
    parts = {"network": network.state_dict(), "observation_moments": {} if moments is None else moments.state_dict()}
    checkpoint.check(parts)
    network.load_state_dict(checkpoint.part("network"))
    if moments is not None:
        moments.load_state_dict(checkpoint.part("observation_moments"))
        mean, deviation = moments.scale()
        fold_scale(network.encoder[0], mean[:inputs], deviation[:inputs])
        if network.critic_encoder is not None:
            own = config.num_critic_inputs if network.memory is not None else len(mean)  # what it reads itself
            fold_scale(network.critic_encoder[0], mean[-own:], deviation[-own:])
    return network


@torch.no_grad()  # type: ignore[untyped-decorator]
@torch.autocast("cpu", enabled=False)  # type: ignore[untyped-decorator]
def fold_scale(layer: nn.Module, mean: torch.Tensor, deviation: torch.Tensor) -> None:
    """Makes a layer whose last inputs are (x - mean) / deviation one of x:
    W (x - m) / d + b = (W / d) x + (b - (W / d) m)."""
    assert isinstance(layer, nn.Linear)
    weight = layer.weight[:, -len(mean) :]
    weight /= deviation
    layer.bias -= weight @ mean
