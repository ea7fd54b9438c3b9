"""An action as four components, as one number of 320, or as a tuple, beside their equal steps (test_contract.py)."""

import re

import numpy as np
import pytest
from tests.envs.every import KINDS, MISSING, Case, played
from tests.envs.histories import actions_of
from tests.refuses import refuses

import doorstep
from doorstep._action_forms import NUM_ACTIONS

pytest.importorskip("gymnasium")


@pytest.mark.parametrize("form", ["discrete", "tuple"])
def test_a_gpu_is_asked_for_the_same_and_not_waited_for(form, monkeypatch):
    """With its functions on the CPU. Numbers outside are actions out of range, which the simulator counts."""
    pytest.importorskip("torch")
    from tests.envs.torch_checks import NoWaits, arrays_of_a_gpu

    plain = played("TorchEscapeRoomVectorEnv", Case(1, 2, "rows"), seed=3)
    monkeypatch.setattr(doorstep.envs.TorchEscapeRoomVectorEnv, "_arrays", staticmethod(arrays_of_a_gpu))
    each = played("TorchEscapeRoomVectorEnv", Case(1, 2, "rows", form), seed=3)
    np.testing.assert_array_equal(each.reset()["observations"], plain.reset()["observations"])
    for actions in actions_of(1, 3, 1, 2):
        given = each.given(actions)
        with NoWaits():
            found = each.env.step(given)
        expected = plain.step(actions)
        np.testing.assert_array_equal(found[0], expected.observations["observations"][0])
        np.testing.assert_array_equal(found[1], expected.rewards[0])
    if form == "discrete":
        each.env.step(np.array([NUM_ACTIONS, -1]))
        assert each.env.simulator.health.clamped_actions == 2 * len(doorstep.ACTIONS)


def test_spaces_of_numbers():
    one, two = "Discrete(320)", "MultiDiscrete([320 320])"
    for arguments, single, rows in (({"num_agents": 1}, one, two), ({"agents": "rows"}, one, two), ({}, two, "Box")):
        env = doorstep.envs.EscapeRoomVectorEnv(2, actions="discrete", **arguments)
        assert str(env.single_action_space) == single
        assert str(env.action_space).startswith(rows)
        assert env.action_space.sample() in env.action_space


def test_a_tuple_is_by_component_and_an_array_by_row():
    """Sample Factory and rl_games give arrays, gymnasium gives tuples."""
    components = np.arange(4) * np.array([[0], [1], [1], [0]])  # [4, rows]
    for actions in (tuple(components), list(components), components.T):
        env = doorstep.envs.EscapeRoomVectorEnv(4, agents="rows", actions="tuple", seed=1)
        env.reset()
        env.step(actions)
        np.testing.assert_array_equal(env.simulator.actions[:].reshape(4, 4), components.T)


SHAPES = {
    "AsyncEscapeRooms": [1, 8],
    "EscapeRoomEnv": [8],
    "EscapeRoomParallelEnv": [4],
    "EscapeRoomSkrlEnv": [4, 4],
    "EscapeRoomSkrlMultiAgentEnv": [2, 4],
    "EscapeRoomTorchRLEnv": [2, 2, 4],
    "EscapeRoomVecEnv": [4, 4],
    "EscapeRoomVectorEnv": [2, 8],
    "TorchEscapeRoomVectorEnv": [2, 8],
}


@pytest.mark.parametrize("name", SHAPES)
def test_messages_have_the_words_of_the_environment(name):
    """Shapes are not those of the simulator behind it."""
    if name in MISSING:
        pytest.importorskip(KINDS[name].module)
    worlds = min(2, max(KINDS[name].worlds))
    shape, view = SHAPES[name], "joint" if SHAPES[name][-1] == 8 else "rows"
    if "tuple" not in KINDS[name].forms:
        refuses("actions is 'tuple'", played, name, Case(worlds, 2, view, "tuple"))
    each = played(name, Case(worlds, 2, view))
    each.reset()
    told = re.escape(f"of the shape {shape}'; it must be integers of the shape {shape}")
    refuses(told, each.step, np.full((worlds, 2, 4), 0.5))
    each = played(name, Case(worlds, 2, view, "discrete"))
    each.reset()
    for number, action in ((-1, (0, 0, 0, -1)), (80 * 2**24, (2**24, 0, 0, 0))):
        refuses(rf"actions is {number}; it must be .* 0 to 319", each.step, np.broadcast_to(action, (worlds, 2, 4)))
