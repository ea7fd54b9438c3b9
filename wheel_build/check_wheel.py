"""Refuses a wheel that would not work on other machines or is not fit to be published.

    python wheel_build/check_wheel.py dist/doorstep-*.whl

Each check yields one sentence per fault it finds; a wheel without faults may be published.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from installer.sources import WheelFile

import sbom
import third_party
from library_checks import (
    check_exports,
    check_grafts,
    check_imports,
    check_kernels,
    check_needed,
    check_paths,
    check_runpath,
    check_symbol_versions,
    check_versions,
    embedded_kernels,
)
from repair_wheel import PLATFORM
from wheel_file import GRAFTS, LIBRARY, OWN_LIBRARIES, Wheel

PROJECT = Path(__file__).resolve().parent.parent

TAG = f"py3-none-{PLATFORM}"
HARD_DEPENDENCIES = {"numpy"}
PACKAGE_SUFFIXES = {".py", ".txt", ".typed", ".html", ".js", ".css", ".safetensors"}
NVIDIA_LICENCE = "licenses/NVIDIA-CUDA-Toolkit.txt"
CPP_LIBRARY_LICENCE = "licenses/libcxx.txt"
# The licences of the project and of the components in the wheel, each with words that only it contains.
LICENCES = {
    "LICENSE": "Apache License",
    NVIDIA_LICENCE: "End User License Agreement",
    CPP_LIBRARY_LICENCE: f"libc++ {sbom.CPP_LIBRARY_VERSION}",
    **{library.licence_file: f"{library.name} {library.version}" for library in third_party.LIBRARIES},
}
BILL_OF_MATERIALS = f"sboms/{sbom.FILE}"
METADATA_FILES = {
    "METADATA",
    "WHEEL",
    "RECORD",
    "entry_points.txt",
    BILL_OF_MATERIALS,
    *(f"licenses/{name}" for name in LICENCES),
}
SIZE_LIMIT = 48_000_000  # bytes


def check_tag(wheel: Wheel) -> Iterator[str]:
    """The tags and versions in the file name and the metadata agree, and are the intended ones."""
    version = sbom.header_version(wheel.project)
    expected = f"doorstep-{version}-{TAG}.whl"
    if wheel.path.name != expected:
        yield f"the file is named {wheel.path.name}, not {expected}"
    description = wheel.message("WHEEL")
    if description.get_all("Tag") != [TAG]:
        yield f"WHEEL has the tags {description.get_all('Tag')}, not {TAG} alone"
    if description["Root-Is-Purelib"] != "false":
        yield "WHEEL says Root-Is-Purelib, although there is a library inside"
    if wheel.message("METADATA")["Version"] != version:
        yield f"METADATA has version {wheel.message('METADATA')['Version']}, doorstep.h has {version}"


def check_dependencies(wheel: Wheel) -> Iterator[str]:
    """An installation without extras installs only numpy."""
    requirements = wheel.message("METADATA").get_all("Requires-Dist") or []
    names = {re.split(r"[^\w.-]", text)[0] for text in requirements if "extra ==" not in text}
    if names != HARD_DEPENDENCIES:
        yield f"METADATA requires {sorted(names)}, not {sorted(HARD_DEPENDENCIES)}"


def check_files(wheel: Wheel) -> Iterator[str]:
    """The wheel contains the package's sources, the libraries, the headers, the metadata, and nothing else."""
    sources = wheel.project / "pkg"
    package = {
        str(path.relative_to(sources)) for path in (sources / "doorstep").rglob("*") if path.suffix in PACKAGE_SUFFIXES
    }
    include = wheel.project / "native" / "include"
    headers = {f"doorstep/include/{path.relative_to(include)}" for path in include.rglob("*.h")}
    metadata = {f"{wheel.metadata_folder}/{name}" for name in METADATA_FILES}
    expected = {*OWN_LIBRARIES, *GRAFTS} | headers | package | metadata
    for name in sorted(wheel.files.keys() - expected):
        yield f"{name} does not belong into the wheel"
    for name in sorted(expected - wheel.files.keys()):
        yield f"{name} is missing"


def check_record(wheel: Wheel) -> Iterator[str]:
    """RECORD lists every file with its hash and size."""
    with WheelFile.open(wheel.path) as source:
        try:
            source.validate_record()
        except WheelFile.validation_error as error:
            yield from error.issues


def check_licence(wheel: Wheel) -> Iterator[str]:
    """The wheel contains and names its licences: the project's, and those of its components."""
    for name, words in LICENCES.items():
        if words.encode() not in wheel.metadata_file(f"licenses/{name}"):
            yield f"licenses/{name} is missing or does not have the words {words}"
    expression = wheel.message("METADATA")["License-Expression"]
    if expression != sbom.licence_expression():
        yield f"METADATA has the licence {expression}, not {sbom.licence_expression()}"


def check_bill_of_materials(wheel: Wheel) -> Iterator[str]:
    """The bill of materials lists all components, with versions, hashes and licences."""
    try:
        listed = json.loads(wheel.metadata_file(BILL_OF_MATERIALS))
    except ValueError as error:
        yield f"{BILL_OF_MATERIALS} is not JSON: {error}"
        return
    expected = sbom.bill_of_materials(wheel.project)
    for key in sorted(expected.keys() | listed.keys()):
        if listed.get(key) != expected.get(key):
            yield f"{BILL_OF_MATERIALS} has {key} {listed.get(key)}, not {expected.get(key)}"


def check_size(wheel: Wheel) -> Iterator[str]:
    """The wheel is not larger than the limit."""
    size = wheel.path.stat().st_size
    if size > SIZE_LIMIT:
        yield f"the wheel has {size} bytes, more than {SIZE_LIMIT}"


CHECKS: tuple[Callable[[Wheel], Iterator[str]], ...] = (
    check_tag,
    check_dependencies,
    check_files,
    check_record,
    check_licence,
    check_bill_of_materials,
    check_size,
    check_needed,
    check_imports,
    check_runpath,
    check_symbol_versions,
    check_exports,
    check_grafts,
    check_versions,
    check_kernels,
    check_paths,
)


def find_faults(path: Path) -> dict[str, list[str]]:
    """Faults by name of the check, in the order of CHECKS; without its libraries a wheel is not checked further."""
    return _faults_of(Wheel(path, PROJECT))


def _faults_of(wheel: Wheel) -> dict[str, list[str]]:
    missing = [name for name in (*OWN_LIBRARIES, *GRAFTS) if name not in wheel.files]
    if missing:
        return {"check_files": [f"{name} is missing" for name in missing]}
    return {check.__name__: list(check(wheel)) for check in CHECKS}


def check_wheel(path: Path) -> bool:
    """Print the verdict of every check, and which kernels there are; true if there is no fault."""
    wheel = Wheel(path, PROJECT)
    faults = _faults_of(wheel)
    for name, sentences in faults.items():
        print(f"  {'fault' if sentences else 'ok':6}{name.removeprefix('check_').replace('_', ' ')}")
        for sentence in sentences:
            print(f"          {sentence}")
    if LIBRARY in wheel.files:
        print(f"doorstep: kernels: {embedded_kernels(wheel)}")
    return not any(faults.values())


if __name__ == "__main__":
    verdicts = [check_wheel(Path(argument)) for argument in sys.argv[1:]]
    sys.exit(0 if all(verdicts) else 1)
