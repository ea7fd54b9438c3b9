"""Worlds in tensors that play levels are a simulator's, bit for bit."""

import numpy as np
import pytest
from tests.envs.histories import REORDERED
from tests.scenes import random_actions

import doorstep
from doorstep import levels
from doorstep.levels import GeneratedLevel, Level, Physics, Room, Spawn

torch = pytest.importorskip("torch")

from tests.pkg.torch.test_batch import assert_equal_states, assert_same  # noqa: E402

from doorstep.torch import make  # noqa: E402

OPTIONS = {"episode_length": 6, "max_levels": 4}


def table_of():
    """A hall, two levels that come with doorstep, and the generator with other rules."""
    spawns = (Spawn(-5, (0, 2)), Spawn(5, 0))
    hall = Level(spawns=spawns, rooms=(Room(0, 40),), physics=Physics(friction=(0.5, 1.5)), episode_length=(2, 6))
    first, second = list(levels.curated().values())[:2]
    return [hall, first, GeneratedLevel(room_types=("any", "any", "any")), second]


@pytest.mark.parametrize(("num_worlds", "observations"), [(1, "by_name"), (70, REORDERED)])
def test_steps_are_those_of_a_simulator(num_worlds, observations):
    with doorstep.Simulator(num_worlds, seed=9, num_threads=1, observations=observations, **OPTIONS) as sim:
        rooms = make(sim.config)
        state = rooms.init()
        assert_same(sim, state)
        rooms.set_levels(table_of())
        sim.set_levels(table_of())
        state.level_weights.fill_(1)
        draw = np.random.default_rng(1)
        played = set()
        for step, actions in enumerate(random_actions(4, 40, num_worlds)):
            if step == 15:
                sim.level_weights[:] = weights = draw.random((num_worlds, 4), np.float32)
                state.level_weights.copy_(torch.from_numpy(weights))
            resets = draw.integers(0, 10, (num_worlds, 1), np.int32) == 0
            sim.actions.to_numpy()[:], sim.resets.to_numpy()[:] = actions, resets
            sim.step()
            rooms.step(state, torch.from_numpy(actions), torch.from_numpy(resets))
            assert_same(sim, state)
            played |= set(state.level_indices[:, 0].tolist())
        assert num_worlds == 1 or played == {0, 1, 2, 3}


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


def test_rows_may_be_moved():
    for rooms, names in ((make(4), ("worlds",)), (make(4, levels=table_of(), **OPTIONS), ("worlds", "level_indices"))):
        state, other = rooms.init(1), rooms.init(2)
        for name in names:
            getattr(other, name).copy_(getattr(state, name).flip(0))
        for actions in torch.from_numpy(random_actions(0, 20, 4)):
            rooms.step(state, actions)
            rooms.step(other, actions.flip(0))
            for name in ("lidar", *names):
                assert torch.equal(getattr(other, name).flip(0), getattr(state, name))


# ---- Compiled


def curriculum(rooms, state, actions):
    """A rollout that moves the weights of worlds from the levels that they have played to the others."""
    shown = []
    for step_actions in actions:
        played = torch.nn.functional.one_hot(state.level_indices[:, 0].long(), 4)
        state.level_weights.mul_(1 - 0.5 * played * state.dones[:, :1, 0])
        rooms.step(state, step_actions)
        shown.append(state.level_indices.clone())
    return torch.stack(shown)


@pytest.mark.slow
@pytest.mark.usefixtures("inductor")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compiled_rollouts_are_the_same():
    compare_compiled("inductor")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_rollouts_are_the_same_without_inductor():
    torch._dynamo.reset()
    compare_compiled("aot_eager")


def compare_compiled(backend):
    rooms = make(5, levels=table_of(), episode_length=3, max_levels=4)
    compiled = torch.compile(curriculum, fullgraph=True, backend=backend)
    state, expected = rooms.init(8), rooms.init(8)
    for seed in (1, 2):
        actions = torch.from_numpy(random_actions(seed, 5, 5))
        assert torch.equal(compiled(rooms, state, actions), curriculum(rooms, expected, actions))
        assert_equal_states(state, expected)
        rooms.set_levels(table_of()[::-1])


# ---- Mistakes


def test_tables_and_weights_are_checked_as_a_simulator_does():
    def refused(message, call):
        with pytest.raises(doorstep.ArgumentError, match=message) as caught:
            call()
        return caught.value.argument

    rooms, plain = make(3, levels=table_of(), **OPTIONS), make(2)
    table, alone = rooms._level_table.clone(), Level(spawns=(Spawn(0, 0),), rooms=(Room(0, 40),))
    refused("max_levels", lambda: rooms.set_levels([*table_of(), table_of()[0]]))
    refused("spawns", lambda: make(1, levels=[alone], **OPTIONS))
    for wrong in ([], [3], "levels", 3):
        assert refused("levels", lambda wrong=wrong: rooms.set_levels(wrong)).startswith("levels")
    assert torch.equal(rooms._level_table, table)
    for wrong in (torch.ones(2, 4), torch.ones(3), torch.ones(3, 4, dtype=torch.int32), [1, 1, 1, 1]):
        assert refused(".", lambda wrong=wrong: rooms.init(level_weights=wrong)) == "level_weights"
    state = rooms.init()
    for wrong in (torch.ones(3, 5), torch.ones(3, 4, dtype=torch.float64)):
        state.tensors["level_weights"] = wrong
        assert refused(".", lambda: rooms.step(state)) == "level_weights"
    del state.tensors["level_weights"]
    assert refused(".", lambda: rooms.step(state)) == "level_weights"
    assert refused(".", lambda: plain.init(level_weights=torch.ones(2, 1))) == "max_levels"
    assert refused(".", lambda: plain.set_levels(table_of())) == "max_levels"
    refused("worlds is of shape", lambda: make(2, **OPTIONS).step(plain.init()))
    assert make(2, levels=table_of()).config.max_levels == len(table_of())
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
