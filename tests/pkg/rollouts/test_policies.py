"""Who chooses the actions: native policies, callables of Python, one for each agent; and their failures."""

from __future__ import annotations

import functools
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg.rollouts.playing import SHUFFLED, assert_equal_results, play_again, results_of, some_requests, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, rollouts
from doorstep.policy import SamplingParams
from doorstep.rollouts import native_policies

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, late_infinity, mlp  # noqa: E402 (they need torch)


def _network(seed: int = 1, *widths: int) -> Any:
    torch.manual_seed(seed)
    module = mlp(*(widths or (32,)))
    for parameter in module.parameters():
        parameter.data *= 3  # so that actions differ
    return module


# ---- Native policies


def test_policies_see_the_time_that_a_request_leaves_wherever_observations_have_it() -> None:
    requests = some_requests(20, policy=doorstep.load_policy(_network(1)), record="observations")
    with RolloutEngine(SimulatorConfig(6, num_threads=2, observations=SHUFFLED)) as engine:
        for result in results_of(engine, requests):
            play_again(result, observations=SHUFFLED).close()
    without = ("lidar", "agent_index")
    with RolloutEngine(SimulatorConfig(6, num_threads=2, observations=without)) as engine:
        for result in results_of(engine, some_requests(20, record="observations")):
            play_again(result, observations=without).close()


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(),
        SamplingParams(greedy=True),
        SamplingParams(temperature=0.5, top_p=0.8, seed=3),
        SamplingParams(temperature=0),
    ],
)
@pytest.mark.parametrize("seed_of_layers", [1, 2])
def test_actions_of_a_native_policy_follow_from_the_request(sampling: SamplingParams, seed_of_layers: int) -> None:
    policy = doorstep.load_policy(_network(seed_of_layers))
    requests = some_requests(20, policy=policy, sampling=sampling, record="observations")
    with RolloutEngine(SimulatorConfig(6, num_threads=2)) as engine:
        for result in results_of(engine, requests):
            play_again(result).close()
            if sampling.greedy or sampling.temperature == 0:
                expected = policy.act(result.observations, sampling=SamplingParams(greedy=True))
                assert (result.actions == expected).all()


def test_a_policy_chooses_in_an_engine_as_it_does_alone() -> None:
    """By its own sampling where the request has none."""
    module = _network()
    greedy = doorstep.load_policy(module, sampling=SamplingParams(greedy=True))
    seeded = doorstep.load_policy(module, sampling=SamplingParams(temperature=2.0, seed=3))
    with RolloutEngine(SimulatorConfig(6)) as engine:
        for result in results_of(engine, some_requests(10, policy=(greedy, "random"), record="observations")):
            assert (result.actions[:, :1] == greedy.act(np.ascontiguousarray(result.observations[:, :1]))).all()
        given = {"policy": seeded, "sampling": SamplingParams(temperature=2.0, seed=3)}
        expected = results_of(engine, some_requests(10, **given))
        assert_equal_results(results_of(engine, some_requests(10, policy=seeded)), expected)
        seeds, steps = [one.request.seed for one in expected], [one.request.max_steps for one in expected]
        ids = engine.submit_batch(seeds, max_steps=steps, policy=seeded).tolist()
        assert_equal_results(sorted(engine, key=lambda result: ids.index(result.id)), expected)


def test_policies_that_act_in_one_step_act_as_each_does_alone() -> None:
    """With few rows and with many; with memory, before and after a callable that the replica waits for."""
    torch.manual_seed(5)
    recurrent = [[torch.nn.GRU(NUM_INPUTS, size), torch.nn.Linear(size, NUM_LOGITS)] for size in (3, 7)]
    others = [_network(seed) for seed in range(9)]
    policies = [_network(1), recurrent[0], _network(2, 5, 9), walk, recurrent[1], *others]
    chosen = [policies[0] if index % 2 else policies[index // 2 % len(policies)] for index in range(110)]
    requests = [EpisodeRequest(seed=seed, policy=one, max_steps=4) for seed, one in enumerate(chosen)]
    with RolloutEngine(SimulatorConfig(len(requests), num_threads=2)) as together:
        found = together.run(requests)
    with RolloutEngine(SimulatorConfig(1)) as alone:
        assert_equal_results(found, alone.run(requests))


def test_policies_of_a_tuple_that_choose_differently_need_a_sampling() -> None:
    one, other = (doorstep.load_policy(_network(), sampling=SamplingParams(seed=seed)) for seed in (1, 2))
    requests = [EpisodeRequest(policy=(one, other), sampling=SamplingParams()), EpisodeRequest(policy=(one, one))]
    with RolloutEngine(SimulatorConfig(2)) as engine:
        with pytest.raises(doorstep.ArgumentError, match=r"^sampling is None; it must be given where the policies"):
            engine.submit(EpisodeRequest(policy=(one, other)))
        assert all(result.finished for result in results_of(engine, requests))


# ---- Weights that change, move or are not finite


def test_changed_weights_are_played_from_the_next_submission_on() -> None:
    module = _network()
    policy = doorstep.load_policy(module, sampling=SamplingParams(greedy=True))
    with RolloutEngine(RolloutConfig(SimulatorConfig(2), devices=("cpu", "cpu"))) as engine:
        for change in range(4):
            for result in results_of(engine, some_requests(6, policy=policy, record="observations")):
                assert (policy.act(result.observations) == result.actions).all(), change
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.normal_()


class Gate:
    """A callable policy that lets some steps pass."""

    def __init__(self) -> None:
        self.passing, self.waiting = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, observations: NDArray[np.float32]) -> NDArray[np.int32]:
        self.waiting.release()
        assert self.passing.acquire(timeout=30)
        return np.zeros((len(observations), 4), np.int32)

    def wait(self) -> None:
        assert self.waiting.acquire(timeout=30)


@pytest.fixture
def renewed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_policies, "RENEWAL_SECONDS", 0.0)


@pytest.mark.usefixtures("renewed_at_once")
def test_episodes_that_are_played_go_on_with_changed_weights_and_their_memory() -> None:
    torch.manual_seed(3)
    memory, head = torch.nn.GRU(NUM_INPUTS, 16), torch.nn.Linear(16, NUM_LOGITS)
    policy = doorstep.load_policy([memory, head], sampling=SamplingParams(greedy=True))
    old, gate = policy.freeze(), Gate()
    with RolloutEngine(SimulatorConfig(1)) as engine:
        engine.submit(EpisodeRequest(seed=2, policy=(policy, gate), max_steps=9, record="observations"))
        for step in range(9):
            gate.wait()  # the other agent has acted in this step
            if step == 4:
                with torch.no_grad():
                    head.weight.neg_()
                    head.bias.neg_()
            gate.passing.release()
        (result,) = list[Any](engine)
    state = policy.initial_state(1, 1)
    for step, observations in enumerate(result.observations[:, None, :1]):
        expected = (old if step < 5 else policy).act(np.ascontiguousarray(observations), state)
        assert (expected[0] == result.actions[step, :1]).all(), step


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.usefixtures("renewed_at_once")
def test_weights_that_move_fail_the_episodes_and_are_not_read(is_large: bool) -> None:
    """Large arrays are mapped by themselves: reading them when they are gone would crash."""
    module = mlp(2048 if is_large else 8)
    policy, gate = doorstep.load_policy(module), Gate()
    with RolloutEngine(SimulatorConfig(1), on_error="return") as engine:
        engine.submit(EpisodeRequest(policy=(policy, gate), max_steps=100))
        gate.wait()
        gate.passing.release()
        gate.wait()
        module.share_memory()
        gate.passing.release()
        gate.passing.release()
        (result,) = engine
        assert result.reason == "failed"
        assert result.error.startswith("StateError: module.0.weight is no longer what the policy reads")
        with pytest.raises(doorstep.StateError, match=r"^module\.0\.weight is no longer"):
            engine.submit([EpisodeRequest(), EpisodeRequest(policy=policy)])
        assert not engine.outstanding
        assert results_of(engine, some_requests(2, policy=doorstep.load_policy(module)))[1].finished


def test_weights_may_be_freed_at_any_time() -> None:
    """Each of many modules loses its memory while an engine plays it."""
    with RolloutEngine(RolloutConfig(SimulatorConfig(8), max_policies=200), on_error="return") as engine:
        for index in range(20):
            module = mlp(512)
            engine.submit([EpisodeRequest(policy=doorstep.load_policy(module)) for _ in range(8)])
            engine.get_outputs(timeout=0.001 * index)
            for parameter in module.parameters():
                parameter.untyped_storage().resize_(0)
        results = list(engine)
    assert {result.error[:21] for result in results if not result.finished} <= {"StateError: module.0."}


def test_logits_that_are_not_finite_fail_the_episode() -> None:
    """With the step and the agent. The step was made, so that the result is that of its actions."""
    policy = doorstep.load_policy(late_infinity(), sampling=SamplingParams(greedy=True))
    requests = [
        EpisodeRequest(seed=3, policy=one, max_steps=10, record="observations")
        for one in ((policy, "idle"), ("idle", policy), policy)
    ]
    others = some_requests(9)
    with RolloutEngine(SimulatorConfig(3, num_threads=2), on_error="return") as engine:
        expected, results = results_of(engine, others), results_of(engine, [*requests, *others])
        assert_equal_results(results[3:], expected)
        for result, agent in zip(results, (0, 1, 0), strict=False):
            assert (result.reason, result.length, result.finished) == ("failed", 7, False)
            assert result.error.startswith(f"the logits of agent {agent} were not finite in step 6 (counted from 0)")
            assert (result.actions[6] == doorstep.NEUTRAL_ACTION).all()
            play_again(result).close()
        assert engine.metrics is not None
        assert engine.metrics.total("requests_answered", reason="failed", cause="logits").value == 3
    assert policy.nonfinite_rows == 0


def test_recurrent_policies_begin_anew_with_every_episode() -> None:
    torch.manual_seed(3)
    memory, head = torch.nn.LSTM(NUM_INPUTS, 16), torch.nn.Linear(16, NUM_LOGITS)
    policy = doorstep.load_policy([memory, head], sampling=SamplingParams(greedy=True))
    greedy = SamplingParams(greedy=True)
    requests = some_requests(30, policy=policy, sampling=greedy, record="observations")
    with RolloutEngine(SimulatorConfig(4)) as engine:
        for result in results_of(engine, requests):
            state = policy.initial_state(1, 2)
            for observations, actions in zip(result.observations, result.actions, strict=True):
                assert (policy.act(observations[None], state, sampling=greedy)[0] == actions).all()


def test_the_same_weights_act_equally_natively_and_in_python() -> None:
    module = _network()
    native = doorstep.load_policy(module)

    def in_python(observations: NDArray[np.float32]) -> Any:
        logits = native.forward(observations[:, None])[:, 0]
        parts = np.split(logits, np.cumsum(doorstep.ACTIONS)[:-1], axis=1)
        return np.stack([part.argmax(axis=1) for part in parts], axis=1)

    greedy = SamplingParams(greedy=True)
    with RolloutEngine(SimulatorConfig(6)) as engine:
        natively = results_of(engine, some_requests(30, policy=native, sampling=greedy))
        assert_equal_results(results_of(engine, some_requests(30, policy=in_python)), natively)


def test_time_left_is_seen_as_in_a_simulator_of_this_length() -> None:
    policy = doorstep.load_policy(_network())
    requests = some_requests(20, policy=policy)
    with RolloutEngine(SimulatorConfig(6)) as engine:
        results = results_of(engine, requests)
    with RolloutEngine(SimulatorConfig(6, episode_length=1000)) as engine:
        assert_equal_results(results_of(engine, requests), results)
    with RolloutEngine(SimulatorConfig(6, max_levels=1)) as engine:
        for result, other in zip(results_of(engine, requests), results, strict=True):
            assert (result.returns == other.returns).all()


def test_a_policy_that_does_not_fit_fails_its_episodes() -> None:
    wrong = doorstep.load_policy(torch.nn.Linear(NUM_INPUTS + 3, NUM_LOGITS))
    with RolloutEngine(SimulatorConfig(4), on_error="return") as engine:
        results = results_of(engine, [EpisodeRequest(policy=wrong), EpisodeRequest(max_steps=3)])
    assert [result.reason for result in results] == ["failed", "time"]
    assert "the observations have 94" in results[0].error


# ---- Callables


def test_a_callable_gets_the_observations_of_its_agents() -> None:
    seen = []

    def policy(observations: NDArray[np.float32]) -> Any:
        assert observations.dtype == np.float32
        seen.append(observations.copy())
        observations[:] = np.nan  # it is a copy
        return torch.ones(len(observations), 4, dtype=torch.int64)

    with RolloutEngine(SimulatorConfig(1)) as engine:
        request = EpisodeRequest(policy=("idle", policy), max_steps=10, record="observations")
        (result,) = results_of(engine, [request])
    assert (np.concatenate(seen) == result.observations[:, 1]).all()
    assert (result.actions[:, 1] == 1).all()
    assert (result.actions[:, 0] == doorstep.NEUTRAL_ACTION).all()


def test_every_agent_may_have_a_policy_of_its_own() -> None:
    native = doorstep.load_policy(_network())
    policies = ["random", "idle", walk, native]
    greedy = SamplingParams(greedy=True)
    requests = [
        EpisodeRequest(seed=5, max_steps=20, policy=(one, other), sampling=greedy, record="observations")
        for one in policies
        for other in policies
    ]
    with RolloutEngine(SimulatorConfig(8)) as engine:
        results = results_of(engine, requests)
    for result in results:
        play_again(result).close()
        for agent, policy in enumerate(result.request.policy):
            if policy == "idle":
                assert (result.actions[:, agent] == doorstep.NEUTRAL_ACTION).all()
            elif policy is walk:
                assert (result.actions[:, agent] == walk(result.observations[:, agent])).all()
            elif policy is native:
                seen = np.ascontiguousarray(result.observations[:, agent : agent + 1])
                expected = native.act(seen, sampling=greedy)[:, 0]
                assert (result.actions[:, agent] == expected).all()


def test_what_a_callable_remembers_of_an_agent_begins_anew_with_each_episode() -> None:
    def count(observations: NDArray[np.float32], steps: Any = None) -> Any:
        """Turns by the number of steps that it has seen of the agent's episode."""
        steps = np.zeros((len(observations), 1)) if steps is None else steps
        return np.concatenate([np.zeros((len(observations), 2)), steps % 5, 0 * steps], 1).astype(int), steps + 1

    requests = some_requests(12, policy=("idle", count), record="actions")
    with RolloutEngine(SimulatorConfig(3)) as engine:
        for result in results_of(engine, requests):
            assert result.actions[:, 1, 2].tolist() == [step % 5 for step in range(result.length)]


class _Actor:
    def act(self, observations: NDArray[np.float32]) -> NDArray[np.int32]:
        return np.zeros((len(observations), 4), np.int32)

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, observations: NDArray[np.float32]) -> NDArray[np.int32]:
        return self.act(observations)


def test_numbers_of_policies_are_used_again() -> None:
    actor = _Actor()
    with RolloutEngine(RolloutConfig(SimulatorConfig(4), max_policies=2)) as engine:
        for index in range(10):  # new ones, as training makes them
            policy = functools.partial(lambda value, rows: np.full((len(rows), 4), value), index % 2)
            (result,) = results_of(engine, [EpisodeRequest(policy=policy, max_steps=3, record="actions")])
            assert (result.actions == index % 2).all()
        for other in ("random", "idle", _Actor(), actor):
            assert results_of(engine, [EpisodeRequest(policy=other, max_steps=2)])[0].finished
        engine.submit([EpisodeRequest(policy=(actor, "random")), EpisodeRequest(policy=actor)])
        with pytest.raises(doorstep.ArgumentError, match="2 policies already"):
            engine.submit(EpisodeRequest(policy="idle"))
        assert len(list(engine)) == 2
        engine.submit(EpisodeRequest(policy="idle"))


@dataclass(frozen=True)
class Equal:
    """Equal to all others, which act differently."""

    value: int = field(compare=False)

    def __call__(self, observations: NDArray[np.float32]) -> NDArray[np.int32]:
        return np.full((len(observations), 4), self.value, np.int32)

    act = __call__


def test_policies_that_are_equal_are_different_ones() -> None:
    one, other = Equal(0), Equal(1)
    assert one == other
    fields: dict[str, Any] = {"max_steps": 3, "record": "actions"}
    with RolloutEngine(SimulatorConfig(4)) as engine:
        for first, second in ((one, other), (one.act, other.act)):
            requests = [EpisodeRequest(policy=policy, **fields) for policy in (first, second, (second, first))]
            results = results_of(engine, requests)
            assert [result.actions[0, :, 0].tolist() for result in results] == [[0, 0], [1, 1], [1, 0]]


def test_methods_are_one_policy() -> None:
    class Counter:
        def act(self, observations: NDArray[np.float32]) -> NDArray[np.int32]:
            return np.zeros((len(observations), 4), np.int32)

    counter = Counter()
    with RolloutEngine(RolloutConfig(SimulatorConfig(4), max_policies=1)) as engine:
        engine.submit([EpisodeRequest(policy=counter.act, max_steps=50) for _ in range(5)])
        engine.submit(EpisodeRequest(policy=counter.act, max_steps=2))
        assert len(list(engine)) == 6


# ---- Failures


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.zeros((1, 4), np.float32), "float32"),
        (np.zeros((7, 4), np.int32), "[7, 4]"),
        (np.zeros(4, np.int32), "[4]"),
        (None, "object"),
        ("up", "it must return integers"),
        (torch.zeros(1, 3, dtype=torch.int32), "[1, 3]"),
    ],
)
def test_what_a_policy_returns_is_checked(returned: Any, message: str) -> None:
    with RolloutEngine(SimulatorConfig(1), on_error="return") as engine:
        request = EpisodeRequest(policy=("idle", lambda _: returned), max_steps=5)
        (result,) = results_of(engine, [request])
        assert (result.reason, result.length, result.state_hash) == ("failed", 0, 0)
        assert message in result.error
        assert result.error.startswith("ArgumentError: the policy returned ")
        assert results_of(engine, some_requests(3))[0].finished


def test_a_policy_that_raises_fails_its_own_episodes_before_the_step() -> None:
    calls = []

    def raises_later(observations: NDArray[np.float32]) -> NDArray[np.int32]:
        calls.append(len(observations))
        if len(calls) == 8:
            raise ValueError("no more")
        return np.zeros((len(observations), 4), np.int32)

    with RolloutEngine(SimulatorConfig(4), on_error="return") as engine:
        requests = [EpisodeRequest(seed=1, max_steps=20, policy=raises_later, record="observations")]
        others = some_requests(20)
        expected = results_of(engine, others)
        failed, *rest = results_of(engine, [*requests, *others])
        assert (failed.reason, failed.length, failed.error) == ("failed", 7, "ValueError: no more")
        assert not failed.finished
        assert len(failed.actions) == len(failed.rewards) == 7
        play_again(failed, episode_length=20).close()  # it has the state before the step that was not made
        assert_equal_results(rest, expected)


def test_every_result_has_the_error_of_its_own_failure() -> None:
    def raises(observations: NDArray[np.float32]) -> Any:
        raise RuntimeError(f"{threading.current_thread().name} {next(numbers)}")

    numbers = iter(range(1000))
    with RolloutEngine(SimulatorConfig(1), on_error="return") as engine:
        errors = [result.error for result in results_of(engine, some_requests(20, policy=raises))]
    assert [error.partition(" doorstep-policies-")[0] for error in errors] == ["RuntimeError:"] * 20
    assert [int(error.split()[-1]) for error in errors] == list(range(20))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_no_exception_of_a_policy_ends_the_engine(error: type[BaseException]) -> None:
    def raises(observations: NDArray[np.float32]) -> Any:
        raise error

    with RolloutEngine(SimulatorConfig(2), on_error="return") as engine:
        assert {result.reason for result in results_of(engine, some_requests(5, policy=raises))} == {"failed"}
        assert results_of(engine, some_requests(1))[0].finished


def test_actions_out_of_range_are_clamped_or_an_error() -> None:
    def far(observations: NDArray[np.float32]) -> Any:
        return np.full((len(observations), 4), 2**40)

    with RolloutEngine(SimulatorConfig(1)) as engine:
        (result,) = results_of(engine, [EpisodeRequest(policy=far, max_steps=3)])
    with RolloutEngine(SimulatorConfig(1)) as engine:
        largest = np.array(doorstep.ACTIONS, np.int32) - 1
        request = EpisodeRequest(policy=lambda rows: np.tile(largest, (len(rows), 1)), max_steps=3)
        (clamped,) = results_of(engine, [request])
    assert (result.returns == clamped.returns).all()
    assert result.finished
    with RolloutEngine(SimulatorConfig(1, action_check="raise"), on_error="return") as engine:
        (result,) = results_of(engine, [EpisodeRequest(policy=far, max_steps=3)])
    assert result.reason == "failed"
    assert "it must be 0 to 3" in result.error


def test_a_slow_policy_does_not_stop_those_who_wait() -> None:
    entered, release = threading.Event(), threading.Event()

    def slow(observations: NDArray[np.float32]) -> NDArray[np.int32]:
        entered.set()
        assert release.wait(30)
        return np.zeros((len(observations), 4), np.int32)

    config = RolloutConfig(SimulatorConfig(2), devices=("cpu", "cpu"), controller=rollouts.PullController())
    with RolloutEngine(config) as engine:
        first = engine.submit(EpisodeRequest(policy=slow, max_steps=2))
        assert entered.wait(30)
        start = time.monotonic()
        assert engine.get_outputs(timeout=0.05) == []
        assert 0.05 <= time.monotonic() - start < 5
        engine.submit(some_requests(10))  # the other replica plays them
        while engine.outstanding > 1:
            engine.get_outputs()
        assert not engine.drain(timeout=0.05)
        release.set()
        assert engine.drain(timeout=30)
        assert [output.id for output in engine.get_outputs()] == [first]
