"""RayRolloutEngine, whose results are those of one machine, each once, whatever dies; and the sweep of the docs."""

import gc
import os
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import doorstep
from doorstep import ArgumentError, ClosedError, EpisodeRequest, RolloutEngine, SimulatorConfig, StateError
from doorstep.policy import SamplingParams

pytest.importorskip("ray")

import ray
import torch
from ray import tune
from ray.cluster_utils import Cluster
from tests.pkg.rollouts.playing import divides, still
from tests.pkg.training.runs import SMALL
from tests.refuses import assert_refused

from doorstep.ray import RayConfig, RayRolloutEngine
from doorstep.ray.work import Work, in_chunks
from doorstep.training import load_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of much

SIMULATOR = SimulatorConfig(8, num_threads=1, max_levels=1)
HALVES = RayConfig(num_actors=2, cpus_per_actor=0.5, chunk=7)
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
    """Errors have frames with handles of actors."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def shared(cluster):
    """An engine for tests that do it no harm."""
    with RayRolloutEngine(SIMULATOR, HALVES) as engine:
        yield engine


def are_soon_free(count):
    """Whether so many cores of the cluster are in use by nobody."""
    deadline = time.monotonic() + WAIT
    while ray.available_resources().get("CPU", 0) != count and time.monotonic() < deadline:
        time.sleep(0.05)
    return ray.available_resources().get("CPU", 0) == count


# ---- Results


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(94, 16), torch.nn.Tanh(), torch.nn.Linear(16, 19))


def facts(result):
    """Everything that a request decides, as bits."""
    names = ("returns", "max_y", "actions", "observations", "rewards", "last_observations", "log_probs")
    arrays = [None if getattr(result, name) is None else getattr(result, name).tobytes() for name in names]
    return result.request.tag, result.continuation, result.reason, result.length, result.state_hash, *arrays


def taken(engine, most=4096):
    """All results that are outstanding, in the order of the requests."""
    results = []
    while engine.outstanding:
        outputs = engine.get_outputs(timeout=WAIT, most=most)
        assert outputs, "no result came"
        assert len(outputs) <= most
        results += outputs
    return sorted(results, key=lambda result: (result.id, result.continuation))


def of_all_kinds(one, network):
    """Requests with two policies, as an engine takes them."""
    state = doorstep.Simulator(1, seed=3, num_threads=1, max_levels=1).save([0])
    kinds = [
        {"policy": (one, "idle"), "n": 3, "max_steps": 20, "record": "observations"},
        {"policy": network, "sampling": SamplingParams(temperature=0.5), "max_steps": 40, "record": "log_probs"},
        {"policy": "random", "level": doorstep.levels.curated()["one door"], "max_steps": 50},
        {"policy": "random", "state": state, "n": 9, "max_steps": 8},
    ]
    return [EpisodeRequest(seed=tag, tag=tag, **kinds[tag % 4]) for tag in range(60)]


def test_results_are_those_of_one_machine(shared):
    net = network()
    mine, its, found = shared.publish(net), doorstep.load_policy(net), []
    with RolloutEngine(SIMULATOR) as here:
        for policy, same in (("random", "random"), (mine, its), (shared.publish(still), still)):
            requests = of_all_kinds(policy, mine)
            results = shared.run(requests)
            assert [result.request for result in results] == [one for one in requests for _ in range(one.n)]
            assert all(array.flags.writeable for array in vars(results[0]).values() if isinstance(array, np.ndarray))
            ids = shared.submit(requests[:30])
            read = taken(shared, most=10)
            assert sorted({result.id for result in read}) == ids
            found.append(list(map(facts, results)))
            assert found[-1] == list(map(facts, here.run(of_all_kinds(same, its))))
            assert list(map(facts, read)) == found[-1][: len(read)]
    assert found[0] != found[1] != found[2]


def test_few_requests_are_sent_together():
    """And many in chunks; one that is larger goes alone."""
    requests = {number: EpisodeRequest(n=count) for number, count in enumerate((3, 3, 9, 1, 2, 6))}
    assert [list(chunk.asked) for chunk in in_chunks(Work(), requests, 7)] == [[0, 1], [2], [3, 4], [5]]


def test_any_thread_may_submit_and_read(shared):
    results, threads = [], []

    def play(first):
        for seed in range(first, first + 20):
            shared.submit(EpisodeRequest(seed=seed, tag=seed, max_steps=2))
        results.extend(shared)

    for first in (0, 20, 40):
        threads.append(threading.Thread(target=play, args=[first]))
        threads[-1].start()
    run = shared.run(EpisodeRequest(seed=5, n=3))
    for thread in threads:
        thread.join(WAIT)
    results += list(shared)
    assert sorted(result.request.tag for result in results) == list(range(60))
    assert [result.continuation for result in run] == [0, 1, 2]
    assert shared.get_outputs() == []


# ---- What is refused, and what fails


def test_what_is_no_policy_or_cannot_be_sent_is_not_published(shared):
    lock = threading.Lock()
    for policy, message in (
        (3, "policy is 3; it must be what load_policy"),
        ("walk", "policy is 'walk'"),
        ("scripted", 'it must be one that observes "flat"'),
        (lambda rows: lock, "TypeError: Could not serialize"),
        (torch.nn.Linear(94, 7), "module gives 7"),
    ):
        with pytest.raises(ArgumentError, match=message):
            shared.publish(policy)


def test_arguments_are_checked(shared):
    given = {"config": SIMULATOR, "actors": 2}
    rows = [(3, "config is 3; it must be a doorstep.RolloutConfig or SimulatorConfig")]
    assert_refused(RayRolloutEngine, [*rows, (given, "actors is 2; it must be a doorstep.ray.RayConfig or None")])
    rows = [
        ({"num_actors": 0}, "num_actors is 0; it must be an integer, 1 to 4096"),
        ({"cpus_per_actor": 1.5}, "cpus_per_actor is 1.5; it must be a part of one, or a whole number"),
        ({"gpus_per_actor": -1}, "gpus_per_actor is -1"),
        *(({name: 0}, f"{name} is 0") for name in ("chunk", "start_timeout")),
    ]
    assert_refused(RayConfig, rows)
    rows = [  # what actors cannot do
        ({"policy": ("idle", len)}, "policy is <built-in function len> ... publish() it"),
        ({"policy": "walk"}, "policy is 'walk'; it must be 'random', "),
        ({"policy": ("idle",)}, "policy is ('idle',); it must be one policy, or a tuple of 2"),
        ({"deadline": 1.0}, "deadline is 1.0; it must be None"),
        ({"record": ("actions", "stream")}, "it must be without 'stream'"),
    ]
    assert_refused(lambda **one: shared.submit([EpisodeRequest(), EpisodeRequest(**one)]), rows)
    for call in (
        lambda: shared.submit([EpisodeRequest(), 3]),
        lambda: shared.run(3),
        lambda: shared.get_outputs(most=0),
        lambda: shared.get_outputs(block=2),
    ):
        with pytest.raises(ArgumentError):
            call()
    assert shared.config == doorstep.RolloutConfig(SIMULATOR)
    assert shared.outstanding == 0
    assert shared.get_outputs() == []


def test_what_makes_one_request_fail_fails_no_other(shared):
    """A policy that raises; what no policy tells; a level that needs more agents. Their errors come in order."""
    wrong = [EpisodeRequest(policy=shared.publish(divides)), EpisodeRequest(policy="idle", record="values", n=2)]
    requests = [EpisodeRequest(seed=seed, max_steps=3) for seed in range(5)]
    requests[2:2] = wrong
    shared.submit(requests)
    lengths, errors = [], []
    while shared.outstanding:
        try:
            lengths += [result.length for result in shared.get_outputs(timeout=WAIT)]
        except StateError as error:  # noqa: PERF203
            errors.append(error.result.error)
    assert lengths == [3] * 5
    assert len(errors) == 3
    assert "ZeroDivisionError: by the policy" in errors[0]
    assert "no policy has a value head" in errors[1] == errors[2]
    with pytest.raises(StateError, match="by the policy"):
        shared.run(requests)
    assert len(shared.run(requests[:2])) == 2


# ---- What dies, and what interrupts


class Deadly:
    """A policy that ends the process of its first actor, or of all."""

    def __init__(self, file, spares=True):
        self.file, self.spares = file, spares

    def __call__(self, observations):
        if not (self.spares and self.file.exists()):
            self.file.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return still(observations)


@pytest.mark.slow
def test_actors_that_die_lose_nothing_and_what_kills_all_of_them_fails(shared, tmp_path):
    deadly = shared.publish(Deadly(tmp_path / "death"))
    requests, same = (
        [EpisodeRequest(seed=seed, max_steps=20, policy=policy) for seed in range(60)] for policy in (deadly, still)
    )
    with RolloutEngine(SIMULATOR) as here:
        assert list(map(facts, shared.run(requests))) == list(map(facts, here.run(same)))
    assert (tmp_path / "death").exists()
    shared.submit([EpisodeRequest(seed=seed) for seed in range(100)])
    ray.kill(shared._actors[0].handle, no_restart=False)
    assert len(taken(shared)) == 100
    with pytest.raises(StateError, match="ActorUnavailableError"):
        shared.run(EpisodeRequest(policy=shared.publish(Deadly(tmp_path / "death", spares=False))))
    assert len(shared.run(requests)) == 60


class Pressing:
    """Ctrl-C in a block, again and again."""

    def __init__(self):
        self.random = random.Random(1)

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self.press)
        self.press_later()

    def __exit__(self, *exception):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def press_later(self):
        signal.setitimer(signal.ITIMER_REAL, self.random.uniform(0.0005, 0.02))

    def press(self, *_):
        self.press_later()
        raise KeyboardInterrupt


@pytest.mark.slow
def test_ctrl_c_loses_and_doubles_nothing(shared):
    requests = [EpisodeRequest(seed=seed, tag=seed, max_steps=5) for seed in range(5000)]
    shared.submit(requests)
    found, interrupted, pressing = [], 0, Pressing()
    while shared.outstanding:
        try:
            with pressing:
                outputs = shared.get_outputs(most=7)
                found.extend(outputs)
                for result in shared:
                    found.append(result)  # noqa: PERF402
        except KeyboardInterrupt:  # noqa: PERF203
            interrupted += 1
    assert interrupted > 10
    assert sorted(result.request.tag for result in found) == list(range(5000))
    for _ in range(20):
        with pytest.raises(KeyboardInterrupt), pressing:  # noqa: PT012
            while True:
                shared.run(requests)
    assert [result.request for result in shared.run(requests[:20])] == requests[:20]


# ---- Engines that fail, and end


def failure_of(engine, count):
    """What callers of an engine are told that has failed with so many requests."""
    assert [result.reason for result in taken(engine)] == ["failed"] * count
    submits = [lambda: engine.submit(EpisodeRequest()), lambda: engine.run([]), lambda: engine.publish("idle")]
    for call in (lambda: list(engine), engine.get_outputs, *submits):
        with pytest.raises(ClosedError) as caught:
            call()
    return caught.value


def test_the_end_answers_what_is_left(cluster):
    with RayRolloutEngine(SIMULATOR, RayConfig(chunk=4, cpus_per_actor=0)) as engine:
        ids = engine.submit([EpisodeRequest(seed=seed) for seed in range(400)])
        assert engine.get_outputs(block=False) == engine.get_outputs(timeout=0.01) == []
        first = engine.get_outputs(most=1)
    results = [*first, *engine]
    assert sorted(result.id for result in results) == ids
    assert {(one.reason, one.error) for one in results} == {("time", ""), ("failed", "the engine was closed")}
    with pytest.raises(ClosedError, match="the engine was closed"):
        engine.get_outputs()
    engine.close()


@pytest.mark.slow
def test_actors_that_cannot_make_their_engine_or_never_start_end_it(cluster):
    for config, actors, message in (
        (SimulatorConfig(8, device="cuda:99"), RayConfig(cpus_per_actor=0), "no actor is ready: doorstep.errors"),
        (SIMULATOR, RayConfig(cpus_per_actor=99, start_timeout=0.5), "no actor is ready: none has answered for 0.5"),
    ):
        with RayRolloutEngine(config, actors, on_error="return") as engine:
            engine.submit([EpisodeRequest(seed=seed) for seed in range(5)])
            assert message in str(failure_of(engine, 5))


@pytest.mark.slow
def test_an_actor_that_is_killed_for_good_leaves_its_requests_to_others(cluster):
    with RayRolloutEngine(SIMULATOR, RayConfig(num_actors=2, cpus_per_actor=0, chunk=4)) as engine:
        assert len(engine.run([EpisodeRequest(seed=seed) for seed in range(20)])) == 20
        engine.submit([EpisodeRequest(seed=seed) for seed in range(200)])
        ray.kill(engine._actors[0].handle)
        assert len(taken(engine)) == 200


@pytest.mark.slow
def test_the_actors_of_an_engine_that_nobody_has_end(cluster, shared):
    shared.close()
    assert are_soon_free(1)
    engine = RayRolloutEngine(SIMULATOR)
    engine.submit([EpisodeRequest(seed=seed) for seed in range(100)])
    assert len(engine.get_outputs(most=1)) == 1
    assert are_soon_free(0)
    del engine
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


@pytest.mark.slow
def test_an_engine_outlives_no_cluster(cluster):
    idle, playing = (RayRolloutEngine(SIMULATOR, RayConfig(cpus_per_actor=0), on_error="return") for _ in range(2))
    for engine in (idle, playing):
        assert len(engine.run(EpisodeRequest(max_steps=1))) == 1
    playing.submit([EpisodeRequest(seed=seed) for seed in range(30_000)])
    threading.Timer(0.3, ray.shutdown).start()
    try:
        reasons = [result.reason for result in taken(playing)]  # which waits when Ray ends
        assert (len(reasons), reasons[-1]) == (30_000, "failed")
        for engine in (idle, playing):
            assert "Ray was shut down" in str(failure_of(engine, 0))
        assert not ray.is_initialized()
        with pytest.raises(StateError, match=r"Ray is not initialised \(call ray.init\(\)"):
            RayRolloutEngine(SIMULATOR)
    finally:
        join(cluster)


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
