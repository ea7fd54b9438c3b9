"""RayRolloutEngine: the results of one machine, each once, whatever dies."""

import gc
import os
import subprocess
import sys
import threading

import pytest

import doorstep
from doorstep import ArgumentError, ClosedError, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig

pytest.importorskip("ray")

import ray
import torch
from tests.pkg.ray import clusters
from tests.pkg.ray.clusters import SIMULATOR, WAIT, facts, network, nodes_of_actors, played_here, taken, wait_until
from tests.pkg.rollouts.playing import still
from tests.refuses import assert_refused

from doorstep.ray import ActorsLostError, RayConfig, RayRolloutEngine

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of much


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with clusters.two_nodes(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(autouse=True)
def _errors_are_collected():
    """Errors have frames with handles of actors, whose finalizers make the collector look at them twice."""
    yield
    gc.collect()


# ---- Results


@pytest.mark.slow
def test_named_policies_are_published_and_replaced(cluster):
    asked = [EpisodeRequest(seed=seed, max_steps=20, policy=("it", "idle"), n=2) for seed in range(20)]
    hashes = []
    with RayRolloutEngine(SIMULATOR, RayConfig(chunk=7)) as engine, RolloutEngine(SIMULATOR) as here:
        for policy in ("random", network()):
            engine.policies["it"] = here.policies["it"] = policy
            assert engine.policies["it"] is policy
            ids = engine.submit(asked)
            results = {result.id: result for result in taken(engine)}
            hashes.append([results[one].state_hash for one in ids])
            assert hashes[-1] == [result.state_hash for result in here.run(asked)]
    assert hashes[0] != hashes[1]


# ---- Requests that fail, alone


class Deadly:
    """A policy that ends the process of its actor, until a file tells that it has done so often enough."""

    def __init__(self, file, times):
        self.file, self.times = file, times

    def __call__(self, observations):
        deaths = self.file.read_text() if self.file.exists() else ""
        if len(deaths) < self.times:
            self.file.write_text(deaths + "x")
            os._exit(1)
        return still(observations)


@pytest.mark.slow
def test_what_a_lost_actor_had_is_played_again(cluster, tmp_path):
    deadly = Deadly(tmp_path / "deaths", 2)
    with RayRolloutEngine(SIMULATOR, RayConfig(chunk=10)) as engine:
        policy = engine.publish(deadly)
        ids = engine.submit([EpisodeRequest(seed=seed, tag=seed, max_steps=20) for seed in range(40)])
        last = engine.submit(EpisodeRequest(seed=40, tag=40, policy=policy, max_steps=20))
        results = taken(engine)
    assert (deadly.file.read_text(), sorted(result.id for result in results)) == ("xx", [*ids, last])
    assert all(result.finished for result in results)
    here = [EpisodeRequest(seed=seed, tag=seed, max_steps=20) for seed in range(40)]
    here.append(EpisodeRequest(seed=40, tag=40, policy=still, max_steps=20))
    assert sorted(map(facts, results)) == played_here(here)


def test_what_is_no_policy_or_cannot_be_sent_is_not_published(cluster):
    lock = threading.Lock()
    with RayRolloutEngine(SIMULATOR) as engine:
        for policy, message in [
            (3, "policy is 3; it must be what load_policy"),
            ("walk", "policy is 'walk'"),
            ("scripted", 'it must be one that observes "flat"'),
            (lambda rows: lock, "TypeError: Could not serialize"),
            (torch.nn.Linear(94, 7), "module gives 7"),
        ]:
            with pytest.raises(ArgumentError, match=message):
                engine.publish(policy)


# ---- Engines that fail, and end


def failure_of(engine, count):
    """What callers of an engine are told that has failed with so many requests."""
    assert [result.reason for result in taken(engine)] == ["failed"] * count
    with pytest.raises(ActorsLostError) as caught:
        list(engine)
    for call in (engine.drain, engine.get_outputs, lambda: engine.submit(EpisodeRequest())):
        with pytest.raises(ActorsLostError):
            call()
    return caught.value


@pytest.mark.slow
def test_actors_that_cannot_make_their_engine_end_it(cluster):
    config = SimulatorConfig(8, device="cuda:99")
    with RayRolloutEngine(config, RayConfig(max_losses=2), on_error="return") as engine:
        engine.submit([EpisodeRequest(seed=seed) for seed in range(5)])
        error = failure_of(engine, 5)
    assert "2 actors were lost one after the other, the last by " in str(error)
    assert isinstance(error.__cause__, doorstep.DeviceError)


@pytest.mark.slow
def test_an_engine_outlives_no_cluster(cluster):
    idle, playing = (RayRolloutEngine(SIMULATOR, on_error="return") for _ in range(2))
    for engine in (idle, playing):
        engine.submit(EpisodeRequest(max_steps=1))
        assert len(taken(engine)) == 1
    playing.submit([EpisodeRequest(seed=seed) for seed in range(5000)])
    ray.shutdown()
    try:
        results = taken(playing)
        assert (len(results), {result.reason for result in results}) == (5000, {"failed"})
        for engine in (idle, playing):
            failure_of(engine, 0)
            engine._thread.join(WAIT)
            assert not engine._thread.is_alive()
        assert not ray.is_initialized()
        with pytest.raises(doorstep.StateError, match=r"Ray is not initialised \(call ray.init\(\)"):
            RayRolloutEngine(SIMULATOR)
    finally:
        clusters.join(cluster)


@pytest.mark.slow
def test_the_end_answers_what_is_left(cluster):
    engine = RayRolloutEngine(SIMULATOR, RayConfig(chunk=4))
    ids = engine.submit([EpisodeRequest(seed=seed) for seed in range(400)])
    assert engine.cancel(ids[-1])
    assert not engine.drain(0.0)
    engine.close()
    engine.close()
    results = list(engine)
    assert sorted(result.id for result in results) == ids
    assert {result.reason for result in results} >= {"cancelled", "failed"}
    assert {result.error for result in results if result.reason == "failed"} == {"the engine was closed"}
    for call in (engine.get_outputs, lambda: engine.submit(EpisodeRequest())):
        with pytest.raises(ClosedError, match="this engine was closed") as caught:
            call()
        assert type(caught.value) is ClosedError
    assert engine.drain()


@pytest.mark.slow
def test_an_engine_that_nobody_has_ends_with_its_actors(cluster):
    assert wait_until(lambda: not nodes_of_actors())
    engine = RayRolloutEngine(SIMULATOR, RayConfig(num_actors=2))
    assert wait_until(lambda: len(nodes_of_actors()) == 2)
    engine.submit([EpisodeRequest(seed=seed) for seed in range(100)])
    thread = engine._thread
    del engine
    gc.collect()
    thread.join(WAIT)
    assert not thread.is_alive()
    assert wait_until(lambda: not nodes_of_actors())


@pytest.mark.slow
def test_a_program_may_end_without_closing_its_engine(cluster, tmp_path):
    code = f"""
import doorstep, ray
from doorstep.ray import RayRolloutEngine
ray.init(address={cluster.address!r}, log_to_driver=False)
engine = RayRolloutEngine(doorstep.SimulatorConfig(2, num_threads=1))
engine.submit([doorstep.EpisodeRequest(seed=seed) for seed in range(1000)])
print(len(engine.get_outputs()) > 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_arguments_are_checked(cluster):
    assert_refused(RayRolloutEngine, [(3, "config is 3; it must be a doorstep.RolloutConfig or SimulatorConfig")])
    given = {"config": SIMULATOR, "actors": 2}
    assert_refused(RayRolloutEngine, [(given, "actors is 2; it must be a doorstep.ray.RayConfig or None")])
    with RayRolloutEngine(RolloutConfig(SIMULATOR)) as engine:
        assert engine.config == RolloutConfig(SIMULATOR)
        for call in (
            lambda: engine.submit(EpisodeRequest(), timeout=-1),
            lambda: engine.submit(EpisodeRequest(policy=("idle",))),
            lambda: engine.get_outputs(most=0),
            lambda: engine.get_outputs(block=2),
            lambda: engine.drain(timeout=-1),
            lambda: engine.cancel(-1),
            lambda: engine.submit(EpisodeRequest(n=2)),
            lambda: engine.policies.update({"": "idle"}),
            lambda: engine.policies.update({"it": 3}),
        ):
            with pytest.raises(ArgumentError):
                call()
        for change in (engine.add_replica, lambda: engine.remove_replica(0)):
            with pytest.raises(doorstep.StateError) as refused:
                change()
            assert "num_actors" in refused.value.hint
        assert engine.outstanding == 0
        assert engine.get_outputs() == []
