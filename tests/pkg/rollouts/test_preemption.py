"""The order in which requests are played; episodes that give their worlds to earlier ones, and go on later."""

import time

import numpy as np
import pytest
from tests.pkg.rollouts.playing import Gate, all_outputs, assert_equal_results, in_order, results_of, steps_of, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, rollouts
from doorstep.levels import Level, Spawn
from doorstep.policy import SamplingParams
from doorstep.rollouts import EarliestDeadlineScheduler, PriorityScheduler, RoundRobinController

PREEMPTS = PriorityScheduler(preempts=True)


def config_of(scheduler, num_worlds, **fields):
    return RolloutConfig(SimulatorConfig(num_worlds, num_threads=1), scheduler=scheduler, **fields)


# ---- Orders

KEYS = {  # smaller: earlier
    rollouts.FixedChunkScheduler(): lambda request: 0,
    rollouts.DynamicChunkScheduler(begin_fraction=0.01): lambda request: 0,
    PriorityScheduler(): lambda request: -request.priority,
    EarliestDeadlineScheduler(): lambda request: request.deadline or 1e9,
    rollouts.LeastRemainingStepsScheduler(): lambda request: request.max_steps or 200,
}


@pytest.mark.parametrize("num_replicas", [1, 2])
@pytest.mark.parametrize("scheduler", KEYS, ids=lambda one: one.type)
def test_requests_are_played_in_the_order_of_the_scheduler(scheduler, num_replicas):
    """Also if they wait in queues of a replica, after others that have been cancelled and taken back."""
    gate = Gate()
    config = config_of(scheduler, 1, devices=("cpu",) * num_replicas, controller=RoundRobinController(depth=200))
    config = config if num_replicas > 1 else config.replace(controller=rollouts.PullController())
    draw = np.random.default_rng(3)
    with RolloutEngine(config) as engine:
        engine.submit([EpisodeRequest(policy=gate, max_steps=1, priority=99, deadline=1e4)] * num_replicas)
        while engine.num_waiting or not gate.entered.wait(30):
            pass
        priorities, deadlines, steps = draw.integers((-3, 19999, 1), (4, 20005, 6), (40, 3)).T.tolist()
        deadlines = [None if one == 19999 else float(one) for one in deadlines]
        rows = enumerate(zip(priorities, deadlines, steps, strict=True))
        requests = [EpisodeRequest(priority=a, deadline=b, max_steps=c, tag=tag) for tag, (a, b, c) in rows]
        ids = engine.submit(requests)
        for one in ids[::7]:
            engine.cancel(one)
        if num_replicas > 1:
            engine._core.handle.end_replica(0)
        gate.open.set()
        results = [one for one in engine if one.finished and one.id in ids]
    if num_replicas == 1:
        left = [request for tag, request in enumerate(requests) if tag % 7]
        assert [one.request.tag for one in results] == [one.tag for one in sorted(left, key=KEYS[scheduler])]
    assert sorted(one.request.tag for one in results) == [tag for tag in range(40) if tag % 7]


def test_policies_get_equal_shares_of_steps():
    """Of those that are played, however many are submitted or asked for, and however late a policy comes."""
    gate, short = Gate(), Level(spawns=[Spawn(0, 3), Spawn(2, 3)], episode_length=30)
    config = config_of(rollouts.FairShareScheduler(), 1).replace(simulator=SimulatorConfig(1, max_levels=1))
    with RolloutEngine(config) as engine:
        engine.run([EpisodeRequest(policy="random", max_steps=10)] * 50)
        engine.submit(EpisodeRequest(policy=gate, max_steps=1))
        assert gate.entered.wait(30)
        engine.submit([EpisodeRequest(policy="random", max_steps=10)] * 40)
        dropped = engine.submit([EpisodeRequest(policy="idle", level=short)] * 20)[10:]  # which comes now
        assert all(map(engine.cancel, dropped))  # these count nothing
        gate.open.set()
        steps = {"random": 0, "idle": 0}
        for result in engine:
            if result.finished and result.request.policy is not gate:
                steps[result.request.policy] += result.length
                if steps["idle"] < 300:  # there are more of both
                    assert abs(steps["random"] - steps["idle"]) <= 40
    assert steps == {"random": 400, "idle": 300}


# ---- Preemption


def make_steps(engine, steps):
    """Fewer if there are no more to make."""
    before = steps_of(engine)
    while steps_of(engine) < before + steps and engine.num_outputs < engine.outstanding:
        time.sleep(0.0005)


def test_a_request_of_higher_priority_takes_the_world_of_a_lower_one():
    config = config_of(PREEMPTS, 8, output_capacity=16)  # replicas wait for who reads
    with RolloutEngine(config) as engine:
        engine.submit_batch(range(8), record="stream")
        make_steps(engine, 1)
        urgent = engine.submit(EpisodeRequest(priority=1, max_steps=5))
        results = list(engine)
    assert results[0].id == urgent
    assert results[-1].request.seed == 7  # that came last
    assert [result.length for result in results] == [5] + [200] * 8


def recurrent(size):
    torch = pytest.importorskip("torch")
    torch.manual_seed(size)
    return doorstep.load_policy([torch.nn.GRU(94, size), torch.nn.Linear(size, 19)])


RECORDED = ("actions", "observations", "rewards", "last_observations", "states", "last_states", "log_probs", "versions")


INTERRUPTING = {  # and whether requests name their policies
    "small chunks": (config_of(PriorityScheduler(preempts=True, max_chunk=1), 3), False),
    "two replicas": (config_of(PREEMPTS, 1, devices=("cpu", "cpu")), True),
    "depth": (config_of(PREEMPTS, 1, devices=("cpu", "cpu"), controller=RoundRobinController(depth=9)), False),
    "deadlines": (config_of(EarliestDeadlineScheduler(preempts=True), 2), True),
}


@pytest.mark.parametrize("name", INTERRUPTING)
def test_interrupted_episodes_are_as_others(name):
    """With memories of both agents, saved states and whatever they record or stream."""
    config, is_named = INTERRUPTING[name]
    policies = {"it": recurrent(8), "other": recurrent(5), "partner": "random"}
    given = {name: name for name in policies} if is_named else policies
    it, other, partner = given.values()
    players = (it, (it, other), (partner, it), (walk, other), ("idle", walk), "idle")
    state = doorstep.Simulator(1, seed=4, num_threads=1).save()
    records = (("states", "log_probs"), ("states", "observations"), (), ("observations",))
    requests = []
    for index in range(24):
        record = records[index % 4] if index % 6 < 3 else ("observations",) * (index % 2)
        fields = {"policy": players[index % 6], "record": (*record, "stream"), "state": None if index % 5 else state}
        order = {"priority": index, "deadline": 1000.0 - index, "max_steps": 60 + index % 10}
        requests.append(EpisodeRequest(seed=index, sampling=SamplingParams(temperature=0.5), **fields, **order))
    with RolloutEngine(SimulatorConfig(24, num_threads=1)) as engine:
        engine.policies.update(policies)
        expected = results_of(engine, requests)
    with RolloutEngine(config.replace(output_capacity=16)) as engine:  # replicas wait for who reads
        engine.policies.update(policies)
        ids, outputs = [], []
        for request in requests:  # each is the most urgent one
            ids += engine.submit([request])
            while not outputs or outputs[-1].id != ids[-1]:
                outputs += engine.get_outputs(most=1)
        outputs += all_outputs(engine)
        assert engine.metrics.total("episodes_begun").count > 24  # some went on
        assert engine.metrics.total("queue_wait_seconds").count == 24
    for one, same in zip(ids, expected, strict=True):
        *steps, result = [output for output in outputs if output.id == one]
        assert [step.step for step in steps] == list(range(1, result.length + 1))
        assert_equal_results([result], [same])
        for name in RECORDED:
            recorded, others = getattr(result, name), getattr(same, name)
            assert recorded is others is None or recorded.tobytes() == others.tobytes(), name


def test_interrupted_episodes_keep_the_policy_with_which_they_began():
    def requests(priority):
        return [EpisodeRequest(seed=seed, policy="it", max_steps=100, priority=priority) for seed in range(20)]

    hashes = []
    with RolloutEngine(SimulatorConfig(20, num_threads=1)) as engine:
        for policy in ("random", "idle"):
            engine.policies["it"] = policy
            hashes.append([result.state_hash for result in results_of(engine, requests(0))])
    with RolloutEngine(config_of(PREEMPTS, 4)) as engine:
        engine.policies["it"] = "random"
        low = engine.submit(requests(0))
        make_steps(engine, 1)
        engine.policies["it"] = "idle"
        found = [result.state_hash for result in in_order(engine, low + engine.submit(requests(1)))]
    assert found[20:] == hashes[1]
    for one, before, after in zip(found[:20], *hashes, strict=True):
        assert one in (before, after)
    assert found[:4] == hashes[0][:4]  # which were played


def test_an_interrupted_episode_that_is_cancelled_says_how_far_it_was():
    with RolloutEngine(config_of(PREEMPTS, 1, output_capacity=16)) as engine:  # the replica waits for who reads
        low = engine.submit(EpisodeRequest(record=("stream", "actions")))
        outputs = engine.get_outputs(most=1)
        while outputs[-1].step < 20:
            outputs += engine.get_outputs(most=1)
        urgent = engine.submit_batch(range(500), priority=1).tolist()
        while outputs[-1].id == low:
            outputs += engine.get_outputs(most=1)
        for one in (low, *urgent):
            engine.cancel(one)
        *steps, result = [output for output in outputs + all_outputs(engine) if output.id == low]
    assert (result.reason, result.actions) == ("cancelled", None)
    assert 20 <= result.length < 200
    assert result.state_hash != 0
    assert [one.step for one in steps] == list(range(1, result.length + 1))


def test_a_closed_engine_answers_interrupted_episodes():
    engine = RolloutEngine(config_of(PREEMPTS, 40), on_error="return")
    engine.submit_batch(range(20), n=5)
    make_steps(engine, 1)
    engine.submit_batch(range(2000), priority=1)
    engine.close()
    assert len(list(engine)) == 2100
