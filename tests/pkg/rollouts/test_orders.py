"""The order in which requests are played."""

import numpy as np
import pytest
from tests.pkg.rollouts.playing import Gate, end_replica, info_of

from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig

KEYS = {  # smaller: earlier
    "fixed_chunk": lambda request: 0,
    "dynamic_chunk": lambda request: 0,
    "priority": lambda request: -request.priority,
    "earliest_deadline": lambda request: request.deadline or 1e9,
    "least_remaining_steps": lambda request: request.max_steps or 200,
}


@pytest.mark.parametrize("num_replicas", [1, 2])
@pytest.mark.parametrize("scheduler", KEYS)
def test_requests_are_played_in_the_order_of_the_scheduler(scheduler, num_replicas):
    """Also those of a replica that has ended, and beside others that have been cancelled."""
    gate, draw = Gate(), np.random.default_rng(3)
    controller = "round_robin" if num_replicas > 1 else "pull"
    devices = ("cpu",) * num_replicas
    config = RolloutConfig(SimulatorConfig(1), devices=devices, scheduler=scheduler, controller=controller)
    with RolloutEngine(config) as engine:
        engine.submit([EpisodeRequest(policy=gate, max_steps=1, priority=99, deadline=1e4)] * num_replicas)
        while info_of(engine).waiting or not gate.entered.wait(30):
            pass
        priorities, deadlines, steps = draw.integers((-3, 19999, 1), (4, 20005, 6), (40, 3)).T.tolist()
        deadlines = [None if one == 19999 else float(one) for one in deadlines]
        rows = enumerate(zip(priorities, deadlines, steps, strict=True))
        requests = [EpisodeRequest(priority=a, deadline=b, max_steps=c, tag=tag) for tag, (a, b, c) in rows]
        ids = engine.submit(requests)
        for one in ids[::7]:
            engine.cancel(one)
        if num_replicas > 1:
            end_replica(engine, 0)
        gate.open.set()
        results = [one for one in engine if one.finished and one.id in ids]
    left = [request for tag, request in enumerate(requests) if tag % 7]
    assert sorted(one.request.tag for one in results) == [one.tag for one in left]
    if num_replicas == 1:
        assert [one.request.tag for one in results] == [one.tag for one in sorted(left, key=KEYS[scheduler])]


def test_policies_get_equal_shares_of_steps():
    """However many are submitted, and however late a policy comes."""
    gate = Gate()
    with RolloutEngine(RolloutConfig(SimulatorConfig(1), scheduler="fair_share")) as engine:
        engine.run([EpisodeRequest(policy="random", max_steps=10)] * 50)
        engine.submit(EpisodeRequest(policy=gate, max_steps=1))
        assert gate.entered.wait(30)
        engine.submit([EpisodeRequest(policy="random", max_steps=10)] * 40)
        dropped = engine.submit([EpisodeRequest(policy="idle", max_steps=30)] * 20)[10:]  # which comes now
        assert all(map(engine.cancel, dropped))
        gate.open.set()
        steps = {"random": 0, "idle": 0}
        for result in engine:
            if result.finished and result.request.policy is not gate:
                steps[result.request.policy] += result.length
                if steps["idle"] < 300:  # there are more of both
                    assert abs(steps["random"] - steps["idle"]) <= 40
    assert steps == {"random": 400, "idle": 300}


def test_a_policys_share_counts_every_episode_of_a_request():
    gate = Gate()
    with RolloutEngine(RolloutConfig(SimulatorConfig(1), scheduler="fair_share")) as engine:
        engine.submit(EpisodeRequest(policy=gate, max_steps=1))
        assert gate.entered.wait(30)
        engine.submit(EpisodeRequest(policy="random", max_steps=10, n=20))
        engine.submit([EpisodeRequest(policy="random", max_steps=10, tag=2)] * 5)
        engine.submit([EpisodeRequest(policy="idle", max_steps=20, tag=1)] * 10)
        gate.open.set()
        tags = [result.request.tag for result in engine]
    assert tags[-5:] == [2] * 5  # the twenty episodes before have had as many steps as those of "idle"
