"""Recordings of simulators with levels: every change of the levels and of their weights is replayed where it was."""

import contextlib
import json
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg import recording_files as files
from tests.pkg.recording_files import Chunk, difference, kinds, places, play, random_actions, replayed

import doorstep
from doorstep import levels
from doorstep.levels import Cube, GeneratedLevel, Level, Physics, Room, Spawn
from doorstep.levels.files import AnyLevel
from doorstep.recording import Recording, RecordingWriter, Replay, layout

WORLDS, MAX_LEVELS = 5, 3
RULES: dict[str, Any] = {"seed": 4, "episode_length": 12, "max_levels": MAX_LEVELS}


def hall(number: int, **changes: Any) -> Level:
    """Two agents and a cube on an endless floor; the number tells halls apart."""
    parts: dict[str, Any] = {
        "spawns": (Spawn((-5, -3), 0.1), Spawn(4, (0, 2), 1 / 3)),
        "cubes": (Cube(0, 5 + number, 0.1),),
        "rooms": (Room(0, 40),),
        "physics": Physics(cube_mass=(5, 20)),
    }
    return Level(**parts | changes, name=f"Saal {number}, größer")


def table() -> list[AnyLevel]:
    return [hall(1, episode_length=(5, 9)), GeneratedLevel(room_types=("any", "single_button", "any")), hall(2)]


def read_levels(chunk: Chunk) -> tuple[list[dict[str, Any]], NDArray[np.float32]]:
    """The documents and the weights of a chunk LEVL."""
    (text_bytes,) = struct.unpack_from("<Q", chunk.payload)
    raw = zlib.decompress(chunk.payload[8:])
    weights = np.frombuffer(raw[text_bytes:], "<f4").reshape(WORLDS, MAX_LEVELS)
    return json.loads(raw[:text_bytes].decode()), weights


def levels_in(path: Path) -> list[tuple[list[dict[str, Any]], NDArray[np.float32]]]:
    return [read_levels(chunk) for chunk in files.parse(path.read_bytes()) if chunk.kind == "LEVL"]


def levels_payload(documents: Any, weights: NDArray[Any]) -> bytes:
    text = json.dumps(documents).encode()
    return struct.pack("<Q", len(text)) + zlib.compress(text + np.asarray(weights, "<f4").tobytes())


def record_changes(path: Path, **rules: Any) -> NDArray[np.uint64]:
    """Records levels before the first step and in the middle, weights edited in place, and all kinds of resets."""
    with doorstep.Simulator(WORLDS, **RULES | rules) as sim:
        with RecordingWriter(path, sim, hash_interval=10) as writer:
            sim.set_levels(table(), weights=(1, 1, 2))
            writer.reset()
            play(writer, sim, random_actions(20))
            sim.level_weights[1:] = (0, 1, 0)
            play(writer, sim, random_actions(20))
            sim.level_weights[0] = (np.nan, -1, 1)
            sim.resets[3] = 1
            play(writer, sim, random_actions(7))
            sim.set_levels([hall(3), levels.reference()])
            sim.level_weights[2, 2] = 5  # the last level of the first table
            writer.reset([2, 4])
            play(writer, sim, random_actions(30))
        return sim.world_hashes()


@pytest.fixture
def recorded(path: Path) -> Path:
    record_changes(path)
    return path


# ---- What is written


def test_levels_are_written_at_the_beginning_and_where_they_change(recorded: Path) -> None:
    chunks = [chunk for chunk in files.parse(recorded.read_bytes()) if chunk.kind == "LEVL"]
    assert [chunk.position for chunk in chunks] == [0, 0, 20, 40, 47]
    first, given, edited, odd, second = map(read_levels, chunks)
    reference = levels.reference().to_dict()
    assert first[0] == [reference]
    assert first[1].tolist() == [[1, 0, 0]] * WORLDS
    assert given[0] == edited[0] == odd[0] == [level.to_dict() for level in table()]
    assert given[1].tolist() == [[1, 1, 2]] * WORLDS
    assert edited[1].tolist() == [[1, 1, 2]] + [[0, 1, 0]] * 4
    np.testing.assert_array_equal(odd[1][0], (np.nan, -1, 1))
    assert second[0] == [hall(3).to_dict(), reference, hall(2).to_dict()]
    assert second[1].tolist() == [[1, 1, 0]] * 2 + [[1, 1, 5]] + [[1, 1, 0]] * 2


def test_what_has_not_changed_is_not_written_again(path: Path) -> None:
    with doorstep.Simulator(WORLDS, **RULES) as sim:
        sim.set_levels(table())
        sim.level_weights[2] = np.nan
        with RecordingWriter(path, sim) as writer:
            for _ in range(3):
                play(writer, sim, random_actions(4))
                sim.level_weights[:] = sim.level_weights.copy_to_host()
                writer.reset([1])
    assert kinds(path) == ["CONF", "LEVL", "HASH", *["STEP", "RSET"] * 3, "HASH", "END "]
    replayed(path)


def test_simulators_without_levels_are_recorded_without(path: Path) -> None:
    files.record(path, random_actions(3))
    assert kinds(path) == ["CONF", "HASH", "STEP", "HASH", "END "]
    assert files.config_of(path.read_bytes())["config"]["max_levels"] == 0


def test_levels_whose_recording_was_interrupted_are_recorded_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> bytes:
        raise KeyboardInterrupt

    with doorstep.Simulator(WORLDS, **RULES) as sim, RecordingWriter(path, sim) as writer:
        sim.set_levels(table())
        with monkeypatch.context() as patch:
            patch.setattr(layout, "pack_levels", interrupt)
            with pytest.raises(KeyboardInterrupt):
                writer.append()
        play(writer, sim, random_actions(20))
    replayed(path)


def test_levels_after_the_last_step_are_not_recorded(path: Path) -> None:
    with doorstep.Simulator(WORLDS, **RULES) as sim, RecordingWriter(path, sim) as writer:
        play(writer, sim, random_actions(3))
        sim.set_levels(table())
    assert kinds(path) == ["CONF", "LEVL", "HASH", "STEP", "HASH", "END "]


# ---- Replays


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("rules", [{}, {"auto_reset": False}, {"num_agents": 1}], ids=str)
def test_a_replay_is_exact_with_any_number_of_threads(rules: dict[str, Any], threads: int, path: Path) -> None:
    agents = rules.get("num_agents", 2)
    with doorstep.Simulator(WORLDS, **RULES | rules, num_threads=5 - threads) as sim:
        with RecordingWriter(path, sim, hash_interval=7) as writer:
            for number in range(4):
                sim.set_levels([*table()[number % 2 :], hall(number)][:MAX_LEVELS])
                play(writer, sim, random_actions(25, agents=agents))
                writer.reset([number])
        expected, drawn = sim.world_hashes(), sim.level_indices.copy_to_host()
    with Recording(path) as recording:
        assert recording.config.max_levels == MAX_LEVELS
        assert not recording.same_version_only
        with doorstep.Simulator.from_config(recording.config.replace(num_threads=threads)) as sim:
            recording.replay(sim)
            assert (sim.world_hashes() == expected).all()
            assert (sim.level_indices.to_numpy() == drawn).all()


def test_every_change_of_levels_is_replayed(path: Path) -> None:
    expected = record_changes(path)
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        recording.replay(sim)
        assert (sim.world_hashes() == expected).all()
        assert sim.level_weights[2].tolist() == [1, 1, 5]
    replayed(path)


def test_levels_that_the_replaying_simulator_had_do_not_matter(recorded: Path) -> None:
    with Recording(recorded) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        sim.set_levels([hall(7)] * MAX_LEVELS)
        recording.replay(sim)


def test_levels_that_no_table_had_are_the_references(path: Path) -> None:
    with doorstep.Simulator(WORLDS, **RULES) as sim, RecordingWriter(path, sim) as writer:
        sim.set_levels([hall(1)])
        sim.level_weights[:] = (0, 0, 1)
        writer.reset()
        play(writer, sim, random_actions(20))
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        sim.set_levels([hall(7)] * MAX_LEVELS)
        recording.replay(sim)
        assert (sim.level_indices.to_numpy() == 2).all()


def test_a_replay_continues_from_any_moment(recorded: Path) -> None:
    with Recording(recorded) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        play_back = Replay(recording, sim)
        saved = {0: sim.save()}
        while play_back.position < recording.num_steps:
            play_back.step()
            saved[play_back.position] = sim.save()
        for position in (0, 46, 47, 20, 19, 39, 0):
            sim.restore(saved[position])
            play_back.position = position
            for _ in range(30):  # compares every 10 steps
                play_back.step()
            assert sim.save() == saved[position + 30]
        for wrong in (-1, recording.num_steps + 1, 1.5):
            with pytest.raises(doorstep.ArgumentError, match="position is"):
                play_back.position = wrong  # type: ignore[assignment]


def test_a_simulator_with_room_for_other_levels_is_refused(recorded: Path) -> None:
    rules = RULES | {"max_levels": 4}
    says = r"sim has max_levels 4, but .* was recorded with 3"
    with (
        Recording(recorded) as recording,
        doorstep.Simulator(WORLDS, **rules) as sim,
        pytest.raises(doorstep.ArgumentError, match=says),
    ):
        recording.replay(sim)


# ---- Simulators that are not new


def untouched(_: doorstep.Simulator) -> None:
    pass


def given_levels(sim: doorstep.Simulator) -> None:
    sim.set_levels(table())
    sim.level_weights[1] = (1, 0, 0)


def given_levels_and_reset(sim: doorstep.Simulator) -> None:
    given_levels(sim)
    sim.reset()


def stepped(sim: doorstep.Simulator) -> None:
    given_levels(sim)
    for _ in range(RULES["episode_length"]):
        sim.step()


@pytest.mark.parametrize(
    ("change", "saved"), [(untouched, False), (given_levels, False), (given_levels_and_reset, True), (stepped, True)]
)
def test_worlds_are_saved_only_if_a_new_simulator_does_not_have_them(
    change: Callable[[doorstep.Simulator], None], saved: bool, path: Path
) -> None:
    with doorstep.Simulator(WORLDS, **RULES) as sim:
        change(sim)
        with RecordingWriter(path, sim) as writer:
            play(writer, sim, random_actions(40))
        expected = sim.world_hashes()
    assert kinds(path)[:3] == ["CONF", "LEVL", "SAVE" if saved else "HASH"]
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        assert recording.same_version_only == saved
        recording.replay(sim)
        assert (sim.world_hashes() == expected).all()


def test_levels_before_a_checkpoint_are_recorded(path: Path) -> None:
    with doorstep.Simulator(WORLDS, **RULES) as sim, RecordingWriter(path, sim) as writer:
        play(writer, sim, random_actions(3))
        sim.set_levels(table())
        sim.reset()
        writer.checkpoint()
        play(writer, sim, random_actions(30))
    replayed(path)


# ---- Files that were changed


def test_another_level_is_noticed(recorded: Path) -> None:
    documents, weights = levels_in(recorded)[1]
    documents[2]["spawns"][0]["y"] += 0.25
    files.put(recorded, "LEVL", 1, levels_payload(documents, weights))
    assert places(difference(recorded)) == (0, 10, (0, 1, 3, 4))


def test_other_weights_are_noticed(recorded: Path) -> None:
    documents, weights = levels_in(recorded)[2]
    files.put(recorded, "LEVL", 2, levels_payload(documents, weights[:, ::-1]))
    assert difference(recorded).equal_step in (20, 30)


WEIGHTS = np.ones((WORLDS, MAX_LEVELS))
REFERENCE = levels.reference().to_dict()


@pytest.mark.parametrize(
    ("documents", "weights", "says"),
    [
        ([REFERENCE], WEIGHTS[1:], r"a chunk LEVL does not hold \d+ bytes"),
        ([REFERENCE], np.ones((WORLDS, MAX_LEVELS + 1)), r"a chunk LEVL does not hold \d+ bytes"),
        ([REFERENCE | {"version": 2}], WEIGHTS, r"the chunk LEVL at byte \d+: levels\[0\].version is 2"),
        ([REFERENCE, {"doorstep": "maze", "version": 1}], WEIGHTS, r"chunk LEVL .*levels\[1\]\..* 'maze'"),
        ([REFERENCE | {"goal": 7}], WEIGHTS, r"chunk LEVL .*levels\[0\].goal"),
        ([REFERENCE] * (MAX_LEVELS + 1), WEIGHTS, r"chunk LEVL .*: 4 levels were passed"),
        ([hall(1, spawns=(Spawn(0, 0),)).to_dict()], WEIGHTS, r"chunk LEVL .*: levels\[0\] has 1 spawns"),
        (REFERENCE, WEIGHTS, "the levels of a chunk LEVL cannot be read"),
        ([7], WEIGHTS, "the levels of a chunk LEVL cannot be read"),
        (None, WEIGHTS, "the levels of a chunk LEVL cannot be read"),
    ],
)
def test_levels_that_do_not_fit_are_refused_by_name(
    documents: Any, weights: NDArray[Any], says: str, recorded: Path
) -> None:
    files.put(recorded, "LEVL", 1, levels_payload(documents, weights))
    with Recording(recorded) as recording, pytest.raises(doorstep.StateError, match=says) as caught:
        recording.replay()
    assert not isinstance(caught.value, doorstep.ReplayError)
    assert str(recorded) in str(caught.value)


def test_chunks_of_levels_that_cannot_be_there_are_refused(recorded: Path) -> None:
    chunks = files.parse(recorded.read_bytes())
    without = [chunk for chunk in chunks if chunk.kind != "LEVL" or chunk.position]
    rules = files.config_of(recorded.read_bytes())
    rules["config"]["max_levels"] = 0
    none = chunks[0]._replace(payload=json.dumps(rules).encode())
    short = chunks[1]._replace(payload=b"1234567")
    for changed, says in (
        (without, "a chunk STEP comes before the first chunk LEVL"),
        ([none, *chunks[1:]], "it has a chunk LEVL, but its rules have no levels"),
        ([chunks[0], short, *chunks[2:]], "a chunk LEVL cannot have 7 bytes"),
    ):
        recorded.write_bytes(files.build(changed))
        with pytest.raises(doorstep.StateError, match=says):
            Recording(recorded)


@pytest.mark.parametrize("length", [2**64 - 1, 2**40, 10**6])
def test_absurd_lengths_are_not_allocated(length: int, recorded: Path) -> None:
    payload = struct.pack("<Q", length) + zlib.compress(bytes(100))
    files.put(recorded, "LEVL", 0, payload)
    with Recording(recorded) as recording, pytest.raises(doorstep.StateError, match="a chunk LEVL does not hold"):
        recording.replay()


def test_no_damage_of_levels_goes_unnoticed(recorded: Path) -> None:
    whole = recorded.read_bytes()
    payload = files.parse(whole)[3].payload
    begin = whole.index(payload) - files.HEADER_BYTES
    chance = random.Random(1)
    for at in range(begin, begin + files.HEADER_BYTES + len(payload), 3):
        flipped = bytes([whole[at] ^ 1 << chance.randrange(8)])
        for data in (whole[:at] + flipped + whole[at + 1 :], whole[:at] + whole[at + 1 :], whole[:at]):
            recorded.write_bytes(data)
            with pytest.raises(doorstep.StateError) as caught, Recording(recorded) as recording:
                recording.replay(num_threads=1)
            assert not isinstance(caught.value, doorstep.ReplayError)


def test_a_cut_file_is_replayed_as_far_as_it_is_complete(recorded: Path) -> None:
    whole = recorded.read_bytes()
    for size in range(700, len(whole), 100):
        recorded.write_bytes(whole[:size])
        with Recording(recorded, incomplete=True) as recording:
            recording.replay(num_threads=1)


def test_random_levels_with_right_checksums_raise_typed_errors_only(recorded: Path) -> None:
    whole = recorded.read_bytes()
    chunks = files.parse(whole)
    documents, weights = read_levels(chunks[3])
    text = json.dumps(documents)
    chance = random.Random(2)
    for _ in range(200):
        at = chance.randrange(len(text))
        data = (text[:at] + chance.choice('019.-eE[]{},:"x') + text[at + 1 :]).encode()
        payload = struct.pack("<Q", len(data)) + zlib.compress(data + weights.tobytes())
        changed = [*chunks[:3], chunks[3]._replace(payload=payload), *chunks[4:]]
        recorded.write_bytes(files.build(changed))
        with contextlib.suppress(doorstep.StateError), Recording(recorded) as recording:
            recording.replay(num_threads=1)
