"""Installs the CUDA compilers of cuda_requirements.txt, checked by hash, into a folder below build/."""

from __future__ import annotations

import hashlib
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from build_steps import NativeBuildError, exclusive, run, say

REQUIREMENTS = Path(__file__).resolve().with_name("cuda_requirements.txt")


@dataclass(frozen=True)
class CudaPackages:
    """The installed compilers."""

    folder: Path
    identity: str  # changes whenever a version changes

    @property
    def nvrtc(self) -> Path:
        """The library that compiles CUDA C++ to PTX."""
        return self.folder / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"

    @property
    def ptxas(self) -> Path:
        """The program that compiles PTX to machine code."""
        return self.folder / "nvidia" / "cuda_nvcc" / "bin" / "ptxas"

    @property
    def ptx_compiler(self) -> Path:
        """The static library that does the same inside doorstep."""
        return self.folder / "nvidia" / "cu13" / "lib" / "libnvptxcompiler_static.a"

    @property
    def ptx_compiler_licence(self) -> Path:
        """What NVIDIA wants to be passed on with it."""
        (metadata,) = self.folder.glob("nvidia_nvptxcompiler-*.dist-info")
        return metadata / "licenses" / "License.txt"


def install(folder: Path) -> CudaPackages:
    """Install into a folder named after the content of the requirements; nothing happens if it is there."""
    identity = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    packages = CudaPackages(folder / identity, identity)
    with exclusive(folder):
        if not packages.folder.exists():
            for old in folder.iterdir():
                if old.is_dir():
                    shutil.rmtree(old)
            say("fetching the CUDA compilers (145 MB)")
            pending = folder / f"{identity}.pending"
            pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
            run([*pip, "--require-hashes", "--no-deps", "--target", str(pending), "--requirement", str(REQUIREMENTS)])
            pending.rename(packages.folder)
    for path in (packages.nvrtc, packages.ptxas, packages.ptx_compiler):
        if not path.is_file():
            raise NativeBuildError(f"{path} is missing; remove {packages.folder} and build again")
    return packages
