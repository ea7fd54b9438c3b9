"""Proximal policy optimisation (Schulman et al., 2017): what a network learns from a rollout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import torch
from torch import nn

from doorstep._native import ACTIONS
from doorstep.torch import multi_discrete_evaluate
from doorstep.training.config import PPOConfig, TrainingConfig
from doorstep.training.errors import NonFiniteLossError
from doorstep.training.networks import ActorCritic, Outputs

Data = dict[str, torch.Tensor]

STATISTICS = ("policy_loss", "value_loss", "entropy", "divergence", "clipped", "gradient_norm")


@final
class Learner:
    """Improves a network by the data of rollouts.

    Attributes:
        network: what learns.
        optimizer: Adam.
        evaluate: the network's forward pass as it is used everywhere: compiled and autocast as the config says.
    """

    def __init__(self, config: TrainingConfig, network: ActorCritic) -> None:
        self._config = config
        self.network = network
        self._parameters = list(network.parameters())  # walking through the modules again takes as long as their norm
        self.optimizer = torch.optim.Adam(self._parameters, lr=config.ppo.learning_rate, eps=1e-5, fused=True)
        self.evaluate = make_evaluate(config, network)

    def update(self, data: Data, progress: float, generator: torch.Generator) -> dict[str, float]:
        """Learns from data [L, S, ...] in shuffled minibatches; returns means of STATISTICS.

        progress: how much of the run is done, 0 to 1, for what changes along with it. generator: on the data's device.

        Raises:
            NonFiniteLossError: a loss or gradient is not finite; the weights are as before that minibatch.
        """
        ppo = self._config.ppo
        entropy_weight = interpolated(ppo.entropy_weight, ppo.final_entropy_weight, progress)
        for group in self.optimizer.param_groups:
            group["lr"] = interpolated(ppo.learning_rate, ppo.final_learning_rate, progress)
        rows = []
        for batch in minibatches(data, ppo, generator):
            outputs = self.evaluate(batch["observations"], batch["memory"][0], batch["starts"])
            loss, statistics = ppo_loss(outputs, batch, ppo, entropy_weight)
            for parameter in self._parameters:
                parameter.grad = None
            loss.backward()
            norm = limit_gradients(self._parameters, ppo.max_gradient_norm)
            if not math.isfinite(loss.detach() + norm):
                raise NonFiniteLossError(loss.item(), norm.item(), batch)
            self.optimizer.step()
            statistics["gradient_norm"] = norm
            rows += [statistics[name] for name in STATISTICS]
        means = torch.stack(rows).unflatten(0, (-1, len(STATISTICS))).mean(0)
        return dict(zip(STATISTICS, means.tolist(), strict=True))


def make_evaluate(config: TrainingConfig, network: ActorCritic) -> Callable[..., Outputs]:
    """The forward pass, compiled and in bfloat16 where the config says so."""
    forward: Any = torch.compile(network) if config.compile else network
    if config.precision == "float32":
        return forward  # type: ignore[no-any-return]
    device = next(network.parameters()).device.type

    def autocast(*arguments: torch.Tensor) -> Outputs:
        with torch.autocast(device, torch.bfloat16):
            outputs: Outputs = forward(*arguments)
        return outputs

    return autocast


def minibatches(data: Data, ppo: PPOConfig, generator: torch.Generator) -> Iterator[Data]:
    """The sequences of `data` in a new order for every epoch, in nearly equal parts."""
    starts = data["starts"]
    for _ in range(ppo.num_epochs):
        order = torch.randperm(starts.shape[1], generator=generator, device=starts.device)
        for chosen in order.tensor_split(ppo.num_minibatches):
            yield {name: tensor.index_select(1, chosen) for name, tensor in data.items()}


def ppo_loss(
    outputs: Outputs, batch: Data, ppo: PPOConfig, entropy_weight: float
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss of a minibatch, and what is worth knowing of it, without gradients."""
    actions = batch["actions"].flatten(0, 1)
    log_probabilities, entropies = multi_discrete_evaluate(outputs.logits.flatten(0, 1), actions, ACTIONS)
    change = log_probabilities - batch["log_probabilities"].flatten()
    ratios = change.exp()
    advantages = batch["advantages"].flatten()
    advantages = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
    gains = torch.minimum(ratios * advantages, ratios.clamp(1 - ppo.clip, 1 + ppo.clip) * advantages)
    value_loss = squared_errors(outputs.values, batch, ppo).mean() / 2
    policy_loss, entropy = -gains.mean(), entropies.mean()
    loss = policy_loss + ppo.value_weight * value_loss - entropy_weight * entropy
    differences = ratios.detach() - 1
    statistics = {
        "policy_loss": policy_loss.detach(),
        "value_loss": value_loss.detach(),
        "entropy": entropy.detach(),
        # an estimate of the Kullback-Leibler divergence that is never negative
        "divergence": (differences - change.detach()).mean(),
        "clipped": (differences.abs() > ppo.clip).float().mean(),
    }
    return loss, statistics


def squared_errors(values: torch.Tensor, batch: Data, ppo: PPOConfig) -> torch.Tensor:
    """Of the values, or if larger, of values that keep near to what they were."""
    errors = (values - batch["targets"]).square()
    if not ppo.clip_values:
        return errors
    near = batch["values"] + (values - batch["values"]).clamp(-ppo.clip, ppo.clip)
    return torch.maximum(errors, (near - batch["targets"]).square())


def limit_gradients(parameters: Sequence[nn.Parameter], most: float) -> torch.Tensor:
    """Scales gradients down to a norm of `most`, if theirs is larger; returns theirs. `nn.utils.clip_grad_norm_` has
    the same bits, and takes twice as long with networks as small as ours: it groups gradients by device and dtype."""
    gradients = [parameter.grad for parameter in parameters]
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]))
    torch._foreach_mul_(gradients, (most / (norm + 1e-6)).clamp(max=1))
    return norm


def interpolated(first: float, last: float | None, progress: float) -> float:
    """From first to last as the run proceeds; None: it stays."""
    return first if last is None else first + (last - first) * progress
