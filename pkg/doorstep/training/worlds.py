"""The worlds that a run trains in: what agents observe, as rows, and what their steps yield."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
import torch

from doorstep._native import NEUTRAL_ACTION
from doorstep.config import SimulatorConfig
from doorstep.levels import AnyLevel, GeneratedLevel, reference
from doorstep.simulator import Simulator
from doorstep.training.normalization import Scale

LARGEST_Y = 5  # in self_observations
LEVEL_LENGTH = 40.0  # metres, by which self_observations are divided
# Agents soon reach the last room, or meet its task in the first one, where they start.
PRACTICE = (
    GeneratedLevel(room_types=("single_button", "single_button", "cube_buttons")),
    GeneratedLevel(room_types=("cube_buttons", "cube_buttons", "cube_buttons")),
)
DEPTH_RANGE = 40.0  # metres; what is farther counts as this far


@final
class Worlds:
    """A simulator whose tensors have a row for every agent: R = N * A rows.

    levels: that worlds draw from; none: they play the reference's.
    practice: without levels, share of the worlds, the last ones, that play PRACTICE instead of the reference's.

    Attributes:
        sim: the simulator.
        num_rows: R.
        num_levels: L; 0 without levels.
        num_reference_rows: of the worlds that do not practise; all rows, if there is no such world.
        shape: of an agent's observation: (F,), or (H, W, 4) of red, green, blue and depth.
        dtype: of observations: float32, or uint8 for pixels.
    """

    def __init__(self, config: SimulatorConfig, levels: Sequence[AnyLevel] = (), practice: float = 0.0) -> None:
        self.num_rows = config.num_worlds * config.num_agents
        num_practice = 0 if levels else round(practice * config.num_worlds)
        self.num_reference_rows = (config.num_worlds - num_practice) * config.num_agents or self.num_rows
        self.sim = sim = make_simulator(config, levels, num_practice)
        self.num_levels = len(levels)
        self._levels = sim.levels.to_torch() if levels else None
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
        """Writes the level that each world plays: int64 [N]; without levels there is nothing to write, [0]."""
        if self._levels is not None:
            levels.copy_(self._levels.squeeze(-1))

    def step(self, actions: torch.Tensor) -> None:
        """Steps every world once with actions int32 [R, 4]."""
        self._read["actions"].copy_(actions)
        self.sim.step()

    def read_rewards(self, rewards: torch.Tensor, dones: torch.Tensor, terminations: torch.Tensor) -> None:
        """Writes what the step yielded: float32 [R], bool [R], bool [R]."""
        rewards.copy_(self._read["rewards"].squeeze(-1))
        dones.copy_(self._flags["dones"])
        terminations.copy_(self._flags["terminations"])

    def read_episodes(self, returns: torch.Tensor, largest_y: torch.Tensor) -> None:
        """Writes the return and the largest y of each row's latest ended episode: float32 [R], in metres."""
        returns.copy_(self._read["episode_returns"].squeeze(-1))
        torch.mul(self._read["final_self_observations"][:, LARGEST_Y], LEVEL_LENGTH, out=largest_y)

    def stagger(self) -> None:
        """Steps idle agents through an episode while worlds begin new ones in turn, so that their ends are spread."""
        sim = self.sim
        length, num_worlds = sim.episode_length, sim.num_worlds
        begins_at = np.arange(num_worlds) * length // num_worlds
        idle = torch.tensor(NEUTRAL_ACTION, dtype=torch.int32, device=self.device).expand(self.num_rows, -1)
        for step in range(length):
            sim.resets = (begins_at == step)[:, None]
            self.step(idle)


def make_simulator(config: SimulatorConfig, levels: Sequence[AnyLevel], num_practice: int) -> Simulator:
    """The simulator of a config; its last worlds play PRACTICE. What a world may play is equally likely."""
    practises = np.arange(config.num_worlds)[:, None] >= config.num_worlds - num_practice
    if num_practice:
        levels = (reference(), *PRACTICE)
    if not levels:
        return Simulator.from_config(config)
    sim = Simulator.from_config(config.replace(max_levels=len(levels)))
    sim.set_levels(levels)
    if num_practice:
        sim.level_weights = np.hstack((~practises, *[practises] * len(PRACTICE))).astype(np.float32)
    sim.reset()
    return sim


def write(numbers: torch.Tensor, scale: Scale | None, out: torch.Tensor) -> None:
    """Copies, normalised if there is a scale."""
    if scale is None:
        out.copy_(numbers)
    else:
        scale.normalize(numbers, out)
