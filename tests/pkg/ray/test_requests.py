"""The requests of an engine on actors: each gets one result, whatever happens to the chunks. Needs no Ray."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.pkg.rollouts.playing import is_soon
from tests.refuses import assert_refused

import doorstep
from doorstep import ArgumentError, ClosedError, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.levels import reference
from doorstep.ray import ActorsLostError, RayConfig
from doorstep.ray.player import Player
from doorstep.ray.policy import RayPolicy
from doorstep.ray.requests import Requests
from doorstep.rollouts.policies import NamedPolicy

SIMULATOR = SimulatorConfig(2)


def made(**fields):
    return Requests(RolloutConfig(SIMULATOR, **fields), raises=False)


def some(count):
    return [EpisodeRequest(seed=seed, max_steps=1 + seed) for seed in range(count)]


def submitted(asked, **fields):
    """Requests, or so many, and their ids."""
    requests = made(**fields)
    return requests, requests.submit(some(asked) if isinstance(asked, int) else asked, None)


def taken(requests, most=4, *, is_idle=True):
    chunk = requests.take_chunk(most, is_idle=is_idle)
    assert chunk is not None
    return chunk


def played(chunk):
    """What an actor would answer."""
    with RolloutEngine(SIMULATOR) as engine:
        futures = [engine.future(request) for request in chunk.requests]
        return [future.result() for future in futures]


def test_chunks_are_taken_in_order_and_answered():
    """With arrays of their own: those of an actor cannot be written to."""
    asked = [EpisodeRequest(seed=seed, max_steps=1 + seed, record="observations") for seed in range(6)]
    requests, ids = submitted(asked)
    first, second = taken(requests), taken(requests)
    assert first.ids + second.ids == ids
    assert requests.take_chunk(4, is_idle=True) is None
    assert requests.take_results(10, 0.0) == []
    answers = []
    for chunk in (second, first):
        answered = played(chunk)
        for array in (one for answer in answered for one in vars(answer).values() if isinstance(one, np.ndarray)):
            array.flags.writeable = False
        requests.answer(chunk, answered)
        answers += answered
    assert requests.outstanding == 6
    results = requests.take_results(10, None)
    assert [result.id for result in results] == second.ids + first.ids
    assert [result.request.seed for result in results] == [4, 5, 0, 1, 2, 3]
    assert ([result.length for result in results], requests.outstanding) == ([5, 6, 1, 2, 3, 4], 0)
    for result, answer in zip(results, answers, strict=True):
        for name in ("returns", "max_y", "actions", "observations", "rewards", "last_observations"):
            assert getattr(result, name).flags.writeable
            np.testing.assert_array_equal(getattr(result, name), getattr(answer, name))
    assert requests.take_results(10, None) == []


def test_lost_chunks_come_first_alone_and_in_order():
    requests, _ = submitted(15)
    chunk, second = taken(requests), taken(requests)
    for lost in (chunk, second):
        lost.losses += 1
        requests.put_back(lost)
    assert requests.take_chunk(4, is_idle=False) is None
    assert taken(requests) is chunk
    assert taken(requests) is second
    assert taken(requests, is_idle=False).ids[0] == second.ids[-1] + 1


def test_what_makes_one_request_fail_fails_no_other():
    """It raises where results are taken, in their order; what is cancelled or left at the end does not."""
    for most in (1, 2, 3, 99):
        for raises in (False, True):
            requests = Requests(RolloutConfig(SIMULATOR), raises=raises)
            ids = requests.submit(some(10), None)
            chunk = taken(requests, 8)
            answers = [f"KeyError: {place}" if place in (2, 3, 5) else one for place, one in enumerate(played(chunk))]
            requests.answer(chunk, answers)
            assert requests.cancel(ids[8])
            requests.end(ClosedError("closed"))
            found, raised = [], []
            while requests.outstanding:
                try:
                    found += requests.take_results(most, None)
                except doorstep.StateError as error:
                    raised.append(error.result.id)
                    found.append(error.result)
                assert requests.outstanding == len(ids) - len(found)
            assert [result.id for result in found] == ids
            assert raised == ([ids[2], ids[3], ids[5]] if raises else [])
            ends = [("failed", f"KeyError: {place}") if place in (2, 3, 5) else ("time", "") for place in range(8)]
            ends += [("cancelled", ""), ("failed", "the engine was closed")]
            assert [(result.reason, result.error) for result in found] == ends


def test_only_waiting_requests_are_cancelled():
    requests, ids = submitted(5)
    chunk = taken(requests, 2)
    assert not requests.cancel(ids[0])
    assert requests.cancel(ids[3])
    assert not requests.cancel(ids[3])
    with pytest.raises(ArgumentError, match="an id of engine 0; this is engine"):
        requests.cancel(12345)
    other = made()
    with pytest.raises(ArgumentError, match="cancel it in the engine that gave this id"):
        requests.cancel(other.submit(some(1), None)[0])
    (result,) = requests.take_results(9, None)
    assert (result.id, result.reason, result.length, result.replica) == (ids[3], "cancelled", 0, -1)
    assert result.returns.shape == result.max_y.shape == (2,)
    requests.answer(chunk, played(chunk))
    assert taken(requests).ids == [ids[2], ids[4]]


def test_the_end_answers_everything_once():
    requests, ids = submitted([EpisodeRequest(n=9)])
    lost, _ = taken(requests, 2), taken(requests, 3)
    requests.put_back(lost)
    lost.losses += 1
    requests.end(ActorsLostError("all gone", hint="look"))
    assert requests.take_chunk(1, is_idle=True) is None
    results = requests.take_results(99, None)
    assert [(result.id, result.continuation) for result in results] == list(zip(ids, range(9), strict=True))
    assert {(result.reason, result.error) for result in results} == {("failed", "all gone")}
    for call in (
        lambda: requests.take_results(1, None),
        lambda: requests.submit(some(1), None),
        lambda: requests.drain(None),
    ):
        with pytest.raises(ActorsLostError, match="all gone") as caught:
            call()
        assert caught.value.hint == "look"


def test_callers_that_wait_are_told_the_end():
    requests, _ = submitted(2, queue_capacity=2)
    taken(requests, 1)
    with ThreadPoolExecutor() as threads:
        calls = [threads.submit(requests.submit, some(4), None), threads.submit(requests.drain, None)]
        assert is_soon(lambda: requests.outstanding == 6 and len(requests._waiting) == 2)
        requests.end(ActorsLostError("all gone"))
        told = [call.exception(30) for call in calls]
    assert [type(one) for one in told] == [ActorsLostError] * 2
    assert [len(getattr(one, "ids", [])) for one in told] == [1, 0]
    assert len(requests.take_results(99, None)) == 3


def test_submission_waits_for_room_and_times_out():
    requests = made(queue_capacity=3)
    ids = requests.submit(some(5), 0.0)
    assert (len(ids), requests.outstanding) == (3, 3)
    assert requests.submit(some(1), 0.0) == []
    assert taken(requests, 9).ids == ids
    assert len(requests.submit(some(2), 0.0)) == 2


def test_requests_are_refused_as_by_an_engine_here():
    config, requests = RolloutConfig(SIMULATOR), made()
    for submitted in (
        [3],
        [EpisodeRequest(), "x"],
        [EpisodeRequest(policy=("idle",))],
        [EpisodeRequest(), EpisodeRequest(level=reference())],
    ):
        with RolloutEngine(config) as engine, pytest.raises(ArgumentError) as expected:
            engine.submit(submitted)
        with pytest.raises(ArgumentError) as caught:
            requests.submit(submitted, None)
        assert (str(caught.value), caught.value.argument) == (str(expected.value), expected.value.argument)
    rows = [  # what actors cannot do
        ({"policy": ("idle", len)}, "policy is <built-in function len>"),
        ({"deadline": 1.0}, "it must be one without a deadline"),
        ({"record": ("actions", "stream")}, "it must be one that records no 'stream'"),
    ]
    assert_refused(lambda **one: requests.submit([EpisodeRequest(), EpisodeRequest(**one)], None), rows)
    assert requests.outstanding == 0
    assert requests.take_chunk(1, is_idle=True) is None
    kinds = ("actions", "observations", "log_probs", "values", "states", "trace")
    assert len(requests.submit([EpisodeRequest(record=kind) for kind in kinds], None)) == len(kinds)


def test_unanswered_requests_have_as_many_policies_as_the_config_allows():
    requests = made(max_policies=2)
    one, other, third = (EpisodeRequest(policy=RayPolicy(object())) for _ in range(3))
    requests.submit([one], None)
    requests.submit([other, other], None)
    with pytest.raises(ArgumentError, match="2 policies already"):
        requests.submit([third], None)
    requests.fail(taken(requests, 1), "an error")
    requests.submit([third], None)
    with pytest.raises(ArgumentError, match="2 policies already"):
        requests.submit([one], None)


def test_configs_are_checked():
    rows = [
        ({"num_actors": 0}, "num_actors is 0; it must be an integer, 1 to 4096"),
        ({"cpus_per_actor": 1.5}, "cpus_per_actor is 1.5; it must be a part of one, or a whole number"),
        ({"gpus_per_actor": 2.5}, "gpus_per_actor is 2.5"),
        ({"gpus_per_actor": -1}, "gpus_per_actor is -1"),
    ]
    rows += [({name: 0}, f"{name} is 0") for name in ("chunk", "max_losses", "start_timeout")]
    assert_refused(RayConfig, rows)


def answer_all(requests):
    """What an actor would make of each chunk, as the requests tell it."""
    player = Player(RolloutConfig(SIMULATOR).to_json())
    player.ready()
    with player._engine:
        while (chunk := requests.take_chunk(4, is_idle=True)) is not None:
            requests.answer(chunk, player.play(chunk.requests, chunk.continuations))
    return requests.take_results(1000, None)


def test_a_request_plays_several_episodes_wherever_chunks_divide_it():
    """And what no policy of it tells fails it alone."""
    state = doorstep.Simulator(1, seed=3, num_threads=1).save([0])
    asked = [
        EpisodeRequest(seed=1, n=7, max_steps=9, policy="random", record="log_probs"),
        EpisodeRequest(seed=2, max_steps=3),
        EpisodeRequest(state=state, seed=5, n=3, max_steps=8, policy="random"),
    ]
    with RolloutEngine(SIMULATOR) as engine:
        expected = engine.run(asked)
    requests, ids = submitted([*asked, EpisodeRequest(policy="idle", record="values")])
    *results, failed = answer_all(requests)
    assert "no policy has a value head" in failed.error
    assert [result.id for result in (*results, failed)] == ids
    assert [result.request for result in results] == [one for one in asked for _ in range(one.n)]
    for result, own in zip(results, expected, strict=True):
        assert (result.continuation, result.state_hash) == (own.continuation, own.state_hash)
        assert np.array_equal(result.log_probs, own.log_probs)


def test_a_name_is_what_it_stands_for_when_an_actor_gets_the_request():
    requests = made()
    named = [EpisodeRequest(seed=seed, max_steps=20, policy=("it", "other")) for seed in range(4)]
    with pytest.raises(ArgumentError, match="policy is 'it'"):
        requests.submit(named, None)
    for name in ("it", "other"):
        requests.name_policy(NamedPolicy(name, "idle", "idle"))
    requests.submit(named * 3, None)
    before = taken(requests)
    requests.name_policy(NamedPolicy("it", "random", "random"))
    middle = taken(requests)
    for name in ("it", "other"):
        requests.forget_name(name)
    assert dict(requests.named_policies) == {}
    after = taken(requests)  # which keeps it
    chunks = {"idle": before, "random": middle, "random again": after}
    for name, chunk in chunks.items():
        assert [request.policy for request in chunk.requests] == [(name.split()[0], "idle")] * 4
    with pytest.raises(ArgumentError, match="policy is 'it'"):
        requests.submit(named, None)
    for chunk in chunks.values():
        requests.answer(chunk, played(chunk))
    assert [result.request for result in requests.take_results(12, None)] == named * 3  # with the name
    with pytest.raises(KeyError):
        requests.forget_name("it")


def test_memory_grows_with_the_requests_that_find_room():
    requests = made(queue_capacity=100)
    tracemalloc.start()
    try:
        assert len(requests.submit([EpisodeRequest(n=2**24)], 0.01)) == 100
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
