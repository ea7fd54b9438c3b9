"""Recordings: the bytes of the file, exact replays, resets and edits, and what is refused."""

import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg import recording_files as files
from tests.pkg.recording_files import Chunk, difference, kinds, places, play, random_actions, record, replayed

import doorstep
from doorstep.levels import GeneratedLevel
from doorstep.recording import Recording, RecordingWriter, Replay

WORLDS = 5


def final_hashes(path: Path, **changes: Any) -> NDArray[np.uint64]:
    """Of the worlds after a replay."""
    with (
        Recording(path) as recording,
        doorstep.Simulator.from_config(recording.config.replace(**changes)) as sim,
    ):
        recording.replay(sim)
        return sim.world_hashes()


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
            "max_levels": 0,
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
        recording.replay()
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
        recording.replay(device="cpu", num_threads=threads)


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
            recording.replay(sim)
        with pytest.raises(doorstep.ArgumentError, match="device is given together with sim"):
            recording.replay(sim, device="cpu")


def test_a_simulator_that_was_stepped_is_no_start_of_a_replay(path: Path) -> None:
    record(path, random_actions(3))
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        sim.step()
        with pytest.raises(doorstep.ReplayError, match="before the first step") as caught:
            recording.replay(sim)
        assert places(caught.value) == (None, 0, tuple(range(WORLDS)))


def test_other_actions_are_noticed_and_the_worlds_named(path: Path) -> None:
    actions = random_actions(200)
    record(path, actions)
    forged = actions[64:128].copy()
    for world in (1, 4):
        forged[40, world] = [(3, 0, 0, 0), (3, 4, 4, 0)]
    assert (forged[40, [1, 4]] != actions[104, [1, 4]]).any(axis=(1, 2)).all()
    files.put(path, "STEP", 1, files.pack_steps(forged))
    error = difference(path)
    assert places(error) == (64, 128, (1, 4))
    assert "worlds 1, 4 differ from the recording after step 128; after step 64 all were equal" in str(error)


def test_another_hash_is_noticed_and_its_world_named(path: Path) -> None:
    record(path, random_actions(100), hash_interval=10)

    with Recording(path) as recording:
        hashes = recording.hashes(70).copy()
    hashes[3] ^= np.uint64(1 << 40)
    files.put(path, "HASH", 7, hashes.tobytes())
    error = difference(path)
    assert places(error) == (60, 70, (3,))
    assert "world 3 differs" in str(error)
    assert isinstance(error, doorstep.StateError)


def test_of_many_worlds_a_few_are_named(path: Path) -> None:
    record(path, random_actions(3, worlds=20))
    files.put(path, "HASH", 1, bytes(8 * 20))
    error = difference(path)
    assert "worlds 0, 1, 2, 3, 4 and 15 more differ" in str(error)
    assert error.worlds == tuple(range(20))


def test_a_difference_of_versions_is_the_reason_that_is_given(path: Path) -> None:
    record(path, random_actions(3))
    files.put(path, "HASH", 1, bytes(8 * WORLDS))
    make_of_another_version(path)
    assert "doorstep 9.8.7 recorded it" in str(difference(path))


def make_of_another_version(path: Path) -> None:
    content = {**files.config_of(path.read_bytes()), "doorstep": "9.8.7"}
    files.put(path, "CONF", 0, json.dumps(content).encode())


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
    error = difference(path)
    assert "sim.state was edited" in str(error)
    assert places(error) == (64, 75, (2,))


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
        recording.replay()
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
    make_of_another_version(path)
    with Recording(path) as recording:
        assert recording.version == "9.8.7"
        with pytest.raises(doorstep.StateError, match=r"saved worlds of doorstep 9\.8\.7") as caught:
            recording.replay()
    assert not isinstance(caught.value, doorstep.ReplayError)


def test_without_saved_worlds_another_version_is_no_obstacle(path: Path) -> None:
    record(path, random_actions(70))
    make_of_another_version(path)
    replayed(path)


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
        recording.replay()


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
        recording.replay()


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
        older = path.read_bytes()
        writer = RecordingWriter(path, sim)
        writer.step()
    with pytest.raises(doorstep.ClosedError, match="closed before its recording"):
        writer.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == older


@pytest.mark.parametrize("max_levels", [0, 2])
def test_ctrl_c_at_any_place_leaves_a_complete_recording(max_levels: int, path: Path) -> None:
    """KeyboardInterrupt at every line that the writer executes in turn, as a signal may raise it."""
    actions = random_actions(9)
    table = [GeneratedLevel(episode_length=length) for length in (4, 3, 4, 2, 3, 2)]
    for interrupted_line in range(0, 400, 3):
        lines = 0

        def interrupt(frame: FrameType, event: str, _: Any, stop: int = interrupted_line) -> Any:
            nonlocal lines
            code = frame.f_code
            if not code.co_filename.endswith("/recording/writer.py") or code.co_name in ("close", "_finish"):
                return None
            lines += event == "line"
            if lines == stop:
                lines += 1
                raise KeyboardInterrupt
            return interrupt

        with (
            doorstep.Simulator(WORLDS, max_levels=max_levels) as sim,
            RecordingWriter(path, sim, hash_interval=3) as writer,
        ):
            sys.settrace(interrupt)
            try:
                for step, each in enumerate(actions):
                    sim.actions = each
                    writer.step()
                    if max_levels and step in (1, 4):
                        sim.set_levels(table[step : step + 2])
                    if step == 4:
                        writer.reset([2])
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
            taken = sim.step_count
        with Recording(path) as recording:
            assert recording.num_steps == taken
            recording.replay()
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
    uses = (lambda: recording.actions(0), lambda: recording.hashes(0), lambda: recording.replay())
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


def test_what_is_no_regular_file_is_refused_at_once(irregular_file: Path) -> None:
    with pytest.raises(doorstep.ArgumentError, match="must be a regular file") as caught:
        Recording(irregular_file)
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


def test_a_full_disk_closes_the_writer(path: Path, run_python: Callable[..., str]) -> None:
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
    assert not list(path.parent.iterdir())
