"""Recordings for tests; they are read and written as docs/reference/recording_format.md describes them."""

import json
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import doorstep
from doorstep.recording import Recording, RecordingWriter

HEAD_BYTES, HEADER_BYTES = 16, 28
WORLDS = 5


class Chunk(NamedTuple):
    kind: str
    position: int
    payload: bytes


def parse(data: bytes) -> list[Chunk]:
    """The chunks of a file; every checksum is verified."""
    magic, version, checksum = struct.unpack_from("<8sII", data)
    assert (magic, version) == (bytes.fromhex("894453524543 0d0a"), 1)
    assert checksum == zlib.crc32(data[:12])
    chunks, at = [], HEAD_BYTES
    while at < len(data):
        kind, payload_checksum, length, position, header_checksum = struct.unpack_from("<4sIQQI", data, at)
        assert header_checksum == zlib.crc32(data[at : at + 24])
        at += HEADER_BYTES
        payload = data[at : at + length]
        assert len(payload) == length
        assert payload_checksum == zlib.crc32(payload)
        chunks.append(Chunk(kind.decode(), position, payload))
        at += length
    return chunks


def build(chunks: list[Chunk], version: int = 1) -> bytes:
    """A file with these chunks and right checksums."""
    head = struct.pack("<8sI", b"\x89DSREC\r\n", version)
    data = head + struct.pack("<I", zlib.crc32(head))
    for kind, position, payload in chunks:
        header = struct.pack("<4sIQQ", kind.encode(), zlib.crc32(payload), len(payload), position)
        data += header + struct.pack("<I", zlib.crc32(header)) + payload
    return data


def header(kind: str, position: int, length: int) -> bytes:
    """A chunk's header alone, with a right checksum and any length."""
    data = struct.pack("<4sIQQ", kind.encode(), 0, length, position)
    return data + struct.pack("<I", zlib.crc32(data))


def with_changed(data: bytes, kind: str, number: int, change: Callable[[Chunk], Chunk]) -> bytes:
    """The file with another chunk in place of the `number`th of its kind."""
    chunks = parse(data)
    at = [index for index, chunk in enumerate(chunks) if chunk.kind == kind][number]
    chunks[at] = change(chunks[at])
    return build(chunks)


def put(path: Path, kind: str, number: int, payload: bytes) -> None:
    """Replaces the payload of the `number`th chunk of a kind in a file."""
    path.write_bytes(with_changed(path.read_bytes(), kind, number, lambda chunk: chunk._replace(payload=payload)))


def kinds(path: Path) -> list[str]:
    """Of the chunks of a file."""
    return [chunk.kind for chunk in parse(path.read_bytes())]


def config_of(data: bytes) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(parse(data)[0].payload)
    return content


def unpack_steps(payload: bytes, num_worlds: int, num_agents: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Actions [S, N, A, 4] and resets [S, N] of a chunk STEP."""
    packing, with_resets, zero, num_steps = struct.unpack_from("<BBHI", payload)
    assert zero == 0
    raw = zlib.decompress(payload[8:])
    rows = num_worlds * num_agents
    if packing == 0:
        size = 2 * rows * num_steps
        moves, others = np.frombuffer(raw[:size], np.uint8).reshape(2, rows, num_steps).astype(int)
        planes = np.stack([moves % 4, moves // 4, others % 8, others // 8])
    else:
        assert packing == 1
        size = 16 * rows * num_steps
        planes = np.frombuffer(raw[:size], "<i4").reshape(4, rows, num_steps)
    actions = planes.transpose(2, 1, 0).reshape(num_steps, num_worlds, num_agents, 4)
    if not with_resets:
        assert len(raw) == size
        return actions, None
    return actions, np.frombuffer(raw[size:], np.uint8).reshape(num_worlds, num_steps).T


def pack_steps(actions: NDArray[Any]) -> bytes:
    """A chunk STEP of actions [S, N, A, 4] as plain integers."""
    num_steps = len(actions)
    planes = actions.reshape(num_steps, -1, 4).transpose(2, 1, 0)
    return struct.pack("<BBHI", 1, 0, 0, num_steps) + zlib.compress(np.ascontiguousarray(planes, "<i4").tobytes())


# ---- Recordings of doorstep


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


# ---- Replays


def replayed(path: Path, **options: Any) -> None:
    """Replays a file, whose hashes must be met."""
    with Recording(path) as recording:
        recording.replay(**options)


def difference(path: Path) -> doorstep.ReplayError:
    """The error of a replay that differs."""
    with pytest.raises(doorstep.ReplayError) as caught:
        replayed(path)
    return caught.value


def places(error: doorstep.ReplayError) -> tuple[int | None, int, tuple[int, ...]]:
    """The last step that was equal, the first one that was not, and the worlds."""
    return error.equal_step, error.different_step, error.worlds


@contextmanager
def little_memory(megabytes: int) -> Iterator[None]:
    """What runs within may not take more of Python's memory at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes << 20
    finally:
        tracemalloc.stop()
