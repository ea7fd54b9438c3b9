"""The scripted policy: it solves levels, also edited ones, the same way every time, and only reads the state."""

import itertools
import math

import numpy as np
import pytest
from tests.pkg.levels.test_curated_solutions import play_each_level

import doorstep
from doorstep import levels
from doorstep.planner import ScriptedPolicy
from doorstep.planner.crew import Crew
from doorstep.planner.geometry import Bounds, Obstacle, Rectangle, crosses, obstacle_around, overlap, overlaps_any, sees
from doorstep.planner.paths import reachable_cells, shortest_path
from doorstep.planner.scene import Scene

ROOM = 40 / 3  # metres, length of a room
LEVEL = 40.0  # metres


def play(sim, steps=200, policy=None, **options):
    """Steps under the policy; the largest y of each agent, metres [N, A]."""
    policy = policy or ScriptedPolicy(**options)
    largest = np.zeros((sim.num_worlds, sim.num_agents))
    for _ in range(steps):
        sim.actions = policy(sim)
        sim.step()
        largest = np.maximum(largest, sim.self_observations.to_numpy()[..., 3] * 40.0)
    return largest


def simulator(num_worlds, **options):
    return doorstep.Simulator(num_worlds, **{"auto_reset": False, "seed": 11, **options})


# ---- Levels are solved ----


@pytest.mark.nightly
def test_agents_solve_nearly_all_levels():
    with simulator(64) as sim:
        largest = play(sim)
    assert (largest > ROOM).all()
    assert (largest.max(axis=1) > 2 * ROOM).mean() >= 0.9
    assert (largest.min(axis=1) > 2 * ROOM).mean() >= 0.85
    assert (largest.max(axis=1) > LEVEL).mean() >= 0.8
    with simulator(16, num_agents=1, episode_length=400) as sim:  # which puts cubes on buttons
        largest = play(sim, 400)
    assert (largest > 2 * ROOM).mean() >= 0.7
    with simulator(16, num_agents=4) as sim:
        assert (play(sim) > 2 * ROOM).mean() >= 0.8


def shares(num_worlds, table, **options):
    """Of the worlds of each level, in which the goal ended the first episode."""
    found = play_each_level("scripted", table.values(), num_worlds, seed=2, **options)[1]
    return dict(zip(table, found.tolist(), strict=True))


@pytest.mark.nightly
def test_two_agents_solve_the_curated_levels_and_not_without_their_cubes():
    found = shares(4, levels.curated())
    assert {name: share for name, share in found.items() if share < 0.75} == {}
    assert sum(found.values()) / len(found) >= 0.95
    table = {name: level for name, level in levels.curated().items() if level.cubes and name != "blocked door"}
    assert set(shares(1, {name: one.replace(cubes=()) for name, one in table.items()}).values()) == {0.0}


def test_agents_hold_doors_for_each_other_and_carry_cubes_to_other_rooms():
    names = ["doorkeeper", "let me in", "one cube", "carry", "cube in a cell"]
    assert shares(1, {name: levels.curated()[name] for name in names}) == dict.fromkeys(names, 1.0)
    assert shares(1, {"carry": levels.curated()["carry"]}, num_agents=1) == {"carry": 1.0}


# ---- Other levels ----


def test_buttons_and_gaps_in_the_walls_are_found_where_the_state_has_them():
    with simulator(8) as sim:  # the first two doors swap their buttons: all are in the first room now
        buttons = sim.state.button_positions.to_numpy()
        sim.state.button_doors.to_numpy()[:, :4] = (1, 1, 0, 0)
        buttons[:, :4, :2] = buttons[:, [2, 3, 0, 1], :2]
        assert (play(sim, 60) > ROOM).all()
    with simulator(4) as sim:
        play(sim, 5, policy := ScriptedPolicy())  # which has planned without the gap
        wall = np.argmin(sim.state.static_positions.to_numpy()[0, :, 1])
        sim.state.static_positions.to_numpy()[:, wall, 0] = 100.0  # the wall behind the agents
        assert (play(sim, 120, policy) > LEVEL).all()


def test_agents_go_to_a_goal_area():
    low, high = np.array((-9.0, 18.0)), np.array((-4.0, 20.0))
    with simulator(8) as sim:
        play(sim, 100, goal=(*low, *high))
        at = sim.self_observations.to_numpy()[..., 2:4] * 40
    assert ((at > low) & (at < high)).all(axis=-1).mean() >= 0.9


# ---- Only the state decides ----


def test_worlds_depend_on_nothing_but_their_own_state_and_are_only_read():
    with simulator(8) as many, simulator(4, world_offset=4) as few, simulator(8, seed=5) as other:
        policy, before = ScriptedPolicy(), many.save()
        policy(many)
        assert many.save() == before
        play(other, 20)
        for sim in (other, many, few, other):  # a policy that has planned for others plans like a new one
            assert np.array_equal(policy(sim), ScriptedPolicy()(sim))
        play(other, 30, policy)
        other.reset([1, 3])
        policy.forget([4])
        planned, anew = policy(other), ScriptedPolicy()(other)
        assert np.array_equal(planned[[1, 3, 4]], anew[[1, 3, 4]])  # of an episode that has gone nothing is remembered
        assert not np.array_equal(planned, anew)
        play(many, 60)
        play(few, 60)
        assert many.world_hashes()[4:].tolist() == few.world_hashes().tolist()


def test_damaged_state_is_survived_and_one_damaged_body_does_not_stop_the_others():
    fields = ("body_positions", "body_rotations", "static_positions", "static_sizes", "button_positions")
    for field, value in itertools.product(fields, (math.nan, math.inf, -math.inf, 1e30)):
        with simulator(2) as sim:
            policy = ScriptedPolicy()
            policy(sim)
            getattr(sim.state, field).to_numpy()[0] = value
            play(sim, 3, policy)
            assert sim.health.clamped_actions == 0
    for value in (math.nan, 1e30, -5e4):
        with simulator(2) as sim:
            sim.state.body_positions.to_numpy()[:, -1] = value  # a cube of the last room
            assert (play(sim, 60)[:, :2] > ROOM).all()


# ---- Paths ----


def random_grid(generator, kinds):
    grid = generator.choice(kinds, (9, 11), p=[0.6, 0.4] if kinds == 2 else [0.5, 0.3, 0.2]).astype(np.uint8)
    grid[[0, -1]] = grid[:, [0, -1]] = 1
    grid[1, 1] = 0
    return grid


def distances(grid, start, price):
    """Lengths of the shortest ways to all cells, by relaxing every pair of neighbours until nothing changes."""
    lengths = np.full(grid.shape, math.inf)
    lengths[start] = 0
    moves = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1) if (row, column) != (0, 0)]
    for _ in range(grid.size):
        before = lengths.copy()
        for row, column in np.argwhere(np.isfinite(lengths)):
            for down, right in moves:
                to = row + down, column + right
                if 1 in (grid[to], grid[row + down, column], grid[row, column + right]):
                    continue
                length = math.hypot(down, right) + (price if grid[to] == 2 else 0)
                lengths[to] = min(lengths[to], lengths[row, column] + length)
        if (lengths == before).all():
            return lengths
    return lengths


def length_of(path, grid, price):
    cells = [divmod(cell, grid.shape[1]) for cell in path]
    return sum(math.dist(a, b) + (price if grid[b] == 2 else 0) for a, b in itertools.pairwise(cells))


def test_paths_are_as_short_as_brute_force_finds_and_reach_the_cells_that_have_one():
    for seed in range(6):
        generator, price = np.random.default_rng(seed), 2.5
        grid = random_grid(generator, 3)
        shortest = distances(grid, (1, 1), price)
        for row, column in np.argwhere(grid != 1):
            path = shortest_path(grid.tobytes(), 11, 12, row * 11 + column, price=price)
            assert bool(path) == math.isfinite(shortest[row, column])
            if path:
                assert (path[0], path[-1]) == (12, row * 11 + column)
                assert length_of(path, grid, price) == pytest.approx(shortest[row, column])
        grid = random_grid(generator, 2)
        rows = reachable_cells(grid.tobytes(), 11, 12)
        reached = np.array([[bits >> column & 1 for column in range(11)] for bits in rows])
        assert np.array_equal(reached == 1, np.isfinite(distances(grid, (1, 1), 0.0)))


def test_a_scene_answers_the_same_whatever_it_and_others_were_asked_before(monkeypatch):
    """Also with a cube at another place: what is remembered of a scene is of that one alone."""
    scenes, generator = [], np.random.default_rng(3)
    act = Crew.act
    monkeypatch.setattr(Crew, "act", lambda crew, scene: scenes.append(scene) or act(crew, scene))
    with simulator(3, num_agents=1) as sim:
        play(sim, 1)

    def asked(scene, start, goal, without):
        path = scene.find_path(start, goal, without=without)
        return scene.has_path(start, goal, without=without), path, scene.obstacles(without), scene.footprints(without)

    def new(scene, is_open=None):
        is_open = is_open or scene.is_open
        return Scene(scene.level, scene.agents, scene.cubes, scene.holds, is_open, scene.pressed, scene.lasting)

    ways = set()
    for scene in (new(scene, [1] * len(scene.is_open)) for scene in scenes[:3]):  # with all doors open
        doors = [((door.low_x + door.high_x) / 2, (door.low_y + door.high_y) / 2) for door in scene.level.doors]
        for cube, door in itertools.product(range(len(scene.cubes)), doors[:2]):
            (x, y, to_x, to_y, *place) = generator.uniform((-9, 1, -9, 15, -9, 1), (9, 11, 9, 38, 9, 38)).tolist()
            start, goal = (x, y), (to_x, to_y)
            without = [cube] if generator.random() < 0.2 else []
            found = asked(scene, start, goal, without)
            assert found == asked(new(scene), start, goal, without)
            assert found[0] == bool(found[1])
            for to in (tuple(place), door, start):  # in a doorway it may be in the way
                moved = scene.with_cube(cube, to, 0.3)
                expected = asked(new(moved), start, goal, without)
                assert asked(moved, start, goal, without) == expected
                ways.add((found[0], expected[0]))
            assert found == asked(scene, start, goal, without)
    assert {(True, True), (True, False)} <= ways


# ---- Geometry ----


def test_rectangles_overlap_where_agents_are_kept_from_and_one_by_one_as_all_at_once():
    generator, boxes = np.random.default_rng(5), []
    for x, y, angle, length, width in generator.uniform((-4, -4, 0, 0.5, 0.5), (4, 4, 7, 3, 3), (40, 5)):
        boxes.append(Rectangle(x, y, math.cos(angle), math.sin(angle), length, width))
    for box, (to_x, to_y) in itertools.product(boxes, generator.uniform(-5, 5, (20, 2))):
        cube, agent = box._replace(half_width=box.half_length), Rectangle(to_x, to_y, 1.0, 0.0, 1.0, 1.0)
        assert obstacle_around(cube, 1.0).contains((to_x, to_y)) == overlap(cube, agent) == overlap(agent, cube)
    for box in boxes:
        assert overlaps_any([box], boxes).tolist() == [any(overlap(box, other) for other in boxes)]
    assert overlaps_any([], boxes).tolist() == []
    assert overlaps_any(boxes[:2], []).tolist() == [False, False]


def test_a_segment_crosses_an_obstacle_that_it_has_points_in():
    for angle, *ends in np.random.default_rng(7).uniform((0, -5, -5, -5, -5), (7, 5, 5, 5, 5), (200, 5)):
        obstacle = obstacle_around(Rectangle(0.5, -0.5, math.cos(angle), math.sin(angle), 1.5, 1.5), 1.0)
        start, end = (ends[0], ends[1]), (ends[2], ends[3])
        points = list(zip(np.linspace(start[0], end[0], 99), np.linspace(start[1], end[1], 99), strict=True))
        if any(obstacle.grown(-0.01).contains(point) for point in points):
            assert crosses(start, end, obstacle)
        elif not any(obstacle.grown(0.1).contains(point) for point in points):
            assert not crosses(start, end, obstacle)
    box = [Obstacle(Bounds(-1, -1, 1, 1))]  # hides what is behind it, but may be left
    rows = [(-2.0, 0.0, 2.0, False), (-2.0, 0.0, -1.1, True), (-2.0, 1.5, 2.0, True), (-0.9, 0.0, -2.0, True)]
    for x, y, to_x, free in (*rows, (-0.9, 0.0, 2.0, False), (-0.5, 0.0, -2.0, True), (-0.5, 0.0, 2.0, False)):
        assert sees((x, y), (to_x, y), box) == free
