"""What needs Ray: RayRolloutEngine, whose results are those of one machine, each once, whatever dies; and the sweep of
the documentation."""

import gc
import os
import runpy
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import doorstep
from doorstep import ArgumentError, ClosedError, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.policy import SamplingParams

pytest.importorskip("ray")

import ray
import torch
from ray import tune
from ray.cluster_utils import Cluster
from tests.pkg.rollouts.playing import still
from tests.pkg.training.runs import SMALL
from tests.refuses import assert_refused

from doorstep.ray import ActorsLostError, RayConfig, RayRolloutEngine
from doorstep.training import load_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of much

SIMULATOR = SimulatorConfig(8, num_threads=1, max_levels=1)
WAIT = 240.0  # seconds after which a test has hung


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Of one node with a core, which is a process of this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))  # where Ray keeps a token
        head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 << 20}
        made = Cluster(initialize_head=True, head_node_args=head)
        try:
            join(made)
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


def join(cluster):
    ray.init(address=cluster.address, log_to_driver=False)


@pytest.fixture(autouse=True)
def _errors_are_collected():
    """Errors have frames with handles of actors, whose finalizers make the collector look at them twice."""
    yield
    gc.collect()


def are_soon_free(count):
    """Whether so many cores of the cluster are in use by nobody."""
    deadline = time.monotonic() + WAIT
    while ray.available_resources().get("CPU", 0) != count:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


# ---- Results


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(94, 16), torch.nn.Tanh(), torch.nn.Linear(16, 19))


def facts(result):
    """Everything that a request decides, as bits."""
    names = ("returns", "max_y", "actions", "observations", "rewards", "last_observations")
    arrays = [None if getattr(result, name) is None else getattr(result, name).tobytes() for name in names]
    return result.request.tag, result.reason, result.length, result.state_hash, *arrays


def taken(engine):
    """All results that are outstanding, in the order of the requests."""
    results = []
    while engine.outstanding:
        outputs = engine.get_outputs(timeout=WAIT)
        assert outputs, "no result came"
        results += outputs
    return sorted(results, key=lambda result: result.id)


class Deadly:
    """A policy that ends the process of its first actor."""

    def __init__(self, file):
        self.file = file

    def __call__(self, observations):
        if not self.file.exists():
            self.file.touch()
            os._exit(1)
        return still(observations)


def of_all_kinds(network):
    """Requests; network: a policy, as an engine takes it."""
    kinds = [
        {"policy": ("it", "idle"), "n": 2, "max_steps": 20, "record": "observations"},
        {"policy": network, "sampling": SamplingParams(temperature=0.5, seed=3), "max_steps": 40, "record": "actions"},
        {"policy": "random", "level": doorstep.levels.curated()["one door"], "max_steps": 50},
    ]
    return [EpisodeRequest(seed=tag, tag=tag, **kinds[tag % 3]) for tag in range(60)]


@pytest.mark.slow
def test_results_are_those_of_one_machine_also_of_policies_that_are_named_replaced_or_kill_an_actor(cluster, tmp_path):
    net, found = network(), []
    with RayRolloutEngine(SIMULATOR, RayConfig(chunk=7)) as engine, RolloutEngine(SIMULATOR) as here:
        asked, same_asked = of_all_kinds(engine.publish(net)), of_all_kinds(doorstep.load_policy(net))
        for policy, same in (("random", "random"), (net, net), (Deadly(tmp_path / "death"), still)):
            engine.policies["it"], here.policies["it"] = policy, same
            assert engine.policies["it"] is policy
            ids = engine.submit(asked)
            results = taken(engine)
            assert [result.id for result in results] == ids
            found.append(list(map(facts, results)))
            assert found[-1] == list(map(facts, here.run(same_asked)))
    assert (tmp_path / "death").exists()
    assert found[0] != found[1] != found[2]


# ---- What is refused


def test_what_is_no_policy_or_cannot_be_sent_is_not_published(cluster):
    lock = threading.Lock()
    with RayRolloutEngine(SIMULATOR) as engine:
        for policy, message in (
            (3, "policy is 3; it must be what load_policy"),
            ("walk", "policy is 'walk'"),
            ("scripted", 'it must be one that observes "flat"'),
            (lambda rows: lock, "TypeError: Could not serialize"),
            (torch.nn.Linear(94, 7), "module gives 7"),
        ):
            with pytest.raises(ArgumentError, match=message):
                engine.publish(policy)


def test_arguments_are_checked(cluster):
    given = {"config": SIMULATOR, "actors": 2}
    rows = [(3, "config is 3; it must be a doorstep.RolloutConfig or SimulatorConfig")]
    rows += [(given, "actors is 2; it must be a doorstep.ray.RayConfig or None")]
    assert_refused(RayRolloutEngine, rows)
    with RayRolloutEngine(RolloutConfig(SIMULATOR)) as engine:
        assert engine.config == RolloutConfig(SIMULATOR)
        for call in (
            lambda: engine.submit(EpisodeRequest(), timeout=-1),
            lambda: engine.submit(EpisodeRequest(n=2)),
            lambda: engine.get_outputs(most=0),
            lambda: engine.get_outputs(block=2),
            lambda: engine.drain(timeout=-1),
            lambda: engine.cancel(-1),
        ):
            with pytest.raises(ArgumentError):
                call()
        for change in (engine.add_replica, lambda: engine.remove_replica(0)):
            with pytest.raises(doorstep.StateError) as refused:
                change()
            assert "num_actors" in refused.value.hint
        assert engine.outstanding == 0
        assert engine.get_outputs() == []


# ---- Engines that fail, and end


def failure_of(engine, count):
    """What callers of an engine are told that has failed with so many requests."""
    assert [result.reason for result in taken(engine)] == ["failed"] * count
    for call in (lambda: list(engine), engine.drain, engine.get_outputs, lambda: engine.submit(EpisodeRequest())):
        with pytest.raises(ActorsLostError) as caught:
            call()
    return caught.value


@pytest.mark.slow
def test_actors_that_cannot_make_their_engine_end_it(cluster):
    config = SimulatorConfig(8, device="cuda:99")
    with RayRolloutEngine(config, RayConfig(max_losses=1), on_error="return") as engine:
        engine.submit([EpisodeRequest(seed=seed) for seed in range(5)])
        error = failure_of(engine, 5)
    assert "1 actors were lost one after the other, the last by " in str(error)
    assert isinstance(error.__cause__, doorstep.DeviceError)


@pytest.mark.slow
def test_an_engine_outlives_no_cluster(cluster):
    halves = RayConfig(cpus_per_actor=0.5)
    idle, playing = (RayRolloutEngine(SIMULATOR, halves, on_error="return") for _ in range(2))
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
        join(cluster)


def test_the_end_answers_what_is_left(cluster):
    engine = RayRolloutEngine(SIMULATOR, RayConfig(chunk=4))
    ids = engine.submit([EpisodeRequest(seed=seed) for seed in range(400)])
    assert engine.cancel(ids[-1])
    assert not engine.drain(0.0)
    engine.close()
    results = list(engine)
    assert sorted(result.id for result in results) == ids
    assert {(one.reason, one.error) for one in results} >= {("cancelled", ""), ("failed", "the engine was closed")}
    with pytest.raises(ClosedError, match="this engine was closed"):
        engine.get_outputs()


@pytest.mark.slow
def test_an_engine_that_nobody_has_ends_with_its_actors(cluster):
    assert are_soon_free(1)
    engine = RayRolloutEngine(SIMULATOR)
    assert are_soon_free(0)
    engine.submit([EpisodeRequest(seed=seed) for seed in range(100)])
    thread = engine._thread
    del engine
    gc.collect()
    thread.join(WAIT)
    assert not thread.is_alive()
    assert are_soon_free(1)


@pytest.mark.slow
def test_a_program_may_end_without_closing_its_engine(cluster):
    code = f"""
import doorstep, ray
from doorstep.ray import RayRolloutEngine
ray.init(address={cluster.address!r}, log_to_driver=False)
engine = RayRolloutEngine(doorstep.SimulatorConfig(2, num_threads=1))
engine.submit([doorstep.EpisodeRequest(seed=seed) for seed in range(1000)])
print(len(engine.get_outputs()) > 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT, check=False)
    assert done.returncode == 0, done.stderr
    assert "True" in done.stdout.splitlines()
    assert "Traceback" not in done.stderr


# ---- The sweep of the documentation


@pytest.mark.slow
def test_trials_and_sweeps_go_on_where_they_ended(cluster, tmp_path):
    """A trial whose worker dies goes on from its checkpoint; what has ended is not run again."""
    example = runpy.run_path(str(Path(__file__).resolve().parents[3] / "docs/examples/tune_sweep.py"))
    settings = dict(setting.split("=") for setting in (*SMALL, "num_updates=7", "checkpoint_every=3"))
    train, killed = example["train"], tmp_path / "killed"

    def train_and_die(settings):
        """Ends the process of the first worker when it has reported its fifth update."""
        report = tune.report

        def report_and_die(result, **checkpoint):
            report(result, **checkpoint)
            if result["update"] == 5 and not killed.exists():
                killed.touch()
                os._exit(1)

        tune.report = report_and_die
        train(settings)

    example["sweep"].__globals__["train"] = train_and_die
    (first,), (again,) = (example["sweep"](settings, tmp_path / "sweep") for _ in range(2))
    assert (first.error, again.checkpoint.path) == (None, first.checkpoint.path)
    assert first.metrics_dataframe["update"].tolist() == [1, 2, 3, 4, 5, 4, 5, 6, 7]
    assert load_checkpoint(Path(first.checkpoint.path) / example["FILE"]).update == 7
