"""The requests of an engine on actors: each gets one result, whatever happens to the chunks. Needs no Ray."""

from __future__ import annotations

import threading
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep import ArgumentError, ClosedError, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.levels import Level, Room, Spawn, reference
from doorstep.ray import ActorsLostError, RayConfig
from doorstep.ray.player import Player
from doorstep.ray.policy import RayPolicy
from doorstep.ray.requests import Chunk, Requests
from doorstep.rollouts.policies import NamedPolicy
from doorstep.rollouts.request import Recorded

SIMULATOR = SimulatorConfig(2)


def made(**fields: Any) -> Requests:
    return Requests(RolloutConfig(SIMULATOR, **fields), raises=False)


def some(count: int) -> list[EpisodeRequest]:
    return [EpisodeRequest(seed=seed, max_steps=1 + seed) for seed in range(count)]


def taken(requests: Requests, most: int = 4, *, is_idle: bool = True) -> Chunk:
    chunk = requests.take_chunk(most, is_idle=is_idle)
    assert chunk is not None
    return chunk


def played(chunk: Chunk) -> list[doorstep.EpisodeResult | str]:
    """What an actor would answer."""
    with RolloutEngine(SIMULATOR) as engine:
        futures = [engine.future(request) for request in chunk.requests]
        return [future.result() for future in futures]


def test_chunks_are_taken_in_order_and_answered() -> None:
    requests = made()
    ids = requests.submit(some(6), None)
    first, second = taken(requests), taken(requests)
    assert first.ids + second.ids == ids
    assert requests.take_chunk(4, is_idle=True) is None
    assert requests.take_results(10, 0.0) == []
    requests.answer(second, played(second))
    requests.answer(first, played(first))
    assert requests.outstanding == 6
    results = requests.take_results(10, None)
    assert [result.id for result in results] == second.ids + first.ids
    assert [result.request.seed for result in results] == [4, 5, 0, 1, 2, 3]
    assert [result.length for result in results] == [5, 6, 1, 2, 3, 4]
    assert requests.outstanding == 0
    assert requests.take_results(10, None) == []


def test_results_own_their_arrays() -> None:
    requests = made()
    requests.submit([EpisodeRequest(record="observations", max_steps=3)], None)
    chunk = taken(requests)
    (answer,) = played(chunk)
    assert isinstance(answer, doorstep.EpisodeResult)
    for array in vars(answer).values():
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    requests.answer(chunk, [answer])
    (result,) = requests.take_results(1, None)
    for name in ("returns", "max_y", "actions", "observations", "rewards", "last_observations"):
        own, given = getattr(result, name), getattr(answer, name)
        assert own.flags.writeable
        assert not np.shares_memory(own, given)
        np.testing.assert_array_equal(own, given)


def test_a_lost_chunk_comes_first_and_alone() -> None:
    requests = made()
    requests.submit(some(12), None)
    chunk = taken(requests)
    chunk.losses += 1
    requests.put_back(chunk)
    assert requests.take_chunk(4, is_idle=False) is None
    assert taken(requests) is chunk
    assert taken(requests, is_idle=False).ids[0] == chunk.ids[-1] + 1


def test_what_makes_one_request_fail_fails_no_other() -> None:
    requests = made()
    requests.submit(some(3), None)
    chunk = taken(requests)
    answers = played(chunk)
    requests.answer(chunk, [answers[0], "KeyError: 'x'", answers[2]])
    reasons = [(result.reason, result.error) for result in requests.take_results(3, None)]
    assert reasons == [("time", ""), ("failed", "KeyError: 'x'"), ("time", "")]


def test_only_waiting_requests_are_cancelled() -> None:
    requests = made()
    ids = requests.submit(some(5), None)
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


def test_the_end_answers_everything_once() -> None:
    requests = made()
    ids = requests.submit(some(9), None)
    lost, _ = taken(requests, 2), taken(requests, 3)
    requests.put_back(lost)
    lost.losses += 1
    requests.end(ActorsLostError("all gone", hint="look"))
    assert requests.take_chunk(1, is_idle=True) is None
    results = requests.take_results(99, None)
    assert [result.id for result in results] == ids
    assert {(result.reason, result.error) for result in results} == {("failed", "all gone")}
    calls: list[Any] = [lambda: requests.take_results(1, None), lambda: requests.submit(some(1), None)]
    for call in [*calls, lambda: requests.drain(None)]:
        with pytest.raises(ActorsLostError, match="all gone") as caught:
            call()
        assert caught.value.hint == "look"


def test_callers_that_wait_are_told_the_end() -> None:
    requests = made(queue_capacity=2)
    requests.submit(some(2), None)
    taken(requests, 1)
    told: list[Any] = []

    def wait(call: Any) -> None:
        try:
            told.append(call())
        except ClosedError as error:
            told.append(error)

    calls = [lambda: requests.submit(some(4), None), lambda: requests.drain(None)]
    threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    while (requests.outstanding < 6 or len(requests._waiting) < 2) and time.monotonic() < deadline:
        time.sleep(0.001)
    requests.end(ActorsLostError("all gone"))
    for thread in threads:
        thread.join(30)
    assert [type(one) for one in told] == [ActorsLostError] * 2
    assert sorted(len(getattr(one, "ids", [])) for one in told) == [0, 1]
    assert len(requests.take_results(99, None)) == 3


def test_submission_waits_for_room_and_times_out() -> None:
    requests = made(queue_capacity=3)
    ids = requests.submit(some(5), 0.0)
    assert len(ids) == 3
    assert requests.outstanding == 3
    assert requests.submit(some(1), 0.0) == []
    assert taken(requests, 9).ids == ids
    assert len(requests.submit(some(2), 0.0)) == 2


ALONE = Level(walls=[], rooms=[Room(0, 20)], spawns=[Spawn(0, 2)])


@pytest.mark.parametrize(
    "submitted",
    [
        [3],
        [EpisodeRequest(), "x"],
        [EpisodeRequest(policy=("idle",))],
        [EpisodeRequest(), EpisodeRequest(level=ALONE)],
        [EpisodeRequest(), EpisodeRequest(level=reference())],
    ],
)
def test_requests_are_refused_as_by_an_engine_here(submitted: Any) -> None:
    config = RolloutConfig(SIMULATOR)
    with RolloutEngine(config) as engine, pytest.raises(ArgumentError) as expected:
        engine.submit(submitted)
    requests = Requests(config, raises=False)
    with pytest.raises(ArgumentError) as caught:
        requests.submit(submitted, None)
    assert str(caught.value) == str(expected.value)
    assert caught.value.argument == expected.value.argument
    assert requests.outstanding == 0
    assert requests.take_chunk(1, is_idle=True) is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"policy": ("idle", len)}, "policy is <built-in function len>"),
        ({"deadline": 1.0}, "it must be one without a deadline"),
        ({"record": ("actions", "stream")}, "it must be one that records no 'stream'"),
    ],
)
def test_what_actors_cannot_do_is_refused(fields: dict[str, Any], message: str) -> None:
    requests = made()
    with pytest.raises(ArgumentError) as caught:
        requests.submit([EpisodeRequest(), EpisodeRequest(**fields)], None)
    assert message in str(caught.value)
    assert requests.outstanding == 0


def test_unanswered_requests_have_as_many_policies_as_the_config_allows() -> None:
    requests = made(max_policies=2)
    one, other, third = (EpisodeRequest(policy=RayPolicy(object())) for _ in range(3))
    requests.submit([one], None)
    requests.submit([other, other], None)
    with pytest.raises(ArgumentError, match="2 policies already"):
        requests.submit([third], None)
    chunk = taken(requests, 1)
    requests.fail(chunk, "an error")
    requests.submit([third], None)
    with pytest.raises(ArgumentError, match="2 policies already"):
        requests.submit([one], None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_actors": 0}, "num_actors is 0; it must be an integer, 1 to 4096"),
        ({"cpus_per_actor": 1.5}, "cpus_per_actor is 1.5; it must be a part of one, or a whole number"),
        ({"gpus_per_actor": 2.5}, "gpus_per_actor is 2.5"),
        ({"gpus_per_actor": -1}, "gpus_per_actor is -1"),
        ({"chunk": 0}, "chunk is 0"),
        ({"max_losses": 0}, "max_losses is 0"),
        ({"start_timeout": 0}, "start_timeout is 0"),
    ],
)
def test_configs_are_checked(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        RayConfig(**fields)
    assert message in str(caught.value)


def test_records_that_actors_refuse_are_all_that_are_refused() -> None:
    requests = made()
    kinds: tuple[Recorded, ...] = ("actions", "observations", "log_probs", "values", "states", "trace")
    requests.submit([EpisodeRequest(record=kind) for kind in kinds], None)
    assert requests.outstanding == len(kinds)


def answer_all(requests: Requests) -> list[doorstep.EpisodeResult]:
    """What an actor would make of each chunk, as the requests tell it."""
    player = Player(RolloutConfig(SIMULATOR).to_json())
    player.ready()
    assert player._engine is not None
    with player._engine:
        while (chunk := requests.take_chunk(4, is_idle=True)) is not None:
            requests.answer(chunk, player.play(chunk.requests, chunk.continuations))
    return requests.take_results(1000, None)


def test_a_request_plays_several_episodes_wherever_chunks_divide_it() -> None:
    state = doorstep.Simulator(1, seed=3, num_threads=1).save([0])
    asked = [
        EpisodeRequest(seed=1, n=7, max_steps=9, policy="random", record="log_probs"),
        EpisodeRequest(seed=2, max_steps=3),
        EpisodeRequest(state=state, seed=5, n=3, max_steps=8, policy="random"),
    ]
    with RolloutEngine(SIMULATOR) as engine:
        expected = engine.run(asked)
    requests = made()
    ids = requests.submit(asked, None)
    results = answer_all(requests)
    assert [result.id for result in results] == ids
    assert [result.request for result in results] == [one for one in asked for _ in range(one.n)]
    for result, own in zip(results, expected, strict=True):
        assert (result.continuation, result.state_hash) == (own.continuation, own.state_hash)
        assert (result.log_probs is None) == (own.log_probs is None)
        assert result.log_probs is None or result.log_probs.tobytes() == own.log_probs.tobytes()  # type: ignore[union-attr]


def test_episodes_that_are_not_played_tell_which_they_are() -> None:
    requests = made()
    ids = requests.submit([EpisodeRequest(n=4)], None)
    assert requests.cancel(ids[2])
    requests.end(ClosedError("closed"))
    assert sorted((result.id, result.continuation) for result in requests.take_results(9, None)) == list(
        zip(ids, range(4), strict=True)
    )


def test_what_policies_do_not_tell_fails_its_requests_alone() -> None:
    requests = made()
    records: tuple[Recorded, ...] = ("values", "actions", "log_probs")
    requests.submit([EpisodeRequest(max_steps=1, policy="idle", record=record) for record in records], None)
    failed, *others = answer_all(requests)
    assert (failed.reason, [other.reason for other in others]) == ("failed", ["time", "time"])
    assert "no policy has a value head" in failed.error


def test_a_name_is_what_it_stands_for_when_an_actor_gets_the_request() -> None:
    requests = made()
    named = [EpisodeRequest(seed=seed, max_steps=20, policy=("it", "idle")) for seed in range(4)]
    with pytest.raises(ArgumentError, match="policy is 'it'"):
        requests.submit(named, None)
    requests.name_policy(NamedPolicy("it", "idle", "idle"))
    requests.submit(named * 3, None)
    before = taken(requests)
    requests.name_policy(NamedPolicy("it", "random", "random"))
    middle = taken(requests)
    requests.forget_name("it")
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


def test_memory_grows_with_the_requests_that_find_room() -> None:
    requests = made(queue_capacity=100)
    tracemalloc.start()
    try:
        assert len(requests.submit([EpisodeRequest(n=2**24)], 0.01)) == 100
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
