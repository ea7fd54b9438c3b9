"""`doorstep doctor`: reports what doorstep finds on this machine, and remedies for what is missing.

`doorstep doctor --verify` plays the golden results here, on the CPU and on a GPU if there is one, and compares hashes.
`doorstep doctor --compile sm_103` compiles the kernels for an architecture, as a simulator does on a GPU for which the
library has no machine code. It needs no GPU.
"""

from __future__ import annotations

import argparse
import ctypes.util
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import doorstep
from doorstep import cuda
from doorstep._arguments import count
from doorstep._native import (
    LIBRARY_PATH,
    MAX_AGENTS,
    Kernel,
    Renderer,
    cpu_features,
    cuda_architectures,
    cuda_compile,
    cuda_driver,
    cuda_kernel,
    default_thread_count,
    describe_renderer,
    load,
)
from doorstep.cli.argument_types import positive_integer
from doorstep.cli.terminal import coloured

if TYPE_CHECKING:
    from doorstep._golden import Run

SUMMARY = "Report what doorstep finds on this machine, with remedies for what is missing."

EXAMPLES = ("doorstep doctor", "doorstep doctor --json", "doorstep doctor --verify")

_DRIVER_VERSION_FILE = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    name: str
    found: str  # a description, or the reason why it is missing
    ok: bool
    needed: bool = False  # without it doorstep cannot step a world
    remedy: str = ""


@dataclass(frozen=True)
class Verification:
    """A golden run as this machine plays it."""

    run: str
    device: str
    golden: str  # hexadecimal
    hash: str  # "": it could not be played
    ok: bool
    error: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--verify",
        action="store_true",
        help="instead, play the golden results on the CPU, and on the first GPU if there is one, and compare hashes; "
        "exits with 1 if one differs",
    )
    instead.add_argument(
        "--compile",
        metavar="SM",
        help="instead, compile the kernels for an architecture such as sm_103, as on a GPU for which the library has "
        "no machine code; needs no GPU",
    )
    parser.add_argument(
        "--agents", type=positive_integer, default=2, metavar="N", help=f"with --compile: agents, 1-{MAX_AGENTS} (2)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the findings; the exit code is 1 if something needed is missing."""
    if arguments.verify:
        return _verify(arguments)
    if arguments.compile is not None:
        return _compile(arguments)
    findings = list(examine())
    works = all(finding.ok for finding in findings if finding.needed)
    if arguments.json:
        print(json.dumps({"works": works, "findings": [asdict(finding) for finding in findings]}))
    else:
        _print_table(findings)
        print("\ndoorstep works here." if works else "\ndoorstep does not work here; see the remedies above.")
    return 0 if works else 1


def _verify(arguments: argparse.Namespace) -> int:
    from doorstep._golden import HASHES, RUNS  # which other commands need not wait for

    results = [_verification(name, run, HASHES[name], at) for at in _devices_to_verify() for name, run in RUNS.items()]
    wrong = [result for result in results if not result.ok]
    if arguments.json:
        print(json.dumps({"verified": not wrong, "runs": [asdict(result) for result in results]}))
        return 1 if wrong else 0
    width = max(len(result.run) for result in results)
    for result in results:
        mark, colour = ("ok", "green") if result.ok else ("NO", "red")
        line = f"{coloured(mark, colour, sys.stdout)}  {result.device:<6}  {result.run:<{width}}  {result.golden}"
        print(line if result.ok else f"{line}, but here {result.hash or result.error}")
    if wrong:
        print(f"\n{len(wrong)} of {len(results)} runs differ: please report this, with what doorstep doctor prints.")
        return 1
    print(f"\nThis machine computes the documented bits: {len(results)} of {len(results)} runs.")
    return 0


def _devices_to_verify() -> list[str]:
    try:
        return ["cpu", "cuda:0"] if cuda.Device.count() else ["cpu"]
    except doorstep.DoorstepError:  # no driver, or none that can be used: doorstep doctor says why
        return ["cpu"]


def _verification(name: str, run: Run, golden: int, device: str) -> Verification:
    documented = f"{golden:016X}"
    try:
        found = f"{run.hash(device):016X}"
    except doorstep.DoorstepError as error:
        return Verification(name, device, documented, "", ok=False, error=_described(error))
    return Verification(name, device, documented, found, ok=found == documented)


def _compile(arguments: argparse.Namespace) -> int:
    info = cuda_compile(arguments.compile, arguments.agents)
    result = {
        "architecture": arguments.compile,
        "agents": arguments.agents,
        "bytes": info.image_bytes,
        "seconds": round(info.nanoseconds / 1e9, 3),
        "from_cache": bool(info.from_cache),
        "cache_path": os.fsdecode(info.cache_path) or None,
    }
    if arguments.json:
        print(json.dumps(result))
        return 0
    origin = "found on disk" if info.from_cache else "compiled"
    print(
        f"{arguments.compile}, {arguments.agents} agents: {info.image_bytes:,} bytes of machine code, {origin} in "
        f"{result['seconds']} s\ncache: {result['cache_path'] or 'none; it could not be written'}"
    )
    return 0


def examine() -> Iterator[Finding]:
    """Runs all checks, in the order of the report."""
    for name, look in _LOOKS.items():
        yield _look(name, look)
        if name == "CUDA driver":
            yield from _look_for_devices()


def _look(name: str, look: Callable[[str], Finding]) -> Finding:
    """A check that fails is a finding, never an exception: the rest of the report still helps."""
    try:
        return look(name)
    except doorstep.DoorstepError:
        return Finding(name, "unknown, because the library does not work", ok=False)
    except Exception as error:
        return Finding(name, f"cannot be found out: {error!r}", ok=False, remedy="Please report this.")


def _print_table(findings: list[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, colour = ("ok", "green") if finding.ok else ("NO", "red") if finding.needed else ("--", "yellow")
        print(f"{coloured(mark, colour, sys.stdout)}  {finding.name:<{width}}  {finding.found}")
        if finding.remedy:
            print(f"    {'':<{width}}  -> {finding.remedy}")


def _look_for_doorstep(name: str) -> Finding:
    folder = os.path.dirname(os.path.abspath(doorstep.__file__))
    return Finding(name, f"{doorstep.__version__} in {folder}", ok=True, needed=True)


def _look_for_python(name: str) -> Finding:
    system = f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"
    return Finding(name, f"{platform.python_version()} at {sys.executable} ({system})", ok=True, needed=True)


def _look_for_library(name: str) -> Finding:
    try:
        load()
    except doorstep.DoorstepError as error:
        return Finding(name, str(error.args[0]), ok=False, needed=True, remedy=error.hint)
    return Finding(name, LIBRARY_PATH, ok=True, needed=True)


def _look_for_cpu_features(name: str) -> Finding:
    features = cpu_features()
    missing = [feature for feature, there in features.items() if not there]
    if missing:
        remedy = "Run doorstep on an x86-64 CPU from 2013 or later."
        return Finding(name, f"this CPU lacks {' '.join(missing)}", ok=False, needed=True, remedy=remedy)
    return Finding(name, " ".join(features), ok=True, needed=True)


def _look_for_threads(name: str) -> Finding:
    count = default_thread_count()
    allowed = len(os.sched_getaffinity(0))
    reason = f"this process may run on {allowed} of {os.cpu_count()} CPUs"
    if count < allowed:
        reason += ", and its control group grants less CPU time than that"
    return Finding(name, f"{count}: {reason}", ok=True)


def _look_for_nvidia_driver(name: str) -> Finding:
    """Reads files only: opening the driver would initialise it."""
    library = ctypes.util.find_library("cuda")
    if _DRIVER_VERSION_FILE.exists():
        version = _DRIVER_VERSION_FILE.read_text(encoding="utf-8", errors="replace").splitlines()[0]
        if library:
            return Finding(name, f"{version}; {library}", ok=True)
        remedy = "Install the driver's user libraries (libcuda.so.1); in a container, let the runtime mount them."
        return Finding(name, f"{version}, but libcuda.so.1 is not on the library path", ok=False, remedy=remedy)
    if library:
        remedy = "Load the NVIDIA kernel module; in a container, start it with access to the GPU."
        return Finding(name, f"{library}, but no kernel module is loaded", ok=False, remedy=remedy)
    return Finding(name, "none", ok=False, remedy="Not needed: worlds run on the CPU.")


def _look_for_kernels(name: str) -> Finding:
    architectures = " ".join(cuda_architectures()) or "no architecture"
    found = f"machine code for {architectures}; for other GPUs PTX, which is compiled when it is first used"
    return Finding(name, found, ok=True)


def _look_for_cuda_driver(name: str) -> Finding:
    try:
        driver = cuda_driver()
    except doorstep.DoorstepError as error:
        return _not_usable(name, error)
    versions = f"CUDA {_version(driver.version)}, at least {_version(driver.minimum_version)} is needed"
    return Finding(name, f"{versions}; {count(driver.device_count, 'device')}", ok=True)


def _look_for_devices() -> Iterator[Finding]:
    """Findings of each GPU; none without a driver, whose own finding has the reason."""
    try:
        count = cuda.Device.count()
    except doorstep.DoorstepError:
        return
    for index in range(count):
        found = _look(f"cuda:{index}", _look_for_device)
        yield found
        if found.ok:
            yield _look(f"cuda:{index} memory", _look_for_kernel_memory)


def _look_for_device(name: str) -> Finding:
    try:
        device = cuda.Device(int(name.removeprefix("cuda:")))
    except doorstep.DoorstepError as error:
        return _not_usable(name, error)
    major, minor = device.compute_capability
    memory = f"{device.free_bytes / 2**30:.1f} of {device.total_bytes / 2**30:.1f} GiB free"
    kernels = _KERNEL_SOURCES[device.kernel_source]
    found = f"{device.name}, compute capability {major}.{minor}, {memory}; {kernels}; UUID {device.uuid}"
    return Finding(name, found, ok=True)


def _look_for_kernel_memory(name: str) -> Finding:
    """What kernels reserve beside the memory of worlds: stacks, and scratch memory of simulators."""
    index = int(name.removeprefix("cuda:").removesuffix(" memory"))
    try:
        infos = {kernel: cuda_kernel(index, _AGENTS, kernel) for kernel in Kernel}
    except doorstep.DoorstepError as error:
        return _not_usable(name, error)
    taken = []
    for kernel, info in infos.items():
        scratch = f" and {info.scratch_memory / 1e6:.0f} MB of scratch memory" if info.scratch_memory else ""
        taken.append(f"{_KERNELS[kernel]} {info.local_memory / 1e6:.0f} MB of stacks{scratch}")
    return Finding(name, f"kernels reserve, with {_AGENTS} agents: {'; '.join(taken)}", ok=True)


_AGENTS = 2

_KERNELS = {
    Kernel.STEP: "steps",
    Kernel.LEVEL_STEP: "steps of levels",
    Kernel.VIEWS: "views",
    Kernel.LEVEL_VIEWS: "views of levels",
    Kernel.ACT: "policies",
}

_KERNEL_SOURCES = {
    "embedded": "its kernels are in the library",
    "compiler": "its kernels are compiled once, then kept on disk",
    "driver": "its kernels are compiled by the driver when a simulator is made",
}


def _look_for_automatic_device(name: str) -> Finding:
    """Makes simulators: only that proves that they can be made."""
    try:
        with doorstep.Simulator(1, device="auto") as sim:
            chosen = sim.device
    except doorstep.DoorstepError as error:
        return _not_usable(name, error)
    if chosen != "cpu":
        return Finding(name, chosen, ok=True)
    try:
        doorstep.Simulator(1, device="cuda:0").close()
    except doorstep.DoorstepError as error:
        return Finding(name, f"cpu, because {_described(error)}", ok=True)
    return Finding(name, chosen, ok=True)


def _look_for_renderer(renderer: Renderer) -> Callable[[str], Finding]:
    def look(name: str) -> Finding:
        try:
            return Finding(name, describe_renderer(renderer), ok=True)
        except doorstep.DoorstepError as error:
            return _not_usable(name, error)

    return look


def _not_usable(name: str, error: doorstep.DoorstepError) -> Finding:
    return Finding(name, _described(error), ok=False, remedy=error.hint)


def _described(error: doorstep.DoorstepError) -> str:
    return f"{error.args[0]} [{type(error).__name__}]"


def _version(number: int) -> str:
    """The driver's version as text: 12090 is 12.9."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _look_for_package(requirement: str, purpose: str, needed: bool = False) -> Callable[[str], Finding]:
    def look(name: str) -> Finding:
        try:
            return Finding(name, importlib.metadata.version(name), ok=True, needed=needed)
        except importlib.metadata.PackageNotFoundError:
            remedy = f'{purpose}: pip install "{requirement}"'
            return Finding(name, "not installed", ok=False, needed=needed, remedy=remedy)

    return look


_LOOKS: dict[str, Callable[[str], Finding]] = {
    "doorstep": _look_for_doorstep,
    "python": _look_for_python,
    "library": _look_for_library,
    "CPU features": _look_for_cpu_features,
    "threads": _look_for_threads,
    "NVIDIA driver": _look_for_nvidia_driver,
    "CUDA kernels": _look_for_kernels,
    "CUDA driver": _look_for_cuda_driver,
    'device="auto"': _look_for_automatic_device,
    **{
        f"cameras: {renderer.name.lower()}": _look_for_renderer(renderer)
        for renderer in Renderer
        if renderer != Renderer.AUTO
    },
    "numpy": _look_for_package("numpy>=1.26", "doorstep needs it", needed=True),
    "torch": _look_for_package("torch>=2.6", "Training, doorstep.torch and Tensor.to_torch() need it"),
    "jax": _look_for_package("jax>=0.6", "doorstep.jax and Tensor.to_jax() need it"),
    "av": _look_for_package("av>=14", "Only videos need it"),
    "matplotlib": _look_for_package("matplotlib>=3.8", "Only doorstep plot and doorstep evaluate --plot need it"),
    "aiohttp": _look_for_package("aiohttp>=3.10", "Only doorstep serve needs it"),
    "viser": _look_for_package("viser>=1.1,<2", "Only doorstep view needs it"),
    "shtab": _look_for_package("shtab>=1.7", "Only doorstep --print-completion needs it"),
}
