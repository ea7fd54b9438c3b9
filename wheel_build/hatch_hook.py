"""Hatchling build hook: compiles the native libraries and adds them and their dependencies to the wheel.

With it every installation from sources (`pip install .`, from a repository, from the sdist) is complete. The wheel is
tagged `linux_x86_64`, for the machine it was built on: repair_wheel.py grades it for other machines.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Hatchling loads this file by its path, so its folder must be added for imports.
sys.path.insert(0, str(Path(__file__).resolve().parent))

import native_build
import repair_wheel
import sbom
import third_party
from build_steps import say

LIBRARIES_IN_WHEEL = "doorstep/_native"
HEADERS_IN_WHEEL = "doorstep/include"
TAG = "py3-none-linux_x86_64"


class NativeLibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs CMake with the pinned compiler before hatchling collects the files of the wheel, and adds the headers."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the libraries; an editable install gets them beside the Python sources, a wheel contains them."""
        root = Path(self.root)
        editable = version == "editable"
        # Link with the wheel's final search path: auditwheel's replacement would depend on the old one's length.
        say("compiling the libraries, which takes some minutes")
        rpath = str(native_build.third_party_folder(root)) if editable else third_party.RPATH_IN_WHEEL
        libraries = native_build.build_libraries(root, root / "build" / "library", rpath)
        build_data["pure_python"] = False
        build_data["tag"] = TAG
        if editable:
            for library in libraries:
                shutil.copy2(library, root / "pkg" / LIBRARIES_IN_WHEEL)
            shutil.copytree(root / "native" / "include", root / "pkg" / HEADERS_IN_WHEEL, dirs_exist_ok=True)
        else:
            build_data["force_include"][str(root / "native" / "include")] = HEADERS_IN_WHEEL
            for library in libraries:
                build_data["force_include"][str(library)] = f"{LIBRARIES_IN_WHEEL}/{library.name}"
            build_data["sbom_files"].append(str(sbom.write(root, root / "build" / "sbom")))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Replace the wheel by one that contains Embree and the DirectX Shader Compiler."""
        if version == "editable" or os.environ.get(repair_wheel.GRAFTED_LATER_VARIABLE):
            return
        say("putting Embree and the DirectX Shader Compiler into the wheel")
        wheel = Path(artifact_path)
        with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
            grafts = native_build.third_party_folder(Path(self.root))
            repair_wheel.graft(wheel, Path(folder), grafts).replace(wheel)
