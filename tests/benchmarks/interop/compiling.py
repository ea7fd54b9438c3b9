"""Peers and probes in C++, compiled with the compiler that the wheel is built with."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent
OUTPUT = FOLDER.parents[2] / "build" / "bench-interop"
COMPILER = (sys.executable, "-m", "ziglang", "c++")
OPTIONS = ("-O3", "-DNDEBUG", "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-sanitize=all")


def compile_library(source: str, *options: str) -> Path:
    """A shared library from a file of this folder; compiled anew when the file, the options or Python change."""
    path = FOLDER / source
    command = [*COMPILER, *OPTIONS, str(path), *options]
    key = hashlib.sha256(path.read_bytes() + repr((command, sys.version)).encode()).hexdigest()[:16]
    library = OUTPUT / f"{path.stem}-{key}" / f"{path.stem}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        unfinished = library.with_suffix(".unfinished")
        subprocess.run([*command, "-o", str(unfinished)], check=True)
        unfinished.rename(library)
    return library


def load_library(source: str, *options: str) -> ctypes.PyDLL:
    """A library whose functions are called with the GIL held."""
    return ctypes.PyDLL(str(compile_library(source, *options)))


def load_nanobind_module(source: str) -> ModuleType:
    """An extension module in nanobind, named as its file."""
    import nanobind

    python = sysconfig.get_path("include")
    if not (Path(python) / "Python.h").exists():
        sys.exit(f"doorstep: the peer in nanobind needs Python.h, which is not in {python}; name another Python")
    root = Path(nanobind.__file__).parent
    sources = [str(root / "src" / "nb_combined.cpp")]
    includes = [f"-I{folder}" for folder in (root / "include", root / "ext" / "robin_map" / "include", python)]
    path = compile_library(source, *sources, *includes, "-fno-strict-aliasing")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
