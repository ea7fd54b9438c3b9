"""How requests and engines end: cancelled, expired, drained, closed at any moment."""

import collections
import gc
import threading
import time
import weakref
from types import SimpleNamespace

import pytest
from tests.live_objects import alive
from tests.pkg.rollouts.playing import Gate, in_order, is_soon, results_of, some_requests, steps_of, still, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, rollouts
from doorstep._native.rollouts import EngineHandle
from doorstep.rollouts import promises
from doorstep.rollouts.result import EpisodeStep

ROUND_ROBIN = rollouts.RoundRobinController(depth=2)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open.set()


# ---- Requests

CONTROLLERS = pytest.mark.parametrize("controller", [rollouts.PullController(), ROUND_ROBIN], ids=lambda c: c.type)


@CONTROLLERS
def test_waiting_and_running_requests_are_cancelled(controller, gate):
    config = RolloutConfig(SimulatorConfig(1), controller=controller, output_capacity=1)
    with RolloutEngine(config) as engine:
        engine.submit(EpisodeRequest(max_steps=1))
        assert is_soon(lambda: engine.num_outputs == 1)  # no other result finds room until this one is read
        running = engine.submit(EpisodeRequest(policy=gate))
        assert gate.entered.wait(30)
        waiting = engine.submit(some_requests(10, max_steps=None))
        assert all(engine.cancel(request_id) for request_id in (*waiting[1:], running))
        assert engine.cancel(running)  # twice
        assert not engine.cancel(running + (9 << 25))  # which it has not given
        gate.open.set()
        results = {result.id: result for result in engine}
        assert (len(results), results[running].reason, results[running].finished) == (12, "cancelled", False)
        assert results[running].length <= 1
        assert results[waiting[0]].reason == "time"
        for result in map(results.get, waiting[1:]):
            assert (result.reason, result.length, result.replica, result.error) == ("cancelled", 0, -1, "")
            assert result.played_seconds == 0 < result.queued_seconds
        assert engine.drain(30)  # a request has ended a moment after its result could be taken
        assert not any(engine.cancel(request_id) for request_id in results)
        with RolloutEngine(config) as other:  # nor those of the requests that have their places now
            again = other.submit(some_requests(10)) + engine.submit(some_requests(12))
            assert {*again}.isdisjoint(results)
            assert not any(engine.cancel(request_id) for request_id in results)
            with pytest.raises(doorstep.ArgumentError, match="engine"):
                engine.cancel(again[0])
            assert [len(list(other)), len(list(engine))] == [10, 12]


def test_deadlines_of_waiting_and_running_requests(gate):
    def until_it_expires(observations):
        """The second step lasts longer than the request may."""
        steps.append(len(observations))
        if len(steps) == 2:
            time.sleep(0.4)
        return still(observations)

    with RolloutEngine(SimulatorConfig(1)) as engine:
        blocked = engine.submit(EpisodeRequest(policy=gate, max_steps=1))
        assert gate.entered.wait(30)
        in_time = engine.submit(EpisodeRequest(deadline=1e9, max_steps=3))
        late = engine.submit(EpisodeRequest(deadline=0.01))
        (result,) = engine.get_outputs()  # although it is not the first that waits, and no world is free
        assert (result.id, result.reason, result.replica, result.length) == (late, "expired", -1, 0)
        gate.open.set()
        assert {result.id: result.reason for result in engine} == {blocked: "time", in_time: "time"}
        steps = []
        (result,) = results_of(engine, [EpisodeRequest(policy=until_it_expires, deadline=0.4, record="actions")])
        assert (result.reason, result.finished) == ("expired", False)
        assert result.length == len(result.actions) <= 2
        assert result.length >= len(steps) - 1  # the last one may have been asked for when the deadline passed
        assert result.queued_seconds + result.played_seconds >= 0.4


def test_submission_waits_for_room_and_times_out(gate):
    with RolloutEngine(RolloutConfig(SimulatorConfig(1), queue_capacity=3, max_policies=3)) as engine:
        engine.submit(EpisodeRequest(policy=gate, max_steps=1))
        assert gate.entered.wait(30)
        start = time.monotonic()
        with pytest.raises(TimeoutError, match="3 of 5 requests found room") as caught:
            engine.submit(some_requests(5), timeout=0.05)
        assert time.monotonic() - start >= 0.05
        assert len(caught.value.ids) == 3
        with pytest.raises(TimeoutError, match="0 of 2"):
            engine.submit_batch([1, 2], timeout=0)
        for _ in range(5):  # of which none keeps the number of its policy
            with pytest.raises(TimeoutError, match="0 of 1"):
                engine.submit(EpisodeRequest(policy=lambda rows: walk(rows)), timeout=0)
        assert (engine.outstanding, engine.num_waiting) == (4, 3)
        threading.Timer(0.05, gate.open.set).start()
        ids = engine.submit(some_requests(50))  # waits
        results = {result.id for result in engine}
        assert {*ids, *caught.value.ids} < results
        assert len(results) == 54


# ---- Engines


def test_closing_answers_everything():
    with RolloutEngine(SimulatorConfig(4)) as engine:
        ids = engine.submit_batch(range(20_000)).tolist()  # which take seconds
        while not steps_of(engine):
            time.sleep(0.001)
    engine.close()  # twice
    for submit in (engine.submit, engine.future, lambda request: engine.run([request])):
        with pytest.raises(doorstep.ClosedError, match="closed"):
            submit(EpisodeRequest())
    results = in_order(engine, ids)
    assert {result.error for result in results if result.reason == "failed"} == {"the engine was closed"}
    assert list(engine) == []
    for call in (engine.get_outputs, engine.get_records):
        with pytest.raises(doorstep.ClosedError):
            call()
    assert engine.drain(0)
    assert not engine.cancel(ids[0])
    assert engine.metrics.total("active_worlds").last == 0  # those that were being played were given back


def test_requests_that_come_while_a_reader_sees_that_there_are_none_have_their_results(monkeypatch):
    """The reader's thread is stopped where it has seen no request, and looks whether any may come."""
    ids = []
    info = EngineHandle.info

    def late_info(handle):
        monkeypatch.setattr(EngineHandle, "info", info)
        ids.extend(engine.submit(some_requests(20)))
        engine.close()
        return handle.info()

    with RolloutEngine(SimulatorConfig(4)) as engine:
        monkeypatch.setattr(EngineHandle, "info", late_info)
        results = engine.get_outputs()
        assert sorted(result.id for result in [*results, *engine]) == sorted(ids)
    assert len(ids) == 20


def test_futures_that_come_while_their_thread_sees_that_there_are_none_have_their_results(monkeypatch):
    """The thread of futures is stopped where it has seen none, and looks whether any may come."""
    futures = []
    keep_all = promises._keep_all

    def keep_all_slowly(signals):
        keep_all(signals)
        if signals.is_ending and not futures:
            futures.extend(engine.future(some_requests(20)))
            engine._core.handle.close()
            assert engine._core.handle.join(30)

    monkeypatch.setattr(promises, "_keep_all", keep_all_slowly)
    with RolloutEngine(SimulatorConfig(4)) as engine:
        engine.future(EpisodeRequest(max_steps=1)).result(30)
        engine._core.promises.signals.end()
        assert is_soon(lambda: bool(futures))
        assert {future.result(30).reason for future in futures} <= {"time", "failed"}


class Player:
    """Its method is a policy that refers to the engine by it."""

    def __init__(self, config):
        self.engine = RolloutEngine(config)

    def act(self, observations):
        assert self.engine.config
        return walk(observations)


USES = {
    "run": lambda engine, policy: engine.run([EpisodeRequest(policy=policy, max_steps=1)]),
    "unread": lambda engine, policy: engine.submit([EpisodeRequest(policy=policy, max_steps=1)]) and engine.drain(20),
    "streamed": lambda engine, policy: engine.submit([EpisodeRequest(policy=policy, record="stream")] * 5),
    "played": lambda engine, policy: engine.submit([EpisodeRequest(policy=policy)] * 500),
    "a name": lambda engine, policy: [engine.policies.update(it=policy), engine.submit(EpisodeRequest(policy="it"))],
    "a cycle": lambda engine, policy: setattr(policy.__self__, "again", [policy.__self__, engine]),
}


@pytest.mark.parametrize("use", USES)
def test_engines_that_nobody_refers_to_end(use):
    """Also if their own policies refer to them, or futures are kept."""
    config = RolloutConfig(SimulatorConfig(8), devices=("cpu", "cpu"), controller=ROUND_ROBIN)
    player = Player(config)
    USES[use](player.engine, player.act)
    engine = weakref.ref(player.engine)
    other = RolloutEngine(config)
    futures = other.future(some_requests(10, policy=walk))
    futures[0].add_done_callback(lambda _: None)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("doorstep-futures")]
    reference = weakref.ref(other)
    del player, other
    assert reference() is None
    assert {future.result(20).reason for future in futures} <= {"time", "failed"}
    assert is_soon(lambda: engine() is None)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    del futures
    assert is_soon(lambda: not alive())  # the threads of its replicas are not joined


@pytest.mark.parametrize("leave", ["close", "exit"])
def test_a_timeout_is_that_of_all_policies_together(leave, monkeypatch):
    """Of a clock that goes on while a thread is joined."""
    gates, now = [Gate() for _ in range(6)], 0.0
    engines = [RolloutEngine(SimulatorConfig(3)) for _ in range(2)]
    for engine, three in zip(engines, (gates[:3], gates[3:]), strict=True):
        engine.submit([EpisodeRequest(policy=gate) for gate in three])
    assert all(gate.entered.wait(20) for gate in gates)

    def join(self, timeout=None):
        nonlocal now
        now += timeout or 0

    with monkeypatch.context() as patch:
        patch.setattr(rollouts.changes, "time", SimpleNamespace(monotonic=lambda: now))
        patch.setattr(threading.Thread, "join", join)
        patch.setattr(rollouts.core, "_cores", [weakref.ref(engine._parts) for engine in engines])
        engines[0].close(timeout=5) if leave == "close" else rollouts.core._end_all()
        assert now == 5
    for gate in gates:
        gate.open.set()
    for engine in engines:
        engine.close()
        assert [(result.reason, result.error) for result in engine] == [("failed", "the engine was closed")] * 3


def test_policies_live_no_longer_than_their_requests():
    torch = pytest.importorskip("torch")
    kept = []
    with RolloutEngine(SimulatorConfig(2)) as engine:
        before = doorstep.live_counts()["policy"]
        for index in range(6):
            network = doorstep.load_policy(torch.nn.Linear(94, 19))
            policies = network.freeze() if index % 2 else network, Gate()
            policies[1].open.set()
            kept += map(weakref.ref, policies)
            engine.run([EpisodeRequest(policy=policies, max_steps=1)])
        del network, policies
        assert is_soon(lambda: not any(one() is not None for one in kept))
        assert is_soon(lambda: doorstep.live_counts()["policy"] == before)
        assert engine.run([EpisodeRequest()])[0].finished


def test_what_cannot_start_leaves_nothing(monkeypatch):
    def fails(self):
        raise RuntimeError("can't start new thread")

    others = set(threading.enumerate())
    config = RolloutConfig(SimulatorConfig(1), devices=("cpu",) * 3, controller=ROUND_ROBIN)
    with pytest.raises(doorstep.DoorstepError):
        RolloutEngine(config.replace(devices=("cpu", "cuda:99999")))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fails)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            RolloutEngine(config)  # a thread of futures
    gc.collect()
    assert set(threading.enumerate()) <= others
    assert is_soon(lambda: not alive())
    with RolloutEngine(config) as engine:
        monkeypatch.setattr(threading.Thread, "start", fails)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            engine.submit(EpisodeRequest(policy=walk))  # one that calls policies
        assert engine.outstanding == 0
        assert results_of(engine, some_requests(3))[0].finished


# ---- Replicas that end
@CONTROLLERS
def test_other_replicas_play_on_and_the_engine_ends_with_the_last(controller):
    """The engine streams each step of a request once and in order, also if another replica plays the request anew."""
    config = RolloutConfig(SimulatorConfig(4), devices=("cpu",) * 3, controller=controller, output_capacity=100)
    with RolloutEngine(config) as engine:
        ids, steps, ended = engine.submit(some_requests(100, record="stream")), collections.Counter(), []
        while engine.outstanding:
            for output in engine.get_outputs(most=7):
                if isinstance(output, EpisodeStep):
                    steps[output.id] += 1
                    assert output.step == steps[output.id]
                else:
                    assert output.length == steps[output.id] == output.request.max_steps
                    ended.append(output.id)
            if len(ended) > 20:
                engine._core.handle.end_replica(1)
        assert sorted(ended) == sorted(ids)
        assert is_soon(lambda: engine._core.num_playing == 2)
        assert 1 not in {result.replica for result in results_of(engine, some_requests(50))}
        ids = engine.submit(some_requests(2000))  # which are not played before outputs are read
        for number in (0, 2):
            engine._core.handle.end_replica(number)
        failed = {(result.reason, result.error) for result in in_order(engine, ids) if not result.finished}
        assert failed == {("failed", "the engine was closed")}
        with pytest.raises(doorstep.ClosedError, match="closed"):
            engine.submit(EpisodeRequest())
