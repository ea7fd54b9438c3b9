"""Ring: copies keep their values while anything refers to them, and their memory is used again afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import Array, actions_of

import doorstep.envs
from doorstep.envs._ring import LIMIT, Ring

SHAPE = (6, 5)
MANY = 20_000  # calls, after which an interpreter has specialised what it runs


def address(array: Any) -> int:
    return int(np.asarray(array).__array_interface__["data"][0])


def values_of(held: Any) -> Array:
    if isinstance(held, dict):
        return values_of(held["observations"][0])
    return np.asarray(held.numpy() if hasattr(held, "numpy") else held)


def through_torch(copy: Array) -> Any:
    return pytest.importorskip("torch").from_numpy(copy)


def through_jax(copy: Array) -> Any:
    return pytest.importorskip("jax").dlpack.from_dlpack(copy)


WAYS: dict[str, Callable[[Array], Any]] = {
    "the copy": lambda copy: copy,
    "a part": lambda copy: copy[2:4],
    "a part of a part": lambda copy: copy[1:][1:, :2],
    "another shape": lambda copy: copy.reshape(-1),
    "another dtype": lambda copy: copy.view(np.int32),
    "a tensor": through_torch,
    "a part of a tensor": lambda copy: through_torch(copy)[2:],
    "an array of a tensor": lambda copy: through_torch(copy).numpy(),
    "an array of jax": through_jax,
    "through DLPack": np.from_dlpack,
    "a buffer": lambda copy: copy.data,
    "an array of a buffer": lambda copy: np.frombuffer(copy.data, np.float32),
    "a container": lambda copy: {"observations": [copy]},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_keeps_its_values_while_anything_refers_to_it(way: str) -> None:
    source = np.zeros(SHAPE, np.float32)
    ring = Ring(source)
    kept = []
    for value in range(3 * LIMIT):
        held = WAYS[way](ring.copy())
        kept.append((held, values_of(held).copy()))
        source[...] = value + 1
    for _ in range(3 * LIMIT):
        ring.copy()[...] = -1
    for held, values in kept:
        np.testing.assert_array_equal(values_of(held), values)


def test_it_tells_kept_copies_from_dropped_ones_however_often_it_is_asked() -> None:
    source = np.zeros(SHAPE, np.float32)
    ring = Ring(source)
    first = ring.copy()
    last = first
    for value in range(1, MANY):
        source[...] = value
        new = ring.copy()
        assert (last[0, 0], new[0, 0]) == (value - 1, value)
        last = new
    assert (first == 0).all()


def test_memory_is_used_again_in_turns() -> None:
    ring = Ring(np.zeros(SHAPE, np.float32))
    seen = set()
    kept = None
    for _ in range(100):
        kept = ring.copy()  # the last one is dropped when this one is there
        seen.add(address(kept))
    assert len(seen) == 2


def test_it_remembers_few_buffers() -> None:
    ring = Ring(np.zeros(SHAPE, np.float32))
    kept = [ring.copy() for _ in range(10 * LIMIT)]
    kept_addresses = {address(copy) for copy in kept}
    assert len(kept_addresses) == 10 * LIMIT
    kept.clear()
    again = [ring.copy() for _ in range(LIMIT)]
    assert len({address(copy) for copy in again} & kept_addresses) == LIMIT
    assert len(ring._buffers) == LIMIT


def test_those_who_keep_some_copies_for_good_leave_the_ring_useful() -> None:
    ring = Ring(np.zeros(SHAPE, np.float32))
    kept = [ring.copy() for _ in range(LIMIT)]
    seen = {address(ring.copy()) for _ in range(100)}
    assert len(seen) == 1
    assert not seen & {address(copy) for copy in kept}


def test_what_is_done_to_a_copy_is_done_to_no_other() -> None:
    ring = Ring(np.zeros(SHAPE, np.float32))
    copy = ring.copy()
    where = address(copy)
    copy.flags.writeable = False
    del copy
    again = ring.copy()
    assert (address(again), again.flags.writeable) == (where, True)


@pytest.mark.parametrize("name", ["EscapeRoomVectorEnv", "TorchEscapeRoomVectorEnv"])
def test_a_loop_over_steps_takes_no_new_memory(name: str) -> None:
    pytest.importorskip("gymnasium")
    pytest.importorskip("torch" if name.startswith("Torch") else "numpy")
    env: Any = getattr(doorstep.envs, name)(4, num_threads=1)
    observations, _ = env.reset()
    seen = set()
    for actions in actions_of(1, 30, 4, 2).reshape(30, 4, -1):
        observations, *_ = env.step(actions)
        seen.add(address(values_of(observations)))
    assert len(seen) == 2
    env.close()
