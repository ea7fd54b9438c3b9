"""Futures and coroutines."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from typing import Any

import pytest
from tests.pkg.rollouts.playing import Gate, assert_equal_results, results_of, some_requests, steps_of

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig


def test_futures_get_the_results_of_their_requests() -> None:
    requests = some_requests(40)
    with RolloutEngine(SimulatorConfig(8)) as engine:
        expected = results_of(engine, requests)
        futures = [engine.future(request) for request in requests]
        assert engine.drain(30)
        assert all(future.done() for future in futures)
        assert_equal_results([future.result() for future in futures], expected)
        assert [future.result().request for future in futures] == requests
        assert engine.outstanding == 0


def test_other_outputs_are_not_mixed_with_those_of_futures() -> None:
    with RolloutEngine(SimulatorConfig(4)) as engine:
        taken: list[Any] = []
        ids = engine.submit(some_requests(20))
        taker = threading.Thread(target=lambda: taken.extend(iter(engine)))  # before the first future
        taker.start()
        futures = [engine.future(request) for request in some_requests(20)]
        ids += engine.submit(some_requests(20, record="stream"))
        taker.join()
        taken.extend(engine)
        assert sorted(output.id for output in taken) == sorted(ids)
        assert not {future.result(timeout=30).id for future in futures} & set(ids)
        assert engine.get_outputs() == []
        ids = engine.submit(some_requests(3))
        assert engine.drain(30)
        assert engine.get_records()["id"].tolist() == ids


def test_a_cancelled_future_cancels_its_request() -> None:
    with RolloutEngine(SimulatorConfig(1)) as engine:
        gate = Gate()
        futures = [engine.future(EpisodeRequest(policy=gate)) for _ in range(20)]
        assert all(future.cancel() for future in futures[:-1])
        gate.open.set()
        assert futures[-1].result(timeout=30).reason == "time"
        assert engine.drain(30)
        assert steps_of(engine) <= 202  # one episode, not twenty
        with pytest.raises(concurrent.futures.CancelledError):
            futures[0].result()


def test_futures_of_a_closed_engine_fail() -> None:
    gate = Gate()
    with RolloutEngine(SimulatorConfig(1)) as engine:
        futures = [engine.future(EpisodeRequest(policy=gate)) for _ in range(5)]
        engine.close(timeout=0.05)  # it does not wait for the policy
        gate.open.set()
    results = [future.result(timeout=30) for future in futures]
    assert {result.reason for result in results} == {"failed"}
    assert {result.error for result in results} == {"the engine was closed"}
    with pytest.raises(doorstep.ClosedError):
        engine.future(EpisodeRequest())


def test_callbacks_may_submit_and_close() -> None:
    engine = RolloutEngine(SimulatorConfig(2))
    done = threading.Event()

    def again(future: Any, left: int) -> None:
        assert future.result().finished
        if left:
            engine.future(EpisodeRequest(max_steps=2)).add_done_callback(lambda made: again(made, left - 1))
        else:
            engine.close()
            done.set()

    engine.future(EpisodeRequest(max_steps=2)).add_done_callback(lambda made: again(made, 10))
    assert done.wait(30)
    engine.close()


def test_a_future_that_is_kept_does_not_keep_the_engine() -> None:
    with RolloutEngine(SimulatorConfig(2)) as engine:
        future = engine.future(EpisodeRequest(max_steps=3))
        future.result(timeout=30)
    del engine
    assert future.result().length == 3


def test_futures_of_many_requests_are_those_of_each() -> None:
    requests = some_requests(30, record="actions")
    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        each = [engine.future(request).result(30) for request in requests]
        together = [future.result(30) for future in engine.future(requests)]
        assert_equal_results(together, each)
        steps = [request.max_steps or 200 for request in requests]
        seeds = [request.seed for request in requests]
        batch = [future.result(30) for future in engine.future_batch(seeds, max_steps=steps, record="actions")]
        assert_equal_results(batch, each)
        assert [result.request for result in batch] == requests
        assert engine.future([]) == engine.future_batch([]) == []
        assert engine.drain(30)  # a future has its result a moment before its request is counted
        assert engine.outstanding == 0


def test_a_future_of_a_batch_is_cancelled_by_itself() -> None:
    gate = Gate()
    with RolloutEngine(SimulatorConfig(1)) as engine:
        futures = engine.future_batch(range(20), policy=gate, max_steps=3)
        assert all(future.cancel() for future in futures[10:])
        gate.open.set()
        assert [future.result(30).request.seed for future in futures[:10]] == list(range(10))
        assert engine.drain(30)
        assert all(future.cancelled() for future in futures[10:])


@pytest.mark.slow
def test_a_hundred_thousand_futures_take_seconds() -> None:
    with RolloutEngine(SimulatorConfig(512)) as engine:
        begin = time.process_time()
        futures = engine.future_batch(range(100_000), max_steps=1)
        assert sum(future.result(60).length for future in futures) == 100_000
        assert time.process_time() - begin < 20  # it took 42 on the clock when they were submitted one by one


def test_steps_of_futures_cannot_be_streamed() -> None:
    with RolloutEngine(SimulatorConfig(2)) as engine:
        with pytest.raises(doorstep.ArgumentError, match="'stream'"):
            engine.future(EpisodeRequest(record="stream"))
        with pytest.raises(doorstep.ArgumentError, match="'stream'"):
            engine.future_batch(range(3), record="stream")
        with pytest.raises(doorstep.ArgumentError, match="request is 3"):
            engine.future(3)  # type: ignore[call-overload]


def test_coroutines_await_results() -> None:
    requests = some_requests(100)

    async def play(engine: RolloutEngine) -> list[Any]:
        return await asyncio.gather(*(engine.play(request) for request in requests))

    # Most have to wait for room, without stopping the loop
    with RolloutEngine(RolloutConfig(SimulatorConfig(4), queue_capacity=3)) as engine:
        results = asyncio.run(play(engine))
        again = asyncio.run(play(engine))  # in another loop
    assert [result.request for result in results] == requests
    assert_equal_results(again, results)


def test_cancelling_a_task_cancels_its_request() -> None:
    async def play(engine: RolloutEngine) -> None:
        tasks = [asyncio.create_task(engine.play(EpisodeRequest(policy=gate))) for _ in range(10)]
        while not gate.entered.is_set():
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(engine.play(EpisodeRequest(policy=gate)), 0.02)

    gate = Gate()
    with RolloutEngine(SimulatorConfig(1)) as engine:
        asyncio.run(play(engine))
        gate.open.set()
        assert engine.drain(30)
        assert engine.outstanding == 0


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, ValueError])
def test_a_callback_that_raises_keeps_no_other_from_being_called(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(_: Any) -> None:
        raise error

    monkeypatch.setattr("traceback.print_exc", lambda: None)
    monkeypatch.setattr(concurrent.futures._base.LOGGER, "disabled", True)
    done = threading.Event()
    with RolloutEngine(SimulatorConfig(1)) as engine:
        gate = Gate()
        future = engine.future(EpisodeRequest(policy=gate, max_steps=20))
        future.add_done_callback(raises)
        future.add_done_callback(lambda _: done.set())
        gate.open.set()
        assert done.wait(30)
        assert engine.future(EpisodeRequest(max_steps=2)).result(30).finished  # their thread goes on


def test_a_future_whose_result_its_user_has_set_keeps_it(capfd: pytest.CaptureFixture[str]) -> None:
    with RolloutEngine(SimulatorConfig(1)) as engine:
        gate = Gate()
        future: Any = engine.future(EpisodeRequest(policy=gate, max_steps=20))
        future.set_result("mine")
        gate.open.set()
        assert engine.future(EpisodeRequest(max_steps=2)).result(30).finished
        assert engine.drain(30)
        assert future.result() == "mine"
        assert engine.outstanding == 0
    assert capfd.readouterr().err == ""


def test_results_of_others_are_outstanding_while_there_are_futures() -> None:
    with RolloutEngine(SimulatorConfig(4)) as engine:
        engine.future(EpisodeRequest(max_steps=2)).result(30)
        engine.submit_batch(range(10), max_steps=2)
        assert engine.drain(30)
        assert engine.outstanding == 10
        assert len(engine.get_outputs(most=4)) == 4
        assert engine.outstanding == 6
