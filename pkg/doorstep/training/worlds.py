"""The worlds that a run trains in: what agents observe, as rows, and what their steps yield."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import final

import numpy as np
import torch

from doorstep._level_table import REFERENCE
from doorstep._native import NEUTRAL_ACTION
from doorstep._observations import BY_NAME
from doorstep._reward import AppliedReward, RewardFunction
from doorstep.config import SimulatorConfig
from doorstep.errors import StateError
from doorstep.levels import Rewards
from doorstep.levels.files import AnyLevel
from doorstep.simulator import Simulator
from doorstep.training.distributed import Ranks
from doorstep.training.normalization import Scale

LARGEST_Y = 5  # in self_observations
LEVEL_LENGTH = 40.0  # metres, by which self_observations are divided
DEPTH_RANGE = 40.0  # metres; what is farther counts as this far

AfterStep = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]


@final
class Worlds:
    """This rank's share of a run's worlds: a simulator whose tensors have a row for every agent, R = N * A rows.

    levels: that worlds draw from; none: they play the reference's.
    reward: what agents are rewarded for; None: as the levels say. reward_function: gives other rewards, of a step.
    critic_inputs: of an observation, the last numbers, which only the critic sees.

    Attributes:
        sim: the simulator.
        num_rows: R.
        shape: of an agent's observation: (F,), or (H, W, 4) of red, green, blue and depth.
        dtype: of observations: float32, or uint8 for pixels.
        after_step: None, or called after every step of a rollout with what it yielded: rewards, float32 [R], dones and
            terminations, bool [R]. It may change rewards, and restore worlds whose episode is over. Checkpoints do not
            contain its state. On a GPU it needs `experience.cuda_graph=false`.
    """

    def __init__(
        self,
        config: SimulatorConfig,
        ranks: Ranks,
        levels: Sequence[AnyLevel] = (),
        reward: Rewards | None = None,
        reward_function: RewardFunction | None = None,
        critic_inputs: int = 0,
    ) -> None:
        self._config = config
        self._ranks = ranks
        self._choice = tuple(levels)
        self._reward = reward
        self.sim = sim = self._simulator_of(ranks.shard(config))
        self.num_rows = sim.num_worlds * sim.num_agents
        self._levels = sim.level_indices.to_torch() if levels else None
        self._level_weights = sim.level_weights.to_torch() if levels else None
        self.sees_pixels = config.cameras is not None
        read = {name: tensor.to_torch().flatten(0, 1) for name, tensor in sim.tensors.items() if tensor.ndim > 2}
        self._read = read
        self._flags = {name: read[name].squeeze(-1) for name in ("dones", "terminations")}
        self.shape: tuple[int, ...]
        if config.cameras is not None:
            self.shape, self.dtype = (config.cameras.height, config.cameras.width, 4), torch.uint8
        else:
            self.shape, self.dtype = tuple(read["observations"].shape[1:]), torch.float32
        self.device = read["rewards"].device
        self._largest_y = sim.state.agent_max_y.to_torch()
        self._apply: AppliedReward | None = None
        if reward_function is not None:
            views: dict[str, Callable[[], torch.Tensor]] = {n: tensor.to_torch for n, tensor in sim.tensors.items()}
            for name in ("observations", "final_observations") if critic_inputs else ():  # what agents observe
                views[name] = functools.partial(lambda own: own.to_torch()[..., :-critic_inputs], sim.tensors[name])
            self._apply = AppliedReward(reward_function, views)
        self.after_step: AfterStep | None = None

    def _simulator_of(self, config: SimulatorConfig) -> Simulator:
        """A simulator of the run's rules and levels."""
        return Simulator.from_config(config, levels=self._choice or REFERENCE, reward=self._reward)

    def observe(self, out: torch.Tensor, scale: Scale | None = None) -> None:
        """Writes the present observations, [R, *shape], normalised by a scale if there is one."""
        if not self.sees_pixels:
            write(self._read["observations"], scale, out)
            return
        out[..., :3] = self._read["rgb"][..., :3]
        out[..., 3:] = self._read["depth"].clamp(max=DEPTH_RANGE) * (255 / DEPTH_RANGE)

    def observe_final(self, out: torch.Tensor, scale: Scale | None = None) -> None:
        """Writes the last observations of each row's latest ended episode, [R, F], likewise."""
        write(self._read["final_observations"], scale, out)

    def draw_levels(self, weights: torch.Tensor) -> None:
        """Sets how likely worlds draw each level from their next reset on: float32 [L], relative to the sum."""
        assert self._level_weights is not None
        self._level_weights.copy_(weights)

    def read_levels(self, levels: torch.Tensor) -> None:
        """Writes the level that each world plays: int64 [N]; without levels it is 0."""
        if self._levels is not None:
            levels.copy_(self._levels.squeeze(-1))

    def step(self, actions: torch.Tensor) -> None:
        """Steps every world once with actions int32 [R, 4]."""
        self._read["actions"].copy_(actions)
        self.sim.step()

    def read_rewards(self, rewards: torch.Tensor, dones: torch.Tensor, terminations: torch.Tensor) -> None:
        """Writes what the step yielded: float32 [R], bool [R], bool [R]."""
        rewards.copy_(self._read["rewards"].squeeze(-1) if self._apply is None else self._apply().flatten())
        dones.copy_(self._flags["dones"])
        terminations.copy_(self._flags["terminations"])
        if self.after_step is not None:
            self.after_step(rewards, dones, terminations)

    def read_episodes(self, returns: torch.Tensor, largest_y: torch.Tensor) -> None:
        """Writes the return and the largest y of each row's latest ended episode: float32 [R], in metres."""
        returns.copy_(self._read["episode_returns"].squeeze(-1))
        torch.mul(self._read["final_self_observations"][:, LARGEST_Y], LEVEL_LENGTH, out=largest_y)

    def largest_y(self) -> torch.Tensor:
        """The largest y of each agent in the present episode, float32 [N, A], metres."""
        return self._largest_y

    def stagger(self) -> None:
        """Steps idle agents through an episode while worlds begin new ones in turn, so that their ends are spread."""
        sim, total = self.sim, self._config.num_worlds
        length = sim.episode_length
        begins_at = (np.arange(total) * length // total)[self._ranks.rows(total)]
        idle = torch.tensor(NEUTRAL_ACTION, dtype=torch.int32, device=self.device).expand(self.num_rows, -1)
        for step in range(length):
            sim.resets = (begins_at == step)[:, None]
            self.step(idle)

    # ---- Saving

    def save(self) -> torch.Tensor:
        """Together: the saves of all ranks' worlds, uint8 [ranks, bytes]."""
        return self._ranks.gather(torch.frombuffer(bytearray(self.sim.save()), dtype=torch.uint8))

    def restore(self, saves: torch.Tensor) -> None:
        """Restores this rank's worlds from the saves of a run of as many worlds, of any number of ranks.

        Raises:
            StateError: they are damaged, or of other rules. Nothing has changed.
        """
        for slots, data in list(self._own_parts(saves)):
            self.sim.restore(data, slots)

    def _own_parts(self, saves: torch.Tensor) -> Iterator[tuple[np.ndarray, bytes]]:
        """Slots of this rank's worlds, and a save of these worlds."""
        total, own = self._config.num_worlds, self._ranks.rows(self._config.num_worlds)
        if len(saves) == self._ranks.count:
            yield np.arange(own.stop - own.start), saves[self._ranks.rank].numpy().tobytes()
            return
        if not len(saves) or total % len(saves):
            raise StateError(f"{total} worlds cannot have been those of {len(saves)} processes")
        size = total // len(saves)
        config = self._config.replace(num_worlds=size, device="cpu", cameras=None, observations=BY_NAME)
        with self._simulator_of(config) as saved:
            for index in range(own.start // size, -(-own.stop // size)):
                saved.restore(saves[index].numpy().tobytes())
                numbers = np.arange(max(own.start, index * size), min(own.stop, (index + 1) * size))
                yield numbers - own.start, saved.save(numbers - index * size)


def write(numbers: torch.Tensor, scale: Scale | None, out: torch.Tensor) -> None:
    """Copies, normalised if there is a scale."""
    if scale is None:
        out.copy_(numbers)
    else:
        scale.normalize(numbers, out)
