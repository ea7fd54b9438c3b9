"""Same seed, same actions, same bits: over threads, shards, slots, saves, forks and the caller's float settings."""

import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.scenes import OBSERVATIONS, Scene, random_actions

from doorstep import _golden


@dataclass(frozen=True)
class Run:
    """Uniform random actions in `num_worlds` worlds for `steps` steps, starting in `room`."""

    num_worlds: int
    steps: int
    room: int = 0
    seed: int = 5
    num_agents: int = 2
    episode_length: int = 200

    def scene(self, first: int = 0, count: int | None = None, **options: Any) -> Scene:
        """A simulator of worlds [first, first + count) of this run, before its first step."""
        scene = Scene(
            self.num_worlds if count is None else count,
            **{
                "seed": self.seed,
                "num_agents": self.num_agents,
                "episode_length": self.episode_length,
                "world_offset": first,
                **options,
            },
        )
        if self.room:
            scene.start_in_room(self.room)
        return scene

    def play(
        self, scene: Scene, start: int = 0, stop: int | None = None, step: Callable[[], None] | None = None
    ) -> None:
        """Plays steps [start, stop) in the worlds of `scene`, with `step` instead of `scene.step` if given."""
        first = scene.sim.world_offset
        table = random_actions(self.seed, self.steps, self.num_worlds, self.num_agents)
        for actions in table[start:stop]:
            scene.actions[:] = actions[first : first + scene.sim.num_worlds]
            (step or scene.step)()

    def hash(self, **options: Any) -> int:
        """The hash of the worlds after the last step."""
        scene = self.scene(**options)
        self.play(scene)
        return scene.sim.hash()


ROOM = Run(96, 120, room=2)
EPISODES = Run(96, 100, episode_length=30)
LIBM = ctypes.CDLL("libm.so.6")


@pytest.fixture(scope="module")
def expected() -> int:
    return ROOM.hash()


@pytest.mark.parametrize("name", _golden.RUNS)
def test_golden_runs_have_their_hashes(name: str) -> None:
    pinned = _golden.HASHES[name]
    measured = _golden.RUNS[name].hash()
    assert measured == pinned, f"{name}: 0x{measured:016X} instead of 0x{pinned:016X}"


def test_a_run_repeats_itself(expected: int) -> None:
    assert ROOM.hash() == expected


@pytest.mark.parametrize("num_threads", [2, 3, 7])
def test_threads_do_not_matter(num_threads: int, expected: int) -> None:
    assert ROOM.hash(num_threads=num_threads) == expected
    assert EPISODES.hash(num_threads=num_threads) == EPISODES.hash()


def test_one_simulator_of_1024_worlds_is_two_of_512() -> None:
    run = Run(1024, 40, room=1)
    whole = run.scene()
    run.play(whole)
    halves = [run.scene(first, 512) for first in (0, 512)]
    for half in halves:
        run.play(half)
    assert sum(half.sim.hash() for half in halves) % 2**64 == whole.sim.hash()
    np.testing.assert_array_equal(
        np.concatenate([half.sim.world_hashes() for half in halves]), whole.sim.world_hashes()
    )
    for name in OBSERVATIONS:
        np.testing.assert_array_equal(np.concatenate([getattr(h, name) for h in halves]), getattr(whole, name))


@pytest.mark.parametrize("count", [1, 2, 5, 31, 33])
def test_a_world_does_not_depend_on_its_neighbours(count: int) -> None:
    """Other batch sizes place worlds in other lanes and tiles."""
    whole = ROOM.scene()
    ROOM.play(whole)
    for first in (0, 40):
        shard = ROOM.scene(first, count)
        ROOM.play(shard)
        np.testing.assert_array_equal(shard.sim.world_hashes(), whole.sim.world_hashes()[first : first + count])
        np.testing.assert_array_equal(shard.lidar, whole.lidar[first : first + count])


def test_a_save_in_mid_episode_continues_bit_for_bit(expected: int) -> None:
    scene = ROOM.scene()
    ROOM.play(scene, stop=51)
    saved = scene.sim.save()
    other = Scene(96, seed=1, num_threads=2)
    other.step(3)
    other.sim.restore(saved)
    for name in OBSERVATIONS:
        np.testing.assert_array_equal(getattr(other, name), getattr(scene, name))
    for one in (scene, other):
        ROOM.play(one, start=51)
        assert one.sim.hash() == expected


def test_a_world_restored_into_another_slot_keeps_its_identity() -> None:
    scene = ROOM.scene()
    ROOM.play(scene, stop=30)
    chosen = [70, 3, 41]
    saved = scene.sim.save(chosen)
    other = Scene(10, seed=99)
    slots = [2, 9, 0]
    other.sim.restore(saved, worlds=slots)
    np.testing.assert_array_equal(other.sim.world_hashes()[slots], scene.sim.world_hashes()[chosen])
    for _ in range(90):
        scene.actions[:] = (3, 1, 3, 1)
        other.actions[:] = (3, 1, 3, 1)
        scene.step()
        other.step()
        np.testing.assert_array_equal(other.lidar[slots], scene.lidar[chosen])
        np.testing.assert_array_equal(other.rewards[slots], scene.rewards[chosen])
    np.testing.assert_array_equal(other.sim.world_hashes()[slots], scene.sim.world_hashes()[chosen])


def test_pending_actions_and_resets_are_part_of_a_save() -> None:
    scene, other = Scene(8, seed=5), Scene(8, seed=6)
    scene.step(5)
    scene.actions[:] = (3, 0, 4, 0)
    scene.resets[2] = 1
    other.sim.restore(scene.sim.save())
    np.testing.assert_array_equal(other.actions, scene.actions)
    np.testing.assert_array_equal(other.resets, scene.resets)
    for one in (scene, other):
        one.step()
    assert other.sim.hash() == scene.sim.hash()


def test_the_hash_sees_every_step_and_every_difference() -> None:
    scene, other = Scene(4, seed=5), Scene(4, seed=6)
    assert scene.sim.hash() != other.sim.hash()
    seen = {scene.sim.hash()}
    for _ in range(20):
        scene.step()
        seen.add(scene.sim.hash())
    assert len(seen) == 21
    hashes = scene.sim.world_hashes()
    assert len(set(hashes.tolist())) == 4
    assert sum(hashes.tolist()) % 2**64 == scene.sim.hash()
    assert scene.sim.hash([1, 3]) == (int(hashes[1]) + int(hashes[3])) % 2**64
    scene.body_positions[2, 0, 0] += 1e-3
    assert (scene.sim.world_hashes() != hashes).tolist() == [False, False, True, False]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_forked_child_continues_bit_for_bit(num_threads: int, expected: int) -> None:
    scene = ROOM.scene(num_threads=num_threads)
    ROOM.play(scene, stop=60)
    assert in_child(lambda: finish(scene)) == expected
    assert finish(scene) == expected


def finish(scene: Scene) -> int:
    ROOM.play(scene, start=60)
    return scene.sim.hash()


def in_child(work: Callable[[], int]) -> int:
    """The result of `work` in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, struct.pack("<Q", work()))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return int(struct.unpack("<Q", answer)[0])


class FloatEnvironment(ctypes.Structure):
    """glibc's fenv_t on x86-64: 28 bytes of the old floating-point unit, then MXCSR."""

    _fields_ = [("x87", ctypes.c_uint8 * 28), ("mxcsr", ctypes.c_uint32)]


FLUSH_TO_ZERO, DENORMALS_ARE_ZERO = 0x8000, 0x0040
ROUND_DOWN, ROUND_UP, ROUND_TO_ZERO = 0x2000, 0x4000, 0x6000


@contextmanager
def mxcsr(bits: int) -> Iterator[Callable[[], int]]:
    """Sets bits of the thread's SSE control register; yields a function that reads it."""
    original, changed, current = FloatEnvironment(), FloatEnvironment(), FloatEnvironment()
    LIBM.fegetenv(ctypes.byref(original))
    ctypes.memmove(ctypes.byref(changed), ctypes.byref(original), ctypes.sizeof(original))
    changed.mxcsr |= bits

    def read() -> int:
        LIBM.fegetenv(ctypes.byref(current))
        return int(current.mxcsr)

    LIBM.fesetenv(ctypes.byref(changed))
    try:
        yield read
    finally:
        LIBM.fesetenv(ctypes.byref(original))


@pytest.mark.parametrize("bits", [FLUSH_TO_ZERO | DENORMALS_ARE_ZERO, ROUND_DOWN, ROUND_UP, ROUND_TO_ZERO])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_the_callers_float_settings_do_not_matter_and_are_restored(bits: int, num_threads: int, expected: int) -> None:
    control = 0xFFC0  # all but the sticky exception flags

    def guarded() -> None:
        with mxcsr(bits) as read:
            before = read() & control
            scene.sim.step()
            after = read() & control
        changed.append(before != after or before & bits != bits)

    changed: list[bool] = []
    scene = ROOM.scene(num_threads=num_threads)
    ROOM.play(scene, step=guarded)
    assert scene.sim.hash() == expected
    assert not any(changed)


def test_construction_and_reset_ignore_the_callers_float_settings() -> None:
    hashes: list[Any] = []
    for bits in (0, FLUSH_TO_ZERO | DENORMALS_ARE_ZERO, ROUND_UP):
        with mxcsr(bits):
            scene = Scene(64, seed=3)
            scene.sim.reset()
            scene.sim.refresh()
        hashes.append((scene.sim.hash(), scene.lidar.tobytes(), scene.self_observations.tobytes()))
    assert hashes[0] == hashes[1] == hashes[2]


def test_stepping_asynchronously_gives_the_same_bits(expected: int) -> None:
    scene = ROOM.scene(num_threads=2)

    def step() -> None:
        scene.sim.step_async()
        scene.sim.wait()

    ROOM.play(scene, step=step)
    assert scene.sim.hash() == expected
