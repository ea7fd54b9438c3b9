"""Replicas that fail, come and go while an engine plays: results are those of the requests."""

import logging
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from tests.pkg.rollouts.playing import assert_equal_results, in_order, is_soon, results_of, some_requests
from tests.refuses import assert_refused, raising

import doorstep
from doorstep import Cameras, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, rollouts
from doorstep.rollouts import PullController, RoundRobinController
from doorstep.rollouts.restarts import RestartLog

SIMULATOR = SimulatorConfig(4, num_threads=1)


@pytest.mark.parametrize("controller", [PullController(), RoundRobinController(depth=10)])
def test_replicas_come_and_go_while_others_play(controller):
    with RolloutEngine(RolloutConfig(SIMULATOR, controller=controller)) as engine:
        expected = results_of(engine, some_requests(200))
        ids = engine.submit(some_requests(200))
        assert engine.add_replica(num_worlds=1) == 1
        assert engine.add_replica(num_worlds=9, num_threads=2, device="cpu") == 2
        assert list(engine.replicas) == [0, 1, 2]
        engine.remove_replica(0)
        assert list(engine.replicas) == [1, 2]
        assert_equal_results(in_order(engine, ids), expected)
        players = set()
        while players != {1, 2}:  # one may take all requests before the other wakes up
            played = {result.replica for result in results_of(engine, some_requests(100))}
            assert played <= {1, 2}
            players |= played


def test_any_thread_adds_and_removes():
    def change():
        for _ in range(5):
            engine.remove_replica(engine.add_replica(num_worlds=2))

    with RolloutEngine(SIMULATOR) as engine:
        with ThreadPoolExecutor() as threads:
            changes = [threads.submit(change) for _ in range(3)]
            results = engine.run(some_requests(500))
        assert [one.result() for one in changes] == [None] * 3
        assert engine.replicas == (0,)
        assert all(result.finished for result in results)


def test_replicas_that_play_by_other_rules_are_refused():
    parts = (("self_observations", 0.5), "lidar")
    observations = (("lidar",), parts[::-1], (("self_observations", 0.25), "lidar"), (parts[0], ("lidar", 2)))
    others = {"num_agents": 3, "episode_length": 100, "action_check": "raise", "strict": True, "max_levels": 0}
    others |= {"num_worlds": 0, "device": "gpu", "worlds": 3}
    with RolloutEngine(SIMULATOR.replace(max_levels=2, observations=parts)) as engine:
        assert_refused(engine.add_replica, [({name: value}, name) for name, value in others.items()])
        assert_refused(engine.add_replica, [({"observations": one}, "observations") for one in observations])
        cameras = Cameras(width=32, height=32)
        assert_refused(engine.add_replica, [({"cameras": cameras}, "cameras")], argument="simulator")
        assert engine.replicas == (0,)


def test_replicas_that_cannot_be_removed_are_told():
    with RolloutEngine(SIMULATOR) as engine:
        with pytest.raises(doorstep.StateError, match="the last replica"):
            engine.remove_replica(0)
        engine.add_replica()
        engine.remove_replica(0)
        for number in (0, 2):
            with pytest.raises(doorstep.ArgumentError, match=rf"number is {number}; it must be .*1"):
                engine.remove_replica(number)
        assert engine.run([EpisodeRequest(max_steps=1)])[0].replica == 1
    for change in (engine.add_replica, lambda: engine.remove_replica(1)):
        with pytest.raises(doorstep.ClosedError):
            change()


def test_a_replica_that_has_failed_is_told_once_and_one_that_was_removed_never(monkeypatch):
    failure = doorstep.OutOfMemoryError("no memory")
    with RolloutEngine(RolloutConfig(SIMULATOR, devices=("cpu",) * 3), on_error="return") as engine:
        monkeypatch.setattr(rollouts.core, "_failure_of", lambda handle: failure)
        engine.remove_replica(2)
        assert is_soon(lambda: engine._core.num_playing == 2)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            engine.submit(EpisodeRequest(max_steps=1))
            assert told == []
            engine._core.handle.end_replica(0)
            assert is_soon(lambda: engine._core.num_playing == 1)
            for _ in range(2):
                engine.submit(EpisodeRequest(max_steps=1))
        expected = "a replica has ended, others play on: OutOfMemoryError: no memory"
        found = [(one.category, str(one.message), one.filename) for one in told]
        assert found == [(RuntimeWarning, expected, __file__)]
        engine._core.handle.end_replica(1)
        assert is_soon(lambda: not engine._core.num_playing)
        with pytest.raises(doorstep.ClosedError, match="replicas of this engine have ended: OutOfMem") as caught:
            engine.submit(EpisodeRequest())
        assert caught.value.__cause__ is failure
        assert len(list(engine)) == 3


def test_a_restart_is_logged_once(caplog):
    restarts = [0, 0]  # of an engine whose replicas have failed
    engine = SimpleNamespace(
        info=lambda: SimpleNamespace(restarts=sum(restarts), num_replicas=2),
        replica=lambda number: SimpleNamespace(restarts=restarts[number]),
        check_replica=raising(doorstep.OutOfMemoryError, "no memory"),
    )
    log = RestartLog(engine, 3)
    with caplog.at_level(logging.WARNING, "doorstep.rollouts"):
        log.write()
        restarts[1] = 2
        log.write()
        log.write()
        restarts[0] = 1
        log.write()
    assert [record.getMessage() for record in caplog.records] == [
        "replica 1 has failed: restart 2 of 3: OutOfMemoryError: no memory",
        "replica 0 has failed: restart 1 of 3: OutOfMemoryError: no memory",
    ]
