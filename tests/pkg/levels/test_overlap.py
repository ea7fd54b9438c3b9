"""What overlaps is refused, and nothing else: compared with poses and points that are tried one by one."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import doorstep
from doorstep import levels
from doorstep.levels import Button, Cube, Door, Spawn, Wall

CLEAR = 0.3  # metres: overlaps of this depth are found by points 0.1 apart
FAR_AWAY = Spawn(500, 500)
SQUARE = np.stack(np.meshgrid(np.linspace(-0.5, 0.5, 31), np.linspace(-0.5, 0.5, 31)), -1).reshape(-1, 2)


def is_refused(**parts: Any) -> bool:
    try:
        levels.Level(**parts)
    except doorstep.ArgumentError as error:
        return "overlap" in str(error)
    return False


def points(x: float, y: float, size_x: float, size_y: float, yaw: float) -> NDArray[np.float64]:
    """Points of a rectangle, turned counter-clockwise."""
    local = SQUARE * (size_x, size_y)
    turn = np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])
    turned: NDArray[np.float64] = local @ turn.T + (x, y)
    return turned


def has_common_points(a: tuple[float, ...], b: tuple[float, ...], depth: float) -> bool:
    """Whether some point of a rectangle is inside another by this depth, in either order."""
    return any(is_in(points(*one), other, depth) for one, other in ((a, b), (b, a)))


def is_in(tried: NDArray[np.float64], rectangle: tuple[float, ...], depth: float) -> bool:
    x, y, size_x, size_y, yaw = rectangle
    turn = np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])
    local = np.abs((tried - (x, y)) @ turn.T)
    return bool(((local[:, 0] < size_x / 2 - depth) & (local[:, 1] < size_y / 2 - depth)).any())


def poses(spawn: Spawn) -> list[tuple[float, ...]]:
    """Agents that may be drawn, the ends of the ranges included."""

    def tried(value: Any, count: int) -> list[float]:
        return np.linspace(value[0], value[1], count).tolist() if isinstance(value, tuple) else [value]

    return [(x, y, 2.0, 2.0, yaw) for x in tried(spawn.x, 3) for y in tried(spawn.y, 3) for yaw in tried(spawn.yaw, 7)]


@pytest.mark.parametrize("seed", range(40))
def test_a_spawn_is_refused_exactly_if_an_agent_of_its_ranges_has_points_in_a_wall(seed: int) -> None:
    generator = random.Random(seed)
    x, y = generator.uniform(-2, 2), generator.uniform(-2, 2)
    yaw = generator.uniform(-3, 3)
    choose: Any = generator.choice
    spawn = Spawn(
        choose([x, (x - generator.random(), x + generator.random())]),
        choose([y, (y - generator.random(), y + generator.random())]),
        choose([yaw, (yaw, yaw + generator.uniform(0, 3))]),
    )
    sizes = generator.uniform(0.7, 4), generator.uniform(0.7, 4)
    angle, distance = generator.uniform(0, 6.3), generator.uniform(1.5, 4.5)
    wall = Wall(x + distance * math.cos(angle), y + distance * math.sin(angle), *sizes)
    refused = is_refused(walls=[wall], spawns=[spawn])
    box = (wall.x, wall.y, wall.size_x, wall.size_y, 0.0)
    if not refused:
        assert not any(has_common_points(pose, box, 2e-3) for pose in poses(spawn))
    elif not is_refused(walls=[Wall(wall.x, wall.y, *(max(size - CLEAR, 1e-3) for size in sizes))], spawns=[spawn]):
        pass  # it overlaps by less than points can show
    else:
        assert any(has_common_points(pose, box, 0) for pose in poses(spawn))


@pytest.mark.parametrize("seed", range(30))
def test_cubes_are_refused_exactly_if_they_have_points_in_common(seed: int) -> None:
    generator = random.Random(seed)
    cubes = [Cube(generator.uniform(0, 4), generator.uniform(0, 4), generator.uniform(-3, 3)) for _ in range(2)]
    refused = is_refused(cubes=cubes, spawns=[FAR_AWAY])
    first, second = ((cube.x, cube.y, 3.0, 3.0, cube.yaw) for cube in cubes)
    if has_common_points(first, second, 2e-3):
        assert refused
    elif not has_common_points(first, second, 0):
        shrunk = [(*pose[:2], 3.0 - CLEAR, 3.0 - CLEAR, pose[4]) for pose in (first, second)]
        assert not refused or not has_common_points(shrunk[0], shrunk[1], 0)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"walls": [Wall(0, 5, 4, 1)], "spawns": [Spawn(0, 4)]}, r"spawns\[0\] overlaps walls\[0\] by 0.5 m"),
        (
            {"walls": [Wall(0, 5, 4, 1)], "spawns": [Spawn(0, (1, 4))]},
            r"spawns\[0\] can overlap walls\[0\] by 0.5 m; .*\(move it, or narrow its ranges\)",
        ),
        (
            {"walls": [Wall(0, 5, 4, 1)], "spawns": [Spawn(0, 3.5 - 0.2, (0, math.pi))]},
            r"spawns\[0\] can overlap walls\[0\] by 0.21 m",
        ),
        (
            {"doors": [Door(0, 5)], "buttons": [Button(0, 0, 0)], "spawns": [Spawn(0, 4)]},
            r"spawns\[0\] overlaps doors\[0\] by 0.5 m",
        ),
        ({"cubes": [Cube(0, 5)], "spawns": [Spawn(0, 3)]}, r"spawns\[0\] overlaps cubes\[0\] by 0.5 m"),
        ({"spawns": [Spawn(0, 3), Spawn(1, 3)]}, r"spawns\[1\] overlaps spawns\[0\] by 1 m"),
        ({"spawns": [Spawn((0, 3), 3), Spawn(4, 3)]}, r"spawns\[1\] can overlap spawns\[0\] by 1 m"),
        ({"cubes": [Cube(0, 5), Cube(2, 5)], "spawns": [FAR_AWAY]}, r"cubes\[1\] overlaps cubes\[0\] by 1 m"),
        ({"cubes": [Cube(0, 5)], "walls": [Wall(0, 7, 9, 2)], "spawns": [FAR_AWAY]}, r"cubes\[0\] overlaps walls\[0\]"),
    ],
)
def test_the_message_names_both_and_how_deep(parts: dict[str, Any], says: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"^{says}") as caught:
        levels.Level(**parts)
    assert str(caught.value).startswith(caught.value.argument)


@pytest.mark.parametrize(
    "parts",
    [
        {"walls": [Wall(0, 5, 4, 1)], "spawns": [Spawn(0, 3.5)]},
        {"walls": [Wall(0, 5, 4, 1)], "spawns": [Spawn(0, 4.5 - math.sqrt(2), math.pi / 4)]},
        {"walls": [Wall(0, 3, 4, 1, z=2)], "spawns": [Spawn(0, 3)]},
        {"cubes": [Cube(-3, 24), Cube(0, 24), Cube(3, 24)], "walls": [Wall(0, 26, 20, 1)], "spawns": [Spawn(0, 2)]},
        {"cubes": [Cube(0, 5)], "doors": [Door(0, 9)], "buttons": [Button(0, 5, 0)], "spawns": [Spawn(0, 2)]},
        {"walls": [Wall(0, 5, 4, 4), Wall(1, 5, 4, 4)], "spawns": [Spawn(0, 0)]},
    ],
    ids=["touches", "touches with a corner", "below", "cubes touch", "button below a cube", "walls overlap"],
)
def test_touching_is_allowed_and_so_is_what_does_no_harm(parts: dict[str, Any]) -> None:
    levels.Level(**parts)
