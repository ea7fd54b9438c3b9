"""RayRolloutEngine: the results of one machine, each once, also when a node is killed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import doorstep

pytest.importorskip("ray")

import torch
from ray.cluster_utils import Cluster

import ray
from doorstep.ray import RayConfig, RayRolloutEngine

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of much

NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
SIM = doorstep.SimulatorConfig(8, num_threads=1)


@pytest.fixture
def cluster() -> Iterator[Any]:
    made = Cluster(initialize_head=True, head_node_args=NODE)
    made.second = made.add_node(num_cpus=1, object_store_memory=80 << 20)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def facts(result: doorstep.EpisodeResult) -> tuple[Any, ...]:
    numbers = result.returns.tobytes(), result.max_y.tobytes(), result.length, result.state_hash
    return result.request.seed, result.reason, *numbers, result.actions is not None and result.actions.tobytes()


def test_a_killed_node_changes_no_result(cluster: Any) -> None:
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(94, 16), torch.nn.Tanh(), torch.nn.Linear(16, 19))
    seeds = range(600)
    with doorstep.RolloutEngine(SIM) as local:
        policy = doorstep.Policy.from_torch(net)
        local.submit([doorstep.EpisodeRequest(seed=seed, policy=policy, record="actions") for seed in seeds])
        expected = sorted(map(facts, local))
    with RayRolloutEngine(SIM, RayConfig(num_actors=2, chunk=16)) as engine:
        published = engine.publish("net", net)
        ids = engine.submit([doorstep.EpisodeRequest(seed=seed, policy=published, record="actions") for seed in seeds])
        results = engine.get_outputs()
        cluster.remove_node(cluster.second, allow_graceful=False)
        results += list(engine)
    assert sorted(result.id for result in results) == ids
    assert sorted(map(facts, results)) == expected


def test_what_stays_unanswered_at_the_end_has_failed(cluster: Any) -> None:
    engine = RayRolloutEngine(SIM, RayConfig(chunk=4))
    ids = engine.submit([doorstep.EpisodeRequest(seed=seed) for seed in range(400)])
    assert engine.cancel(ids[-1])
    engine.close()
    results = list(engine)
    assert sorted(result.id for result in results) == ids
    assert {result.reason for result in results} >= {"cancelled", "failed"}
    assert np.all([result.length > 0 for result in results if result.finished])
    with pytest.raises(doorstep.ClosedError):
        engine.submit(doorstep.EpisodeRequest())
