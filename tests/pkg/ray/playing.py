"""Requests for actors, and what an engine here makes of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import ray
import torch

import doorstep
from doorstep import EpisodeRequest, RolloutEngine, SimulatorConfig
from doorstep.policy import SamplingParams
from doorstep.ray import RayRolloutEngine

SIMULATOR = SimulatorConfig(8, num_threads=1, max_levels=1)
WAIT = 240.0  # seconds after which a test has hung


def network() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(94, 16), torch.nn.Tanh(), torch.nn.Linear(16, 19))


def facts(result: doorstep.EpisodeResult) -> tuple[Any, ...]:
    """Everything that a request decides, as bits."""
    names = ("returns", "max_y", "actions", "observations", "rewards", "last_observations")
    arrays = [None if getattr(result, name) is None else getattr(result, name).tobytes() for name in names]
    return result.request.tag, result.reason, result.length, result.state_hash, *arrays


def played_here(requests: list[EpisodeRequest]) -> list[tuple[Any, ...]]:
    with RolloutEngine(SIMULATOR) as engine:
        engine.submit(requests)
        return sorted(map(facts, engine))


def taken(engine: RayRolloutEngine) -> list[doorstep.EpisodeResult]:
    """All results that are outstanding."""
    results = []
    while engine.outstanding:
        outputs = engine.get_outputs(timeout=WAIT)
        assert outputs, "no result came"
        results += outputs
    return results


def requests_of_all_kinds(policy: Any) -> list[EpisodeRequest]:
    """policy: the network's, as this engine takes it."""
    level = doorstep.levels.curated()["one door"]
    kinds: list[dict[str, Any]] = [
        {"policy": policy, "record": "actions"},
        {"policy": (policy, "random"), "max_steps": 30, "record": "observations"},
        {"policy": policy, "sampling": SamplingParams(temperature=0.5, seed=3), "max_steps": 40},
        {"policy": "random", "level": level, "max_steps": 50},
        {"policy": "idle", "max_steps": 5},
    ]
    return [EpisodeRequest(seed=tag, tag=tag, **kinds[tag % len(kinds)]) for tag in range(120)]


def nodes_of_actors() -> set[str]:
    """Where a core is in use."""
    available = ray._private.state.available_resources_per_node()
    return {node for node, resources in available.items() if not resources.get("CPU")}


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
