"""The simulator object: what it is made with, stepping, resetting, reseeding, profiling, closing, copying."""

import copy
import pickle

import numpy as np
from tests.refuses import assert_refused, refuses

import doorstep
from doorstep import Simulator


def walk(sim, steps=1, seed=0):
    random = np.random.default_rng(seed)
    for _ in range(steps):
        sim.actions[:] = random.integers(0, doorstep.ACTIONS, size=sim.actions.shape)
        sim.step()


def test_simulator_is_what_it_was_asked_to_be():
    assert doorstep.ACTIONS == (4, 8, 5, 2)
    assert doorstep.ACTIONS._fields == ("move_amount", "move_angle", "turn", "grab")
    rows = [
        {"num_worlds": np.uint8(2), "seed": np.uint32(2**32 - 1), "world_offset": 2**32 - 2, "num_agents": 8},
        {"num_worlds": np.int64(3), "episode_length": 1_000_000, "num_agents": 1, "num_threads": 3},
        {"num_worlds": 2, "episode_length": 1, "strict": np.True_},
    ]
    defaults = {"num_worlds": None, "seed": 0, "num_agents": 2, "episode_length": 200, "world_offset": 0}
    for arguments in rows:
        with Simulator(**arguments) as sim:
            for name, default in defaults.items():
                assert getattr(sim, name) == arguments.get(name, default)
            assert (sim.device, sim.num_threads) == ("cpu", arguments.get("num_threads", sim.num_threads))
            assert (sim.actions == doorstep.NEUTRAL_ACTION).all()
            sim.step()
            assert (sim.step_count, sim.allocated_bytes > 0) == (1, True)


def test_profile_counts_ticks_per_stage_anew():
    with Simulator(64) as sim:
        for _ in range(2):
            sim.start_profile()
            sim.step()
            profile = sim.stop_profile()
            assert len(profile) > 3
            assert sum(profile.values()) > 0
        sim.step()
        sim.start_profile()
        assert sum(sim.stop_profile().values()) == 0


# ---- Reseeding and copies

RULES = [
    {},
    {"num_agents": 3, "world_offset": 5, "episode_length": 3, "reward": doorstep.Rewards(idle=1, progress=2)},
    {"levels": "curated", "level_weights": range(1, 21)},
]


def assert_equal(one, other, finals=False):
    assert one.hash() == other.hash()
    for name, tensor in one.tensors.items():
        if finals or not name.startswith("final_"):
            np.testing.assert_array_equal(tensor.to_numpy(), other.tensors[name].to_numpy(), name)


def test_reseeded_worlds_are_those_of_a_new_simulator_in_the_same_memory():
    for rules in RULES:
        sim = Simulator(4, seed=1, **rules)
        rewards, lidar = np.zeros((4, sim.num_agents), np.float32), sim.lidar.to_numpy()
        sim.bind(rewards=rewards)
        walk(sim, 4)
        sim.resets[:2] = 1
        before = lidar.copy()
        sim.reset(seed=9)
        assert np.shares_memory(sim.rewards.to_numpy(), rewards)
        assert np.shares_memory(sim.lidar.to_numpy(), lidar)
        assert (lidar != before).any()
        new = Simulator(4, seed=9, **rules)
        assert (sim.seed, sim.config) == (9, new.config)
        for _ in range(3):
            assert_equal(sim, new)
            walk(sim, 2)
            walk(new, 2)


def test_levels_and_weights_of_later_stay_and_what_is_refused_changes_nothing():
    sim = Simulator(4, max_levels=2, seed=7)
    sim.set_levels([doorstep.levels.reference(), doorstep.levels.curated()["one door"]])
    sim.level_weights[:] = ((0, 1), (1, 0), (0, 1), (1, 0))
    sim.reset(seed=3)
    assert sim.level_indices[:, 0].tolist() == [1, 0, 1, 0]
    before = sim.hash()
    rows = [({"seed": -1}, "seed is"), ({"seed": 2**32}, "seed is"), ({"seed": 1, "worlds": [0]}, "")]
    assert_refused(sim.reset, rows, argument="seed")
    assert (sim.hash(), sim.seed) == (before, 3)


def test_copies_go_on_as_the_original_does_in_memory_of_their_own():
    for copied in (copy.deepcopy, lambda sim: pickle.loads(pickle.dumps(sim))):
        for rules in RULES:
            sim = Simulator(4, seed=1, **rules)
            walk(sim, 4)
            sim.actions[:] = (9, 2, 3, 1)  # counted as out of range, in the copy as well
            sim.resets[1:] = 1
            other = copied(sim)
            assert (other.config, other.health, other.levels) == (sim.config, sim.health, sim.levels)
            for _ in range(4):
                assert_equal(sim, other, finals=True)
                sim.step()
                other.step()
            assert other.health == sim.health
            kept = other.final_lidar.copy_to_host()
            walk(sim, sim.num_agents)
            assert (other.final_lidar.to_numpy() == kept).all()
            assert other.hash() != sim.hash()


# ---- Closing

CALLS = (
    *("step", "step_async", "wait", "reset", "refresh", "save", "hash", "world_hashes", "start_profile", "__enter__"),
    *("health", "tensors", "actions", "observations", "state", "num_threads"),
)


def test_every_call_after_close_raises_closed_error():
    sim = Simulator(2)
    step, state, remaining, positions = sim.step, sim.state, sim.steps_remaining, sim.state.body_positions
    assert (sim.closed, repr(sim)) == (False, "Simulator(2 worlds, 2 agents, seed 0, cpu)")
    for _ in range(2):
        sim.close()
    assert (sim.closed, repr(sim)) == (True, "Simulator(2 worlds, 2 agents, seed 0, cpu, closed)")
    calls = [lambda name=name: getattr(sim, name) for name in CALLS if not callable(getattr(Simulator, name, None))]
    calls += [getattr(sim, name) for name in CALLS if callable(getattr(Simulator, name, None))]
    calls += [lambda: sim.reset(seed=1), lambda: sim.restore(b"x"), step, lambda: state.body_positions]
    calls += [lambda: setattr(sim, "actions", [1]), lambda: sim.bind(actions=np.ones((2, 2, 4), np.int32))]
    for call in (*calls, lambda: copy.deepcopy(sim)):
        refuses(None, call, error=doorstep.ClosedError)
    assert (remaining.to_numpy() == 200).all()  # tensors that were taken stay
    assert (positions.to_numpy()[:, :, 1] > 0).all()


def test_close_gives_the_memory_back_while_the_closed_simulator_is_still_held():
    before = doorstep.live_counts()
    with Simulator(2) as sim:
        sim.rewards.to_numpy()
        sim.state.body_positions.to_numpy()
    assert sim.closed
    assert doorstep.live_counts() == before
