"""Worlds in tensors are a simulator's, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.scenes import random_actions

import doorstep

torch = pytest.importorskip("torch")

from doorstep.torch import _batch_operators, make  # noqa: E402

REORDERED = ("agent_index", ("lidar", 0.5), "physics", "steps_remaining", ("self_observations", 3))


def assert_same(sim: doorstep.Simulator, state: Any) -> None:
    for name, tensor in sim.tensors.items():
        assert state.tensors[name].numpy().tobytes() == tensor.copy_to_host().tobytes(), name


@pytest.mark.parametrize("num_agents", [1, 2, 5])
@pytest.mark.parametrize("observations", ["by_name", doorstep.OBSERVATIONS, REORDERED])
def test_steps_are_those_of_a_simulator(num_agents: int, observations: Any) -> None:
    with doorstep.Simulator(
        70, seed=9, num_agents=num_agents, episode_length=11, observations=observations
    ) as sim:
        rooms = make(sim.config)
        state = rooms.init(seed=9)
        for step, actions in enumerate(random_actions(4, 30, 70, num_agents)):
            resets = np.zeros((70, 1), np.int32)
            resets[step % 70] = step % 3 == 0
            sim.actions.to_numpy()[:], sim.resets.to_numpy()[:] = actions, resets
            sim.step()
            assert rooms.step(state, torch.from_numpy(actions), torch.from_numpy(resets)) is state
        assert_same(sim, state)


def test_the_first_levels_are_those_of_the_seed_and_offset() -> None:
    with doorstep.Simulator(6, seed=11, world_offset=500) as sim:
        assert_same(sim, make(sim.config).init(seed=11, world_offset=500))


def test_rows_of_worlds_may_be_moved() -> None:
    rooms = make(4)
    state, other = rooms.init(seed=1), rooms.init(seed=2)
    other.worlds.copy_(state.worlds.flip(0))
    actions = torch.from_numpy(random_actions(0, 1, 4)[0])
    rooms.step(state, actions)
    rooms.step(other, actions.flip(0))
    assert torch.equal(other.lidar.flip(0), state.lidar)
    assert torch.equal(other.worlds.flip(0), state.worlds)


def test_a_simulator_may_be_closed_and_stays_as_it_was() -> None:
    with doorstep.Simulator(3, seed=4) as sim:
        before = sim.hash()
        rooms = make(sim.config)
        rooms.step(rooms.init(0))
        assert sim.hash() == before
    assert rooms.step(rooms.init(0)).steps_remaining.eq(199).all()


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (torch.zeros(3, 2, 4, dtype=torch.int32), r"actions is .*\[3, 2, 4\]"),
        (torch.zeros(2, 2, 4), r"actions is .*float32"),
        (torch.zeros(2, 2, 4, dtype=torch.bool), r"actions is .*bool"),
        (torch.zeros(2, 2, 4, dtype=torch.int32, device="meta"), r"actions is .*on meta; it must be .*on cpu"),
        ([[[0] * 4] * 2] * 2, r"actions is list"),
    ],
)
def test_actions_of_another_kind_are_refused(actions: Any, message: str) -> None:
    rooms = make(2)
    state = rooms.init(0)
    worlds = state.worlds.clone()
    with pytest.raises(doorstep.ArgumentError, match=message):
        rooms.step(state, actions)
    assert torch.equal(state.worlds, worlds)


def test_a_refused_step_changes_neither_worlds_nor_inputs() -> None:
    rooms = make(2)
    state = rooms.init(0)
    before = {name: tensor.clone() for name, tensor in state.tensors.items()}
    with pytest.raises(doorstep.ArgumentError, match="resets is"):
        rooms.step(state, torch.ones(2, 2, 4, dtype=torch.int32), torch.ones(3, 1, dtype=torch.int32))
    assert all(torch.equal(state.tensors[name], tensor) for name, tensor in before.items())
    with pytest.raises(doorstep.ArgumentError, match="state is"):
        rooms.step(state.worlds)  # type: ignore[arg-type,unused-ignore]


def test_resets_may_be_bool() -> None:
    rooms = make(2)
    state, other = rooms.init(0), rooms.init(0)
    rooms.step(state, resets=torch.tensor([[False], [True]]))
    rooms.step(other, resets=torch.tensor([[0], [1]], dtype=torch.int32))
    assert torch.equal(state.worlds, other.worlds)
    assert not torch.equal(state.worlds, rooms.step(rooms.init(0)).worlds)


def test_each_operator_loads_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that was saved may be the first thing that a process steps."""
    loaded: list[tuple[Any, int]] = []
    rooms = make(2, num_agents=3)
    monkeypatch.setattr(
        _batch_operators, "_prepare", lambda worlds, rules: loaded.append((worlds.device, rules.num_agents))
    )
    state = rooms.init(0)
    assert loaded == [(torch.device("cpu"), 3)]
    rooms.step(state)
    assert loaded == [(torch.device("cpu"), 3)] * 2


def test_a_state_whose_tensors_share_memory_is_refused() -> None:
    rooms = make(2)
    state = rooms.init(0)
    state.tensors["final_lidar"] = state.tensors["lidar"]
    worlds = state.worlds.clone()
    with pytest.raises(doorstep.ArgumentError, match="lidar is partly the same memory as"):
        rooms.step(state)
    assert torch.equal(state.worlds, worlds)


def test_worlds_that_are_none_are_refused() -> None:
    rooms = make(2)
    state = rooms.init(0)
    state.worlds.fill_(-1)
    with pytest.raises(doorstep.StateError, match="worlds"):
        rooms.step(state)


@pytest.mark.parametrize(
    ("name", "value"), [("action_check", "raise"), ("strict", True), ("cameras", doorstep.Cameras())]
)
def test_rules_that_only_a_simulator_has_are_refused(name: str, value: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"^{name} is .*; it must be ") as caught:
        make(1, **{name: value})
    assert caught.value.argument == name


def test_a_batch_is_made_from_a_config_or_from_its_fields() -> None:
    config = doorstep.SimulatorConfig(3, seed=9, world_offset=5, num_agents=1, device="auto")
    expected = make(config).init(seed=9, world_offset=5)
    for rooms in (make(config), make(3, seed=9, world_offset=5, num_agents=1), make(config.replace(seed=1), seed=9)):
        assert rooms.config.replace(device="auto") == config
        assert rooms.num_worlds == 3
        assert rooms.init().worlds.equal(expected.worlds)
    assert not rooms.init(seed=0).worlds.equal(expected.worlds)


def test_a_simulator_in_place_of_its_config_is_refused() -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError, match=r"pass sim.config"):
        make(sim)  # type: ignore[arg-type]
    with pytest.raises(doorstep.ArgumentError, match=r"'num_agent' is not a field .*did you mean 'num_agents'"):
        make(2, num_agent=3)


@pytest.mark.parametrize("arguments", [{"seed": -1}, {"seed": 2**32}, {"world_offset": 2**32}, {"seed": 1.5}])
def test_seeds_out_of_range_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(doorstep.ArgumentError, match=next(iter(arguments))):
        make(1).init(**arguments)


def test_a_state_says_what_it_has() -> None:
    state = make(1, observations="by_name").init(0)
    with pytest.raises(AttributeError, match="no 'observations'"):
        _ = state.observations
