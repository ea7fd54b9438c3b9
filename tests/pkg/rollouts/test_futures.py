"""Futures and coroutines."""

import asyncio
import concurrent.futures
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.pkg.rollouts.playing import Gate, assert_equal_results, results_of, some_requests, steps_of
from tests.refuses import assert_refused

from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig


def test_futures_of_many_requests_are_those_of_each():
    requests = some_requests(30, record="actions")
    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        expected = results_of(engine, requests)
        gate, is_kept = Gate(), threading.Event()
        first = engine.future(EpisodeRequest(policy=gate, max_steps=1))
        first.add_done_callback(lambda _: is_kept.wait(30))  # in the thread of futures
        each = [engine.future(request) for request in requests]
        gate.open.set()
        assert not engine.drain(0.3)  # although all have been played
        is_kept.set()
        assert engine.drain(30)
        assert all(future.done() for future in each)
        assert_equal_results([future.result() for future in each], expected)
        assert [future.result().request for future in each] == requests
        assert_equal_results([future.result(30) for future in engine.future(requests)], expected)
        seeds, steps = ([getattr(one, name) for one in requests] for name in ("seed", "max_steps"))
        batch = [future.result(30) for future in engine.future_batch(seeds, max_steps=steps, record="actions")]
        assert_equal_results(batch, expected)
        assert [result.request for result in batch] == requests
        assert engine.future([]) == engine.future_batch([]) == []
        assert engine.drain(30)  # a future has its result a moment before its request is counted
        assert engine.outstanding == 0


def test_other_outputs_are_not_mixed_with_those_of_futures():
    with RolloutEngine(SimulatorConfig(4)) as engine:
        ids = engine.submit(some_requests(20))
        with ThreadPoolExecutor() as threads:
            taker = threads.submit(list, engine)  # before the first future
            futures = [engine.future(request) for request in some_requests(20)]
            ids += engine.submit(some_requests(20, record="stream"))
        taken = [*taker.result(), *engine]
        assert sorted(output.id for output in taken) == sorted(ids)
        assert not {future.result(timeout=30).id for future in futures} & set(ids)
        assert engine.get_outputs() == []
        ids = engine.submit(some_requests(10))
        assert engine.drain(30)
        assert engine.outstanding == 10
        assert len(engine.get_outputs(most=4)) == 4
        assert engine.outstanding == 6
        assert set(engine.get_records()["id"].tolist()) < set(ids)


def test_a_cancelled_future_cancels_its_request_alone():
    for submit in (
        lambda engine, gate: [engine.future(EpisodeRequest(policy=gate, seed=seed)) for seed in range(20)],
        lambda engine, gate: engine.future_batch(range(20), policy=gate),
    ):
        with RolloutEngine(SimulatorConfig(1)) as engine:
            gate = Gate()
            futures = submit(engine, gate)
            assert all(future.cancel() for future in futures[1:])
            gate.open.set()
            assert futures[0].result(timeout=30).reason == "time"
            assert engine.drain(30)
            assert steps_of(engine) <= 202  # one episode, not twenty
            assert engine.metrics.total("requests_answered", reason="cancelled").value == 19
            with pytest.raises(concurrent.futures.CancelledError):
                futures[1].result()


def test_callbacks_may_submit_and_close():
    engine = RolloutEngine(SimulatorConfig(2))
    done = threading.Event()

    def again(future, left):
        assert future.result().finished
        if left:
            engine.future(EpisodeRequest(max_steps=2)).add_done_callback(lambda made: again(made, left - 1))
        else:
            engine.close()
            done.set()

    engine.future(EpisodeRequest(max_steps=2)).add_done_callback(lambda made: again(made, 10))
    assert done.wait(30)
    engine.close()


def test_steps_of_futures_cannot_be_streamed():
    with RolloutEngine(SimulatorConfig(2)) as engine:
        assert_refused(engine.future, [(EpisodeRequest(record="stream"), "record ... 'stream'")])
        assert_refused(engine.future_batch, [({"seeds": range(3), "record": "stream"}, "record ... 'stream'")])


def test_coroutines_await_results():
    requests = some_requests(100)

    async def play(engine):
        return await asyncio.gather(*(engine.play(request) for request in requests))

    # Most have to wait for room, without stopping the loop
    with RolloutEngine(RolloutConfig(SimulatorConfig(4), queue_capacity=3)) as engine:
        results = asyncio.run(play(engine))
        again = asyncio.run(play(engine))  # in another loop
    assert [result.request for result in results] == requests
    assert_equal_results(again, results)


def test_cancelling_a_task_cancels_its_request():
    async def play(engine):
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
    with RolloutEngine(RolloutConfig(SimulatorConfig(1), queue_capacity=3)) as engine:  # for which most wait
        try:
            asyncio.run(play(engine))
        finally:
            gate.open.set()
        assert engine.drain(30)
        assert engine.outstanding == 0
        assert steps_of(engine) <= 2


def test_what_users_do_with_futures_disturbs_no_other(monkeypatch, capfd):
    """Whatever their callbacks raise, and if they set a result themselves."""
    told = []
    monkeypatch.setattr("traceback.print_exc", lambda: told.append(sys.exc_info()[0]))
    monkeypatch.setattr(concurrent.futures._base.LOGGER, "disabled", True)
    with RolloutEngine(SimulatorConfig(1)) as engine:
        for error in (SystemExit, KeyboardInterrupt, GeneratorExit, ValueError):

            def raises(_, error=error):
                raise error

            gate, done = Gate(), threading.Event()
            future = engine.future(EpisodeRequest(policy=gate, max_steps=20))
            future.add_done_callback(raises)
            future.add_done_callback(lambda _, done=done: done.set())
            own = engine.future(EpisodeRequest(policy=gate, max_steps=20))
            own.set_result("mine")
            gate.open.set()
            assert done.wait(30)
            assert engine.future(EpisodeRequest(max_steps=2)).result(30).finished  # their thread goes on
            assert engine.drain(30)
            assert (own.result(), engine.outstanding) == ("mine", 0)
    assert told == [SystemExit, KeyboardInterrupt, GeneratorExit]  # Python's logger tells of the ordinary one
    assert capfd.readouterr().err == ""
