"""The same worlds twice, on the CPU and on a GPU, to be compared."""

import functools
from dataclasses import replace

import numpy as np
from tests.cuda.differences import Moment, differing_worlds, explain, step
from tests.render.level_worlds import full_level
from tests.scenes import random_actions

import doorstep
from doorstep import levels


class Twins:
    """A simulator on the CPU, with one thread if not told otherwise, and one on the GPU, fed with the same actions."""

    def __init__(self, num_worlds, device="cuda", *, stream=None, num_threads=1, **options):
        self.cpu = doorstep.Simulator(num_worlds, num_threads=num_threads, **options)
        self.gpu = doorstep.Simulator(num_worlds, device=device, stream=stream, **options)
        self._agree()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sim in self:
            sim.close()

    def __iter__(self):
        return iter(self.both())

    def both(self):
        return self.cpu, self.gpu

    def step(self, actions):
        """One step with these actions."""
        self._step(actions.copy)

    def step_randomly(self, steps, seed=1):
        """As many steps with random actions."""
        for number in range(steps):
            self._step(functools.partial(self._random_actions, seed << 32 | number))

    def play(self, steps, seed=1):
        """The same; then all must be the same."""
        self.step_randomly(steps, seed)
        self.assert_same()

    def _random_actions(self, seed):
        return random_actions(seed, 1, self.cpu.num_worlds, self.cpu.num_agents)[0]

    def _step(self, draw):
        actions = draw()
        self._since.append(draw)
        for sim in self.both():
            step(sim, actions)

    def assert_same_worlds(self):
        self._assert((self.gpu.world_hashes() == self.cpu.world_hashes()).all())

    def assert_same(self):
        """The same worlds, tensors and health, bit for bit."""
        self._assert(not differing_worlds(self.cpu, self.gpu).size)
        assert self.gpu.health == self.cpu.health

    def _assert(self, same):
        if not same:
            raise AssertionError(explain(self.cpu, self.gpu, self._agreed, self._since))
        self._agree()

    def _agree(self):
        self._agreed = Moment.of(self.cpu)
        self._since = []  # what draws the actions of the steps after it


def some_levels(num_agents):
    """All kinds of levels."""
    physics = levels.Physics(friction=(0.5, 1.5))
    return [
        levels.reference(),
        levels.GeneratedLevel(room_types=("any", "any", "any"), physics=physics, episode_length=(5, 30)),
        levels.GeneratedLevel(first_room=2, cubes_near_buttons=0.75, episode_length=(5, 30)),
        *(level for level in levels.curated().values() if len(level.spawns) >= num_agents),
        crowd(num_agents),
    ]


def play_levels(num_worlds, *, num_threads=1, **options):
    """Twins that play all kinds of levels, with weights that change between the steps."""
    table = some_levels(options["num_agents"])
    with Twins(num_worlds, num_threads=num_threads, max_levels=len(table), **options) as twins:
        for sim in twins.both():
            sim.set_levels(table)
            sim.reset()
        twins.assert_same()
        for seed in range(3):
            twins.play(12, seed=seed)
            weights = np.random.default_rng(seed).random((num_worlds, len(table)), np.float32)
            for sim in twins.both():
                sim.level_weights.copy_from_host(weights)
                sim.reset(np.arange(0, num_worlds, 2))
            twins.assert_same()


def crowd(num_agents):
    """As many of everything as there can be, and a goal that pushing agents reach."""
    return replace(
        full_level(num_agents),
        rooms=[levels.Room(8 * i, 8 * i + 8, i) for i in range(8)],
        goal=levels.Goal(min_x=-40, max_x=40, min_y=6, max_y=60, agents="any"),
        rewards=levels.Rewards(room=0.5, goal=3),
        physics=levels.Physics(cube_mass=(5, 30), walking_force=(500, 1500), turning_torque=(100, 500), door_speed=9),
    )


# Of simulators of eight worlds with two agents.
METHODS = {
    "step": lambda sim: sim.step(),
    "step_async": lambda sim: sim.step_async().wait(),
    "reset": lambda sim: sim.reset(),
    "reset of slots": lambda sim: sim.reset([1, 3]),
    "reset by mask": lambda sim: sim.reset(np.arange(8) % 2 == 0),
    "refresh": lambda sim: sim.refresh(),
    "save": lambda sim: sim.save(),
    "save of slots": lambda sim: sim.save([2, 5]),
    "restore": lambda sim: sim.restore(sim.save()),
    "hash": lambda sim: sim.hash(),
    "world_hashes": lambda sim: sim.world_hashes(),
    "wait": lambda sim: sim.wait(),
    "health": lambda sim: sim.health,
    "copy_to_host": lambda sim: sim.lidar.copy_to_host(),
    "copy of a state field": lambda sim: sim.state.body_positions.copy_to_host(),
    "copy_from_host": lambda sim: sim.actions.copy_from_host(np.ones((8, 2, 4), np.int32)),
    "edit of a state field": lambda sim: sim.state.agent_max_y.copy_from_host(np.ones((8, 2), np.float32)),
    "export": lambda sim: sim.rewards.__dlpack__(stream=1),
}
