"""The network that chooses actions and estimates values: dense layers or convolutions, and an LSTM if it has memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, final

import torch
from torch import nn

from doorstep._native import ACTIONS
from doorstep.policy.modules import Heads
from doorstep.training.config import LSTMNetwork, MLPNetwork, NetworkConfig

NUM_LOGITS = sum(ACTIONS)
PLACE: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}  # whatever the program's defaults are
# In place where that is possible: what a layer has made is read by nobody else, and memory is what activations cost.
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": lambda: nn.ReLU(inplace=True),
    "tanh": nn.Tanh,
    "silu": lambda: nn.SiLU(inplace=True),
}

# Channels, size and stride of the convolutions over pixels; 64 x 64 pixels become 32 channels of 6 x 6.
CONVOLUTIONS = ((16, 5, 2), (32, 5, 2), (32, 3, 2))


class Outputs(NamedTuple):
    """What a network computes of L steps of B agents.

    logits: float [L, B, 19], the components of an action side by side.
    values: float [L, B], in the units of the value normaliser.
    memory: float [B, S], after the last step.
    """

    logits: torch.Tensor
    values: torch.Tensor
    memory: torch.Tensor


@final
class ActorCritic(nn.Module):  # type: ignore[misc]
    """Policy and value function.

    shape: of an agent's observation: (F,) numbers, or (H, W, C) pixels, uint8. critic_inputs: of the numbers, the last
    ones that only the critic sees. It then has hidden layers of its own: over all numbers, or, in a network with
    memory, over what the memory gives and these.
    """

    def __init__(self, config: NetworkConfig, shape: Sequence[int], critic_inputs: int = 0) -> None:
        super().__init__()
        width = config.widths[-1]
        memory = config.memory if isinstance(config, LSTMNetwork) else 0
        has_two_encoders = bool(critic_inputs) or (isinstance(config, MLPNetwork) and config.separate_critic)
        self.actor_inputs = shape[0] - critic_inputs if critic_inputs else None  # None: all, or pixels
        self.encoder = make_encoder(config, shape if self.actor_inputs is None else (self.actor_inputs,))
        self.memory = nn.LSTMCell(width, memory, **PLACE) if memory else None
        judged = (memory + critic_inputs,) if memory else shape
        self.critic_encoder = make_encoder(config, judged) if has_two_encoders else None
        self.actor = nn.Linear(memory or width, NUM_LOGITS, **PLACE)
        self.critic = nn.Linear(width if has_two_encoders else memory or width, 1, **PLACE)
        self.memory_size = 2 * memory
        initialize(self)

    def forward(self, observations: torch.Tensor, memory: torch.Tensor, starts: torch.Tensor) -> Outputs:
        """Evaluates L steps of B agents in sequence.

        Args:
            observations: [L, B, ...].
            memory: float [B, S]: hidden and cell state of the LSTM before the first step.
            starts: bool [L, B]: an episode begins with this step, whose memory is therefore zero.
        """
        seen = observations if self.actor_inputs is None else observations[..., : self.actor_inputs]
        features = self.encoder(seen.flatten(0, 1)).unflatten(0, starts.shape)
        if self.memory is not None:
            features, memory = self._remember(features, memory, starts)
        judged = features
        if self.critic_encoder is not None:
            judged = observations
            if self.memory is not None:
                judged = torch.cat((features, observations[..., self.actor_inputs :]), -1)
            judged = self.critic_encoder(judged.flatten(0, 1)).unflatten(0, starts.shape)
        return Outputs(self.actor(features).float(), self.critic(judged).squeeze(-1).float(), memory)

    def _remember(
        self, features: torch.Tensor, memory: torch.Tensor, starts: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.memory is not None
        outputs = []
        for step_features, start in zip(features, starts, strict=True):
            hidden, cell = memory.masked_fill(start[:, None], 0).chunk(2, dim=-1)
            hidden, cell = self.memory(step_features, (hidden, cell))
            memory = torch.cat((hidden, cell), -1).float()
            outputs.append(hidden)
        return torch.stack(outputs), memory

    def actor_modules(self) -> list[nn.Module]:
        """What chooses actions, in the order of evaluation, for `doorstep.load_policy()`."""
        return [module for module in (self.encoder, self.memory, self.actor) if module is not None]

    def acting_modules(self) -> list[nn.Module]:
        """The same with the critic as the value head, which has no hidden layers of its own."""
        assert self.critic_encoder is None
        return [*self.actor_modules()[:-1], Heads([self.actor], value=self.critic)]


def make_encoder(config: NetworkConfig, shape: Sequence[int]) -> nn.Sequential:
    """Hidden layers, behind convolutions if observations are pixels."""
    activation = ACTIVATIONS[config.activation]
    modules: list[nn.Module] = []
    if len(shape) == 3:
        modules += convolutions(shape, activation)
        with torch.no_grad():
            (inputs,) = nn.Sequential(*modules)(torch.zeros(1, *shape, dtype=torch.uint8, device="cpu")).shape[1:]
    else:
        (inputs,) = shape
    for width in config.widths:
        modules.append(nn.Linear(inputs, width, **PLACE))
        if config.layer_norm:
            modules.append(nn.LayerNorm(width, **PLACE))
        modules.append(activation())
        inputs = width
    return nn.Sequential(*modules)


def convolutions(shape: Sequence[int], activation: Callable[[], nn.Module]) -> Iterator[nn.Module]:
    """Convolutions over pixels [B, H, W, C], flat at the end."""
    yield Pixels()
    channels = shape[2]
    for outputs, size, stride in CONVOLUTIONS:
        yield nn.Conv2d(channels, outputs, size, stride, **PLACE)
        yield activation()
        channels = outputs
    yield nn.Flatten()


@final
class Pixels(nn.Module):  # type: ignore[misc]
    """uint8 [B, H, W, C] as float [B, C, H, W], -0.5 to 0.5."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.permute(0, 3, 1, 2).float().div(255) - 0.5


def initialize(network: ActorCritic) -> None:
    """Orthogonal weights and no biases; at first all actions are nearly equally likely, and all values nearly 0."""
    for module in network.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(module.weight, math.sqrt(2))
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LSTMCell):
            nn.init.orthogonal_(module.weight_ih)
            nn.init.orthogonal_(module.weight_hh)
            nn.init.zeros_(module.bias_ih)
            nn.init.zeros_(module.bias_hh)
    nn.init.orthogonal_(network.actor.weight, 0.01)
    nn.init.orthogonal_(network.critic.weight, 0.1)
