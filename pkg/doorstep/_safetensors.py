"""Files of policies and checkpoints: the safetensors format, with a checksum of everything in the metadata.

The format (https://github.com/huggingface/safetensors#format) is the length of a header in 8 bytes, the header in JSON,
and the arrays. Reading it runs no code.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._files import replaced_file

METADATA = "__metadata__"
CHECKSUM = "doorstep_checksum"
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Writes a file with a checksum, whole or not at all.

    Raises:
        OSError: the file cannot be written; an older one at `path` stays as it is.
    """
    header: dict[str, Any] = {METADATA: dict(metadata)}
    parts: list[bytes] = []
    end = 0
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].itemsize):  # aligns the arrays
        parts.append(array.tobytes())
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    data = b"".join(parts)
    with replaced_file(path) as file:
        file.write(seal(header, data))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # on the disk before the older one is gone


def read_arrays(header: Mapping[str, Any], data: memoryview) -> dict[str, NDArray[Any]]:
    """The arrays of a file that was `split()`, as copies.

    Raises:
        ValueError, LookupError, TypeError: the checksum differs, or an entry of the header does not fit.
    """
    _check_seal(header, data)
    return {name: _read_array(name, entry, data) for name, entry in header.items() if name != METADATA}


def _read_array(name: str, entry: Mapping[str, Any], data: memoryview) -> NDArray[Any]:
    dtype, shape, (begin, end) = np.dtype(DTYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
    are_sizes = all(type(size) is int and 0 <= size < 2**63 for size in (*shape, begin, end))
    if not are_sizes or not begin <= end <= len(data) or end - begin != dtype.itemsize * math.prod(shape):
        raise ValueError(f"{name} is not in the file")
    array: NDArray[Any] = np.frombuffer(data[begin:end], dtype).reshape(shape).copy()
    return array


def split(file: bytes) -> tuple[dict[str, Any], memoryview]:
    """The header of a file, and the bytes of its arrays.

    Raises:
        ValueError: the file has no such header.
    """
    end = 8 + int.from_bytes(file[:8], "little")
    try:
        header = json.loads(file[8:end])
        if isinstance(header[METADATA], dict):
            return header, memoryview(file)[end:]
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    raise ValueError("it has no header")


def seal(header: Mapping[str, Any], data: bytes | memoryview) -> bytes:
    """What precedes the arrays in a file, with the checksum in the header's metadata."""
    metadata = {**header[METADATA], CHECKSUM: _checksum(header, data)}
    text = json.dumps({**header, METADATA: metadata}).encode()
    text += b" " * (-len(text) % 8)  # aligns the arrays
    return len(text).to_bytes(8, "little") + text


def _check_seal(header: Mapping[str, Any], data: memoryview) -> None:
    metadata = dict(header[METADATA])
    stored = metadata.pop(CHECKSUM, None)
    if stored is None:
        raise ValueError("it has no checksum, as files of early versions; write it again with this one")
    if stored != _checksum({**header, METADATA: metadata}, data):
        raise ValueError("its checksum differs")


def _checksum(header: Mapping[str, Any], data: bytes | memoryview) -> str:
    """CRC-32, of the header as it is read: names in order, and no spaces that mean nothing."""
    return f"{zlib.crc32(data, zlib.crc32(json.dumps(header, sort_keys=True).encode())):08x}"
