"""Checks of the shared libraries in a wheel: they load on other machines, and have the expected contents."""

from __future__ import annotations

import re
from collections.abc import Iterator

import kernel_images
import sbom
import third_party
from kernel_image_file import PTX, ImageName, cubin_architecture, image_names, unpack
from wheel_file import (
    GRAFTS,
    LIBRARY,
    OWN_LIBRARIES,
    RENDER_LIBRARY,
    SharedLibrary,
    Wheel,
    header_functions,
)

# Parts of glibc 2.28. No C++ runtime (the libraries contain the parts they call), and nothing of CUDA or Vulkan. Only
# NVIDIA's PTX compiler and the third-party libraries need libm: a step uses doorstep's own functions.
GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}
HIGHEST_GLIBC = (2, 28)
# The libraries that the rendering library needs, and the symbols it imports from them. They also export operator new
# and delete, which it must not import.
GRAFTED = {name.rpartition("/")[2] for name in GRAFTS}
THIRD_PARTY_FUNCTION = re.compile(r"rtc[A-Z]\w+|DxcCreateInstance")
# Paths that are the same on every Linux machine.
SYSTEM_FOLDERS = {"proc", "sys", "dev"}
# Strings of NVIDIA's PTX compiler that are not paths, but match the pattern.
NO_PATHS = {b"/path/to/file", b"/sm_100a/sm_100f/sm_103a/sm_103f/sm_107a/sm_107f/sm_110a/sm_110fmask"}

# Shorter strings occur by chance in megabytes of machine code.
ABSOLUTE_PATH = re.compile(rb"/(?<![\w.:/~$}]/)(?=[\w.+@/-]{9})([A-Za-z0-9_.+-]+)(?:/[A-Za-z0-9_.+@-]+)+")


def check_needed(wheel: Wheel) -> Iterator[str]:
    """Libraries depend only on libraries of every machine; the rendering library also on those in the wheel."""
    for library in wheel.libraries.values():
        own = GRAFTED if library.name == RENDER_LIBRARY else set()
        needed = set(library.dynamic_entries("DT_NEEDED"))
        for name in sorted(needed - GLIBC - own):
            yield f"{library.short_name} needs {name}, which is not among {', '.join(sorted(GLIBC | own))}"
        for name in sorted(own - needed):
            yield f"{library.short_name} does not need {name}, which is in the wheel for it"


def check_imports(wheel: Wheel) -> Iterator[str]:
    """Every symbol that a library imports is glibc's, or one of the few of the third-party libraries."""
    for name in OWN_LIBRARIES:
        library = wheel.libraries[name]
        for symbol in library.unversioned_imports():
            if name != RENDER_LIBRARY or not THIRD_PARTY_FUNCTION.fullmatch(symbol):
                yield f"{library.short_name} imports {symbol}, which is for no library that it needs to bring"


def check_runpath(wheel: Wheel) -> Iterator[str]:
    """Search paths contain only the wheel; otherwise the system's defaults apply."""
    for library in wheel.libraries.values():
        folders = _search_path(library)
        for folder in folders:
            if folder != "$ORIGIN" and not folder.startswith("$ORIGIN/"):
                yield f"{library.short_name} looks for libraries in {folder!r}, which is not relative to $ORIGIN"
        if library.name == RENDER_LIBRARY and third_party.RPATH_IN_WHEEL not in folders:
            yield f"{library.short_name} does not look for libraries in {third_party.RPATH_IN_WHEEL}"


def check_symbol_versions(wheel: Wheel) -> Iterator[str]:
    """Libraries start on the oldest glibc that the tag promises."""
    for library in wheel.libraries.values():
        for version, file in library.needed_versions():
            match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
            if match is None:
                yield f"{library.short_name} needs {version} of {file}, which is not a glibc version"
            elif (int(match[1]), int(match[2])) > HIGHEST_GLIBC:
                yield f"{library.short_name} needs {version}, above GLIBC_{HIGHEST_GLIBC[0]}.{HIGHEST_GLIBC[1]}"


def check_exports(wheel: Wheel) -> Iterator[str]:
    """The project's libraries export the functions of their headers and nothing else."""
    for name, header in OWN_LIBRARIES.items():
        library = wheel.libraries[name]
        exported, declared = library.exports(), header_functions(wheel.project, header)
        for function in sorted(exported - declared):
            yield f"{library.short_name} exports {function}, which {header} does not declare"
        for function in sorted(declared - exported):
            yield f"{header} declares {function}, which {library.short_name} does not export"


def check_grafts(wheel: Wheel) -> Iterator[str]:
    """Third-party libraries are the pinned ones, except for their names."""
    for name, pinned in GRAFTS.items():
        library = wheel.libraries[name]
        if library.dynamic_entries("DT_SONAME") != [library.short_name]:
            yield f"{library.short_name} has the soname {library.dynamic_entries('DT_SONAME')}"
        if library.loaded_content_hash() != pinned.loaded_content_sha256:
            yield f"{library.short_name} has other content than {pinned.file} of {pinned.name} {pinned.version}"


def check_versions(wheel: Wheel) -> Iterator[str]:
    """Components report the versions listed in the bill of materials."""
    texts = {name: (pinned.version_text, f"{pinned.name} {pinned.version}") for name, pinned in GRAFTS.items()}
    version = sbom.ptx_compiler_version()
    texts[LIBRARY] = (f" V{version}\0".encode(), f"NVIDIA's PTX compiler {version}")
    for name, (text, what) in texts.items():
        if text not in wheel.files[name]:
            yield f"{wheel.libraries[name].short_name} does not have the version text of {what}"


def check_kernels(wheel: Wheel) -> Iterator[str]:
    """The library has PTX of every module, and machine code for the chosen architectures."""
    images = unpack(wheel.files[LIBRARY])
    chosen = {PTX, *kernel_images.chosen_architectures()}
    expected = {
        ImageName(module.number, one)
        for module in kernel_images.MODULES
        for one in chosen.intersection((PTX, *module.architectures))
    }
    for name in sorted(expected - images.keys()):
        yield f"the library has no kernels for {_describe(name)}"
    for name in sorted(images.keys() - expected):
        yield f"the library has kernels for {_describe(name)}, which were not requested"
    for name, content in images.items():
        found = PTX if content.startswith(b"//") and content.endswith(b"\0") else cubin_architecture(content)
        if found != name.architecture:
            yield f"the kernels for {_describe(name)} are something else"


def embedded_kernels(wheel: Wheel) -> str:
    """The forms that the library has kernels in, such as `PTX, machine code for sm_80 sm_90`."""
    architectures = sorted({name.architecture for name in image_names(wheel.files[LIBRARY])} - {PTX})
    return f"PTX, machine code for {' '.join(f'sm_{one}' for one in architectures) or 'none'}"


def check_paths(wheel: Wheel) -> Iterator[str]:
    """The wheel contains no paths of the machine that built it; third-party libraries are exempt."""
    for name in OWN_LIBRARIES:
        library = wheel.libraries[name]
        for match in ABSOLUTE_PATH.finditer(library.content):
            if match[1].decode() not in SYSTEM_FOLDERS and match[0] not in NO_PATHS:
                yield f"{library.short_name} contains the absolute path {match[0].decode()}"
    project = str(wheel.project).encode()
    for name, content in wheel.files.items():
        if project in content:
            yield f"{name} contains the path of the project, {project.decode()}"


def _search_path(library: SharedLibrary) -> list[str]:
    values = [value for tag in ("DT_RPATH", "DT_RUNPATH") for value in library.dynamic_entries(tag)]
    return [folder for value in values for folder in value.split(":")]


def _describe(name: ImageName) -> str:
    target = f"sm_{name.architecture}" if name.architecture else "PTX"
    return f"{kernel_images.MODULE_OF_NUMBER[name.module].name} as {target}"
