"""Requests and outputs have room for so many, and calls that would wait for ever are refused."""

import asyncio
import concurrent.futures
import threading
import tracemalloc

import pytest
from tests.pkg.rollouts.playing import Gate, in_order, info_of, play_all, some_requests, still, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, Simulator, SimulatorConfig, StateError
from doorstep._native import rollouts as native
from doorstep.rollouts import EpisodeColumns

PATIENCE = 20  # seconds, after which something hangs
SHORT = EpisodeRequest(max_steps=1)
MANY = 2**24  # episodes, the most of a call


def small_engine(num_worlds=3, **fields):
    return RolloutEngine(RolloutConfig(SimulatorConfig(num_worlds, num_threads=1), **fields))


# ---- Requests


def test_requests_of_many_episodes_take_the_memory_of_one():
    with small_engine(num_worlds=1) as engine:
        gate = Gate()
        tracemalloc.start()
        try:
            ids = engine.submit([EpisodeRequest(policy=gate, n=MANY - 1), SHORT])
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()
        assert engine.outstanding == MANY
        assert gate.entered.wait(PATIENCE)
        engine.close(0)
        gate.open.set()
    assert len(ids) == 2


def test_too_many_are_refused_before_there_is_something_for_each():
    with small_engine() as engine:
        for call in (
            lambda: engine.run([EpisodeRequest(n=MANY)] * 1000),
            lambda: engine.submit(EpisodeColumns(range(2**40))),
            lambda: engine.submit(EpisodeColumns([1], max_steps=range(1, 2**40))),
        ):
            with pytest.raises(doorstep.ArgumentError, match="16777216"):
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
            columns = EpisodeColumns(range(6), max_steps=range(1, 7), n=2)
            batch = told(in_order(engine, engine.submit(columns).tolist()))
            assert batch == [(seed, part, 1 + seed, 0) for seed in range(6) for part in range(2)]
            state = Simulator(1, num_agents=1).save([0])
            with pytest.raises(StateError, match="agents"):
                engine.submit([*requests, EpisodeRequest(state=state)])
            assert engine.outstanding == 0


def test_submission_waits_for_room_and_times_out():
    gate = Gate()
    with small_engine(num_worlds=1, queue_capacity=3, max_policies=3) as engine:
        engine.submit(EpisodeRequest(policy=gate, max_steps=1))
        assert gate.entered.wait(PATIENCE)
        with pytest.raises(TimeoutError, match="3 of 5 requests found room") as caught:
            engine.submit(some_requests(5), timeout=0.05)
        assert len(caught.value.ids) == 3
        with pytest.raises(TimeoutError, match="0 of 2"):
            engine.submit(EpisodeColumns([1, 2]), timeout=0)
        for _ in range(5):  # of which none keeps the number of its policy
            with pytest.raises(TimeoutError, match="0 of 1"):
                engine.submit(EpisodeRequest(policy=lambda rows: walk(rows)), timeout=0)
        assert (engine.outstanding, info_of(engine).waiting) == (4, 3)
        threading.Timer(0.05, gate.open.set).start()
        ids = engine.submit(some_requests(50))  # waits
        results = {result.id for result in engine}
        assert {*ids, *caught.value.ids} < results
        assert len(results) == 54


# ---- Outputs


@pytest.mark.parametrize(("fields", "record", "room"), [
    ({"output_capacity": 5}, (), 5),
    ({"output_capacity": 5}, ("observations", "stream"), 3),  # of two outputs each
    ({"output_bytes": 50 * 32}, "actions", 50),  # int32 [1, 2, 4]
    ({"output_bytes": 1}, "observations", 1),
])  # fmt: skip
def test_unread_outputs_are_bounded_while_runs_and_futures_go_on(fields, record, room):
    with small_engine(**fields) as engine:
        requests = EpisodeColumns(range(200), max_steps=1, record=record)
        ids = engine.submit(requests).tolist()
        for _ in range(20):  # each of which takes as long as an episode
            assert len(engine.run([SHORT] * 30)) == 30
            assert engine.future(SHORT).result(PATIENCE).finished
        waiting = info_of(engine).waiting
        assert room <= 200 - waiting < room + 3  # of each world one may come when there is no room any more
        assert sorted(result.id for result in engine) == sorted(ids)


def test_a_slow_reader_gets_everything():
    with small_engine(output_capacity=1, queue_capacity=7) as engine:
        submitter = threading.Thread(target=lambda: ids.extend(engine.submit(some_requests(300, record="stream"))))
        ids, found = [], []
        submitter.start()
        while submitter.is_alive() or engine.outstanding:
            found += [one for one in engine.get_outputs(most=2, timeout=0.01) if hasattr(one, "finished")]
        assert sorted(result.id for result in found) == sorted(ids)


def test_a_submission_that_only_its_own_thread_could_end_is_refused():
    with small_engine(output_capacity=2, queue_capacity=4) as engine:
        for requests in (EpisodeColumns(range(500), max_steps=1), [SHORT] * 500):
            with pytest.raises(StateError, match="unread outputs leave no room") as caught:
                engine.submit(requests)
            assert "take outputs" in caught.value.hint
            with pytest.raises(TimeoutError):
                engine.submit([SHORT] * 10, timeout=0)
            assert 6 <= len(caught.value.ids) <= 8
            assert {*caught.value.ids} <= {result.id for result in engine}
        ids = list(caught.value.ids)
        engine.close()
        assert list(engine) == []
        assert not any(engine.cancel(one) for one in ids)


def test_the_thread_that_reads_is_refused_also_while_another_one_waits_for_it():
    with small_engine(output_capacity=2, queue_capacity=4) as engine:
        assert not engine.get_outputs()
        ids = []
        other = threading.Thread(target=lambda: ids.extend(engine.submit([SHORT] * 50)))
        other.start()
        with pytest.raises(StateError, match="unread outputs leave no room") as caught:
            engine.submit([SHORT] * 500)
        found = []
        while other.is_alive() or engine.outstanding:
            found += engine.get_outputs(timeout=0.01)
        assert sorted(result.id for result in found) == sorted([*ids, *caught.value.ids])


# ---- Policies that wait for what waits for them

WAITS = {
    "get_outputs": lambda engine: engine.get_outputs(),
    "get_outputs with a timeout": lambda engine: engine.get_outputs(timeout=1e6),
    "iteration": lambda engine: list(engine),
    "run": lambda engine: engine.run([SHORT]),
    "submit to a full queue": lambda engine: engine.submit([SHORT] * 9),
    "columns to a full queue": lambda engine: engine.submit(EpisodeColumns(range(9))),
}


class Within:
    """A policy that makes a call."""

    def __init__(self, call):
        self._call = call
        self.made, self.done = [], threading.Event()

    def __call__(self, rows):
        try:
            self.made.append(self._call())
        except Exception as error:
            self.made.append(error)
        self.done.set()
        return still(rows)

    def made_in_policy(self, engine):
        """What the call returns or raises."""
        engine.submit(EpisodeRequest(policy=self, max_steps=1))
        assert self.done.wait(PATIENCE)
        return self.made[0]


@pytest.mark.parametrize("name", WAITS)
def test_a_policy_cannot_wait_for_its_engine(name):
    with small_engine(num_worlds=1, queue_capacity=2) as engine:
        error = Within(lambda: WAITS[name](engine)).made_in_policy(engine)
        assert isinstance(error, StateError)
        assert "a policy would wait for the engine that calls it" in str(error)
        assert "another thread" in error.hint
        submitted = getattr(error, "ids", [])
        assert len(submitted) == (2 if "full" in name else 0)
        play_all(engine)
        assert set(submitted) <= {result.id for result in engine}


def test_a_policy_may_do_what_needs_no_wait():
    with small_engine(num_worlds=1) as engine, small_engine() as other:
        (first,) = engine.run([SHORT])
        ready = engine.future(SHORT)
        ready.result(PATIENCE)
        waiting = engine.submit(SHORT)
        play_all(engine)

        def call():
            taken = engine.get_outputs()  # it has come already
            more = engine.submit([SHORT] * 3)
            assert concurrent.futures.wait([ready]).done == {ready}
            assert other.run([SHORT])[0].finished
            return ready.result(), taken, more, len(engine.get_outputs(block=False)), engine.outstanding

        result, taken, more, none, outstanding = Within(call).made_in_policy(engine)
        assert result.state_hash == first.state_hash
        assert [one.id for one in taken] == [waiting]
        assert (none, outstanding) == (0, 4)
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
            lambda: engine.submit(EpisodeColumns([1], policy=still)),
            lambda: engine.future(request),
            lambda: engine.run([request]),
            lambda: asyncio.run(engine.play(request)),
            lambda: engine.policies.update(mine=still),
        ):
            with pytest.raises(StateError, match=rf"{library} has replaced Python's threads.*thread=False"):
                call()
        assert engine.outstanding == len(engine.policies) == 0
        assert len(engine.run([SHORT])) == 1
