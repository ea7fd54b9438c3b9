"""Worlds that play levels of their own: what they draw, what stands in them, by which rules they end."""

import ctypes
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.refuses import refuses
from tests.render import level_worlds

import doorstep
from doorstep import levels
from doorstep._native import _generated as native
from doorstep._native.calls import check
from doorstep._native.library import load
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Goal, Level, Physics, Room, Spawn, Wall
from doorstep.levels.native import to_native

FAR = Goal(min_x=-50, max_x=50, min_y=30, max_y=60)
WALK, TURN_LEFT = (3, 0, 2, 0), (0, 0, 4, 0)


def hall(**changes):
    """Two agents on an endless floor, side by side."""
    return Level(**{"spawns": (Spawn(-5, 0), Spawn(5, 0)), "rooms": (Room(0, 40),), **changes})


def playing(*table, num_worlds=1, **config):
    """A simulator whose worlds play the levels in turn."""
    return level_worlds.playing(table, num_worlds, **config)


def walk(sim, steps, action=WALK):
    for _ in range(steps):
        sim.actions[:] = action
        sim.step()


# ---- The reference's levels


def test_the_reference_as_a_level_has_the_bits_of_the_reference():
    for num_agents in (1, 2, 8):
        rules = {"num_agents": num_agents, "seed": 3, "episode_length": 40}
        own, table = doorstep.Simulator(40, **rules), doorstep.Simulator(40, max_levels=3, **rules)
        draws = np.random.default_rng(num_agents)
        for _ in range(90):
            actions = np.stack([draws.integers(0, size, (40, num_agents)) for size in doorstep.ACTIONS], -1)
            actions[..., 1:3] = np.where(draws.random((40, num_agents, 2)) < 0.6, (0, 2), actions[..., 1:3])
            for sim in (own, table):
                sim.actions = actions
                sim.step()
            for name, tensor in own.tensors.items():
                np.testing.assert_array_equal(tensor.to_numpy(), table.tensors[name].to_numpy(), err_msg=name)


def test_room_types_have_their_buttons_and_cubes():
    counts = {"single_button": (1, 0), "double_button": (2, 0), "cube_blocking": (2, 3), "cube_buttons": (2, 2)}
    for name, (buttons, cubes) in counts.items():
        sim = playing(GeneratedLevel(room_types=(name, name, name)), num_worlds=32)
        kinds = sim.state.body_kinds.to_numpy()
        x, y = np.moveaxis(sim.state.button_positions.to_numpy(), -1, 0)[:2]
        assert ((kinds == 2).sum(1) == 3 * cubes).all()
        assert ((np.abs(x) < 10).sum(1) == 3 * buttons).all()
        for room in range(3):
            assert (((y > 40 / 3 * room) & (y < 40 / 3 * (room + 1))).sum(1) == buttons).all()


def test_rooms_of_any_type_are_all_types():
    sim = playing(GeneratedLevel(room_types=("any", "any", "any")), num_worlds=400)
    cubes = np.bincount((sim.state.body_positions.to_numpy()[:, 2:, 1] < 40 / 3).sum(1), minlength=4)
    assert cubes[1] == 0
    # 200 worlds without cubes expected, 100 with two, 100 with three; five standard deviations
    assert abs(cubes[0] - 200) < 50
    assert abs(cubes[2] - 100) < 44
    assert abs(cubes[3] - 100) < 44


@pytest.mark.parametrize("room_type", ["single_button", "double_button", "cube_blocking", "cube_buttons"])
def test_agents_begin_anywhere_free_in_the_first_room(room_type):
    for first_room, num_agents in ((1, 1), (2, 2), (1, 6), (2, 8)):
        level = GeneratedLevel(room_types=(room_type,) * 3, first_room=first_room)
        sim = playing(level, num_worlds=128, num_agents=num_agents)
        places = sim.state.body_positions[:, :, :2]
        agents, cubes = places[:, :num_agents], places[:, num_agents:]
        start, end = 40 / 3 * first_room, 40 / 3 * (first_room + 1) - 1
        corner = math.sqrt(2)  # of an agent, from its centre
        assert (np.abs(agents[..., 0]) < 10 - corner).all()
        assert ((agents[..., 1] > start + corner) & (agents[..., 1] < end - corner)).all()
        assert np.ptp(agents[:, 0], axis=0).min() > 8
        apart = np.abs(agents[:, :, None] - agents[:, None]).max(axis=-1) + 10 * np.eye(num_agents)
        assert (apart > 2 * corner).all()
        assert (np.abs(agents[:, :, None] - cubes[:, None]).max(axis=-1) > 1.5 + corner).all()
        np.testing.assert_array_equal(sim.state.agent_max_y[:].reshape(128, -1), agents[..., 1])
        assert not sim.state.door_open[:].any()


def test_a_later_first_room_moves_the_agents_and_nothing_else():
    for agents in (1, 2):
        begun = [playing(GeneratedLevel(first_room=room), num_worlds=16, num_agents=agents).state for room in range(3)]
        for later in begun[1:]:
            for name in ("button_positions", "door_open", "static_positions"):
                np.testing.assert_array_equal(getattr(begun[0], name)[:], getattr(later, name)[:])
            np.testing.assert_array_equal(begun[0].body_positions[:, agents:], later.body_positions[:, agents:])


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_cubes_are_moved_on_the_way_to_their_buttons(share):
    types = ("single_button", "cube_blocking", "cube_buttons")
    far, near = (
        playing(GeneratedLevel(room_types=types, cubes_near_buttons=moved), num_worlds=256).state
        for moved in (0.0, share)
    )
    np.testing.assert_array_equal(far.body_positions[:, :5], near.body_positions[:, :5])  # agents and the second room
    before, after = far.body_positions[:, 5:7, :2], near.body_positions[:, 5:7, :2]
    whole = np.clip(near.button_positions[:, 3:5, :2], (-8.5, 80 / 3 + 1.5), (8.5, 40 - 2.5)) - before
    moved = np.abs(after - before).max(axis=-1) > 1e-3
    assert abs(moved.mean() - share) < 0.11  # five standard deviations of 512 draws
    way = np.linalg.norm(after - before, axis=-1) / np.linalg.norm(whole, axis=-1)
    np.testing.assert_allclose(after, before + whole * way[:, :, None], atol=1e-4)
    assert np.histogram(way[moved], bins=4, range=(0, 1))[0].min() > 0.15 * moved.sum()
    assert way.max() < 1 + 1e-5


# ---- Which level a world draws


def test_levels_are_drawn_by_their_weights():
    sim = doorstep.Simulator(3000, max_levels=4)
    sim.set_levels([hall()] * 4)
    sim.level_weights[:] = (1, -2, 2, 3)  # negative ones count as 0
    sim.reset()
    drawn = np.bincount(sim.level_indices[:, 0], minlength=4)
    assert drawn[1] == 0
    for level, expected in ((0, 500), (2, 1000), (3, 1500)):
        assert abs(drawn[level] - expected) < 5 * math.sqrt(expected)


def test_a_world_takes_another_level_at_its_next_reset_only():
    sim = playing(hall(), hall(), num_worlds=4, episode_length=5)
    assert sim.level_indices[:, 0].tolist() == [0, 1, 0, 1]
    sim.level_weights[:] = (0, 1)
    walk(sim, 4)
    assert sim.level_indices[:, 0].tolist() == [0, 1, 0, 1]
    walk(sim, 1)
    assert sim.level_indices[:, 0].tolist() == [1, 1, 1, 1]


def test_fewer_levels_than_a_table_holds_are_all_that_worlds_draw():
    """Also where others stood before; through the C API, where null weights are equal ones."""
    sim = doorstep.Simulator(60, levels=[hall()] * 4, num_threads=1)
    for count, weights in ((2, None), (3, (1, 0, 2)), (1, None), (3, None)):
        table = (native.Level * count)(*[to_native(hall())] * count)
        given = weights and (ctypes.c_float * count)(*weights)
        check(load().ds_simulator_set_levels(sim._session.handle, table, count, given))
        row = [*(weights or (1,) * count), *(0,) * (4 - count)]
        assert sim.level_weights.to_numpy().tolist() == [row] * 60
        drawn = set()
        for _ in range(10):
            sim.reset()
            drawn.update(sim.level_indices[:, 0].tolist())
        assert drawn == {level for level in range(4) if row[level]}


def begin(sim, start):
    check(load().ds_simulator_begin(sim._session.handle, ctypes.byref(start), 1))


def test_an_episode_with_a_level_of_its_own_is_that_of_a_simulator_of_this_level_alone():
    own, sim = levels.curated()["one door"], playing(hall(), hall(), num_worlds=2)
    assert sim.level_indices[:, 0].tolist() == [0, 1]
    given = to_native(own)
    begin(sim, native.EpisodeStart(world=1, seed=5, level=ctypes.addressof(given)))
    alone = playing(own)
    begin(alone, native.EpisodeStart(world=0, seed=5))
    assert sim.world_hashes()[1] == alone.world_hashes()[0]
    assert sim.level_indices[1, 0] == alone.level_indices[0, 0] == 0  # not of the table of `sim`, as the header says


def test_draws_depend_on_seed_world_and_episode_alone():
    drawn = hall(physics=Physics(cube_mass=(5, 20)), episode_length=(20, 40))
    table = [levels.reference(), drawn]

    def states(num_worlds, world_offset, num_threads):
        sim = doorstep.Simulator(num_worlds, world_offset=world_offset, num_threads=num_threads, seed=9, max_levels=2)
        sim.set_levels(table)
        sim.reset()
        walk(sim, 90)
        return [int(value) for value in sim.world_hashes()]

    whole = states(12, 0, 1)
    assert states(12, 0, 2) == whole
    assert states(5, 0, 1) + states(7, 5, 2) == whole
    assert len(set(whole)) == 12


def test_weights_whose_sum_overflows_are_drawn_as_those_of_a_finite_sum():
    sim = doorstep.Simulator(1000, max_levels=4)
    sim.set_levels([hall()] * 4)
    start = sim.save()
    for row in ((3e38,) * 4, (3.4e38, 0, 1e38, 1), (3.4e38, 3.4e38, 3.4e38, 1e-45)):
        weights, drawn = np.array(row, np.float32), []
        for scaled in (weights, weights * np.float32(2.0**-6)):  # exactly in the same proportion
            sim.level_weights[:] = scaled
            sim.restore(start)
            sim.reset()
            drawn.append(sim.level_indices.to_numpy()[:, 0].tolist())
        assert drawn[0] == drawn[1]
        assert set(drawn[0]) == {level for level in range(4) if weights[level] > 1}
    assert sim.health.nonfinite_values == sim.health.repaired_indices == 0


def test_weights_that_are_not_finite_or_allow_no_level_are_counted():
    sim = playing(hall(), hall(), num_worlds=4)
    rows = [((0, 1), 1, 0, 0), ((-1, 1), 1, 0, 0), ((0, 0), 0, 0, 1), ((-1, -math.inf), 0, 1, 1)]
    rows += [((math.nan, 1), 1, 1, 0), ((math.inf, 1), 1, 1, 0), ((math.nan, math.inf), 0, 1, 1)]
    for row, level, nonfinite, repaired in rows:
        before = sim.health
        sim.level_weights[:] = (1, 0)
        sim.level_weights[2] = row
        sim.reset()
        assert sim.level_indices[:, 0].tolist() == [0, 0, level, 0]
        assert sim.health.nonfinite_values - before.nonfinite_values == nonfinite
        assert sim.health.repaired_indices - before.repaired_indices == repaired
        if nonfinite or repaired:
            assert (sim.health.culprit_world, sim.health.culprit_body) == (2, None)


def test_strict_simulators_raise_after_a_draw_from_such_weights():
    for row in ((0, 0), (math.inf, 1)):
        for draw in (doorstep.Simulator.reset, lambda sim: walk(sim, 1)):
            sim = playing(hall(), hall(), episode_length=1, strict=True)
            sim.level_weights[:] = row
            draw(sim)
            refuses(None, sim.step, error=doorstep.SimulationError)


# ---- What stands in it


def test_a_level_stands_as_it_was_written():
    level = Level(
        walls=(Wall(0, -1, 22, 1), Wall(-8, 10, 4, 1, height=3, z=0.5)),
        doors=(Door(0, 10), Door(5, 20, 3, 1, 2.5, persistent=False)),
        buttons=(Button(-3, 4, 0), Button(3, 4, 1), Button(3, 14, 1)),
        cubes=(Cube(0, 15), Cube(-5, 15, yaw=0.5)),
        spawns=(Spawn(-5, 2, 0.25), Spawn((4, 6), (2, 3), (-0.5, 0.5))),
        rooms=(Room(0, 10, 0), Room(10, 30, 1)),
    )
    sim = playing(level, num_worlds=50)
    state = sim.state
    for world in range(50):
        positions, kinds = state.static_positions.to_numpy()[world], state.static_kinds.to_numpy()[world]
        assert kinds.tolist() == [3, 3, 5, 5] + [0] * 28
        np.testing.assert_allclose(positions[:4], [(0, -1, 0), (-8, 10, 0.5), (0, 10, 0), (5, 20, 0)])
        np.testing.assert_allclose(state.static_sizes.to_numpy()[world, 3], (3, 1, 2.5))
        assert state.door_static.to_numpy()[world, :2].tolist() == [2, 3]
        np.testing.assert_allclose(state.button_positions.to_numpy()[world, 2], (3, 14, 0))
        assert state.button_doors.to_numpy()[world, :3].tolist() == [0, 1, 1]
        bodies = state.body_positions.to_numpy()[world]
        np.testing.assert_allclose(bodies[[0, 2, 3]], [(-5, 2, 0), (0, 15, 1.5), (-5, 15, 1.5)])
        assert 4 <= bodies[1, 0] < 6
        assert 2 <= bodies[1, 1] < 3
        rotations = state.body_rotations.to_numpy()[world]
        np.testing.assert_allclose(rotations[3], (math.cos(0.25), 0, 0, math.sin(0.25)), atol=1e-6)
        np.testing.assert_allclose(rotations[0], (math.cos(0.125), 0, 0, math.sin(0.125)), atol=1e-6)
    assert len(set(state.body_positions.to_numpy()[:, 1, 0].tolist())) == 50


def test_full_capacity_is_stepped():
    crowd, draws = level_worlds.full_level(8), np.random.default_rng(1)
    sim = playing(crowd, num_worlds=16, num_agents=8)
    walk(sim, 15)  # into the cubes
    for _ in range(150):
        sim.actions = np.stack([draws.integers(0, size, (16, 8)) for size in doorstep.ACTIONS], -1)
        sim.step()
    assert np.isfinite(sim.state.body_positions.to_numpy()).all()
    assert sim.health.nonfinite_values == sim.health.dropped_contacts == 0
    cubes = sim.state.body_positions.to_numpy()[:, 8:, :2]
    starts = np.array([(cube.x, cube.y) for cube in crowd.cubes])
    assert (np.abs(cubes - starts).max((1, 2)) > 0.1).all()  # agents have pushed some in every world


# ---- Length; goals and rewards are followed in test_episodes.py


def test_episode_lengths_are_drawn_between_their_ends():
    sim = playing(hall(episode_length=(10, 13)), hall(episode_length=(7, 7)), hall(), num_worlds=300, episode_length=50)
    lengths = sim.steps_remaining[:, 0, 0]
    assert set(lengths[::3].tolist()) == {10, 11, 12, 13}
    assert set(lengths[1::3].tolist()) == {7}
    assert set(lengths[2::3].tolist()) == {50}
    walk(sim, 7)
    assert sim.truncations[:, 0, 0].tolist() == [0, 1, 0] * 100
    assert set(sim.episode_lengths[1::3, 0].tolist()) == {7}


# ---- Physics


def test_forces_and_torques_scale_motion():
    def after(action, **physics):
        sim = playing(hall(physics=Physics(**physics)))
        walk(sim, 1, action)
        w, _, _, z = sim.state.body_rotations.to_numpy()[0, 0]
        return float(sim.state.body_positions.to_numpy()[0, 0, 1]), 2 * math.atan2(z, w)

    # Free displacement in a step: F / m h^2 (1 + 2 + 3 + 4), less what friction takes: below 1 mm at the usual one
    for force in (300.0, 1000.0, 1900.0):
        assert after(WALK, walking_force=force)[0] == pytest.approx(force * 1e-3, abs=1e-3)
    # A substep's turn is of first order: 1.2% short at the largest torque
    for torque in (100.0, 320.0, 600.0):
        assert after(TURN_LEFT, turning_torque=torque)[1] == pytest.approx(torque * 1.5e-3, rel=0.013)
    without = after(WALK, friction=0.0)[0]
    assert without == pytest.approx(1.0, abs=1e-6)
    assert after(WALK, friction=2.0)[0] < after(WALK)[0] < without


def test_heavier_cubes_and_rougher_floors_are_harder_to_push():
    def pushed(**physics):
        sim = playing(hall(cubes=(Cube(-5, 3),), physics=Physics(**physics)))
        walk(sim, 10, (2, 0, 2, 0))
        return float(sim.state.body_positions.to_numpy()[0, 2, 1]) - 3

    for values in ((5.0, 40 / 3, 40.0), (0.25, 1.0, 2.0)):
        name = "cube_mass" if values[0] == 5.0 else "friction"
        distances = [pushed(**{name: value}) for value in values]
        assert distances[0] > distances[1] > distances[2] > 0.1


def test_without_friction_a_cube_slides_on():
    sim = playing(hall(cubes=(Cube(0, 10),), physics=Physics(friction=0.0)), hall(cubes=(Cube(0, 10),)), num_worlds=2)
    sim.state.body_linear_velocities[:, 2] = (0, 1, 0)
    walk(sim, 50, (0, 0, 2, 0))
    y = sim.state.body_positions.to_numpy()[:, 2, 1]
    assert y[0] == pytest.approx(12.0, abs=0.02)
    assert y[1] < 10.5


def test_agents_and_cubes_are_turned_by_their_yaw():
    for yaw in (-2 * np.pi, -4.0, -1.0, 0.3, np.pi, 5.0):
        sim = playing(hall(spawns=(Spawn(-5, 0, yaw=yaw), Spawn(5, 0)), cubes=(Cube(0, 15, yaw=yaw),)))
        expected = np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)])
        for body in (0, 2):
            np.testing.assert_allclose(sim.state.body_rotations.to_numpy()[0, body], expected, atol=1e-6)


def test_the_state_tells_the_physics_of_each_world_drawn_at_every_reset():
    drawn = Physics((5, 9), (0.5, 1.5), (400, 800), (100, 300), (10, 20))
    sim = playing(hall(physics=drawn), levels.reference(), num_worlds=200)
    told, level = sim.state.physics.to_numpy(), sim.level_indices.to_numpy()[:, 0]
    low, high = np.array([(5, 0.5, 400, 100, 10), (9, 1.5, 800, 300, 20)])
    assert (low <= told[level == 0]).all()
    assert (told[level == 0] < high).all()
    assert (told[level == 0].std(0) > 0.2 * (high - low)).all()
    before = told[level == 0].copy()
    sim.reset()
    assert ((told[level == 0] != before).mean(0) > 0.99).all()  # drawn anew
    reference = doorstep.Simulator(2).state.physics.to_numpy()
    np.testing.assert_allclose(reference, [(40 / 3, 1, 1000, 320, 30)] * 2, rtol=1e-6)
    assert (told[level == 1] == reference[0]).all()


# ---- Saves


def test_saves_continue_bit_for_bit_and_fit_their_capacity_only():
    table = [hall(goal=FAR, physics=Physics(friction=(0.5, 1.5))), levels.reference()]
    sim, other = playing(*table, num_worlds=6), playing(*table, num_worlds=6, seed=5)
    walk(sim, 20)
    saved = sim.save()
    other.restore(saved)
    assert other.hash() == sim.hash()
    assert other.level_indices[:, 0].tolist() == sim.level_indices[:, 0].tolist()
    for simulator in (sim, other):
        walk(simulator, 30)
    assert other.hash() == sim.hash()
    refuses(None, doorstep.Simulator(6).restore, saved, error=doorstep.StateError)
    refuses(None, sim.restore, doorstep.Simulator(6).save(), error=doorstep.StateError)


# ---- Bad input


def test_bad_tables_change_nothing():
    sim = playing(hall(), hall(goal=FAR))
    before = (sim.hash(), sim.level_weights.to_numpy().tolist())
    alone = replace(hall(), spawns=(Spawn(0, 0),))
    refuses("max_levels", sim.set_levels, [hall()] * 3)
    refuses("spawns", sim.set_levels, [hall(), alone])
    refuses(None, sim.set_levels, [], argument="levels")
    refuses(None, sim.set_levels, [hall(), 3], argument="levels[1]")
    for weights in ((1,), (1, -1), (0, 0), (1, math.nan), (1, math.inf), (1, 1e39), (1, 10**400), "ab"):
        refuses(None, sim.set_levels, [hall()] * 2, weights, argument="weights")
    sim.reset()
    sim.reset()
    assert (sim.level_weights.to_numpy().tolist(), sim.level_indices[0, 0]) == (before[1], 0)


def test_rooms_that_overlap_are_refused_by_the_c_api():
    """In Python, a room begins where the one before it ends."""
    sim, rooms = playing(hall(), hall()), (Room(0, 10), Room(10, 20), Room(20, 40))
    table = (native.Level * 2)(to_native(hall()), to_native(hall(rooms=rooms)))

    def give(room, start):
        table[1].rooms[room].start = start
        check(load().ds_simulator_set_levels(sim._session.handle, table, 2, None))

    for room, overlapping, touching in ((1, 9.5, 10), (1, -999, 10), (2, 19, 20)):
        refuses(rf"levels\[1\]\.rooms\[{room}\]\.start is {overlapping}; ", give, room, overlapping)
        give(room, touching)


def test_without_max_levels_there_are_no_level_tensors():
    sim = doorstep.Simulator(2)
    with pytest.raises(doorstep.AbsentTensorError, match="max_levels"):
        _ = sim.level_weights
    assert "levels" not in sim.tensors
    refuses(None, sim.set_levels, [hall()], argument="levels")
    refuses(None, doorstep.Simulator, 2, max_levels=-1, argument="max_levels")
