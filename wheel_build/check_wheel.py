"""Refuses a wheel that would disappoint on someone else's machine.

    python wheel_build/check_wheel.py dist/doorstep-*.whl

Each check yields one sentence per fault it finds; a wheel without faults may be published.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from functools import cached_property
from io import BytesIO
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

import kernel_images
from kernel_image_file import PTX, ImageName, cubin_architecture, unpack

PROJECT = Path(__file__).resolve().parent.parent

TAG = "py3-none-manylinux_2_28_x86_64"
LIBRARY = "doorstep/_native/libdoorstep.so"
# Part of glibc 2.28. Not the C++ runtime, which is inside, and nothing of CUDA. libm is for NVIDIA's PTX compiler: a
# step computes with its own functions.
NEEDED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}
HIGHEST_GLIBC = (2, 28)
HARD_DEPENDENCIES = {"numpy"}
PACKAGE_SUFFIXES = {".py", ".typed"}
NVIDIA_LICENCE = "licenses/NVIDIA-CUDA-Toolkit.txt"
METADATA_FILES = {
    "METADATA",
    "WHEEL",
    "RECORD",
    "entry_points.txt",
    "licenses/LICENSE",
    f"licenses/{NVIDIA_LICENCE}",
}
LICENCE_EXPRESSION = "Apache-2.0 AND LicenseRef-NVIDIA-Proprietary"
# Paths that are the same on every Linux machine.
SYSTEM_FOLDERS = {"proc", "sys", "dev"}
# Texts of NVIDIA's PTX compiler that only look like paths.
NO_PATHS = {b"/path/to/file", b"/sm_100a/sm_100f/sm_103a/sm_103f/sm_107a/sm_107f/sm_110a/sm_110fmask"}
SIZE_LIMIT = 32 * 1024 * 1024

# Shorter ones are there by chance, among megabytes of machine code.
ABSOLUTE_PATH = re.compile(rb"/(?<![\w.:/~$}]/)(?=[\w.+@/-]{9})([A-Za-z0-9_.+-]+)(?:/[A-Za-z0-9_.+@-]+)+")


@dataclass(frozen=True)
class Wheel:
    """A wheel, opened as far as the checks need it."""

    path: Path
    project: Path

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Contents by name."""
        with zipfile.ZipFile(self.path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}

    @cached_property
    def metadata_folder(self) -> str:
        """Name of the .dist-info folder, as the file name of the wheel demands it."""
        return "-".join(self.path.name.split("-")[:2]) + ".dist-info"

    def message(self, name: str) -> Message:
        """A metadata file, parsed; empty if it is missing."""
        return Parser().parsestr(self.files.get(f"{self.metadata_folder}/{name}", b"").decode())

    @cached_property
    def elf(self) -> ELFFile:
        """The native library."""
        return ELFFile(BytesIO(self.files[LIBRARY]))

    def dynamic_entries(self, tag: str) -> list[str]:
        """Strings of the library's dynamic section that carry this tag, such as DT_NEEDED."""
        section = self.elf.get_section_by_name(".dynamic")
        assert isinstance(section, DynamicSection)
        attribute = tag.removeprefix("DT_").lower()
        return [getattr(entry, attribute) for entry in section.iter_tags(tag)]


def check_tag(wheel: Wheel) -> Iterator[str]:
    """The name of the file and its metadata promise the same, and what they promise is intended."""
    version = header_version(wheel.project)
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
    """An install without extras brings numpy and nothing else."""
    requirements = wheel.message("METADATA").get_all("Requires-Dist") or []
    names = {re.split(r"[^\w.-]", text)[0] for text in requirements if "extra ==" not in text}
    if names != HARD_DEPENDENCIES:
        yield f"METADATA requires {sorted(names)}, not {sorted(HARD_DEPENDENCIES)}"


def check_files(wheel: Wheel) -> Iterator[str]:
    """The package as it is in the sources, the library, its headers, the metadata, and nothing else."""
    sources = wheel.project / "pkg"
    package = {
        str(path.relative_to(sources)) for path in (sources / "doorstep").rglob("*") if path.suffix in PACKAGE_SUFFIXES
    }
    headers = {f"doorstep/include/{path.name}" for path in (wheel.project / "native" / "include").iterdir()}
    expected = {LIBRARY} | headers | package | {f"{wheel.metadata_folder}/{name}" for name in METADATA_FILES}
    for name in sorted(wheel.files.keys() - expected):
        yield f"{name} does not belong into the wheel"
    for name in sorted(expected - wheel.files.keys()):
        yield f"{name} is missing"


def check_record(wheel: Wheel) -> Iterator[str]:
    """RECORD lists every file with its hash, so that an installer accepts the wheel and can remove it again."""
    name_of_record = f"{wheel.metadata_folder}/RECORD"
    recorded = {}
    for line in wheel.files.get(name_of_record, b"").decode().splitlines():
        name, digest, _ = line.rsplit(",", 2)
        recorded[name] = digest
    for name, content in wheel.files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        if name != name_of_record and recorded.get(name) != f"sha256={digest}":
            yield f"RECORD has {recorded.get(name, 'nothing')} for {name}, not sha256={digest}"


def check_licence(wheel: Wheel) -> Iterator[str]:
    """The licences are inside and named: the project's, and that of NVIDIA's compiler in the library."""
    texts = {"LICENSE": b"Apache License", NVIDIA_LICENCE: b"End User License Agreement"}
    for name, title in texts.items():
        if title not in wheel.files.get(f"{wheel.metadata_folder}/licenses/{name}", b""):
            yield f"licenses/{name} is missing or is not the {title.decode()}"
    expression = wheel.message("METADATA")["License-Expression"]
    if expression != LICENCE_EXPRESSION:
        yield f"METADATA has the licence {expression}, not {LICENCE_EXPRESSION}"


def check_size(wheel: Wheel) -> Iterator[str]:
    """No large file slipped in."""
    size = wheel.path.stat().st_size
    if size > SIZE_LIMIT:
        yield f"the wheel has {size} bytes, more than {SIZE_LIMIT}"


def check_needed(wheel: Wheel) -> Iterator[str]:
    """The library loads what every machine has, and nothing else."""
    for name in sorted(set(wheel.dynamic_entries("DT_NEEDED")) - NEEDED):
        yield f"the library needs {name}, which is not among {', '.join(sorted(NEEDED))}"


def check_imports(wheel: Wheel) -> Iterator[str]:
    """Every symbol that the library imports is glibc's: none is left for another library to bring by chance."""
    symbols, versions = wheel.elf.get_section_by_name(".dynsym"), wheel.elf.get_section_by_name(".gnu.version")
    assert isinstance(symbols, SymbolTableSection)
    assert isinstance(versions, GNUVerSymSection)
    for index, symbol in enumerate(symbols.iter_symbols()):
        # Only symbols of libraries that the linker saw have a version's number, the others the name of a reserved one.
        if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name and isinstance(versions.get_symbol(index)["ndx"], str):
            yield f"the library imports {symbol.name}, which no library that it needs is known to have"


def check_runpath(wheel: Wheel) -> Iterator[str]:
    """Libraries are looked for beside the library or where the system has them."""
    for tag in ("DT_RPATH", "DT_RUNPATH"):
        for value in wheel.dynamic_entries(tag):
            for folder in value.split(":"):
                if folder != "$ORIGIN" and not folder.startswith("$ORIGIN/"):
                    yield f"the library has {tag.removeprefix('DT_')} {folder!r}, which is not relative to $ORIGIN"


def check_symbol_versions(wheel: Wheel) -> Iterator[str]:
    """The library starts on the oldest glibc that the tag promises."""
    section = wheel.elf.get_section_by_name(".gnu.version_r")
    assert isinstance(section, GNUVerNeedSection)
    for file, versions in section.iter_versions():
        for version in versions:
            match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version.name)
            if match is None:
                yield f"the library needs {version.name} of {file.name}, which is not a glibc version"
            elif (int(match[1]), int(match[2])) > HIGHEST_GLIBC:
                yield f"the library needs {version.name}, above GLIBC_{HIGHEST_GLIBC[0]}.{HIGHEST_GLIBC[1]}"


def check_exports(wheel: Wheel) -> Iterator[str]:
    """The library exports the functions of doorstep.h and nothing else."""
    section = wheel.elf.get_section_by_name(".dynsym")
    assert isinstance(section, SymbolTableSection)
    exported = {symbol.name for symbol in section.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name}
    declared = header_functions(wheel.project)
    for name in sorted(exported - declared):
        yield f"the library exports {name}, which doorstep.h does not declare"
    for name in sorted(declared - exported):
        yield f"doorstep.h declares {name}, which the library does not export"


def check_kernels(wheel: Wheel) -> Iterator[str]:
    """The library has PTX of every module, and machine code for every architecture."""
    images = unpack(wheel.files[LIBRARY])
    architectures = (PTX, *kernel_images.ARCHITECTURES)
    expected = {ImageName(module.number, one) for module in kernel_images.MODULES for one in architectures}
    for name in sorted(expected - images.keys()):
        yield f"the library has no kernels for {_describe(name)}"
    for name in sorted(images.keys() - expected):
        yield f"the library has kernels for {_describe(name)}, which nobody asked for"
    for name, content in images.items():
        found = PTX if content.startswith(b"//") and content.endswith(b"\0") else cubin_architecture(content)
        if found != name.architecture:
            yield f"the kernels for {_describe(name)} are something else"


def _describe(name: ImageName) -> str:
    target = f"sm_{name.architecture}" if name.architecture else "PTX"
    (module,) = (module.name for module in kernel_images.MODULES if module.number == name.module)
    return f"{module} as {target}"


def check_paths(wheel: Wheel) -> Iterator[str]:
    """Nothing in the wheel tells about the machine that built it."""
    for match in ABSOLUTE_PATH.finditer(wheel.files[LIBRARY]):
        if match[1].decode() not in SYSTEM_FOLDERS and match[0] not in NO_PATHS:
            yield f"the library contains the absolute path {match[0].decode()}"
    for name, content in wheel.files.items():
        if str(wheel.project).encode() in content:
            yield f"{name} contains the path of the project, {wheel.project}"


CHECKS: tuple[Callable[[Wheel], Iterator[str]], ...] = (
    check_tag,
    check_dependencies,
    check_files,
    check_record,
    check_licence,
    check_size,
    check_needed,
    check_imports,
    check_runpath,
    check_symbol_versions,
    check_exports,
    check_kernels,
    check_paths,
)


def header_version(project: Path) -> str:
    """DS_VERSION_STRING of doorstep.h."""
    match = re.search(r'^#define DS_VERSION_STRING "([^"]+)"', _header(project), re.MULTILINE)
    assert match is not None, "doorstep.h has no DS_VERSION_STRING"
    return match[1]


def header_functions(project: Path) -> set[str]:
    """Names of the functions that doorstep.h declares."""
    return set(re.findall(r"^DS_API\b[^(;]*?\b(ds_\w+)\(", _header(project), re.MULTILINE))


def _header(project: Path) -> str:
    return (project / "native" / "include" / "doorstep.h").read_text(encoding="utf-8")


def find_faults(path: Path, project: Path = PROJECT) -> dict[str, list[str]]:
    """Faults by name of the check, in the order of CHECKS; checks of a library that is missing are left out."""
    wheel = Wheel(path, project)
    if LIBRARY not in wheel.files:
        return {"check_files": [f"{LIBRARY} is missing"]}
    return {check.__name__: list(check(wheel)) for check in CHECKS}


def check_wheel(path: Path) -> bool:
    """Print the verdict of every check; true if there is no fault."""
    faults = find_faults(path)
    for name, sentences in faults.items():
        print(f"  {'fault' if sentences else 'ok':6}{name.removeprefix('check_').replace('_', ' ')}")
        for sentence in sentences:
            print(f"          {sentence}")
    return not any(faults.values())


if __name__ == "__main__":
    verdicts = [check_wheel(Path(argument)) for argument in sys.argv[1:]]
    sys.exit(0 if all(verdicts) else 1)
