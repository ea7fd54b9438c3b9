"""How requests and engines end: cancelled, expired, drained, closed at any moment."""

from __future__ import annotations

import gc
import random
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.live_objects import alive
from tests.pkg.rollouts.playing import Gate, is_soon, results_of, some_requests, steps_of, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, rollouts
from doorstep._native.rollouts import EngineHandle
from doorstep.rollouts import promises

ROUND_ROBIN = rollouts.RoundRobinController(depth=2)


@pytest.fixture
def gate() -> Any:
    gate = Gate()
    yield gate
    gate.open.set()


# ---- Requests

CONTROLLERS = pytest.mark.parametrize("controller", [rollouts.PullController(), ROUND_ROBIN], ids=lambda c: c.type)


@CONTROLLERS
def test_waiting_and_running_requests_are_cancelled(controller: Any, gate: Gate) -> None:
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
        assert len(results) == 12
        assert results[running].reason == "cancelled"
        assert results[running].length <= 1
        assert not results[running].finished
        assert results[waiting[0]].reason == "time"
        for request_id in waiting[1:]:
            result = results[request_id]
            assert (result.reason, result.length, result.replica, result.error) == ("cancelled", 0, -1, "")
            assert result.played_seconds == 0 < result.queued_seconds
        assert engine.drain(30)  # a request has ended a moment after its result could be taken
        assert not any(engine.cancel(request_id) for request_id in results)


def test_a_cancelled_request_is_answered_though_no_other_comes() -> None:
    with RolloutEngine(RolloutConfig(SimulatorConfig(1), controller=ROUND_ROBIN)) as engine:
        gate = Gate()
        ids = engine.submit([EpisodeRequest(policy=gate) for _ in range(6)])
        assert gate.entered.wait(30)
        assert engine.cancel(ids[-1])  # it waits in the engine's queue: the replica's is full
        gate.open.set()
        assert {result.id: result.reason for result in engine}[ids[-1]] == "cancelled"


def test_deadlines_of_waiting_and_running_requests(gate: Gate) -> None:
    with RolloutEngine(SimulatorConfig(1)) as engine:
        blocked = engine.submit(EpisodeRequest(policy=gate, max_steps=1))
        assert gate.entered.wait(30)
        late = engine.submit(EpisodeRequest(deadline=0.01))
        in_time = engine.submit(EpisodeRequest(deadline=1e9, max_steps=3))
        time.sleep(0.02)
        gate.open.set()
        reasons = {result.id: result.reason for result in engine}
        assert reasons == {blocked: "time", late: "expired", in_time: "time"}

        def slowly(observations: NDArray[np.float32]) -> NDArray[np.int32]:
            time.sleep(0.01)
            return np.zeros((len(observations), 4), np.int32)

        for _ in range(20):
            begin = time.monotonic()
            (result,) = results_of(engine, [EpisodeRequest(policy=slowly, deadline=0.5, record="actions")])
            assert time.monotonic() - begin >= 0.5
            assert result.reason == "expired"
            seconds = result.queued_seconds + result.played_seconds  # it was submitted later than it was made
            if result.length and seconds > 0.3:  # else a thread was stopped until the deadline
                break
        assert 0 < result.length == len(result.actions) < 60
        assert 0.3 < seconds < 5


def test_priorities_are_kept(gate: Gate) -> None:
    config = RolloutConfig(SimulatorConfig(1), scheduler=rollouts.PriorityScheduler())
    with RolloutEngine(config) as engine:
        engine.submit(EpisodeRequest(policy=gate, max_steps=1))
        assert gate.entered.wait(30)
        engine.submit([EpisodeRequest(priority=tag % 3, tag=tag, max_steps=2) for tag in range(9)])
        gate.open.set()
        assert [result.request.tag for result in engine][1:] == [2, 5, 8, 1, 4, 7, 0, 3, 6]


def test_submission_waits_for_room_and_times_out(gate: Gate) -> None:
    with RolloutEngine(RolloutConfig(SimulatorConfig(1), queue_capacity=3)) as engine:
        engine.submit(EpisodeRequest(policy=gate, max_steps=1))
        assert gate.entered.wait(30)
        start = time.monotonic()
        with pytest.raises(TimeoutError, match="3 of 5 requests found room") as caught:
            engine.submit(some_requests(5), timeout=0.05)
        assert 0.05 <= time.monotonic() - start < 5
        assert len(caught.value.ids) == 3  # type: ignore[attr-defined]
        with pytest.raises(TimeoutError, match="0 of 2"):
            engine.submit_batch([1, 2], timeout=0)
        assert engine.outstanding == 4
        assert engine.num_waiting == 3
        threading.Timer(0.05, gate.open.set).start()
        ids = engine.submit(some_requests(50))  # waits
        results = {result.id for result in engine}
        assert set(ids) | set(caught.value.ids) < results  # type: ignore[attr-defined]
        assert len(results) == 54


def test_draining_waits_for_results_and_takes_none() -> None:
    with RolloutEngine(SimulatorConfig(4)) as engine:
        assert engine.drain(0)
        engine.submit(some_requests(50, record="stream"))  # steps are no results
        assert engine.drain(60)
        assert engine.outstanding == 50
        assert engine.drain()
        assert engine.num_outputs > 50
        assert len(list(engine)) == 50
        assert engine.get_outputs() == []
        assert engine.get_outputs(block=False) == []


def test_many_threads_submit_take_and_cancel() -> None:
    config = RolloutConfig(SimulatorConfig(16), devices=("cpu",) * 2, controller=ROUND_ROBIN, queue_capacity=50)
    answers: list[Any] = []
    with RolloutEngine(config) as engine:
        done = threading.Event()

        def submit(seed: int) -> None:
            for start in range(0, 200, 10):
                ids = engine.submit(some_requests(10, seed=seed * 1000 + start))
                if start % 40 == 0:
                    engine.cancel(ids[3])

        def take() -> None:
            while not done.is_set() or engine.outstanding:
                answers.extend(engine.get_outputs(timeout=0.01, most=5))

        takers = [threading.Thread(target=take) for _ in range(3)]
        submitters = [threading.Thread(target=submit, args=(seed,)) for seed in range(4)]
        for thread in (*takers, *submitters):
            thread.start()
        for thread in submitters:
            thread.join()
        done.set()
        for thread in takers:
            thread.join()
    assert len(answers) == 800
    assert len({answer.id for answer in answers}) == 800
    assert {answer.reason for answer in answers} <= {"time", "cancelled"}


# ---- Engines


def test_closing_answers_everything() -> None:
    with RolloutEngine(SimulatorConfig(4)) as engine:
        ids = engine.submit_batch(range(20_000)).tolist()  # which take seconds
        while not steps_of(engine):
            time.sleep(0.001)
    engine.close()  # twice
    with pytest.raises(doorstep.ClosedError, match="closed"):
        engine.submit(EpisodeRequest())
    results = list(engine)
    assert sorted(result.id for result in results) == sorted(ids)
    failed = [result for result in results if result.reason == "failed"]
    assert failed
    assert {result.error for result in failed} == {"the engine was closed"}
    assert list(engine) == []
    with pytest.raises(doorstep.ClosedError):
        engine.get_outputs()
    with pytest.raises(doorstep.ClosedError):
        engine.get_records()
    assert engine.drain(0)
    assert not engine.cancel(ids[0])
    assert steps_of(engine) > 0


@pytest.mark.parametrize("seed", range(12))
def test_engines_close_at_any_moment(seed: int) -> None:
    draw = random.Random(seed)
    policy = draw.choice(["random", walk, ("idle", walk)])
    config = RolloutConfig(
        SimulatorConfig(draw.choice([1, 5, 40])),
        devices=("cpu",) * draw.choice([1, 2, 3]),
        controller=draw.choice([rollouts.PullController(), ROUND_ROBIN]),
        scheduler=draw.choice([rollouts.DynamicChunkScheduler(), rollouts.FairShareScheduler()]),
        queue_capacity=draw.choice([10, 1000]),
    )
    engine = RolloutEngine(config)
    submitted: list[int] = []
    futures: list[Any] = []
    taken: list[Any] = []

    def submit() -> None:
        try:
            while True:
                try:
                    submitted.extend(engine.submit(some_requests(17, policy=policy), timeout=0.02))
                except TimeoutError as error:
                    submitted.extend(error.ids)  # type: ignore[attr-defined]
                if seed % 3 == 0:
                    futures.append(engine.future(EpisodeRequest(policy=policy, max_steps=5)))
        except doorstep.ClosedError as error:
            submitted.extend(getattr(error, "ids", []))

    def take() -> None:
        try:
            while True:
                taken.extend(engine.get_outputs(timeout=0.01))
        except doorstep.ClosedError:
            pass

    threads = [threading.Thread(target=submit) for _ in range(2)] + [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(draw.uniform(0, 0.15))
    start = time.monotonic()
    engine.close()
    assert time.monotonic() - start < 10
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    ids = [output.id for output in taken]
    assert len(set(ids)) == len(ids)
    assert set(submitted) <= set(ids)
    assert engine.outstanding == 0
    for future in futures:
        assert future.result(timeout=10).reason in ("time", "failed")


def test_requests_that_come_while_a_reader_sees_that_there_are_none_have_their_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reader's thread is stopped where it has seen no request, and looks whether any may come."""
    ids: list[int] = []
    info = EngineHandle.info

    def late_info(handle: EngineHandle) -> Any:
        monkeypatch.setattr(EngineHandle, "info", info)
        ids.extend(engine.submit(some_requests(20)))
        engine.close()
        return handle.info()

    with RolloutEngine(SimulatorConfig(4)) as engine:
        monkeypatch.setattr(EngineHandle, "info", late_info)
        results = engine.get_outputs()
        assert sorted(result.id for result in [*results, *engine]) == sorted(ids)
    assert len(ids) == 20


def test_futures_that_come_while_their_thread_sees_that_there_are_none_have_their_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread of futures is stopped where it has seen none, and looks whether any may come."""
    futures: list[Any] = []
    keep_all = promises._keep_all

    def keep_all_slowly(signals: promises.Signals) -> None:
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


def test_engines_that_are_dropped_end() -> None:
    engine = RolloutEngine(RolloutConfig(SimulatorConfig(8), devices=("cpu", "cpu"), controller=ROUND_ROBIN))
    engine.submit(some_requests(1000))
    engine.future(EpisodeRequest()).add_done_callback(lambda _: None)
    reference = weakref.ref(engine)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("doorstep-")]
    assert len(threads) == 1  # of futures: those of replicas are native
    del engine
    assert reference() is None
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert is_soon(lambda: not alive())  # the threads of its replicas are not joined


def test_a_close_with_a_timeout_leaves_a_policy_that_does_not_return() -> None:
    gate = Gate()
    engine = RolloutEngine(SimulatorConfig(2))
    engine.submit(EpisodeRequest(policy=gate))
    assert gate.entered.wait(20)
    begin = time.monotonic()
    engine.close(timeout=0.05)
    assert time.monotonic() - begin < 10
    gate.open.set()
    engine.close()
    (result,) = engine
    assert (result.reason, result.error) == ("failed", "the engine was closed")


@pytest.mark.parametrize("leave", ["close", "exit"])
def test_a_timeout_is_that_of_all_policies_together(leave: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a clock that goes on while a thread is joined."""
    gates, now = [Gate() for _ in range(6)], 0.0
    engines = [RolloutEngine(SimulatorConfig(3)) for _ in range(2)]
    for engine, three in zip(engines, (gates[:3], gates[3:]), strict=True):
        engine.submit([EpisodeRequest(policy=gate) for gate in three])
    assert all(gate.entered.wait(20) for gate in gates)

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        nonlocal now
        now += timeout or 0

    with monkeypatch.context() as patch:
        patch.setattr(rollouts.changes, "time", SimpleNamespace(monotonic=lambda: now))
        patch.setattr(threading.Thread, "join", join)
        patch.setattr(rollouts.core, "_cores", [weakref.ref(engine._parts) for engine in engines])
        if leave == "close":
            engines[0].close(timeout=5)
        else:
            rollouts.core._end_all()
        assert now == 5
    for gate in gates:
        gate.open.set()
    for engine in engines:
        engine.close()


def test_engines_in_cycles_end_wherever_they_are_collected() -> None:
    for _ in range(5):
        engine = RolloutEngine(SimulatorConfig(8))
        engine.submit(some_requests(100))
        cycle: list[Any] = [engine]
        cycle.append(cycle)
        del engine, cycle
        gc.collect()
    deadline = time.monotonic() + 20
    while alive() and time.monotonic() < deadline:
        time.sleep(0.01)
        gc.collect()
    assert not alive()


def test_an_engine_that_its_own_policy_refers_to_is_collected() -> None:
    for use in (RolloutEngine.run, results_of):
        engine = RolloutEngine(SimulatorConfig(2))

        def refers(observations: NDArray[np.float32], its: RolloutEngine = engine) -> NDArray[np.int32]:
            assert its.outstanding
            return walk(observations)

        use(engine, [EpisodeRequest(policy=refers, max_steps=1)])
        kept = weakref.ref(engine)
        del engine, refers
        assert is_soon(lambda kept=kept: kept() is None)  # type: ignore[misc]
    assert is_soon(lambda: not alive())


@pytest.mark.parametrize("is_played", [True, False])
def test_an_engine_is_collected_though_results_of_its_own_policy_were_never_read(is_played: bool) -> None:
    for use in ("submit", "a name", "stream"):
        engine = RolloutEngine(SimulatorConfig(2))

        def refers(observations: NDArray[np.float32], its: RolloutEngine = engine) -> NDArray[np.int32]:
            assert its.config
            return walk(observations)

        engine.policies["it"] = refers
        policy: Any = "it" if use == "a name" else refers
        record: Any = "stream" if use == "stream" else ()
        engine.submit([EpisodeRequest(policy=policy, max_steps=1 if is_played else None, record=record)] * 5)
        assert not is_played or engine.drain(20)
        kept = weakref.ref(engine)
        del engine, refers, policy
        assert is_soon(lambda kept=kept: kept() is None)  # type: ignore[misc]
    assert is_soon(lambda: not alive())


def test_futures_of_an_engine_that_is_dropped_get_results() -> None:
    for _ in range(20):
        engine = RolloutEngine(SimulatorConfig(2))
        futures = [engine.future(request) for request in some_requests(10, policy=walk)]
        del engine
        assert {future.result(20).reason for future in futures} <= {"time", "failed"}
        del futures
    assert is_soon(lambda: not alive())


def test_policies_live_no_longer_than_their_requests() -> None:
    torch = pytest.importorskip("torch")
    kept: list[Any] = []
    with RolloutEngine(SimulatorConfig(2)) as engine:
        before = doorstep.live_counts()["policy"]
        for index in range(20):
            network = doorstep.load_policy(torch.nn.Linear(94, 19))
            policies = network.freeze() if index % 2 else network, Gate()
            policies[1].open.set()
            kept += map(weakref.ref, policies)
            engine.run([EpisodeRequest(policy=policies, max_steps=1)])
        del network, policies
        assert is_soon(lambda: not any(one() is not None for one in kept))
        assert is_soon(lambda: doorstep.live_counts()["policy"] == before)
        assert engine.run([EpisodeRequest()])[0].finished


def test_an_engine_ends_though_its_policy_refers_to_it() -> None:
    class Player:
        def __init__(self) -> None:
            self.engine = RolloutEngine(SimulatorConfig(2))

        def act(self, observations: NDArray[np.float32]) -> NDArray[np.int32]:
            return np.zeros((len(observations), 4), np.int32)

    player = Player()
    player.engine.run([EpisodeRequest(policy=player.act, max_steps=2)])
    engine = weakref.ref(player.engine)
    del player
    assert is_soon(lambda: engine() is None)
    assert is_soon(lambda: not alive())


def test_a_thread_that_cannot_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    others = set(threading.enumerate())

    def fails(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    config = RolloutConfig(SimulatorConfig(1), devices=("cpu",) * 3, controller=ROUND_ROBIN)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fails)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            RolloutEngine(config)  # a thread of futures
    assert set(threading.enumerate()) <= others
    assert is_soon(lambda: not alive())
    with RolloutEngine(config) as engine:
        monkeypatch.setattr(threading.Thread, "start", fails)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            engine.submit(EpisodeRequest(policy=walk))  # one that calls policies
        assert engine.outstanding == 0
        assert results_of(engine, some_requests(3))[0].finished


def test_a_policy_may_close_the_engine() -> None:
    def closes(observations: NDArray[np.float32]) -> Any:
        engine.close()
        return np.zeros((len(observations), 4), np.int32)

    engine = RolloutEngine(SimulatorConfig(2))
    engine.submit([EpisodeRequest(policy=closes) for _ in range(10)])
    results = list(engine)
    assert [result.reason for result in results] == ["failed"] * 10
    engine.close()


def test_engines_that_cannot_be_made_leave_nothing() -> None:
    others = set(threading.enumerate())
    config = RolloutConfig(
        SimulatorConfig(2), devices=("cpu", "cuda:99999"), controller=rollouts.RoundRobinController()
    )
    with pytest.raises(doorstep.DoorstepError):
        RolloutEngine(config)
    gc.collect()
    assert set(threading.enumerate()) <= others
    assert doorstep.live_counts()["rollout"] == 0


# ---- Replicas that end


@CONTROLLERS
def test_other_replicas_play_on(controller: Any) -> None:
    config = RolloutConfig(SimulatorConfig(4), devices=("cpu",) * 3, controller=controller)
    with RolloutEngine(config) as engine:
        ids = engine.submit(some_requests(300, record="stream"))
        while steps_of(engine) < 5:
            time.sleep(0.0005)
        engine._core.handle.end_replica(1)
        results = [*engine, *results_of(engine, some_requests(100))]
        assert is_soon(lambda: engine._core.num_playing == 2)
    assert {result.id for result in results} > set(ids)
    assert all(result.finished for result in results)
    assert 1 not in {result.replica for result in results[-50:]}


@CONTROLLERS
def test_the_engine_ends_with_its_last_replica(controller: Any) -> None:
    config = RolloutConfig(SimulatorConfig(4), devices=("cpu", "cpu"), controller=controller, output_capacity=100)
    with RolloutEngine(config) as engine:
        ids = engine.submit(some_requests(2000))  # which are not played before outputs are read
        for number in range(2):
            engine._core.handle.end_replica(number)
        results = list(engine)
        assert {result.id for result in results} == set(ids)
        assert {(result.reason, result.error) for result in results if not result.finished} == {
            ("failed", "the engine was closed")
        }
        with pytest.raises(doorstep.ClosedError, match="closed"):
            engine.submit(EpisodeRequest())
