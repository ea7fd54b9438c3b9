"""The bill of materials of the wheel: its third-party components, as CycloneDX, for its metadata."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pinned_packages
import third_party
from third_party import Library, Part

FILE = "doorstep.cdx.json"
PTX_COMPILER = "nvidia-nvptxcompiler"
PTX_COMPILER_LICENCE = "LicenseRef-NVIDIA-Proprietary"
# Its headers come with the compiler and are compiled into the project's libraries.
CPP_LIBRARY = "libc++"
CPP_LIBRARY_VERSION = "19.1"
CPP_LIBRARY_LICENCE = "Apache-2.0 WITH LLVM-exception AND MIT AND NCSA"
PROJECT_LICENCE = "Apache-2.0"


def write(root: Path, folder: Path) -> Path:
    """Write the bill of materials into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(json.dumps(bill_of_materials(root), indent=1) + "\n", encoding="utf-8")
    return path


def bill_of_materials(root: Path) -> dict[str, Any]:
    """Identical for the same sources: no time, no serial number."""
    version = header_version(root)
    components = [*map(_shared_library, third_party.LIBRARIES), _ptx_compiler(), _cpp_runtime(root)]
    product = {
        "type": "library",
        "bom-ref": "doorstep",
        "name": "doorstep",
        "version": version,
        "purl": f"pkg:pypi/doorstep@{version}",
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": product},
        "components": components,
        "dependencies": [{"ref": "doorstep", "dependsOn": [component["bom-ref"] for component in components]}],
    }


def licence_expression() -> str:
    """The licence of the wheel: the project's, and those of all components."""
    expressions = [PROJECT_LICENCE, PTX_COMPILER_LICENCE, CPP_LIBRARY_LICENCE]
    for library in third_party.LIBRARIES:
        expressions += [library.licence, *(part.licence for part in library.parts)]
    return " AND ".join(sorted({licence for expression in expressions for licence in expression.split(" AND ")}))


def header_version(root: Path) -> str:
    """DS_VERSION_STRING of the C API."""
    header = (root / "native" / "include" / "doorstep" / "library.h").read_text(encoding="utf-8")
    match = re.search(r'^#define DS_VERSION_STRING "([^"]+)"', header, re.MULTILINE)
    assert match is not None, "library.h has no DS_VERSION_STRING"
    return match[1]


def ptx_compiler_version() -> str:
    """The component of the compiler that is linked into the library."""
    return _ptx_compiler_pin()[0]


def _shared_library(library: Library) -> dict[str, Any]:
    ((package, version, _),) = _pins(pinned_packages.THIRD_PARTY)
    return {
        **_component(library.name, library.version, library.supplier, library.licence),
        **_hashes(library.sha256),
        "purl": library.purl,
        "components": [_part(library, part) for part in library.parts],
        "externalReferences": [{"type": "website", "url": library.website}],
        "properties": [
            {"name": "doorstep:file", "value": library.file},
            {"name": "doorstep:source", "value": f"pkg:pypi/{package}@{version}"},
        ],
    }


def _part(library: Library, part: Part) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": f"{library.name}: {part.name}",
        "name": part.name,
        "licenses": [{"expression": part.licence}],
    }


def _ptx_compiler() -> dict[str, Any]:
    version, sha256 = _ptx_compiler_pin()
    component = _component("nvPTXCompiler", version, "NVIDIA Corporation", PTX_COMPILER_LICENCE)
    return {**component, **_hashes(sha256), "purl": f"pkg:pypi/{PTX_COMPILER}@{version}"}


def _cpp_runtime(root: Path) -> dict[str, Any]:
    compiler = re.search(r'"ziglang==([^"]+)"', (root / "pyproject.toml").read_text(encoding="utf-8"))
    assert compiler is not None, "pyproject.toml does not pin ziglang"
    return {
        **_component(CPP_LIBRARY, CPP_LIBRARY_VERSION, "LLVM Project", CPP_LIBRARY_LICENCE),
        "externalReferences": [{"type": "website", "url": "https://libcxx.llvm.org"}],
        "properties": [{"name": "doorstep:source", "value": f"pkg:pypi/ziglang@{compiler[1]}"}],
    }


def _ptx_compiler_pin() -> tuple[str, str]:
    ((version, sha256),) = (pin[1:] for pin in _pins(pinned_packages.CUDA) if pin[0] == PTX_COMPILER)
    return version, sha256


def _component(name: str, version: str, supplier: str, licence: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": name,
        "supplier": {"name": supplier},
        "name": name,
        "version": version,
        "licenses": [{"expression": licence}],
    }


def _hashes(sha256: str) -> dict[str, Any]:
    return {"hashes": [{"alg": "SHA-256", "content": sha256}]}


def _pins(requirements: Path) -> list[tuple[str, str, str]]:
    """Name, version and hash of every requirement in a file."""
    text = requirements.read_text(encoding="utf-8")
    return re.findall(r"^([\w.-]+)==(\S+) \\\n\s+--hash=sha256:([0-9a-f]{64})$", text, re.MULTILINE)
