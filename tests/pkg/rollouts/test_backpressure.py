"""Outputs that were not read are bounded: replicas wait for room, and calls that would wait for ever are refused."""

from __future__ import annotations

import itertools
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.pkg.rollouts.playing import assert_equal_results, is_soon, results_of, some_requests

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, Simulator, SimulatorConfig, StateError
from doorstep._native import rollouts as native

PATIENCE = 20  # seconds, after which something hangs
SHORT = EpisodeRequest(max_steps=1)
ROW_BYTES = 2 * 4 * (4 + 94 + 1)  # of a step with observations


def small_engine(**fields: Any) -> RolloutEngine:
    return RolloutEngine(RolloutConfig(SimulatorConfig(3, num_threads=1), **fields))


def fill(engine: RolloutEngine, **fields: Any) -> list[int]:
    """Submits until no request finds room, because nothing is read; the ids."""

    def submit() -> list[int]:
        with pytest.raises(TimeoutError) as caught:
            engine.submit_batch(range(500), timeout=0.1, **{"max_steps": 1, **fields})
        ids: list[int] = caught.value.ids.tolist()  # type: ignore[attr-defined]
        return ids

    ids = submit()
    assert is_soon(lambda: bool(engine._core.handle.info().full_readers))
    return ids + submit()  # where the replica has made room before it waited


# ---- Bounds


MANY = 2**24  # episodes, of which each would take 200 bytes
SUBMIT_MANY: dict[str, Callable[[RolloutEngine], Any]] = {
    "branches": lambda engine: engine.submit([SHORT, EpisodeRequest(n=MANY - 1)], timeout=0.01),
    "branches of seeds": lambda engine: engine.submit_batch([1, 2], n=MANY // 2, timeout=0.01),
    "seeds": lambda engine: engine.submit_batch(np.arange(MANY // 16), timeout=0.01),
}


@pytest.mark.parametrize("submit", SUBMIT_MANY.values(), ids=SUBMIT_MANY)
def test_memory_grows_with_the_requests_that_find_room(submit: Any) -> None:
    with small_engine(queue_capacity=100, output_capacity=100) as engine:
        tracemalloc.start()
        try:
            with pytest.raises(TimeoutError) as caught:
                submit(engine)
            assert tracemalloc.get_traced_memory()[1] < 32 << 20
        finally:
            tracemalloc.stop()
        assert 100 <= len(caught.value.ids) < 400  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "call",
    [
        lambda engine: engine.submit(itertools.repeat(SHORT)),
        lambda engine: engine.run([EpisodeRequest(n=MANY)] * 1000),
        lambda engine: engine.submit_batch(range(2**40)),
        lambda engine: engine.submit_batch([1], max_steps=range(1, 2**40)),
    ],
)
def test_too_many_are_refused_before_there_is_something_for_each(call: Any) -> None:
    with small_engine() as engine, pytest.raises(doorstep.ArgumentError, match="at most 16777216"):
        call(engine)


@pytest.mark.parametrize("most", [1, 4, 1000])
def test_parts_of_a_submission_are_submitted_as_the_whole(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "MOST_REQUESTS", most)
    requests = [EpisodeRequest(seed=seed, n=1 + seed % 3, max_steps=1 + seed, tag=seed) for seed in range(8)]
    expected = [(one.seed, part, one.max_steps, one.tag) for one in requests for part in range(one.n)]

    def told(results: Any) -> list[Any]:
        return [(one.request.seed, one.continuation, one.length, one.request.tag) for one in results]

    with small_engine(queue_capacity=5) as engine:
        assert told(engine.run(requests)) == expected
        ids = engine.submit(requests)
        assert told(sorted(engine, key=lambda one: ids.index(one.id))) == expected
        of_batch = engine.submit_batch(range(6), max_steps=range(1, 7), n=2).tolist()
        batch = told(sorted(engine, key=lambda one: of_batch.index(one.id)))
        assert batch == [(seed, part, 1 + seed, 0) for seed in range(6) for part in range(2)]
        state = Simulator(1, num_agents=1).save([0])
        with pytest.raises(StateError, match="agents"):
            engine.submit([*requests, EpisodeRequest(state=state)])
        assert engine.outstanding == 0


@pytest.mark.parametrize(
    ("fields", "record", "most"),
    [
        ({"output_capacity": 5}, (), 5),
        ({"output_capacity": 5}, "observations", 5),
        ({"output_bytes": 50 * 32 + 31}, "actions", 50),  # int32 [1, 2, 4]
        ({"output_bytes": 1}, "observations", 1),  # one that is too large waits alone
    ],
)
def test_outputs_that_wait_are_bounded(fields: dict[str, int], record: Any, most: int) -> None:
    with small_engine(**fields) as engine:
        ids = engine.submit_batch(range(200), max_steps=1, record=record).tolist()
        assert is_soon(lambda: engine.num_outputs == most)
        time.sleep(0.05)
        assert engine.num_outputs == most
        assert sorted(result.id for result in engine) == sorted(ids)


def test_results_are_those_of_an_engine_that_never_waits() -> None:
    requests = some_requests(60, record=("observations", "stream"))
    with RolloutEngine(SimulatorConfig(8)) as engine:
        expected = results_of(engine, requests)
    devices = ("cpu", "cpu")
    with RolloutEngine(RolloutConfig(SimulatorConfig(4), devices=devices, output_bytes=5 * ROW_BYTES)) as engine:
        assert_equal_results(results_of(engine, requests), expected)


def test_replicas_wait_for_those_who_read_slowly() -> None:
    taken: list[int] = []
    with small_engine(output_capacity=2, queue_capacity=4) as engine:

        def read() -> None:
            while len(taken) < 200:
                time.sleep(0.001)
                taken.extend(output.id for output in engine.get_outputs(most=3))

        reader = threading.Thread(target=read)
        reader.start()
        assert is_soon(lambda: bool(engine._parts._readers._threads))
        ids = engine.submit_batch(range(200), max_steps=1).tolist()  # waits for the reader
        reader.join(PATIENCE)
        assert sorted(taken) == sorted(ids)


# ---- Waits that would not end

WAITS: dict[str, Callable[[RolloutEngine], Any]] = {
    "submit": lambda engine: engine.submit([SHORT] * 9),
    "submit_batch": lambda engine: engine.submit_batch(range(9)),
    "drain": lambda engine: engine.drain(),
    "run": lambda engine: engine.run([SHORT]),
    "future": lambda engine: engine.future(SHORT),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_call_that_only_its_own_thread_could_end_is_refused(wait: Callable[[RolloutEngine], Any]) -> None:
    with small_engine(output_capacity=2, queue_capacity=4) as engine:
        ids = fill(engine)
        begin = time.monotonic()
        with pytest.raises(StateError, match="unread outputs leave no room") as caught:
            wait(engine)
        assert time.monotonic() - begin < PATIENCE
        assert "iterate over the engine" in caught.value.hint
        assert getattr(caught.value, "ids", []) == []
        assert sorted(result.id for result in engine) == sorted(ids)
        assert engine.drain(PATIENCE)


def test_the_result_of_a_future_is_refused_while_its_request_cannot_be_played() -> None:
    with small_engine(output_capacity=2) as engine:
        ids = engine.submit_batch(range(50), max_steps=1).tolist()
        future = engine.future(SHORT)
        for wait in (future.result, future.exception):
            with pytest.raises(StateError, match="unread outputs leave no room"):
                wait()
        with pytest.raises(TimeoutError):
            future.result(timeout=0.01)
        assert len(list(engine)) == len(ids)
        assert future.result(PATIENCE).length == 1


def test_a_wait_with_a_timeout_ends_by_itself() -> None:
    with small_engine(output_capacity=2, queue_capacity=4) as engine:
        fill(engine)
        assert not engine.drain(0.1)
        with pytest.raises(TimeoutError):
            engine.submit(SHORT, timeout=0.1)


def test_a_callback_that_would_wait_for_itself_is_refused() -> None:
    raised: list[Any] = []
    with small_engine(output_capacity=2, queue_capacity=20) as engine:

        def submit_many(_: Any) -> None:
            try:
                engine.future_batch(range(100), max_steps=1)
            except StateError as error:
                raised.append(error)

        ids = engine.submit_batch(range(10), max_steps=1).tolist()
        future = engine.future(SHORT)
        future.add_done_callback(submit_many)  # before it is played, which waits for the outputs to be read
        assert sorted(output.id for output in engine) == ids
        assert is_soon(lambda: bool(raised))
        assert "this callback would wait for ever" in str(raised[0])
        assert engine.drain(PATIENCE)


def test_futures_need_no_reader() -> None:
    with small_engine(output_capacity=1, queue_capacity=3) as engine:
        futures = engine.future_batch(range(100), max_steps=2, record="observations")
        assert [future.result(PATIENCE).request.seed for future in futures] == list(range(100))
        results = engine.run(some_requests(50))
        assert len(results) == 50


# ---- Ends


def test_an_engine_is_closed_while_its_outputs_have_no_room() -> None:
    with small_engine(output_capacity=2, queue_capacity=10) as engine:
        ids = fill(engine)
        engine.close()
        results = list(engine)
        assert sorted(result.id for result in results) == sorted(ids)
        assert sum(result.finished for result in results) >= 2 + 1  # what has been played is not thrown away


def test_requests_are_cancelled_while_outputs_have_no_room() -> None:
    with small_engine(output_capacity=2, queue_capacity=10) as engine:
        ids = fill(engine)
        assert sum(map(engine.cancel, ids)) >= 10
        assert sorted(result.id for result in engine) == sorted(ids)


def test_a_fork_does_not_wait_for_room(run_python: Callable[..., str]) -> None:
    code = """
import os, doorstep
from doorstep import RolloutConfig, RolloutEngine, SimulatorConfig
engine = RolloutEngine(RolloutConfig(SimulatorConfig(3), output_capacity=2))
engine.submit_batch(range(50), max_steps=1)
while not engine._core.handle.info().full_readers:
    pass
child = os.fork()
if child == 0:
    try:
        engine.get_outputs()
    except doorstep.ClosedError:
        os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(list(engine)))
"""
    assert run_python(code) == "7 50\n"


def test_ctrl_c_ends_a_wait_for_room(run_python: Callable[..., str]) -> None:
    code = """
import os, signal, threading, doorstep
from doorstep import RolloutConfig, RolloutEngine, SimulatorConfig
engine = RolloutEngine(RolloutConfig(SimulatorConfig(3), output_capacity=2, queue_capacity=4))
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    engine.submit_batch(range(100), max_steps=1, timeout=60)
except KeyboardInterrupt:
    print(len(list(engine)) == engine._core.handle.info().submitted, engine.outstanding)
"""
    assert run_python(code) == "True 0\n"


@pytest.mark.slow
def test_unread_recordings_take_no_more_memory_than_the_limit(run_python: Callable[..., str]) -> None:
    code = """
from pathlib import Path
from doorstep import RolloutEngine, SimulatorConfig, StateError
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
with RolloutEngine(SimulatorConfig(64)) as engine:
    engine.submit_batch(range(64), record="observations", policy="idle")
    assert len(list(engine)) == 64
    before = resident()
    engine.submit_batch(range(3000), record="observations", policy="idle")
    try:
        engine.drain()
    except StateError:
        print(resident() - before < engine.config.output_bytes + 50_000_000, len(list(engine)))
"""
    assert run_python(code) == "True 3000\n"


def test_limits_are_checked() -> None:
    for field in ("output_capacity", "output_bytes"):
        for value in (0, -1, 2**60):
            with pytest.raises(doorstep.ArgumentError, match=field):
                small_engine(**{field: value})
