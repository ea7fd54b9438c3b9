"""Agents placed among the cubes: where, facing where, and overlapping nothing."""

import numpy as np
import pytest
from tests.reference.boxes import overlap_depth

import doorstep
from doorstep.cli.rooms_start import RoomsStart

WORLDS = 256
ROOM = 40 / 3
ALL = np.arange(WORLDS)


def poses(sim):
    """x, y, yaw of the agents, [N, A] each."""
    positions = sim.state.body_positions.to_numpy()[:, : sim.num_agents].astype(np.float64)
    rotations = sim.state.body_rotations.to_numpy()[:, : sim.num_agents].astype(np.float64)
    assert (positions[..., 2] == 0).all()
    assert np.linalg.norm(rotations, axis=2) == pytest.approx(1.0, abs=1e-6)
    return positions[..., 0], positions[..., 1], 2 * np.arctan2(rotations[..., 3], rotations[..., 0])


def largest_overlap(sim):
    """Of an agent with a cube, a wall or another agent."""
    names = ("body_rotations", "body_kinds", "static_kinds")
    rotations, kinds, static_kinds = (getattr(sim.state, name).to_numpy() for name in names)
    sizes = np.concatenate([sim.state.body_sizes.to_numpy(), sim.state.static_sizes.to_numpy()], axis=1)
    centres = np.concatenate([sim.state.body_positions.to_numpy(), sim.state.static_positions.to_numpy()], axis=1)
    upright = np.tile(np.array([1, 0, 0, 0], np.float32), (*static_kinds.shape, 1))
    rotations, kinds = np.concatenate([rotations, upright], axis=1), np.concatenate([kinds, static_kinds], axis=1)
    standing = kinds != doorstep.EntityKind.CUBE  # positions of all others are those of their bottoms
    centres[standing, 2] += sizes[standing, 2] / 2
    boxes, largest = np.arange(kinds.shape[1]), []
    for agent in range(sim.num_agents):
        own = (centres[:, agent, None], rotations[:, agent, None], sizes[:, agent, None])
        largest.append(overlap_depth(*own, centres, rotations, sizes)[(kinds != 0) & (boxes != agent)].max())
    return max(largest)


@pytest.mark.parametrize("num_agents", [1, 2, 5])
def test_agents_rest_at_free_places_all_over_the_promised_part_of_the_promised_room(num_agents):
    with doorstep.Simulator(WORLDS, seed=11, num_agents=num_agents, num_threads=1) as sim:
        state, agents = sim.state, slice(0, num_agents)
        state.body_linear_velocities.to_numpy()[:] = 3
        state.body_angular_velocities.to_numpy()[:] = 3
        RoomsStart(sim).place(ALL)
        x, y, yaw = poses(sim)
        depth = y - ROOM * (1 + ALL % 2)[:, None]
        assert (np.abs(x) <= 8).all()
        assert ((depth >= 1.6 - 1e-4) & (depth <= 10.6 + 1e-4)).all()
        assert (np.abs(yaw) <= np.pi / 4 + 1e-6).all()
        assert np.ptp(x) > 14
        assert np.ptp(depth) > 8
        assert np.ptp(yaw) > 1.4
        assert largest_overlap(sim) < 1e-4
        assert (state.body_linear_velocities.to_numpy()[:, agents] == 0).all()
        assert (state.body_angular_velocities.to_numpy()[:, agents] == 0).all()
        assert (state.agent_grabs.to_numpy() == -1).all()
        assert (state.agent_max_y.to_numpy() == state.body_positions.to_numpy()[:, agents, 1]).all()
        seen = sim.self_observations.to_numpy()  # shows the new places
        assert seen[..., 2] * 40 == pytest.approx(x, abs=1e-4)
        assert seen[..., 3] * 40 == pytest.approx(y, abs=1e-4)
        assert seen[..., 6] * np.pi == pytest.approx(yaw, abs=1e-4)


def test_a_place_depends_on_seed_world_and_episode_alone_and_other_worlds_stay_as_they_are():
    with (
        doorstep.Simulator(8, seed=3, num_threads=1) as whole,
        doorstep.Simulator(4, seed=3, num_threads=1, world_offset=4) as shard,
    ):
        before = shard.world_hashes()
        RoomsStart(whole).place(np.arange(8))
        start = RoomsStart(shard)
        start.place(np.array([2, 0]))
        assert (before != shard.world_hashes()).tolist() == [True, False, True, False]
        start.place(np.array([1, 3]))
        for ours, theirs in zip(poses(whole), poses(shard), strict=True):
            assert (ours[4:] == theirs).all()
        assert whole.hash([4, 5, 6, 7]) == shard.hash()
        shard.reset()
        start.place(np.arange(4))
        assert (poses(whole)[0][4:] != poses(shard)[0]).all()
