"""Recordings: any history comes back bit by bit; the bytes of the file; differences; and what is refused."""

import contextlib
import json
import struct
import zlib

import numpy as np
import pytest
from tests.pkg import recording_files as files
from tests.pkg.recording_files import LEVELS, REFERENCE, REWARD, WORLDS, hall, kinds, play, random_actions, record
from tests.pkg.test_stops import At, interrupt
from tests.refuses import assert_refused, refuses

import doorstep
from doorstep import Rewards, levels
from doorstep.levels import GeneratedLevel
from doorstep.recording import Recording, RecordingWriter, Replay

RULES = {"seed": 4, "episode_length": 12, "max_levels": 3}


@pytest.mark.parametrize("numbers", [range(20), pytest.param(range(20, 600), marks=pytest.mark.nightly)], ids=str)
def test_any_history_is_replayed_bit_for_bit_in_any_order_and_form(numbers, path):
    """Steps with and without append(), steps that are refused, resets, seeds, levels, weights, rewards, edits, restores
    and several agents; read, files.replayed, jumped through, written by another writer, and cut at any byte."""
    for number in numbers:
        run, whole = files.Run(path, number), path.read_bytes()
        run.assert_read(path)
        assert run.assert_replays(path) == len(run.steps)
        due = {0, len(run.steps), *range(0, len(run.steps), run.interval)}
        with Recording(path) as recording:
            assert set(recording.hashed_steps) == due
        path.write_bytes(files.as_another_writer(whole, run.chance))
        run.assert_read(path)
        run.assert_replays(path)
        ends = files.ends(whole)
        begin = list(ends)[1] if run.rules["max_levels"] else next(iter(ends))
        for size in (begin, *run.chance.sample(range(begin, len(whole)), 3), len(whole) - 1):
            path.write_bytes(whole[:size])
            complete = max(steps for end, steps in ends.items() if end <= size)
            assert run.assert_replays(path, incomplete=True) == complete


# ---- What is written


def read_levels(chunk):
    """The documents and the weights of a chunk LEVL."""
    (text_bytes,) = struct.unpack_from("<Q", chunk.payload)
    raw = zlib.decompress(chunk.payload[8:])
    return json.loads(raw[:text_bytes].decode()), np.frombuffer(raw[text_bytes:], "<f4").reshape(WORLDS, 3)


def levels_payload(documents, weights):
    text = json.dumps(documents).encode()
    return struct.pack("<Q", len(text)) + zlib.compress(text + np.asarray(weights, "<f4").tobytes())


@pytest.fixture
def recorded(path):
    """Levels before the first step and in the middle, weights edited in place, and all kinds of resets."""
    with doorstep.Simulator(WORLDS, **RULES) as sim, RecordingWriter(path, sim, hash_interval=10) as writer:
        sim.set_levels(LEVELS, weights=(1, 1, 2))
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
        sim.set_levels([hall(4)])  # after the last step: not recorded
    return path


def test_the_file_is_what_its_description_says(recorded):
    chunks = files.parse(recorded.read_bytes())
    of_kind = {kind: [chunk for chunk in chunks if chunk.kind == kind] for kind in kinds(recorded)}
    rules = {
        "num_worlds": WORLDS, "seed": 4, "num_agents": 2, "episode_length": 12, "auto_reset": True,
        "world_offset": 0, "action_check": "clamp", "max_levels": 3,
    }  # fmt: skip
    assert json.loads(chunks[0].payload) == {"doorstep": doorstep.__version__, "config": rules}
    assert [chunk.kind for chunk in chunks[:6]] == ["CONF", "LEVL", "HASH", "LEVL", "RSET", "STEP"]
    ends = {kind: [chunk.position for chunk in of_kind[kind]] for kind in ("LEVL", "RSET", "HASH", "END ")}
    hashed = [0, 10, 20, 30, 40, 50, 60, 70, 77]
    assert ends == {"LEVL": [0, 0, 20, 40, 47], "RSET": [0, 47], "HASH": hashed, "END ": [77]}
    assert chunks[-1].payload == struct.pack("<Q", len(chunks) - 1)
    steps = [files.unpack_steps(chunk.payload, WORLDS, 2) for chunk in of_kind["STEP"]]
    actions = np.concatenate([random_actions(length) for length in (20, 20, 7, 30)])
    assert (np.concatenate([taken for taken, _ in steps]) == actions).all()
    assert [np.argwhere(resets).tolist() for _, resets in steps if resets is not None] == [[[0, 3]]]  # of step 40
    first, given, edited, odd, second = map(read_levels, of_kind["LEVL"])
    assert first[0] == [REFERENCE]
    assert first[1].tolist() == [[1, 0, 0]] * WORLDS
    assert given[0] == edited[0] == odd[0] == [level.to_dict() for level in LEVELS]
    assert given[1].tolist() == [[1, 1, 2]] * WORLDS
    assert edited[1].tolist() == [[1, 1, 2]] + [[0, 1, 0]] * 4
    np.testing.assert_array_equal(odd[1][0], (np.nan, -1, 1))
    assert second[0] == [hall(3).to_dict(), REFERENCE, hall(2).to_dict()]
    assert second[1].tolist() == [[1, 1, 0]] * 2 + [[1, 1, 5]] + [[1, 1, 0]] * 2
    with Recording(recorded) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        sim.set_levels([hall(7)] * 3)  # what the replaying simulator had does not matter
        recording.replay(sim)
        assert of_kind["HASH"][-1].payload == sim.world_hashes().tobytes() == recording.hashes(77).tobytes()
        assert (recording.version, recording.path) == (doorstep.__version__, str(recorded))
        assert repr(recording) == f"Recording({str(recorded)!r}, 5 worlds, 2 agents, 77 steps)"


def test_worlds_are_saved_only_if_a_new_simulator_does_not_have_them(path):
    def edit(sim):
        sim.state.agent_max_y.to_numpy()[-9, 1] = 3.0

    changes = [
        (None, {}, False),
        (lambda sim: sim.reset([2]), {}, True),
        (lambda sim: sim.set_levels(LEVELS), RULES, False),
        (None, {"num_worlds": 5000, "world_offset": 123}, False),
        (edit, {"num_worlds": 5000}, True),
    ]
    for change, rules, saved in changes:
        with doorstep.Simulator(**{"num_worlds": WORLDS, **rules}) as sim:
            if change:
                change(sim)
            with RecordingWriter(path, sim):
                pass
        assert kinds(path) == ["CONF", *["LEVL"] * (rules is RULES), *["SAVE"] * saved, "HASH", "END "], rules
        with Recording(path) as recording:
            assert recording.same_version_only == saved


# ---- What differs, and what cannot be replayed


def test_a_difference_is_told_by_its_steps_and_worlds(path):
    def check(says, steps, worlds, hint=""):
        error = files.difference(path)
        assert says in str(error)
        assert (error.equal_step, error.different_step, error.worlds) == (*steps, worlds)
        assert hint in str(error)

    actions = random_actions(200)
    record(path, actions)
    forged = actions[64:128].copy()
    for world in (1, 4):
        forged[40, world] = [(3, 0, 0, 0), (3, 4, 4, 0)]
    files.put(path, "STEP", 1, files.pack_steps(forged))
    check("worlds 1, 4 differ from the recording after step 128; after step 64 all were equal", (64, 128), (1, 4))
    record(path, random_actions(3, worlds=20))
    files.put(path, "HASH", 1, bytes(8 * 20))
    check("worlds 0, 1, 2, 3, 4 and 15 more differ", (0, 3), tuple(range(20)))
    files.put_config(path, version="9.8.7")  # without saved worlds it is no obstacle
    check("differ", (0, 3), tuple(range(20)), "doorstep 9.8.7 recorded it")
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        play(writer, sim, random_actions(70))
        sim.state.body_positions[2, 0, :2] = (1.5, 3.5)  # and no checkpoint
        play(writer, sim, random_actions(5))
    check("world 2 differs", (64, 75), (2,), "sim.state was edited")
    files.put(path, "HASH", 0, bytes(8 * WORLDS))
    check("before the first step", (None, 0), tuple(range(WORLDS)))


def test_a_simulator_with_other_rules_is_refused(path):
    def replay_with(**rules):
        with Recording(path) as recording, doorstep.Simulator(WORLDS, **rules) as sim:
            recording.replay(sim)

    record(path, random_actions(3), reward=REWARD)
    rows = [
        ({"seed": 1, "reward": REWARD}, "sim has seed 1, but ... was recorded with 0"),
        ({"max_levels": 4, "reward": REWARD}, "sim has max_levels 4, but ... was recorded with 0"),
        ({}, f"sim has reward None, but {path} was recorded with {REWARD!r}"),
        ({"reward": Rewards(goal=3)}, f"sim has reward {Rewards(goal=3)!r}, but"),
    ]
    assert_refused(replay_with, rows)
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config, reward=REWARD) as sim:
        both = {"device": "cpu", "num_threads": 1}.items()
        assert_refused(recording.replay, [({"sim": sim, name: value}, f"{name} is given toge") for name, value in both])


def test_saved_worlds_of_another_version_are_refused_by_name(path):
    with doorstep.Simulator(WORLDS) as sim:
        sim.step()
        with RecordingWriter(path, sim) as writer:
            play(writer, sim, random_actions(3))
    files.put_config(path, version="9.8.7")
    with Recording(path) as recording, pytest.raises(doorstep.StateError, match=r"of doorstep 9\.8\.7") as caught:
        recording.replay()
    assert not isinstance(caught.value, doorstep.ReplayError)


def test_steps_and_moments_that_do_not_exist_are_refused(path):
    record(path, random_actions(30), hash_interval=10)
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        for read in (recording.actions, recording.resets):
            assert_refused(read, [(step, "step is") for step in (-1, 30, 2**70, True, 1.5, "0")])
        assert_refused(recording.hashes, [(step, "step is") for step in (5, 31, -1)])
        replay = Replay(recording, sim)
        assert_refused(lambda at: setattr(replay, "position", at), [(at, "position is") for at in (-1, 31, 1.5)])
        replay.position = 30
        refuses("no further step", replay.step, argument="position")
    record(path, random_actions(0))
    with Recording(path) as recording:
        refuses("has no steps", recording.actions, 0)


# ---- What a writer refuses


def test_resets_and_restores_behind_the_writers_back_are_refused_unless_no_step_follows(path):
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        play(writer, sim, random_actions(10))
        saved = sim.save()
        for intervene in (sim.reset, lambda: sim.reset([1]), lambda: sim.restore(saved), lambda: sim.reset(seed=3)):
            intervene()
            for call in (writer.append, writer.reset, writer.step):
                refuses("reset or restored between two steps", call, error=doorstep.StateError)
            writer.checkpoint()
            play(writer, sim, random_actions(4))
        expected = sim.world_hashes()
        sim.reset()
        sim.step()
    assert kinds(path)[-2:] == ["STEP", "END "]  # a hash would not be of the last step
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        assert recording.num_steps == 26
        recording.replay(sim)
        assert (sim.world_hashes() == expected).all()


def test_steps_and_appends_must_alternate(path):
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        refuses("worlds", writer.reset, [WORLDS])  # and not recorded
        writer.append()
        refuses(r"step of the last append\(\) was not taken", writer.append, error=doorstep.StateError)
        sim.step()
        sim.step()
        refuses(r"A step was taken without append\(\)", writer.append, error=doorstep.StateError)
        sim.step()
        refuses(r"2 steps were taken without append\(\)", writer.checkpoint, error=doorstep.StateError)
        assert writer.num_steps == 1
    files.replayed(path)
    assert "RSET" not in kinds(path)
    with doorstep.Simulator(WORLDS) as sim, RecordingWriter(path, sim) as writer:
        writer.step()
        writer.append()  # and closed before the step
    with Recording(path) as recording:
        assert recording.num_steps == 1


def test_a_strict_simulators_error_does_not_cost_the_recording(path):
    with doorstep.Simulator(WORLDS, strict=True) as sim:
        writer = RecordingWriter(path, sim)
        writer.step()
        sim.state.body_positions[0, 0, 0] = np.nan
        writer.step()  # counts it, which the next call reports
        refuses(None, writer.close, error=doorstep.SimulationError)
        writer.close()
    with Recording(path) as recording:
        assert (recording.num_steps, recording.complete) == (2, True)


def test_what_is_closed_is_refused_and_leaves_the_older_file(path):
    with doorstep.Simulator(WORLDS) as sim:
        writer = RecordingWriter(path, sim)
        writer.step()
        writer.close()
        recording = Recording(path)
        recording.close()
        of_recording = (lambda: recording.actions(0), lambda: recording.hashes(0), recording.replay)
        of_writer = (writer.append, writer.step, writer.reset, writer.checkpoint, writer.__enter__)
        for call in (*of_writer, *of_recording, recording.__enter__):
            refuses("closed", call, error=doorstep.ClosedError)
        writer.close()
        recording.close()
        older = path.read_bytes()
        refuses("hash_interval is 0", RecordingWriter, path, sim, hash_interval=0)
        writer = RecordingWriter(path, sim)
        writer.step()
    refuses("closed before its recording", writer.close, error=doorstep.ClosedError)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == older


def test_ctrl_c_at_any_place_leaves_a_complete_recording(path):
    """KeyboardInterrupt at lines that the writer executes in turn, as a signal may raise it."""
    table = [GeneratedLevel(episode_length=length) for length in (4, 3, 4, 2, 3, 2)]

    def run(writer):
        for step, each in enumerate(random_actions(9)):
            writer._sim.actions = each
            writer.step()
            if step in (1, 4):
                writer._sim.set_levels(table[step : step + 2])
            if step == 4:
                writer.reset([2])

    for line in range(1, 400, 7):
        with doorstep.Simulator(WORLDS, max_levels=2) as sim, RecordingWriter(path, sim, hash_interval=3) as writer:
            at = At(line, interrupt)
            with contextlib.suppress(KeyboardInterrupt):
                at.during(run, writer)
            taken = sim.step_count
        with Recording(path) as recording:
            assert recording.num_steps == taken
            recording.replay()
        if at.left > 0:
            break
    assert line > 100


# ---- Levels that were changed in the file

WEIGHTS = np.ones((WORLDS, 3))


def test_levels_that_do_not_fit_are_refused_by_name(recorded):
    whole, claimed = recorded.read_bytes(), struct.pack("<Q", 10**6) + zlib.compress(bytes(100))
    rows = [
        ([REFERENCE], WEIGHTS[1:], "a chunk LEVL does not hold"),
        ([REFERENCE | {"version": 2}], WEIGHTS, r"the chunk LEVL at byte \d+: levels\[0\].version is 2"),
        ([REFERENCE] * 4, WEIGHTS, r"chunk LEVL .*: 4 levels were passed"),
        ([hall(1, spawns=hall(1).spawns[:1]).to_dict()], WEIGHTS, r"chunk LEVL .*: levels\[0\] has 1 spawns"),
        (REFERENCE, WEIGHTS, "the levels of a chunk LEVL cannot be read"),
        ([7], WEIGHTS, "the levels of a chunk LEVL cannot be read"),
    ]
    payloads = [(levels_payload(documents, weights), says) for documents, weights, says in rows]
    for payload, says in [*payloads, (claimed, "does not hold")]:
        recorded.write_bytes(whole)
        files.put(recorded, "LEVL", 1, payload)
        with Recording(recorded) as recording, pytest.raises(doorstep.StateError, match=says) as caught:
            recording.replay()
        assert not isinstance(caught.value, doorstep.ReplayError)
        assert str(recorded) in str(caught.value)
    chunks = files.parse(whole)
    recorded.write_bytes(files.build([chunk for chunk in chunks if chunk.kind != "LEVL" or chunk.position]))
    refuses("a chunk STEP comes before the first chunk LEVL", Recording, recorded, error=doorstep.StateError)
    recorded.write_bytes(files.build([chunks[0], chunks[1]._replace(payload=b"1234567"), *chunks[2:]]))
    refuses("a chunk LEVL cannot have 7 bytes", Recording, recorded, error=doorstep.StateError)
    recorded.write_bytes(whole)
    files.put_config(recorded, max_levels=0)
    refuses("it has a chunk LEVL, but its rules have no levels", Recording, recorded, error=doorstep.StateError)
