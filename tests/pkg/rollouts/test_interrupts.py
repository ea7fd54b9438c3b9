"""Ctrl-C in every call of an engine: nothing that was taken is lost, and nothing hangs."""

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.interrupts import interrupted_everywhere
from tests.live_objects import PATIENCE, soon_more_than
from tests.pkg.rollouts.playing import divides, results_of, some_requests, still

import doorstep
from doorstep import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine, SimulatorConfig, StateError
from doorstep._native import rollouts as native


def some(**fields):
    return [EpisodeRequest(**{"policy": "idle", "max_steps": 1 + i, **fields}) for i in range(3)]


@pytest.fixture(scope="module")
def engine():
    with RolloutEngine(RolloutConfig(SimulatorConfig(4, num_threads=1), max_policies=3)) as made:
        yield made


def take_all(engine):
    """The outputs that are still to come."""
    found, end = [], time.monotonic() + PATIENCE
    while engine.outstanding and time.monotonic() < end:
        take_outputs(engine, found, timeout=0.1)
    assert engine.outstanding == engine.num_outputs == 0
    return found


def ids_of(taken):
    """Of results, which may be arrays of records."""
    arrays = [one["id"].tolist() for one in taken if isinstance(one, np.ndarray)]
    return sorted(sum(arrays, [one.id for one in taken if isinstance(one, EpisodeResult)]))


# ---- Results: Python looks for signals after each call, and so these have none until they have put down what they got


def take_outputs(engine, taken, timeout=None):
    try:
        taken += engine.get_outputs(timeout=timeout)
    except StateError as error:
        taken += [error.result]


def take_records(engine, taken):
    taken += [engine.get_records(most=2)]


def iterate(engine, taken):
    for result in engine:
        taken += [result]


def iterate_once(engine, taken):
    results = iter(engine)
    for result in results:
        taken += [result]
        break
    results.close()


TAKES = {
    "recorded": (take_outputs, [{"record": ("observations", "stream")}] * 3),
    "failures": (take_outputs, [{"policy": divides}, {}, {"policy": divides}]),
    **{take.__name__: (take, [{}] * 3) for take in (take_records, iterate, iterate_once)},
}


@pytest.mark.parametrize("name", TAKES)
def test_each_result_is_returned_or_raised_once(name, engine):
    take, fields = TAKES[name]
    requests = [EpisodeRequest(**{"policy": "idle", "max_steps": 1, **one}) for one in fields]
    taken = []
    ids = engine.submit(requests)
    for place in interrupted_everywhere(lambda: take(engine, taken)):  # noqa: B023
        taken += take_all(engine)
        assert ids_of(taken) == sorted(ids), place
        taken.clear()
        ids = engine.submit(requests)
        assert engine.drain(PATIENCE)
    take_all(engine)


def test_loops_share_the_results():
    """In threads, and in each other."""
    with RolloutEngine(SimulatorConfig(16, num_threads=1)) as engine:
        taken = []
        ids = engine.submit_batch(range(300), max_steps=2).tolist()
        with ThreadPoolExecutor() as threads:
            for _ in range(3):
                threads.submit(iterate, engine, taken)
        assert ids_of(taken) == sorted(ids)
        ids = engine.submit_batch(range(5), max_steps=2).tolist()
        pairs = [(outer.id, inner.id) for outer in engine for inner in engine]
        assert sorted({pairs[0][0], *(inner for _, inner in pairs)}) == sorted(ids)


# ---- Requests


CALLS = {  # and whether it leaves results to take
    "submit": (lambda engine, requests: engine.submit(requests), True),
    "drain": (lambda engine, requests: engine.drain(PATIENCE), True),
    "outstanding": (lambda engine, requests: engine.outstanding, True),
    "future": (lambda engine, requests: engine.future(requests[0]), False),
    "run": (lambda engine, requests: engine.run(requests[:1]), False),
    "batch": (lambda engine, requests: engine.submit_batch(range(3), max_steps=1, policy=requests[0].policy), True),
}


@pytest.mark.parametrize("name", [*list(CALLS)[:-1], pytest.param("batch", marks=pytest.mark.slow)])
def test_what_was_submitted_is_answered_and_no_more(name, engine):
    """No policy keeps its number either, of which there are three."""
    call, is_counted = CALLS[name]

    def new():
        return some(policy=("idle", lambda rows: still(rows)))

    submitted, taken, requests = engine.metrics.total("requests_submitted").count, 0, new()
    for place in interrupted_everywhere(lambda: call(engine, requests)):  # noqa: B023
        assert engine.drain(PATIENCE), place
        taken += len(take_all(engine))
        if is_counted:
            assert taken == engine.metrics.total("requests_submitted").count - submitted, place
        requests = new()
    assert results_of(engine, some())[0].finished


# ---- Engines


def test_an_interrupted_close_is_closed_again():
    controller = doorstep.rollouts.RoundRobinController(depth=2)
    config = RolloutConfig(SimulatorConfig(1, num_threads=1), controller=controller)
    others = set(threading.enumerate())
    engine = RolloutEngine(config)
    ids = engine.submit(some_requests(5))
    for place in interrupted_everywhere(lambda: engine.close()):  # noqa: B023
        engine.close()
        assert set(threading.enumerate()) <= others, place
        assert sorted(result.id for result in engine) == sorted(ids), place
        engine = RolloutEngine(config)
        ids = engine.submit(some_requests(5))
    engine.close()


def test_an_engine_that_was_being_made_ends():
    """Not where Python itself starts a thread: there Ctrl-C leaves a lock of it behind."""
    config = RolloutConfig(SimulatorConfig(1, num_threads=1), devices=("cpu",) * 2)
    gc.collect()
    gc.freeze()  # what other tests left is not looked through at each place
    before = doorstep.live_counts()
    for place in interrupted_everywhere(lambda: native.EngineHandle(config.native_handle, None, 0)):
        assert soon_more_than(before) == {}, place
