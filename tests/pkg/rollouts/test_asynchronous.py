"""Environments over an engine: each is what its requests and its actions make of it, in whatever order they come."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg.rollouts.playing import NUM_INPUTS, Gate, play_again

import doorstep
from doorstep import ArgumentError, ClosedError, EpisodeRequest, RolloutConfig, SimulatorConfig, rollouts
from doorstep.errors import StateError
from doorstep.rollouts import AsyncEpisodes

RunPython = Callable[..., str]
ENVS, ROUNDS = 12, 50
LEVEL = doorstep.levels.curated()["one door"]


def request_of(env: int, episode: int) -> EpisodeRequest:
    return EpisodeRequest(seed=env + 100 * episode, max_steps=3 + (env + episode) % 7)


def actions_for(observations: NDArray[np.float32]) -> NDArray[np.int32]:
    """By each observation alone."""
    actions = np.zeros((*observations.shape[:2], 4), np.int32)
    actions[..., 0], actions[..., 2] = 3, 2
    actions[..., 1] = (np.abs(observations[..., :5].sum(-1)) * 64).astype(np.int32) % 8
    return actions


def config_of(worlds: int, replicas: int = 1, **fields: Any) -> RolloutConfig:
    return RolloutConfig(SimulatorConfig(worlds, num_threads=1, **fields), devices=("cpu",) * replicas)


def history(config: RolloutConfig, batch_size: int, shuffle_seed: int) -> list[list[Any]]:
    """What the first rounds of every environment returned, and the results."""
    draw = np.random.default_rng(shuffle_seed)
    rows: list[list[Any]] = [[] for _ in range(ENVS)]
    with AsyncEpisodes(config, num_envs=ENVS, batch_size=batch_size, request=request_of) as env:
        while min(map(len, rows)) < ROUNDS:
            observations, rewards, terminated, truncated, info = env.recv(30)
            assert len(observations) <= batch_size
            for row, number in enumerate(info["env_id"].tolist()):
                result = info["result"][row]
                rows[number].append((
                    observations[row].tobytes(), rewards[row].tobytes(), bool(terminated[row]), bool(truncated[row]),
                    int(info["elapsed_step"][row]), None if result is None else result.state_hash,
                ))  # fmt: skip
            for part in np.array_split(draw.permutation(len(observations)), draw.integers(1, 4)):
                env.send(actions_for(observations)[part], info["env_id"][part])
    return [of_one[:ROUNDS] for of_one in rows]


HISTORY = history(config_of(ENVS), ENVS, 0)


@pytest.mark.parametrize(
    ("config", "batch_size"),
    [(config_of(ENVS), 5), (config_of(ENVS), 1), (config_of(4, 3), 4), (config_of(64, 2), 7), (config_of(6, 2), 12)],
    ids=["parts", "one by one", "three replicas", "more worlds", "all of two replicas"],
)
def test_each_environment_is_the_same_in_any_order(config: RolloutConfig, batch_size: int) -> None:
    assert history(config, batch_size, batch_size) == HISTORY


def test_rows_are_the_steps_of_the_results() -> None:
    with AsyncEpisodes(config_of(4), request=request_of) as env:
        seen: dict[int, list[Any]] = {number: [] for number in range(4)}
        ended = 0
        while ended < 20:
            observations, rewards, terminated, truncated, info = env.recv()
            actions = actions_for(observations)
            for row, number in enumerate(info["env_id"].tolist()):
                result, steps = info["result"][row], seen[number]
                assert info["elapsed_step"][row] == len(steps)
                assert terminated[row] + truncated[row] == (result is not None)
                if result is None:
                    if not steps:
                        assert (rewards[row] == 0).all()
                    steps.append((observations[row], rewards[row], actions[row]))
                    continue
                ended += 1
                assert np.array_equal([one[0] for one in steps], result.observations)
                assert np.array_equal([*[one[1] for one in steps][1:], rewards[row]], result.rewards)
                assert np.array_equal([one[2] for one in steps], result.actions)
                assert np.array_equal(observations[row], result.last_observations)
                play_again(result).close()
                steps.clear()
            env.send(actions, info["env_id"])


def test_the_default_requests_are_the_references_levels() -> None:
    with AsyncEpisodes(config_of(3)) as env:
        seeds: list[int] = []
        while len(seeds) < 9:
            observations, *_, info = env.recv()
            seeds += [result.request.seed for result in info["result"] if result is not None]
            env.send(actions_for(observations), info["env_id"])
        assert sorted(seeds) == list(range(9))


def test_the_requests_policy_plays_the_other_agents() -> None:
    with AsyncEpisodes(config_of(2), agents=[1], request=lambda env, k: EpisodeRequest(policy="idle", seed=env)) as env:
        for _ in range(20):
            observations, rewards, _, _, info = env.recv()
            assert observations.shape == (2, 1, NUM_INPUTS)
            assert rewards.shape == (2, 1)
            assert (observations[:, 0, -1] == 1).all()  # the agent's index
            env.send(np.full((2, 1, 4), (3, 0, 2, 0)), info["env_id"])


def test_levels_goals_and_deadlines_end_episodes() -> None:
    level = doorstep.levels.curated()["two rooms"]

    def request(env: int, episode: int) -> EpisodeRequest:
        return EpisodeRequest(level=level, max_steps=4, deadline=1e-6 if env else None)

    with AsyncEpisodes(config_of(2, max_levels=1), request=request) as env:
        reasons = {0: set[str](), 1: set[str]()}
        while not all(reasons.values()):
            observations, _, _, truncated, info = env.recv(30)
            for number, result, cut in zip(info["env_id"].tolist(), info["result"], truncated, strict=True):
                if result is not None:
                    assert cut
                    reasons[number].add(result.reason)
            env.send(actions_for(observations), info["env_id"])
        assert reasons == {0: {"time"}, 1: {"expired"}}


def test_what_was_returned_is_not_overwritten() -> None:
    with AsyncEpisodes(config_of(2)) as env:
        kept = []
        for _ in range(300):
            observations, rewards, *_, info = env.recv()
            kept.append((observations, rewards, observations.copy(), rewards.copy()))
            env.send(actions_for(observations), info["env_id"])
        for observations, rewards, as_observed, as_rewarded in kept:
            assert np.array_equal(observations, as_observed)
            assert np.array_equal(rewards, as_rewarded)


# ---- Waiting


def test_fewer_are_returned_if_no_others_can_follow() -> None:
    with AsyncEpisodes(config_of(5), batch_size=3) as env:
        first = env.recv()
        assert len(first[0]) == 3
        env.send(actions_for(first[0]), first[4]["env_id"])
        assert len(env.recv(30)[0]) == 2


def play_on(env: AsyncEpisodes, timeout: float) -> None:
    """Until a call raises."""
    while True:
        observations, *_, info = env.recv(timeout)
        env.send(actions_for(observations), info["env_id"])


def test_a_time_out_loses_nothing() -> None:
    gate = Gate()
    with AsyncEpisodes(config_of(2), agents=[1], request=lambda env, k: EpisodeRequest(policy=gate)) as env:
        with pytest.raises(TimeoutError, match="0 environments are ready"):
            play_on(env, 0.05)  # until the other agents are asked for
        gate.open.set()
        assert len(env.recv(30)[0]) == 2


def test_a_timeout_is_measured_by_a_clock_and_not_by_what_happens() -> None:
    gate = Gate()
    with AsyncEpisodes(config_of(2), agents=[1], request=lambda env, k: EpisodeRequest(policy=gate)) as env:
        changed = env._exchange.changed

        def wake() -> None:
            while not gate.open.is_set():
                with changed:
                    changed.notify_all()
                time.sleep(0.0005)

        waker = threading.Thread(target=wake)
        waker.start()
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            play_on(env, 0.2)
        gate.open.set()
        waker.join()
        assert time.monotonic() - start >= 0.2


def test_a_dead_replica_lets_others_go_on() -> None:
    with AsyncEpisodes(config_of(2, 2), batch_size=4, request=request_of) as env:
        observations, *_, info = env.recv(30)
        env.engine._core.handle.end_replica(0)
        ended: list[int] = []
        while len(ended) < 20:
            env.send(actions_for(observations), info["env_id"])
            observations, *_, info = env.recv(30)
            for result in info["result"]:
                if result is not None:
                    play_again(result).close()  # those that began anew, too
                    ended.append(result.request.tag)
        assert set(ended) == {0, 1, 2, 3}


# ---- The end


@pytest.mark.parametrize("state", ["new", "received", "sent in part", "sent", "waiting"])
def test_closing_from_any_state_does_not_hang(state: str) -> None:
    env = AsyncEpisodes(config_of(4, 2), batch_size=8)
    raised: list[Any] = []
    if state != "new":
        observations, *_, info = env.recv()
        actions = actions_for(observations)
        if state == "sent":
            env.send(actions, info["env_id"])
        if state in ("sent in part", "waiting"):
            env.send(actions[:3], info["env_id"][:3])
    if state == "waiting":

        def wait() -> None:
            try:
                while True:
                    env.recv()
            except (ClosedError, StateError) as error:
                raised.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.02)
    begin = time.monotonic()
    env.close()
    assert time.monotonic() - begin < 5
    env.close()
    if state == "waiting":
        waiting.join(5)
        assert raised
    for call in (env.recv, lambda: env.send(np.zeros((1, 2, 4), np.int32), [0])):
        with pytest.raises(ClosedError):
            call()


def test_closing_the_engine_closes_the_environments() -> None:
    env = AsyncEpisodes(config_of(4))
    env.recv()
    env.engine.close()
    with pytest.raises(ClosedError):
        env.recv()
    env.close()


def test_nothing_lives_on_when_environments_are_dropped() -> None:
    gc.collect()
    before = doorstep.live_counts()
    env = AsyncEpisodes(config_of(4))
    env.recv()
    dropped = weakref.ref(env)
    del env
    gc.collect()
    assert dropped() is None
    deadline = time.monotonic() + 10
    while doorstep.live_counts() != before and time.monotonic() < deadline:
        time.sleep(0.01)
        gc.collect()
    assert doorstep.live_counts() == before


def test_ctrl_c_ends_a_wait_soon(run_python: RunPython) -> None:
    code = """
import os, signal, threading, time
import doorstep, numpy as np
from doorstep.rollouts import AsyncEpisodes
gate = threading.Event()
def blocks(rows):
    gate.wait(60)
    return np.zeros((len(rows), 4), np.int32)
config = doorstep.SimulatorConfig(2)
env = AsyncEpisodes(config, agents=[1], request=lambda env, k: doorstep.EpisodeRequest(policy=blocks))
pressed = []
def press():
    time.sleep(0.1)
    pressed.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
try:
    threading.Thread(target=press).start()
    observations, *_, info = env.recv()
    env.send(np.zeros((2, 1, 4), np.int32), info["env_id"])
    env.recv()
except KeyboardInterrupt:
    print(time.monotonic() - pressed[0] < 5)  # the policy would take 60
gate.set()
env.close()
"""
    assert run_python(code) == "True\n"


@pytest.mark.parametrize("close", ["", "del env", "sys.env = env"])
def test_the_interpreter_exits_cleanly(close: str, run_python: RunPython) -> None:
    code = f"""
import sys
import doorstep
from doorstep.rollouts import AsyncEpisodes
env = AsyncEpisodes(doorstep.SimulatorConfig(4))
env.recv()
{close}
"""
    assert run_python(code) == ""


# ---- What is refused


@pytest.fixture
def env() -> Any:
    with AsyncEpisodes(config_of(4, action_check="raise")) as made:
        yield made


def test_what_is_sent_is_checked_and_changes_nothing(env: AsyncEpisodes) -> None:
    observations, *_, info = env.recv()
    ids, good = info["env_id"], actions_for(observations)
    too_large = good.copy()
    too_large[2, 1, 3] = 2
    for actions, env_id, message in (
        (good[:3], ids, "actions"),
        (good.astype(np.float32), ids, "actions"),
        (too_large, ids, r"actions\[2, 1, 3\]"),
        (good, ids[[0, 1, 2, 2]], "different environments"),
        (good, [0, 1, 2, 4], "different environments"),
        (good, ids[None], "env_id"),
    ):
        with pytest.raises(ArgumentError, match=message):
            env.send(actions, env_id)
    env.send(good, ids)
    with pytest.raises(ArgumentError, match="different environments"):
        env.send(good, ids)
    env.recv()
    with pytest.raises(StateError, match="all environments have been received"):
        env.recv()


def test_a_policy_that_raises_is_told() -> None:
    def fails(rows: Any) -> Any:
        raise ZeroDivisionError("of the other agent")

    with (
        AsyncEpisodes(config_of(2), agents=[1], request=lambda env, k: EpisodeRequest(policy=fails)) as env,
        pytest.raises(StateError, match="ZeroDivisionError: of the other agent"),
    ):
        play_on(env, 30)


def failing_first(env: int, episode: int) -> EpisodeRequest:
    """The first episode of environment 1 fails."""

    def fails(rows: Any) -> Any:
        raise ZeroDivisionError("of the other agent")

    return EpisodeRequest(policy=fails if (env, episode) == (1, 0) else "idle", max_steps=4, seed=env)


def test_an_episode_that_fails_is_told_once_and_the_others_go_on() -> None:
    with AsyncEpisodes(config_of(3), batch_size=3, agents=[1], request=failing_first) as env:
        ended: list[int] = []
        failures = 0
        while len(ended) < 12:
            try:
                observations, *_, info = env.recv(30)
            except StateError as error:
                failures += 1
                result = error.result  # type: ignore[attr-defined]
                assert (result.request.tag, result.error) == (1, "ZeroDivisionError: of the other agent")
                env.send(np.zeros((1, 1, 4), np.int32), [1])  # begins its next episode
                continue
            ended += [result.request.tag for result in info["result"] if result is not None]
            env.send(actions_for(observations), info["env_id"])
        assert failures == 1
        assert set(ended) == {0, 1, 2}


def test_a_failure_is_a_result_where_it_was_asked_for() -> None:
    with AsyncEpisodes(config_of(3), agents=[1], request=failing_first, on_error="return") as env:
        reasons: list[str] = []
        while len(reasons) < 12:
            observations, *_, info = env.recv(30)
            reasons += [result.reason for result in info["result"] if result is not None]
            env.send(actions_for(observations), info["env_id"])
        assert reasons.count("failed") == 1


@pytest.mark.parametrize("is_received", [False, True], ids=["before it is received", "before it is sent"])
def test_an_episode_fails_while_its_actions_are_awaited(is_received: bool) -> None:
    fails = threading.Event()

    def wait_and_fail(rows: Any) -> Any:
        fails.wait(30)
        raise ZeroDivisionError("of the other agent")

    def request(env: int, episode: int) -> EpisodeRequest:
        return EpisodeRequest(policy=wait_and_fail if (env, episode) == (1, 0) else "idle", max_steps=4, seed=env)

    with AsyncEpisodes(config_of(3), agents=[1], request=request, on_error="return") as env:
        await_rows(env, lambda ready: len(ready) == 3)
        first = env.recv(30) if is_received else None
        fails.set()
        await_rows(env, lambda ready: 1 in ready and ready[1].ended is not None)
        if first:
            assert first[4]["result"].tolist() == [None] * 3
            env.send(actions_for(first[0]), first[4]["env_id"])
        reasons: list[tuple[int, str]] = []
        while len(reasons) < 12:
            observations, *_, info = env.recv(30)
            reasons += [(one.request.tag, one.reason) for one in info["result"] if one is not None]
            env.send(actions_for(observations), info["env_id"])
        assert [one for one in reasons if one[1] == "failed"] == [(1, "failed")]
        assert {number for number, _ in reasons} == {0, 1, 2}


def await_rows(env: AsyncEpisodes, is_there: Callable[[dict[int, Any]], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_there(env._exchange.ready):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("second", "error"),
    [(lambda: 1 // 0, ZeroDivisionError), (lambda: EpisodeRequest(level=LEVEL), ArgumentError), (int, ArgumentError)],
    ids=["raises", "a level without room", "no request"],
)
def test_a_request_that_cannot_be_made_changes_nothing(second: Any, error: type[Exception]) -> None:
    is_bad = True

    def request(env: int, episode: int) -> EpisodeRequest:
        if is_bad and (env, episode) == (1, 1):
            return second()  # type: ignore[no-any-return]
        return EpisodeRequest(seed=10 * env + episode, max_steps=2)

    with AsyncEpisodes(config_of(3), request=request) as env:
        seeds: list[int] = []
        for _ in range(40):
            observations, *_, info = env.recv(30)
            seeds += [result.request.seed for result in info["result"] if result is not None]
            actions, ids = actions_for(observations), info["env_id"]
            try:
                env.send(actions, ids)
            except error:
                is_bad = False
                env.send(actions, ids)  # as if nothing had been
        assert not is_bad
        for number in range(3):
            played = [seed - 10 * number for seed in seeds if seed // 10 == number]
            assert played[:5] == [0, 1, 2, 3, 4]


def test_what_it_receives_from_cannot_wait_for_it() -> None:
    is_made = threading.Event()

    def receives(rows: Any) -> Any:
        assert is_made.wait(30)
        try:
            env.recv()
        except StateError as error:
            raised.append(str(error))
        return np.zeros((len(rows), 4), np.int32)

    raised: list[str] = []
    with AsyncEpisodes(config_of(2), agents=[1], request=lambda e, k: EpisodeRequest(policy=receives)) as env:
        is_made.set()
        for _ in range(3):
            observations, *_, info = env.recv(30)
            env.send(actions_for(observations), info["env_id"])
    assert raised
    assert "a policy would wait for the engine that calls it" in raised[0]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("on_error", {"on_error": None}),
        ("num_envs", {"num_envs": 5}),
        ("num_envs", {"num_envs": 0}),
        ("batch_size", {"batch_size": 0}),
        ("agents", {"agents": []}),
        ("agents", {"agents": [1, 0]}),
        ("agents", {"agents": [2]}),
        ("request", {"request": 3}),
        ("request", {"request": lambda env, k: 3}),
        ("config", {"config": 3}),
        ("config", {"config": RolloutConfig(SimulatorConfig(4), controller=rollouts.RoundRobinController())}),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=name) as caught:
        AsyncEpisodes(**{"config": config_of(4), **arguments})
    assert caught.value.argument == name
