"""Environments take an action as four components, as one number of 320, or as a tuple, and play the same with each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.envs.every import ENVIRONMENTS, begin, make, same_everywhere, simulators, step

import doorstep
from doorstep._action_forms import ACTION_FORMS, ACTION_TABLE, NUM_ACTIONS

gymnasium: Any = pytest.importorskip("gymnasium")
pytest.importorskip("torch")

from tests.envs.torch_checks import arrays_of_a_gpu  # noqa: E402

OTHERS = ("discrete", "tuple")
# What an environment cannot carry; rsl_rl has no spaces of actions
REFUSED = {
    ("EscapeRoomRslRlEnv", "discrete"): TypeError,
    ("EscapeRoomRslRlEnv", "tuple"): TypeError,
    ("EscapeRoomRLlibEnv", "tuple"): doorstep.ArgumentError,
    ("EscapeRoomTorchRLEnv", "tuple"): doorstep.ArgumentError,
    ("EscapeRoomVecEnv", "tuple"): doorstep.ArgumentError,
}


def make_or_refuse(name: str, form: str, **arguments: Any) -> Any:
    """None where it is refused as it should be."""
    if (name, form) in REFUSED:
        with pytest.raises(REFUSED[name, form], match="actions"):
            make(name, actions=form, **arguments)
        return None
    return make(name, actions=form, **arguments)


def test_the_order_is_that_of_numpy() -> None:
    assert np.array_equal(np.ravel_multi_index(ACTION_TABLE.T, doorstep.ACTIONS), np.arange(NUM_ACTIONS))
    assert ACTION_TABLE.shape == (320, 4)


@pytest.mark.parametrize("form", OTHERS)
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_same_actions_in_another_form_have_the_same_bits(name: str, form: str) -> None:
    env = make_or_refuse(name, form, seed=3)
    if env is None:
        return
    plain = make(name, seed=3)
    begin(env)
    begin(plain)
    worlds = simulators(plain)[0].num_worlds * len(simulators(plain))
    for actions in np.random.default_rng(1).integers(0, doorstep.ACTIONS, (3, worlds, 2, 4)):
        assert same_everywhere(without_actions(step(env, actions, form)), without_actions(step(plain, actions)))
    env.close()
    plain.close()


def without_actions(returned: Any) -> Any:
    """A tensordict has what it was given."""
    return returned.exclude(("agents", "action")) if hasattr(returned, "exclude") else returned


SAMPLES: dict[str, Callable[[Any], Any]] = {
    "EscapeRoomParallelEnv": lambda env: {agent: env.action_space(agent).sample() for agent in env.agents},
    "EscapeRoomVecEnv": lambda env: np.stack([env.action_space.sample() for _ in range(env.num_envs)]),
    "EscapeRoomTorchRLEnv": lambda env: env.rand_action(),
    "EscapeRoomSkrlEnv": lambda env: skrl_sample(env.action_space, env.num_envs),
    "EscapeRoomSkrlMultiAgentEnv": lambda env: {
        agent: skrl_sample(env.action_spaces[agent], env.num_envs) for agent in env.agents
    },
}


def skrl_sample(space: Any, rows: int) -> Any:
    from skrl.utils.spaces.torch import flatten_tensorized_space, sample_space

    return flatten_tensorized_space(sample_space(space, batch_size=rows, backend="native", device="cpu"))


@pytest.mark.parametrize("form", ACTION_FORMS)
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_sample_of_the_space_steps(name: str, form: str) -> None:
    env = None if name == "EscapeRoomRslRlEnv" else make_or_refuse(name, form)
    if env is None:
        return
    begin(env)
    if name == "AsyncEscapeRooms":
        env.send(env.action_space.sample(), np.arange(env.batch_size))
        env.recv()
    else:
        env.step(SAMPLES.get(name, lambda env: env.action_space.sample())(env))
    env.close()


@pytest.mark.parametrize("number", [-1, NUM_ACTIONS, 2**40])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_number_outside_is_refused_and_changes_nothing(
    name: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last agent's of each world."""
    env = make_or_refuse(name, "discrete", seed=2)
    if env is None:
        return
    begin(env)
    before = [simulator.hash() for simulator in simulators(env)]
    numbers = np.full((2, 2), 3)
    numbers[:, 1] = number
    monkeypatch.setattr(np, "ravel_multi_index", lambda parts, _: numbers[: len(parts[0])])
    with pytest.raises(doorstep.ArgumentError, match=f"actions is {number}; it must be .* 0 to 319"):
        step(env, form="discrete")
    assert [simulator.hash() for simulator in simulators(env)] == before
    env.close()


@pytest.mark.parametrize("form", OTHERS)
def test_a_gpu_is_asked_for_the_same_and_not_waited_for(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its functions on the CPU. Numbers outside are actions out of range, which the simulator counts."""
    pytest.importorskip("torch")
    plain = make("TorchEscapeRoomVectorEnv", seed=3)
    monkeypatch.setattr(doorstep.envs.TorchEscapeRoomVectorEnv, "_arrays", staticmethod(arrays_of_a_gpu))
    env = make("TorchEscapeRoomVectorEnv", actions=form, seed=3)
    begin(env)
    begin(plain)
    for actions in np.random.default_rng(1).integers(0, doorstep.ACTIONS, (3, 2, 2, 4)):
        found, expected = step(env, actions, form), step(plain, actions)
        assert same_everywhere(found[:4], expected[:4])
    if form == "discrete":
        env.step(np.array([[3, -1], [NUM_ACTIONS, 3]]))
        assert (env.simulator.actions[:].reshape(4, 4)[1:3] == doorstep.ACTIONS).all()
        assert env.simulator.health.clamped_actions == 2 * len(doorstep.ACTIONS)
    env.close()
    plain.close()


@pytest.mark.parametrize(
    ("arguments", "single", "all_rows"),
    [
        ({"num_agents": 1}, "Discrete(320)", "MultiDiscrete([320 320])"),
        ({"agents": "rows"}, "Discrete(320)", "MultiDiscrete([320 320])"),
        ({}, "MultiDiscrete([320 320])", "Box"),
    ],
)
def test_spaces_of_numbers(arguments: dict[str, Any], single: str, all_rows: str) -> None:
    env = doorstep.envs.EscapeRoomVectorEnv(2, actions="discrete", **arguments)
    assert str(env.single_action_space) == single
    assert str(env.action_space).startswith(all_rows)
    env.close()


@pytest.mark.parametrize("name", ["EscapeRoomVectorEnv", "TorchEscapeRoomVectorEnv"])
def test_a_tuple_is_by_component_and_an_array_by_row(name: str) -> None:
    """Sample Factory and rl_games give arrays, gymnasium gives tuples."""
    components = np.arange(4) * np.array([[0], [1], [1], [0]])  # [4, rows]
    found = []
    for actions in (tuple(components), list(components), components.T):
        env = getattr(doorstep.envs, name)(4, agents="rows", actions="tuple", seed=1)
        env.reset()
        found.append(env.step(actions))
        np.testing.assert_array_equal(env.simulator.actions[:].reshape(4, 4), components.T)
        env.close()
    assert same_everywhere(found[0], found[1])
    assert same_everywhere(found[0], found[2])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_messages_have_the_shapes_of_the_environment(name: str) -> None:
    """Not those of the simulator behind it."""
    env = make(name)
    if "RslRl" in name:
        return  # numbers of choices of any dtype
    begin(env)
    with pytest.raises(doorstep.ArgumentError) as caught:
        step(env, (0.5, 0, 2, 0))
    shapes = {
        "AsyncEscapeRooms": [1, 8],
        "EscapeRoomEnv": [8],
        "EscapeRoomParallelEnv": [4],
        "EscapeRoomSkrlMultiAgentEnv": [2, 4],
        "EscapeRoomTorchRLEnv": [2, 2, 4],
        "EscapeRoomVectorEnv": [2, 8],
        "TorchEscapeRoomVectorEnv": [2, 8],
    }
    shape = shapes.get(name, [4, 4])
    assert f"float64 of the shape {shape}'; it must be integers of the shape {shape}" in str(caught.value)
    env.close()
