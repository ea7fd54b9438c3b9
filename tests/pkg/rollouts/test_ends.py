"""How requests and engines end: cancelled, expired, closed at any moment, collected as garbage."""

import collections
import threading
import time
import weakref
from types import SimpleNamespace

import pytest
from tests.live_objects import alive
from tests.pkg.rollouts import playing
from tests.pkg.rollouts.playing import Gate, in_order, is_soon, results_of, some_requests, walk

import doorstep
from doorstep import ClosedError, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, rollouts
from doorstep.rollouts import EpisodeColumns
from doorstep.rollouts.results import EpisodeStep


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open.set()


# ---- Requests

CONTROLLERS = pytest.mark.parametrize("controller", ["pull", "round_robin"])


@CONTROLLERS
def test_waiting_and_running_requests_are_cancelled(controller, gate):
    config = RolloutConfig(SimulatorConfig(1), controller=controller, output_capacity=1)
    with RolloutEngine(config) as engine:
        running = engine.submit(EpisodeRequest(policy=gate))
        assert gate.entered.wait(30)
        waiting = engine.submit(some_requests(10, max_steps=None)) + engine.submit([EpisodeRequest(n=5)])
        assert all(engine.cancel(request_id) for request_id in (*waiting[1:], running))
        assert engine.cancel(running)  # twice
        assert not engine.cancel(running + (9 << 25))  # which it has not given
        gate.open.set()
        results = list(engine)
        by_id = {result.id: result for result in results}
        assert (len(results), by_id[running].reason, by_id[running].finished) == (16, "cancelled", False)
        assert by_id[running].length <= 1
        assert by_id[waiting[0]].reason == "time"
        for result in results:
            if result.id not in (running, waiting[0]):
                assert (result.reason, result.length, result.replica, result.error) == ("cancelled", 0, -1, "")
                assert result.played_seconds == 0 < result.queued_seconds
        assert not any(engine.cancel(request_id) for request_id in by_id)
        with RolloutEngine(config) as other:  # nor those of the requests that have their places now
            again = other.submit(some_requests(10)) + engine.submit(some_requests(12))
            assert {*again}.isdisjoint(by_id)
            assert not any(engine.cancel(request_id) for request_id in by_id)
            with pytest.raises(doorstep.ArgumentError, match="engine"):
                engine.cancel(again[0])
            assert [len(list(other)), len(list(engine))] == [10, 12]


def test_deadlines_of_waiting_and_running_requests(gate):
    def until_it_expires(observations):
        """The second step lasts longer than the request may."""
        steps.append(len(observations))
        if len(steps) == 2:
            time.sleep(0.4)
        return playing.still(observations)

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
        (result,) = engine.run(EpisodeRequest(policy=until_it_expires, deadline=0.4, record="actions"))
        assert (result.reason, result.finished) == ("expired", False)
        assert result.length == len(result.actions) <= 2
        assert result.length >= len(steps) - 1  # the last one may have been asked for when the deadline passed
        assert result.queued_seconds + result.played_seconds >= 0.4


# ---- Engines


def test_closing_answers_everything_and_ends_the_waits_of_other_threads():
    waits = {
        "outputs": lambda engine: engine.get_outputs(),
        "iteration": lambda engine: list(engine),
        "run": lambda engine: engine.run(EpisodeColumns(range(5000))),
        "submit": lambda engine: engine.submit(EpisodeColumns(range(30_000))),
        "future": lambda engine: [one.result() for one in engine.future(EpisodeColumns(range(5000)))],
    }
    for name, wait in waits.items():
        with RolloutEngine(RolloutConfig(SimulatorConfig(4), queue_capacity=20_000), on_error="return") as engine:
            ids = engine.submit(EpisodeColumns(range(20_000))).tolist()  # which take seconds
            while not playing.steps_of(engine):
                time.sleep(0.001)
            taken, raised = [], []

            def in_a_thread(wait=wait, taken=taken, raised=raised, engine=engine):
                try:
                    taken.append(wait(engine))
                except ClosedError as error:
                    raised.append(error)

            thread = threading.Thread(target=in_a_thread)
            thread.start()
            time.sleep(0.02)
            engine.close()
            thread.join(20)
            assert not thread.is_alive()
            engine.close()  # twice
            if name == "submit":
                ids += list(raised[0].ids)
            results = [*engine, *(taken[0] if name in ("outputs", "iteration") else [])]
            assert sorted(result.id for result in results) == sorted(ids), name
            failed = {result.error for result in results if result.reason == "failed"}
            assert failed == {"the engine was closed"}
            assert engine.metrics.total("active_worlds").last == 0  # those that were being played were given back
    for submit in (engine.submit, engine.future, engine.run):
        with pytest.raises(ClosedError, match="closed"):
            submit(EpisodeRequest())
    assert (list(engine), engine.outstanding, engine.cancel(ids[0])) == ([], 0, False)
    with pytest.raises(ClosedError):
        engine.get_outputs()


class Player:
    """Its method is a policy that refers to the engine by it."""

    def __init__(self, config):
        self.engine = RolloutEngine(config)

    def act(self, observations):
        assert self.engine.config
        return walk(observations)


USES = {
    "run": lambda engine, policy: engine.run([EpisodeRequest(policy=policy, max_steps=1)]),
    "unread": lambda engine, policy: engine.submit(some_requests(9, policy=policy)) and playing.play_all(engine),
    "half read": lambda engine, policy: engine.submit(some_requests(9, policy=policy)) and engine.get_outputs(most=1),
    "a loop": lambda engine, policy: engine.submit(some_requests(9, policy=policy)) and next(iter(engine)),
    "streamed": lambda engine, policy: engine.submit([EpisodeRequest(policy=policy, record="stream")] * 5),
    "played": lambda engine, policy: engine.submit([EpisodeRequest(policy=policy)] * 500),
    "a name": lambda engine, policy: [engine.policies.update(it=policy), engine.submit(EpisodeRequest(policy="it"))],
    "a cycle": lambda engine, policy: setattr(policy.__self__, "again", [policy.__self__, engine]),
}


@pytest.mark.parametrize("use", USES)
def test_engines_that_nobody_refers_to_end(use):
    """Also if their own policies refer to them, or futures are kept."""
    config = RolloutConfig(SimulatorConfig(8), devices=("cpu", "cpu"), controller="round_robin")
    player = Player(config)
    USES[use](player.engine, player.act)
    engine = weakref.ref(player.engine)
    other = RolloutEngine(config)
    futures = other.future(some_requests(10, policy=walk))
    futures[0].add_done_callback(lambda _: None)
    reference = weakref.ref(other)
    del player, other
    assert {future.result(20).reason for future in futures} <= {"time", "failed"}
    del futures
    assert is_soon(lambda: engine() is None and reference() is None)
    assert is_soon(lambda: not alive())  # the threads of its replicas are not joined


def test_engines_are_made_and_closed_many_times():
    others = set(threading.enumerate())
    for number in range(200):
        config = RolloutConfig(SimulatorConfig(1 + number % 3, num_threads=1), devices=("cpu",) * (1 + number % 2))
        with RolloutEngine(config) as engine:
            engine.submit(EpisodeRequest(seed=number, max_steps=2, policy=walk, record="observations"))
            future = engine.future(EpisodeRequest(max_steps=1))
            if number % 2:
                assert next(iter(engine)).finished
                assert future.result(20).finished
        assert set(threading.enumerate()) <= others, number
    del engine, future
    assert is_soon(lambda: not alive())


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
        patch.setattr(rollouts.engine, "time", SimpleNamespace(monotonic=lambda: now))
        patch.setattr(threading.Thread, "join", join)
        patch.setattr(rollouts.engine, "_engines", list(map(weakref.ref, engines)))
        engines[0].close(timeout=5) if leave == "close" else rollouts.engine._end_all()
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
        assert engine.run([EpisodeRequest()])[0].finished  # calls look which are needed no more
        assert is_soon(lambda: not any(one() is not None for one in kept))
        assert is_soon(lambda: doorstep.live_counts()["policy"] == before)


def test_what_cannot_start_leaves_nothing(monkeypatch):
    def fails(*_):
        raise RuntimeError("can't start new thread")

    config = RolloutConfig(SimulatorConfig(1), devices=("cpu",) * 3, controller="round_robin")
    with pytest.raises(doorstep.DoorstepError):
        RolloutEngine(config.replace(devices=("cpu", "cuda:99999")))
    assert is_soon(lambda: not alive())
    with RolloutEngine(config) as engine:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fails)
            patch.setattr("_thread.start_new_thread", fails)
            for call in (
                lambda: engine.submit(EpisodeRequest(policy=walk)),  # needs a thread that calls policies
                lambda: engine.future(EpisodeRequest()),  # one that resolves futures
            ):
                with pytest.raises(RuntimeError, match="can't start new thread"):
                    call()
        assert engine.outstanding == 0
        assert results_of(engine, some_requests(3, policy=walk))[0].finished
        assert engine.future(EpisodeRequest()).result(30).finished


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
                playing.end_replica(engine, 1)
        assert sorted(ended) == sorted(ids)
        assert is_soon(lambda: playing.info_of(engine).num_playing == 2)
        assert 1 not in {result.replica for result in results_of(engine, some_requests(50))}
        ids = engine.submit(some_requests(2000))  # which are not played before outputs are read
        for number in (0, 2):
            playing.end_replica(engine, number)
        assert is_soon(lambda: playing.info_of(engine).num_playing == 0)
        failed = {(result.reason, result.error) for result in in_order(engine, ids) if not result.finished}
        assert failed == {("failed", "the engine was closed")}
        with pytest.raises(ClosedError, match="closed"):
            engine.submit(EpisodeRequest())
