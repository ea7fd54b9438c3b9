"""Saves continue bit for bit wherever they are restored; bad ones raise StateError and change nothing."""

import contextlib
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.refuses import assert_refused

import doorstep
from doorstep import Rewards, Simulator


def play(sim, steps, seed=0):
    random = np.random.default_rng(seed)
    for _ in range(steps):
        sim.actions[:] = random.integers(0, doorstep.ACTIONS, size=sim.actions.shape)
        sim.step()


def test_restored_worlds_go_on_under_the_reward_of_their_simulator_and_keep_its_final_observations():
    own = Rewards(progress=0, idle=1, bonus_factor=1, max_y=0)
    for reward in (None, Rewards(progress=0, idle=3, bonus_factor=1, max_y=0)):
        with (
            Simulator(4, episode_length=10, reward=own) as sim,
            Simulator(4, seed=1, episode_length=10, reward=reward) as other,
        ):
            play(sim, 16)
            play(other, 11)
            finals = other.final_lidar.copy_to_host()
            other.restore(sim.save())
            assert other.reward == reward
            assert (other.final_lidar.to_numpy() == finals).all()
            assert (other.episode_returns.to_numpy() == sim.episode_returns.to_numpy()).all()
            summed = np.full((4, 2, 1), 6.0, np.float32)
            for _ in range(4):
                play(sim, 1)
                play(other, 1)
                summed += other.rewards[:]
            assert (other.episode_returns[:] == summed).all()
            assert reward is None or (summed == 6 + 4 * 3).all()
            assert (other.final_lidar.to_numpy() == sim.final_lidar.to_numpy()).all()


def test_worlds_keep_their_identity_in_other_slots():
    with Simulator(4) as sim:
        play(sim, 5)
        hashes, worlds = sim.world_hashes(), sim.save()
        saved = sim.save([3, 1])
        assert sim.save([False, True, False, True]) == sim.save([1, 3]) != saved
        for kind in (bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)):
            sim.restore(kind(worlds))
            sim.restore(kind(saved), [0, 2])
            assert (sim.world_hashes() == hashes[[3, 1, 1, 3]]).all()
        sim.restore(saved)  # into the first slots
        assert (sim.world_hashes() == hashes[[3, 1, 1, 3]]).all()


def test_damaged_or_foreign_bytes_raise_state_error_and_change_nothing():
    with Simulator(3) as sim:
        saved = sim.save()
        damaged = [b"", saved[:1], saved[: len(saved) // 2], saved[:-1], saved + b"\0", saved * 2, bytes(len(saved))]
        sim.step()
        before = sim.hash()
        positions = sorted({*range(128), *range(128, len(saved), 37), len(saved) - 1})
        flipped = [saved[:at] + bytes([saved[at] ^ 0x10]) + saved[at + 1 :] for at in positions]
        rows = [(data, "") for data in (*damaged, b"not a save at all" * 100, *flipped)]
        assert_refused(sim.restore, rows, doorstep.StateError, argument="data")
        assert sim.hash() == before


def test_what_is_restored_is_what_was_checked():
    """Another thread writes to the bytes meanwhile."""
    attempts, restored, ended, interval = 0, [], threading.Event(), sys.getswitchinterval()
    with Simulator(64) as sim:
        before, data = sim.hash(), bytearray(sim.save())

        def write():
            while not ended.is_set():
                data[len(data) // 2 + 300] ^= 255  # within what is hashed of a world

        with ThreadPoolExecutor(1) as pool:
            pool.submit(write)
            sys.setswitchinterval(1e-5)
            try:
                while attempts < 2000 or not 0 < len(restored) < attempts:
                    attempts += 1
                    with contextlib.suppress(doorstep.StateError):
                        sim.restore(data)
                        restored.append(sim.hash() == before)
            finally:
                ended.set()
                sys.setswitchinterval(interval)
    assert all(restored), f"{restored.count(False)} of {len(restored)} are not what was saved"


def test_a_save_of_other_rules_or_of_more_worlds_than_slots_names_what_differs():
    with Simulator(2) as sim, Simulator(3) as more:
        before = sim.hash()
        for difference in ({"num_agents": 3}, {"episode_length": 100}):
            with Simulator(2, **difference) as other, pytest.raises(doorstep.StateError, match=next(iter(difference))):
                sim.restore(other.save())
        with pytest.raises(doorstep.DoorstepError):
            sim.restore(more.save())
        rows = [({"data": sim.save(), "worlds": [0]}, "1 slots are passed; the save holds 2 worlds")]
        assert_refused(sim.restore, rows, argument="worlds")
        assert sim.hash() == before
