"""Environments over an engine: each is what its requests and its actions make of it, in whatever order they come."""

import threading
import time

import numpy as np
import pytest
from tests.pkg.rollouts.playing import GOAL_AT_START, NUM_INPUTS, Gate, divides, is_soon, play_again, still
from tests.refuses import assert_refused

import doorstep
from doorstep import ArgumentError, ClosedError, EpisodeRequest, RolloutConfig, SimulatorConfig, rollouts
from doorstep.errors import StateError
from doorstep.rollouts import AsyncEpisodes

LEVEL = doorstep.levels.curated()["two rooms"]


def request_of(env, episode):
    return EpisodeRequest(seed=env + 100 * episode, max_steps=3 + (env + episode) % 7)


def actions_for(observations):
    """By each observation alone."""
    actions = np.zeros((*observations.shape[:2], 4), np.int32)
    actions[..., 0], actions[..., 2] = 3, 2
    actions[..., 1] = (np.abs(observations[..., :5].sum(-1)) * 64).astype(np.int32) % 8
    return actions


def config_of(worlds, replicas=1, **fields):
    return RolloutConfig(SimulatorConfig(worlds, num_threads=1, **fields), devices=("cpu",) * replicas)


def turn(env, seconds=30):
    """What was received, for which actions were sent."""
    received = env.recv(seconds)
    env.send(actions_for(received[0]), received[4]["env_id"])
    return received


def results_until(env, count):
    """The results of so many episodes, as they are received, with those of episodes that failed."""
    results = []
    while len(results) < count:
        try:
            results += filter(None, turn(env)[4]["result"])
        except StateError as error:  # noqa: PERF203
            results.append(error.result)
            env.send(np.zeros((1, 1, 4), np.int32), [error.result.request.tag])  # begins its next episode
    return results


def test_environments_play_their_requests_in_any_order():
    """In parts, one by one, with fewer or more worlds than environments, on several replicas."""
    draw = np.random.default_rng(3)
    for worlds, replicas, batch_size in ((12, 1, 12), (12, 1, 5), (4, 3, 1), (64, 2, 7), (6, 2, 12)):
        config, seen, kept, ended = config_of(worlds, replicas), [[] for _ in range(12)], [], [0] * 12
        with AsyncEpisodes(config, num_envs=12, batch_size=batch_size, request=request_of) as env:
            while min(ended) < 5:
                observations, rewards, terminated, truncated, info = env.recv(30)
                assert len(observations) <= batch_size
                actions = actions_for(observations)
                kept.append((observations, rewards, observations.copy(), rewards.copy()))
                for row, number in enumerate(info["env_id"].tolist()):
                    result, steps = info["result"][row], seen[number]
                    assert info["elapsed_step"][row] == len(steps)
                    assert terminated[row] + truncated[row] == (result is not None)
                    if result is None:
                        assert steps or (rewards[row] == 0).all()
                        steps.append((observations[row], rewards[row], actions[row]))
                        continue
                    assert result.request.seed == number + 100 * ended[number]
                    ended[number] += 1
                    assert np.array_equal([one[0] for one in steps], result.observations)
                    assert np.array_equal([*[one[1] for one in steps][1:], rewards[row]], result.rewards)
                    assert np.array_equal([one[2] for one in steps], result.actions)
                    assert np.array_equal(observations[row], result.last_observations)
                    play_again(result).close()
                    steps.clear()
                for part in np.array_split(draw.permutation(len(observations)), draw.integers(1, 4)):
                    env.send(actions[part], info["env_id"][part])
            for observations, rewards, as_observed, as_rewarded in kept:  # what was returned is not overwritten
                assert np.array_equal(observations, as_observed)
                assert np.array_equal(rewards, as_rewarded)


def test_the_default_requests_are_the_references_levels():
    with AsyncEpisodes(config_of(3, 2), num_envs=5) as env:
        assert (env.num_envs, env.batch_size) == (5, 3)
    with AsyncEpisodes(config_of(3)) as env:
        assert (env.num_envs, env.batch_size) == (3, 3)
        assert sorted(result.request.seed for result in results_until(env, 9)) == list(range(9))


def test_the_requests_policy_plays_the_other_agents():
    with AsyncEpisodes(config_of(2), agents=[1], request=lambda env, k: EpisodeRequest(policy="idle", seed=env)) as env:
        for step in range(20):
            observations, rewards, _, _, info = env.recv()
            assert (observations.shape, rewards.shape) == ((2, 1, NUM_INPUTS), (2, 1))
            assert (observations[:, 0, -1] == 1).all()  # the agent's index
            env.send(np.full((2, 1, 4), (3 if step else 2**40, 0, 2, 0)), info["env_id"])
        for result in results_until(env, 2):
            assert (result.actions[:, 0] == doorstep.NEUTRAL_ACTION).all()
            assert (result.actions[1:20, 1] == (3, 0, 2, 0)).all()
            assert (result.actions[0, 1] == (2**31 - 1, 0, 2, 0)).all()  # which is clamped when it is played


def test_goals_limits_and_deadlines_end_episodes():
    fields = [{"level": LEVEL}, {"level": LEVEL, "deadline": 1e-6}, {"level": GOAL_AT_START}]
    config = config_of(3, max_levels=1)
    with AsyncEpisodes(config, request=lambda env, k: EpisodeRequest(max_steps=4, **fields[env])) as env:
        reasons = {0: set(), 1: set(), 2: set()}
        while not all(reasons.values()):
            *_, terminated, truncated, info = turn(env)
            for row, result in enumerate(info["result"]):
                if result is not None:
                    assert (terminated[row], truncated[row]) == (result.reason == "goal", result.reason != "goal")
                    reasons[int(info["env_id"][row])].add(result.reason)
        assert reasons == {0: {"time"}, 1: {"expired"}, 2: {"goal"}}


# ---- Waiting


def test_fewer_are_returned_if_no_others_can_follow():
    with AsyncEpisodes(config_of(5), batch_size=3) as env:
        assert len(turn(env)[0]) == 3
        assert len(env.recv(30)[0]) == 2


def test_a_timeout_is_measured_by_a_clock_and_loses_nothing():
    gate = Gate()
    with AsyncEpisodes(config_of(2), agents=[1], request=lambda env, k: EpisodeRequest(policy=gate)) as env:
        start = time.monotonic()
        with pytest.raises(TimeoutError, match="0 environments are ready"):  # noqa: PT012
            while True:
                turn(env, 0.1)
        assert time.monotonic() - start >= 0.1
        gate.open.set()
        assert len(env.recv(30)[0]) == 2


def test_a_dead_replica_lets_others_go_on():
    with AsyncEpisodes(config_of(2, 2), batch_size=4, request=request_of) as env:
        results_until(env, 1)
        env.engine._core.handle.end_replica(0)
        results = results_until(env, 20)
        for result in results:
            play_again(result).close()  # those that began anew, too
        assert {result.request.tag for result in results} == {0, 1, 2, 3}


# ---- The end


@pytest.mark.parametrize("state", ["new", "received", "sent in part", "sent", "waiting", "closed engine"])
def test_closing_from_any_state_does_not_hang(state):
    env, raised = AsyncEpisodes(config_of(4, 2), batch_size=8), []
    if state != "new":
        observations, *_, info = env.recv()
        sent = slice({"sent": 8, "sent in part": 3, "waiting": 3}.get(state, 0))
        env.send(actions_for(observations)[sent], info["env_id"][sent])

    def wait():
        try:
            while True:
                env.recv()
        except (ClosedError, StateError) as error:
            raised.append(error)

    if state == "waiting":
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.02)
    if state == "closed engine":
        env.engine.close()
        with pytest.raises(ClosedError):
            env.recv()
    env.close()
    env.close()
    if state == "waiting":
        waiting.join(20)
        assert raised
    for call in (env.recv, lambda: env.send(np.zeros((1, 2, 4), np.int32), [0])):
        with pytest.raises(ClosedError):
            call()


# ---- What is refused, and what fails


def test_what_is_sent_is_checked_and_changes_nothing():
    with AsyncEpisodes(config_of(4, action_check="raise")) as env:
        observations, *_, info = env.recv()
        ids, good = info["env_id"], actions_for(observations)
        too_large = good.copy()
        too_large[2, 1, 3] = 2
        wrong = [(good[:3], "actions"), (good.astype(np.float32), "actions"), (too_large, "actions[2, 1, 3]")]
        rows = [({"actions": actions, "env_id": ids}, message) for actions, message in wrong]
        for env_id, message in ((ids[[0, 1, 2, 2]], "different"), ([0, 1, 2, 4], "different"), (ids[None], "env_id")):
            rows += [({"actions": good, "env_id": env_id}, message)]
        assert_refused(env.send, rows)
        env.send(good, ids)
        assert_refused(env.send, [({"actions": good, "env_id": ids}, "different environments")])
        env.recv()
        with pytest.raises(StateError, match="all environments have been received"):
            env.recv()


def failing_once(policy):
    """Requests, of which environment 1's first one has this policy."""
    return lambda env, k: EpisodeRequest(policy=policy if (env, k) == (1, 0) else "idle", max_steps=4, seed=env)


@pytest.mark.parametrize("on_error", ["raise", "return"])
def test_an_episode_that_fails_is_told_once_and_the_others_go_on(on_error):
    request = failing_once(divides)
    with AsyncEpisodes(config_of(3), batch_size=3, agents=[1], request=request, on_error=on_error) as env:
        results = results_until(env, 13)
        failed = [(one.request.tag, one.error) for one in results if one.reason == "failed"]
        assert failed == [(1, "ZeroDivisionError: by the policy")]
        assert {one.request.tag for one in results if one.finished} == {0, 1, 2}


@pytest.mark.parametrize("is_received", [False, True], ids=["before it is received", "before it is sent"])
def test_an_episode_fails_while_its_actions_are_awaited(is_received):
    fails = threading.Event()

    request = failing_once(lambda rows: divides(fails.wait(30)))
    with AsyncEpisodes(config_of(3), agents=[1], request=request, on_error="return") as env:
        ready = env._exchange.ready
        assert is_soon(lambda: len(ready) == 3)
        first = env.recv(30) if is_received else None
        fails.set()
        assert is_soon(lambda: 1 in ready and ready[1].ended is not None)
        if first:
            assert first[4]["result"].tolist() == [None] * 3
            env.send(actions_for(first[0]), first[4]["env_id"])
        results = results_until(env, 12)
        assert [one.request.tag for one in results if one.reason == "failed"] == [1]
        assert {one.request.tag for one in results} == {0, 1, 2}


def test_a_request_that_cannot_be_made_changes_nothing():
    for second, error in (
        (lambda: 1 // 0, ZeroDivisionError),
        (lambda: EpisodeRequest(level=LEVEL), ArgumentError),  # for which there is no room
        (int, ArgumentError),
    ):
        is_bad = True

        def request(env, episode, second=second):
            if is_bad and (env, episode) == (1, 1):  # noqa: B023
                return second()
            return EpisodeRequest(seed=10 * env + episode, max_steps=2)

        with AsyncEpisodes(config_of(3), request=request) as env:
            seeds = []
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


def test_what_it_receives_from_cannot_wait_for_it():
    is_made = threading.Event()

    def receives(rows):
        assert is_made.wait(30)
        try:
            env.recv()
        except StateError as error:
            raised.append(str(error))
        return still(rows)

    raised = []
    with AsyncEpisodes(config_of(2), agents=[1], request=lambda e, k: EpisodeRequest(policy=receives)) as env:
        is_made.set()
        for _ in range(3):
            turn(env)
    assert "a policy would wait for the engine that calls it" in raised[0]


def test_wrong_arguments_are_named():
    pushed = RolloutConfig(SimulatorConfig(4), controller=rollouts.RoundRobinController())
    wrong = {"on_error": (None,), "num_envs": (5, 0), "batch_size": (0,), "agents": ([], [1, 0], [2])}
    wrong.update(request=(3, lambda env, k: 3), config=(3, pushed))
    rows = [({name: value}, name) for name, values in wrong.items() for value in values]
    assert_refused(lambda **given: AsyncEpisodes(**{"config": config_of(4), **given}), rows)
