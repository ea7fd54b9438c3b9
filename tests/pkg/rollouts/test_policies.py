"""Who chooses the actions: native policies, callables, one for each agent, under names; and their failures."""

import itertools
import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.pkg.rollouts import playing
from tests.pkg.rollouts.playing import Gate, acting, assert_equal_results, results_of, some_requests, still, walk
from tests.refuses import assert_refused

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.policy import SamplingParams
from doorstep.rollouts import EpisodeColumns, delivery

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, late_infinity, mlp  # noqa: E402 (they need torch)


def _network(seed=1, *widths):
    torch.manual_seed(seed)
    module = mlp(*(widths or (32,)))
    for parameter in module.parameters():
        parameter.data *= 3  # so that actions differ
    return module


# ---- Native policies


def test_policies_see_the_time_that_a_request_leaves_wherever_observations_have_it():
    policy = doorstep.load_policy(_network(1))
    for observations, fields in ((playing.SHUFFLED, {"policy": policy}), (("lidar", "agent_index"), {})):
        with RolloutEngine(SimulatorConfig(6, num_threads=2, observations=observations)) as engine:
            for result in results_of(engine, some_requests(20, record="observations", **fields)):
                playing.play_again(result, observations=observations).close()
    requests = some_requests(20, policy=policy)
    with RolloutEngine(SimulatorConfig(6)) as engine:
        results = results_of(engine, requests)
    with RolloutEngine(SimulatorConfig(6, episode_length=1000)) as engine:
        assert_equal_results(results_of(engine, requests), results)
    with RolloutEngine(SimulatorConfig(6, max_levels=1)) as engine:
        for result, other in zip(results_of(engine, requests), results, strict=True):
            assert (result.returns == other.returns).all()


def test_a_policy_chooses_in_an_engine_as_it_does_alone():
    """By its own sampling where the request has none; in batches as in requests."""
    module = _network()
    policy = doorstep.load_policy(module)
    greedy = doorstep.load_policy(module, sampling=SamplingParams(greedy=True))
    seeded = doorstep.load_policy(module, sampling=SamplingParams(temperature=2.0, seed=3))
    drawn = SamplingParams(temperature=0.5, top_p=0.8)
    seeds, steps = [7 * index for index in range(10)], [1 + index * 11 % 40 for index in range(10)]
    with RolloutEngine(SimulatorConfig(6, num_threads=2)) as engine:
        for result in results_of(engine, some_requests(10, policy=(greedy, "random"), record="observations")):
            assert (result.actions[:, :1] == greedy.act(np.ascontiguousarray(result.observations[:, :1]))).all()
        alike = [({"policy": seeded}, {"policy": seeded, "sampling": SamplingParams(temperature=2.0, seed=3)})]
        alike += [({"policy": policy, "sampling": drawn},) * 2, ({"policy": "random"},) * 2]
        hashes = set()
        for fields, same in alike:
            expected = results_of(engine, some_requests(10, **same))
            assert_equal_results(results_of(engine, some_requests(10, **fields)), expected)
            ids = engine.submit(EpisodeColumns(seeds, max_steps=steps, **fields)).tolist()
            assert_equal_results(playing.in_order(engine, ids), expected)
            hashes.add(tuple(result.state_hash for result in expected))
        assert len(hashes) == 3


def test_policies_that_act_in_one_step_act_as_each_does_alone():
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


def test_policies_of_a_tuple_that_choose_differently_need_a_sampling():
    one, other = (doorstep.load_policy(_network(), sampling=SamplingParams(seed=seed)) for seed in (1, 2))
    requests = [EpisodeRequest(policy=(one, other), sampling=SamplingParams()), EpisodeRequest(policy=(one, one))]
    with RolloutEngine(SimulatorConfig(2)) as engine:
        with pytest.raises(doorstep.ArgumentError, match=r"^sampling is None; it must be given where the policies"):
            engine.submit(EpisodeRequest(policy=(one, other)))
        assert all(result.finished for result in results_of(engine, requests))


# ---- Weights that move or are not finite


def test_weights_that_move_fail_the_episodes_and_are_not_read(monkeypatch):
    """Large arrays are mapped by themselves: reading them when they are gone would crash."""
    monkeypatch.setattr(delivery, "_RENEWAL_SECONDS", 0.0)
    module = mlp(2048)
    policy, passing, waiting = doorstep.load_policy(module), threading.Semaphore(0), threading.Semaphore(0)

    def gate(observations):
        waiting.release()
        assert passing.acquire(timeout=30)
        return still(observations)

    with RolloutEngine(SimulatorConfig(1), on_error="return") as engine:
        engine.submit(EpisodeRequest(policy=(policy, gate), max_steps=100))
        passing.release()
        assert all(waiting.acquire(timeout=30) for _ in range(2))
        module.share_memory()
        passing.release(2)
        (result,) = engine
        assert result.reason == "failed"
        assert result.error.startswith("StateError: module.0.weight is no longer what the policy reads")
        with pytest.raises(doorstep.StateError, match=r"^module\.0\.weight is no longer"):
            engine.submit([EpisodeRequest(), EpisodeRequest(policy=policy)])
        assert not engine.outstanding
        assert results_of(engine, some_requests(2, policy=doorstep.load_policy(module)))[1].finished


def test_logits_that_are_not_finite_fail_the_episode():
    """With the step and the agent. The step was made, so that the result is that of its actions."""
    policy = doorstep.load_policy(late_infinity(), sampling=SamplingParams(greedy=True))
    fields, others = {"seed": 3, "max_steps": 10, "record": "observations"}, some_requests(9)
    requests = [EpisodeRequest(policy=one, **fields) for one in ((policy, "idle"), ("idle", policy), policy)]
    with RolloutEngine(SimulatorConfig(3, num_threads=2), on_error="return") as engine:
        expected, results = results_of(engine, others), results_of(engine, [*requests, *others])
        assert_equal_results(results[3:], expected)
        for result, agent in zip(results, (0, 1, 0), strict=False):
            assert (result.reason, result.length, result.finished) == ("failed", 7, False)
            assert result.error.startswith(f"the logits of agent {agent} were not finite in step 6 (counted from 0)")
            assert (result.actions[6] == doorstep.NEUTRAL_ACTION).all()
            playing.play_again(result).close()
        assert engine.metrics.total("requests_answered", reason="failed", cause="logits").value == 3
        assert engine.metrics.total("nonfinite_actions").count == 4  # of the last request both agents'
    assert policy.nonfinite_rows == 0


def test_a_policy_that_does_not_fit_fails_its_episodes():
    wrong = doorstep.load_policy(torch.nn.Linear(NUM_INPUTS + 3, NUM_LOGITS))
    with RolloutEngine(SimulatorConfig(4), on_error="return") as engine:
        results = results_of(engine, [EpisodeRequest(policy=wrong), EpisodeRequest(max_steps=3)])
    assert [result.reason for result in results] == ["failed", "time"]
    assert "the observations have 94" in results[0].error


# ---- Callables


def test_every_agent_may_have_a_policy_of_its_own():
    def walks(observations):
        assert observations.dtype == np.float32
        actions = torch.from_numpy(walk(observations)).long()
        observations[:] = np.nan  # it is a copy
        return actions

    native = doorstep.load_policy(_network())
    greedy = SamplingParams(greedy=True)
    fields = {"seed": 5, "max_steps": 20, "sampling": greedy, "record": "observations"}
    pairs = itertools.product(["random", "idle", walks, native], repeat=2)
    requests = [EpisodeRequest(policy=pair, **fields) for pair in pairs]
    with RolloutEngine(SimulatorConfig(8)) as engine:
        results = results_of(engine, requests)
    for result in results:
        playing.play_again(result).close()
        for agent, policy in enumerate(result.request.policy):
            seen = np.ascontiguousarray(result.observations[:, agent : agent + 1])
            if policy == "idle":
                assert (result.actions[:, agent] == doorstep.NEUTRAL_ACTION).all()
            elif policy is walks:
                assert (result.actions[:, agent] == walk(seen[:, 0])).all()
            elif policy is native:
                assert (result.actions[:, agent] == native.act(seen, sampling=greedy)[:, 0]).all()


def test_what_a_callable_remembers_of_an_agent_begins_anew_with_each_episode():
    def count(observations, steps=None):
        """Turns by the number of steps that it has seen of the agent's episode."""
        steps = np.zeros((len(observations), 1)) if steps is None else steps
        return np.concatenate([np.zeros((len(observations), 2)), steps % 5, 0 * steps], 1).astype(int), steps + 1

    requests = some_requests(40, policy=("idle", count), record="actions")
    with RolloutEngine(RolloutConfig(SimulatorConfig(3), devices=("cpu", "cpu"))) as engine:
        for result in results_of(engine, requests):
            assert result.actions[:, 1, 2].tolist() == [step % 5 for step in range(result.length)]


@dataclass(frozen=True)
class Equal:
    """Equal to all others, which act differently; has no hash."""

    value: int = field(compare=False)

    def __call__(self, observations):
        return np.full((len(observations), 4), self.value, np.int32)

    act = __call__
    __hash__ = None


def test_numbers_of_policies_are_used_again():
    actor = Equal(0)
    with RolloutEngine(RolloutConfig(SimulatorConfig(4), max_policies=2)) as engine:
        for index in range(10):  # new ones, as training makes them
            policy = acting(*[index % 2] * 4)
            (result,) = results_of(engine, [EpisodeRequest(policy=policy, max_steps=3, record="actions")])
            assert (result.actions == index % 2).all()
        for other in ("random", "idle", Equal(1), actor):
            assert results_of(engine, [EpisodeRequest(policy=other, max_steps=2)])[0].finished
        engine.submit([EpisodeRequest(policy=(actor.act, "random")), EpisodeRequest(policy=actor.act)])  # one method
        with pytest.raises(doorstep.ArgumentError, match="2 policies already"):
            engine.submit(EpisodeRequest(policy="idle"))
        assert len(list(engine)) == 2
        engine.submit(EpisodeRequest(policy="idle"))


def test_policies_that_are_equal_are_different_ones():
    one, other = Equal(0), Equal(1)
    with RolloutEngine(SimulatorConfig(4)) as engine:
        for first, second in ((one, other), (one.act, other.act)):
            policies = first, second, (second, first)
            results = engine.run([EpisodeRequest(policy=each, max_steps=3, record="actions") for each in policies])
            assert [result.actions[0, :, 0].tolist() for result in results] == [[0, 0], [1, 1], [1, 0]]


# ---- Failures


def test_what_a_policy_returns_is_checked():
    with RolloutEngine(SimulatorConfig(1), on_error="return") as engine:
        for returned, message in (
            (np.zeros((1, 4), np.float32), "float32"),
            (np.zeros((7, 4), np.int32), "[7, 4]"),
            (np.zeros(4, np.int32), "[4]"),
            (None, "object"),
            ("up", "it must return integers"),
            (torch.zeros(1, 3, dtype=torch.int32), "[1, 3]"),
        ):
            request = EpisodeRequest(policy=("idle", lambda _, returned=returned: returned), max_steps=5)
            (result,) = results_of(engine, [request])
            assert (result.reason, result.length, result.state_hash) == ("failed", 0, 0)
            assert message in result.error
            assert result.error.startswith("ArgumentError: the policy returned ")
        assert results_of(engine, some_requests(3))[0].finished


def test_a_policy_that_raises_fails_its_own_episodes_before_the_step():
    """Each with its own error, whose kind does not matter; others and the engine go on."""

    def raises_later(kind):
        calls = []

        def policy(observations):
            calls.append(len(observations))
            if len(calls) == 8:
                raise kind(threading.current_thread().name)
            return still(observations)

        return EpisodeRequest(seed=1, max_steps=20, policy=policy, record="observations")

    kinds = (RuntimeError, KeyboardInterrupt, SystemExit, MemoryError)
    with RolloutEngine(SimulatorConfig(4), on_error="return") as engine:
        others = some_requests(20)
        expected = results_of(engine, others)
        results = results_of(engine, [*map(raises_later, kinds), *others])
        for kind, failed in zip(kinds, results, strict=False):
            assert (failed.reason, failed.length, len(failed.actions), len(failed.rewards)) == ("failed", 7, 7, 7)
            assert failed.error.startswith(f"{kind.__name__}: doorstep-policies-")
            playing.play_again(failed, episode_length=20).close()  # it has the state before the step that was not made
        assert_equal_results(results[4:], expected)


def test_actions_out_of_range_are_clamped_or_an_error():
    largest = [size - 1 for size in doorstep.ACTIONS]
    with RolloutEngine(SimulatorConfig(1)) as engine:
        policies = (lambda rows: np.full((len(rows), 4), 2**40), acting(*largest))
        result, clamped = results_of(engine, [EpisodeRequest(policy=policy, max_steps=3) for policy in policies])
    assert (result.returns == clamped.returns).all()
    assert (result.max_y == clamped.max_y).all()
    with RolloutEngine(SimulatorConfig(1, action_check="raise"), on_error="return") as engine:
        for component, size in enumerate(doorstep.ACTIONS):
            for value in (-1, 0, size - 1, size, 99):
                policy = acting(*(value * (index == component) for index in range(4)))
                (result,) = results_of(engine, [EpisodeRequest(policy=("idle", policy), max_steps=3)])
                assert result.finished == (0 <= value < size)
                assert result.finished or f"= {value}; it must be 0 to {size - 1}" in result.error


def test_a_slow_policy_does_not_stop_others_nor_change_what_its_partner_draws():
    """In the world beside it, and in another replica."""
    network = doorstep.load_policy(_network())
    for devices in (("cpu",), ("cpu", "cpu")):
        gate, others = Gate(), some_requests(10)
        with RolloutEngine(RolloutConfig(SimulatorConfig(3), devices=devices)) as engine:
            expected = engine.run(others)

            def requests(partner):
                policies = [(player, partner) for player in ("random", network)]
                return [EpisodeRequest(seed=3, policy=policy, max_steps=9) for policy in policies]

            slow = engine.future(requests(gate))
            assert gate.entered.wait(30)
            assert_equal_results(engine.run(others), expected)
            assert not any(future.done() for future in slow)
            gate.open.set()
            assert_equal_results([future.result(30) for future in slow], engine.run(requests(still)))


# ---- Policies that requests name: what is played under a name, and from when on


def hashes(results):
    return [result.state_hash for result in results]


def test_a_name_plays_what_it_stands_for():
    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        engine.policies["first"] = "random"
        engine.policies["second"] = acting(3, 0, 2, 0)
        assert (dict(engine.policies).keys(), engine.policies["first"]) == ({"first", "second"}, "random")
        for names, objects in (("first", "random"), (("first", "second"), ("random", engine.policies["second"]))):
            named = results_of(engine, some_requests(10, policy=names))
            assert [result.request.policy for result in named] == [names] * 10
            assert hashes(named) == hashes(results_of(engine, some_requests(10, policy=objects)))
        batch = engine.submit(EpisodeColumns(range(3), policy="second", max_steps=2))
        assert [result.request.policy for result in engine] == ["second"] * len(batch)
        assert 'policy="second"' in engine.metrics.to_prometheus()


@pytest.mark.parametrize(("num_replicas", "other"), [(1, "random"), (3, acting(3, 0, 2, 0))], ids=["one", "three"])
def test_another_policy_plays_the_episodes_that_begin_later(num_replicas, other):
    """Also if its name is deleted before they begin."""
    config = RolloutConfig(SimulatorConfig(1, num_threads=1), devices=("cpu",) * num_replicas)
    gate = Gate()  # which stands still
    with RolloutEngine(config) as engine:
        engine.policies["it"] = gate

        def requests(policy, *seeds):
            return [EpisodeRequest(seed=seed, policy=policy, max_steps=30) for seed in seeds]

        begun = engine.submit(requests("it", *range(num_replicas)))
        waiting = engine.submit(requests("it", *range(100, 108)))
        assert gate.entered.wait(20)
        while playing.info_of(engine).waiting > len(waiting):
            pass
        engine.policies["it"] = "idle"
        engine.policies["it"] = other  # before anything has begun with that
        waiting += engine.submit(requests("it", 200))
        del engine.policies["it"]
        gate.open.set()
        results = hashes(playing.in_order(engine, begun + waiting))
        expected = requests(still, *range(num_replicas)) + requests(other, *range(100, 108), 200)
        assert results == hashes(engine.run(expected))


def test_policies_that_were_replaced_are_forgotten():
    with RolloutEngine(RolloutConfig(SimulatorConfig(4, num_threads=1), max_policies=3)) as engine:
        for turn in range(20):
            engine.policies["it"] = acting(turn % 4, 0, 2, 0)
            engine.run([EpisodeRequest(policy="it", max_steps=1)])
        gate = Gate()
        engine.policies["it"] = gate
        engine.submit([EpisodeRequest(policy="it", max_steps=1)] * 9)
        assert gate.entered.wait(20)
        engine.policies["it"] = "idle"
        engine.policies["it"] = "random"
        with pytest.raises(doorstep.ArgumentError, match="as many as max_policies allows"):
            engine.policies["it"] = acting(0, 0, 2, 0)
        assert engine.policies["it"] == "random"
        gate.open.set()
        assert len(list(engine)) == 9


def test_unknown_names_are_refused_with_those_that_are_known():
    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        with pytest.raises(doorstep.ArgumentError, match=r"policy is 'oponent'; it must be 'random', 'idle'"):
            engine.submit(EpisodeRequest(policy="oponent"))
        engine.policies["opponent"] = "idle"
        engine.policies["other"] = "idle"
        says = "it must be 'opponent', 'other', 'random', 'idle' ... 'opponent'?"
        assert_refused(engine.submit, [(EpisodeRequest(policy=("oponent", "other")), says)], argument="policy")
        del engine.policies["opponent"]
        with pytest.raises(doorstep.ArgumentError, match=r"it must be 'other', 'random'"):
            engine.submit(EpisodeRequest(policy="opponent"))
        with pytest.raises(KeyError):
            del engine.policies["opponent"]
        refused = [(1, "idle"), ("", "idle"), ("it", 5), ("it", "scripted"), ("it", "randm"), ("it", ("idle", "idle"))]
        for name, policy in refused:
            with pytest.raises(doorstep.ArgumentError):
                engine.policies[name] = policy
        with pytest.raises(doorstep.ArgumentError, match="must be 'random'") as caught:
            engine.policies["it"] = "other"
        assert "did you mean" not in str(caught.value)
        assert caught.value.hint == "give what this name stands for: policies['other']"
        assert (dict(engine.policies), engine.outstanding) == ({"other": "idle"}, 0)
    with pytest.raises(doorstep.ClosedError):
        engine.policies["late"] = "idle"
