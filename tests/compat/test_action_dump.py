"""Action dumps of the reference: what is read, and files that do not fit."""

import os
import struct

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep
from doorstep.compat.madrona_escape_room.action_dump import read_action_dump

STEPS, WORLDS = 30, 5


def write(path, agents=2, steps=STEPS):
    """As the reference's scripts do."""
    actions = np.random.default_rng(1).integers(doorstep.ACTIONS, size=(steps, WORLDS, agents, 4), dtype=np.int32)
    with path.open("wb") as dump:
        for step in actions:
            step.astype("<i4").tofile(dump)
    return actions


def test_what_was_written_is_read(tmp_path):
    for agents, steps in ((1, STEPS), (2, STEPS), (8, STEPS), (2, 0)):
        actions = write(tmp_path / "dump", agents, steps)
        read = read_action_dump(tmp_path / "dump", WORLDS, agents)
        assert (read.dtype, read.shape) == (np.int32, actions.shape)
        assert (read == actions).all()


def test_the_file_is_mapped_not_copied(tmp_path, run_python):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(-4, os.SEEK_END)
        file.write(struct.pack("<i", 7))
    actions = read_action_dump(path, 4096)
    assert actions.shape == ((1 << 40) // (4096 * 2 * 4 * 4), 4096, 2, 4)
    assert actions[-1, -1, -1].tolist() == [0, 0, 0, 7]
    assert not actions.flags.writeable
    code = f"""
import doorstep, resource
from doorstep.compat.madrona_escape_room.action_dump import read_action_dump
resource.setrlimit(resource.RLIMIT_AS, (1 << 39, 1 << 39))
try:
    read_action_dump({str(path)!r}, 1)
except doorstep.OutOfMemoryError as error:
    print(error.argument)
"""
    assert run_python(code) == "path\n"


def test_what_is_no_regular_file_is_refused_at_once(irregular_file):
    refuses("must be a regular file", read_action_dump, irregular_file, WORLDS, argument="path")


def test_sizes_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "dump"
    write(path)
    with pytest.raises(doorstep.StateError, match=r"has 4800 bytes, but a step of 7 worlds with 2 agents takes 224"):
        read_action_dump(path, 7)
    path.write_bytes(path.read_bytes()[:-1])
    refuses("has 4799 bytes", read_action_dump, path, WORLDS, error=doorstep.StateError)
    for worlds, agents, argument in ((0, 2, "num_worlds"), (-1, 2, "num_worlds"), (5, 0, "num_agents")):
        refuses(f"^{argument} is .*an integer, 1 to", read_action_dump, path, worlds, agents, argument=argument)
    refuses(None, read_action_dump, tmp_path / "missing", WORLDS, error=FileNotFoundError)
