"""Futures and coroutines."""

import asyncio
import concurrent.futures
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.pkg.rollouts import playing
from tests.pkg.rollouts.playing import Gate, assert_equal_results, in_order, play_all, results_of, some_requests
from tests.refuses import assert_refused

from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.rollouts import EpisodeColumns


def test_futures_are_of_their_requests_and_other_outputs_are_not():
    requests = some_requests(30, record="actions")
    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        expected = results_of(engine, requests)
        ids = engine.submit(requests)
        with ThreadPoolExecutor() as threads:
            taker = threads.submit(in_order, engine, ids)  # before the first future
            each = [engine.future(request) for request in requests]
            assert_equal_results(taker.result(), expected)
        ids = engine.submit(requests)
        for futures in (each, engine.future(requests), engine.future(iter(requests))):
            assert all(type(future) is concurrent.futures.Future for future in futures)
            found = [future.result(30) for future in futures]
            assert_equal_results(found, expected)
            assert [result.request for result in found] == requests
            assert not {result.id for result in found} & {*ids}
        assert engine.future([]) == engine.future(EpisodeColumns([])) == []
        assert_equal_results(in_order(engine, ids), expected)


def test_a_cancelled_future_cancels_its_request_alone():
    for submit in (
        lambda engine, gate: [engine.future(EpisodeRequest(policy=gate, seed=seed)) for seed in range(20)],
        lambda engine, gate: engine.future(EpisodeColumns(range(20), policy=gate)),
    ):
        with RolloutEngine(SimulatorConfig(1)) as engine:
            gate = Gate()
            futures = submit(engine, gate)
            assert all(future.cancel() for future in futures[1:])
            gate.open.set()
            assert futures[0].result(timeout=30).reason == "time"
            play_all(engine)
            assert playing.steps_of(engine) <= 202  # one episode, not twenty
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


def test_what_has_no_single_result_has_no_future():
    with RolloutEngine(SimulatorConfig(2)) as engine:
        for many in (EpisodeRequest(n=2), EpisodeColumns([1], n=2)):
            assert_refused(engine.future, [(many, "n is 2; it must be 1")])
        for stream in (EpisodeRequest(record="stream"), EpisodeColumns([1], record="stream")):
            assert_refused(engine.future, [(stream, "record ... 'stream'")])
        assert engine.outstanding == 0


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
        play_all(engine)
        assert engine.outstanding == 0
        assert playing.steps_of(engine) <= 2


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
            future.add_done_callback(lambda _, done=done: done.set())
            future.add_done_callback(raises)
            own = engine.future(EpisodeRequest(policy=gate, max_steps=20))
            own.set_result("mine")
            gate.open.set()
            assert done.wait(30)
            assert engine.future(EpisodeRequest(max_steps=2)).result(30).finished  # their thread goes on
            assert own.result() == "mine"
    assert told == [SystemExit, KeyboardInterrupt, GeneratorExit]  # Python's logger tells of the ordinary one
    assert capfd.readouterr().err == ""
