"""The file of kernel images that the library embeds: written by the build, read by the checks.

    24 bytes  MAGIC
    uint32    number of images
    uint32    zero
    per image: int32 module, int32 architecture (0: PTX), uint64 offset in the file, uint64 bytes
    the images, each at a multiple of ALIGNMENT; PTX ends with a zero that counts

native/src/exec/cuda/images.cpp reads the same.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

MAGIC = b"doorstep kernel images\0\0"
ALIGNMENT = 64
CUDA_MACHINE = 190  # e_machine of ELF files with CUDA machine code
HEADER = struct.Struct(f"<{len(MAGIC)}sII")
ENTRY = struct.Struct("<iiQQ")
PTX = 0
TRAINING = 0  # the module of the training kernels
VIEWS = 9  # the module of the kernel that draws views
POLICIES = 19  # the module of the kernels of policies
LEVELS = 10  # plus a number of agents: the module of worlds that play any levels


class ImageName(NamedTuple):
    """The module and architecture of an image."""

    module: int  # number of agents, TRAINING, VIEWS, POLICIES, or LEVELS + number of agents
    architecture: int  # 90 for sm_90, PTX for the PTX


def pack(images: Mapping[ImageName, bytes]) -> bytes:
    """The contents of a file with these images, in their order."""
    position = HEADER.size + ENTRY.size * len(images)
    entries, contents = [HEADER.pack(MAGIC, len(images), 0)], []
    for name, content in images.items():
        padding = -position % ALIGNMENT
        entries.append(ENTRY.pack(*name, position + padding, len(content)))
        contents += [bytes(padding), content]
        position += padding + len(content)
    return b"".join(entries + contents)


def unpack(content: bytes) -> dict[ImageName, bytes]:
    """The images of such a file, or of a library that embeds one; empty if there are none."""
    start = content.find(MAGIC)
    if start < 0:
        return {}
    _, count, _ = HEADER.unpack_from(content, start)
    images = {}
    for index in range(count):
        module, architecture, offset, size = ENTRY.unpack_from(content, start + HEADER.size + index * ENTRY.size)
        images[ImageName(module, architecture)] = content[start + offset : start + offset + size]
    return images


def cubin_architecture(content: bytes) -> int | None:
    """The architecture of an ELF file of CUDA machine code; None for other files."""
    if len(content) < 64 or content[:4] != b"\x7fELF" or struct.unpack_from("<H", content, 18)[0] != CUDA_MACHINE:
        return None
    abi_version = content[8]
    flags = int.from_bytes(content[48:52], "little")
    return (flags >> 8 if abi_version >= 8 else flags) & 0xFF
