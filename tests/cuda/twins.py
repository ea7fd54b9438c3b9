"""The same worlds twice, on the CPU and on a GPU, to be compared."""

from __future__ import annotations

import functools
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.cuda.differences import Drawn, Moment, differing_worlds, explain, step
from tests.scenes import random_actions

import doorstep
from doorstep import levels
from doorstep.levels.files import AnyLevel


class Twins:
    """A simulator on the CPU, with one thread if not told otherwise, and one on the GPU, fed with the same actions."""

    def __init__(self, num_worlds: int, device: str = "cuda", *, num_threads: int | None = 1, **options: Any) -> None:
        self.cpu = doorstep.Simulator(num_worlds, num_threads=num_threads, **options)
        self.gpu = doorstep.Simulator(num_worlds, device=device, **options)
        self._agree()

    def __enter__(self) -> Twins:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cpu.close()
        self.gpu.close()

    def both(self) -> tuple[doorstep.Simulator, doorstep.Simulator]:
        return self.cpu, self.gpu

    def step(self, actions: npt.NDArray[np.int32]) -> None:
        """One step with these actions."""
        self._step(actions.copy)

    def step_randomly(self, steps: int, seed: int = 1) -> None:
        """As many steps with random actions."""
        for number in range(steps):
            self._step(functools.partial(self._random_actions, seed << 32 | number))

    def _random_actions(self, seed: int) -> npt.NDArray[np.int32]:
        drawn: npt.NDArray[np.int32] = random_actions(seed, 1, self.cpu.num_worlds, self.cpu.num_agents)[0]
        return drawn

    def _step(self, draw: Drawn) -> None:
        actions = draw()
        self._since.append(draw)
        for sim in self.both():
            step(sim, actions)

    def assert_same_worlds(self) -> None:
        self._assert((self.gpu.world_hashes() == self.cpu.world_hashes()).all())

    def assert_same(self) -> None:
        """The same worlds, tensors and health, bit for bit."""
        self._assert(not differing_worlds(self.cpu, self.gpu).size)
        assert self.gpu.health == self.cpu.health

    def _assert(self, same: bool | np.bool_) -> None:
        if not same:
            raise AssertionError(explain(self.cpu, self.gpu, self._agreed, self._since))
        self._agree()

    def _agree(self) -> None:
        self._agreed = Moment.of(self.cpu)
        self._since: list[Drawn] = []  # the actions of the steps after it


def some_levels(num_agents: int) -> list[AnyLevel]:
    """All kinds of levels."""
    return [
        levels.reference(),
        levels.GeneratedLevel(
            room_types=("any", "any", "any"), physics=levels.Physics(friction=(0.5, 1.5)), episode_length=(5, 30)
        ),
        levels.GeneratedLevel(first_room=2, cubes_near_buttons=0.75, episode_length=(5, 30)),
        *(level for level in levels.curated().values() if len(level.spawns) >= num_agents),
        _crowd(num_agents),
    ]


def play_levels(num_worlds: int, *, num_threads: int | None = 1, **options: Any) -> None:
    """Twins that play all kinds of levels, with weights that change between the steps."""
    table = some_levels(options["num_agents"])
    with Twins(num_worlds, num_threads=num_threads, max_levels=len(table), **options) as twins:
        for sim in twins.both():
            sim.set_levels(table)
            sim.reset()
        twins.assert_same()
        for seed in range(3):
            twins.step_randomly(30, seed=seed)
            twins.assert_same()
            weights = np.random.default_rng(seed).random((num_worlds, len(table)), np.float32)
            for sim in twins.both():
                sim.level_weights.copy_from_host(weights)
                sim.reset(np.arange(0, num_worlds, 2))
            twins.assert_same()


def _crowd(num_agents: int) -> levels.Level:
    """As many of everything as there can be, and a goal that pushing agents reach."""
    return levels.Level(
        walls=[levels.Wall(4 * i - 46, 70, 3, 1) for i in range(24)],
        doors=[levels.Door(8 * i - 28, 60, 4, persistent=i % 2 == 0) for i in range(8)],
        buttons=[levels.Button(4 * i - 22, 50, i % 8) for i in range(12)],
        cubes=[levels.Cube(5 * (i % 6) - 12.5, 10 + 5 * (i // 6), 0.1 * i) for i in range(24)],
        spawns=[levels.Spawn((4 * i - 14.4, 4 * i - 13.6), (0, 1), (-0.3, 0.3)) for i in range(num_agents)],
        rooms=[levels.Room(8 * i, 8 * i + 8, i) for i in range(8)],
        goal=levels.Goal(min_x=-40, max_x=40, min_y=6, max_y=60, agents="any"),
        rewards=levels.Rewards(room=0.5, goal=3),
        physics=levels.Physics(cube_mass=(5, 30), walking_force=(500, 1500), turning_torque=(100, 500), door_speed=9),
    )
