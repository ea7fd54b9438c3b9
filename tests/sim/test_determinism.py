"""Same seed, same actions, same bits: over threads, shards, saves and the caller's float settings.

Slots of saves are tested in tests/pkg/test_save.py, forks in tests/pkg/test_processes.py.
"""

import ctypes
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
from tests.scenes import OBSERVATIONS, Scene, random_actions, steps
from tests.sim.agreement import assert_same

from doorstep import _golden


@dataclass(frozen=True)
class Run:
    """Uniform random actions in `num_worlds` worlds for `steps` steps, starting in `room`."""

    num_worlds: int
    steps: int
    room: int = 0
    episode_length: int = 200

    def scene(self, first=0, count=None, **options):
        """A simulator of worlds [first, first + count) of this run, before its first step."""
        rules = {"seed": 5, "episode_length": self.episode_length, "world_offset": first}
        scene = Scene(self.num_worlds if count is None else count, **rules, **options)
        if self.room:
            scene.start_in_room(self.room)
        return scene

    def play(self, scene, start=0, stop=None, step=None):
        """Plays steps [start, stop) in the worlds of `scene`, with `step` instead of `scene.step` if given."""
        first = scene.sim.world_offset
        for actions in random_actions(5, self.steps, self.num_worlds)[start:stop]:
            scene.actions[:] = actions[first : first + scene.sim.num_worlds]
            (step or scene.step)()

    def hash(self, **options):
        """The hash of the worlds after the last step."""
        scene = self.scene(**options)
        self.play(scene)
        return scene.sim.hash()


ROOM = Run(96, 120, room=2)
EPISODES = Run(96, 100, episode_length=30)
LIBM = ctypes.CDLL("libm.so.6")


@pytest.fixture(scope="module")
def expected():
    return ROOM.hash()


@pytest.mark.parametrize("name", _golden.RUNS)
def test_golden_runs_have_their_hashes(name):
    pinned, measured = _golden.HASHES[name], _golden.RUNS[name].hash()
    assert measured == pinned, f"{name}: 0x{measured:016X} instead of 0x{pinned:016X}"


def test_a_run_repeats_itself_on_any_number_of_threads(expected):
    for num_threads in (1, 2, 7):
        assert ROOM.hash(num_threads=num_threads) == expected
    assert EPISODES.hash(num_threads=3) == EPISODES.hash()


def test_a_world_does_not_depend_on_its_neighbours():
    """Other batch sizes place worlds in other lanes and tiles."""
    whole = ROOM.scene()
    ROOM.play(whole)
    for first, count in ((0, 1), (40, 2), (0, 5), (63, 31), (40, 33), (0, 48), (48, 48)):
        shard = ROOM.scene(first, count)
        ROOM.play(shard)
        of_shard = slice(first, first + count)
        np.testing.assert_array_equal(shard.sim.world_hashes(), whole.sim.world_hashes()[of_shard])
        assert_same(shard, whole, OBSERVATIONS, of_shard)


def test_a_save_in_mid_episode_continues_bit_for_bit(expected):
    """Pending actions and resets are a part of it."""
    scene = ROOM.scene()
    ROOM.play(scene, stop=51)
    saved, other = scene.sim.save(), Scene(96, seed=1, num_threads=2)
    other.step(3)
    other.sim.restore(saved)
    assert_same(other, scene, OBSERVATIONS)
    for one in (scene, other):
        ROOM.play(one, start=51)
        assert one.sim.hash() == expected
    scene.actions[:] = (3, 0, 4, 0)
    scene.resets[2] = 1
    other.sim.restore(scene.sim.save())
    assert_same(other, scene, ("actions", "resets"))
    steps(1, scene, other)
    assert other.sim.hash() == scene.sim.hash() != expected


def test_the_hash_sees_every_step_and_every_difference():
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


class FloatEnvironment(ctypes.Structure):
    """glibc's fenv_t on x86-64: 28 bytes of the old floating-point unit, then MXCSR."""

    _fields_ = [("x87", ctypes.c_uint8 * 28), ("mxcsr", ctypes.c_uint32)]


FLUSH_TO_ZERO, DENORMALS_ARE_ZERO = 0x8000, 0x0040
ROUND_UP = 0x4000


@contextmanager
def mxcsr(bits):
    """Sets bits of the thread's SSE control register; yields a function that reads it."""
    original, changed, current = FloatEnvironment(), FloatEnvironment(), FloatEnvironment()
    LIBM.fegetenv(ctypes.byref(original))
    ctypes.memmove(ctypes.byref(changed), ctypes.byref(original), ctypes.sizeof(original))
    changed.mxcsr |= bits

    def read():
        LIBM.fegetenv(ctypes.byref(current))
        return int(current.mxcsr)

    LIBM.fesetenv(ctypes.byref(changed))
    try:
        yield read
    finally:
        LIBM.fesetenv(ctypes.byref(original))


@pytest.mark.parametrize(("bits", "num_threads"), [(FLUSH_TO_ZERO | DENORMALS_ARE_ZERO, 2), (ROUND_UP, 1)])
def test_the_callers_float_settings_do_not_matter_and_are_restored(bits, num_threads, expected):
    control = 0xFFC0  # all but the sticky exception flags

    def guarded():
        with mxcsr(bits) as read:
            before = read() & control
            scene.sim.step()
            after = read() & control
        changed.append(before != after or before & bits != bits)

    changed, scene = [], ROOM.scene(num_threads=num_threads)
    ROOM.play(scene, step=guarded)
    assert scene.sim.hash() == expected
    assert not any(changed)


def test_construction_and_reset_ignore_the_callers_float_settings():
    hashes = []
    for bits in (0, FLUSH_TO_ZERO | DENORMALS_ARE_ZERO, ROUND_UP):
        with mxcsr(bits):
            scene = Scene(64, seed=3)
            scene.sim.reset()
            scene.sim.refresh()
        hashes.append((scene.sim.hash(), scene.lidar.tobytes(), scene.self_observations.tobytes()))
    assert hashes[0] == hashes[1] == hashes[2]
