"""Actors evaluate the network while worlds are stepped: with PyTorch, or with the library's own code."""

from __future__ import annotations

from typing import final

import torch

from doorstep._native import ACTIONS
from doorstep.policy import SamplingParams, load_policy
from doorstep.torch import multi_discrete_sample
from doorstep.training.config import TrainingConfig
from doorstep.training.distributed import Ranks
from doorstep.training.networks import ActorCritic
from doorstep.training.rollout import Actor, Evaluate, Rollout

MAX_STEP = 2**32 - 1


@final
class TorchActor:
    """Evaluates actor and critic at once, on any device."""

    evaluates = True

    def __init__(self, evaluate: Evaluate, generator: torch.Generator, num_rows: int, ranks: Ranks) -> None:
        self._evaluate = evaluate
        self._generator = generator
        self._num_rows = num_rows
        self._own_rows = ranks.rows(num_rows)

    def act(self, rollout: Rollout, step: int, step_of_run: int) -> None:
        present = slice(step, step + 1)
        outputs = self._evaluate(rollout.observations[present], rollout.memory[step], rollout.starts[present])
        logits = outputs.logits[0]
        # for the agents of all ranks, so that an agent's do not depend on their number
        shape, place = (self._num_rows, len(ACTIONS)), {"dtype": torch.float32, "device": logits.device}
        uniforms = torch.rand(shape, generator=self._generator, **place)
        actions, log_probabilities, _ = multi_discrete_sample(logits, ACTIONS, uniforms=uniforms[self._own_rows])
        rollout.actions[step] = actions
        rollout.log_probabilities[step] = log_probabilities
        rollout.values[step] = outputs.values[0]
        rollout.memory[step + 1] = outputs.memory


@final
class NativeActor:
    """Evaluates the network with `doorstep.Policy` on its weights, on the CPU, without a critic that has hidden layers
    of its own. Its random numbers follow from the seed and the step of the run."""

    def __init__(self, network: ActorCritic, config: TrainingConfig, ranks: Ranks) -> None:
        self.evaluates = config.judges_natively
        modules = network.acting_modules() if self.evaluates else network.actor_modules()
        self._policy = load_policy(modules, sampling=SamplingParams(seed=config.seed))
        self._num_agents = config.simulator.num_agents
        self._first_world = ranks.rows(config.simulator.num_worlds).start

    def act(self, rollout: Rollout, step: int, step_of_run: int) -> None:
        by_world = (-1, self._num_agents)
        state = None
        if self._policy.state_size:
            rollout.memory[step + 1] = rollout.memory[step].masked_fill(rollout.starts[step][:, None], 0)
            state = rollout.memory[step + 1].unflatten(0, by_world)
        seen = rollout.observations[step, :, : self._policy.num_inputs].contiguous()
        outputs = {"log_probs": rollout.log_probabilities[step], "values": rollout.values[step]}
        actions = self._policy._act(
            seen.unflatten(0, by_world),
            state,
            sampling=None,
            step=step_of_run & MAX_STEP,
            seeds=None,
            first_world=self._first_world,
            **{name: tensor.numpy() for name, tensor in outputs.items() if self.evaluates},
        )
        rollout.actions[step] = torch.from_numpy(actions).flatten(0, 1)


def make_actor(
    config: TrainingConfig, network: ActorCritic, evaluate: Evaluate, generator: torch.Generator, ranks: Ranks
) -> Actor:
    """The actor that the config asks for."""
    if config.infers_natively:
        return NativeActor(network, config, ranks)
    return TorchActor(evaluate, generator, config.num_rows, ranks)
