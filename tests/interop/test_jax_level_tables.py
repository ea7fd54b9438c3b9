"""Levels that JAX programs get as arrays: refused where the host sees their values, harmless where it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep import levels
from doorstep._level_tables import LEVEL, ranges
from doorstep._native._generated import LevelSource

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import doorstep.jax  # noqa: E402

TABLE = [levels.reference(), *levels.curated().values()]
COUNT = len(TABLE)


def functions(num_worlds: int = 2, **options: Any) -> Any:
    rules = {"max_levels": COUNT, "levels": TABLE, "outputs": ("rewards", "levels"), **options}
    return doorstep.jax.make(num_worlds, **rules)


def still(num_worlds: int = 2) -> Any:
    return jnp.tile(jnp.asarray([0, 0, 2, 0], jnp.int32), (num_worlds, 2, 1))


def edited(table: Any, **values: Any) -> Any:
    """The table with other values in the fields of its last level."""
    copy = table.copy()
    last = copy.view(LEVEL)[-1, 0]
    for name, value in values.items():
        part, _, field = name.partition("__")
        if field:
            last[part].flat[0][field] = value
        else:
            last[part] = value
    return copy


BAD = [
    ({"num_walls": 33}, r"levels\[20\]\.num_walls is 33; it must be 0 to 32"),
    ({"num_cubes": 2**30}, r"levels\[20\]\.num_cubes"),
    ({"num_rooms": 0}, r"levels\[20\]\.num_rooms"),
    ({"buttons__door": 7}, r"levels\[20\]\.buttons\[0\]\.door is 7"),
    ({"walls__size_x": -1}, r"levels\[20\]\.walls\[0\]"),
    ({"walls__x": np.nan}, r"levels\[20\]\.walls\[0\]"),
    ({"struct_size": 4}, r"levels\[20\]\.struct_size"),
]


@pytest.mark.parametrize(("values", "message"), BAD)
@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
def test_levels_whose_values_are_known_are_checked(kind: Any, values: Any, message: str) -> None:
    rooms = functions()
    state, table = rooms.init(0), kind(edited(rooms.levels, **values))
    calls: list[Any] = [
        lambda: rooms.step(state, still(), levels=table),
        lambda: jax.jit(lambda state: rooms.step(state, still(), levels=table))(state),
        lambda: rooms.init(0, levels=table),
    ]
    for call in calls:
        with pytest.raises(doorstep.ArgumentError, match=message) as caught:
            call()
        assert caught.value.argument == "levels"


def test_levels_need_a_start_for_every_agent() -> None:
    others = functions(num_agents=1)
    with pytest.raises(doorstep.ArgumentError, match="num_agents"):
        functions(num_agents=3, levels=[levels.reference()]).init(0, levels=others.levels)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([-1] + [1] * (COUNT - 1), "not negative"),
        ([np.nan] * COUNT, "finite"),
        ([np.inf] * COUNT, "finite"),
        ([0] * COUNT, "not all zero"),
    ],
)
def test_weights_whose_values_are_known_are_checked(row: list[float], message: str) -> None:
    rooms = functions()
    state, one = rooms.init(0), jnp.asarray(row, jnp.float32)
    rows = np.stack([np.ones(COUNT, np.float32), np.asarray(one)])
    for weights, name in ((one, "level_weights is"), (rows, r"level_weights\[1\] is")):
        for call, arguments in ((rooms.step, (state, still())), (rooms.init, (0,))):
            with pytest.raises(doorstep.ArgumentError, match=f"{name}.*{message}") as caught:
                call(*arguments, None, weights)
            assert caught.value.argument == "level_weights"


def test_valid_levels_are_the_same_as_arguments_of_a_program() -> None:
    many = levels.Level(
        walls=[levels.Wall(4 * i - 60, 70, 3, 1) for i in range(31)],
        doors=[levels.Door(0, 60, 4)],
        buttons=[levels.Button(0, 50, 0)],
        spawns=[levels.Spawn((-5, -4), 0, (-6.2, 6.2)), levels.Spawn(5, 0)],
        episode_length=(1, 1_000_000),
        rewards=levels.Rewards(goal=-1e6),
        physics=levels.Physics(cube_mass=(1, 1000), friction=0, door_speed=0.1),
    )
    table = functions(levels=[*TABLE[:-1], many]).levels
    bounded = jax.jit(doorstep.jax._bounded)(jnp.asarray(table))
    for level, (before, after) in enumerate(
        zip(table.view(LEVEL)[:, 0], np.array(bounded).view(LEVEL)[:, 0], strict=True)
    ):
        assert_same_where_used(before, after, level)


def assert_same_where_used(before: Any, after: Any, level: int) -> None:
    """Equal but for what no world reads: parts beyond the counts, rooms of the generator, a length without effect."""
    is_generated, has_length = before["source"] == LevelSource.GENERATED, before["max_episode_length"] > 0
    names = LEVEL.names or ()
    for name in names:
        if (name == "num_rooms" and is_generated) or (name == "min_episode_length" and not has_length):
            continue
        used = slice(before[f"num_{name}"]) if f"num_{name}" in names else ...
        assert np.array(before[name])[used].tobytes() == np.array(after[name])[used].tobytes(), (level, name)


def test_every_word_of_a_level_has_a_range() -> None:
    is_float, low, high = ranges()
    assert len(is_float) == len(low) == len(high) == LEVEL.itemsize // 4
    ends = np.where(is_float, low.view(np.float32), low), np.where(is_float, high.view(np.float32), high)
    assert (ends[0] < ends[1])[1:].all()  # of the first one, the size, there is one value


def test_no_levels_of_a_program_crash_it() -> None:
    """They are traced, so nobody can check them: any words at all, and a few words out of range."""
    done = subprocess.run(
        [sys.executable, "-c", ANY_WORDS],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr


ANY_WORDS = """
import jax, jax.numpy as jnp, numpy as np
from tests.interop.test_jax_level_tables import functions
rooms = functions(32, outputs=("observations", "lidar", "rewards", "levels"))
step, generator, first = jax.jit(rooms.step), np.random.default_rng(3), rooms.init(0)
actions = [jnp.asarray(generator.integers(0, (4, 8, 5, 2), (32, 2, 4)), jnp.int32) for _ in range(6)]
for run in range(30):
    table = rooms.levels.copy()
    spoilt = generator.random(table.shape) < (1, 0.05)[run % 2]
    table[spoilt] = generator.integers(0, 2**32, spoilt.sum(), np.uint32)
    state = first
    for each in actions:
        state = step(state, each, jnp.ones(32, jnp.int32), levels=jnp.asarray(table))
    jax.block_until_ready(state)
print("survived")
"""
