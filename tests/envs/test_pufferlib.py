"""EscapeRoomPufferEnv: PufferLib's buffers are the simulator's memory; episodes are those of a plain simulator.

PufferLib's pins conflict with those of other frameworks, and it has to be built, with PyTorch and downloads. Where it
is not installed, tests/envs/stand_ins/pufferlib.py takes its place: its contract, written down as a class. Where it is
installed these tests run against it.
"""

from __future__ import annotations

import copy
import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import Array, History, actions_of
from tests.envs.stand_ins import pufferlib_or_stand_in

import doorstep

pytest.importorskip("gymnasium")

PROJECT = Path(__file__).resolve().parents[2]
WORLDS, AGENTS, LENGTH = 5, 3, 7
SIZE = 97  # of an observation of three agents
RULES: dict[str, Any] = {"num_agents": AGENTS, "episode_length": LENGTH}
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
def environment() -> Iterator[Any]:
    """The class."""
    with pufferlib_or_stand_in():
        yield importlib.import_module("doorstep.envs").EscapeRoomPufferEnv


def addresses(env: Any) -> dict[str, int]:
    return {name: getattr(env, name).ctypes.data for name in BUFFERS}


def assert_plays_as_plain(env: Any, seed: int, *, reset_seed: int | None = None) -> None:
    """Against a plain simulator of the seed, and in the same memory from the first to the last step."""
    before, history = addresses(env), History("same_step", WORLDS, seed=seed, **RULES)
    observations, infos = env.reset(reset_seed)
    assert infos == []
    np.testing.assert_array_equal(observations, history.worlds.observe()["observations"].reshape(-1, SIZE))
    ends = 0
    for actions in actions_of(4, 3 * LENGTH, WORLDS, AGENTS):
        observations, rewards, terminals, truncations, infos = env.step(actions.reshape(-1, 4))
        told = history.step(actions)
        np.testing.assert_array_equal(observations, told.observations["observations"].reshape(-1, SIZE))
        np.testing.assert_array_equal(rewards, told.rewards.reshape(-1))
        np.testing.assert_array_equal(terminals | truncations, told.ended.repeat(AGENTS))
        assert len(infos) == bool(told.ended.any())
        for info in infos:
            assert info["episode_return"] == pytest.approx(told.returns[told.ended].mean(), rel=1e-5)
            assert info["episode_length"] == pytest.approx(told.lengths[told.ended].mean())
            ends += 1
    assert ends >= 2
    assert addresses(env) == before
    for name in BUFFERS.keys() - {"masks"}:
        tensor = env.simulator.tensors[TENSOR_OF.get(name, name)]
        assert tensor.to_numpy().__array_interface__["data"][0] == before[name], name
    assert env.masks.all()


def test_own_buffers_are_the_simulators_memory(environment: Any) -> None:
    env = environment(WORLDS, seed=6, **RULES)
    assert env.num_agents == WORLDS * AGENTS
    for name, (shape, dtype) in BUFFERS.items():
        assert (getattr(env, name).shape, getattr(env, name).dtype) == ((env.num_agents, *shape), dtype), name
    assert_plays_as_plain(env, 6)
    env.close()


def test_shared_buffers_are_the_simulators_memory(environment: Any) -> None:
    memory = SharedMemory(create=True, size=1 << 16)
    try:
        env = environment(WORLDS, buf=views_of(memory), seed=0, **RULES)
        assert_plays_as_plain(env, 0)
        env.close()
        del env
        for _ in range(100):  # Python's main thread releases owners between two of its instructions
            sum(range(10))
        memory.close()
    finally:
        memory.unlink()


def views_of(memory: SharedMemory) -> dict[str, Array]:
    """Buffers in one shared memory, as workers get them."""
    buffers, offset, rows = {}, 0, WORLDS * AGENTS
    for name, (shape, dtype) in BUFFERS.items():
        offset += -offset % 64
        array: Array = np.ndarray((rows, *shape), dtype, memory.buf, offset)
        buffers[name] = array
        offset += array.nbytes
    buffers["masks"][:] = True
    return buffers


def test_a_seed_makes_its_levels_in_the_same_buffers(environment: Any) -> None:
    env = environment(WORLDS, **RULES)
    assert_plays_as_plain(env, 9, reset_seed=9)
    assert_plays_as_plain(env, 2, reset_seed=2)
    first = env.reset(2)[0].copy()
    following = env.reset()[0].copy()
    assert (first != following).any()
    assert not env.terminals.any()
    assert not env.truncations.any()


def test_a_seed_keeps_levels_and_weights(environment: Any) -> None:
    env = environment(WORLDS, num_agents=2, max_levels=2)
    levels = [doorstep.levels.curated()[name] for name in ("one door", "one cube")]
    env.simulator.set_levels(levels, weights=(0, 1))
    env.reset(4)
    assert env.simulator.level_indices.to_numpy()[:, 0].tolist() == [1] * WORLDS
    assert (env.simulator.level_weights.to_numpy() == (0, 1)).all()
    with doorstep.Simulator(WORLDS, seed=4, max_levels=2) as plain:
        plain.set_levels(levels, weights=(0, 1))
        plain.reset()
        assert (env.observations == plain.observations.to_numpy().reshape(env.observations.shape)).all()


def test_actions_written_in_place_are_not_copied(environment: Any) -> None:
    env, other = (environment(WORLDS, seed=0, **RULES) for _ in range(2))
    env.reset()
    other.reset()
    for actions in actions_of(0, LENGTH + 3, WORLDS, AGENTS).reshape(-1, WORLDS * AGENTS, 4):
        env.actions[:] = actions
        env.step(env.actions)
        other.step(actions.astype(np.int64).tolist())
        np.testing.assert_array_equal(env.observations, other.observations)


def test_vectors_drive_it(environment: Any) -> None:
    env = environment(WORLDS, **RULES)
    env.async_reset(3)
    with doorstep.Simulator(WORLDS, seed=3, **RULES) as plain:
        for actions in actions_of(1, LENGTH + 2, WORLDS, AGENTS):
            env.send(actions.reshape(-1, 4))
            plain.actions = actions
            plain.step()
            observations, rewards, terminals, truncations, infos, ids, masks = env.recv()
            np.testing.assert_array_equal(observations, plain.observations.to_numpy().reshape(-1, SIZE))
            np.testing.assert_array_equal(rewards, plain.rewards.to_numpy().ravel())
            np.testing.assert_array_equal(truncations, plain.truncations.to_numpy().ravel())
            np.testing.assert_array_equal(terminals, plain.terminations.to_numpy().ravel())
            assert bool(infos) == (terminals | truncations).any()
            assert ids.tolist() == list(range(WORLDS * AGENTS))
            assert masks.all()
    assert env.observation_space.shape == env.observations.shape
    assert env.action_space.shape == env.actions.shape


def test_pictures_show_a_world(environment: Any) -> None:
    env = environment(2)
    assert env.render().shape == (480, 640, 3)
    assert env.render_mode == "rgb_array"
    assert (env.render(1) != env.render(0)).any()


# ---- Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0"),
        ({"num_envs": "4"}, "num_envs is '4'"),
        ({"num_agents": 9}, "num_agents is 9"),
        ({"seed": -1}, "seed is -1"),
        ({"device": "cuda"}, "device is 'cuda'; it must be 'cpu'"),
        ({"cameras": doorstep.Cameras()}, "cameras is"),
    ],
)
def test_arguments_are_checked(environment: Any, arguments: Any, message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=message) as caught:
        environment(**arguments)
    assert caught.value.argument == next(iter(arguments))


def test_a_step_needs_a_reset(environment: Any) -> None:
    env = environment(WORLDS, **RULES)
    with pytest.raises(doorstep.StateError, match=r"call reset\(\) first"):
        env.step(env.actions)


@pytest.mark.parametrize(
    "actions", [np.zeros((WORLDS, 4), np.int32), np.zeros((WORLDS * AGENTS, 4), np.float32), [[0], [0, 1]], 3, None]
)
def test_actions_that_do_not_fit_change_nothing(environment: Any, actions: Any) -> None:
    env = environment(WORLDS, **RULES)
    env.reset()
    before, written = env.simulator.hash(), env.actions.copy()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.step(actions)
    assert caught.value.argument == "actions"
    assert env.simulator.hash() == before
    np.testing.assert_array_equal(env.actions, written)


def test_buffers_that_do_not_fit_are_refused(environment: Any) -> None:
    env = environment(WORLDS, **RULES)
    buffers = {name: getattr(env, name).copy() for name in BUFFERS}
    environment(WORLDS, buf=buffers, **RULES)
    with pytest.raises(doorstep.ArgumentError, match="rewards"):
        environment(WORLDS, buf={**buffers, "rewards": np.zeros(3, np.float32)}, **RULES)


# ---- The example


def test_the_example_learns(environment: Any) -> None:
    program, paths = PROJECT / "docs/examples/pufferlib_training.py", list(sys.path)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    done = subprocess.run(
        [sys.executable, str(program)], env=variables, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    returns = [float(line.split()[-1]) for line in done.stdout.splitlines() if "mean return" in line]
    assert returns[-1] > returns[0] + 0.25, done.stdout


def test_without_a_seed_one_is_drawn(environment: Any) -> None:
    drawn = [environment(2) for _ in range(3)]
    assert len({env.np_random_seed for env in drawn}) == 3
    again = environment(2, seed=drawn[0].np_random_seed)
    np.testing.assert_array_equal(again.reset()[0], drawn[0].reset()[0])
    for env in (*drawn, again):
        env.close()


def test_a_seeded_reset_keeps_simulator_buffers_levels_and_weights(environment: Any) -> None:
    levels = [doorstep.levels.reference(), doorstep.levels.curated()["one door"]]
    env = environment(4, levels=levels, level_weights=(0, 1))
    simulator, observations, weights = env.simulator, env.observations, env.simulator.level_weights
    assert env.reset(5)[0] is observations
    assert env.simulator is simulator
    assert simulator.level_indices[:, 0].tolist() == [1] * 4
    weights[:] = (1, 0)
    env.reset(5)
    assert simulator.level_indices[:, 0].tolist() == [0] * 4
    env.close()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on_with_buffers_of_their_own(environment: Any, copied: Any) -> None:
    env = environment(WORLDS, **RULES)
    env.reset(3)
    actions = actions_of(1, 2 * LENGTH, WORLDS, AGENTS).reshape(-1, WORLDS * AGENTS, 4)
    env.step(actions[0])
    other = copied(env)
    for taken in actions:
        for one, two in zip(env.step(taken)[:4], other.step(taken)[:4], strict=True):
            np.testing.assert_array_equal(one, two)
            assert not np.shares_memory(one, two)
        assert other.observations is other.step(taken)[0]
        env.step(taken)
    env.close()
    other.close()


@pytest.mark.parametrize("name", ["num_worlds", "auto_reset", "episode_lenght"])
def test_unknown_keywords_are_type_errors(environment: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        environment(2, **{name: 1})
