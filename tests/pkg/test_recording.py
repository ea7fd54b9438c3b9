"""Recordings: the bytes of the file, exact replays, what is refused, and files that are damaged, cut or forged."""

import contextlib
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg import recording_files as files
from tests.pkg.recording_files import Chunk

import doorstep
from doorstep.recording import Recording, RecordingWriter, Replay, replay

WORLDS = 5


def random_actions(steps: int, worlds: int = WORLDS, agents: int = 2) -> NDArray[np.int32]:
    return np.random.default_rng(1).integers(doorstep.ACTIONS, size=(steps, worlds, agents, 4), dtype=np.int32)


def record(path: Path, actions: NDArray[Any], hash_interval: int = 64, **rules: Any) -> NDArray[np.uint64]:
    """Records a new simulator; returns the hashes of its worlds at the end."""
    _, worlds, agents, _ = actions.shape
    with doorstep.Simulator(worlds, num_agents=agents, **rules) as sim:
        with RecordingWriter(path, sim, hash_interval=hash_interval) as writer:
            play(writer, sim, actions)
        return sim.world_hashes()


def play(writer: RecordingWriter, sim: doorstep.Simulator, actions: NDArray[Any]) -> None:
    for step in actions:
        sim.actions = step
        writer.append()
        sim.step()


def final_hashes(path: Path, **changes: Any) -> NDArray[np.uint64]:
    """Of the worlds after a replay."""
    with (
        Recording(path) as recording,
        doorstep.Simulator.from_config(recording.config.replace(**changes)) as sim,
    ):
        replay(recording, sim)
        return sim.world_hashes()


def kinds(path: Path) -> list[str]:
    return [chunk.kind for chunk in files.parse(path.read_bytes())]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.rec"


# ---- What is written


@pytest.mark.parametrize("agents", [1, 2, 8])
def test_what_was_recorded_is_read(agents: int, path: Path) -> None:
    actions = random_actions(150, agents=agents)
    record(path, actions, seed=9, episode_length=40, world_offset=3, auto_reset=False, action_check="raise")
    with Recording(path) as recording:
        assert recording.config == doorstep.SimulatorConfig(
            WORLDS,
            num_agents=agents,
            seed=9,
            episode_length=40,
            world_offset=3,
            auto_reset=False,
            action_check="raise",
        )
        assert (recording.num_steps, recording.version, recording.path) == (150, doorstep.__version__, str(path))
        assert recording.complete
        assert not recording.same_version_only
        for step in (0, 149, 63, 64, 65, 1, 128, 127):
            read = recording.actions(step)
            assert read.dtype == np.int32
            assert (read == actions[step]).all()
            assert (recording.resets(step) == np.zeros(WORLDS, bool)).all()
        assert repr(recording) == f"Recording({str(path)!r}, 5 worlds, {agents} agents, 150 steps)"


def test_the_file_is_what_its_description_says(path: Path) -> None:
    actions = random_actions(70)
    hashes = []
    with doorstep.Simulator(WORLDS, seed=3) as sim, RecordingWriter(path, sim, hash_interval=50) as writer:
        hashes.append(sim.world_hashes())
        for step in range(70):
            sim.actions = actions[step]
            sim.resets[:] = 0
            if step == 20:
                sim.resets[3] = 1
            writer.step()
            if step in (49, 69):
                hashes.append(sim.world_hashes())
    chunks = files.parse(path.read_bytes())
    assert [(chunk.kind, chunk.position) for chunk in chunks] == [
        ("CONF", 0), ("HASH", 0), ("STEP", 50), ("HASH", 50), ("STEP", 70), ("HASH", 70), ("END ", 70)
    ]  # fmt: skip
    assert json.loads(chunks[0].payload) == {
        "doorstep": doorstep.__version__,
        "config": {
            "num_worlds": WORLDS,
            "seed": 3,
            "num_agents": 2,
            "episode_length": 200,
            "auto_reset": True,
            "world_offset": 0,
            "action_check": "clamp",
        },
    }
    assert [chunk.payload for chunk in chunks if chunk.kind == "HASH"] == [each.tobytes() for each in hashes]
    first, resets = files.unpack_steps(chunks[2].payload, WORLDS, 2)
    second, none = files.unpack_steps(chunks[4].payload, WORLDS, 2)
    assert (np.concatenate([first, second]) == actions).all()
    assert none is None
    assert resets is not None
    assert np.argwhere(resets).tolist() == [[20, 3]]
    assert chunks[6].payload == struct.pack("<Q", 6)


def test_a_file_of_another_writer_is_read(path: Path) -> None:
    actions = random_actions(6)
    record(path, actions[:0])
    chunks = files.parse(path.read_bytes())
    steps = Chunk("STEP", 6, files.pack_steps(actions))
    path.write_bytes(files.build([chunks[0], steps, Chunk("END ", 6, struct.pack("<Q", 2))]))
    assert (final_hashes(path) == record(path.with_name("again"), actions)).all()


@pytest.mark.parametrize("value", [-1, -(2**31), 2**31 - 1, 4, 8])
def test_actions_out_of_range_are_recorded_as_they_are(value: int, path: Path) -> None:
    for component in range(4):
        actions = random_actions(3)
        actions[1, 2, 1, component] = value
        expected = record(path, actions)
        with Recording(path) as recording:
            assert (recording.actions(1) == actions[1]).all()
        assert (final_hashes(path) == expected).all()


def test_a_recording_without_steps_is_one(path: Path) -> None:
    record(path, random_actions(0))
    with Recording(path) as recording:
        assert (recording.num_steps, recording.hashed_steps) == (0, (0,))
        replay(recording)
        with pytest.raises(doorstep.ArgumentError, match="has no steps"):
            recording.actions(0)


def test_hashes_are_those_of_the_worlds(path: Path) -> None:
    actions = random_actions(25)
    with doorstep.Simulator(WORLDS) as sim:
        expected = {0: sim.world_hashes()}
        with RecordingWriter(path, sim, hash_interval=10) as writer:
            for step, each in enumerate(actions, 1):
                sim.actions = each
                writer.step()
                if step in (10, 20, 25):
                    expected[step] = sim.world_hashes()
    with Recording(path) as recording:
        assert recording.hashed_steps == tuple(expected)
        for step, hashes in expected.items():
            assert (recording.hashes(step) == hashes).all()
        for wrong in (5, 26, -1):
            with pytest.raises(doorstep.ArgumentError, match="step is"):
                recording.hashes(wrong)


@pytest.mark.parametrize("step", [-1, 30, 2**70, True, 1.5, "0"])
def test_steps_that_do_not_exist_are_refused(step: Any, path: Path) -> None:
    record(path, random_actions(30))
    with Recording(path) as recording:
        with pytest.raises(doorstep.ArgumentError, match=r"^step is"):
            recording.actions(step)
        with pytest.raises(doorstep.ArgumentError, match=r"^step is"):
            recording.resets(step)


# ---- Replays


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("agents", [1, 2, 3])
def test_a_replay_is_exact_with_any_number_of_threads(threads: int, agents: int, path: Path) -> None:
    expected = record(path, random_actions(150, 130, agents), seed=5, episode_length=60, num_threads=5 - threads)
    assert (final_hashes(path, num_threads=threads) == expected).all()
    with Recording(path) as recording:
        replay(recording, device="cpu", num_threads=threads)


def test_a_replay_shows_what_the_run_showed(path: Path) -> None:
    actions, seen = random_actions(30), []
    with doorstep.Simulator(WORLDS, episode_length=12) as sim, RecordingWriter(path, sim) as writer:
        for each in actions:
            sim.actions = each
            writer.step()
            seen.append({name: tensor.copy_to_host() for name, tensor in sim.tensors.items()})
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        replaying = Replay(recording, sim)
        for expected in seen:
            replaying.step()
            for name, tensor in sim.tensors.items():
                assert np.array_equal(tensor, expected[name]), name
        with pytest.raises(doorstep.ArgumentError, match="no further step"):
            replaying.step()


def test_a_simulator_with_other_rules_is_refused(path: Path) -> None:
    record(path, random_actions(3))
    with Recording(path) as recording, doorstep.Simulator(WORLDS, seed=1) as sim:
        with pytest.raises(doorstep.ArgumentError, match=r"sim has seed 1, but .* was recorded with 0"):
            replay(recording, sim)
        with pytest.raises(doorstep.ArgumentError, match="device is given together with sim"):
            replay(recording, sim, device="cpu")


def test_a_simulator_that_was_stepped_is_no_start_of_a_replay(path: Path) -> None:
    record(path, random_actions(3))
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        sim.step()
        with pytest.raises(doorstep.ReplayError, match="before the first step") as caught:
            replay(recording, sim)
        assert (caught.value.equal_step, caught.value.different_step) == (None, 0)
        assert caught.value.worlds == tuple(range(WORLDS))


def test_other_actions_are_noticed_and_the_worlds_named(path: Path) -> None:
    actions = random_actions(200)
    record(path, actions)
    forged = actions[64:128].copy()
    for world in (1, 4):
        forged[40, world] = [(3, 0, 0, 0), (3, 4, 4, 0)]
    assert (forged[40, [1, 4]] != actions[104, [1, 4]]).any(axis=(1, 2)).all()
    data = files.with_changed(
        path.read_bytes(), "STEP", 1, lambda chunk: chunk._replace(payload=files.pack_steps(forged))
    )
    path.write_bytes(data)
    with Recording(path) as recording, pytest.raises(doorstep.ReplayError) as caught:
        replay(recording)
    assert (caught.value.equal_step, caught.value.different_step, caught.value.worlds) == (64, 128, (1, 4))
    assert "worlds 1, 4 differ from the recording after step 128; after step 64 all were equal" in str(caught.value)


def test_another_hash_is_noticed_and_its_world_named(path: Path) -> None:
    record(path, random_actions(100), hash_interval=10)

    def change(chunk: Chunk) -> Chunk:
        hashes = np.frombuffer(chunk.payload, "<u8").copy()
        hashes[3] ^= np.uint64(1 << 40)
        return chunk._replace(payload=hashes.tobytes())

    path.write_bytes(files.with_changed(path.read_bytes(), "HASH", 7, change))
    with Recording(path) as recording, pytest.raises(doorstep.ReplayError) as caught:
        replay(recording)
    assert (caught.value.equal_step, caught.value.different_step, caught.value.worlds) == (60, 70, (3,))
    assert "world 3 differs" in str(caught.value)
    assert isinstance(caught.value, doorstep.StateError)


def test_of_many_worlds_a_few_are_named(path: Path) -> None:
    record(path, random_actions(3, worlds=20))
    path.write_bytes(
        files.with_changed(path.read_bytes(), "HASH", 1, lambda chunk: chunk._replace(payload=bytes(8 * 20)))
    )
    with Recording(path) as recording, pytest.raises(doorstep.ReplayError) as caught:
        replay(recording)
    assert "worlds 0, 1, 2, 3, 4 and 15 more differ" in str(caught.value)
    assert caught.value.worlds == tuple(range(20))


def test_a_difference_of_versions_is_the_reason_that_is_given(path: Path) -> None:
    record(path, random_actions(3))
    data = files.with_changed(path.read_bytes(), "HASH", 1, lambda chunk: chunk._replace(payload=bytes(8 * WORLDS)))
    path.write_bytes(of_version(data, "9.8.7"))
    with Recording(path) as recording, pytest.raises(doorstep.ReplayError, match=r"doorstep 9\.8\.7 recorded it"):
        replay(recording)


def of_version(data: bytes, version: str) -> bytes:
    content = json.dumps({**files.config_of(data), "doorstep": version}).encode()
    return files.with_changed(data, "CONF", 0, lambda chunk: chunk._replace(payload=content))


# ---- Resets, restores, edits


def test_resets_of_a_step_are_recorded(path: Path) -> None:
    chance = np.random.default_rng(2)
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        masks = chance.random((90, WORLDS)) < 0.1
        for actions, mask in zip(random_actions(90), masks, strict=True):
            sim.actions = actions
            sim.resets = mask.astype(np.int32)
            writer.step()
        expected = sim.world_hashes()
    with Recording(path) as recording:
        for step, mask in enumerate(masks):
            assert (recording.resets(step) == mask).all()
    assert (final_hashes(path) == expected).all()


@pytest.mark.parametrize("worlds", [None, [3, 1], [], [False, True, False, False, True]], ids=str)
def test_resets_between_steps_are_recorded(worlds: Any, path: Path) -> None:
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim, hash_interval=10) as writer:
        play(writer, sim, random_actions(10))
        writer.reset(worlds)
        writer.reset([0])
        play(writer, sim, random_actions(5))
        writer.reset(worlds)
        expected = sim.world_hashes()
    assert kinds(path) == ["CONF", "HASH", "STEP", "HASH", "RSET", "RSET", "STEP", "RSET", "HASH", "END "]
    assert (final_hashes(path) == expected).all()


def test_a_reset_that_is_refused_is_not_recorded(path: Path) -> None:
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        with pytest.raises(doorstep.ArgumentError, match="worlds"):
            writer.reset([WORLDS])
        writer.step()
    assert "RSET" not in kinds(path)
    final_hashes(path)


def test_resets_and_restores_behind_the_writers_back_are_refused(path: Path) -> None:
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        play(writer, sim, random_actions(10))
        saved = sim.save()
        interventions: list[Callable[[], None]] = [sim.reset, lambda: sim.reset([1]), lambda: sim.restore(saved)]
        for intervene in interventions:
            intervene()
            with pytest.raises(doorstep.StateError, match="reset or restored between two steps"):
                writer.append()
            with pytest.raises(doorstep.StateError, match="reset or restored between two steps"):
                writer.reset()
            writer.checkpoint()
            play(writer, sim, random_actions(4))
        expected = sim.world_hashes()
    with Recording(path) as recording:
        assert recording.num_steps == 22
        assert recording.same_version_only
    assert (final_hashes(path) == expected).all()


def test_edits_are_recorded_by_a_checkpoint(path: Path) -> None:
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim, hash_interval=10) as writer:
        play(writer, sim, random_actions(10))
        sim.state.body_positions[2, 0, :2] = (1.5, 3.5)
        writer.checkpoint()
        play(writer, sim, random_actions(10))
        expected = sim.world_hashes()
    assert kinds(path) == ["CONF", "HASH", "STEP", "SAVE", "HASH", "STEP", "HASH", "END "]
    assert (final_hashes(path) == expected).all()


def test_edits_without_a_checkpoint_are_noticed_by_the_replay(path: Path) -> None:
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        play(writer, sim, random_actions(70))
        sim.state.body_positions[2, 0, :2] = (1.5, 3.5)
        play(writer, sim, random_actions(5))
    with Recording(path) as recording, pytest.raises(doorstep.ReplayError, match=r"sim\.state was edited") as caught:
        replay(recording)
    assert (caught.value.equal_step, caught.value.different_step, caught.value.worlds) == (64, 75, (2,))


def test_what_happens_after_the_last_step_is_not_recorded(path: Path) -> None:
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        play(writer, sim, random_actions(10))
        sim.reset()
    assert kinds(path) == ["CONF", "HASH", "STEP", "END "]
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        play(writer, sim, random_actions(10))
        expected = sim.world_hashes()
        sim.step()
    assert kinds(path) == ["CONF", "HASH", "STEP", "END "]
    assert (final_hashes(path) == expected).all()


# ---- Simulators that are not new


def stepped(sim: doorstep.Simulator) -> None:
    sim.step()


def reset(sim: doorstep.Simulator) -> None:
    sim.reset([2])


def restored(sim: doorstep.Simulator) -> None:
    with doorstep.Simulator(WORLDS, seed=77, world_offset=10) as other:
        other.step()
        sim.restore(other.save())


def edited(sim: doorstep.Simulator) -> None:
    sim.state.body_positions[4, 1, :2] = (1.5, 3.5)


@pytest.mark.parametrize("change", [stepped, reset, restored, edited])
def test_a_simulator_that_is_not_new_is_recorded_from_where_it_is(
    change: Callable[[doorstep.Simulator], None], path: Path
) -> None:
    with doorstep.Simulator(WORLDS) as sim:
        change(sim)
        with RecordingWriter(path, sim) as writer:
            play(writer, sim, random_actions(80))
        expected = sim.world_hashes()
    assert kinds(path) == ["CONF", "SAVE", "HASH", "STEP", "HASH", "STEP", "HASH", "END "]
    with Recording(path) as recording:
        assert recording.same_version_only
        replay(recording)
    assert (final_hashes(path) == expected).all()


def test_a_new_simulator_of_many_worlds_needs_no_save(path: Path) -> None:
    with doorstep.Simulator(5000, world_offset=123) as sim, RecordingWriter(path, sim):
        pass
    assert kinds(path) == ["CONF", "HASH", "END "]
    with doorstep.Simulator(5000) as sim:
        sim.state.agent_max_y[4900, 1] = 3.0
        with RecordingWriter(path, sim):
            pass
    assert kinds(path) == ["CONF", "SAVE", "HASH", "END "]


def test_saved_worlds_of_another_version_are_refused_by_name(path: Path) -> None:
    with doorstep.Simulator(WORLDS) as sim:
        sim.step()
        with RecordingWriter(path, sim) as writer:
            play(writer, sim, random_actions(3))
    path.write_bytes(of_version(path.read_bytes(), "9.8.7"))
    with Recording(path) as recording:
        assert recording.version == "9.8.7"
        with pytest.raises(doorstep.StateError, match=r"saved worlds of doorstep 9\.8\.7") as caught:
            replay(recording)
    assert not isinstance(caught.value, doorstep.ReplayError)


def test_without_saved_worlds_another_version_is_no_obstacle(path: Path) -> None:
    record(path, random_actions(70))
    path.write_bytes(of_version(path.read_bytes(), "9.8.7"))
    with Recording(path) as recording:
        replay(recording)


# ---- What a writer refuses


def test_steps_and_appends_must_alternate(path: Path) -> None:
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        writer.append()
        with pytest.raises(doorstep.StateError, match=r"step of the last append\(\) was not taken"):
            writer.append()
        sim.step()
        sim.step()
        with pytest.raises(doorstep.StateError, match=r"A step was taken without append\(\)"):
            writer.append()
        sim.step()
        with pytest.raises(doorstep.StateError, match=r"2 steps were taken without append\(\)"):
            writer.checkpoint()
        assert writer.num_steps == 1
    with Recording(path) as recording:
        assert recording.num_steps == 1
        replay(recording)


def test_a_step_that_was_not_taken_is_not_recorded(path: Path) -> None:
    with doorstep.Simulator(WORLDS, action_check="raise") as sim:
        with RecordingWriter(path, sim) as writer:
            writer.step()
            sim.actions[0, 0, 0] = 99
            with pytest.raises(doorstep.ArgumentError, match="action"):
                writer.step()
            assert writer.num_steps == 1
            sim.actions[0, 0, 0] = 3
            writer.step()
            sim.actions[0, 0, 0] = 1
            writer.append()  # and closed before the step
        expected = sim.world_hashes()
    with Recording(path) as recording:
        assert [int(recording.actions(step)[0, 0, 0]) for step in range(recording.num_steps)] == [0, 3]
    assert (final_hashes(path) == expected).all()


def test_an_exception_between_steps_leaves_a_complete_recording(path: Path) -> None:
    def fail() -> None:
        with RecordingWriter(path, sim) as writer:
            play(writer, sim, random_actions(7))
            raise ZeroDivisionError

    with doorstep.Simulator(WORLDS) as sim, pytest.raises(ZeroDivisionError):
        fail()
    with Recording(path) as recording:
        assert recording.num_steps == 7
        replay(recording)


def test_a_strict_simulators_error_does_not_cost_the_recording(path: Path) -> None:
    with doorstep.Simulator(WORLDS, strict=True) as sim:
        writer = RecordingWriter(path, sim)
        writer.step()
        sim.state.body_positions[0, 0, 0] = np.nan
        writer.step()  # counts it, which the next call reports
        with pytest.raises(doorstep.SimulationError):
            writer.close()
        writer.close()
    with Recording(path) as recording:
        assert recording.num_steps == 2
        assert recording.complete


def test_a_closed_writer_and_a_closed_simulator_are_refused(path: Path) -> None:
    with doorstep.Simulator(WORLDS) as sim:
        writer = RecordingWriter(path, sim)
        writer.close()
        writer.close()
        for call in (writer.append, writer.step, writer.reset, writer.checkpoint, writer.__enter__):
            with pytest.raises(doorstep.ClosedError, match="closed"):
                call()
        writer = RecordingWriter(path, sim)
        writer.step()
    with pytest.raises(doorstep.ClosedError, match="closed before its recording"):
        writer.close()
    with pytest.raises(doorstep.StateError, match="truncated"):
        Recording(path)


def test_ctrl_c_at_any_place_leaves_a_complete_recording(path: Path) -> None:
    """KeyboardInterrupt at every line that the writer executes in turn, as a signal may raise it."""
    actions = random_actions(9)
    for interrupted_line in range(0, 400, 3):
        lines = 0

        def interrupt(frame: FrameType, event: str, _: Any, stop: int = interrupted_line) -> Any:
            nonlocal lines
            if not frame.f_code.co_filename.endswith("recording.py") or frame.f_code.co_name in ("close", "_finish"):
                return None
            lines += event == "line"
            if lines == stop:
                lines += 1
                raise KeyboardInterrupt
            return interrupt

        with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim, hash_interval=3) as writer:
            sys.settrace(interrupt)
            try:
                for step, each in enumerate(actions):
                    sim.actions = each
                    writer.step()
                    if step == 4:
                        writer.reset([2])
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
            taken = sim.step_count
        with Recording(path) as recording:
            assert recording.num_steps == taken
            replay(recording)
        if lines < interrupted_line:
            break
    assert lines > 100


@pytest.mark.parametrize("interval", [0, -1, True, 1.5, None])
def test_impossible_arguments_leave_the_older_file(interval: Any, path: Path) -> None:
    path.write_text("older")
    with doorstep.Simulator(WORLDS) as sim, pytest.raises(doorstep.ArgumentError, match="hash_interval"):
        RecordingWriter(path, sim, hash_interval=interval)
    with pytest.raises(doorstep.ArgumentError, match="sim is"):
        RecordingWriter(path, None)  # type: ignore[arg-type]
    assert path.read_text() == "older"


def test_a_closed_recording_is_refused(path: Path) -> None:
    record(path, random_actions(3))
    recording = Recording(path)
    recording.close()
    recording.close()
    uses = (lambda: recording.actions(0), lambda: recording.hashes(0), lambda: replay(recording))
    for call in (*uses, recording.__enter__):
        with pytest.raises(doorstep.ClosedError, match="closed"):
            call()


# ---- Files and folders


def test_an_older_recording_is_replaced_and_its_readers_keep_it(path: Path) -> None:
    first, second = random_actions(5), random_actions(6)[::-1]
    record(path, first)
    with Recording(path) as recording:
        record(path, second)
        assert all((recording.actions(step) == first[step]).all() for step in range(5))
    with Recording(path) as recording:
        assert all((recording.actions(step) == second[step]).all() for step in range(6))


def test_a_link_stays_one(path: Path) -> None:
    record(path, random_actions(5))
    link = path.with_name("link")
    link.symlink_to(path.name)
    record(link, random_actions(2))
    assert link.is_symlink()
    with Recording(path) as recording:
        assert recording.num_steps == 2


@pytest.mark.parametrize("kind", ["device", "fifo", "folder"])
def test_what_is_no_regular_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / kind
    if kind == "fifo":
        os.mkfifo(path)  # without a writer: a plain open() would wait for one
    if kind == "folder":
        path.mkdir()
    with pytest.raises(doorstep.ArgumentError, match="must be a regular file") as caught:
        Recording(path)
    assert caught.value.argument == "path"


def test_files_that_cannot_be_opened_are_os_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Recording(tmp_path / "missing")
    with doorstep.Simulator(1) as sim:
        with pytest.raises(IsADirectoryError):
            RecordingWriter(tmp_path, sim)
        with pytest.raises(FileNotFoundError):
            RecordingWriter(tmp_path / "missing" / "run.rec", sim)
        with pytest.raises(OSError, match="No space left"):
            RecordingWriter("/dev/full", sim)
        with pytest.raises(doorstep.ArgumentError, match="path is 7"):
            RecordingWriter(7, sim)  # type: ignore[arg-type]
    with pytest.raises(doorstep.ArgumentError, match="path is 7"):
        Recording(7)  # type: ignore[arg-type]


def test_a_full_disk_closes_the_writer_and_leaves_what_fits(path: Path, run_python: Callable[..., str]) -> None:
    code = f"""
import doorstep, resource, signal, numpy
from doorstep.recording import RecordingWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
random = numpy.random.default_rng(1)
with doorstep.Simulator(64) as sim:
    writer = RecordingWriter({str(path)!r}, sim)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
    try:
        while True:
            sim.actions = random.integers(0, doorstep.ACTIONS, sim.actions.shape)
            writer.step()
    except OSError as error:
        print(error.errno)
    try:
        writer.append()
    except doorstep.ClosedError:
        print("closed")
    writer.close()
"""
    assert run_python(code).split() == ["27", "closed"]  # EFBIG
    with Recording(path, incomplete=True) as recording:
        assert 0 < recording.num_steps < 192
        assert recording.num_steps % 64 == 0
        replay(recording)


# ---- Files without their end


def test_a_cut_file_is_named_truncated_and_read_on_demand(path: Path) -> None:
    actions = random_actions(150)
    record(path, actions)
    whole = path.read_bytes()
    ends = {}  # by the size of the file: how many steps are complete
    size = files.HEAD_BYTES
    for chunk in files.parse(whole):
        size += files.HEADER_BYTES + len(chunk.payload)
        ends[size] = chunk.position
    configured = next(iter(ends))
    sizes = {*range(100), *range(0, len(whole), 7), *(end + more for end in ends for more in (-1, 0, 1, 28))}
    for size in sorted(sizes & set(range(len(whole)))):
        path.write_bytes(whole[:size])
        with pytest.raises(doorstep.StateError) as caught:
            Recording(path)
        assert str(path) in str(caught.value)
        if size < configured:
            with pytest.raises(doorstep.StateError):
                Recording(path, incomplete=True)
            continue
        complete = max(steps for end, steps in ends.items() if end <= size)
        assert f"truncated: it ends at byte {size} without an end mark" in str(caught.value)
        if complete:
            assert f"{complete} steps are complete" in str(caught.value)
            assert "incomplete=True" in str(caught.value)
        with Recording(path, incomplete=True) as recording:
            assert recording.num_steps == complete
            assert not recording.complete
            for step in range(0, complete, 37):
                assert (recording.actions(step) == actions[step]).all()


def test_a_killed_writer_leaves_its_complete_blocks(path: Path) -> None:
    code = f"""
import doorstep, sys
from doorstep.recording import RecordingWriter
sim = doorstep.Simulator({WORLDS}, seed=4)
writer = RecordingWriter({str(path)!r}, sim, hash_interval=16)
for step in range(1, 10**9):
    sim.actions[:] = (step % 4, step % 8, step % 5, step % 2)
    writer.step()
    if step == 100:
        print("go", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        process.send_signal(signal.SIGKILL)
    with pytest.raises(doorstep.StateError, match=r"truncated.*\d+ steps are complete"):
        Recording(path)
    with Recording(path, incomplete=True) as recording:
        assert recording.num_steps >= 96
        assert recording.num_steps % 16 == 0
        for step in (1, 50, recording.num_steps):
            assert (recording.actions(step - 1) == (step % 4, step % 8, step % 5, step % 2)).all()
        replay(recording)


# ---- Damaged files


def small_file(path: Path) -> bytes:
    """One world, one agent; every kind of chunk, resets within a step, both packings of actions."""
    with doorstep.Simulator(1, num_agents=1) as sim:
        sim.step()
        with RecordingWriter(path, sim, hash_interval=3) as writer:
            for step in range(7):
                sim.actions[:] = (step % 4, 1, 2, 0) if step < 5 else (99, 1, 2, 0)
                sim.resets[:] = int(step == 1)
                writer.step()
                if step == 3:
                    writer.reset()
        return path.read_bytes()


def outcome(path: Path) -> str:
    """What became of a changed file: refused by a typed error, or replayed and every comparison equal."""
    try:
        with Recording(path) as recording:
            replay(recording, num_threads=1)
            return " ".join(str(recording.actions(step).ravel().tolist()) for step in range(recording.num_steps))
    except doorstep.StateError as caught:
        error = caught
    assert str(path) in str(error)
    return "refused"


def places(whole: bytes) -> list[int]:
    """Every byte, but of the saved world, which is most of the file, every tenth."""
    saved = next(chunk.payload for chunk in files.parse(whole) if chunk.kind == "SAVE")
    begin = whole.index(saved)
    return [at for at in range(len(whole)) if at % 10 == 0 or not begin < at < begin + len(saved) - 1]


def test_no_change_of_a_byte_goes_unnoticed(path: Path) -> None:
    whole = small_file(path)
    assert outcome(path) != "refused"
    chance = random.Random(1)
    for at in places(whole):
        for mask in (1 << chance.randrange(8), 0xFF):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
            assert outcome(path) == "refused", at


def test_no_missing_added_or_doubled_byte_goes_unnoticed(path: Path) -> None:
    whole = small_file(path)
    for at in places(whole):
        for changed in (whole[:at] + whole[at + 1 :], whole[:at] + b"\0" + whole[at:], whole[:at] + whole[at:] * 2):
            path.write_bytes(changed)
            assert outcome(path) == "refused", at


def test_no_missing_doubled_or_moved_chunk_goes_unnoticed(path: Path) -> None:
    chunks = files.parse(small_file(path))
    changed = []
    for at, chunk in enumerate(chunks):
        rest = chunks[:at] + chunks[at + 1 :]
        changed += [rest, [*chunks[:at], chunk, *chunks[at:]]]
        changed += [[*rest[:to], chunk, *rest[to:]] for to in range(len(chunks)) if to != at]
    different = 0
    for each in changed:
        path.write_bytes(files.build(each))
        if each != chunks and [chunk.kind for chunk in each] != [chunk.kind for chunk in chunks]:
            assert outcome(path) == "refused", [chunk.kind for chunk in each]
            different += 1
    assert different > len(chunks)


def test_random_payloads_with_right_checksums_raise_typed_errors_only(path: Path) -> None:
    """Right checksums mean that somebody meant it: it may be another recording, but never a crash."""
    whole = small_file(path)
    chunks = files.parse(whole)
    chance = random.Random(3)
    for _ in range(400):
        at = chance.randrange(len(chunks))
        payload = bytearray(chunks[at].payload)
        for _ in range(chance.randrange(1, 4)):
            payload[chance.randrange(len(payload))] = chance.randrange(256)
        changed = chunks[at]._replace(payload=bytes(payload))
        path.write_bytes(files.build([*chunks[:at], changed, *chunks[at + 1 :]]))
        with contextlib.suppress(doorstep.DoorstepError):
            outcome(path)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"7", b"null", b"\xff", b"[" * 5000, b"9" * 10000, b"{}", b'{"doorstep": 1}',
        b'{"doorstep": "1", "config": 1}', b'{"doorstep": "1", "config": []}', b'{"doorstep": "1", "config": {}}',
        b'{"doorstep": "1", "config": [1, [2]]}',
    ],
    ids=repr,
)  # fmt: skip
def test_configurations_that_are_none_are_refused(content: bytes, path: Path) -> None:
    path.write_bytes(files.with_changed(small_file(path), "CONF", 0, lambda chunk: chunk._replace(payload=content)))
    with pytest.raises(doorstep.StateError, match=re.escape(str(path))):
        Recording(path)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"num_worlds": 0}, "num_worlds is 0"),
        ({"num_worlds": 1e300}, "num_worlds is 1e"),
        ({"num_agents": 9}, "num_agents is 9"),
        ({"seed": -1}, "seed is -1"),
        ({"gravity": 9.8}, "'gravity' is unknown"),
        ({"device": "cuda"}, "'device' is unknown"),
    ],
)
def test_rules_that_this_version_does_not_have_are_refused_by_name(
    rules: dict[str, Any], says: str, path: Path
) -> None:
    data = small_file(path)
    content = files.config_of(data)
    content["config"].update(rules)
    path.write_bytes(
        files.with_changed(data, "CONF", 0, lambda chunk: chunk._replace(payload=json.dumps(content).encode()))
    )
    with pytest.raises(doorstep.StateError, match=says):
        Recording(path)


def test_what_is_no_recording_is_said_to_be_none(path: Path) -> None:
    for content in (b"", b"\x89", b"\x89PNG\r\n\x1a\n" + bytes(50), b"#!/bin/sh\n", bytes(1000)):
        path.write_bytes(content)
        with pytest.raises(doorstep.StateError, match=r"is not a recording|is damaged at byte 1"):
            Recording(path)


def test_a_newer_version_of_the_format_is_refused_by_name(path: Path) -> None:
    path.write_bytes(files.build(files.parse(small_file(path)), version=2))
    with pytest.raises(doorstep.StateError, match=r"version 2 of the format; this doorstep reads version 1.*newer"):
        Recording(path)


def test_unknown_chunks_are_skipped_or_refused_by_name(path: Path) -> None:
    chunks = files.parse(small_file(path))
    end = chunks[-1]._replace(payload=struct.pack("<Q", len(chunks)))
    for kind, skipped in (("levl", True), ("LEVL", False)):
        path.write_bytes(files.build([*chunks[:3], Chunk(kind, chunks[2].position, b"?" * 9), *chunks[3:-1], end]))
        if skipped:
            assert outcome(path) != "refused"
        else:
            with pytest.raises(doorstep.StateError, match=r"a chunk 'LEVL' at byte \d+, which this doorstep does not"):
                Recording(path)


def test_bytes_behind_the_end_are_refused(path: Path) -> None:
    whole = small_file(path)
    path.write_bytes(whole + b"abc")
    with pytest.raises(doorstep.StateError, match=f"damaged at byte {len(whole)}: 3 bytes follow its end mark"):
        Recording(path)


# ---- Forged files, and large ones


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 2**40, 10**6])
@pytest.mark.parametrize("kind", ["CONF", "SAVE", "STEP", "HASH", "RSET", "END ", "levl"])
def test_absurd_lengths_are_not_allocated(kind: str, length: int, path: Path) -> None:
    chunks = files.parse(small_file(path))
    before = [] if kind == "CONF" else chunks[:2]
    path.write_bytes(files.build(before) + files.header(kind, int(kind == "STEP"), length) + bytes(100))
    tracemalloc.start()
    try:
        with pytest.raises(doorstep.StateError, match=r"truncated|cannot have"):
            Recording(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_steps_that_claim_more_than_they_hold_are_not_allocated(path: Path) -> None:
    chunks = files.parse(small_file(path))
    content = files.config_of(path.read_bytes())
    content["config"]["num_worlds"] = 2**29
    claimed = struct.pack("<BBHI", 0, 0, 0, 2**30) + zlib.compress(bytes(10**6))
    config = chunks[0]._replace(payload=json.dumps(content).encode())
    end = Chunk("END ", 2**30, struct.pack("<Q", 2))
    path.write_bytes(files.build([config, Chunk("STEP", 2**30, claimed), end]))
    tracemalloc.start()
    try:
        with Recording(path) as recording, pytest.raises(doorstep.StateError, match="does not hold"):
            recording.actions(0)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_step_of_a_large_recording_needs_little_memory(path: Path) -> None:
    blocks, worlds = 100, 512
    record(path, random_actions(0, worlds))
    config = files.parse(path.read_bytes())[0]
    expected = random_actions(64, worlds)
    payload = files.pack_steps(expected)
    chunks = [config, *(Chunk("STEP", 64 * (block + 1), payload) for block in range(blocks))]
    path.write_bytes(files.build([*chunks, Chunk("END ", 64 * blocks, struct.pack("<Q", len(chunks)))]))
    assert path.stat().st_size > 10 << 20  # 105 MB of actions
    tracemalloc.start()
    try:
        with Recording(path) as recording:
            assert recording.num_steps == 64 * blocks
            for step in (0, 6399, 3000, 64, 63, 1234):
                assert (recording.actions(step) == expected[step % 64]).all()
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_writer_keeps_one_block_in_memory(path: Path) -> None:
    with doorstep.Simulator(2000) as sim:
        step_bytes = sim.actions.nbytes
        tracemalloc.start()
        try:
            with RecordingWriter(path, sim) as writer:
                for _ in range(200):
                    writer.step()
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()
    # 4 MiB of actions are a block: 65 steps of 64,000 bytes, more than the 64 that a block has at most
    assert step_bytes == 64000
    positions = [chunk.position for chunk in files.parse(path.read_bytes()) if chunk.kind == "STEP"]
    assert positions == [64, 128, 192, 200]
    with doorstep.Simulator(20_000) as sim, RecordingWriter(path, sim) as writer:
        for _ in range(13):
            writer.step()
    positions = [chunk.position for chunk in files.parse(path.read_bytes()) if chunk.kind == "STEP"]
    assert positions == [6, 12, 13]  # 6 steps of 640,000 bytes


def test_a_file_that_shrinks_while_it_is_open_is_an_error(path: Path) -> None:
    record(path, random_actions(150))
    with Recording(path) as recording:
        os.truncate(path, 300)
        with pytest.raises(doorstep.StateError, match="has become shorter"):
            recording.actions(149)


def test_no_descriptor_stays_open(path: Path) -> None:
    record(path, random_actions(3))
    before = len(os.listdir("/proc/self/fd"))
    Recording(path)
    Recording(path).close()
    path.write_bytes(path.read_bytes()[:-1])
    for _ in range(3):
        with pytest.raises(doorstep.StateError):
            Recording(path)
    assert len(os.listdir("/proc/self/fd")) == before
