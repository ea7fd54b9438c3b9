"""The bill of materials of the wheel: what of others is inside, as CycloneDX, which goes into its metadata."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import cuda_packages
import third_party
from third_party import Library

FILE = "doorstep.cdx.json"
PTX_COMPILER = "nvidia-nvptxcompiler"
PTX_COMPILER_LICENCE = "LicenseRef-NVIDIA-Proprietary"


def write(root: Path, folder: Path) -> Path:
    """Write the bill of materials into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(json.dumps(bill_of_materials(root), indent=1) + "\n", encoding="utf-8")
    return path


def bill_of_materials(root: Path) -> dict[str, Any]:
    """The same for the same sources: no time, no serial number."""
    version = header_version(root)
    components = [*map(_shared_library, third_party.LIBRARIES), _ptx_compiler()]
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


def header_version(root: Path) -> str:
    """DS_VERSION_STRING of doorstep.h."""
    header = (root / "native" / "include" / "doorstep.h").read_text(encoding="utf-8")
    match = re.search(r'^#define DS_VERSION_STRING "([^"]+)"', header, re.MULTILINE)
    assert match is not None, "doorstep.h has no DS_VERSION_STRING"
    return match[1]


def ptx_compiler_version() -> str:
    """Of the compiler that is linked into the library."""
    return _ptx_compiler_pin()[0]


def _shared_library(library: Library) -> dict[str, Any]:
    ((package, version, _),) = _pins(third_party.REQUIREMENTS)
    return {
        **_component(library.name, library.version, library.supplier, library.licence, library.sha256),
        "externalReferences": [{"type": "website", "url": library.website}],
        "properties": [
            {"name": "doorstep:file", "value": library.file},
            {"name": "doorstep:source", "value": f"pkg:pypi/{package}@{version}"},
        ],
    }


def _ptx_compiler() -> dict[str, Any]:
    version, sha256 = _ptx_compiler_pin()
    component = _component("nvPTXCompiler", version, "NVIDIA Corporation", PTX_COMPILER_LICENCE, sha256)
    return {**component, "purl": f"pkg:pypi/{PTX_COMPILER}@{version}"}


def _ptx_compiler_pin() -> tuple[str, str]:
    ((version, sha256),) = (pin[1:] for pin in _pins(cuda_packages.REQUIREMENTS) if pin[0] == PTX_COMPILER)
    return version, sha256


def _component(name: str, version: str, supplier: str, licence: str, sha256: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": name,
        "supplier": {"name": supplier},
        "name": name,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "licenses": [{"expression": licence}],
    }


def _pins(requirements: Path) -> list[tuple[str, str, str]]:
    """Name, version and hash of every requirement in a file."""
    text = requirements.read_text(encoding="utf-8")
    return re.findall(r"^([\w.-]+)==(\S+) \\\n\s+--hash=sha256:([0-9a-f]{64})$", text, re.MULTILINE)
