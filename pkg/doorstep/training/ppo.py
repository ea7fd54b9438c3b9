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
from doorstep.training.distributed import Ranks
from doorstep.training.errors import NonFiniteLossError
from doorstep.training.networks import ActorCritic, Outputs

Data = dict[str, torch.Tensor]

STATISTICS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "gradient_norm")


@final
class Learner:
    """Improves a network, of which each rank has a copy with equal bits, by the data of the rollouts of all ranks.

    Attributes:
        network: what learns.
        optimizer: Adam.
        evaluate: the network's forward pass as it is used everywhere: compiled and autocast as the config says.
    """

    def __init__(self, config: TrainingConfig, network: ActorCritic, ranks: Ranks) -> None:
        self._config = config
        self._ranks = ranks
        self.network = network
        self._parameters = list(network.parameters())  # walking through the modules again takes as long as their norm
        self.optimizer = torch.optim.Adam(self._parameters, lr=config.ppo.learning_rate, eps=1e-5, fused=True)
        self.evaluate = make_evaluate(config, network)

    def update(self, data: Data, progress: float, generator: torch.Generator) -> dict[str, float]:
        """Together: learns from data [L, S, ...] in shuffled minibatches; returns means of STATISTICS.

        progress: how much of the run is done, 0 to 1, for what changes along with it. generator: on the data's device,
        and in the same state on all ranks.

        Raises:
            NonFiniteLossError: a loss or gradient is not finite; the weights are as before that minibatch.
        """
        ppo = self._config.ppo
        entropy_coefficient = interpolated(ppo.entropy_coefficient, ppo.final_entropy_coefficient, progress)
        for group in self.optimizer.param_groups:
            group["lr"] = interpolated(ppo.learning_rate, ppo.final_learning_rate, progress)
        rows = []
        for batch, num_steps in minibatches(data, self._config, generator, self._ranks):
            outputs = self.evaluate(batch["observations"], batch["memory"][0], batch["starts"])
            loss, statistics = ppo_loss(outputs, batch, ppo, entropy_coefficient, num_steps, self._ranks)
            for parameter in self._parameters:
                parameter.grad = None
            loss.backward()
            total = loss.detach()
            self._ranks.sum(total, *(one.grad for one in self._parameters if one.grad is not None))
            norm = limit_gradients(self._parameters, ppo.max_gradient_norm)
            if not math.isfinite(total + norm):
                raise NonFiniteLossError(total.item(), norm.item(), batch)
            self.optimizer.step()
            rows += [*statistics, norm / self._ranks.count]
        means = torch.stack(rows).unflatten(0, (-1, len(STATISTICS))).mean(0)
        self._ranks.sum(means)
        return dict(zip(STATISTICS, means.tolist(), strict=True))


def make_evaluate(config: TrainingConfig, network: ActorCritic) -> Callable[..., Outputs]:
    """The forward pass, compiled and in bfloat16 where the config says so."""
    forward: Any = torch.compile(network) if config.compile else network
    if config.precision == "float32":
        return forward  # type: ignore[no-any-return]
    device = next(network.parameters()).device.type

    def autocast(*arguments: torch.Tensor) -> Outputs:
        torch.clear_autocast_cache()  # within another autocast it would outlive an update of the weights
        with torch.autocast(device, torch.bfloat16):
            outputs: Outputs = forward(*arguments)
        return outputs

    return autocast


def minibatches(
    data: Data, config: TrainingConfig, generator: torch.Generator, ranks: Ranks
) -> Iterator[tuple[Data, int]]:
    """The sequences of all ranks in a new order for every epoch, in nearly equal parts: of each part this rank's
    sequences, and the number of steps of all."""
    length = data["starts"].shape[0]
    for _ in range(config.ppo.num_epochs):
        order = torch.randperm(config.num_sequences, generator=generator, device=data["starts"].device)
        for chosen in order.tensor_split(config.ppo.num_minibatches):
            own = own_sequences(chosen, config.num_rows, ranks)
            yield {name: tensor.index_select(1, own) for name, tensor in data.items()}, len(chosen) * length


def own_sequences(chosen: torch.Tensor, num_rows: int, ranks: Ranks) -> torch.Tensor:
    """Which of the sequences are this rank's, as numbers in its own data. Sequence number = chunk * rows + row, both of
    the whole run and within a rank."""
    if ranks.count == 1:
        return chosen
    own = ranks.rows(num_rows)
    chunks, rows = chosen // num_rows, chosen % num_rows
    is_own = (rows >= own.start) & (rows < own.stop)
    return (chunks * (own.stop - own.start) + rows - own.start)[is_own]


def ppo_loss(
    outputs: Outputs, batch: Data, ppo: PPOConfig, entropy_coefficient: float, num_steps: int, ranks: Ranks
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Together: this rank's part of a minibatch's loss, and of all STATISTICS but the last, without gradients. The sums
    over all ranks are means over the minibatch.

    num_steps: of all ranks in the minibatch.
    """
    actions = batch["actions"].flatten(0, 1)
    log_probabilities, entropies = multi_discrete_evaluate(outputs.logits.flatten(0, 1), actions, ACTIONS)
    change = log_probabilities - batch["log_probabilities"].flatten()
    ratios = change.exp()
    advantages = standardized(batch["advantages"].flatten(), ranks)
    gains = torch.minimum(ratios * advantages, ratios.clamp(1 - ppo.clip_range, 1 + ppo.clip_range) * advantages)
    value_loss = squared_errors(outputs.values, batch, ppo).sum() / num_steps / 2
    policy_loss, entropy = -gains.sum() / num_steps, entropies.sum() / num_steps
    loss = policy_loss + ppo.value_coefficient * value_loss - entropy_coefficient * entropy
    differences = ratios.detach() - 1
    approx_kl = (differences - change.detach()).sum() / num_steps  # Kullback and Leibler's, estimated, never negative
    clip_fraction = (differences.abs() > ppo.clip_range).sum().float() / num_steps
    return loss, [policy_loss.detach(), value_loss.detach(), entropy.detach(), approx_kl, clip_fraction]


def standardized(numbers: torch.Tensor, ranks: Ranks) -> torch.Tensor:
    """Together: shifted and scaled, so that the mean over all ranks is 0 and the deviation 1."""
    if ranks.count == 1:
        return (numbers - numbers.mean()) / (numbers.std(correction=0) + 1e-8)
    doubles = numbers.double()
    sums = torch.stack((torch.ones_like(doubles).sum(), doubles.sum(), doubles.square().sum()))
    ranks.sum(sums)
    count, total, squares = sums
    mean = total / count
    deviation = (squares / count - mean.square()).clamp(min=0).sqrt()
    return ((doubles - mean) / (deviation + 1e-8)).to(numbers.dtype)


def squared_errors(values: torch.Tensor, batch: Data, ppo: PPOConfig) -> torch.Tensor:
    """Of the values, or if larger, of values that keep near to what they were."""
    errors = (values - batch["targets"]).square()
    if not ppo.clip_value_loss:
        return errors
    near = batch["values"] + (values - batch["values"]).clamp(-ppo.clip_range, ppo.clip_range)
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
