"""The kernels in the wheel: all of them, computing as the CPU does, within known limits of the machine."""

from __future__ import annotations

import hashlib
import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from tests.wheel_build.conftest import PROJECT

import kernel_images
from check_wheel import NVIDIA_LICENCE
from kernel_image_file import BF16_POLICIES, POLICIES, PTX, TRAINING, VIEWS, ImageName, cubin_architecture, unpack
from kernel_report import KernelReport
from wheel_file import LIBRARY

IMAGES_FOLDER = PROJECT / "build" / "cuda" / "images"
PACKAGES_FOLDER = PROJECT / "build" / "cuda" / "packages"


class Limits(NamedTuple):
    """Limits of a kernel's resources, in any module on any architecture."""

    registers: int  # fewer let more blocks share a multiprocessor
    stack_bytes: int  # stack and spills are memory traffic that the arithmetic waits for
    spill_bytes: int  # of all stores and loads in the code, most of which rarely run
    static_shared_bytes: int  # shared memory is allocated at launch, where its size is known


LIMITS = {
    "doorstep_create": Limits(registers=96, stack_bytes=192, spill_bytes=128, static_shared_bytes=0),
    # What pairs cubes with buttons, where that is rewarded, has up to 300 bytes of stack, four lines of lidar more.
    "doorstep_step": Limits(registers=128, stack_bytes=544, spill_bytes=640, static_shared_bytes=0),
    # The tile is in memory for the function that observes chosen worlds, which the other kernels call.
    "doorstep_reset": Limits(registers=96, stack_bytes=192, spill_bytes=128, static_shared_bytes=0),
    "doorstep_refresh": Limits(registers=96, stack_bytes=192, spill_bytes=128, static_shared_bytes=0),
}
TRAINING_LIMITS = Limits(registers=64, stack_bytes=16, spill_bytes=32, static_shared_bytes=0)
TRAINING_KERNELS = {
    f"doorstep_{name}_{dtype}"
    for name in (
        "generalized_advantages",
        "v_trace",
        "multi_discrete_sample",
        "multi_discrete_evaluate",
        "multi_discrete_backward",
    )
    for dtype in ("float32", "float64")
}
VIEW_LIMITS = {
    "doorstep_draw_views": Limits(registers=64, stack_bytes=704, spill_bytes=128, static_shared_bytes=0),
    "doorstep_draw_level_views": Limits(registers=96, stack_bytes=1216, spill_bytes=64, static_shared_bytes=0),
}
POLICY_LIMITS = {
    "doorstep_act": Limits(registers=168, stack_bytes=208, spill_bytes=448, static_shared_bytes=0),
    "doorstep_prepare_rows": Limits(registers=32, stack_bytes=0, spill_bytes=0, static_shared_bytes=0),
    "doorstep_count_step": Limits(registers=16, stack_bytes=0, spill_bytes=0, static_shared_bytes=0),
}
BF16_LIMITS = {"doorstep_act_bf16": POLICY_LIMITS["doorstep_act"]}
ALL_LIMITS = {
    **LIMITS,
    **dict.fromkeys(TRAINING_KERNELS, TRAINING_LIMITS),
    **VIEW_LIMITS,
    **POLICY_LIMITS,
    **BF16_LIMITS,
}


def kernels_of(module: int) -> set[str]:
    others = {
        TRAINING: TRAINING_KERNELS,
        VIEWS: set(VIEW_LIMITS),
        POLICIES: set(POLICY_LIMITS),
        BF16_POLICIES: set(BF16_LIMITS),
    }
    return others.get(module, set(LIMITS))


def architectures_of(module: kernel_images.KernelModule) -> set[int]:
    return set(module.architectures).intersection(kernel_images.chosen_architectures())


FLOAT_INSTRUCTION = re.compile(r"\b((?:add|sub|mul|div|rcp|sqrt|fma|mad)(?:\.\w+)*\.(?:b?f16|f32|f64)\w*)\b")


@pytest.fixture(scope="module")
def images(finished_wheel: Path) -> dict[ImageName, bytes]:
    """The images in the wheel's library."""
    with zipfile.ZipFile(finished_wheel) as archive:
        return unpack(archive.read(LIBRARY))


@pytest.fixture(scope="module")
def report(images: dict[ImageName, bytes]) -> list[KernelReport]:
    """The report of ptxas about the embedded images."""
    if not kernel_images.chosen_architectures():
        pytest.skip("no machine code: the wheel has PTX alone, unless DOORSTEP_CUDA_ARCHITECTURES says otherwise")
    rows = kernel_images.read_report(IMAGES_FOLDER)
    for row in rows:
        embedded = images[ImageName(row.module, row.architecture)]
        assert hashlib.sha256(embedded).hexdigest() == row.image_sha256
    return rows


@pytest.fixture(params=kernel_images.MODULES, ids=lambda module: module.name)
def module(request: pytest.FixtureRequest) -> kernel_images.KernelModule:
    found: kernel_images.KernelModule = request.param
    return found


@pytest.fixture
def ptx(images: dict[ImageName, bytes], module: kernel_images.KernelModule) -> str:
    return images[ImageName(module.number, PTX)].rstrip(b"\0").decode()


def global_functions(cubin: bytes) -> set[str]:
    symbols = ELFFile(BytesIO(cubin)).get_section_by_name(".symtab")
    assert isinstance(symbols, SymbolTableSection)
    return {
        symbol.name
        for symbol in symbols.iter_symbols()
        if symbol["st_info"]["bind"] == "STB_GLOBAL" and symbol["st_info"]["type"] == "STT_FUNC"
    }


def test_every_image_is_machine_code_of_its_architecture_with_every_kernel(images: dict[ImageName, bytes]) -> None:
    cubins = {name: content for name, content in images.items() if name.architecture != PTX}
    assert cubins.keys() == {
        (module.number, one) for module in kernel_images.MODULES for one in architectures_of(module)
    }
    for name, content in cubins.items():
        assert cubin_architecture(content) == name.architecture
        assert global_functions(content) >= kernels_of(name.module)


def test_ptx_is_for_the_oldest_architecture_and_has_every_kernel(
    ptx: str, module: kernel_images.KernelModule
) -> None:
    assert re.search(rf"^\.target sm_{80 if module.number == BF16_POLICIES else 75}$", ptx, re.M)
    assert set(re.findall(r"^\.visible \.entry (\w+)\(", ptx, re.M)) == kernels_of(module.number)


def test_float_arithmetic_is_rounded_once_per_operation_as_on_the_cpu(
    ptx: str, module: kernel_images.KernelModule
) -> None:
    instructions = set(FLOAT_INSTRUCTION.findall(ptx))
    # Without .rn an assembler may contract; .ftz and .approx give other bits.
    names = ["add", "sub", "mul", "div", "rcp", "sqrt"]
    if module.number in (POLICIES, BF16_POLICIES):
        names.append("fma")  # which the source asks for, on the CPU too
    assert instructions <= {f"{name}.rn.{kind}" for name in names for kind in ("f32", "f64")}
    assert {"add.rn.f32", "mul.rn.f32"} <= instructions


def test_no_instruction_approximates(ptx: str) -> None:
    assert set(re.findall(r"\b\w+(?:\.\w+)*\.(?:approx|ftz|full)\b[.\w]*", ptx)) == set()


def test_kernels_call_nothing_outside_themselves(ptx: str) -> None:
    assert ".extern .func" not in ptx


def test_every_kernel_is_reported(report: list[KernelReport]) -> None:
    names = {(row.module, row.architecture, row.kernel) for row in report}
    assert names == {
        (module.number, architecture, kernel)
        for module in kernel_images.MODULES
        for architecture in architectures_of(module)
        for kernel in kernels_of(module.number)
    }
    assert len(report) == len(names)


@pytest.mark.parametrize("kernel", sorted(ALL_LIMITS))
@pytest.mark.parametrize("quantity", Limits._fields)
def test_a_kernel_stays_within_its_limits(report: list[KernelReport], kernel: str, quantity: str) -> None:
    limit = getattr(ALL_LIMITS[kernel], quantity)
    rows = [row for row in report if row.kernel == kernel]
    assert [row for row in rows if getattr(row, quantity) > limit] == []


def test_the_licence_is_the_one_that_comes_with_the_compiler() -> None:
    (licence,) = PACKAGES_FOLDER.glob("*/nvidia_nvptxcompiler-*.dist-info/licenses/License.txt")
    assert (PROJECT / NVIDIA_LICENCE).read_bytes() == licence.read_bytes()


def test_worlds_are_stepped_without_libm() -> None:
    folder = PROJECT / "build" / "library" / "CMakeFiles"
    objects = [*folder.glob("*/**/sim/world_model.cpp.o"), *folder.glob("*/**/sim/leaves_with_avx512.cpp.o")]
    assert len(objects) == len(kernel_images.WORLD_KINDS) + 1
    for path in objects:
        with path.open("rb") as file:
            symbols = ELFFile(file).get_section_by_name(".symtab")
            assert isinstance(symbols, SymbolTableSection)
            undefined = {symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"}
        others = {name for name in undefined if not name.startswith("_ZN8doorstep")}
        assert others <= {"", "memcpy", "memmove", "memset", "memcmp"}
