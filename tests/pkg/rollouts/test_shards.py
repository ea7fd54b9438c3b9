"""Shards of trajectories: what was written comes back, files that are damaged or forged do not."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import threading
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pkg.rollouts.playing import play_again

import doorstep
from doorstep import EpisodeRequest, EpisodeResult, RolloutEngine, SimulatorConfig
from doorstep.errors import ArgumentError, ClosedError, StateError
from doorstep.recording import Recording, replay
from doorstep.rollouts import ShardWriter, open_shards, write_recording

CONFIG = SimulatorConfig(16, num_threads=1)
ARRAYS = ("observations", "actions", "rewards", "last_observations", "returns", "max_y")
NUMBERS = ("id", "reason", "length", "state_hash", "queued_seconds", "played_seconds", "replica", "error")
REQUESTED = ("seed", "level", "max_steps", "tag")


def play(count: int, config: SimulatorConfig = CONFIG, **fields: Any) -> list[EpisodeResult]:
    """Results of different lengths."""
    requests = [
        EpisodeRequest(**{"seed": 3 * i, "max_steps": 1 + 7 * i % 30, "tag": i, "record": "observations", **fields})
        for i in range(count)
    ]
    with RolloutEngine(config) as engine:
        ids = engine.submit(requests)
        results = {result.id: result for result in engine}
    return [results[one] for one in ids]


def copied(result: EpisodeResult) -> EpisodeResult:
    """With arrays of numpy's own, so that no memory of the library lives as long as this module."""
    arrays = {name: getattr(result, name).copy() for name in ARRAYS}
    return dataclasses.replace(result, **arrays)


RESULTS = [copied(result) for result in play(40)]


def write(directory: Path, results: list[EpisodeResult] = RESULTS, **options: Any) -> list[Path]:
    """The shards that have been written."""
    with ShardWriter(directory, CONFIG, **options) as writer:
        writer.extend(results)
    return sorted(directory.glob("*.shard"))


def assert_equal(read: EpisodeResult, written: EpisodeResult) -> None:
    for name in ARRAYS:
        array = getattr(read, name)
        assert array.dtype == getattr(written, name).dtype
        assert np.array_equal(array, getattr(written, name)), name
    for name in NUMBERS:
        assert getattr(read, name) == getattr(written, name), name
    for name in REQUESTED:
        assert getattr(read.request, name) == getattr(written.request, name), name


# ---- What comes back


@pytest.mark.parametrize("shard_bytes", [1, 200_000, 64 << 20])
def test_results_come_back_as_they_were(shard_bytes: int, tmp_path: Path) -> None:
    files = write(tmp_path, shard_bytes=shard_bytes)
    shards = open_shards(tmp_path)
    assert (len(shards), shards.num_shards) == (40, len(files))
    assert len(files) == {1: 40, 64 << 20: 1}.get(shard_bytes, len(files))
    for read, written in zip(shards, RESULTS, strict=True):
        assert_equal(read, written)
        assert read.request.policy is None
    assert shards.num_steps == sum(result.length for result in RESULTS)
    assert shards.lengths.tolist() == [result.length for result in RESULTS]
    assert shards.seeds.tolist() == [result.request.seed for result in RESULTS]
    assert shards.tags.tolist() == list(range(40))
    assert_equal(shards[-1], RESULTS[-1])
    assert [result.id for result in shards[3:9:2]] == [result.id for result in RESULTS[3:9:2]]
    for outside in (40, -41):
        with pytest.raises(IndexError):
            shards[outside]
    shards.verify()


def test_levels_come_back(tmp_path: Path) -> None:
    config = SimulatorConfig(8, max_levels=3, num_threads=1)
    levels = list(doorstep.levels.curated().values())[:3]
    results = [one for level in (None, *levels) for one in play(3, config, level=level)]
    with ShardWriter(tmp_path, config, shard_bytes=1 << 20) as writer:
        writer.extend(results)
    for read, written in zip(open_shards(tmp_path), results, strict=True):
        assert_equal(read, written)


def test_an_episode_becomes_a_recording(tmp_path: Path) -> None:
    write(tmp_path / "shards")
    shards = open_shards(tmp_path / "shards")
    write_recording(tmp_path / "run.rec", shards[5], shards.config)  # compares the hash at the end
    with Recording(tmp_path / "run.rec") as recording:
        replay(recording)
        assert recording.num_steps == RESULTS[5].length


def test_last_observations_are_those_after_the_last_step() -> None:
    for result in RESULTS:
        with play_again(result) as sim:
            assert result.last_observations is not None
            assert np.array_equal(sim.observations.to_numpy()[0], result.last_observations)


def test_arrays_are_views_of_the_file_that_cannot_be_written(tmp_path: Path) -> None:
    (file,) = write(tmp_path)
    result = open_shards(tmp_path)[3]
    for name in ("observations", "actions", "rewards", "last_observations"):
        array = getattr(result, name)
        assert not array.flags.owndata
        assert array.ctypes.data % 4 == 0
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    mapped = Path("/proc/self/maps").read_text()
    assert str(file) in mapped
    del result, array
    assert str(file) not in Path("/proc/self/maps").read_text()


def test_opening_reads_no_trajectories(tmp_path: Path) -> None:
    results = play(30, max_steps=200)
    write(tmp_path, results * 10, shard_bytes=8 << 20)
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    tracemalloc.start()
    try:
        shards = open_shards(tmp_path)
        assert sum(len(one.rewards) for one in shards if one.rewards is not None) == shards.num_steps
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size > 40e6
    assert peak < 1e6


def test_many_shards_take_few_descriptors(tmp_path: Path) -> None:
    write(tmp_path, RESULTS * 5, shard_bytes=1)
    shards = open_shards(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    assert sum(1 for _ in shards) == 200
    assert len(os.listdir("/proc/self/fd")) - before <= 64


def test_shards_are_pickled_and_forked_and_read_by_threads(tmp_path: Path) -> None:
    write(tmp_path, shard_bytes=50_000)
    shards = open_shards(tmp_path)
    assert_equal(shards[7], RESULTS[7])
    copy = pickle.loads(pickle.dumps(shards))
    write(tmp_path)  # further ones, which neither sees
    assert len(copy) == len(shards) == 40
    assert_equal(copy[30], RESULTS[30])
    trouble: list[Exception] = []

    def read() -> None:
        try:
            for place in random.sample(range(40), 40) * 5:
                assert_equal(shards[place], RESULTS[place])
        except Exception as error:
            trouble.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not trouble


# ---- Writing


def test_writing_goes_on_in_further_shards(tmp_path: Path) -> None:
    write(tmp_path, RESULTS[:10])
    (tmp_path / ".doorstep-1234.tmp").write_bytes(b"left by a writer that was killed")
    (tmp_path / "notes.txt").write_text("of the owner")
    first = (tmp_path / "00000000.shard").read_bytes()
    done = set(open_shards(tmp_path).tags.tolist())
    write(tmp_path, [result for result in RESULTS if result.request.tag not in done])
    assert (tmp_path / "00000000.shard").read_bytes() == first
    assert open_shards(tmp_path).tags.tolist() == list(range(40))


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    one, other = ShardWriter(tmp_path, CONFIG), ShardWriter(tmp_path, CONFIG)
    one.extend(RESULTS[:5])
    other.extend(RESULTS[5:9])
    one.close()
    other.close()
    assert open_shards(tmp_path).tags.tolist() == list(range(9))


def test_what_does_not_belong_into_shards_is_refused(tmp_path: Path) -> None:
    (with_actions,) = play(1, record="actions")
    (of_three,) = play(1, SimulatorConfig(1, num_agents=3, num_threads=1))
    with RolloutEngine(CONFIG, on_error="return") as engine:
        engine.submit(EpisodeRequest(policy=lambda rows: None, record="observations"))
        (failed,) = engine
    writer = ShardWriter(tmp_path, CONFIG)
    for result, message in (
        (with_actions, "records observations"),
        (of_three, "2 agents"),
        (failed, "played to its end"),
        (3, "EpisodeResult"),
    ):
        with pytest.raises(ArgumentError, match=message):
            writer.append(result)  # type: ignore[arg-type]
    writer.close()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ClosedError):
        writer.append(RESULTS[0])
    with pytest.raises(ArgumentError, match="shard_bytes"):
        ShardWriter(tmp_path, CONFIG, shard_bytes=0)
    with pytest.raises(ArgumentError, match="config"):
        ShardWriter(tmp_path, 3)  # type: ignore[arg-type]


def test_a_directory_has_shards_of_equal_rules(tmp_path: Path) -> None:
    write(tmp_path)
    for other in (CONFIG.replace(num_agents=3), CONFIG.replace(episode_length=50), CONFIG.replace(max_levels=1)):
        with pytest.raises(ArgumentError, match="the rules of the shards"):
            ShardWriter(tmp_path, other)
    ShardWriter(tmp_path, CONFIG.replace(num_worlds=3, seed=9, num_threads=2)).close()  # does not matter
    config = CONFIG.replace(episode_length=50)
    with ShardWriter(tmp_path / "others", config) as writer:
        writer.extend(play(3, config))
    (tmp_path / "others" / "00000000.shard").rename(tmp_path / "00000001.shard")
    with pytest.raises(StateError, match="other rules"):
        open_shards(tmp_path)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = ShardWriter(tmp_path, CONFIG)
    writer.extend(RESULTS)

    def refuse(*paths: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refuse)
        with pytest.raises(OSError, match="No space"):
            writer.flush()
    assert not list(tmp_path.iterdir())
    writer.close()
    assert len(open_shards(tmp_path)) == 40


def test_a_killed_writer_leaves_whole_shards(tmp_path: Path) -> None:
    code = f"""
import os, doorstep
from doorstep.rollouts import ShardWriter
config = doorstep.SimulatorConfig(8, num_threads=1)
requests = [doorstep.EpisodeRequest(seed=i, max_steps=20, record="observations", tag=i) for i in range(200)]
with doorstep.RolloutEngine(config) as engine:
    engine.submit(requests)
    results = list(engine)
writer = ShardWriter({str(tmp_path)!r}, config, shard_bytes=100_000)
print("ready", flush=True)
while True:
    writer.extend(results)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while len(list(tmp_path.glob("*.shard"))) < 20:
            pass
        process.kill()
    shards = open_shards(tmp_path)
    shards.verify()
    assert shards.num_shards >= 20


# ---- Files that are not shards


def test_directories_without_shards(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"files \*.shard"):
        open_shards(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_shards(tmp_path / "none")
    (tmp_path / "00000000.shard").mkdir()
    with pytest.raises(ArgumentError, match="regular file"):
        open_shards(tmp_path)


def test_every_cut_is_refused(tmp_path: Path) -> None:
    (file,) = write(tmp_path, RESULTS[:2])
    whole = file.read_bytes()
    for size in {*range(200), *range(0, len(whole), 97), len(whole) - 1}:
        file.write_bytes(whole[:size])
        with pytest.raises(StateError, match=str(file)):
            open_shards(tmp_path)
    file.write_bytes(whole + b"\0")
    with pytest.raises(StateError, match="must have"):
        open_shards(tmp_path)


def test_every_changed_byte_is_found_or_does_not_matter(tmp_path: Path) -> None:
    (file,) = write(tmp_path, RESULTS[:2])
    whole = file.read_bytes()
    draw = random.Random(4)
    unnoticed = 0
    for place in {*range(64), *(draw.randrange(len(whole)) for _ in range(400))}:
        changed = bytearray(whole)
        changed[place] ^= 1 << draw.randrange(8)
        file.unlink()  # a file that is mapped must not change
        file.write_bytes(changed)
        if place in padding_of(whole):
            open_shards(tmp_path).verify()
            unnoticed += 1
            continue
        with pytest.raises(StateError, match=str(file)):
            open_shards(tmp_path).verify()
    assert unnoticed < 40


def padding_of(data: bytes) -> set[int]:
    """Bytes between the parts, read as docs/reference/shard_format.md says."""
    agents, inputs, text, _, _, episodes, steps = struct.unpack_from("<5IQQ", data, 12)
    sizes = [text, episodes * (80 + 8 * agents), steps * agents * inputs * 4, steps * agents * 16, steps * agents * 4]
    padding: set[int] = set()
    at = 64
    for size in sizes:
        end = at + size
        at = (end + 63) // 64 * 64
        padding.update(range(end, at))
    return padding


def forged(data: bytes, place: int, packed: bytes) -> bytes:
    """With other bytes in the head, and its checksum right."""
    head = bytearray(data[:64])
    head[place : place + len(packed)] = packed
    head[60:64] = struct.pack("<I", zlib.crc32(head[:60]))
    return bytes(head) + data[64:]


@pytest.mark.parametrize(
    ("place", "packed"),
    [
        (12, struct.pack("<I", 0)),
        (12, struct.pack("<I", 2**32 - 1)),
        (16, struct.pack("<I", 2**32 - 1)),
        (20, struct.pack("<I", 2**32 - 1)),
        (32, struct.pack("<Q", 2**63)),
        (32, struct.pack("<Q", 0)),
        (40, struct.pack("<Q", 2**64 - 1)),
        (40, struct.pack("<Q", 0)),
        (28, struct.pack("<I", 1)),
    ],
)
def test_no_count_is_believed(place: int, packed: bytes, tmp_path: Path) -> None:
    (file,) = write(tmp_path)
    file.write_bytes(forged(file.read_bytes(), place, packed))
    tracemalloc.start()
    try:
        with pytest.raises(StateError, match=str(file)):
            open_shards(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_later_versions_and_other_files_are_refused(tmp_path: Path) -> None:
    (file,) = write(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(forged(whole, 8, struct.pack("<I", 2)))
    with pytest.raises(StateError, match="version 2 of the format; this doorstep reads version 1"):
        open_shards(tmp_path)
    for content in (b"", b"\x89PNG\r\n\x1a\n" + whole[8:], whole[:8]):
        file.write_bytes(content)
        with pytest.raises(StateError):
            open_shards(tmp_path)


def with_text(data: bytes, text: bytes) -> bytes:
    """The file with another text of the same length, and right checksums."""
    (length,) = struct.unpack_from("<I", data, 20)
    text = text.ljust(length)
    assert len(text) == length
    head = forged(data, 24, struct.pack("<I", zlib.crc32(text)))[:64]
    return head + text + data[64 + length :]


@pytest.mark.parametrize("change", ["no JSON", "a rule less", "a rule more", "no levels", "deep"])
def test_texts_are_checked(change: str, tmp_path: Path) -> None:
    (file,) = write(tmp_path)
    data = file.read_bytes()
    (length,) = struct.unpack_from("<I", data, 20)
    document = json.loads(data[64 : 64 + length])
    if change == "a rule less":
        del document["config"]["num_agents"]
    elif change == "a rule more":
        del document["config"]["seed"]
        document["config"]["g"] = 1
    elif change == "no levels":
        del document["levels"]
    text = {"no JSON": b"{", "deep": b"[" * length}.get(change, json.dumps(document).encode())
    file.write_bytes(with_text(data, text))
    with pytest.raises(StateError, match=str(file)):
        open_shards(tmp_path)


INDEX_FIELDS = {"first_step": 0, "length": 52, "level": 60, "reason": 64}


@pytest.mark.parametrize("field", INDEX_FIELDS)
def test_the_index_is_checked(field: str, tmp_path: Path) -> None:
    (file,) = write(tmp_path)
    data = bytearray(file.read_bytes())
    text, episodes = struct.unpack_from("<I", data, 20)[0], struct.unpack_from("<Q", data, 32)[0]
    start = (64 + text + 63) // 64 * 64
    place = start + 96 + INDEX_FIELDS[field]  # of the second episode: 80 + 8 * 2 bytes each
    data[place : place + 1] = bytes([data[place] + 7 & 255])
    index = zlib.crc32(data[start : start + 96 * episodes])
    file.write_bytes(forged(bytes(data), 48, struct.pack("<I", index)))
    with pytest.raises(StateError, match=str(file)):
        open_shards(tmp_path)
