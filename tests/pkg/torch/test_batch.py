"""Worlds in tensors are a simulator's, bit for bit, in every step."""

import numpy as np
import pytest
from tests.envs.histories import REORDERED
from tests.refuses import refuses
from tests.scenes import random_actions

import doorstep
from doorstep import levels
from doorstep.levels import GeneratedLevel, Level, Physics, Room, Spawn

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


OPTIONS = {"episode_length": 6, "max_levels": 4}


def table_of():
    """A hall, two levels that come with doorstep, and the generator with other rules."""
    spawns = (Spawn(-5, (0, 2)), Spawn(5, 0))
    hall = Level(spawns=spawns, rooms=(Room(0, 40),), physics=Physics(friction=(0.5, 1.5)), episode_length=(2, 6))
    first, second = list(levels.curated().values())[:2]
    return [hall, first, GeneratedLevel(room_types=("any", "any", "any")), second]


@pytest.mark.parametrize(("num_agents", "observations"), [(1, doorstep.OBSERVATIONS), (2, REORDERED), (5, "by_name")])
def test_steps_are_those_of_a_simulator(num_agents, observations):
    """Of two agents on levels, whose table and weights change."""
    rules = {"num_agents": num_agents, "observations": observations, "world_offset": 500}
    rules |= OPTIONS if num_agents == 2 else {"episode_length": 11}
    reward = doorstep.Rewards(progress=0.5, idle=-0.25) if num_agents == 2 else None
    draw, played = np.random.default_rng(1), set()
    with doorstep.Simulator(70, seed=9, num_threads=1, reward=reward, **rules) as sim:
        rooms = make(sim.config, reward=reward)
        state = rooms.init()
        assert_same(sim, state)
        if num_agents == 2:
            rooms.set_levels(table_of())
            sim.set_levels(table_of())
            state.level_weights.fill_(1)
        for step, actions in enumerate(random_actions(4, 40, 70, num_agents)):
            if num_agents == 2 and step == 15:
                sim.level_weights[:] = weights = draw.random((70, 4), np.float32)
                state.level_weights.copy_(torch.from_numpy(weights))
            resets = draw.integers(0, 10, (70, 1), np.int32) == 0
            sim.actions.to_numpy()[:], sim.resets.to_numpy()[:] = actions, resets
            sim.step()
            given = torch.from_numpy(resets)
            assert rooms.step(state, torch.from_numpy(actions), given if step % 2 else given.int()) is state
            assert_same(sim, state)
            played |= set(state.level_indices[:, 0].tolist()) if num_agents == 2 else set()
    assert num_agents != 2 or played == {0, 1, 2, 3}
    assert rooms.step(rooms.init(0)).steps_remaining.gt(0).any()  # the simulator may be closed


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
        assert rooms.init().worlds.equal(expected.worlds)
    assert not rooms.init(seed=0).worlds.equal(expected.worlds)
    for name, value in (("action_check", "raise"), ("strict", True), ("cameras", doorstep.Cameras())):
        refuses(f"^{name} is .*; it must be ", make, 1, argument=name, **{name: value})
    for arguments in ({"seed": -1}, {"seed": 2**32}, {"world_offset": 2**32}, {"seed": 1.5}):
        refuses(next(iter(arguments)), make(1).init, **arguments)
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError, match=r"pass sim.config"):
        make(sim)
    refuses(r"'num_agent' is not a field .*did you mean 'num_agents'", make, 2, num_agent=3)


# ---- Levels


def test_the_first_levels_are_those_of_the_table():
    rooms = make(200, levels=table_of(), **OPTIONS)
    state = rooms.init()
    assert set(state.level_indices[:, 0].tolist()) == {0, 1, 2, 3}
    assert state.level_weights.eq(1).all()
    for weights in (torch.tensor([0.0, 0, 0, 2]), torch.tensor([[0.0, 0, 0, 2]] * 200)):
        only = rooms.init(level_weights=weights)
        assert only.level_indices.eq(3).all()
        assert only.level_weights.eq(weights).all()
    rooms.set_levels(table_of()[:2])
    fewer = rooms.init()
    assert fewer.level_weights[0].tolist() == [1, 1, 0, 0]
    assert set(fewer.level_indices[:, 0].tolist()) == {0, 1}
    plain, without = make(200).init(5), make(200, **OPTIONS).init(5)
    assert torch.equal(plain.lidar, without.lidar)


def curriculum(rooms, state, actions):
    """A rollout that moves the weights of worlds from the levels that they have played to the others."""
    shown = []
    for step_actions in actions:
        played = torch.nn.functional.one_hot(state.level_indices[:, 0].long(), 4)
        state.level_weights.mul_(1 - 0.5 * played * state.dones[:, :1, 0])
        rooms.step(state, step_actions)
        shown.append(state.level_indices.clone())
    return torch.stack(shown)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.usefixtures("inductor")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compiled_rollouts_on_levels_are_the_same(backend):
    rooms = make(5, levels=table_of(), episode_length=3, max_levels=4)
    compiled = torch.compile(curriculum, fullgraph=True, backend=backend)
    state, expected = rooms.init(8), rooms.init(8)
    for seed in (1, 2):
        actions = torch.from_numpy(random_actions(seed, 5, 5))
        assert torch.equal(compiled(rooms, state, actions), curriculum(rooms, expected, actions))
        assert_equal_states(state, expected)
        rooms.set_levels(table_of()[::-1])


def test_tables_and_weights_are_checked_as_a_simulator_does():
    rooms, plain = make(3, levels=table_of(), **OPTIONS), make(2)
    table, alone = rooms._level_table.clone(), Level(spawns=(Spawn(0, 0),), rooms=(Room(0, 40),))
    refuses("max_levels", rooms.set_levels, [*table_of(), table_of()[0]])
    refuses("spawns", make, 1, levels=[alone], **OPTIONS)
    for wrong in ([], [3], "levels", 3):
        refuses("^levels", rooms.set_levels, wrong)
    assert torch.equal(rooms._level_table, table)
    for wrong in (torch.ones(2, 4), torch.ones(3), torch.ones(3, 4, dtype=torch.int32), [1, 1, 1, 1]):
        refuses(None, rooms.init, level_weights=wrong, argument="level_weights")
    state = rooms.init()
    for wrong in (torch.ones(3, 5), torch.ones(3, 4, dtype=torch.float64), None):
        state.tensors["level_weights"] = wrong
        refuses(None, rooms.step, state, argument="level_weights")
    refuses(None, plain.init, level_weights=torch.ones(2, 1), argument="max_levels")
    refuses(None, plain.set_levels, table_of(), argument="max_levels")
    refuses("worlds is of shape", make(2, **OPTIONS).step, plain.init())
    assert "level_indices" not in plain.init().tensors


def test_no_words_crash_a_step():
    """The operator gets the table as a tensor that anyone may write."""
    rooms = make(32, num_agents=2, **OPTIONS, levels=table_of())
    state, draw = rooms.init(), np.random.default_rng(3)
    table_in_place, valid = rooms._level_table, rooms._level_table.clone()
    actions = torch.from_numpy(random_actions(1, 6, 32))
    for run in range(20):
        spoilt = torch.from_numpy(draw.random(tuple(valid.shape)) < (1, 0.05)[run % 2])
        table_in_place.copy_(valid)
        table_in_place[spoilt] = torch.from_numpy(draw.integers(-(2**31), 2**31, int(spoilt.sum()), np.int32))
        for each in actions:
            rooms.step(state, each, torch.ones(32, 1, dtype=torch.int32))
    table_in_place.copy_(valid)
    rooms.step(state, actions[0], torch.ones(32, 1, dtype=torch.int32))
    assert torch.isfinite(state.lidar).all()
