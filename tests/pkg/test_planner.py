"""The scripted policy: it solves levels, also edited ones, the same way every time, and only reads the state."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

import doorstep
from doorstep import levels
from doorstep.planner import ScriptedPolicy
from doorstep.planner.geometry import (
    Bounds,
    Obstacle,
    Rectangle,
    crosses,
    obstacle_around,
    overlap,
    overlaps_any,
    sees,
)
from doorstep.planner.paths import reachable_cells, shortest_path
from doorstep.policy import load_policy
from doorstep.policy.playing import Player

ROOM = 40 / 3  # metres, length of a room
LEVEL = 40.0  # metres


def play(sim: doorstep.Simulator, steps: int = 200, **options: object) -> NDArray[np.float64]:
    """Steps under the policy; the largest y of each agent, metres [N, A]."""
    policy = ScriptedPolicy(**options)  # type: ignore[arg-type]
    largest = np.zeros((sim.num_worlds, sim.num_agents))
    for _ in range(steps):
        sim.actions = policy(sim)
        sim.step()
        largest = np.maximum(largest, sim.self_observations.to_numpy()[..., 3] * 40.0)
    return largest


def simulator(num_worlds: int, **options: object) -> doorstep.Simulator:
    return doorstep.Simulator(num_worlds, auto_reset=False, **options)  # type: ignore[arg-type]


# ---- Levels are solved ----


@pytest.mark.slow
def test_two_agents_solve_nearly_all_levels() -> None:
    with simulator(64, seed=11) as sim:
        largest = play(sim)
    assert (largest > ROOM).all()
    assert (largest.max(axis=1) > 2 * ROOM).mean() >= 0.9
    assert (largest.min(axis=1) > 2 * ROOM).mean() >= 0.85
    assert (largest.max(axis=1) > LEVEL).mean() >= 0.8


@pytest.mark.slow
def test_a_single_agent_puts_cubes_on_buttons() -> None:
    with simulator(16, seed=11, num_agents=1, episode_length=400) as sim:
        largest = play(sim, 400)
    assert (largest > ROOM).mean() >= 0.9
    assert (largest > 2 * ROOM).mean() >= 0.7


@pytest.mark.slow
def test_four_agents_get_through_together() -> None:
    with simulator(16, seed=11, num_agents=4) as sim:
        largest = play(sim)
    assert (largest.max(axis=1) > 2 * ROOM).mean() >= 0.9
    assert (largest > 2 * ROOM).mean() >= 0.8


def play_each_level(num_worlds: int, names: list[str], **options: object) -> dict[str, float]:
    """The share of the worlds of each curated level in which the goal ended the first episode."""
    table = [levels.curated()[name] for name in names]
    count = len(table) * num_worlds
    solved = np.zeros(count, np.bool_)
    with simulator(count, max_levels=len(table), **options) as sim:
        sim.set_levels(table)
        sim.level_weights[...] = np.repeat(np.eye(len(table), dtype=np.float32), num_worlds, axis=0)
        sim.reset()
        policy = ScriptedPolicy()
        ended = np.zeros(count, np.bool_)
        while not ended.all():
            sim.actions = policy(sim)
            sim.step()
            solved |= ~ended & sim.terminations.to_numpy().all(axis=(1, 2))
            ended |= sim.dones.to_numpy().all(axis=(1, 2))
    return dict(zip(names, solved.reshape(-1, num_worlds).mean(axis=1).tolist(), strict=True))


@pytest.mark.slow
def test_two_agents_solve_the_curated_levels() -> None:
    shares = play_each_level(4, list(levels.curated()), seed=2)
    assert {name: share for name, share in shares.items() if share < 0.75} == {}
    assert sum(shares.values()) / len(shares) >= 0.95


def test_agents_hold_doors_for_each_other_and_carry_cubes_to_other_rooms() -> None:
    names = ["doorkeeper", "let me in", "one cube", "carry", "cube in a cell"]
    assert play_each_level(1, names, seed=2) == dict.fromkeys(names, 1.0)


def test_a_single_agent_carries_a_cube_to_another_room() -> None:
    assert play_each_level(1, ["carry"], seed=2, num_agents=1) == {"carry": 1.0}


def test_the_policy_has_a_name() -> None:
    with doorstep.Simulator(2, seed=11) as sim:
        act, policy = Player(load_policy("scripted"), sim).act, ScriptedPolicy()
        for _ in range(5):
            planned = policy(sim)
            act()
            assert np.array_equal(sim.actions.to_numpy(), planned)
            sim.step()


def test_every_episode_is_planned_anew() -> None:
    with doorstep.Simulator(4, seed=11, episode_length=40) as sim:
        act = Player(load_policy("scripted"), sim).act
        reached = []
        for step in range(120):
            act()
            sim.step()
            if step % 40 == 38:  # the last observations before the episode's end
                reached.append(sim.self_observations.to_numpy()[..., 3].max(axis=1) * 40)
    assert (np.array(reached) > ROOM).all()


# ---- Other levels ----


def move_first_door(sim: doorstep.Simulator, x: float) -> None:
    """Moves the first room's door, and the walls beside it, along x."""
    state = sim.state
    panel = state.door_static.to_numpy()[:, 0]
    for world, door in enumerate(panel):
        left, right = door - 2, door - 1
        positions, sizes = state.static_positions.to_numpy()[world], state.static_sizes.to_numpy()[world]
        half_opening = ROOM / 4
        positions[door, 0] = x
        positions[left, 0], sizes[left, 0] = (-10 + x - half_opening) / 2, x - half_opening + 10
        positions[right, 0], sizes[right, 0] = (10 + x + half_opening) / 2, 10 - x - half_opening


def test_moved_doors_and_buttons_are_found() -> None:
    with simulator(8, seed=11) as sim:
        play(sim, 5)
        move_first_door(sim, -5.5)
        buttons = sim.state.button_positions.to_numpy()
        buttons[:, 0, :2], buttons[:, 1, :2] = (7.0, 10.0), (-1.0, 4.0)
        assert (play(sim, 60) > ROOM).all()


def test_buttons_of_another_room_s_door_are_pressed_where_they_are() -> None:
    """The first two doors swap their buttons: all are moved into the first room, where they were not before."""
    with simulator(8, seed=11) as sim:
        buttons = sim.state.button_positions.to_numpy()
        sim.state.button_doors.to_numpy()[:, :4] = (1, 1, 0, 0)
        buttons[:, :4, :2] = buttons[:, [2, 3, 0, 1], :2]
        assert (play(sim, 60) > ROOM).all()


def test_a_gap_in_the_walls_is_a_way_out() -> None:
    with simulator(4, seed=11) as sim:
        wall = np.argmin(sim.state.static_positions.to_numpy()[0, :, 1])
        sim.state.static_positions.to_numpy()[:, wall, 0] = 100.0  # the wall behind the agents
        largest = play(sim, 120)
    assert (largest > LEVEL).all()


def test_agents_go_to_a_goal_area() -> None:
    goal = (-9.0, 18.0, -4.0, 20.0)
    with simulator(8, seed=11) as sim:
        play(sim, 100, goal=goal)
        x, y = np.moveaxis(sim.self_observations.to_numpy()[..., 2:4] * 40, -1, 0)
    inside = (x > goal[0]) & (x < goal[2]) & (y > goal[1]) & (y < goal[3])
    assert inside.mean() >= 0.9


# ---- Only the state decides ----


def test_two_runs_are_the_same() -> None:
    hashes = []
    for _ in range(2):
        with simulator(8, seed=11) as sim:
            play(sim, 60)
            hashes.append(sim.world_hashes().tolist())
    assert hashes[0] == hashes[1]


def test_worlds_do_not_depend_on_each_other() -> None:
    with simulator(8, seed=11) as many, simulator(4, seed=11, world_offset=4) as few:
        play(many, 60)
        play(few, 60)
        assert many.world_hashes()[4:].tolist() == few.world_hashes().tolist()


def test_reading_changes_nothing() -> None:
    with simulator(4, seed=11) as sim:
        policy, before = ScriptedPolicy(), sim.save()
        policy(sim)
        assert sim.save() == before


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30])
@pytest.mark.parametrize(
    "field", ["body_positions", "body_rotations", "static_positions", "static_sizes", "button_positions"]
)
def test_damaged_state_is_survived(field: str, value: float) -> None:
    with simulator(2, seed=11) as sim:
        policy = ScriptedPolicy()
        policy(sim)
        getattr(sim.state, field).to_numpy()[0] = value
        for _ in range(3):
            actions = policy(sim)
            sim.actions = actions
            sim.step()
    assert actions.shape == (2, 2, 4)
    assert ((actions >= 0) & (actions < np.array(doorstep.ACTIONS))).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e30, -5e4])
def test_one_damaged_body_does_not_stop_the_others(value: float) -> None:
    with simulator(4, seed=11) as sim:
        sim.state.body_positions.to_numpy()[:, -1] = value  # a cube of the last room
        assert (play(sim, 60)[:, :2] > ROOM).all()


# ---- Paths ----


def random_grid(generator: np.random.Generator, kinds: int) -> NDArray[np.uint8]:
    grid = generator.choice(kinds, (9, 11), p=[0.6, 0.4] if kinds == 2 else [0.5, 0.3, 0.2]).astype(np.uint8)
    grid[[0, -1]] = grid[:, [0, -1]] = 1
    grid[1, 1] = 0
    return grid


def distances(grid: NDArray[np.uint8], start: tuple[int, int], price: float) -> NDArray[np.float64]:
    """Lengths of the shortest ways to all cells, by relaxing every pair of neighbours until nothing changes."""
    lengths = np.full(grid.shape, math.inf)
    lengths[start] = 0
    moves = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1) if (row, column) != (0, 0)]
    for _ in range(grid.size):
        for row, column in np.argwhere(np.isfinite(lengths)):
            for down, right in moves:
                to = row + down, column + right
                if 1 in (grid[to], grid[row + down, column], grid[row, column + right]):
                    continue
                length = math.hypot(down, right) + (price if grid[to] == 2 else 0)
                lengths[to] = min(lengths[to], lengths[row, column] + length)
    return lengths


def length_of(path: list[int], grid: NDArray[np.uint8], price: float) -> float:
    cells = [divmod(cell, grid.shape[1]) for cell in path]
    return sum(math.dist(a, b) + (price if grid[b] == 2 else 0) for a, b in itertools.pairwise(cells))


@pytest.mark.parametrize("seed", range(4))
def test_paths_are_as_short_as_brute_force_finds(seed: int) -> None:
    generator, price = np.random.default_rng(seed), 2.5
    grid = random_grid(generator, 3)
    shortest = distances(grid, (1, 1), price)
    for row, column in np.argwhere(grid != 1):
        path = shortest_path(grid.tobytes(), 11, 12, row * 11 + column, price=price)
        assert bool(path) == math.isfinite(shortest[row, column])
        if path:
            assert (path[0], path[-1]) == (12, row * 11 + column)
            assert length_of(path, grid, price) == pytest.approx(shortest[row, column])


@pytest.mark.parametrize("seed", range(8))
def test_reachable_cells_are_those_with_a_path(seed: int) -> None:
    grid = random_grid(np.random.default_rng(seed), 2)
    rows = reachable_cells(grid.tobytes(), 11, 12)
    reached = np.array([[bits >> column & 1 for column in range(11)] for bits in rows])
    assert np.array_equal(reached == 1, np.isfinite(distances(grid, (1, 1), 0.0)))


# ---- Geometry ----


def corners(box: Rectangle, count: int) -> NDArray[np.float64]:
    """Points all over a rectangle [count * count, 2]."""
    u, v = np.meshgrid(np.linspace(-1, 1, count) * box.half_length, np.linspace(-1, 1, count) * box.half_width)
    return np.stack([box.x + u * box.ux - v * box.uy, box.y + u * box.uy + v * box.ux], axis=-1).reshape(-1, 2)


def contains(box: Rectangle, points: NDArray[np.float64], slack: float) -> bool:
    x, y = points[:, 0] - box.x, points[:, 1] - box.y
    along, across = np.abs(x * box.ux + y * box.uy), np.abs(y * box.ux - x * box.uy)
    return bool(((along < box.half_length + slack) & (across < box.half_width + slack)).any())


def test_rectangles_overlap_where_they_share_points() -> None:
    generator = np.random.default_rng(5)
    boxes = []
    for x, y, angle, length, width in generator.uniform((-4, -4, 0, 0.5, 0.5), (4, 4, 7, 3, 3), (40, 5)):
        boxes.append(Rectangle(x, y, math.cos(angle), math.sin(angle), length, width))
    for a in boxes:
        for b in boxes:
            if contains(a, corners(b, 40), -0.01):
                assert overlap(a, b)
            elif not contains(a, corners(b, 40), 0.1):
                assert not overlap(a, b)
        assert overlaps_any([a], boxes).tolist() == [any(overlap(a, b) for b in boxes)]
    assert overlaps_any([], boxes).tolist() == []
    assert overlaps_any(boxes[:2], []).tolist() == [False, False]


def test_agents_are_kept_from_where_they_would_overlap_a_cube() -> None:
    generator = np.random.default_rng(6)
    for x, y, angle, to_x, to_y in generator.uniform((-1, -1, 0, -4, -4), (1, 1, 7, 4, 4), (400, 5)):
        cube = Rectangle(x, y, math.cos(angle), math.sin(angle), 1.5, 1.5)
        obstacle = obstacle_around(cube, 1.0)
        assert obstacle.contains((to_x, to_y)) == overlap(cube, Rectangle(to_x, to_y, 1.0, 0.0, 1.0, 1.0))


def test_a_segment_crosses_an_obstacle_that_it_has_points_in() -> None:
    generator = np.random.default_rng(7)
    for angle, *ends in generator.uniform((0, -5, -5, -5, -5), (7, 5, 5, 5, 5), (400, 5)):
        obstacle = obstacle_around(Rectangle(0.5, -0.5, math.cos(angle), math.sin(angle), 1.5, 1.5), 1.0)
        start, end = (ends[0], ends[1]), (ends[2], ends[3])
        points = list(zip(np.linspace(start[0], end[0], 99), np.linspace(start[1], end[1], 99), strict=True))
        if any(obstacle.grown(-0.01).contains(point) for point in points):
            assert crosses(start, end, obstacle)
        elif not any(obstacle.grown(0.1).contains(point) for point in points):
            assert not crosses(start, end, obstacle)


@pytest.mark.parametrize(
    ("start", "end", "free"),
    [
        ((-2.0, 0.0), (2.0, 0.0), False),
        ((-2.0, 0.0), (-1.1, 0.0), True),
        ((-2.0, 1.5), (2.0, 1.5), True),
        ((-0.9, 0.0), (-2.0, 0.0), True),
        ((-0.9, 0.0), (2.0, 0.0), False),
        ((-0.5, 0.0), (-2.0, 0.0), True),
        ((-0.5, 0.0), (2.0, 0.0), False),
    ],
)
def test_a_box_hides_what_is_behind_it_but_may_be_left(
    start: tuple[float, float], end: tuple[float, float], free: bool
) -> None:
    assert sees(start, end, [Obstacle(Bounds(-1, -1, 1, 1))]) == free
