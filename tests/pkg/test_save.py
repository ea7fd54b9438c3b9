"""Saves continue bit for bit wherever they are restored; bad ones raise StateError and change nothing."""

import mmap
import subprocess
import sys

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


@pytest.mark.parametrize("agents", [1, 2, 5])
def test_a_restored_simulator_continues_bit_for_bit(agents):
    with Simulator(6, seed=5, episode_length=20, num_agents=agents) as sim:
        play(sim, 13)
        saved, seen = sim.save(), sim.lidar.copy_to_host()
        play(sim, 25, seed=1)
        expected = sim.world_hashes()
        with Simulator(6, seed=99, world_offset=1000, episode_length=20, num_agents=agents) as other:
            other.restore(saved)
            assert (other.lidar.to_numpy() == seen).all()  # observations are computed anew
            play(other, 25, seed=1)
            assert (other.world_hashes() == expected).all()
            for name, tensor in sim.tensors.items():
                assert np.array_equal(tensor, other.tensors[name]), name


def test_restored_worlds_go_on_under_the_reward_of_their_simulator():
    own = Rewards(progress=0, idle=1, bonus_factor=1, max_y=0)
    for reward in (None, Rewards(progress=0, idle=3, bonus_factor=1, max_y=0)):
        with Simulator(4, episode_length=10, reward=own) as sim:
            play(sim, 6)
            with Simulator(4, episode_length=10, reward=reward) as other:
                other.restore(sim.save())
                assert other.reward == reward
                summed = np.full((4, 2, 1), 6.0, np.float32)
                for _ in range(4):
                    play(other, 1)
                    summed += other.rewards[:]
                assert (other.episode_returns[:] == summed).all()
                assert reward is None or (summed == 6 + 4 * 3).all()


def test_restoring_leaves_the_final_observations_of_the_slot():
    with Simulator(2, episode_length=3) as sim, Simulator(2, seed=1, episode_length=3) as other:
        play(sim, 4)
        play(other, 4)
        before = other.final_lidar.to_numpy().copy()
        other.restore(sim.save())
        assert (other.final_lidar.to_numpy() == before).all()
        assert (other.episode_returns.to_numpy() == sim.episode_returns.to_numpy()).all()
        for each in (sim, other):
            play(each, 2)
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
    damages = [
        lambda data: b"", lambda data: data[:1], lambda data: data[: len(data) // 2], lambda data: data[:-1],
        lambda data: data + b"\0", lambda data: data + data, lambda data: b"not a save at all" * 100,
        lambda data: bytes(len(data)), lambda data: data[::-1],
    ]  # fmt: skip
    with Simulator(3) as sim:
        saved = sim.save()
        sim.step()
        before = sim.hash()
        positions = sorted({*range(128), *range(128, len(saved), 37), len(saved) - 1})
        flipped = [saved[:at] + bytes([saved[at] ^ 0x10]) + saved[at + 1 :] for at in positions]
        rows = [(data, "") for data in (*(damage(saved) for damage in damages), *flipped)]
        assert_refused(sim.restore, rows, doorstep.StateError, argument="data")
        assert sim.hash() == before


WRITE_FOR_EVER = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    data = mmap.mmap(file.fileno(), 0)
while True:
    data[int(sys.argv[2])] ^= 255
"""


def restores(sim, data):
    try:
        sim.restore(data)
    except doorstep.StateError:
        return False
    return True


def test_what_is_restored_is_what_was_checked(tmp_path):
    """Another process writes to the bytes meanwhile."""
    file = tmp_path / "save"
    with Simulator(64) as sim:
        before, refused, outcomes = sim.hash(), 0, []
        file.write_bytes(sim.save())
        position = file.stat().st_size // 2 + 300  # within what is hashed of a world
        command = [sys.executable, "-c", WRITE_FOR_EVER, str(file), str(position)]
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as data, subprocess.Popen(command) as writer:
            try:
                while refused < 1000 or not outcomes:
                    if restores(sim, memoryview(data)):
                        outcomes.append(sim.hash() == before)
                    else:
                        refused += 1
            finally:
                writer.kill()
    assert outcomes
    assert all(outcomes), f"{outcomes.count(False)} of {len(outcomes)} are not what was saved"


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
