"""An environment after PufferLib's contract: its buffers are the simulator's memory, and a step copies nothing."""

from __future__ import annotations

from multiprocessing.shared_memory import SharedMemory
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from tests.scenes import random_actions

import doorstep

Array: TypeAlias = npt.NDArray[Any]
WORLDS = 5
BUFFERS: dict[str, tuple[tuple[int, ...], Any]] = {
    "observations": ((94,), np.float32),
    "rewards": ((), np.float32),
    "terminals": ((), np.bool_),
    "truncations": ((), np.bool_),
    "masks": ((), np.bool_),
    "actions": ((4,), np.int32),
}
TENSOR_OF = {"terminals": "terminations"}  # those of another name


class PufferEnv:
    """What the contract asks of an environment: buffers of its own, or those that it is given, written in place."""

    num_agents: int

    def __init__(self, buf: Any = None) -> None:
        for name, (shape, dtype) in BUFFERS.items():
            given = None if buf is None else getattr(buf, name)
            setattr(self, name, np.zeros((self.num_agents, *shape), dtype) if given is None else given)
        self.masks[:] = True

    observations: Array
    rewards: Array
    terminals: Array
    truncations: Array
    masks: Array
    actions: Array


class Doorstep(PufferEnv):
    """Rows are agents, world by world; worlds reset themselves."""

    def __init__(self, num_worlds: int, buf: Any = None, **options: Any) -> None:
        self.sim = doorstep.Simulator(num_worlds, **options)
        self.num_agents = num_worlds * self.sim.num_agents
        super().__init__(buf)
        bound = {TENSOR_OF.get(name, name): getattr(self, name) for name in BUFFERS if name != "masks"}
        self.sim.bind(**bound)

    def reset(self, seed: int | None = None) -> tuple[Array, list[Any]]:
        self.sim.reset()
        return self.observations, []

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, list[Any]]:
        self.actions[:] = actions
        self.sim.step()
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self) -> None:
        self.sim.close()


def addresses(env: PufferEnv) -> dict[str, int]:
    return {name: getattr(env, name).ctypes.data for name in BUFFERS}


def shared_buffers(memory: SharedMemory, num_agents: int) -> SimpleNamespace:
    """Views of one shared memory, as a vectorisation over processes hands them to its workers."""
    buffers, offset = {}, 0
    for name, (shape, dtype) in BUFFERS.items():
        offset += -offset % 64
        array: Array = np.ndarray((num_agents, *shape), dtype, memory.buf, offset)
        buffers[name] = array
        offset += array.nbytes
    return SimpleNamespace(**buffers)


def assert_same_as_plain(env: Doorstep, steps: int) -> None:
    before = addresses(env)
    with doorstep.Simulator(WORLDS, episode_length=9) as plain:
        observations, _ = env.reset()
        plain.reset()
        for actions in random_actions(4, steps, WORLDS):
            np.testing.assert_array_equal(observations, plain.observations.to_numpy().reshape(-1, 94))
            results = env.step(actions.reshape(-1, 4))
            plain.actions = actions
            plain.step()
            tensors = (plain.observations, plain.rewards, plain.terminations, plain.truncations)
            for result, tensor in zip(results[:4], tensors, strict=True):
                np.testing.assert_array_equal(result.ravel(), tensor.to_numpy().ravel())
            observations = results[0]
        assert env.sim.hash() == plain.hash()
    assert addresses(env) == before
    for name in BUFFERS:
        if name != "masks":
            tensor = getattr(env.sim, TENSOR_OF.get(name, name))
            assert tensor.__array_interface__["data"][0] == before[name], name


def test_own_buffers_are_the_simulators_memory() -> None:
    env = Doorstep(WORLDS, episode_length=9)
    assert_same_as_plain(env, 25)
    assert env.truncations.dtype == env.terminals.dtype == np.bool_
    env.close()


def test_shared_buffers_are_the_simulators_memory() -> None:
    memory = SharedMemory(create=True, size=1 << 16)
    try:
        env = Doorstep(WORLDS, buf=shared_buffers(memory, WORLDS * 2), episode_length=9)
        assert_same_as_plain(env, 25)
        with pytest.raises(BufferError):  # still bound
            memory.close()
        env.close()
        del env
        wait_for_main_thread()
        memory.close()
    finally:
        memory.unlink()


def wait_for_main_thread() -> None:
    """Python's main thread releases owners between two of its instructions."""
    for _ in range(100):
        sum(range(10))


def test_a_buffer_that_is_written_by_the_policy_needs_no_copy_at_all() -> None:
    env = Doorstep(WORLDS)
    env.actions[:] = (3, 0, 2, 0)
    before = env.sim.state.body_positions.to_numpy()[:, :2].copy()
    env.sim.step()
    assert (env.sim.state.body_positions.to_numpy()[:, :2] != before).any()
    env.close()
