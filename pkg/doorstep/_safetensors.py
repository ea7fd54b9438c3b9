"""Files of policies and checkpoints: the safetensors format, with a checksum of everything in the metadata.

The format (https://github.com/huggingface/safetensors#format) is the length of a header in 8 bytes, the header in JSON,
and the arrays. Reading it runs no code.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

METADATA = "__metadata__"
CHECKSUM = "doorstep_checksum"


def split(file: bytes) -> tuple[dict[str, Any], memoryview]:
    """The header of a file, and its arrays.

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


def seal(header: dict[str, Any], arrays: bytes | memoryview) -> bytes:
    """What precedes the arrays in a file, with the checksum in the header's metadata."""
    metadata = {**header[METADATA], CHECKSUM: _checksum(header, arrays)}
    text = json.dumps({**header, METADATA: metadata}).encode()
    text += b" " * (-len(text) % 8)  # aligns the arrays
    return len(text).to_bytes(8, "little") + text


def check_seal(header: dict[str, Any], arrays: memoryview) -> None:
    """Compares header and arrays with their checksum.

    Raises:
        ValueError: the checksum differs, or the file has no checksum.
    """
    metadata = dict(header[METADATA])
    stored = metadata.pop(CHECKSUM, None)
    if stored is None:
        raise ValueError("it has no checksum, as files of early versions; write it again with this one")
    if stored != _checksum({**header, METADATA: metadata}, arrays):
        raise ValueError("its checksum differs")


def _checksum(header: dict[str, Any], arrays: bytes | memoryview) -> str:
    """CRC-32, of the header as it is read: names in order, and no spaces that mean nothing."""
    return f"{zlib.crc32(arrays, zlib.crc32(json.dumps(header, sort_keys=True).encode())):08x}"
