"""The file of a recording as bytes: its head, its chunks, and how actions are packed. Knows no simulator.

docs/reference/recording_format.md describes the format for other readers. A file is a head and chunks. Headers are
checked when a file is opened, payloads when they are read: opening takes a short read per chunk, and the memory that is
used does not depend on the size of the file. No number in a file is believed before it is compared with the bytes that
are there.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from doorstep._copies import Owner
from doorstep._files import checked_path, open_regular
from doorstep._native.finalizer import Finalizer
from doorstep.errors import ClosedError, OutOfMemoryError, StateError

FORMAT_VERSION = 1

CONFIG, LEVELS, SAVE, RESET = b"CONF", b"LEVL", b"SAVE", b"RSET"
STEPS, HASHES, END = b"STEP", b"HASH", b"END "
KINDS = (CONFIG, LEVELS, SAVE, RESET, STEPS, HASHES, END)

_MAGIC = b"\x89DSREC\r\n"  # damaged by transfers that cut the eighth bit or convert line ends
_HEAD = struct.Struct("<8sII")  # magic, format version, CRC-32 of both
_HEADER = struct.Struct("<4sIQQ")  # kind, CRC-32 of the payload, its bytes, position
_CHECKSUM = struct.Struct("<I")  # CRC-32 of the header
_HEADER_BYTES = _HEADER.size + _CHECKSUM.size
_STEPS_HEAD = struct.Struct("<BBHI")  # packing, whether resets follow, zero, number of steps
_LEVELS_HEAD = struct.Struct("<Q")  # bytes of the levels' JSON
_MOST_READ = 1 << 30  # bytes at once; the system reads at most 2**31

_FIELDS, _INTEGERS = 0, 1  # packings of actions
_COMPONENTS = 4  # move amount, move angle, turn, grab
_MOST_EXPANSION = 1032  # zlib makes at most so many bytes of one


class Chunk(NamedTuple):
    """The header of a chunk, and where its payload is."""

    kind: bytes
    checksum: int
    length: int
    position: int  # steps recorded when the chunk has been read
    offset: int  # of the payload in the file

    @property
    def name(self) -> str:
        """The kind as text."""
        return self.kind.decode("ascii", "backslashreplace").strip()


# ---- Writing


def head() -> bytes:
    """The first bytes of a file."""
    return _HEAD.pack(_MAGIC, FORMAT_VERSION, zlib.crc32(_MAGIC + struct.pack("<I", FORMAT_VERSION)))


def chunk(kind: bytes, position: int, payload: bytes) -> bytes:
    """A chunk with its header."""
    header = _HEADER.pack(kind, zlib.crc32(payload), len(payload), position)
    return header + _CHECKSUM.pack(zlib.crc32(header)) + payload


def pack_steps(actions: NDArray[np.int32], resets: NDArray[np.bool_]) -> bytes:
    """The payload of STEP; actions: [S, N, A, 4], resets: [S, N].

    Steps are the last dimension: an agent's action often stays the same, and zlib's run lengths find that in a third of
    the time of a search for matches, and better than its fastest level.
    """
    num_steps = len(actions)
    components = actions.reshape(-1, _COMPONENTS).T
    fields = zip(components, (3, 7, 7, 1), strict=True)  # negative values have bits beyond them
    fit = not any(int(np.bitwise_or.reduce(values)) & ~field for values, field in fields)
    packing = _FIELDS if fit else _INTEGERS
    planes = _packed_fields(components) if packing == _FIELDS else components.astype("<i4", copy=False)
    rows = np.ascontiguousarray(planes.reshape(len(planes), num_steps, -1).transpose(0, 2, 1))
    with_resets = bool(resets.any())
    compressor = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_RLE)
    compressed = compressor.compress(rows.tobytes())
    if with_resets:
        compressed += compressor.compress(np.ascontiguousarray(resets.T).astype(np.uint8).tobytes())
    return _STEPS_HEAD.pack(packing, with_resets, 0, num_steps) + compressed + compressor.flush()


def pack_levels(text: bytes, weights: NDArray[np.float32]) -> bytes:
    """The payload of LEVL; text: JSON of the levels, weights: [N, L]."""
    return _LEVELS_HEAD.pack(len(text)) + zlib.compress(text + weights.astype("<f4", copy=False).tobytes(), 1)


def _packed_fields(components: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Two bytes per action: [2, S * N * A]."""
    amount, angle, turn, grab = components
    packed = np.empty((2, amount.size), np.uint8)
    np.bitwise_or(amount, angle << 2, out=packed[0], casting="unsafe")
    np.bitwise_or(turn, grab << 3, out=packed[1], casting="unsafe")
    return packed


# ---- Reading


class PackedSteps:
    """The steps of one chunk, unpacked when they are asked for."""

    def __init__(self, packing: int, rows: NDArray[Any], resets: NDArray[np.uint8] | None) -> None:
        self._packing = packing
        self._rows = rows  # [2 or 4, N * A, S]
        self._resets = resets  # [N, S]

    def actions(self, index: int, num_agents: int) -> NDArray[np.int32]:
        """int32 [N, A, 4] of a step, counted from the first of the chunk."""
        rows = self._rows[:, :, index]
        actions = np.empty((rows.shape[1], _COMPONENTS), np.int32)
        if self._packing == _INTEGERS:
            actions[:] = rows.T
        else:
            moves, others = rows
            actions[:, 0], actions[:, 1], actions[:, 2], actions[:, 3] = moves & 3, moves >> 2, others & 7, others >> 3
        return actions.reshape(-1, num_agents, _COMPONENTS)

    def resets(self, index: int) -> NDArray[np.bool_] | None:
        """bool [N] of a step; None: no world."""
        return None if self._resets is None else self._resets[:, index] != 0


class ChunkFile(Owner):
    """A file of chunks, open for reading. Every method raises StateError where the file is not as it must be."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = checked_path(path)
        self._file = open(open_regular(self.path), "rb", buffering=0)  # noqa: SIM115 (closed by close())
        Finalizer(self, self._file.close, at_exit=True)  # Python warns of files that are open then
        self.size = os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        self._file.close()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def error(self, what: str, hint: str = "") -> StateError:
        return StateError(f"{self.path} {what}.", argument="path", hint=hint)

    def damaged(self, offset: int, what: str) -> NoReturn:
        """Raises the error of a file that was changed after it was written."""
        raise self.error(f"is damaged at byte {offset}: {what}", "Copy or record it again.")

    def read_head(self) -> int:
        """Checks the head; returns where the first chunk begins."""
        found = self._read(0, min(_HEAD.size, self.size))
        if found[: len(_MAGIC)] != _MAGIC[: len(found)] or not found:
            what = "is empty" if not found else "begins with other bytes"
            raise self.error(f"is not a recording of doorstep: it {what}")
        if len(found) < _HEAD.size:
            self.damaged(len(found), "it ends within its first 16 bytes, so nothing was recorded")
        _, version, checksum = _HEAD.unpack(found)
        if zlib.crc32(found[:-4]) != checksum:
            self.damaged(8, "the checksum of its first 16 bytes is wrong")
        if version != FORMAT_VERSION:
            what = f"has version {version} of the format; this doorstep reads version {FORMAT_VERSION}"
            raise self.error(what, "Read it with a newer doorstep.")
        return _HEAD.size

    def read_header(self, offset: int) -> Chunk | None:
        """The chunk that begins at a byte; None: the file ends before the chunk does."""
        if self.size - offset < _HEADER_BYTES:
            return None
        found = self._read(offset, _HEADER_BYTES)
        header = found[: _HEADER.size]
        if zlib.crc32(header) != _CHECKSUM.unpack(found[_HEADER.size :])[0]:
            self.damaged(offset, "the checksum of a chunk's header is wrong")
        kind, checksum, length, position = _HEADER.unpack(header)
        chunk = Chunk(kind, checksum, length, position, offset + _HEADER_BYTES)
        return chunk if chunk.length <= self.size - chunk.offset else None

    def payload(self, chunk: Chunk) -> bytes:
        """The payload, as it was written."""
        try:
            payload = self._read(chunk.offset, chunk.length)
        except MemoryError as error:
            raise self._too_large(chunk.length) from error
        if zlib.crc32(payload) != chunk.checksum:
            self.damaged(chunk.offset, f"the checksum of a chunk {chunk.name} is wrong")
        return payload

    def steps(self, chunk: Chunk, num_steps: int, num_worlds: int, num_agents: int) -> PackedSteps:
        """The content of a chunk STEP."""
        payload = self.payload(chunk)
        packing, with_resets, zero, counted = _STEPS_HEAD.unpack_from(payload)
        if packing not in (_FIELDS, _INTEGERS) or with_resets > 1 or zero or counted != num_steps:
            self.damaged(chunk.offset, f"the head of a chunk STEP does not fit {num_steps} steps")
        element = np.dtype(np.uint8) if packing == _FIELDS else np.dtype("<i4")
        shape = (2 if packing == _FIELDS else _COMPONENTS, num_worlds * num_agents, num_steps)
        num_bytes = element.itemsize * shape[0] * shape[1] * num_steps
        reset_bytes = num_worlds * num_steps if with_resets else 0
        raw = self._decompressed(chunk, payload[_STEPS_HEAD.size :], num_bytes + reset_bytes)
        rows = np.frombuffer(raw, element, num_bytes // element.itemsize).reshape(shape)
        if packing == _FIELDS and int(rows[0].max()) >> 5 | int(rows[1].max()) >> 4:
            self.damaged(chunk.offset, "an action has bits beyond its fields")
        resets = np.frombuffer(raw, np.uint8, offset=num_bytes).reshape(num_worlds, num_steps) if with_resets else None
        return PackedSteps(packing, rows, resets)

    def levels(self, chunk: Chunk, num_worlds: int, max_levels: int) -> tuple[bytes, NDArray[np.float32]]:
        """The content of a chunk LEVL: JSON, and weights [N, L]."""
        payload = self.payload(chunk)
        (text_bytes,) = _LEVELS_HEAD.unpack_from(payload)
        weight_bytes = 4 * num_worlds * max_levels
        raw = self._decompressed(chunk, payload[_LEVELS_HEAD.size :], text_bytes + weight_bytes)
        weights = np.frombuffer(raw, "<f4", offset=text_bytes).reshape(num_worlds, max_levels)
        return raw[:text_bytes], weights.astype(np.float32)

    def _decompressed(self, chunk: Chunk, data: bytes, num_bytes: int) -> bytes:
        what = f"a chunk {chunk.name} does not hold {num_bytes} bytes"
        if num_bytes > len(data) * _MOST_EXPANSION:
            self.damaged(chunk.offset, what)
        decompressor = zlib.decompressobj()
        try:
            raw = decompressor.decompress(data, num_bytes + 1)
        except zlib.error as error:
            self.damaged(chunk.offset, f"a chunk {chunk.name} cannot be decompressed: {error}")
        except MemoryError as error:
            raise self._too_large(num_bytes) from error
        if len(raw) != num_bytes or not decompressor.eof or decompressor.unused_data:
            self.damaged(chunk.offset, what)
        return raw

    def _too_large(self, num_bytes: int) -> OutOfMemoryError:
        message = f"{self.path} has a chunk of {num_bytes} bytes, more than this process can allocate."
        return OutOfMemoryError(message, argument="path", hint="Read it on a machine with more memory.")

    def _read(self, offset: int, length: int) -> bytes:
        if self.closed:
            raise ClosedError(f"The recording {self.path} is closed.", hint="Open it again.")
        pieces = []
        while length > 0:
            piece = os.pread(self._file.fileno(), min(length, _MOST_READ), offset)
            if not piece:
                self.damaged(offset, "it has become shorter since it was opened")
            pieces.append(piece)
            offset, length = offset + len(piece), length - len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
