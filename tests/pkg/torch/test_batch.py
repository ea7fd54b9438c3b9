"""Worlds in tensors are a simulator's, bit for bit, in every step."""

import numpy as np
import pytest
from tests.envs.histories import REORDERED
from tests.refuses import refuses
from tests.scenes import random_actions

import doorstep

torch = pytest.importorskip("torch")

from doorstep.torch import _batch_operators, make  # noqa: E402


def assert_same(sim, state):
    assert state.tensors.keys() == sim.tensors.keys()
    for name, tensor in sim.tensors.items():
        assert state.tensors[name].numpy().tobytes() == tensor.copy_to_host().tobytes(), name


def assert_equal_states(state, expected):
    assert torch.equal(state.worlds, expected.worlds)
    for name, tensor in expected.tensors.items():
        assert torch.equal(state.tensors[name], tensor), name


@pytest.mark.parametrize(("num_agents", "observations"), [(1, doorstep.OBSERVATIONS), (2, REORDERED), (5, "by_name")])
def test_steps_are_those_of_a_simulator(num_agents, observations):
    rules = {"num_agents": num_agents, "episode_length": 11, "observations": observations, "world_offset": 500}
    reward = doorstep.Rewards(progress=0.5, idle=-0.25) if num_agents == 2 else None
    with doorstep.Simulator(70, seed=9, num_threads=1, reward=reward, **rules) as sim:
        rooms = make(sim.config, reward=reward)
        state = rooms.init(seed=9, world_offset=500)
        assert_same(sim, state)
        for step, actions in enumerate(random_actions(4, 30, 70, num_agents)):
            resets = np.zeros((70, 1), np.int32)
            resets[step % 70] = step % 3 == 0
            sim.actions.to_numpy()[:], sim.resets.to_numpy()[:] = actions, resets
            sim.step()
            given = torch.from_numpy(resets)
            assert rooms.step(state, torch.from_numpy(actions), given.bool() if step % 2 else given) is state
            assert_same(sim, state)
        before = sim.hash()
        rooms.step(rooms.init(0))
        assert sim.hash() == before
    assert rooms.step(rooms.init(0)).steps_remaining.eq(10).all()  # the simulator may be closed


def test_each_operator_loads_what_it_needs(monkeypatch):
    """A state that was saved may be the first thing that a process steps."""
    rooms, loaded = make(2, num_agents=3), []
    monkeypatch.setattr(_batch_operators, "_prepare", lambda at, rules: loaded.append((at.device, rules.num_agents)))
    state = rooms.init(0)
    assert loaded == [(torch.device("cpu"), 3)]
    rooms.step(state)
    assert loaded == [(torch.device("cpu"), 3)] * 2


REFUSED = [
    ((torch.zeros(3, 2, 4, dtype=torch.int32),), r"actions is .*\[3, 2, 4\]"),
    ((torch.zeros(2, 2, 4),), r"actions is .*float32"),
    ((torch.zeros(2, 2, 4, dtype=torch.bool),), r"actions is .*bool"),
    ((torch.zeros(2, 2, 4, dtype=torch.int32, device="meta"),), r"actions is .*on meta; it must be .*on cpu"),
    (([[[0] * 4] * 2] * 2,), r"actions is list"),
    ((torch.ones(2, 2, 4, dtype=torch.int32), torch.ones(3, 1, dtype=torch.int32)), "resets is"),
]


def test_refused_steps_change_neither_worlds_nor_inputs():
    rooms = make(2)
    state, before = rooms.init(0), rooms.init(0)
    for arguments, message in REFUSED:
        refuses(message, rooms.step, state, *arguments)
    assert_equal_states(state, before)
    refuses("state is", rooms.step, state.worlds)
    with pytest.raises(AttributeError, match="no 'observation'"):
        _ = state.observation
    state.worlds.fill_(-1)
    refuses("worlds", rooms.step, state, error=doorstep.StateError)


def test_a_batch_is_made_from_a_config_or_from_its_fields():
    config = doorstep.SimulatorConfig(3, seed=9, world_offset=5, num_agents=1, device="auto")
    expected = make(config).init(seed=9, world_offset=5)
    for rooms in (make(config), make(3, seed=9, world_offset=5, num_agents=1), make(config.replace(seed=1), seed=9)):
        assert rooms.config.replace(device="auto") == config
        assert rooms.num_worlds == 3
        assert rooms.init().worlds.equal(expected.worlds)
    assert not rooms.init(seed=0).worlds.equal(expected.worlds)
    for name, value in (("action_check", "raise"), ("strict", True), ("cameras", doorstep.Cameras())):
        refuses(f"^{name} is .*; it must be ", make, 1, argument=name, **{name: value})
    for arguments in ({"seed": -1}, {"seed": 2**32}, {"world_offset": 2**32}, {"seed": 1.5}):
        refuses(next(iter(arguments)), make(1).init, **arguments)
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError, match=r"pass sim.config"):
        make(sim)
    refuses(r"'num_agent' is not a field .*did you mean 'num_agents'", make, 2, num_agent=3)
