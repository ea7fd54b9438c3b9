"""Requests for tests, and what simulators make of the same episodes."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import doorstep
from doorstep import EpisodeRequest, EpisodeResult, RolloutEngine
from doorstep._native import _generated as native
from doorstep._native.calls import check
from doorstep._native.library import load

NUM_INPUTS = 94  # of two agents
SHUFFLED = (  # as many numbers in another order
    "agent_index", "lidar", ("steps_remaining", 3), "partner_observations", "room_entity_observations",
    ("self_observations", 0.5), "door_observations",
)  # fmt: skip


class Gate:
    """A policy that waits until it is opened."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()

    def __call__(self, observations: NDArray[np.float32]) -> NDArray[np.int32]:
        self.entered.set()
        assert self.open.wait(60)
        return np.zeros((len(observations), 4), np.int32)


def is_soon(happens: Callable[[], bool]) -> bool:
    """Waits until it happens, also because garbage is collected."""
    end = time.monotonic() + 20
    while not happens() and time.monotonic() < end:
        time.sleep(0.01)
        gc.collect()
    return happens()


def some_requests(count: int, **fields: Any) -> list[EpisodeRequest]:
    """Requests of different lengths and seeds."""
    return [EpisodeRequest(**{"seed": 7 * i, "max_steps": 1 + i * 11 % 40, **fields}) for i in range(count)]


def results_of(engine: RolloutEngine, requests: Iterable[EpisodeRequest]) -> list[Any]:
    """The results, in the order of the requests."""
    ids = engine.submit(list(requests))
    results = {result.id: result for result in engine}
    assert len(results) == len(ids)
    return [results[request_id] for request_id in ids]


def play_again(result: EpisodeResult, **options: Any) -> doorstep.Simulator:
    """A simulator in which the recorded actions of a result have been played, and its observations compared."""
    request = result.request
    assert result.actions is not None
    sim = doorstep.Simulator(
        1,
        num_agents=len(result.returns),
        auto_reset=False,
        num_threads=1,
        max_levels=int(request.level is not None),
        **{"seed": request.seed, **({"episode_length": request.max_steps} if request.max_steps else {}), **options},
    )
    if request.level is not None:
        sim.set_levels([request.level])
        _begin_first_episode(sim, request.seed)
    returns = np.zeros(len(result.returns), np.float32)
    for step, actions in enumerate(result.actions):
        if result.observations is not None:
            assert (sim.observations.to_numpy()[0] == result.observations[step]).all()
        sim.actions = actions[None]
        sim.step()
        returns += sim.rewards.to_numpy().reshape(-1)
        if result.rewards is not None:
            assert (sim.rewards.to_numpy().reshape(-1) == result.rewards[step]).all()
    assert sim.world_hashes()[0] == result.state_hash
    assert (sim.state.agent_max_y.to_numpy()[0] == result.max_y).all()
    np.testing.assert_allclose(result.returns, returns, atol=1e-4)
    return sim


def _begin_first_episode(sim: doorstep.Simulator, seed: int) -> None:
    """As if the simulator had been created with the levels that it has now."""
    start = native.EpisodeStart(world=0, seed=seed)
    check(load().ds_simulator_begin(sim._session.handle, ctypes.byref(start), 1))


def assert_equal_results(results: Iterable[EpisodeResult], expected: Iterable[EpisodeResult]) -> None:
    for result, other in zip(results, expected, strict=True):
        assert (result.state_hash, result.length, result.reason) == (other.state_hash, other.length, other.reason)
        assert (result.returns == other.returns).all()
        assert (result.max_y == other.max_y).all()


def walk(observations: NDArray[np.float32]) -> NDArray[np.int32]:
    """A policy in Python: every row by itself."""
    actions = np.zeros((len(observations), 4), np.int32)
    actions[:, 0] = 3
    actions[:, 1] = (np.abs(observations[:, :5].sum(axis=1)) * 64).astype(np.int32) % 8
    actions[:, 2] = 2
    return actions


def steps_of(engine: RolloutEngine) -> int:
    """Of its simulators."""
    assert engine.metrics is not None
    return int(engine.metrics.total("steps").value)
