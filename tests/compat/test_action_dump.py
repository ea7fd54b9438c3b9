"""Action dumps of the reference: what is read, and files that do not fit."""

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import doorstep
from doorstep.compat.madrona_escape_room.action_dump import read_action_dump

STEPS, WORLDS = 30, 5


def random_actions(steps: int = STEPS, worlds: int = WORLDS, agents: int = 2) -> NDArray[np.int32]:
    return np.random.default_rng(1).integers(doorstep.ACTIONS, size=(steps, worlds, agents, 4), dtype=np.int32)


def write(path: Path, actions: NDArray[Any]) -> None:
    """As the reference's scripts do."""
    with path.open("wb") as dump:
        for step in actions:
            step.astype("<i4").tofile(dump)


@pytest.mark.parametrize("agents", [1, 2, 8])
def test_what_was_written_is_read(agents: int, tmp_path: Path) -> None:
    actions = random_actions(agents=agents)
    write(tmp_path / "dump", actions)
    read = read_action_dump(tmp_path / "dump", WORLDS, agents)
    assert read.dtype == np.int32
    assert read.shape == actions.shape
    assert (read == actions).all()


def test_the_file_is_mapped_not_copied(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
        file.seek(-4, os.SEEK_END)
        file.write(struct.pack("<i", 7))
    actions = read_action_dump(tmp_path / "sparse", 4096)
    assert actions.shape == ((1 << 40) // (4096 * 2 * 4 * 4), 4096, 2, 4)
    assert actions[-1, -1, -1].tolist() == [0, 0, 0, 7]
    assert not actions.flags.writeable


def test_a_file_larger_than_the_address_space_is_a_typed_error(tmp_path: Path, run_python: Callable[..., str]) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
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


def test_what_is_no_regular_file_is_refused_at_once(irregular_file: Path) -> None:
    with pytest.raises(doorstep.ArgumentError, match="must be a regular file") as caught:
        read_action_dump(irregular_file, WORLDS)
    assert caught.value.argument == "path"


def test_an_empty_dump_has_no_steps(tmp_path: Path) -> None:
    write(tmp_path / "dump", random_actions(steps=0))
    assert read_action_dump(tmp_path / "dump", WORLDS).shape == (0, WORLDS, 2, 4)


def test_a_size_that_is_no_whole_number_of_steps_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "dump", random_actions())
    with pytest.raises(doorstep.StateError, match=r"has 4800 bytes, but a step of 7 worlds with 2 agents takes 224"):
        read_action_dump(tmp_path / "dump", 7)
    (tmp_path / "dump").write_bytes((tmp_path / "dump").read_bytes()[:-1])
    with pytest.raises(doorstep.StateError, match="has 4799 bytes"):
        read_action_dump(tmp_path / "dump", WORLDS)


@pytest.mark.parametrize(
    ("worlds", "agents", "argument"), [(0, 2, "num_worlds"), (-1, 2, "num_worlds"), (5, 0, "num_agents")]
)
def test_impossible_sizes_are_refused(worlds: int, agents: int, argument: str, tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(b"")
    with pytest.raises(doorstep.ArgumentError, match=f"^{argument} is .*an integer, 1 to") as reading:
        read_action_dump(tmp_path / "dump", worlds, agents)
    assert reading.value.argument == argument


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_action_dump(tmp_path / "missing", WORLDS)
