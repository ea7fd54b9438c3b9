"""Agents placed among the cubes: where, facing where, and overlapping nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference.boxes import overlap_depth

import doorstep
from doorstep.cli.rooms_start import RoomsStart

Array = NDArray[np.float64]

WORLDS = 256
ROOM = 40 / 3
ALL = np.arange(WORLDS)


for_agents = pytest.mark.parametrize("num_agents", [1, 2, 5])


@contextmanager
def placed(num_agents: int) -> Iterator[doorstep.Simulator]:
    """A simulator whose agents have all been placed."""
    with doorstep.Simulator(WORLDS, seed=11, num_agents=num_agents, num_threads=1) as sim:
        RoomsStart(sim).place(ALL)
        yield sim


def poses(sim: doorstep.Simulator) -> tuple[Array, Array, Array]:
    """x, y, yaw of the agents, [N, A] each."""
    positions = sim.state.body_positions.to_numpy()[:, : sim.num_agents].astype(np.float64)
    rotations = sim.state.body_rotations.to_numpy()[:, : sim.num_agents].astype(np.float64)
    assert (positions[..., 2] == 0).all()
    assert np.linalg.norm(rotations, axis=2) == pytest.approx(1.0, abs=1e-6)
    return positions[..., 0], positions[..., 1], 2 * np.arctan2(rotations[..., 3], rotations[..., 0])


@for_agents
def test_places_lie_in_the_promised_part_of_the_promised_room(num_agents: int) -> None:
    with placed(num_agents) as sim:
        x, y, yaw = poses(sim)
        room_start = ROOM * (1 + ALL % 2)[:, None]
        assert (np.abs(x) <= 8).all()
        assert (y - room_start >= 1.6 - 1e-4).all()
        assert (y - room_start <= 10.6 + 1e-4).all()
        assert (np.abs(yaw) <= np.pi / 4 + 1e-6).all()


@for_agents
def test_places_spread_over_the_rooms(num_agents: int) -> None:
    with placed(num_agents) as sim:
        x, y, yaw = poses(sim)
        depth = (y - ROOM * (1 + ALL % 2)[:, None]).ravel()
        assert np.ptp(x) > 14
        assert np.ptp(depth) > 8
        assert np.ptp(yaw) > 1.4


@for_agents
def test_agents_overlap_no_cube_no_wall_and_no_other_agent(num_agents: int) -> None:
    with placed(num_agents) as sim:
        state = {name: getattr(sim.state, name).to_numpy() for name in ("body_rotations", "body_kinds", "static_kinds")}
        sizes = np.concatenate([sim.state.body_sizes.to_numpy(), sim.state.static_sizes.to_numpy()], axis=1)
        centres = np.concatenate([sim.state.body_positions.to_numpy(), sim.state.static_positions.to_numpy()], axis=1)
        upright = np.tile(np.array([1, 0, 0, 0], np.float32), (*state["static_kinds"].shape, 1))
        rotations = np.concatenate([state["body_rotations"], upright], axis=1)
        kinds = np.concatenate([state["body_kinds"], state["static_kinds"]], axis=1)
        standing = kinds != doorstep.EntityKind.CUBE  # positions of all others are those of their bottoms
        centres[standing, 2] += sizes[standing, 2] / 2
        boxes = np.arange(kinds.shape[1])
        for agent in range(sim.num_agents):
            own = (centres[:, agent, None], rotations[:, agent, None], sizes[:, agent, None])
            depth = overlap_depth(*own, centres, rotations, sizes)
            assert depth[(kinds != 0) & (boxes != agent)].max() < 1e-4


@for_agents
def test_agents_start_at_rest_with_their_progress_set(num_agents: int) -> None:
    with doorstep.Simulator(WORLDS, num_agents=num_agents, num_threads=1) as sim:
        state, agents = sim.state, slice(0, num_agents)
        state.body_linear_velocities.to_numpy()[:] = 3
        state.body_angular_velocities.to_numpy()[:] = 3
        RoomsStart(sim).place(ALL)
        assert (state.body_linear_velocities.to_numpy()[:, agents] == 0).all()
        assert (state.body_angular_velocities.to_numpy()[:, agents] == 0).all()
        assert (state.agent_grabs.to_numpy() == -1).all()
        assert (state.agent_max_y.to_numpy() == state.body_positions.to_numpy()[:, agents, 1]).all()


@for_agents
def test_observations_show_the_new_places(num_agents: int) -> None:
    with placed(num_agents) as sim:
        x, y, yaw = poses(sim)
        seen = sim.self_observations.to_numpy()
        assert seen[..., 2] * 40 == pytest.approx(x, abs=1e-4)
        assert seen[..., 3] * 40 == pytest.approx(y, abs=1e-4)
        assert seen[..., 6] * np.pi == pytest.approx(yaw, abs=1e-4)


def test_a_place_depends_on_seed_world_and_episode_alone() -> None:
    with (
        doorstep.Simulator(8, seed=3, num_threads=1) as whole,
        doorstep.Simulator(4, seed=3, num_threads=1, world_offset=4) as shard,
    ):
        RoomsStart(whole).place(np.arange(8))
        start = RoomsStart(shard)
        start.place(np.array([2, 0]))
        start.place(np.array([1, 3]))
        for ours, theirs in zip(poses(whole), poses(shard), strict=True):
            assert (ours[4:] == theirs).all()
        assert whole.hash([4, 5, 6, 7]) == shard.hash()
        shard.reset()
        start.place(np.arange(4))
        assert (poses(whole)[0][4:] != poses(shard)[0]).all()


def test_other_worlds_stay_as_they_are() -> None:
    with doorstep.Simulator(6, num_threads=1) as sim:
        before = sim.world_hashes()
        RoomsStart(sim).place(np.array([1, 4]))
        changed = before != sim.world_hashes()
    assert changed.tolist() == [False, True, False, False, True, False]


def test_placed_agents_move_no_cube_until_they_act() -> None:
    """Overlapping bodies would push each other apart in the first steps."""
    with doorstep.Simulator(WORLDS, seed=2, num_threads=1) as sim:
        RoomsStart(sim).place(ALL)
        positions = sim.state.body_positions.to_numpy()
        before = positions[:, :, :2].copy()
        for _ in range(5):
            sim.step()
        assert np.abs(positions[:, :, :2] - before).max() < 0.01
