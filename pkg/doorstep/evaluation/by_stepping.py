"""Plays episodes of policies that read tensors or the state, by stepping a simulator.

Every episode begins in its own way, from its seed, and is counted once. A world whose episode has ended begins the next
seed's; after the last one it stands still. So the episodes that are counted are fixed beforehand: to count those that
end first would favour short ones.
"""

from __future__ import annotations

import itertools
from typing import final

import numpy as np
from numpy.typing import NDArray

from doorstep.config import SimulatorConfig
from doorstep.evaluation.arenas import Arena
from doorstep.evaluation.contestants import Contestant
from doorstep.evaluation.episodes import Ended, Episodes
from doorstep.planner.reader import field_copier
from doorstep.policy.loading import observed_by
from doorstep.policy.playing import Player
from doorstep.simulator import Simulator

_NONE = -1  # the episode of a world that has none
# Planning takes as long in many worlds at once as in one after the other; few worlds wait less for the last one.
_MOST_PLANNED_WORLDS = 16


def play_by_stepping(
    config: SimulatorConfig, contestant: Contestant, arena: Arena, seeds: NDArray[np.int64], ended: Ended
) -> Episodes:
    """An episode of each seed.

    Raises:
        ArgumentError: the policy returned something else than actions. What it raises comes out unchanged.
    """
    with _simulator(config, contestant, arena, len(seeds)) as sim:
        worlds = _Worlds(sim, seeds)
        player = Player(contestant.policy, sim, contestant.name)
        worlds.begin(np.arange(sim.num_worlds))
        while worlds.are_playing:
            player.act()
            sim.step()
            over = worlds.collect()
            ended(len(over))
            player.forget(worlds.begin(over))
        return worlds.played


def _simulator(config: SimulatorConfig, contestant: Contestant, arena: Arena, episodes: int) -> Simulator:
    most = config.num_worlds
    if observed_by(contestant.policy) == "simulator":
        most = min(most, _MOST_PLANNED_WORLDS)
    observations = contestant.observations_in(config)
    played = config.replace(
        num_worlds=min(most, episodes), auto_reset=False, observations=observations, max_levels=0
    )
    return Simulator.from_config(played, levels="reference" if arena.level is None else arena.level)


@final
class _Worlds:
    """Which episode each world plays, and what has been played."""

    def __init__(self, sim: Simulator, seeds: NDArray[np.int64]) -> None:
        self._sim, self._seeds = sim, seeds
        self._waiting = iter(range(len(seeds)))
        self._episodes = np.full(sim.num_worlds, _NONE)
        self._max_y = field_copier(sim, "agent_max_y")
        self.played = Episodes.room_for(len(seeds), sim.num_agents)

    @property
    def are_playing(self) -> bool:
        return bool((self._episodes != _NONE).any())

    def begin(self, worlds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Begins the next episodes in these worlds, as far as there are any; returns in which."""
        episodes = list(itertools.islice(self._waiting, len(worlds)))
        chosen = worlds[: len(episodes)]
        if episodes:
            self._episodes[chosen] = episodes
            self._sim._begin(chosen, self._seeds[episodes])
        return chosen

    def collect(self) -> NDArray[np.int64]:
        """Notes the episodes that the last step has ended; returns their worlds, which then play none."""
        is_over = self._sim.dones.copy_to_host()[:, 0, 0] != 0
        over = np.flatnonzero(is_over & (self._episodes != _NONE))
        if len(over):
            self._note(over, self._episodes[over])
            self._episodes[over] = _NONE
        return over

    def _note(self, worlds: NDArray[np.int64], episodes: NDArray[np.int64]) -> None:
        sim, played = self._sim, self.played
        played.returns[episodes] = sim.episode_returns.copy_to_host()[worlds, :, 0]
        played.max_y[episodes] = self._max_y()[worlds]
        played.lengths[episodes] = sim.episode_lengths.copy_to_host().reshape(sim.num_worlds)[worlds]
        played.reached_goal[episodes] = sim.terminations.copy_to_host()[worlds, 0, 0] != 0
