"""Outputs that were not read are bounded: replicas wait for room, and calls that would wait for ever are refused, also
in what they would wait for: policies and callbacks."""

import asyncio
import concurrent.futures
import threading
import tracemalloc

import numpy as np
import pytest
from tests.pkg.rollouts.playing import Gate, in_order, is_soon, still

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, Simulator, SimulatorConfig, StateError, rollouts
from doorstep._native import rollouts as native

PATIENCE = 20  # seconds, after which something hangs
SHORT = EpisodeRequest(max_steps=1)


def small_engine(num_worlds=3, **fields):
    return RolloutEngine(RolloutConfig(SimulatorConfig(num_worlds, num_threads=1), **fields))


def fill(engine):
    """Submits until no request finds room, because nothing is read; the ids."""

    def submit():
        with pytest.raises(TimeoutError) as caught:
            engine.submit_batch(range(500), timeout=0.05, max_steps=1)
        return caught.value.ids.tolist()

    ids = submit()
    assert is_soon(lambda: bool(engine._core.handle.info().full_readers))
    return ids + submit()  # where the replica has made room before it waited


# ---- Bounds

MANY = 2**24  # episodes, of which each would take 200 bytes


def test_memory_grows_with_the_requests_that_find_room():
    for submit in (
        lambda engine: engine.submit([SHORT, EpisodeRequest(n=MANY - 1)], timeout=0.01),
        lambda engine: engine.submit_batch([1, 2], n=MANY // 2, timeout=0.01),
        lambda engine: engine.submit_batch(np.arange(MANY // 16), timeout=0.01),
    ):
        with small_engine(queue_capacity=100, output_capacity=100) as engine:
            tracemalloc.start()
            try:
                with pytest.raises(TimeoutError) as caught:
                    submit(engine)
                assert tracemalloc.get_traced_memory()[1] < 32 << 20
            finally:
                tracemalloc.stop()
            assert 100 <= len(caught.value.ids) < 400


def test_too_many_are_refused_before_there_is_something_for_each():
    with small_engine() as engine:
        for call in (
            lambda: engine.run([EpisodeRequest(n=MANY)] * 1000),
            lambda: engine.submit_batch(range(2**40)),
            lambda: engine.submit_batch([1], max_steps=range(1, 2**40)),
        ):
            with pytest.raises(doorstep.ArgumentError, match="at most 16777216"):
                call()


def test_parts_of_a_submission_are_submitted_as_the_whole(monkeypatch):
    requests = [EpisodeRequest(seed=seed, n=1 + seed % 3, max_steps=1 + seed, tag=seed) for seed in range(8)]
    expected = [(one.seed, part, one.max_steps, one.tag) for one in requests for part in range(one.n)]

    def told(results):
        return [(one.request.seed, one.continuation, one.length, one.request.tag) for one in results]

    for most in (1, 4, 1000):
        monkeypatch.setattr(native, "MOST_REQUESTS", most)
        with small_engine(queue_capacity=5) as engine:
            assert told(engine.run(requests)) == expected
            assert told(in_order(engine, engine.submit(requests))) == expected
            batch = told(in_order(engine, engine.submit_batch(range(6), max_steps=range(1, 7), n=2).tolist()))
            assert batch == [(seed, part, 1 + seed, 0) for seed in range(6) for part in range(2)]
            state = Simulator(1, num_agents=1).save([0])
            with pytest.raises(StateError, match="agents"):
                engine.submit([*requests, EpisodeRequest(state=state)])
            assert engine.outstanding == 0


def test_outputs_that_wait_are_bounded():
    for fields, record, most in (
        ({"output_capacity": 5}, (), 5),
        ({"output_capacity": 5}, ("observations", "stream"), 5),
        ({"output_bytes": 50 * 32 + 31}, "actions", 50),  # int32 [1, 2, 4]
        ({"output_bytes": 1}, "observations", 1),  # one that is too large waits alone
    ):
        with small_engine(**fields) as engine:
            ids = engine.submit_batch(range(200), max_steps=1, record=record).tolist()
            assert is_soon(lambda engine=engine: bool(engine._core.handle.info().full_readers)), fields
            assert (engine.num_outputs, sorted(result.id for result in engine)) == (most, sorted(ids))


# ---- Waits that would not end


def test_a_call_that_only_its_own_thread_could_end_is_refused():
    names = ("submit to a full queue", "submit_batch to a full queue", "drain", "run", "exception of a future")
    for wait in (WAITS[name] for name in names):
        with small_engine(output_capacity=2, queue_capacity=4) as engine:
            ids = fill(engine)
            with pytest.raises(StateError, match="unread outputs leave no room") as caught:
                wait(engine)
            assert "iterate over the engine" in caught.value.hint
            assert getattr(caught.value, "ids", []) == []
            assert not engine.drain(0.05)
            with pytest.raises(TimeoutError):
                engine.submit(SHORT, timeout=0.05)
            assert sorted(result.id for result in engine) == sorted(ids)
            assert engine.drain(PATIENCE)


def test_a_callback_that_would_wait_for_itself_is_refused():
    raised = []
    with small_engine(output_capacity=2, queue_capacity=20) as engine:

        def submit_many(_):
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


# ---- Ends


def test_requests_are_answered_while_outputs_have_no_room():
    with small_engine(output_capacity=2, queue_capacity=10) as engine:
        ids = fill(engine)
        assert sum(map(engine.cancel, ids)) >= 10
        assert sorted(result.id for result in engine) == sorted(ids)
        ids = fill(engine)
        engine.close()
        results = list(engine)
        assert sorted(result.id for result in results) == sorted(ids)
        assert sum(result.finished for result in results) >= 2 + 1  # what has been played is not thrown away


# ---- Waits in what is waited for

WAITS = {
    "get_outputs": lambda engine: engine.get_outputs(),
    "get_outputs with a timeout": lambda engine: engine.get_outputs(timeout=1e6),
    "get_records": lambda engine: engine.get_records(),
    "drain": lambda engine: engine.drain(),
    "iteration": lambda engine: list(engine),
    "future": lambda engine: engine.future(SHORT).result(),
    "exception of a future": lambda engine: engine.future(SHORT).exception(),
    "wait for futures": lambda engine: concurrent.futures.wait([engine.future(SHORT)]),
    "futures as they are completed": lambda engine: list(concurrent.futures.as_completed([engine.future(SHORT)])),
    "run": lambda engine: engine.run([SHORT]),
    "play": lambda engine: asyncio.run(engine.play(SHORT)),
    "submit to a full queue": lambda engine: engine.submit([SHORT] * 9),
    "submit_batch to a full queue": lambda engine: engine.submit_batch(range(9)),
}


class Within:
    """A policy, and a callback, that makes a call."""

    def __init__(self, call):
        self._call = call
        self.made, self.done = [], threading.Event()

    def __call__(self, rows):
        try:
            self.made.append(self._call())
        except Exception as error:
            self.made.append(error)
        self.done.set()
        return still(rows) if isinstance(rows, np.ndarray) else None

    def in_policy(self, engine):
        """What the call returns or raises."""
        engine.submit(EpisodeRequest(policy=self, max_steps=1))
        assert self.done.wait(PATIENCE)
        return self.made[0]


def test_a_policy_cannot_wait_for_its_engine():
    for name, wait in WAITS.items():
        with small_engine(num_worlds=1, queue_capacity=2) as engine:
            error = Within(lambda wait=wait, engine=engine: wait(engine)).in_policy(engine)
            assert isinstance(error, StateError), name
            assert "a policy would wait for the engine that calls it" in str(error)
            assert "wait in another thread" in error.hint
            submitted = getattr(error, "ids", [])
            assert len(submitted) in (0, 2)
            assert engine.drain(PATIENCE)
            assert set(submitted) <= {result.id for result in engine}


def test_a_callback_of_a_future_cannot_wait_for_its_engine():
    for name, wait in WAITS.items():
        gate = Gate()
        with small_engine(num_worlds=1, queue_capacity=20) as engine:
            callback = Within(lambda wait=wait, engine=engine: wait(engine))
            engine.future(EpisodeRequest(policy=gate, max_steps=1)).add_done_callback(callback)
            engine.submit(EpisodeRequest(policy=gate, max_steps=200))
            gate.open.set()
            assert callback.done.wait(PATIENCE)
            (made,) = callback.made
            if name in ("drain", "run", "play", "future", "exception of a future", "wait for futures"):
                assert isinstance(made, StateError), name
            # others return what had come by then
            assert not isinstance(made, Exception) or "a callback of a future would wait" in str(made)


def test_a_policy_may_do_what_needs_no_wait():
    with small_engine(num_worlds=1) as engine, small_engine() as other:
        (first,) = engine.run([SHORT])
        ready = engine.future(SHORT)
        ready.result(PATIENCE)
        waiting = engine.submit(SHORT)
        assert engine.drain(PATIENCE)

        def call():
            taken = engine.get_outputs()  # it has come already
            more = engine.submit([SHORT] * 3)
            assert concurrent.futures.wait([ready]).done == {ready}
            assert list(concurrent.futures.as_completed([ready])) == [ready]
            assert other.run([SHORT])[0].finished
            return ready.result(), taken, more, engine.get_outputs(block=False), engine.drain(0), engine.outstanding

        result, taken, more, *others, outstanding = Within(call).in_policy(engine)
        assert result.state_hash == first.state_hash
        assert [one.id for one in taken] == [waiting] or taken == []  # the thread of futures may be about to take it
        assert others == [[], False]
        assert outstanding >= 4
        assert set(more) <= {one.id for one in engine}


@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_functions_are_refused_where_threads_are_none(library, monkeypatch):
    """As those libraries patch them: a thread that waits in the library would stop all others."""

    def get_ident():
        return threading.main_thread().ident or 0

    get_ident.__module__ = f"{library}.thread"
    monkeypatch.setattr(threading, "get_ident", get_ident)
    request = EpisodeRequest(policy=("idle", still))
    with RolloutEngine(SimulatorConfig(1)) as engine:
        for call in (
            lambda: engine.submit(request),
            lambda: engine.submit_batch([1], policy=still),
            lambda: engine.future(request),
            lambda: engine.run([request]),
            lambda: asyncio.run(engine.play(request)),
            lambda: engine.policies.update(mine=still),
            lambda: rollouts.AsyncEpisodes(engine.config),
        ):
            with pytest.raises(StateError, match=rf"{library} has replaced Python's threads.*thread=False"):
                call()
        assert engine.outstanding == len(engine.policies) == 0
        assert len(engine.run([SHORT])) == 1
