"""Places agents among the cubes: `--start rooms` of the commands.

Steps where agents push cubes take longest. Random actions seldom move an agent out of the first room, so agents are
moved after each reset: in even worlds into the second room, in odd ones into the third.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep import ArgumentError, EntityKind, Simulator
from doorstep.cli.random_actions import random_uniform

_LEFT, _RIGHT = -8.0, 8.0
_FROM_ROOM_START, _TO_ROOM_START = 1.6, 10.6
_LARGEST_YAW = math.pi / 4
_ATTEMPTS = 1000

Array = NDArray[Any]


class RoomsStart:
    """Moves all agents of given worlds to random free places, through `sim.state`.

    The places are a function of (seed, global world, episode index) alone. With another `start` than "rooms",
    `before_steps()` and `after_step()` move none.
    """

    def __init__(self, sim: Simulator, start: str = "rooms") -> None:
        self._sim = sim
        self._state: dict[str, Array] = {}
        self.moves_agents = start == "rooms"

    def before_steps(self) -> None:
        """Moves the agents of all worlds."""
        if self.moves_agents:
            self.place(np.arange(self._sim.num_worlds))

    def after_step(self) -> bool:
        """Moves the agents of the worlds that a step has reset; whether there were any."""
        if not self.moves_agents:
            return False
        reset = np.flatnonzero(self._sim.dones.copy_to_host().any(axis=(1, 2)))
        self.place(reset)
        return bool(reset.size)

    def place(self, worlds: Array) -> None:
        """Moves the agents of these worlds, which have just been reset, and refreshes the observations."""
        if not len(worlds):
            return
        self._read()
        state = {name: view[worlds] for name, view in self._state.items()}
        centres, halves, yaws, solid = _obstacles(state)
        room_starts = self._room_starts(worlds, state)
        for agent in range(self._sim.num_agents):
            pose = self._free_poses(worlds, agent, state, room_starts, (centres, halves, yaws, solid))
            centres[:, agent], yaws[:, agent], solid[:, agent] = pose[:, :2], pose[:, 2], True
            self._move(worlds, agent, pose)
        self._write()
        self._sim.refresh()

    def _read(self) -> None:
        """On the CPU the state itself; from a GPU, copies."""
        for name in _FIELDS:
            field = getattr(self._sim.state, name)
            self._state[name] = field.to_numpy() if field.device == "cpu" else field.copy_to_host()

    def _write(self) -> None:
        for name in _MOVED_FIELDS:
            field = getattr(self._sim.state, name)
            if field.device != "cpu":
                field.copy_from_host(self._state[name])

    def _room_starts(self, worlds: Array, state: dict[str, Array]) -> Array:
        """y of the far side of the door that leads into each world's room."""
        door_before = (self._sim.world_offset + worlds) % 2
        rows = np.arange(len(worlds))
        slot = state["door_static"][rows, door_before]
        starts: Array = state["static_positions"][rows, slot, 1] + state["static_sizes"][rows, slot, 1] / 2
        return starts

    def _free_poses(
        self, worlds: Array, agent: int, state: dict[str, Array], room_starts: Array, boxes: tuple[Array, ...]
    ) -> Array:
        """x, y, yaw per world: the first of a sequence of random poses that overlaps no box."""
        half = state["body_sizes"][:, agent, :2] / 2
        poses = np.empty((len(worlds), 3), np.float32)
        pending: Array = np.arange(len(worlds))
        for attempt in range(_ATTEMPTS):
            counters = (
                self._sim.seed,
                self._sim.world_offset + worlds[pending],
                state["episode_index"][pending],
                agent,
                attempt,
            )
            poses[pending, 0] = random_uniform(_LEFT, _RIGHT, *counters, 0)
            poses[pending, 1] = room_starts[pending] + random_uniform(_FROM_ROOM_START, _TO_ROOM_START, *counters, 1)
            poses[pending, 2] = random_uniform(-_LARGEST_YAW, _LARGEST_YAW, *counters, 2)
            overlapping = _overlap(poses[pending], half[pending], *(box[pending] for box in boxes)).any(axis=1)
            pending = pending[overlapping]
            if not len(pending):
                return poses
        raise ArgumentError(
            f"No free place was found for agent {agent} of world {worlds[pending[0]]}.",
            argument="num_agents",
            hint="Use fewer agents.",
        )

    def _move(self, worlds: Array, agent: int, poses: Array) -> None:
        x, y, yaw = poses.T
        zero = np.zeros_like(x)
        state = self._state
        state["body_positions"][worlds, agent] = np.stack([x, y, zero], axis=1)
        state["body_rotations"][worlds, agent] = np.stack([np.cos(yaw / 2), zero, zero, np.sin(yaw / 2)], axis=1)
        state["body_linear_velocities"][worlds, agent] = 0
        state["body_angular_velocities"][worlds, agent] = 0
        state["agent_grabs"][worlds, agent] = -1
        state["agent_max_y"][worlds, agent] = y


_MOVED_FIELDS = (
    "body_positions",
    "body_rotations",
    "body_linear_velocities",
    "body_angular_velocities",
    "agent_grabs",
    "agent_max_y",
)
_FIELDS = (
    *_MOVED_FIELDS,
    "body_sizes",
    "body_kinds",
    "static_positions",
    "static_sizes",
    "static_kinds",
    "door_static",
    "episode_index",
)


def _obstacles(state: dict[str, Array]) -> tuple[Array, Array, Array, Array]:
    """Bodies, then statics, seen from above: centres, half extents, yaws, and whether they are obstacles.

    Agents become obstacles when they have been placed. After a reset cubes lie flat, so yaw is their whole rotation.
    """
    rotations = state["body_rotations"]
    centres = np.concatenate([state["body_positions"], state["static_positions"]], axis=1)[:, :, :2]
    halves = np.concatenate([state["body_sizes"], state["static_sizes"]], axis=1)[:, :, :2] / 2
    body_yaws = 2 * np.arctan2(rotations[..., 3], rotations[..., 0])
    yaws = np.concatenate([body_yaws, np.zeros(state["static_kinds"].shape, np.float32)], axis=1)
    kinds = np.concatenate([state["body_kinds"], state["static_kinds"]], axis=1)
    return centres, halves, yaws, (kinds != EntityKind.NONE) & (kinds != EntityKind.AGENT)


def _overlap(poses: Array, half: Array, centres: Array, halves: Array, yaws: Array, solid: Array) -> Array:
    """Whether the rectangle of each world overlaps each of its boxes: separating axes of two rectangles.

    poses [M, 3], half [M, 2]; the boxes [M, K, ...]. Returns [M, K].
    """
    offset = centres - poses[:, None, :2]
    yaw = poses[:, 2:]
    cos, sin = np.abs(np.cos(yaws - yaw)), np.abs(np.sin(yaws - yaw))
    first = half[:, None, :]
    apart = ~solid
    for own, other, turn in ((first, halves, yaw), (halves, first, yaws)):
        along = np.abs(offset[..., 0] * np.cos(turn) + offset[..., 1] * np.sin(turn))
        across = np.abs(offset[..., 1] * np.cos(turn) - offset[..., 0] * np.sin(turn))
        apart |= along >= own[..., 0] + other[..., 0] * cos + other[..., 1] * sin
        apart |= across >= own[..., 1] + other[..., 0] * sin + other[..., 1] * cos
    return ~apart
