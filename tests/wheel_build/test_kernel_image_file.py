"""Reading a file of kernel images returns the images written, also inside a library; cubins name their architecture."""

from __future__ import annotations

import random
import struct

import pytest

from kernel_image_file import ALIGNMENT, ENTRY, HEADER, ImageName, cubin_architecture, pack, unpack

IMAGES = {
    ImageName(1, 0): b"// PTX\0",
    ImageName(1, 90): bytes(range(200)),
    ImageName(8, 120): b"",
    ImageName(8, 75): b"x" * ALIGNMENT,
}


def elf_header(machine: int, abi_version: int, flags: int) -> bytes:
    """The 64 bytes of an ELF header, with the fields that matter here."""
    header = bytearray(64)
    header[:4] = b"\x7fELF"
    header[8] = abi_version
    struct.pack_into("<H", header, 18, machine)
    struct.pack_into("<I", header, 48, flags)
    return bytes(header)


def test_images_are_read_as_they_were_packed() -> None:
    assert unpack(pack(IMAGES)) == IMAGES


def test_images_are_found_inside_a_library() -> None:
    assert unpack(b"\x7fELF" + bytes(1001) + pack(IMAGES) + b"more") == IMAGES


def test_a_library_without_images_has_none() -> None:
    assert unpack(b"\x7fELF" + bytes(1001)) == {}
    assert unpack(pack({})) == {}


def test_images_are_aligned_and_do_not_overlap() -> None:
    images = {ImageName(module, 90): bytes(100 + module) for module in range(4)}
    content = pack(images)
    starts = [ENTRY.unpack_from(content, HEADER.size + ENTRY.size * i)[4] for i in range(len(images))]
    assert all(start % ALIGNMENT == 0 for start in starts)
    ends = [start + len(image) for start, image in zip(starts, images.values(), strict=True)]
    assert all(end <= start for end, start in zip(ends[:-1], starts[1:], strict=True))


def test_images_of_an_architecture_that_are_alike_take_little_more_space_than_one() -> None:
    image = random.Random(1).randbytes(100_000)  # more than the window of the zip that wheels are
    alike = pack({ImageName(module, 90): image + bytes([module]) for module in range(8)})
    assert len(alike) < 1.02 * len(pack({ImageName(0, 90): image}))


# The flags of two files that ptxas 12.9 wrote, one in each version of the format.
@pytest.mark.parametrize(("abi_version", "flags", "architecture"), [(7, 0x4B055A, 90), (8, 0x6006402, 100)])
def test_a_cubin_names_its_architecture(abi_version: int, flags: int, architecture: int) -> None:
    assert cubin_architecture(elf_header(190, abi_version, flags)) == architecture


@pytest.mark.parametrize("content", [b"", b"// PTX\0", bytes(64), elf_header(62, 0, 90)])
def test_other_files_have_no_architecture(content: bytes) -> None:
    assert cubin_architecture(content) is None
