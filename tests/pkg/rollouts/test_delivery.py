"""What was taken for a user is handed out once: whenever Ctrl-C comes, whatever fails, and however loops end."""

import contextlib
import gc
import itertools
import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.interrupts import interrupted_everywhere
from tests.live_objects import soon_more_than
from tests.pkg.rollouts.playing import divides, is_soon, num_outstanding, play_all, results_of, some_requests, still

import doorstep
from doorstep import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine, SimulatorConfig, StateError
from doorstep._native import rollouts as native
from doorstep.rollouts import EpisodeColumns
from doorstep.rollouts.results import EpisodeResults


@pytest.fixture(scope="module")
def engine():
    with RolloutEngine(RolloutConfig(SimulatorConfig(4, num_threads=1), max_policies=3)) as made:
        yield made


# ---- Takes: Python looks for signals after calls, and so these have none between what they got and where they put it


def take_outputs(engine, taken):
    try:
        taken += [engine.get_outputs(most=5)]
    except StateError as error:
        taken += [[error.result]]


def iterate(engine, taken):
    try:
        for one in engine:
            taken += [[one]]
    except StateError as error:
        taken += [[error.result]]


def iterate_once(engine, taken):
    results = iter(engine)
    for one in results:
        taken += [[one]]
        break
    results.close()


def iterate_twice_at_once(engine, taken):
    for one in engine:
        taken += [[one]]
        iterate_once(engine, taken)


TAKES = (take_outputs, iterate, iterate_once, iterate_twice_at_once)


def ids_of(taken):
    return sorted(one.id for some in taken for one in some if isinstance(one, EpisodeResult))


def take_all(engine, taken):
    while engine.outstanding:
        take_outputs(engine, taken)
    assert len(engine.get_outputs()) == 0


# ---- Ctrl-C


class CtrlC:
    """Is pressed at a moment of a call, or not at all if the call ends before."""

    def __init__(self):
        self._is_awaited, self.times = False, 0

    def __call__(self, *_):
        if self._is_awaited:
            self._is_awaited = False
            self.times += 1
            raise KeyboardInterrupt

    def press_in(self, call, seconds):
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with contextlib.suppress(KeyboardInterrupt):
            self._is_awaited = True
            call()
            self._is_awaited = False
        timer.join()


@pytest.fixture
def ctrl_c():
    keys = CtrlC()
    before = signal.signal(signal.SIGINT, keys)
    yield keys
    signal.signal(signal.SIGINT, before)


# Python cannot raise what comes while it collects garbage in a callback, such as JAX's: the call then goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("times", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_every_id_is_seen_once_whenever_ctrl_c_comes(times, ctrl_c):
    draw, ids, taken = random.Random(times), [], []
    runs = EpisodeColumns(range(5), max_steps=3)
    with RolloutEngine(RolloutConfig(SimulatorConfig(4, num_threads=1), output_capacity=20)) as engine:
        while ctrl_c.times < times:
            ids += engine.submit(EpisodeColumns(range(40), max_steps=[1 + seed % 3 for seed in range(40)])).tolist()
            calls = [lambda take=take: take(engine, taken) for take in TAKES]
            ctrl_c.press_in(draw.choice([*calls, lambda: engine.run(runs)]), draw.uniform(0, 0.004))
        take_all(engine, taken)
        assert ids_of(taken) == sorted(ids)
        play_all(engine)
        total = engine.metrics.total
        assert total("requests_submitted").value == total("requests_answered").value >= len(ids)


@pytest.mark.parametrize(("take", "fields"), [
    (take_outputs, [{"record": ("observations", "stream")}] * 3),
    (take_outputs, [{"policy": divides}, {}, {"policy": divides}]),
    *((take, [{}] * 3) for take in TAKES[1:]),
])  # fmt: skip
def test_each_result_is_returned_or_raised_once_wherever_ctrl_c_comes(take, fields, engine):
    requests = [EpisodeRequest(**{"policy": "idle", "max_steps": 1, **one}) for one in fields]
    taken = []
    ids = engine.submit(requests)
    for place in interrupted_everywhere(lambda: take(engine, taken)):
        take_all(engine, taken)
        assert ids_of(taken) == sorted(ids), place
        taken.clear()
        ids = engine.submit(requests)
        play_all(engine)
    take_all(engine, taken)


CALLS = {  # and whether their results are those of submit()
    "submit": (lambda engine, requests: engine.submit(requests), True),
    "outstanding": (lambda engine, requests: engine.outstanding, True),
    "future": (lambda engine, requests: engine.future(requests[0]), False),
    "run": (lambda engine, requests: engine.run(requests[:1]), False),
    "columns": (lambda engine, requests: engine.submit(EpisodeColumns(range(3), policy=requests[0].policy)), True),
}


@pytest.mark.parametrize("name", [*list(CALLS)[:-1], pytest.param("columns", marks=pytest.mark.slow)])
def test_what_was_submitted_is_answered_and_no_more_wherever_ctrl_c_comes(name, engine):
    """No policy keeps its number either, of which there are three."""
    call, is_read = CALLS[name]

    def new():
        policy = "idle", lambda rows: still(rows)
        return [EpisodeRequest(policy=policy, max_steps=1 + steps) for steps in range(3)]

    submitted, requests = engine.metrics.total("requests_submitted").value, new()
    taken = []
    for place in interrupted_everywhere(lambda: call(engine, requests)):  # noqa: B023
        take_all(engine, taken)
        assert is_soon(lambda: num_outstanding(engine) == 0), place
        found = engine.metrics.total("requests_submitted").value - submitted
        assert not is_read or sum(map(len, taken)) == found, place
        requests = new()
    assert results_of(engine, some_requests(3, policy="idle"))[0].finished


def test_an_interrupted_close_is_closed_again():
    config = RolloutConfig(SimulatorConfig(1, num_threads=1), controller="round_robin")
    others = set(threading.enumerate())
    engine = RolloutEngine(config)
    ids = engine.submit(some_requests(5))
    for place in interrupted_everywhere(lambda: engine.close()):  # noqa: B023
        engine.close()
        assert set(threading.enumerate()) <= others, place
        assert sorted(one.id for one in engine) == sorted(ids), place
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


# ---- Loops and failures


def test_loops_share_the_results():
    """In threads, and in each other; those that break leave the rest to others."""
    with RolloutEngine(SimulatorConfig(16, num_threads=1)) as engine:
        taken = []
        ids = engine.submit(EpisodeColumns(range(600), max_steps=2)).tolist()
        with ThreadPoolExecutor() as threads:
            for take, _ in itertools.product((iterate, iterate_once, iterate_twice_at_once, take_outputs), range(3)):
                threads.submit(take, engine, taken)
        iterate(engine, taken)
        assert ids_of(taken) == sorted(ids)


def test_a_loop_that_rests_keeps_only_what_it_was_given():
    """The rest of what it had taken goes to others, when its thread takes again or the loop is dropped."""
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as engine:
        ids = engine.submit(some_requests(10))
        play_all(engine)
        resting = iter(engine)
        first = next(resting)
        others = list(engine.get_outputs(most=4))
        assert [one.id for one in (first, *others)] == ids[:5]
        assert [one.id for one in resting] == ids[5:]
        ids = engine.submit(some_requests(10))
        play_all(engine)
        resting = iter(engine)
        first = next(resting)
        del resting
        with ThreadPoolExecutor() as threads:
            assert [one.id for one in threads.submit(list, engine).result()] == ids[1:]


@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("method", ["__init__", "__getitem__"])
def test_outputs_that_cannot_be_converted_are_handed_out_by_the_next_call(method, take, engine, monkeypatch):
    taken, fails = [], itertools.cycle([True, False])
    convert = getattr(EpisodeResults, method)

    def converts(results, *given):
        if next(fails):
            raise MemoryError
        return convert(results, *given)

    ids = engine.submit(some_requests(20, policy="idle"))
    with monkeypatch.context() as patch:
        patch.setattr(EpisodeResults, method, converts)
        while engine.outstanding:
            with contextlib.suppress(MemoryError):
                take(engine, taken)
    assert ids_of(taken) == sorted(ids)
