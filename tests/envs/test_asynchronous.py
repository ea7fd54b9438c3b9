"""AsyncEscapeRooms, beside what all environments do (test_contract.py): calls out of turn; what is ready first."""

import pickle

import numpy as np
import pytest
from tests.envs.histories import actions_of, equal, output_of_example
from tests.refuses import refuses

from doorstep.errors import ClosedError, StateError

pytest.importorskip("gymnasium")

from doorstep.envs import AsyncEscapeRooms, EscapeRoomVectorEnv
from doorstep.envs._rooms import Rooms

WORLDS, AGENTS, LENGTH, SEED = 6, 2, 5, 11
RULES = {"num_agents": AGENTS, "episode_length": LENGTH, "num_threads": 1, "seed": SEED}


@pytest.fixture
def env():
    """Two groups of three worlds."""
    made = AsyncEscapeRooms(WORLDS, **RULES)
    yield made
    made.close()


def idle(env):
    return np.zeros(env.action_space.shape, int)


def test_groups_that_are_at_different_steps_are_rows_of_one_synchronous_environment(env):
    """The second group is sent twice as often."""
    one = EscapeRoomVectorEnv(WORLDS, **RULES)
    actions = actions_of(3, 12, WORLDS, AGENTS).reshape(12, WORLDS, -1)
    told = [(one.reset()[0],), *(one.step(taken) for taken in actions)]
    env.async_reset()
    ids = [env.recv()[4]["env_id"] for _ in range(2)]
    steps = [0, 0]
    for group in [1, 1, 0] * 4 + [1] * 4:
        env.send(actions[steps[group]][ids[group]], ids[group])
        steps[group] += 1
        observations, rewards, *_, info = env.recv()
        np.testing.assert_array_equal(info["env_id"], ids[group])
        equal(observations, told[steps[group]][0][ids[group]])
        equal(rewards, told[steps[group]][1][ids[group]])
        info["env_id"][:] = -1  # the caller's own


# ---- Turns ----


def test_the_group_that_is_ready_first_is_received_first(env, monkeypatch):
    """The group that was sent first seems to take longer."""
    env.async_reset()
    first, second = env.recv()[4]["env_id"], env.recv()[4]["env_id"]

    class Slow:
        """An event that ends when the other group's has been received."""

        done = False

        def wait(self, timeout):
            assert timeout is not None, "it does not wait for one group only"
            return False

    begin = Rooms.begin

    def begin_slowly(rooms, actions):
        begin(rooms, actions)
        return Slow()

    monkeypatch.setattr(Rooms, "begin", begin_slowly)
    env.send(idle(env), first)
    monkeypatch.undo()
    env.send(idle(env), second)
    np.testing.assert_array_equal(env.recv()[4]["env_id"], second)


def test_of_groups_that_are_ready_the_one_sent_first_is_received(env):
    env.async_reset()
    ids = [env.recv()[4]["env_id"], env.recv()[4]["env_id"]]
    for order in ([1, 0], [0, 1], [1, 0]):
        for group in order:
            env.send(idle(env), ids[group])
        for simulator in env.simulators:
            simulator.wait()
        assert [env.recv()[4]["env_id"][0] for _ in order] == [ids[group][0] for group in order]


def test_a_group_is_sent_once_for_each_time_it_is_received(env):
    for call in (env.recv, lambda: env.send(idle(env), [0, 1, 2])):
        refuses("async_reset", call, error=StateError)
    env.async_reset()
    refuses("rows 0 to 2 were not received", env.send, idle(env), [0, 1, 2], error=StateError)
    for _ in range(2):
        *_, info = env.recv()
    env.send(idle(env), info["env_id"])
    refuses("rows 3 to 5 were not received", env.send, idle(env), info["env_id"], error=StateError, argument="env_id")
    env.step(idle(env), [0, 1, 2])
    env.recv()
    refuses(r"nothing to receive .*async_reset\(\) or send", env.recv, error=StateError)


def test_a_reset_drops_what_was_not_received(env):
    env.async_reset()
    env.recv()
    env.send(idle(env), [0, 1, 2])
    env.async_reset(seed=SEED)
    one = EscapeRoomVectorEnv(WORLDS, **RULES)
    observations, _ = one.reset()
    for _ in range(2):
        found, rewards, _, truncations, info = env.recv()
        np.testing.assert_array_equal(found, observations[info["env_id"]])
        assert not rewards.any()
        assert not truncations.any()
    refuses("nothing to receive", env.recv, error=StateError)


def test_a_running_step_is_waited_for_before_it_is_copied_or_closed(env):
    env.async_reset()
    *_, info = env.recv()
    env.send(idle(env), info["env_id"])
    refuses("a step is running", pickle.dumps, env, error=StateError)
    env.close()
    with pytest.raises(ClosedError):
        env.async_reset()


# ---- Bad input ----


def test_wrong_ids_actions_and_seeds_are_refused_and_change_nothing(env):
    env.async_reset()
    env.recv()
    env.recv()
    before = [simulator.hash() for simulator in env.simulators]
    ids = ([0, 1], [0, 1, 2, 3], [1, 2, 3], [2, 1, 0], [0, 0, 0], [6, 7, 8], [-3, -2, -1], [0.0, 1, 2], [[0, 1, 2]], 0)
    for wrong in ids:
        refuses("env_id is", env.send, idle(env), wrong)
    for wrong in (np.zeros((6, 8), int), np.zeros((3, 4), int), np.full((3, 8), 0.5)):
        refuses("actions is", env.send, wrong, [0, 1, 2])
    assert [simulator.hash() for simulator in env.simulators] == before
    env.send(idle(env), [0, 1, 2])
    refuses("seed is -1", env.async_reset, seed=-1)
    assert env.recv()[4]["env_id"].tolist() == [0, 1, 2]


def test_wrong_arguments_are_named():
    for message, arguments in (
        ("num_envs is 7; it must be a multiple of num_groups, which is 2", {"num_envs": 7}),
        ("num_envs is 6; .* which is 2 times num_agents, which is 2", {"num_envs": 6, "agents": "rows"}),
        ("num_groups is 0", {"num_groups": 0}),
        ("world_offset is", {"world_offset": 2**32 - 5}),
    ):
        refuses(message, AsyncEscapeRooms, **{"num_envs": WORLDS, **RULES, **arguments})


def test_the_example_of_the_documentation_runs():
    assert output_of_example("asynchronous.py").count(" ms") == 2
