"""Rollouts: what happened in all worlds between two updates, and what each action was worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, final

import torch

from doorstep._native import ACTIONS
from doorstep.torch import generalized_advantages, multi_discrete_evaluate
from doorstep.training.config import TrainingConfig
from doorstep.training.distributed import Ranks
from doorstep.training.levels import TrainingLevels
from doorstep.training.networks import Outputs
from doorstep.training.normalization import RunningMoments, Scale
from doorstep.training.retries import Retries
from doorstep.training.worlds import Worlds

EVALUATED_STEPS = 8192  # of agents, at once, where values are computed after a rollout: about what a cache holds

Evaluate = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Outputs]


class Actor(Protocol):
    """Chooses actions.

    Attributes:
        evaluates: whether `act()` also writes log-probabilities and values; otherwise they are computed afterwards.
    """

    evaluates: bool

    def act(self, rollout: Rollout, step: int, step_of_run: int) -> None:
        """Reads the observations, memory and starts of a step of the rollout; writes its actions and the memory after
        it. step_of_run: counts all steps of the run."""


@final
class Rollout:
    """Memory of T steps of this rank's R agents; each rollout overwrites the one before.

    Attributes:
        observations: [T + 1, R, *shape], as the network gets them. The last ones follow the last step.
        starts: bool [T + 1, R]: an episode begins with this observation.
        memory: float [T + 1, R, S]: the network's memory before each step; not yet cleared where an episode begins.
        actions: int32 [T, R, 4].
        log_probabilities: float [T, R], of the actions when they were chosen.
        values: float [T, R], normalised, of the observations.
        rewards: float [T, R].
        terminations: bool [T, R]: the episode reached its goal, and nothing follows.
        final_observations: [T, R, F]: the last ones of episodes that ended with this step; without bootstrapping [0].
        levels: int64 [T, N]: that worlds played in the step.
        natural: bool [T, N]: the episode of the step was no retry.
        returns, largest_y: float [T, R], metres: of episodes that ended with this step.
        advantages, targets: float [T, R]; targets normalised, for the critic.
        explained_variance: share of the variance of targets that the values predicted: 1 is all of it.
    """

    def __init__(
        self,
        config: TrainingConfig,
        worlds: Worlds,
        levels: TrainingLevels,
        retries: Retries | None,
        memory_size: int,
        ranks: Ranks,
    ) -> None:
        steps, rows, device = config.experience.num_steps, worlds.num_rows, worlds.device
        self.num_steps = steps
        self._config = config
        self._worlds = worlds
        self._levels = levels
        self._retries = retries
        self._ranks = ranks
        final_steps = steps if config.experience.time_limit == "bootstrap" else 0

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.observations = zeros(steps + 1, rows, *worlds.shape, dtype=worlds.dtype)
        self.starts = zeros(steps + 1, rows, dtype=torch.bool)
        self.memory = zeros(steps + 1, rows, memory_size)
        self.actions = zeros(steps, rows, len(ACTIONS), dtype=torch.int32)
        self.log_probabilities = zeros(steps, rows)
        self.values = zeros(steps, rows)
        self.rewards = zeros(steps, rows)
        self.terminations = zeros(steps, rows, dtype=torch.bool)
        self.final_observations = zeros(final_steps, rows, *worlds.shape, dtype=worlds.dtype)
        self.levels = zeros(steps, worlds.sim.num_worlds, dtype=torch.int64)
        self.natural = torch.ones_like(self.levels, dtype=torch.bool)
        self.returns = zeros(steps, rows)
        self.largest_y = zeros(steps, rows)
        self.advantages = zeros(steps, rows)
        self.targets = zeros(steps, rows)
        self.explained_variance = 0.0
        self.starts[-1] = True

    @property
    def ended(self) -> torch.Tensor:
        """bool [T, R]: the episode ended with this step, in whatever way."""
        return self.starts[1:]

    # ---- Gathering

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def begin(self, moments: RunningMoments | None) -> None:
        """Together: goes on where the last rollout ended. moments: of observations, which take in the present ones."""
        self.starts[0] = self.starts[-1]
        self.memory[0] = self.memory[-1]
        self._worlds.observe(self.observations[0])
        if moments is not None:
            moments.update(self.observations[0], self._ranks)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def collect(
        self, actor: Actor, first_step: int, moments: RunningMoments | None, generator: torch.Generator
    ) -> None:
        """Steps the worlds, after `begin()`.

        first_step: number of this rollout's first step in the run. moments: by which observations are normalised; None:
        they stay as they are. generator: of retries.
        """
        scale = None
        if moments is not None:
            scale = moments.scale()
            scale.normalize(self.observations[0], self.observations[0])
        for step in range(self.num_steps):
            actor.act(self, step, first_step + step)
            self._worlds.read_levels(self.levels[step])
            self._worlds.step(self.actions[step])
            self._read(step, scale, generator)

    def _read(self, step: int, scale: Scale | None, generator: torch.Generator) -> None:
        """Copies what a step yielded."""
        worlds = self._worlds
        worlds.read_rewards(self.rewards[step], self.starts[step + 1], self.terminations[step])
        worlds.read_episodes(self.returns[step], self.largest_y[step])
        if len(self.final_observations):
            worlds.observe_final(self.final_observations[step], scale)
        if self._retries is not None:
            self._retry(self._retries, step, generator)
        worlds.observe(self.observations[step + 1], scale)

    def _retry(self, retries: Retries, step: int, generator: torch.Generator) -> None:
        self.natural[step] = ~retries.is_retry
        levels, by_world = self.levels[step], (self.levels.shape[1], -1)
        terminations = self.terminations[step].view(by_world)[:, 0]
        succeeded = self._levels.succeeded(levels, terminations, self.largest_y[step].view(by_world))
        in_last_room = self._levels.in_last_room(levels, self._worlds.largest_y())
        retries.step(self.ended[step].view(by_world)[:, 0], succeeded, in_last_room, generator)

    # ---- Judging

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def judge(self, evaluate: Evaluate, moments: RunningMoments, *, is_evaluated: bool) -> None:
        """Together: computes advantages and targets. moments: of targets, which they take in.

        is_evaluated: log-probabilities and values are there; otherwise they are computed first.
        """
        if not is_evaluated:
            self._evaluate_all(evaluate)
        scale = moments.scale()
        following = evaluate(self.observations[-1:], self.memory[-1], self.starts[-1:]).values
        next_values = torch.cat((self.values[1:], following))
        terminations, truncations = self._ends(evaluate, next_values)
        self.advantages, targets = generalized_advantages(
            self.rewards,
            scale.restore(self.values),
            scale.restore(next_values),
            terminations,
            truncations,
            gamma=self._config.ppo.gamma,
            gae_lambda=self._config.ppo.gae_lambda,
        )
        self.explained_variance = explained_variance(self.advantages, targets, self._ranks)
        moments.update(targets, self._ranks)
        moments.scale().normalize(targets, self.targets)

    def _evaluate_all(self, evaluate: Evaluate) -> None:
        """A few agents at a time, each with all its steps."""
        size = max(1, EVALUATED_STEPS // self.num_steps)
        for begin in range(0, self.values.shape[1], size):
            part = slice(begin, begin + size)
            outputs = evaluate(self.observations[:-1, part], self.memory[0, part], self.starts[:-1, part])
            log_probabilities, _ = multi_discrete_evaluate(
                outputs.logits.flatten(0, 1), self.actions[:, part].flatten(0, 1), ACTIONS
            )
            self.log_probabilities[:, part] = log_probabilities.unflatten(0, (self.num_steps, -1))
            self.values[:, part] = outputs.values

    def _ends(self, evaluate: Evaluate, next_values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Terminations and truncations. Where an episode was cut off, writes what its final observation is worth."""
        if not len(self.final_observations):
            return self.ended, torch.zeros_like(self.ended)
        truncations = self.ended & ~self.terminations
        steps, rows = truncations.nonzero(as_tuple=True)
        if len(steps):
            finals, memory = self.final_observations[steps, rows], self.memory[steps + 1, rows]
            goes_on = torch.zeros_like(steps, dtype=torch.bool)
            next_values[steps, rows] = evaluate(finals[None], memory, goes_on[None]).values[0]
        return self.terminations, truncations

    # ---- Learning from it

    def sequences(self) -> dict[str, torch.Tensor]:
        """The data as sequences of L = `chunk_length` steps, [L, T / L * R, ...]; "memory", [1, ...], before them."""
        length = self._config.chunk_length
        names = ["observations", "starts", "actions", "log_probabilities", "advantages", "targets"]
        if self._config.ppo.clip_value_loss:
            names.append("values")
        by_step = {name: getattr(self, name)[: self.num_steps] for name in names}
        data = {
            name: tensor.unflatten(0, (-1, length)).transpose(0, 1).flatten(1, 2) for name, tensor in by_step.items()
        }
        data["memory"] = self.memory[: self.num_steps : length].flatten(0, 1)[None]
        return data


def explained_variance(errors: torch.Tensor, targets: torch.Tensor, ranks: Ranks) -> float:
    """Together: 1 - variance of errors / variance of targets, over all ranks; 0 where all targets are equal."""
    numbers = torch.stack((errors, targets)).double().flatten(1)
    sums = torch.stack((torch.ones_like(numbers).sum(1), numbers.sum(1), numbers.square().sum(1)))
    ranks.sum(sums)
    counts, totals, squares = sums
    of_errors, of_targets = (squares / counts - (totals / counts).square()).tolist()
    return 1 - of_errors / of_targets if of_targets > 0 else 0.0
