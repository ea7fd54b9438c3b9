"""Simulators with numpy views, and scenes that several tests share."""

from typing import Any

import numpy as np
import numpy.typing as npt
from tests.reference import constants as c
from tests.reference.boxes import yaw_quaternion
from tests.reference.levels import num_cubes
from tests.reference.lidar import Boxes
from tests.reference.observations import Situation

import doorstep
from doorstep._golden import random_actions as random_actions  # tests take it from here
from doorstep._golden import start_in_room

Array = npt.NDArray[Any]

FAR = -1000.0  # metres along y; beyond everything that lidar, contacts and buttons can reach

FORWARD, RIGHT, BACK, LEFT = 0, 2, 4, 6
HARD_RIGHT, STRAIGHT, HARD_LEFT = 0, 2, 4

FINAL_OBSERVATIONS = (
    "steps_remaining", "self_observations", "partner_observations", "room_entity_observations", "door_observations",
    "lidar",
)  # fmt: skip
OBSERVATIONS = FINAL_OBSERVATIONS[1:]
FLAGS = ("rewards", "dones", "terminations", "truncations")


class Scene:
    """A simulator and live numpy views of its tensors (`scene.rewards`) and state fields (`scene.body_positions`)."""

    def __init__(self, num_worlds=1, **options):
        self.sim = doorstep.Simulator(num_worlds, **{"num_threads": 1, **options})

    def __getattr__(self, name):
        owner = self.sim if hasattr(type(self.sim), name) or name in self.sim.tensors else self.sim.state
        view = np.asarray(getattr(owner, name))
        setattr(self, name, view)
        return view

    @property
    def agents(self):
        return slice(0, self.sim.num_agents)

    @property
    def cubes(self):
        return slice(self.sim.num_agents, self.sim.num_agents + num_cubes(self.sim.num_agents))

    @property
    def doors(self):
        """Positions of the door panels, [N, D, 3]."""
        return np.take_along_axis(self.static_positions, self.door_static[..., None], axis=1)

    def act(self, *values, agents=slice(None), worlds=slice(None)):
        """Sets (move amount, move angle, turn, grab) of the chosen agents; every other action becomes idle."""
        self.actions[:] = c.IDLE
        self.actions[worlds, agents] = values or c.IDLE
        return self

    def step(self, times=1):
        for _ in range(times):
            self.sim.step()
        return self

    def snapshot(self, *names):
        return {name: getattr(self, name).copy() for name in names}

    def place(self, body, x, y, z=0.0, yaw=0.0, worlds=slice(None)):
        """Places a body, upright and at rest."""
        position = np.stack(np.broadcast_arrays(*map(np.asarray, (x, y, z))), axis=-1)
        self.body_positions[worlds, body] = position
        self.body_rotations[worlds, body] = yaw_quaternion(yaw)
        self.body_linear_velocities[worlds, body] = 0
        self.body_angular_velocities[worlds, body] = 0

    def place_cube(self, cube, x, y, z=c.CUBE_SIDE / 2, yaw=0.0):
        """Places the cube with this number; returns its body index."""
        body = self.sim.num_agents + cube
        self.place(body, x, y, z, yaw)
        return body

    def remove_statics(self):
        """Moves walls, doors and buttons out of reach, far behind."""
        self.static_positions[:, :, 1] = FAR
        self.button_positions[:, :, 1] = 2 * FAR

    def open_floor(self):
        """An empty plane: everything but agent 0 is moved out of reach; agent 0 stands at the origin, facing +y."""
        self.remove_statics()
        for body in range(1, self.body_kinds.shape[1]):
            self.place(body, 40.0 * body, 0.5 * FAR, c.CUBE_SIDE / 2 if body >= self.sim.num_agents else 0.0)
        self.place(0, 0.0, 0.0)
        return self

    def place_wall(self, position, size, worlds=slice(None)):
        """Places the first wall."""
        wall = int(np.flatnonzero(self.static_kinds[0] == c.WALL)[0])
        self.static_positions[worlds, wall], self.static_sizes[worlds, wall] = position, size
        return wall

    def situation(self, terms=None):
        agents, double = self.agents, np.float64
        return Situation(
            agent_positions=self.body_positions[:, agents].astype(double),
            agent_rotations=self.body_rotations[:, agents].astype(double),
            agent_max_y=self.agent_max_y.astype(double),
            agent_grabs=self.agent_grabs.astype(np.int64),
            cube_positions=self.body_positions[:, self.sim.num_agents :].astype(double),
            button_positions=self.button_positions.astype(double),
            door_positions=self.doors.astype(double),
            door_open=self.door_open.astype(np.int64),
            terms=terms,
        )

    def body_centres(self):
        """Geometric centres of the bodies, [N, B, 3]; an agent's position is its bottom centre."""
        centres = self.body_positions.astype(np.float64)
        centres[:, self.agents, 2] += c.AGENT_SIDE / 2
        return centres

    def static_centres(self):
        centres = self.static_positions.astype(np.float64)
        centres[:, :, 2] += self.static_sizes[:, :, 2] / 2
        return centres

    def boxes(self):
        """Everything solid: bodies, then statics."""
        upright = np.zeros((*self.static_kinds.shape, 4))
        upright[..., 0] = 1
        return Boxes(
            centres=np.concatenate([self.body_centres(), self.static_centres()], axis=1),
            rotations=np.concatenate([self.body_rotations.astype(np.float64), upright], axis=1),
            sizes=np.concatenate([self.body_sizes, self.static_sizes], axis=1).astype(np.float64),
            kinds=np.concatenate([self.body_kinds, self.static_kinds], axis=1).astype(np.int64),
        )

    def start_in_room(self, room):
        """Shifts newly spawned agents to the same position in another room, as if they had moved there."""
        start_in_room(self.sim, room)


def played(table, *scenes):
    """Plays the same actions in scenes or simulators, and yields those of each step after it."""
    for actions in table:
        for one in scenes:
            one.actions[:] = actions
            one.step()
        yield actions


def steps(times, *scenes):
    """Steps scenes or simulators in turn."""
    for _ in range(times):
        for one in scenes:
            one.step()


def play(table, *scenes):
    for _ in played(table, *scenes):
        pass


def random_state(scene, seed):
    """Moves every body, wall, door and button of every world to random places that no episode would give."""
    generator = np.random.default_rng(seed)
    count, bodies, _ = scene.body_positions.shape
    agents, statics = scene.sim.num_agents, scene.static_positions.shape[1]
    scene.body_positions[..., :2] = generator.uniform((-9.5, 0.0), (9.5, 45.0), (count, bodies, 2))
    scene.body_positions[:, :agents, 2] = generator.choice([0.0, 0.3], (count, agents))
    scene.body_positions[:, agents:, 2] = generator.uniform(0.5, 3.0, (count, bodies - agents))
    scene.body_rotations[:, :agents] = yaw_quaternion(generator.uniform(-np.pi, np.pi, (count, agents)))
    tilt = generator.normal(size=(count, bodies - agents, 4))
    scene.body_rotations[:, agents:] = tilt / np.linalg.norm(tilt, axis=-1, keepdims=True)
    scene.static_positions[..., :2] = generator.uniform((-15.0, -5.0), (15.0, 50.0), (count, statics, 2))
    scene.static_positions[..., 2] = generator.choice([1.2, 0.0, -1.2, -3.6, -4.8], (count, statics))
    scene.static_sizes[:] = generator.uniform(0.5, 12.0, (count, statics, 3))
    scene.button_positions[..., :2] = generator.uniform((-9.0, 0.0), (9.0, 40.0), (*scene.button_pressed.shape, 2))
    scene.door_open[:] = generator.integers(0, 2, scene.door_open.shape)
    scene.agent_max_y[:] = generator.uniform(0, 80, scene.agent_max_y.shape)
    scene.agent_grabs[:] = generator.choice([-1, agents], scene.agent_grabs.shape)
