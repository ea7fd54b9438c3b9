"""doorstep.torch beside the same in plain PyTorch: advantages, drawn actions, and what a policy learns from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from tests.benchmarks.interop.measuring import Row, faster_than, medians, per_call

import doorstep
from doorstep.torch import generalized_advantages, multi_discrete_evaluate, multi_discrete_sample

STEPS, COLUMNS = 128, 2048
ROWS, SIZES = 4096, doorstep.ACTIONS

Categorical: Any = torch.distributions.Categorical


def plain_advantages(
    rewards: Any, values: Any, next_values: Any, terminations: Any, truncations: Any, *, gamma: float, gae_lambda: float
) -> tuple[Any, Any]:
    """A loop over the steps, as training scripts have it."""
    goes_on = (~(terminations | truncations)).to(rewards.dtype) * (gamma * gae_lambda)
    errors = rewards + gamma * next_values * (~terminations).to(rewards.dtype) - values
    advantages, later = torch.empty_like(rewards), torch.zeros_like(rewards[0])
    for step in range(len(rewards) - 1, -1, -1):
        later = errors[step] + goes_on[step] * later
        advantages[step] = later
    return advantages, advantages + values


def plain_sample(logits: Any) -> tuple[Any, Any, Any]:
    """A distribution per component."""
    parts = [Categorical(logits=part, validate_args=False) for part in logits.split(SIZES, dim=1)]
    actions = [part.sample() for part in parts]
    log_probabilities = sum(part.log_prob(action) for part, action in zip(parts, actions, strict=True))
    return torch.stack(actions, dim=1), log_probabilities, sum(part.entropy() for part in parts)


def learn(evaluate: Any, logits: Any, actions: Any) -> Any:
    log_probabilities, entropies = evaluate(logits, actions)
    return torch.autograd.grad(log_probabilities.sum() + 0.01 * entropies.sum(), logits)


def plain_evaluate(logits: Any, actions: Any) -> tuple[Any, Any]:
    parts = [Categorical(logits=part, validate_args=False) for part in logits.split(SIZES, dim=1)]
    log_probabilities = sum(part.log_prob(actions[:, k]) for k, part in enumerate(parts))
    return log_probabilities, sum(part.entropy() for part in parts)


def rows(rounds: int) -> Iterator[Row]:
    torch.set_num_threads(1)
    numbers = torch.randn(3, STEPS, COLUMNS)
    flags = torch.rand(2, STEPS, COLUMNS) < 0.01
    yield _compare(
        rounds,
        f"advantages (GAE) of [{STEPS}, {COLUMNS}]",
        lambda: generalized_advantages(*numbers, *flags),
        lambda: plain_advantages(*numbers, *flags, gamma=0.99, gae_lambda=0.95),
        "loop over the steps in PyTorch",
    )
    logits = torch.randn(ROWS, sum(SIZES))
    shape = f"[{ROWS}, {'+'.join(map(str, SIZES))}]"
    yield _compare(
        rounds,
        f"actions, log-probabilities and entropies of {shape}",
        lambda: multi_discrete_sample(logits, SIZES),
        lambda: plain_sample(logits),
        "torch.distributions.Categorical",
    )
    wanted = logits.clone().requires_grad_()
    actions = multi_discrete_sample(logits, SIZES)[0]
    long_actions = actions.long()
    yield _compare(
        rounds,
        f"log-probabilities, entropies and their gradients of {shape}",
        lambda: learn(lambda given, taken: multi_discrete_evaluate(given, taken, SIZES), wanted, actions),
        lambda: learn(plain_evaluate, wanted, long_actions),
        "torch.distributions.Categorical",
    )


def _compare(rounds: int, name: str, ours: Any, plain: Any, peer: str) -> Row:
    taken = medians(rounds, {"doorstep": per_call(ours, 10), "peer": per_call(plain, 10)})
    return faster_than(name, taken["doorstep"], peer, taken["peer"], 1)
