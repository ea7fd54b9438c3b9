"""Requests for tests, and what simulators make of the same episodes."""

import ctypes
import gc
import threading
import time

import numpy as np

import doorstep
from doorstep import EpisodeRequest
from doorstep._native import _generated as native
from doorstep._native.calls import check, read_struct, read_value
from doorstep._native.library import load
from doorstep.levels import Goal, Level, Spawn

NUM_INPUTS = 94  # of two agents
SHUFFLED = (  # as many numbers in another order
    "agent_index", "lidar", ("steps_remaining", 3), "partner_observations", "room_entity_observations",
    ("self_observations", 0.5), "door_observations",
)  # fmt: skip


GOAL_AT_START = Level(spawns=[Spawn(0, 3), Spawn(2, 3)], goal=Goal(-15, 15, 0, 30, "any"))


def acting(*action):
    """A policy in Python whose agents always do this."""
    return lambda observations: np.tile(np.array(action, np.int32), (len(observations), 1))


still = acting(0, 0, 0, 0)  # which turns


def divides(observations):
    """A policy that fails."""
    raise ZeroDivisionError("by the policy")


class Gate:
    """A policy that waits until it is opened."""

    def __init__(self):
        self.entered, self.open = threading.Event(), threading.Event()

    def __call__(self, observations):
        self.entered.set()
        assert self.open.wait(60)
        return still(observations)


def is_soon(happens):
    """Waits until it happens, also because garbage is collected."""
    end = time.monotonic() + 20
    while not happens() and time.monotonic() < end:
        time.sleep(0.01)
        gc.collect()
    return happens()


def some_requests(count, **fields):
    """Requests of different lengths and seeds."""
    return [EpisodeRequest(**{"seed": 7 * i, "max_steps": 1 + i * 11 % 40, **fields}) for i in range(count)]


def results_of(engine, requests):
    """The results, in the order of the requests."""
    return in_order(engine, engine.submit(list(requests)))


def in_order(engine, ids):
    """Of the results that are outstanding those of these requests."""
    results = {}
    for result in sorted(engine, key=lambda one: one.continuation):
        of_request = results.setdefault(result.id, [])
        assert result.continuation == len(of_request)
        of_request.append(result)
    return [result for one in ids for result in results[one]]


def all_outputs(engine, most=4096):
    """Those that are outstanding, as they come."""
    outputs = []
    while engine.outstanding:
        outputs += engine.get_outputs(most=most)
    return outputs


def info_of(engine):
    return read_struct(load().ds_engine_get_info, native.EngineInfo, engine.native_handle)


def num_outstanding(engine):
    """Requests with a result that nobody has received, no future either."""
    return read_value(load().ds_engine_get_tags, ctypes.c_uint64, engine.native_handle, 0, None)


def play_all(engine):
    """Waits until each episode has a result."""
    assert is_soon(lambda: info_of(engine).unanswered == 0)


def end_replica(engine, number):
    """As if it had failed for good."""
    check(load().ds_engine_end_replica(engine.native_handle, number))


def play_again(result, **options):
    """A simulator in which the recorded actions of a result have been played, and its observations compared."""
    request = result.request
    limit = {"episode_length": request.max_steps} if request.max_steps else {}
    rules = {"seed": request.seed, "num_threads": 1, "max_levels": int(request.level is not None), **limit, **options}
    sim = doorstep.Simulator(1, num_agents=len(result.returns), auto_reset=False, **rules)
    if request.level is not None:
        sim.set_levels([request.level])
        # As if the simulator had been created with the levels that it has now
        start = native.EpisodeStart(world=0, seed=request.seed)
        check(load().ds_simulator_begin(sim._session.handle, ctypes.byref(start), 1))
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


def assert_equal_results(results, expected):
    for result, other in zip(results, expected, strict=True):
        assert (result.state_hash, result.length, result.reason) == (other.state_hash, other.length, other.reason)
        assert (result.returns == other.returns).all()
        assert (result.max_y == other.max_y).all()


def walk(observations):
    """A policy in Python: every row by itself."""
    actions = np.zeros((len(observations), 4), np.int32)
    actions[:, 0] = 3
    actions[:, 1] = (np.abs(observations[:, :5].sum(axis=1)) * 64).astype(np.int32) % 8
    actions[:, 2] = 2
    return actions


def steps_of(engine):
    """Of its simulators."""
    return int(engine.metrics.total("steps").value)
