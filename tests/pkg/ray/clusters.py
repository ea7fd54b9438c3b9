"""Ray clusters of two machines with a core each, which are processes of this one; requests for their actors, and what
an engine here makes of them."""

import contextlib
import os
import time

import ray
import torch
from ray.cluster_utils import Cluster

import doorstep
from doorstep import EpisodeRequest, RolloutEngine, SimulatorConfig
from doorstep.policy import SamplingParams

OBJECT_STORE_BYTES = 80 << 20


@contextlib.contextmanager
def two_nodes(folder):
    """A cluster; `second` is the node that may be killed. folder: home of its processes, where Ray keeps a token."""
    home = os.environ.get("HOME", "")
    os.environ["HOME"] = str(folder)
    try:
        head = {"num_cpus": 1, "object_store_memory": OBJECT_STORE_BYTES, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.second = cluster.add_node(num_cpus=1, object_store_memory=OBJECT_STORE_BYTES)
        join(cluster)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
        os.environ["HOME"] = home


def join(cluster):
    ray.init(address=cluster.address, log_to_driver=False)


# ---- Requests

SIMULATOR = SimulatorConfig(8, num_threads=1, max_levels=1)
WAIT = 240.0  # seconds after which a test has hung


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(94, 16), torch.nn.Tanh(), torch.nn.Linear(16, 19))


def facts(result):
    """Everything that a request decides, as bits."""
    names = ("returns", "max_y", "actions", "observations", "rewards", "last_observations")
    arrays = [None if getattr(result, name) is None else getattr(result, name).tobytes() for name in names]
    return result.request.tag, result.reason, result.length, result.state_hash, *arrays


def played_here(requests):
    with RolloutEngine(SIMULATOR) as engine:
        engine.submit(requests)
        return sorted(map(facts, engine))


def taken(engine):
    """All results that are outstanding."""
    results = []
    while engine.outstanding:
        outputs = engine.get_outputs(timeout=WAIT)
        assert outputs, "no result came"
        results += outputs
    return results


def requests_of_all_kinds(policy):
    """policy: the network's, as this engine takes it."""
    level = doorstep.levels.curated()["one door"]
    kinds = [
        {"policy": policy, "record": "actions"},
        {"policy": (policy, "random"), "max_steps": 30, "record": "observations"},
        {"policy": policy, "sampling": SamplingParams(temperature=0.5, seed=3), "max_steps": 40},
        {"policy": "random", "level": level, "max_steps": 50},
        {"policy": "idle", "max_steps": 5},
    ]
    return [EpisodeRequest(seed=tag, tag=tag, **kinds[tag % len(kinds)]) for tag in range(120)]


def nodes_of_actors():
    """Where a core is in use."""
    available = ray._private.state.available_resources_per_node()
    return {node for node, resources in available.items() if not resources.get("CPU")}


def wait_until(condition):
    deadline = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
