"""Ctrl-C in every call of an engine: nothing that was taken is lost, and nothing hangs."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.interrupts import interrupted_everywhere
from tests.live_objects import PATIENCE, soon_more_than
from tests.pkg.rollouts.playing import results_of, some_requests

from doorstep import (
    EpisodeRequest,
    EpisodeResult,
    RolloutConfig,
    RolloutEngine,
    SimulatorConfig,
    StateError,
    live_counts,
    rollouts,
)
from doorstep._native import rollouts as native


def some(**fields: Any) -> list[EpisodeRequest]:
    return [EpisodeRequest(**{"policy": "idle", "max_steps": 1 + i, **fields}) for i in range(3)]


@pytest.fixture(scope="module", params=[False, True], ids=["", "with futures"])
def engine(request: pytest.FixtureRequest) -> Iterator[RolloutEngine]:
    """With futures a thread takes all outputs."""
    config = RolloutConfig(SimulatorConfig(4, num_threads=1), max_policies=3)
    with RolloutEngine(config) as made:
        if request.param:
            made.future(EpisodeRequest(max_steps=1)).result(PATIENCE)
        yield made


def take_all(engine: RolloutEngine) -> list[Any]:
    """The outputs that are still to come."""
    found: list[Any] = []
    end = time.monotonic() + PATIENCE
    while engine.outstanding and time.monotonic() < end:
        found += engine.get_outputs(timeout=0.1)
    assert engine.outstanding == 0
    return found


def ids_of(taken: list[Any]) -> list[int]:
    """Of results, which may be arrays of records."""
    arrays = [one["id"].tolist() for one in taken if isinstance(one, np.ndarray)]
    return sorted(sum(arrays, [one.id for one in taken if isinstance(one, EpisodeResult)]))


# ---- Results: Python looks for signals after each call, and so these have none until they have put down what they got


def take_outputs(engine: RolloutEngine, taken: list[Any]) -> None:
    taken += engine.get_outputs()


def take_one_output(engine: RolloutEngine, taken: list[Any]) -> None:
    taken += engine.get_outputs(most=1)


def take_records(engine: RolloutEngine, taken: list[Any]) -> None:
    taken += [engine.get_records(most=2)]


def iterate(engine: RolloutEngine, taken: list[Any]) -> None:
    for result in engine:
        taken += [result]


def take_what_failed(engine: RolloutEngine, taken: list[Any]) -> None:
    try:
        taken += engine.get_outputs()
    except StateError as error:
        taken += [error.result]  # type: ignore[attr-defined]


def iterate_once(engine: RolloutEngine, taken: list[Any]) -> None:
    results = iter(engine)
    for result in results:
        taken += [result]
        break
    results.close()  # type: ignore[attr-defined]


TAKERS = [take_outputs, take_one_output, take_records, iterate, iterate_once]


@pytest.mark.parametrize("policies", [["fails", "idle", "fails"], ["idle", "idle", "fails"]], ids=["first", "last"])
def test_each_failure_is_raised_once(policies: list[str], engine: RolloutEngine) -> None:
    def fails(rows: NDArray[np.float32]) -> NDArray[np.int32]:
        raise ZeroDivisionError

    named: dict[str, Any] = {"fails": fails, "idle": "idle"}
    requests = [EpisodeRequest(policy=named[policy], max_steps=1) for policy in policies]
    taken: list[Any] = []

    def take_the_rest() -> None:
        end = time.monotonic() + PATIENCE
        while engine.outstanding and time.monotonic() < end:
            take_what_failed(engine, taken)

    ids = engine.submit(requests)
    for place in interrupted_everywhere(lambda: take_what_failed(engine, taken)):
        take_the_rest()
        assert ids_of(taken) == sorted(ids), place
        taken.clear()
        ids = engine.submit(requests)
        assert engine.drain(PATIENCE)
    take_the_rest()
    assert engine.num_outputs == 0


@pytest.mark.parametrize("take", [*TAKERS, "recorded"], ids=lambda take: getattr(take, "__name__", take))
def test_each_result_is_returned_once(take: Any, engine: RolloutEngine) -> None:
    record: Any = ("observations", "stream") if take == "recorded" else ()
    take = take_outputs if record else take
    taken: list[Any] = []
    ids = engine.submit(some(record=record))
    for place in interrupted_everywhere(lambda: take(engine, taken)):  # noqa: B023
        taken += take_all(engine)
        assert ids_of(taken) == sorted(ids), place
        taken.clear()
        ids = engine.submit(some(record=record))
        assert engine.drain(PATIENCE)
    take_all(engine)
    assert engine.num_outputs == 0


def test_what_was_taken_waits_for_any_thread(engine: RolloutEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Any, *_: Any) -> Any:
        raise KeyboardInterrupt

    ids = engine.submit(some())
    assert engine.drain(PATIENCE)
    with monkeypatch.context() as patch:
        patch.setattr(rollouts.outputs.OutputBatch, "outputs", stop)  # they have been taken
        with pytest.raises(KeyboardInterrupt):
            engine.get_outputs()
    assert engine.outstanding == engine.num_outputs == 3
    assert engine.drain(0)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(take_all(engine)))
    thread.start()
    thread.join()
    assert ids_of(found) == sorted(ids)


def test_leaving_a_loop_leaves_the_other_results() -> None:
    with RolloutEngine(SimulatorConfig(16, num_threads=1)) as engine:
        ids = engine.submit_batch(range(500), max_steps=1).tolist()
        taken = [next(iter(engine)).id for _ in range(3)]
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            for result in engine:
                taken.append(result.id)
                raise ZeroDivisionError
        half_used = iter(engine)
        taken += [next(half_used).id, *(output.id for output in engine.get_outputs(most=7))]
        assert engine.outstanding == 500 - len(taken) > 400
        taken += [result.id for result in engine]  # while another iterator is in use
        assert next(half_used, None) is None
        assert sorted(taken) == sorted(ids)


def test_loops_share_the_results() -> None:
    """In threads, and in each other."""
    with RolloutEngine(SimulatorConfig(16, num_threads=1)) as engine:
        taken: list[Any] = []
        ids = engine.submit_batch(range(300), max_steps=2).tolist()
        threads = [threading.Thread(target=iterate, args=(engine, taken)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert ids_of(taken) == sorted(ids)
        ids = engine.submit_batch(range(5), max_steps=2).tolist()
        pairs = [(outer.id, inner.id) for outer in engine for inner in engine]
        assert sorted({pairs[0][0], *(inner for _, inner in pairs)}) == sorted(ids)


# It raises between the __enter__ of a lock and its block, where nothing releases it: see CPython's issue 148874.
@pytest.mark.skipif(sys.version_info[:2] == (3, 14), reason="in CPython 3.14 a signal can leave a lock locked")
def test_signals_at_any_moment_lose_nothing(engine: RolloutEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real ones, also while the library waits."""
    # One that meets a finalizer of Python's is dropped. The hook of pytest would be interrupted too.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    taken: list[Any] = []
    pressed = 0
    is_armed = False

    def press(*_: Any) -> None:
        if is_armed:
            raise KeyboardInterrupt

    # One that meets a finalizer of the library's comes again, as Ctrl-C, maybe after the call.
    before = {number: signal.signal(number, press) for number in (signal.SIGALRM, signal.SIGINT)}
    ids: list[int] = []
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
        for take in TAKERS[:4] * 15:
            ids += engine.submit(some_requests(8, max_steps=20))
            while engine.outstanding:
                try:
                    is_armed = True
                    take(engine, taken)
                except KeyboardInterrupt:  # noqa: PERF203
                    pressed += 1
                finally:
                    is_armed = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    assert ids_of(taken) == sorted(ids)
    assert pressed > 0


# ---- Requests


def idle(rows: NDArray[np.float32]) -> NDArray[np.int32]:
    return np.zeros((len(rows), 4), np.int32)


SUBMISSIONS: dict[str, Callable[[RolloutEngine], Any]] = {
    "submit": lambda engine: engine.submit(some(policy=lambda rows: idle(rows))),
    "submit_batch": lambda engine: engine.submit_batch(range(3), max_steps=1, policy=lambda rows: idle(rows)),
    "two policies": lambda engine: engine.submit(some(policy=("idle", lambda rows: idle(rows)))),
    "future": lambda engine: engine.future(EpisodeRequest(max_steps=1, policy=lambda rows: idle(rows))),
    "run": lambda engine: engine.run([EpisodeRequest(max_steps=1, policy=lambda rows: idle(rows))]),
    "drain": lambda engine: engine.drain(PATIENCE),
    "outstanding": lambda engine: engine.outstanding,
}


@pytest.mark.parametrize("call", SUBMISSIONS.values(), ids=SUBMISSIONS)
def test_what_was_submitted_is_answered_and_no_more(call: Any, engine: RolloutEngine) -> None:
    """No policy keeps its number either, of which there are three."""
    assert engine.metrics is not None
    submitted, taken = engine.metrics.total("requests_submitted").count, 0
    for place in interrupted_everywhere(lambda: call(engine)):
        assert engine.drain(PATIENCE), place
        taken += len(take_all(engine))
        if call not in (SUBMISSIONS["future"], SUBMISSIONS["run"]):
            assert taken == engine.metrics.total("requests_submitted").count - submitted, place
    assert results_of(engine, some())[0].finished


# ---- Engines


@pytest.fixture
def others() -> set[threading.Thread]:
    """Threads that the test has not made."""
    return set(threading.enumerate())


@pytest.mark.parametrize("controller", [rollouts.PullController(), rollouts.RoundRobinController(depth=2)])
def test_an_interrupted_close_is_closed_again(controller: Any, others: set[threading.Thread]) -> None:
    config = RolloutConfig(SimulatorConfig(1, num_threads=1), controller=controller)
    engine = RolloutEngine(config)
    ids = engine.submit(some_requests(5))
    for place in interrupted_everywhere(lambda: engine.close()):  # noqa: B023
        engine.close()
        assert set(threading.enumerate()) <= others, place
        assert sorted(result.id for result in engine) == sorted(ids), place
        engine = RolloutEngine(config)
        ids = engine.submit(some_requests(5))
    engine.close()


def test_an_engine_that_was_being_made_ends() -> None:
    """Not where Python itself starts a thread: there Ctrl-C leaves a lock of it behind."""
    config = RolloutConfig(SimulatorConfig(1, num_threads=1), devices=("cpu",) * 2)
    gc.collect()
    gc.freeze()  # what other tests left is not looked through at each place
    before = live_counts()
    for place in interrupted_everywhere(lambda: native.EngineHandle(config.native_handle, None, 0)):
        assert soon_more_than(before) == {}, place
