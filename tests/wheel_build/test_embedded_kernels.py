"""The kernels in the wheel: all of them, computing as the CPU does, within known limits of the machine."""

import hashlib
import re
from io import BytesIO
from typing import NamedTuple

import pytest
from elftools.elf.elffile import ELFFile
from tests.wheel_build.conftest import PROJECT

import kernel_images
from check_wheel import NVIDIA_LICENCE
from kernel_image_file import BF16_POLICIES, POLICIES, PTX, TRAINING, VIEWS, ImageName, cubin_architecture, unpack
from kernel_images import MODULES
from wheel_file import LIBRARY


class Limits(NamedTuple):
    """Limits of a kernel's resources, in any module on any architecture. Shared memory is allocated at launch, where
    its size is known."""

    registers: int  # fewer let more blocks share a multiprocessor
    stack_bytes: int  # stack and spills are memory traffic that the arithmetic waits for
    spill_bytes: int  # of all stores and loads in the code, most of which rarely run
    static_shared_bytes: int = 0


LIMITS = {
    "doorstep_create": Limits(96, 192, 128),
    # What pairs cubes with buttons, where that is rewarded, has up to 300 bytes of stack, four lines of lidar more.
    "doorstep_step": Limits(128, 544, 640),
    # The tile is in memory for the function that observes chosen worlds, which the other kernels call.
    "doorstep_reset": Limits(96, 192, 128),
    "doorstep_refresh": Limits(96, 192, 128),
}
DISTRIBUTIONS = ("multi_discrete_sample", "multi_discrete_evaluate", "multi_discrete_backward")
TRAINING_LIMITS = {
    f"doorstep_{name}_{dtype}": Limits(64, 16, 32)
    for name in ("generalized_advantages", "v_trace", *DISTRIBUTIONS)
    for dtype in ("float32", "float64")
}
VIEW_LIMITS = {"doorstep_draw_views": Limits(64, 704, 128), "doorstep_draw_level_views": Limits(96, 1216, 64)}
ROW_LIMITS = {"doorstep_prepare_rows": Limits(32, 0, 0), "doorstep_count_step": Limits(16, 0, 0)}
POLICY_LIMITS = {"doorstep_act": Limits(168, 208, 448), **ROW_LIMITS}
BF16_LIMITS = {"doorstep_act_bf16": POLICY_LIMITS["doorstep_act"]}
OTHERS = {TRAINING: TRAINING_LIMITS, VIEWS: VIEW_LIMITS, POLICIES: POLICY_LIMITS, BF16_POLICIES: BF16_LIMITS}
FLOAT_INSTRUCTION = re.compile(r"\b((?:add|sub|mul|div|rcp|sqrt|fma|mad)(?:\.\w+)*\.(?:b?f16|f32|f64)\w*)\b")


def limits_of(module):
    return OTHERS.get(module, LIMITS)


def architectures_of(module):
    return set(module.architectures).intersection(kernel_images.chosen_architectures())


@pytest.fixture(scope="module")
def images(finished):
    """The images in the wheel's library."""
    return unpack(finished.files[LIBRARY])


def symbols(content):
    return ELFFile(content).get_section_by_name(".symtab").iter_symbols()


def test_every_image_is_machine_code_of_its_architecture_with_every_kernel(images):
    cubins = {name: content for name, content in images.items() if name.architecture != PTX}
    assert cubins.keys() == {(module.number, one) for module in MODULES for one in architectures_of(module)}
    for name, content in cubins.items():
        assert cubin_architecture(content) == name.architecture
        kinds = {one.name: (one["st_info"]["bind"], one["st_info"]["type"]) for one in symbols(BytesIO(content))}
        assert {kinds.get(kernel) for kernel in limits_of(name.module)} == {("STB_GLOBAL", "STT_FUNC")}


def test_ptx_is_for_the_oldest_architecture_has_every_kernel_and_rounds_once_per_operation_as_on_the_cpu(images):
    for module in MODULES:
        ptx = images[ImageName(module.number, PTX)].rstrip(b"\0").decode()
        assert re.search(rf"^\.target sm_{80 if module.number == BF16_POLICIES else 75}$", ptx, re.M)
        assert set(re.findall(r"^\.visible \.entry (\w+)\(", ptx, re.M)) == limits_of(module.number).keys()
        # Without .rn an assembler may contract; .ftz and .approx give other bits. Policies ask for fma, on the CPU too.
        names = ["add", "sub", "mul", "div", "rcp", "sqrt", *["fma"] * (module.number in (POLICIES, BF16_POLICIES))]
        instructions = set(FLOAT_INSTRUCTION.findall(ptx))
        assert instructions <= {f"{name}.rn.{kind}" for name in names for kind in ("f32", "f64")}, module.name
        assert {"add.rn.f32", "mul.rn.f32"} <= instructions
        assert not re.findall(r"\b\w+(?:\.\w+)*\.(?:approx|ftz|full)\b[.\w]*", ptx)
        assert ".extern .func" not in ptx  # they call nothing outside themselves


def test_every_kernel_is_reported_and_stays_within_its_limits(images):
    if not kernel_images.chosen_architectures():
        pytest.skip("no machine code: the wheel has PTX alone, unless DOORSTEP_CUDA_ARCHITECTURES says otherwise")
    report = kernel_images.read_report(PROJECT / "build" / "cuda" / "images")  # of ptxas
    kernels = [(module, kernel) for module in MODULES for kernel in limits_of(module.number)]
    expected = [(module.number, number, kernel) for module, kernel in kernels for number in architectures_of(module)]
    assert sorted((row.module, row.architecture, row.kernel) for row in report) == sorted(expected)
    for row in report:
        assert hashlib.sha256(images[ImageName(row.module, row.architecture)]).hexdigest() == row.image_sha256
        for quantity, limit in limits_of(row.module)[row.kernel]._asdict().items():
            assert getattr(row, quantity) <= limit, (quantity, row)
    for quantity in ("registers", "stack_bytes", "spill_bytes"):
        assert any(getattr(row, quantity) for row in report), f"the report tells no {quantity}"


def test_the_licence_is_the_one_that_comes_with_the_compiler():
    (licence,) = PROJECT.glob("build/cuda/packages/*/nvidia_nvptxcompiler-*.dist-info/licenses/License.txt")
    assert (PROJECT / NVIDIA_LICENCE).read_bytes() == licence.read_bytes()


def test_worlds_are_stepped_without_libm():
    folder = PROJECT / "build" / "library" / "CMakeFiles"
    objects = [*folder.glob("*/**/sim/world_model.cpp.o"), *folder.glob("*/**/sim/leaves_with_avx512.cpp.o")]
    assert len(objects) == len(kernel_images.WORLD_KINDS) + 1
    for path in objects:
        with path.open("rb") as file:
            undefined = {symbol.name for symbol in symbols(file) if symbol["st_shndx"] == "SHN_UNDEF"}
        others = {name for name in undefined if not name.startswith("_ZN8doorstep")}
        assert others <= {"", "memcpy", "memmove", "memset", "memcmp"}
