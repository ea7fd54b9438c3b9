"""AsyncEscapeRooms: groups together are one synchronous environment; calls out of turn; what is ready first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import Array, actions_of, equal

from doorstep.errors import ArgumentError, ClosedError, StateError

pytest.importorskip("gymnasium")

import doorstep
from doorstep.envs import AsyncEscapeRooms, EscapeRoomVectorEnv
from doorstep.envs._rooms import Rooms

WORLDS, AGENTS, LENGTH, SEED, STEPS = 6, 2, 5, 11, 23
RULES: dict[str, Any] = {"num_agents": AGENTS, "episode_length": LENGTH, "num_threads": 1, "seed": SEED}


@pytest.fixture
def env() -> Iterator[AsyncEscapeRooms]:
    """Two groups of three worlds."""
    made = AsyncEscapeRooms(WORLDS, **RULES)
    yield made
    made.close()


def rows_of(observations: Any, rows: Array) -> Any:
    if isinstance(observations, dict):
        return {name: array[rows] for name, array in observations.items()}
    return observations[rows]


def idle(env: AsyncEscapeRooms) -> Array:
    return np.zeros(env.action_space.shape, int)


# ---- It is one environment ----


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("agents", ["joint", "rows"])
@pytest.mark.parametrize("num_groups", [1, 2, 3])
def test_rows_are_those_of_a_synchronous_environment_step_by_step(num_groups: int, agents: Any, kind: Any) -> None:
    rows = WORLDS * AGENTS if agents == "rows" else WORLDS
    arguments = {"agents": agents, "observations": kind, "world_offset": 40, **RULES}
    env = AsyncEscapeRooms(rows, num_groups=num_groups, **arguments)
    one = EscapeRoomVectorEnv(rows, **arguments)
    actions = actions_of(3, STEPS, WORLDS, AGENTS).reshape(STEPS, rows, -1)
    for seed in (None, 5):
        told = [(one.reset(seed=seed)[0], np.zeros(rows, np.float32), *np.zeros((2, rows), bool), {})]
        told += [one.step(actions[step]) for step in range(STEPS)]
        env.async_reset(seed=seed)
        steps = np.zeros(rows, int)
        for _ in range((STEPS + 1) * num_groups):
            *found, info = env.recv()
            ids = info["env_id"]
            assert np.ptp(steps[ids]) == 0
            step = steps[ids[0]]
            *expected, expected_info = told[step]
            equal(found[0], rows_of(expected[0], ids))
            for value, other in zip(found[1:], expected[1:], strict=True):
                equal(value, other[ids])
            check_statistics(info, expected_info, ids)
            if step < STEPS:
                env.send(actions[step][ids], ids)
            steps[ids] += 1
        assert set(steps) == {STEPS + 1}
        assert sum(other[3].any() for other in told) == (STEPS + 1) // (LENGTH + 1)
    env.close()
    one.close()


def check_statistics(info: dict[str, Any], expected: dict[str, Any], ids: Array) -> None:
    assert set(info) == {"env_id", *expected}
    for name in expected:
        if not name.startswith("_"):
            ended = expected["_" + name][ids]
            equal(info["_" + name], ended)
            equal(info[name][ended], expected[name][ids][ended])


def test_what_it_returned_keeps_its_values(env: AsyncEscapeRooms) -> None:
    env.async_reset()
    kept = []
    for actions in actions_of(1, 30, WORLDS // 2, AGENTS).reshape(30, WORLDS // 2, -1):
        step = env.recv()
        kept.append((step, [np.array(value) for value in (*step[:4], step[4]["env_id"])]))
        env.send(actions, step[4]["env_id"])
    for step, copied in kept:
        for value, expected in zip((*step[:4], step[4]["env_id"]), copied, strict=True):
            np.testing.assert_array_equal(value, expected)


def test_actions_may_be_overwritten_once_they_were_sent(env: AsyncEscapeRooms) -> None:
    one = EscapeRoomVectorEnv(WORLDS, **RULES)
    one.reset()
    env.async_reset()
    forward = np.full((WORLDS, 4 * AGENTS), 3)
    expected = one.step(forward)[0]
    batch = forward[: env.batch_size].copy()
    for _ in range(env.num_groups):
        *_, info = env.recv()
        batch[:] = 3
        env.send(batch, info["env_id"])
        batch[:] = 0
    for _ in range(env.num_groups):
        observations, *_, info = env.recv()
        np.testing.assert_array_equal(observations, expected[info["env_id"]])
    one.close()


def test_spaces_fit_what_is_sent_and_received(env: AsyncEscapeRooms) -> None:
    assert (env.num_envs, env.num_groups, env.batch_size) == (WORLDS, 2, 3)
    env.async_reset()
    observations, *_, info = env.recv()
    assert env.observation_space.contains(observations)
    assert env.single_observation_space.contains(observations[0])
    assert env.action_space.shape == (3, 4 * AGENTS)
    env.send(env.action_space.sample(), info["env_id"])


def test_step_is_send_and_receive() -> None:
    env, one = AsyncEscapeRooms(4, num_groups=1, **RULES), EscapeRoomVectorEnv(4, **RULES)
    env.async_reset()
    one.reset()
    *_, info = env.recv()
    for actions in actions_of(2, 9, 4, AGENTS).reshape(9, 4, -1):
        found, expected = env.step(actions, info["env_id"]), one.step(actions)
        for value, other in zip(found[:4], expected[:4], strict=True):
            equal(value, other)
    env.close()
    one.close()


# ---- Turns ----


def test_the_group_that_is_ready_first_is_received_first(env: AsyncEscapeRooms, monkeypatch: Any) -> None:
    """The group that was sent first seems to take longer."""
    env.async_reset()
    first, second = env.recv()[4]["env_id"], env.recv()[4]["env_id"]

    class Slow:
        """An event that ends when the other group's has been received."""

        done = False

        def wait(self, timeout: float | None) -> bool:
            assert timeout is not None, "it does not wait for one group only"
            return False

    begin = Rooms.begin

    def begin_slowly(rooms: Rooms, actions: Any) -> Any:
        begin(rooms, actions)
        return Slow()

    monkeypatch.setattr(Rooms, "begin", begin_slowly)
    env.send(idle(env), first)
    monkeypatch.undo()
    env.send(idle(env), second)
    np.testing.assert_array_equal(env.recv()[4]["env_id"], second)


def test_of_groups_that_are_ready_the_one_sent_first_is_received(env: AsyncEscapeRooms) -> None:
    env.async_reset()
    ids = [env.recv()[4]["env_id"], env.recv()[4]["env_id"]]
    for order in ([1, 0], [0, 1], [1, 0]):
        for group in order:
            env.send(idle(env), ids[group])
        for simulator in env.simulators:
            simulator.wait()
        assert [env.recv()[4]["env_id"][0] for _ in order] == [ids[group][0] for group in order]


def test_a_group_is_sent_once_for_each_time_it_is_received(env: AsyncEscapeRooms) -> None:
    env.async_reset()
    with pytest.raises(StateError, match="rows 0 to 2 were not received"):
        env.send(idle(env), [0, 1, 2])
    *_, info = env.recv()
    env.send(idle(env), info["env_id"])
    with pytest.raises(StateError, match="were not received") as caught:
        env.send(idle(env), info["env_id"])
    assert caught.value.argument == "env_id"


def test_nothing_is_received_that_was_not_sent(env: AsyncEscapeRooms) -> None:
    with pytest.raises(StateError, match="async_reset"):
        env.recv()
    with pytest.raises(StateError, match="async_reset"):
        env.send(idle(env), [0, 1, 2])
    env.async_reset()
    env.recv()
    env.recv()
    with pytest.raises(StateError, match="send"):
        env.recv()


def test_a_reset_drops_what_was_not_received(env: AsyncEscapeRooms) -> None:
    env.async_reset()
    first = {int(env.recv()[4]["env_id"][0]): None for _ in range(2)}
    env.send(idle(env), [0, 1, 2])
    env.async_reset(seed=SEED)
    expected = EscapeRoomVectorEnv(WORLDS, **RULES)
    observations, _ = expected.reset()
    for _ in first:
        found, rewards, _, truncations, info = env.recv()
        np.testing.assert_array_equal(found, observations[info["env_id"]])
        assert not rewards.any()
        assert not truncations.any()
    with pytest.raises(StateError, match="nothing to receive"):
        env.recv()
    expected.close()


def test_closing_waits_for_steps_that_run() -> None:
    env = AsyncEscapeRooms(64, **{**RULES, "num_threads": 1})
    env.async_reset()
    *_, info = env.recv()
    env.send(idle(env), info["env_id"])
    env.close()
    with pytest.raises(ClosedError):
        env.async_reset()


# ---- Bad input ----


@pytest.mark.parametrize(
    "ids",
    [[0, 1], [0, 1, 2, 3], [1, 2, 3], [2, 1, 0], [0, 0, 0], [6, 7, 8], [-3, -2, -1], [0.0, 1.0, 2.0], [[0, 1, 2]], 0],
    ids=str,
)
def test_unknown_ids_are_refused_and_change_nothing(env: AsyncEscapeRooms, ids: Any) -> None:
    env.async_reset()
    env.recv()
    env.recv()
    before = [simulator.hash() for simulator in env.simulators]
    with pytest.raises(ArgumentError) as caught:
        env.send(idle(env), ids)
    assert caught.value.argument == "env_id"
    assert [simulator.hash() for simulator in env.simulators] == before
    env.send(idle(env), [0, 1, 2])


@pytest.mark.parametrize("wrong", [np.zeros((6, 8), int), np.zeros((3, 4), int), np.full((3, 8), 0.5)])
def test_wrong_actions_are_refused_and_may_be_sent_again(env: AsyncEscapeRooms, wrong: Array) -> None:
    env.async_reset()
    *_, info = env.recv()
    with pytest.raises(ArgumentError) as caught:
        env.send(wrong, info["env_id"])
    assert caught.value.argument == "actions"
    env.send(idle(env), info["env_id"])


def test_wrong_seeds_are_refused_and_change_nothing(env: AsyncEscapeRooms) -> None:
    env.async_reset()
    *_, info = env.recv()
    env.send(idle(env), info["env_id"])
    with pytest.raises(ArgumentError) as caught:
        env.async_reset(seed=-1)
    assert caught.value.argument == "seed"
    assert {int(env.recv()[4]["env_id"][0]) for _ in range(2)} == {0, 3}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("num_envs", {"num_envs": 7}),
        ("num_envs", {"num_envs": 0}),
        ("num_envs", {"num_envs": 6, "agents": "rows"}),
        ("num_groups", {"num_groups": 0}),
        ("world_offset", {"world_offset": 2**32 - 5}),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError) as caught:
        AsyncEscapeRooms(**{"num_envs": WORLDS, **RULES, **arguments})
    assert caught.value.argument == name


# ---- Rooms ----


def test_a_step_that_runs_refuses_others() -> None:
    rooms = Rooms(2)
    rooms.start(1)
    actions = np.zeros((2, 8), int)
    with pytest.raises(StateError, match="no step has begun"):
        rooms.finish()
    rooms.begin(actions)
    for call in (lambda: rooms.begin(actions), lambda: rooms.step(actions), lambda: rooms.start(rows=[True, False])):
        with pytest.raises(StateError, match="a step is running"):
            call()
    rooms.finish()
    rooms.step(actions)
    rooms.close()


def test_the_end_of_a_step_is_awaited_before_it_is_read() -> None:
    """It takes milliseconds."""
    rooms, others = (Rooms(2000, rules={"num_threads": 1}) for _ in range(2))
    np.testing.assert_array_equal(rooms.start(SEED), others.start(SEED))
    for actions in actions_of(1, 5, 2000, AGENTS).reshape(5, 2000, -1):
        rooms.begin(actions)
        for value, expected in zip(rooms.finish(), others.step(actions), strict=True):
            equal(value, expected)
    rooms.close()
    others.close()


def test_the_example_of_the_documentation_runs() -> None:
    example = Path(__file__).resolve().parents[2] / "docs" / "examples" / "asynchronous.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(" ms") == 2
