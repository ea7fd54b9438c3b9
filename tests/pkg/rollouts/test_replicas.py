"""Replicas that fail, come and go while an engine plays: results are those of the requests."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from tests.pkg.rollouts import playing
from tests.pkg.rollouts.playing import assert_equal_results, in_order, is_soon, results_of, some_requests
from tests.refuses import assert_refused

import doorstep
from doorstep import Cameras, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.rollouts.failures import ReplicaLog

SIMULATOR = SimulatorConfig(4, num_threads=1)


@pytest.mark.parametrize("controller", ["pull", "round_robin"])
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


def test_steps_that_were_not_read_stay_in_order_when_another_replica_plays_their_episodes():
    paused, goes_on = threading.Event(), threading.Event()

    def pauses(rows):
        calls.append(len(rows))
        if len(calls) == 6:
            paused.set()
            assert goes_on.wait(30)
        return playing.walk(rows)

    calls, expected = [], [(request, step) for request in range(3) for step in range(1, 10)]
    with RolloutEngine(SIMULATOR) as engine:
        ids = engine.submit([EpisodeRequest(policy=pauses, max_steps=9, record="stream")] * 3)
        assert paused.wait(30)
        behind = engine.submit(some_requests(9))
        assert is_soon(lambda: playing.info_of(engine).unanswered == 3)
        engine.add_replica()
        engine.remove_replica(0)
        goes_on.set()
        outputs = playing.all_outputs(engine, most=7)
    results = [one for one in outputs if isinstance(one, doorstep.EpisodeResult)]
    assert sorted(one.id for one in results) == sorted([*behind, *ids])
    steps = [(ids.index(one.id), one.step) for one in outputs if not isinstance(one, doorstep.EpisodeResult)]
    assert sorted(steps, key=lambda one: one[0]) == expected


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


def test_each_failure_of_a_replica_is_logged_once(caplog):
    replicas = [SimpleNamespace(restarts=0, has_ended=False) for _ in range(3)]  # of an engine
    engine = SimpleNamespace(
        info=lambda: SimpleNamespace(num_replicas=3),
        replica=replicas.__getitem__,
        failure_of=lambda number: None if number == 2 else doorstep.OutOfMemoryError("no memory"),
    )
    log = ReplicaLog(engine, 3)
    with caplog.at_level(logging.WARNING, "doorstep.rollouts"):
        log.write()
        replicas[1].restarts = 2
        replicas[2].has_ended = True  # it was removed
        log.write()
        log.write()
        replicas[0].restarts, replicas[0].has_ended = 3, True
        log.write()
        log.write()
    assert [record.getMessage() for record in caplog.records] == [
        "replica 1 has failed, restart 2 of 3: OutOfMemoryError: no memory",
        "replica 0 has failed, it has ended: OutOfMemoryError: no memory",
    ]
