"""Levels that JAX programs get as arrays: refused where the host sees their values, harmless where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conftest import RunPython

import doorstep
from doorstep import levels
from doorstep._native._generated import Level as NativeLevel

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import doorstep.jax  # noqa: E402

LEVEL = np.dtype(NativeLevel)
TABLE = [levels.reference(), *levels.curated().values()]
COUNT = len(TABLE)


def functions(num_worlds: int = 2, **options: Any) -> Any:
    rules = {"max_levels": COUNT, "levels": TABLE, "outputs": ("rewards", "level_indices"), **options}
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


def test_no_levels_of_a_program_crash_it(run_python: RunPython) -> None:
    """They are traced, so nobody can check them: any words at all, and a few words out of range."""
    assert run_python(ANY_WORDS) == "survived\n"


ANY_WORDS = """
import jax, jax.numpy as jnp, numpy as np
from tests.interop.test_jax_level_tables import functions
rooms = functions(32, outputs=("observations", "lidar", "rewards", "level_indices"))
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
