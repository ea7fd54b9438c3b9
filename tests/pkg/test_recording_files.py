"""Files of recordings that are damaged, forged or large, or are no recordings."""

import json
import os
import random
import re
import struct
import zlib

import pytest
from tests.leaks import open_files
from tests.pkg import recording_files as files
from tests.pkg.recording_files import Chunk, hall, little_memory, random_actions, record
from tests.refuses import refuses
from tests.scenes import steps

import doorstep
from doorstep.recording import Recording, RecordingWriter


@pytest.fixture
def whole(path):
    """One world, one agent, levels; every kind of chunk, resets within a step, both packings of actions."""
    with doorstep.Simulator(1, num_agents=1, max_levels=1) as sim:
        sim.step()
        with RecordingWriter(path, sim, hash_interval=3) as writer:
            for step in range(7):
                sim.actions[:] = (step % 4, 1, 2, 0) if step < 5 else (99, 1, 2, 0)
                sim.resets[:] = int(step == 1)
                writer.step()
                if step == 3:
                    sim.set_levels([hall(1)])
                    writer.reset()
    return path.read_bytes()


def outcome(path):
    """What became of a changed file: refused by a typed error, or replayed and every comparison equal."""
    try:
        with Recording(path) as recording:
            recording.replay(num_threads=1)
            return " ".join(str(recording.actions(step).ravel().tolist()) for step in range(recording.num_steps))
    except doorstep.StateError as caught:
        error = caught
    assert str(path) in str(error)
    return "refused"


def test_a_cut_file_is_named_truncated(whole, path):
    ends = files.ends(whole)
    begin = list(ends)[1]  # where the levels end
    sizes = {*range(100), *range(0, len(whole), 41), *(end + more for end in ends for more in (-1, 0, 1, 28))}
    opened = open_files(path.parent)
    for size in sorted(sizes & set(range(len(whole)))):
        path.write_bytes(whole[:size])
        with pytest.raises(doorstep.StateError) as caught:
            Recording(path)
        assert str(path) in str(caught.value)
        complete = max([steps for end, steps in ends.items() if end <= size], default=0)
        if size >= begin:
            assert f"truncated: it ends at byte {size} without an end mark" in str(caught.value)
            with Recording(path, incomplete=True) as recording:
                assert (recording.num_steps, recording.complete) == (complete, False)
        if size < next(iter(ends)):
            refuses(None, Recording, path, error=doorstep.StateError, incomplete=True)
        if complete:
            assert re.search(rf"{complete} steps? (is|are) complete.*incomplete=True", str(caught.value))
    assert open_files(path.parent) == opened


def order_of(chunks):
    """Of what has an effect wherever it is; levels have one where they are drawn."""
    return [chunk.kind for chunk in chunks if chunk.kind != "LEVL"]


def test_no_change_of_a_byte_or_chunk_goes_unnoticed(whole, path):
    chunks = files.parse(whole)
    saved = next(chunk.payload for chunk in chunks if chunk.kind == "SAVE")
    begin = whole.index(saved)  # of the saved world, which is most of the file, less often
    chance = random.Random(1)
    places = [at for at in range(len(whole)) if at % 100 == 0 or not begin < at < begin + len(saved) - 1]
    places = sorted(chance.sample(places, 120))
    changed = [
        data
        for at in places
        for data in (
            whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :],
            chance.choice((whole[:at] + whole[at + 1 :], whole[:at] + b"\0" + whole[at:], whole[:at] + whole[at:] * 2)),
        )
    ]
    for at, chunk in enumerate(chunks):  # missing, doubled or moved
        rest = chunks[:at] + chunks[at + 1 :]
        orders = [rest, [*chunks[:at], chunk, *chunks[at:]]]
        orders += [[*rest[:to], chunk, *rest[to:]] for to in range(len(chunks)) if to != at]
        changed += [files.build(each) for each in orders if order_of(each) != order_of(chunks)]
    assert outcome(path) != "refused"
    for number, data in enumerate(changed):
        path.write_bytes(data)
        assert outcome(path) == "refused", number


def test_configurations_that_are_none_are_refused(whole, path):
    contents = [
        b"", b"[]", b"7", b"\xff", b"[" * 5000, b"{}", b'{"doorstep": 1}', b'{"doorstep": "1", "config": 1}',
        b'{"doorstep": "1", "config": {}}', b'{"doorstep": "1", "config": [1, [2]]}',
    ]  # fmt: skip
    for content in contents:
        files.put(path, "CONF", 0, content)
        refuses(re.escape(str(path)), Recording, path, error=doorstep.StateError)
    rows = [
        *(({"num_worlds": 1e300}, "num_worlds is 1e"), ({"seed": -1}, "seed is -1")),
        ({"device": "cuda"}, "'device' is unknown"),
    ]
    for rules, says in rows:
        path.write_bytes(whole)
        files.put_config(path, **rules)
        refuses(says, Recording, path, error=doorstep.StateError)
    record(path, random_actions(1), reward=doorstep.Rewards(cube_approach=0.5))
    files.put(path, "CONF", 0, files.parse(path.read_bytes())[0].payload.replace(b'"cube_approach"', b'"cube_kisses"'))
    refuses(r"reward: 'cube_kisses' is not a field of Rewards", Recording, path, error=doorstep.StateError)


def test_what_is_no_recording_of_this_version_is_refused_by_name(whole, path):
    chunks = files.parse(whole)
    end = chunks[-1]._replace(payload=struct.pack("<Q", len(chunks)))
    added = {
        kind: files.build([*chunks[:3], Chunk(kind, chunks[2].position, b"?" * 9), *chunks[3:-1], end])
        for kind in ("note", "NOTE")
    }
    rows = [
        (b"", "is not a recording|is damaged"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "is not a recording"),
        (files.build(chunks, version=2), r"version 2 of the format; this doorstep reads version 1.*newer"),
        (added["NOTE"], r"a chunk 'NOTE' at byte \d+, which this doorstep does not"),
        (whole + b"abc", f"damaged at byte {len(whole)}: 3 bytes follow its end mark"),
    ]
    for data, says in rows:
        path.write_bytes(data)
        refuses(says, Recording, path, error=doorstep.StateError)
    path.write_bytes(added["note"])
    assert outcome(path) != "refused"
    record(path, random_actions(1, 1, 1))
    for fields in (b"\x20\0", b"\0\x10"):
        files.put(path, "STEP", 0, struct.pack("<BBHI", 0, 0, 0, 1) + zlib.compress(fields))
        with Recording(path) as recording, pytest.raises(doorstep.StateError, match="an action has bits beyond its"):
            recording.actions(0)


# ---- Forged files, and large ones


def test_absurd_lengths_are_not_allocated(whole, path):
    chunks = files.parse(whole)
    for kind in ("CONF", "LEVL", "SAVE", "STEP", "HASH", "RSET", "END ", "note"):
        for length in (2**64 - 1, 2**40, 10**6):
            header = struct.pack("<4sIQQ", kind.encode(), 0, length, int(kind == "STEP"))
            header += struct.pack("<I", zlib.crc32(header))
            path.write_bytes(files.build([] if kind == "CONF" else chunks[:2]) + header + bytes(100))
            with little_memory(1), pytest.raises(doorstep.StateError, match=r"truncated|cannot have"):
                Recording(path)
    content = files.config_of(whole)
    content["config"] |= {"num_worlds": 2**29, "max_levels": 0}
    claimed = struct.pack("<BBHI", 0, 0, 0, 2**30) + zlib.compress(bytes(10**6))
    config = chunks[0]._replace(payload=json.dumps(content).encode())
    end = Chunk("END ", 2**30, struct.pack("<Q", 2))
    path.write_bytes(files.build([config, Chunk("STEP", 2**30, claimed), end]))
    with little_memory(1), Recording(path) as recording, pytest.raises(doorstep.StateError, match="does not hold"):
        recording.actions(0)


def test_a_step_of_a_large_recording_needs_little_memory(path):
    blocks, worlds = 100, 512
    record(path, random_actions(0, worlds))
    config, expected = files.parse(path.read_bytes())[0], random_actions(64, worlds)
    payload = files.pack_steps(expected)
    chunks = [config, *(Chunk("STEP", 64 * (block + 1), payload) for block in range(blocks))]
    path.write_bytes(files.build([*chunks, Chunk("END ", 64 * blocks, struct.pack("<Q", len(chunks)))]))
    assert path.stat().st_size > 10 << 20  # 105 MB of actions
    with little_memory(4), Recording(path) as recording:
        assert recording.num_steps == 64 * blocks
        for step in (0, 6399, 3000, 64, 63, 1234):
            assert (recording.actions(step) == expected[step % 64]).all()


def test_a_writer_keeps_one_block_in_memory(path):
    # At most 64 steps or 4 MiB of actions are a block: 6 steps of 640,000 bytes.
    for worlds, times, expected in ((200, 200, [64, 128, 192, 200]), (20_000, 13, [6, 12, 13])):
        with doorstep.Simulator(worlds) as sim:
            assert sim.actions.nbytes == 32 * worlds
            with little_memory(16), RecordingWriter(path, sim) as writer:
                steps(times, writer)
        assert [chunk.position for chunk in files.parse(path.read_bytes()) if chunk.kind == "STEP"] == expected


# ---- Files and folders


def test_files_that_cannot_be_opened_or_shrink_are_errors(irregular_file, path):
    record(path, random_actions(150))
    with Recording(path) as recording:
        os.truncate(path, 300)
        refuses("has become shorter", recording.actions, 149, error=doorstep.StateError)
    refuses("must be a regular file", Recording, irregular_file, argument="path")
    refuses(None, Recording, path.parent / "missing", error=FileNotFoundError)
    with doorstep.Simulator(1) as sim:
        refuses(None, RecordingWriter, path.parent, sim, error=IsADirectoryError)
        refuses(None, RecordingWriter, path.parent / "missing" / "run.rec", sim, error=FileNotFoundError)
        refuses("No space left", RecordingWriter, "/dev/full", sim, error=OSError)
