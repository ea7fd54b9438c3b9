"""EscapeRoomPufferEnv, beside what all environments do (test_contract.py): its buffers are the simulator's memory.

PufferLib's pins conflict with those of other frameworks, and it has to be built, with PyTorch and downloads. Where it
is not installed, tests/envs/stand_ins/pufferlib.py takes its place: its contract, written down as a class. Where it is
installed these tests run against it.
"""

import copy
import importlib
import os
import pickle
import sys
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest
from tests.envs.histories import History, actions_of, assert_example_learns
from tests.envs.stand_ins import pufferlib_or_stand_in
from tests.refuses import refuses

import doorstep

pytest.importorskip("gymnasium")

WORLDS, AGENTS, LENGTH = 5, 3, 7
SIZE = 97  # of an observation of three agents
RULES = {"num_agents": AGENTS, "episode_length": LENGTH}
BUFFERS = {
    "observations": ((SIZE,), np.float32),
    "rewards": ((), np.float32),
    "terminals": ((), np.bool_),
    "truncations": ((), np.bool_),
    "masks": ((), np.bool_),
    "actions": ((4,), np.int32),
}
TENSOR_OF = {"terminals": "terminations"}  # those of another name


@pytest.fixture(scope="module")
def environment():
    """The class."""
    with pufferlib_or_stand_in():
        yield importlib.import_module("doorstep.envs").EscapeRoomPufferEnv


def addresses(env):
    return {name: getattr(env, name).ctypes.data for name in BUFFERS}


def assert_plays_in_place(env):
    """In the same memory, which is the simulator's, from the first to the last step. Actions may be written there."""
    before, history = addresses(env), History("same_step", WORLDS, seed=6, **RULES)
    assert env.reset(6)[0] is env.observations
    for step, actions in enumerate(actions_of(4, 3 * LENGTH, WORLDS, AGENTS)):
        given = actions.reshape(-1, 4)
        if step % 2:
            env.actions[:] = given
        observations, *_ = env.step(env.actions if step % 2 else given.tolist())
        told = history.step(actions)
        np.testing.assert_array_equal(observations, told.observations["observations"].reshape(-1, SIZE))
    assert addresses(env) == before
    for name in BUFFERS.keys() - {"masks"}:
        tensor = env.simulator.tensors[TENSOR_OF.get(name, name)]
        assert tensor.to_numpy().__array_interface__["data"][0] == before[name], name
    assert env.masks.all()


def test_own_and_copied_buffers_are_the_simulators_memory(environment):
    env = environment(WORLDS, **RULES)
    assert env.num_agents == WORLDS * AGENTS
    for name, (shape, dtype) in BUFFERS.items():
        assert (getattr(env, name).shape, getattr(env, name).dtype) == ((env.num_agents, *shape), dtype), name
    assert_plays_in_place(env)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert not {*addresses(env).values()} & {*addresses(other).values()}
        assert_plays_in_place(other)


def test_shared_buffers_are_the_simulators_memory(environment):
    memory = SharedMemory(create=True, size=1 << 16)
    try:
        env = environment(WORLDS, buf=views_of(memory), seed=0, **RULES)
        assert_plays_in_place(env)
        env.close()
        del env
        for _ in range(100):  # Python's main thread releases owners between two of its instructions
            sum(range(10))
        memory.close()
    finally:
        memory.unlink()


def views_of(memory):
    """Buffers in one shared memory, as workers get them."""
    buffers, offset, rows = {}, 0, WORLDS * AGENTS
    for name, (shape, dtype) in BUFFERS.items():
        offset += -offset % 64
        array = np.ndarray((rows, *shape), dtype, memory.buf, offset)
        buffers[name] = array
        offset += array.nbytes
    buffers["masks"][:] = True
    return buffers


def test_pictures_show_a_world(environment):
    env = environment(2)
    assert env.render().shape == (480, 640, 3)
    assert (env.render(1) != env.render(0)).any()


# ---- Bad input


def test_bad_arguments_are_refused_and_change_nothing(environment):
    for message, arguments in (
        ("num_envs is 0", {"num_envs": 0}),
        ("num_envs is '4'; it must be a number of worlds", {"num_envs": "4"}),
        ("device is 'cuda'; it must be 'cpu'", {"device": "cuda"}),
        ("cameras is", {"cameras": doorstep.Cameras()}),
        ("observations is 'by_name'; .*PufferLib's buffers are flat", {"observations": "by_name"}),
    ):
        refuses(message, environment, **arguments)
    env = environment(WORLDS, **RULES)
    env.reset()
    before, written = env.simulator.hash(), env.actions.copy()
    rows = WORLDS * AGENTS
    for actions in (np.zeros((WORLDS, 4), int), np.zeros((rows, 4), np.float32), [[0], [0, 1]], 3, None):
        refuses(None, env.step, actions, argument="actions")
    assert env.simulator.hash() == before
    np.testing.assert_array_equal(env.actions, written)
    buffers = {name: getattr(env, name).copy() for name in BUFFERS}
    environment(WORLDS, buf=buffers, **RULES)
    refuses("rewards", environment, WORLDS, buf={**buffers, "rewards": np.zeros(3, np.float32)}, **RULES)


# ---- The example


def test_the_example_learns(environment):
    paths = os.pathsep.join(path for path in sys.path if path)
    assert_example_learns("pufferlib_training.py", gain=0.25, warns=True, PYTHONPATH=paths)
