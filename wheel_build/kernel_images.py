"""Compiles the kernels, module by module, to PTX and to machine code, and packs them into the file the library embeds.

Machine code runs without compilation, on GPUs of its architecture. PTX runs on every GPU after the driver has compiled
it, which needs a driver that supports this version of PTX. DOORSTEP_CUDA_ARCHITECTURES chooses the architectures that
get machine code, each of which takes minutes of CPU time: "native", the default, those of the GPUs in this machine;
"all", as in releases; or numbers such as "80,90".

Outputs are named after a hash of all their inputs, so that only what changed is compiled again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import kernel_image_file
from build_steps import BuildError, exclusive, say
from cuda_packages import CudaPackages
from kernel_image_file import BF16_POLICIES, POLICIES, PTX, TRAINING, VIEWS, ImageName, pack
from kernel_report import KernelReport, parse_log

INCLUDE_FOLDERS = (Path("native/src"), Path("native/include"))
SYSTEM_FOLDER = Path("native/src/exec/cuda/nvrtc")  # searched for #include <...>
# Machine code runs on devices of the same major number and a larger minor one: that for 8.0 on 8.6, 8.7 and 8.9, too.
ARCHITECTURES = (75, 80, 90, 100, 120)
ARCHITECTURES_VARIABLE = "DOORSTEP_CUDA_ARCHITECTURES"
ALL, NATIVE = "all", "native"  # its values that are not lists
REPORT = "report.json"

# The same bits as on the CPU: no contraction, no approximate division or square root, denormals kept.
NVRTC_OPTIONS = (
    "-std=c++20",
    "-default-device",
    "--relocatable-device-code=false",
    "-fmad=false",
    "-ftz=false",
    "-prec-div=true",
    "-prec-sqrt=true",
    "-DNDEBUG",
    *(f"-I{folder}" for folder in (*INCLUDE_FOLDERS, SYSTEM_FOLDER)),
)
PTXAS_OPTIONS = ("-fmad=false", "-v")


@dataclass(frozen=True)
class KernelModule:
    """Kernels that are compiled together."""

    number: int  # as in ImageName
    name: str
    source: Path
    options: tuple[str, ...] = ()
    architecture: int = min(ARCHITECTURES)  # the oldest that it is for, which its PTX is compiled for

    @property
    def architectures(self) -> tuple[int, ...]:
        """Those that get machine code in a release."""
        return tuple(one for one in ARCHITECTURES if one >= self.architecture)


WORLDS_SOURCE = Path("native/src/exec/cuda/kernels.cu")
# By their numbers in DS_WORLD_KIND_TABLE (native/src/sim/world_model.h).
WORLD_KINDS = {
    1: "1_agent",
    2: "2_agents",
    3: "3_agents",
    4: "4_to_8_agents",
    5: "levels_of_2_agents",
    6: "levels",
}

# As in the file of images: those that are used most come first.
MODULES = (
    KernelModule(TRAINING, "training", Path("native/src/training/kernels.cu")),
    KernelModule(VIEWS, "views", Path("native/src/render/raycast/kernels.cu")),
    KernelModule(POLICIES, "policies", Path("native/src/policy/kernels.cu")),
    KernelModule(BF16_POLICIES, "bf16_policies", Path("native/src/policy/bf16_kernels.cu"), architecture=80),
    *(KernelModule(kind, name, WORLDS_SOURCE, (f"-DDS_KIND={kind}",)) for kind, name in WORLD_KINDS.items()),
)
MODULE_OF_NUMBER = {module.number: module for module in MODULES}

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Compilation:
    """One run of a compiler. Its output is named after a hash of all inputs."""

    name: ImageName
    program: tuple[str, ...]  # the command is: program, output, options
    options: tuple[str, ...]
    output: Path

    @property
    def log(self) -> Path:
        """The compiler's log."""
        return self.output.with_name(f"{self.output.name}.log")

    def run(self, root: Path) -> None:
        """Compile, unless the output exists. Paths in options are relative to the root."""
        if self.output.exists():
            return
        pending = self.output.with_name(f"{self.output.name}.pending")
        command = [*self.program, str(pending), *self.options]
        result = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        log = result.stdout.decode(errors="replace")
        if result.returncode != 0:
            raise BuildError(f"exit status {result.returncode} of: {' '.join(command)}\n{log}")
        self.log.write_text(log, encoding="utf-8")
        pending.rename(self.output)


def chosen_architectures() -> tuple[int, ...]:
    """The architectures that get machine code."""
    text = os.environ.get(ARCHITECTURES_VARIABLE) or NATIVE
    if text == ALL:
        return ARCHITECTURES
    if text == NATIVE:
        return tuple(sorted(machine_architectures()))
    names = set(text.split(",")) - {""}
    if unknown := names - set(map(str, ARCHITECTURES)):
        raise BuildError(
            f"{ARCHITECTURES_VARIABLE} is {text!r}; {', '.join(sorted(unknown))} is not among "
            f"{', '.join(map(str, ARCHITECTURES))}; name some of these, separated by commas, "
            f'or "{NATIVE}" or "{ALL}"'
        )
    return tuple(sorted(map(int, names)))


def machine_architectures() -> set[int]:
    """The architectures whose machine code runs on the GPUs that nvidia-smi lists on this machine."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return set()
    command = [program, "--query-gpu=compute_cap", "--format=csv,noheader"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    capabilities = {int(major + minor) for major, minor in re.findall(r"^(\d+)\.(\d)$", listed, re.MULTILINE)}
    # Machine code runs on GPUs of the same major number and a minor number that is not smaller.
    runs = ([one for one in ARCHITECTURES if one <= gpu and one // 10 == gpu // 10] for gpu in capabilities)
    return {max(found) for found in runs if found}


def build_images(root: Path, packages: CudaPackages, folder: Path) -> Path:
    """Compile the images that the folder does not contain, and pack all; returns the file, named after its parts."""
    architectures = chosen_architectures()
    with exclusive(folder):
        ptx = ptx_compilations(root, packages, folder)
        _run_all(ptx, root, "PTX")
        all_cubins = [one for source in ptx for one in cubin_compilations(packages, folder, source)]
        cubins = [one for one in all_cubins if one.name.architecture in architectures]
        _run_all(cubins, root, "machine code")
        images = _write_images(folder, sorted([*ptx, *cubins], key=lambda one: one.name.architecture))
        _write_report(folder, cubins)
        _remove_others(folder, {images, folder / REPORT, folder / "lock", *_files([*ptx, *all_cubins])})
        return images


def ptx_compilations(root: Path, packages: CudaPackages, folder: Path) -> list[Compilation]:
    """Compile CUDA C++ to PTX, for every module."""
    program = (sys.executable, str(Path(__file__).with_name("nvrtc.py")), str(packages.nvrtc))
    compilations = []
    for module in MODULES:
        sources = [part for path in source_files(root, module) for part in (str(path), (root / path).read_bytes())]
        target = f"--gpu-architecture=compute_{module.architecture}"
        options = (target, *NVRTC_OPTIONS, *module.options)
        digest = _digest([packages.identity, *options, *sources])
        output = folder / f"{module.name}.{digest}.ptx"
        compilations.append(
            Compilation(ImageName(module.number, PTX), (*program, str(module.source)), options, output)
        )
    return compilations


def cubin_compilations(packages: CudaPackages, folder: Path, ptx: Compilation) -> list[Compilation]:
    """Compile a module's PTX to machine code, for every architecture that the module is for."""
    source = ptx.output.read_bytes()
    compilations = []
    for architecture in MODULE_OF_NUMBER[ptx.name.module].architectures:
        options = (f"-arch=sm_{architecture}", *PTXAS_OPTIONS)
        digest = _digest([packages.identity, *options, source])
        module_name = ptx.output.name.partition(".")[0]
        output = folder / f"{module_name}.sm_{architecture}.{digest}.cubin"
        name = ImageName(ptx.name.module, architecture)
        program = (str(packages.ptxas), str(ptx.output), "-o")
        compilations.append(Compilation(name, program, options, output))
    return compilations


def source_files(root: Path, module: KernelModule) -> list[Path]:
    """The module's source, everything it includes, and the system's headers, relative to the root."""
    found = {path.relative_to(root) for path in (root / SYSTEM_FOLDER).glob("*.h")}
    pending = {module.source}
    while pending:
        found |= pending
        pending = {included for path in pending for included in _included(root, path)} - found
    return sorted(found)


def read_report(folder: Path) -> list[KernelReport]:
    """The resource usage of the kernels of the images in this folder."""
    return [KernelReport(**row) for row in json.loads((folder / REPORT).read_text(encoding="utf-8"))]


def _included(root: Path, path: Path) -> Iterator[Path]:
    for name in _INCLUDE.findall((root / path).read_text(encoding="utf-8")):
        for folder in (path.parent, *INCLUDE_FOLDERS):
            if (root / folder / name).is_file():
                yield folder / name
                break
        else:
            folders = ", ".join(map(str, INCLUDE_FOLDERS))
            raise BuildError(f'{path} includes "{name}", which is neither in its folder nor in {folders}')


def _digest(parts: Sequence[str | bytes]) -> str:
    digests = [hashlib.sha256(part.encode() if isinstance(part, str) else part).digest() for part in parts]
    return hashlib.sha256(b"".join(digests)).hexdigest()[:24]


def _run_all(compilations: Sequence[Compilation], root: Path, what: str) -> None:
    missing = [one for one in compilations if not one.output.exists()]
    if not missing:
        return
    processes = len(os.sched_getaffinity(0))
    say(f"compiling the kernels to {what}: {len(missing)} images, {processes} at a time")
    begin = time.monotonic()
    with ThreadPoolExecutor(processes) as pool:
        try:
            list(pool.map(lambda one: one.run(root), missing))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    say(f"compiled the kernels to {what} in {time.monotonic() - begin:.0f} s")


def _write_images(folder: Path, compilations: Sequence[Compilation]) -> Path:
    # PTX must be zero-terminated text.
    contents = {
        one.name: one.output.read_bytes() + (b"\0" if one.name.architecture == PTX else b"") for one in compilations
    }
    parts = [part for name, content in contents.items() for part in (repr(name), content)]
    # After what is packed, and how, because packing takes seconds.
    path = folder / f"kernels.{_digest([Path(kernel_image_file.__file__).read_bytes(), *parts])}.images"
    if not path.exists():
        pending = path.with_name(f"{path.name}.pending")
        pending.write_bytes(pack(contents))
        pending.rename(path)
    return path


def _write_report(folder: Path, cubins: Sequence[Compilation]) -> None:
    rows = []
    for one in cubins:
        sha256 = hashlib.sha256(one.output.read_bytes()).hexdigest()
        rows += [asdict(row) for row in parse_log(*one.name, sha256, one.log.read_text(encoding="utf-8"))]
    (folder / REPORT).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _files(compilations: Sequence[Compilation]) -> set[Path]:
    return {path for one in compilations for path in (one.output, one.log)}


def _remove_others(folder: Path, keep: set[Path]) -> None:
    for path in folder.iterdir():
        if path not in keep:
            path.unlink()
