"""Kernels are compiled only if one of their inputs changes, and outputs are always complete."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tests.wheel_build.conftest import PROJECT

import cuda_packages
import kernel_images
import pinned_packages
from build_steps import BuildError
from kernel_image_file import ImageName
from kernel_images import MODULES, WORLDS_SOURCE, Compilation, ptx_compilations, source_files
from kernel_report import KernelReport, parse_log

PACKAGES = cuda_packages.CudaPackages(Path("packages"), "identity")
LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'doorstep_step' for 'sm_90'
ptxas info    : Function properties for doorstep_step
    48 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 64 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 13.242 ms
ptxas info    : Function properties for _ZN8doorstep5solveEv
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'doorstep_reset' for 'sm_90'
ptxas info    : Function properties for doorstep_reset
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""

WORLDS = next(module for module in MODULES if module.source == WORLDS_SOURCE)


def compilation(output: Path, code: str) -> Compilation:
    """A compiler run that executes Python code with the output's path as its argument."""
    return Compilation(ImageName(1, 90), (sys.executable, "-c", code), ("--option",), output)


def write_project(root: Path) -> None:
    """A source that includes a neighbour, which includes a file by its path from an include folder."""
    files = {
        **dict.fromkeys((module.source for module in MODULES), '#include "near.h"\n'),
        WORLDS_SOURCE: '#include "near.h"\n#include <system.h>\n',
        WORLDS_SOURCE.with_name("near.h"): '#pragma once\n  #  include "sim/far.h"\n',
        Path("native/src/sim/far.h"): '#include "near.h"\n#include "doorstep.h"\n',
        Path("native/src/near.h"): "// found from sim/, where no near.h is\n",
        Path("native/src/sim/unused.h"): "",
        Path("native/include/doorstep.h"): '#include "sim/far.h"\n',
        kernel_images.SYSTEM_FOLDER / "system.h": "",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def outputs(root: Path) -> list[Path]:
    return [one.output for one in ptx_compilations(root, PACKAGES, root)]


def test_an_output_that_exists_is_not_compiled_again(tmp_path: Path) -> None:
    output = tmp_path / "a.ptx"
    compilation(output, "import sys; print('said'); open(sys.argv[1], 'w').write('made')").run(tmp_path)
    compilation(output, "raise SystemExit(1)").run(tmp_path)
    assert output.read_text(encoding="utf-8") == "made"
    assert (tmp_path / "a.ptx.log").read_text(encoding="utf-8") == "said\n"


def test_a_compiler_that_fails_is_quoted_and_leaves_no_output(tmp_path: Path) -> None:
    output = tmp_path / "a.ptx"
    code = "import sys; open(sys.argv[1], 'w').write('half'); sys.exit('line 7: no such type')"
    with pytest.raises(BuildError, match=r"(?s)exit status 1 of: .*line 7: no such type"):
        compilation(output, code).run(tmp_path)
    assert not output.exists()


def test_included_files_are_found_where_the_compiler_finds_them(tmp_path: Path) -> None:
    write_project(tmp_path)
    assert [str(path) for path in source_files(tmp_path, WORLDS)] == [
        "native/include/doorstep.h",
        "native/src/exec/cuda/kernels.cu",
        "native/src/exec/cuda/near.h",
        "native/src/exec/cuda/nvrtc/system.h",
        "native/src/near.h",
        "native/src/sim/far.h",
    ]


def test_an_included_file_that_is_missing_is_named(tmp_path: Path) -> None:
    write_project(tmp_path)
    (tmp_path / "native/include/doorstep.h").unlink()
    with pytest.raises(BuildError, match=r'native/src/sim/far\.h includes "doorstep\.h"'):
        source_files(tmp_path, WORLDS)


def test_names_of_outputs_change_only_with_included_files(tmp_path: Path) -> None:
    write_project(tmp_path)
    before = outputs(tmp_path)
    assert len(set(before)) == len(before) == len(MODULES)
    (tmp_path / "native/src/sim/unused.h").write_text("changed", encoding="utf-8")
    assert outputs(tmp_path) == before
    for name in ("native/src/near.h", "native/src/exec/cuda/nvrtc/system.h"):
        before = outputs(tmp_path)
        (tmp_path / name).write_text("changed", encoding="utf-8")
        assert not set(outputs(tmp_path)) & set(before)


def test_names_of_outputs_change_with_the_compilers(tmp_path: Path) -> None:
    write_project(tmp_path)
    others = ptx_compilations(tmp_path, cuda_packages.CudaPackages(Path("packages"), "newer"), tmp_path)
    assert not {one.output for one in others} & set(outputs(tmp_path))


def test_the_report_of_the_compiler_is_parsed() -> None:
    assert list(parse_log(2, 90, "hash", LOG)) == [
        KernelReport(2, 90, "hash", "doorstep_step", 255, stack_bytes=64, spill_bytes=44, static_shared_bytes=1024),
        KernelReport(2, 90, "hash", "doorstep_reset", 8, stack_bytes=0, spill_bytes=0, static_shared_bytes=0),
    ]


def test_compilers_are_pinned_by_version_and_hash() -> None:
    text = pinned_packages.CUDA.read_text(encoding="utf-8")
    requirements = re.sub(r"#.*|\\\n", "", text).split("\n")
    pinned = [line for line in requirements if line.strip()]
    assert len(pinned) == 3
    assert all(re.fullmatch(r"[\w-]+==\d+\.\d+\.\d+\s+--hash=sha256:[0-9a-f]{64}", line) for line in pinned)


def test_kernels_are_compiled_for_every_kind_of_worlds() -> None:
    header = (PROJECT / "native/src/sim/world_model.h").read_text(encoding="utf-8")
    table = header.partition("#define DS_WORLD_KIND_TABLE(X)")[2].partition("\n\n")[0]
    assert [int(number) for number in re.findall(r"X\((\d+),", table)] == list(kernel_images.WORLD_KINDS)


def gpus(folder: Path, *lines: str) -> str:
    """A search path whose nvidia-smi lists these compute capabilities."""
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + "".join(f"echo {line}\n" for line in lines), encoding="utf-8")
    program.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("all", kernel_images.ARCHITECTURES), ("80", (80,)), ("100,75", (75, 100)), ("native", ()), ("", ())],
)
def test_the_environment_says_which_architectures_get_machine_code(
    text: str, expected: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(kernel_images.ARCHITECTURES_VARIABLE, text)
    assert kernel_images.chosen_architectures() == expected


@pytest.mark.parametrize("text", ["sm_90", "90, 80", "91", "none", "90,91"])
def test_other_architectures_are_refused_by_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel_images.ARCHITECTURES_VARIABLE, text)
    with pytest.raises(BuildError, match=r"DOORSTEP_CUDA_ARCHITECTURES is .* is not among 75, 80, .*\"all\""):
        kernel_images.chosen_architectures()


def test_gpus_of_the_building_machine_get_machine_code_that_they_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(kernel_images.ARCHITECTURES_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", gpus(tmp_path, "8.7", "12.1", "6.1", "10.3", "No devices were found"))
    assert kernel_images.chosen_architectures() == (80, 100, 120)
    monkeypatch.setenv(kernel_images.ARCHITECTURES_VARIABLE, "native")
    assert kernel_images.chosen_architectures() == (80, 100, 120)
    monkeypatch.setenv(kernel_images.ARCHITECTURES_VARIABLE, "75")
    assert kernel_images.chosen_architectures() == (75,)
