"""Installs the CUDA compilers of cuda_requirements.txt, and for tests NVIDIA's headers, into folders below build/.

What is installed is checked by hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pinned_packages
from build_steps import BuildError, say


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
        """The static library that does the same within doorstep."""
        return self.folder / "nvidia" / "cu13" / "lib" / "libnvptxcompiler_static.a"

    @property
    def ptx_compiler_licence(self) -> Path:
        """NVIDIA's licence, which must accompany the library."""
        (metadata,) = self.folder.glob("nvidia_nvptxcompiler-*.dist-info")
        return metadata / "licenses" / "License.txt"


def install(folder: Path) -> CudaPackages:
    """Install into a folder named after the content of the requirements; does nothing if it exists."""

    def fetch(target: Path) -> None:
        say("fetching the CUDA compilers (145 MB)")
        pinned_packages.install(pinned_packages.CUDA, target)

    identity = pinned_packages.identity_of(pinned_packages.CUDA.read_bytes())
    packages = CudaPackages(pinned_packages.fetch_once(folder, identity, fetch), identity)
    for path in (packages.nvrtc, packages.ptxas, packages.ptx_compiler):
        if not path.is_file():
            raise BuildError(f"{path} is missing; remove {packages.folder} and build again")
    return packages


def install_headers(folder: Path) -> Path:
    """The folder of the driver's headers, which only tests need; it is named as above."""

    def fetch(target: Path) -> None:
        say("fetching the headers of the CUDA driver (6 MB)")
        pinned_packages.install(pinned_packages.CUDA_HEADERS, target)

    identity = pinned_packages.identity_of(pinned_packages.CUDA_HEADERS.read_bytes())
    return pinned_packages.fetch_once(folder, identity, fetch)
