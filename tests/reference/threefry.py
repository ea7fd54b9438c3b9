"""Threefry-2x32 with 20 rounds (Salmon et al., 2011), and the keys and uniforms that levels are drawn from."""

import numpy as np

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)


def words(value):
    return np.atleast_1d(np.asarray(value)).astype(np.uint32)


def threefry(key, counter):
    """One block: encrypts a counter of two words under a key of two words. Broadcasts."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ PARITY)
    a, b = counter[0] + schedule[0], counter[1] + schedule[1]
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            a = a + b
            b = (b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation))
            b = b ^ a
        a = a + schedule[(group + 1) % 3]
        b = b + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def split(key, index, upper=0):
    """The child of a key with a 64-bit index given as two words, low word first."""
    low, high = np.broadcast_arrays(words(index), words(upper))
    return threefry(key, (low, high))


def base_key(seed):
    return split((words(seed), words(0)), 0)


def episode_key(seed, world, episode):
    return split(base_key(seed), episode, world)


def uniforms(key, count):
    """The first draws of an episode, [number of keys, count], multiples of 2**-24 in [0, 1)."""
    draws = []
    for index in range(count):
        a, b = split(key, index)
        draws.append(((a ^ b) >> np.uint32(8)).astype(np.float64) * 2.0**-24)
    return np.stack(draws, axis=-1)
