"""Replicas that fail, come and go while an engine plays: results are those of the requests."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import RunPython
from tests.pkg.rollouts.playing import results_of, some_requests

import doorstep
from doorstep import Cameras, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.rollouts import PullController, RoundRobinController
from doorstep.rollouts.restarts import RestartLog

SIMULATOR = SimulatorConfig(4, num_threads=1)


@pytest.mark.parametrize("controller", [PullController(), RoundRobinController(depth=10)])
def test_replicas_come_and_go_while_others_play(controller: Any) -> None:
    with RolloutEngine(RolloutConfig(SIMULATOR, controller=controller)) as engine:
        expected = results_of(engine, some_requests(200))
        ids = engine.submit(some_requests(200))
        assert engine.add_replica(num_worlds=1) == 1
        assert engine.add_replica(num_worlds=9, num_threads=2, device="cpu") == 2
        assert list(engine.replicas) == [0, 1, 2]
        engine.remove_replica(0)
        assert list(engine.replicas) == [1, 2]
        results = {result.id: result for result in engine}
        for request_id, same in zip(ids, expected, strict=True):
            assert results[request_id].state_hash == same.state_hash
            assert (results[request_id].returns == same.returns).all()
        players: set[int] = set()
        while players != {1, 2}:  # one may take all requests before the other wakes up
            played = {result.replica for result in results_of(engine, some_requests(100))}
            assert played <= {1, 2}
            players |= played


def test_any_thread_adds_and_removes() -> None:
    def change() -> None:
        for _ in range(5):
            engine.remove_replica(engine.add_replica(num_worlds=2))

    with RolloutEngine(SIMULATOR) as engine:
        threads = [threading.Thread(target=change) for _ in range(3)]
        for thread in threads:
            thread.start()
        results = engine.run(some_requests(500))
        for thread in threads:
            thread.join()
        assert engine.replicas == (0,)
        assert all(result.finished for result in results)


@pytest.mark.parametrize(
    ("rules", "argument"),
    [
        ({"num_agents": 3}, "num_agents"),
        ({"episode_length": 100}, "episode_length"),
        ({"action_check": "raise"}, "action_check"),
        ({"strict": True}, "strict"),
        ({"observations": ("lidar",)}, "observations"),
        ({"max_levels": 0}, "max_levels"),
        ({"cameras": Cameras(width=32, height=32)}, "simulator"),
        ({"num_worlds": 0}, "num_worlds"),
        ({"device": "gpu"}, "device"),
        ({"worlds": 3}, "worlds"),
    ],
)
def test_replicas_that_play_by_other_rules_are_refused(rules: dict[str, Any], argument: str) -> None:
    with RolloutEngine(SIMULATOR.replace(max_levels=2)) as engine:
        with pytest.raises(doorstep.ArgumentError) as caught:
            engine.add_replica(**rules)
        assert caught.value.argument == argument
        assert engine.replicas == (0,)


def test_replicas_that_cannot_be_removed_are_told() -> None:
    with RolloutEngine(SIMULATOR) as engine:
        with pytest.raises(doorstep.StateError, match="the last replica"):
            engine.remove_replica(0)
        engine.add_replica()
        engine.remove_replica(0)
        for number in (0, 2):
            with pytest.raises(doorstep.ArgumentError, match=rf"number is {number}; it must be .*1"):
                engine.remove_replica(number)
        assert engine.run([EpisodeRequest(max_steps=1)])[0].replica == 1
    with pytest.raises(doorstep.ClosedError):
        engine.add_replica()
    with pytest.raises(doorstep.ClosedError):
        engine.remove_replica(1)


class _Failing:
    """Counts of an engine whose replicas have failed; an EngineHandle for the log."""

    def __init__(self, *restarts: int) -> None:
        self.restarts = list(restarts)

    def info(self) -> Any:
        return SimpleNamespace(restarts=sum(self.restarts), num_replicas=len(self.restarts))

    def replica(self, number: int) -> Any:
        return SimpleNamespace(restarts=self.restarts[number])

    def check_replica(self, number: int) -> None:
        raise doorstep.OutOfMemoryError(f"no memory in {number}")


def test_a_restart_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    engine = _Failing(0, 0)
    log = RestartLog(engine, 3)  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, "doorstep.rollouts"):
        log.write()
        engine.restarts = [0, 2]
        log.write()
        log.write()
        engine.restarts = [1, 2]
        log.write()
    assert [record.getMessage() for record in caplog.records] == [
        "replica 1 has failed: restart 2 of 3: OutOfMemoryError: no memory in 1",
        "replica 0 has failed: restart 1 of 3: OutOfMemoryError: no memory in 0",
    ]


@pytest.mark.slow
def test_a_replica_that_fails_is_restarted(run_python: RunPython) -> None:
    code = """
import logging, resource, doorstep
lines = []
logging.getLogger("doorstep.rollouts").addHandler(type("Lines", (logging.Handler,), {
    "emit": lambda self, record: lines.append(record.getMessage())})())
def limit(more):
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (more and pages * resource.getpagesize() + more, -1))
config = doorstep.RolloutConfig(doorstep.SimulatorConfig(4000, num_threads=1), max_restarts=1_000_000)
engine = doorstep.RolloutEngine(config)
handle = engine._core.handle
engine.submit_batch([1] * 4000, max_steps=1)  # now queues have room for as many
engine.get_records(most=4000)
list(engine)
engine.submit_batch(range(4000), policy="random")
while engine.num_waiting:
    pass
limit(2 << 20)
handle.set_policy(0, 0)  # of callers, whose rows find no memory
while not handle.info().restarts:
    pass
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
handle.set_policy(0, 1)
results = list(engine)
assert len(results) == 4000 and all(result.finished for result in results)
assert engine.replicas == (0,)
assert lines and "replica 0 has failed: restart " in lines[0] and "OutOfMemoryError" in lines[0], lines
engine.close()
"""
    run_python(code)
