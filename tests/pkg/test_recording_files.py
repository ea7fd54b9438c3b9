"""Files of recordings that are cut, damaged, forged or large."""

import contextlib
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.leaks import open_files
from tests.pkg import recording_files as files
from tests.pkg.recording_files import Chunk, little_memory, random_actions, record

import doorstep
from doorstep.recording import Recording, RecordingWriter

WORLDS = 5


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
    part = f"{path}.0.part"
    with pytest.raises(doorstep.StateError, match=r"truncated.*\d+ steps are complete"):
        Recording(part)
    with Recording(part, incomplete=True) as recording:
        assert recording.num_steps >= 96
        assert recording.num_steps % 16 == 0
        for step in (1, 50, recording.num_steps):
            assert (recording.actions(step - 1) == (step % 4, step % 8, step % 5, step % 2)).all()
        recording.replay()
    with doorstep.Simulator(1) as sim, RecordingWriter(path, sim):
        pass
    assert [file.name for file in path.parent.iterdir()] == [path.name]  # the next writer has removed the part


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
            recording.replay(num_threads=1)
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
    small_file(path)
    files.put(path, "CONF", 0, content)
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
    content = files.config_of(small_file(path))
    content["config"].update(rules)
    files.put(path, "CONF", 0, json.dumps(content).encode())
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
    for kind, skipped in (("note", True), ("NOTE", False)):
        path.write_bytes(files.build([*chunks[:3], Chunk(kind, chunks[2].position, b"?" * 9), *chunks[3:-1], end]))
        if skipped:
            assert outcome(path) != "refused"
        else:
            with pytest.raises(doorstep.StateError, match=r"a chunk 'NOTE' at byte \d+, which this doorstep does not"):
                Recording(path)


def test_bytes_behind_the_end_are_refused(path: Path) -> None:
    whole = small_file(path)
    path.write_bytes(whole + b"abc")
    with pytest.raises(doorstep.StateError, match=f"damaged at byte {len(whole)}: 3 bytes follow its end mark"):
        Recording(path)


# ---- Forged files, and large ones


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 2**40, 10**6])
@pytest.mark.parametrize("kind", ["CONF", "LEVL", "SAVE", "STEP", "HASH", "RSET", "END ", "note"])
def test_absurd_lengths_are_not_allocated(kind: str, length: int, path: Path) -> None:
    chunks = files.parse(small_file(path))
    before = [] if kind == "CONF" else chunks[:2]
    path.write_bytes(files.build(before) + files.header(kind, int(kind == "STEP"), length) + bytes(100))
    with little_memory(1), pytest.raises(doorstep.StateError, match=r"truncated|cannot have"):
        Recording(path)


def test_steps_that_claim_more_than_they_hold_are_not_allocated(path: Path) -> None:
    chunks = files.parse(small_file(path))
    content = files.config_of(path.read_bytes())
    content["config"]["num_worlds"] = 2**29
    claimed = struct.pack("<BBHI", 0, 0, 0, 2**30) + zlib.compress(bytes(10**6))
    config = chunks[0]._replace(payload=json.dumps(content).encode())
    end = Chunk("END ", 2**30, struct.pack("<Q", 2))
    path.write_bytes(files.build([config, Chunk("STEP", 2**30, claimed), end]))
    with little_memory(1), Recording(path) as recording, pytest.raises(doorstep.StateError, match="does not hold"):
        recording.actions(0)


def test_a_step_of_a_large_recording_needs_little_memory(path: Path) -> None:
    blocks, worlds = 100, 512
    record(path, random_actions(0, worlds))
    config = files.parse(path.read_bytes())[0]
    expected = random_actions(64, worlds)
    payload = files.pack_steps(expected)
    chunks = [config, *(Chunk("STEP", 64 * (block + 1), payload) for block in range(blocks))]
    path.write_bytes(files.build([*chunks, Chunk("END ", 64 * blocks, struct.pack("<Q", len(chunks)))]))
    assert path.stat().st_size > 10 << 20  # 105 MB of actions
    with little_memory(4), Recording(path) as recording:
        assert recording.num_steps == 64 * blocks
        for step in (0, 6399, 3000, 64, 63, 1234):
            assert (recording.actions(step) == expected[step % 64]).all()


def test_a_writer_keeps_one_block_in_memory(path: Path) -> None:
    with doorstep.Simulator(2000) as sim:
        step_bytes = sim.actions.nbytes
        with little_memory(16), RecordingWriter(path, sim) as writer:
            for _ in range(200):
                writer.step()
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
    before = open_files(path.parent)
    Recording(path)
    Recording(path).close()
    path.write_bytes(path.read_bytes()[:-1])
    for _ in range(3):
        with pytest.raises(doorstep.StateError):
            Recording(path)
    assert open_files(path.parent) == before
