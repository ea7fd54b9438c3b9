"""The file of kernel images that the library embeds: written by the build, read by the checks.

    24 bytes  MAGIC
    uint32    number of images
    uint32    zero
    per image: int32 module, int32 architecture (0: PTX), uint64 offset of its stream in the file, uint64 bytes of the
               stream, uint64 offset of the image in what the stream encodes, uint64 bytes of the image
    the streams: LZMA, one for all images of an architecture, because modules are alike. In what it encodes, each image
               is at a multiple of ALIGNMENT; PTX ends with a zero that counts

native/src/exec/cuda/images.cpp reads the same: up to the image that it wants, so the rarest images come last.
"""

from __future__ import annotations

import lzma
import struct
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

MAGIC = b"doorstep kernel images\0\0"
ALIGNMENT = 16
# The decoder (native/src/runtime/lzma.h) has the same lc, lp and pb. The dictionary holds an architecture's images.
LZMA: list[dict[str, Any]] = [
    {
        "id": lzma.FILTER_LZMA1,
        "dict_size": 1 << 25,
        "lc": 0,
        "lp": 4,
        "pb": 4,
        "mode": lzma.MODE_NORMAL,
        "mf": lzma.MF_BT4,
        "nice_len": 128,
        "depth": 16,  # a quarter faster than the default, and a hundredth larger
    }
]
CUDA_MACHINE = 190  # e_machine of ELF files with CUDA machine code
HEADER = struct.Struct(f"<{len(MAGIC)}sII")
ENTRY = struct.Struct("<iiQQQQ")
PTX = 0
TRAINING = 0  # the module of the training kernels
VIEWS = 9  # the module of the kernel that draws views
POLICIES = 19  # the module of the kernels of policies
BF16_POLICIES = 20  # the module of the kernel that evaluates policies by tensor cores


class ImageName(NamedTuple):
    """The module and architecture of an image."""

    module: int  # the number of a kind of worlds, TRAINING, VIEWS, POLICIES or BF16_POLICIES
    architecture: int  # 90 for sm_90, PTX for the PTX


def pack(images: Mapping[ImageName, bytes]) -> bytes:
    """The contents of a file with these images: by architecture, and in their order."""
    contents: dict[int, bytes] = {}
    places: dict[ImageName, tuple[int, int]] = {}
    for name, image in images.items():
        before = contents.get(name.architecture, b"")
        before += bytes(-len(before) % ALIGNMENT)
        places[name] = len(before), len(image)
        contents[name.architecture] = before + image
    with ThreadPoolExecutor() as pool:
        streams = dict(zip(contents, pool.map(_encode, contents.values()), strict=True))
    position = HEADER.size + ENTRY.size * len(images)
    starts: dict[int, int] = {}
    for architecture, stream in streams.items():
        starts[architecture] = position
        position += len(stream)
    entries = (
        ENTRY.pack(*name, starts[name.architecture], len(streams[name.architecture]), *place)
        for name, place in places.items()
    )
    return b"".join([HEADER.pack(MAGIC, len(images), 0), *entries, *streams.values()])


def image_names(content: bytes) -> list[ImageName]:
    """The images of such a file, or of a library that embeds one, without decoding them; empty if there are none."""
    return [ImageName(module, architecture) for module, architecture, *_ in _entries(content)]


def unpack(content: bytes) -> dict[ImageName, bytes]:
    """The images of such a file, or of a library that embeds one; empty if there are none."""
    start = content.find(MAGIC)
    streams: dict[int, bytes] = {}
    images = {}
    for module, architecture, stream, stream_bytes, offset, size in _entries(content):
        if stream not in streams:
            encoded = content[start + stream : start + stream + stream_bytes]
            streams[stream] = lzma.decompress(encoded, lzma.FORMAT_RAW, filters=LZMA)
        images[ImageName(module, architecture)] = streams[stream][offset : offset + size]
    return images


def _entries(content: bytes) -> Iterator[tuple[int, ...]]:
    start = content.find(MAGIC)
    if start < 0:
        return
    _, count, _ = HEADER.unpack_from(content, start)
    for index in range(count):
        yield ENTRY.unpack_from(content, start + HEADER.size + index * ENTRY.size)


def _encode(content: bytes) -> bytes:
    return lzma.compress(content, lzma.FORMAT_RAW, filters=LZMA)


def cubin_architecture(content: bytes) -> int | None:
    """The architecture of an ELF file of CUDA machine code; None for other files."""
    if len(content) < 64 or content[:4] != b"\x7fELF" or struct.unpack_from("<H", content, 18)[0] != CUDA_MACHINE:
        return None
    abi_version = content[8]
    flags = int.from_bytes(content[48:52], "little")
    return (flags >> 8 if abi_version >= 8 else flags) & 0xFF
