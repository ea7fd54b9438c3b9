"""Saves continue bit for bit wherever they are restored; bad ones raise StateError and change nothing."""

import mmap
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import doorstep


def play(sim: doorstep.Simulator, steps: int, seed: int = 0) -> None:
    random = np.random.default_rng(seed)
    for _ in range(steps):
        sim.actions[:] = random.integers(0, doorstep.ACTIONS, size=sim.actions.shape)
        sim.step()


def test_a_restored_simulator_continues_bit_for_bit() -> None:
    with doorstep.Simulator(6, seed=5, episode_length=20) as sim:
        play(sim, 13)
        saved = sim.save()
        play(sim, 25, seed=1)
        expected = sim.world_hashes()
        with doorstep.Simulator(6, seed=99, world_offset=1000, episode_length=20) as other:
            other.restore(saved)
            play(other, 25, seed=1)
            assert (other.world_hashes() == expected).all()
            for name, tensor in sim.tensors.items():
                assert np.array_equal(tensor, other.tensors[name]), name


@pytest.mark.parametrize("reward", [None, doorstep.Rewards(progress=0, idle=3, bonus_factor=1, max_y=0)])
def test_restored_worlds_go_on_under_the_reward_of_their_simulator(reward: doorstep.Rewards | None) -> None:
    own = doorstep.Rewards(progress=0, idle=1, bonus_factor=1, max_y=0)
    with doorstep.Simulator(4, episode_length=10, reward=own) as sim:
        play(sim, 6)
        with doorstep.Simulator(4, episode_length=10, reward=reward) as other:
            other.restore(sim.save())
            assert other.reward == reward
            summed = np.full((4, 2, 1), 6.0, np.float32)
            for _ in range(4):
                play(other, 1)
                summed += other.rewards[:]
            assert (other.episode_returns[:] == summed).all()
            assert reward is None or (summed == 6 + 4 * 3).all()


def test_restoring_recomputes_the_observations() -> None:
    with doorstep.Simulator(3) as sim:
        saved, before = sim.save(), sim.lidar.to_numpy().copy()
        sim.reset()
        assert not (sim.lidar.to_numpy() == before).all()
        sim.restore(saved)
        assert (sim.lidar.to_numpy() == before).all()


def test_restoring_leaves_the_final_observations_of_the_slot() -> None:
    with doorstep.Simulator(2, episode_length=3) as sim, doorstep.Simulator(2, seed=1, episode_length=3) as other:
        play(sim, 4)
        play(other, 4)
        before = other.final_lidar.to_numpy().copy()
        other.restore(sim.save())
        assert (other.final_lidar.to_numpy() == before).all()
        assert (other.episode_returns.to_numpy() == sim.episode_returns.to_numpy()).all()
        for each in (sim, other):
            play(each, 2)
        assert (other.final_lidar.to_numpy() == sim.final_lidar.to_numpy()).all()


def test_worlds_keep_their_identity_in_other_slots() -> None:
    with doorstep.Simulator(4) as sim:
        play(sim, 5)
        hashes = sim.world_hashes()
        saved = sim.save([3, 1])
        sim.restore(saved, [0, 2])
        assert (sim.world_hashes() == hashes[[3, 1, 1, 3]]).all()
        sim.restore(saved)
        assert (sim.world_hashes() == hashes[[3, 1, 1, 3]]).all()


def test_a_mask_saves_the_worlds_it_selects() -> None:
    with doorstep.Simulator(4) as sim:
        assert sim.save([False, True, False, True]) == sim.save([1, 3])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_restore_takes_anything_bytes_like(kind: Callable[[bytes], bytes]) -> None:
    with doorstep.Simulator(2) as sim:
        saved, before = sim.save(), sim.hash()
        sim.step()
        sim.restore(kind(saved))
        assert sim.hash() == before


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "half": lambda data: data[: len(data) // 2],
    "a byte short": lambda data: data[:-1],
    "a byte long": lambda data: data + b"\0",
    "twice": lambda data: data + data,
    "text": lambda data: b"not a save at all" * 100,
    "zeros": lambda data: bytes(len(data)),
    "reversed": lambda data: data[::-1],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_or_foreign_bytes_raise_state_error_and_change_nothing(damage: Callable[[bytes], bytes]) -> None:
    with doorstep.Simulator(3) as sim:
        saved = sim.save()
        sim.step()
        before = sim.hash()
        with pytest.raises(doorstep.StateError) as caught:
            sim.restore(damage(saved))
        assert caught.value.argument == "data"
        assert sim.hash() == before


def test_no_flipped_bit_goes_unnoticed() -> None:
    with doorstep.Simulator(2) as sim:
        saved = sim.save()
        before = sim.hash()
        positions = {*range(128), *range(128, len(saved), 37), len(saved) - 1}
        for position in sorted(positions):
            with pytest.raises(doorstep.StateError):
                sim.restore(flipped(saved, position))
        assert sim.hash() == before


WRITE_FOR_EVER = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    data = mmap.mmap(file.fileno(), 0)
while True:
    data[int(sys.argv[2])] ^= 255
"""


def restores(sim: doorstep.Simulator, data: memoryview) -> bool:
    try:
        sim.restore(data)
    except doorstep.StateError:
        return False
    return True


def test_what_is_restored_is_what_was_checked(tmp_path: Path) -> None:
    """Another process writes to the bytes meanwhile."""
    file = tmp_path / "save"
    with doorstep.Simulator(64) as sim:
        before, refused = sim.hash(), 0
        outcomes: list[bool] = []
        file.write_bytes(sim.save())
        position = file.stat().st_size // 2 + 300  # within what is hashed of a world
        command = [sys.executable, "-c", WRITE_FOR_EVER, str(file), str(position)]
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as data, subprocess.Popen(command) as writer:
            try:
                while refused < 3000 or not outcomes:
                    if restores(sim, memoryview(data)):
                        outcomes.append(sim.hash() == before)
                    else:
                        refused += 1
            finally:
                writer.kill()
    assert outcomes
    assert all(outcomes), f"{outcomes.count(False)} of {len(outcomes)} are not what was saved"


@pytest.mark.parametrize("difference", [{"num_agents": 3}, {"episode_length": 100}], ids=repr)
def test_a_save_of_other_rules_names_what_differs(difference: dict[str, int]) -> None:
    with doorstep.Simulator(2) as sim, doorstep.Simulator(2, **difference) as other:  # type: ignore[arg-type]
        before = sim.hash()
        (name,) = difference
        with pytest.raises(doorstep.StateError, match=name):
            sim.restore(other.save())
        assert sim.hash() == before


def test_a_save_of_more_worlds_than_slots_is_refused() -> None:
    with doorstep.Simulator(3) as sim, doorstep.Simulator(2) as small:
        before = small.hash()
        with pytest.raises(doorstep.DoorstepError):
            small.restore(sim.save())
        with pytest.raises(doorstep.ArgumentError, match="1 slots are passed; the save holds 2 worlds") as caught:
            small.restore(small.save(), [0])
        assert caught.value.argument == "worlds"
        assert small.hash() == before
