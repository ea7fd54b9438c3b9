"""Action dumps: the bytes of the format, round trips, replays, and files that do not fit."""

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import doorstep
from doorstep.action_dump import ActionDumpWriter, read_action_dump

STEPS, WORLDS = 30, 5


def random_actions(steps: int = STEPS, worlds: int = WORLDS, agents: int = 2) -> NDArray[np.int32]:
    return np.random.default_rng(1).integers(doorstep.ACTIONS, size=(steps, worlds, agents, 4), dtype=np.int32)


def write(path: Path, actions: NDArray[Any]) -> None:
    _, worlds, agents, _ = actions.shape
    with ActionDumpWriter(path, worlds, agents) as dump:
        for step in actions:
            dump.append(step)


@pytest.mark.parametrize("agents", [1, 2, 8])
def test_what_was_written_is_read(agents: int, tmp_path: Path) -> None:
    actions = random_actions(agents=agents)
    write(tmp_path / "dump", actions)
    read = read_action_dump(tmp_path / "dump", WORLDS, agents)
    assert read.dtype == np.int32
    assert read.shape == actions.shape
    assert (read == actions).all()


def test_the_format_is_little_endian_int32_without_a_header(tmp_path: Path) -> None:
    write(tmp_path / "dump", np.array([[[[1, 2, 3, 0], [0, 7, 4, 1]]], [[[3, 0, -1, 0], [0, 0, 2, 70000]]]]))
    expected = struct.pack("<16i", 1, 2, 3, 0, 0, 7, 4, 1, 3, 0, -1, 0, 0, 0, 2, 70000)
    assert (tmp_path / "dump").read_bytes() == expected


def test_a_tensor_of_a_simulator_is_appended_as_it_is(tmp_path: Path) -> None:
    with doorstep.Simulator(WORLDS) as sim, ActionDumpWriter(tmp_path / "dump", WORLDS) as dump:
        sim.actions[:] = (1, 2, 3, 1)
        dump.append(sim.actions)
    assert (read_action_dump(tmp_path / "dump", WORLDS) == (1, 2, 3, 1)).all()


def test_a_replay_ends_in_the_same_state(tmp_path: Path) -> None:
    with doorstep.Simulator(WORLDS, seed=5, episode_length=12) as sim:
        with ActionDumpWriter(tmp_path / "dump", WORLDS) as dump:
            for actions in random_actions():
                sim.actions[:] = actions
                dump.append(sim.actions)
                sim.step()
        recorded = sim.hash()
    with doorstep.Simulator(WORLDS, seed=5, episode_length=12) as sim:
        for actions in read_action_dump(tmp_path / "dump", WORLDS):
            sim.actions[:] = actions
            sim.step()
        assert sim.hash() == recorded


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
from doorstep.action_dump import read_action_dump
resource.setrlimit(resource.RLIMIT_AS, (1 << 39, 1 << 39))
try:
    read_action_dump({str(path)!r}, 1)
except doorstep.OutOfMemoryError as error:
    print(error.argument)
"""
    assert run_python(code) == "path\n"


@pytest.mark.parametrize("kind", ["device", "fifo", "folder"])
def test_what_is_no_regular_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / kind
    if kind == "fifo":
        os.mkfifo(path)  # without a writer: a plain open() would wait for one
    if kind == "folder":
        path.mkdir()
    with pytest.raises(doorstep.ArgumentError, match="must be a regular file") as caught:
        read_action_dump(path, WORLDS)
    assert caught.value.argument == "path"


def test_an_array_outlives_a_new_dump_of_the_same_name(tmp_path: Path) -> None:
    first, second = random_actions(), random_actions(steps=1) + 1
    write(tmp_path / "dump", first)
    read = read_action_dump(tmp_path / "dump", WORLDS)
    write(tmp_path / "dump", second)
    assert (read == first).all()
    assert (read_action_dump(tmp_path / "dump", WORLDS) == second).all()


def test_a_link_stays_one(tmp_path: Path) -> None:
    write(tmp_path / "dump", random_actions())
    (tmp_path / "link").symlink_to("dump")
    write(tmp_path / "link", random_actions(steps=2))
    assert (tmp_path / "link").is_symlink()
    assert len(read_action_dump(tmp_path / "dump", WORLDS)) == 2


def test_an_empty_dump_has_no_steps(tmp_path: Path) -> None:
    with ActionDumpWriter(tmp_path / "dump", WORLDS):
        pass
    assert read_action_dump(tmp_path / "dump", WORLDS).shape == (0, WORLDS, 2, 4)


def test_an_older_dump_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "dump", random_actions())
    write(tmp_path / "dump", random_actions(steps=2))
    assert len(read_action_dump(tmp_path / "dump", WORLDS)) == 2


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
    with pytest.raises(doorstep.ArgumentError, match=f"^{argument} must be at least 1") as reading:
        read_action_dump(tmp_path / "dump", worlds, agents)
    assert reading.value.argument == argument
    with pytest.raises(doorstep.ArgumentError, match=f"^{argument} must be at least 1"):
        ActionDumpWriter(tmp_path / "new", worlds, agents)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("actions", "says"),
    [
        (np.zeros((4, 2, 4), np.int32), r"must have the shape \(5, 2, 4\), but have \(4, 2, 4\)"),
        (np.zeros((5, 2, 3), np.int32), r"must have the shape \(5, 2, 4\), but have \(5, 2, 3\)"),
        (np.zeros((5, 2, 4), np.float32), "must be integers of 32 bits, but are float32"),
        (np.full((5, 2, 4), 2**31), "must be integers of 32 bits, but are int64 from 2147483648"),
    ],
    ids=["worlds", "components", "floats", "too large"],
)
def test_actions_that_do_not_fit_are_refused_and_nothing_is_written(
    actions: NDArray[Any], says: str, tmp_path: Path
) -> None:
    with ActionDumpWriter(tmp_path / "dump", WORLDS) as dump:
        with pytest.raises(doorstep.ArgumentError, match=says):
            dump.append(actions)
        dump.append(random_actions()[0])
    assert len(read_action_dump(tmp_path / "dump", WORLDS)) == 1


def test_a_closed_dump_takes_no_more_actions(tmp_path: Path) -> None:
    dump = ActionDumpWriter(tmp_path / "dump", WORLDS)
    dump.close()
    dump.close()
    with pytest.raises(doorstep.ClosedError, match="closed"):
        dump.append(random_actions()[0])


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_action_dump(tmp_path / "missing", WORLDS)
