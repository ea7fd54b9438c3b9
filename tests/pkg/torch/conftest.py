"""inductor with a C++ compiler that comes with pip: zig's clang, which the wheel is built with too."""

import importlib
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[3] / "build"
# zig has no OpenMP. It compiles its C++ library first, which takes a minute, but not where the wheel was built: for the
# same target, and no particular processor, that one is in the cache. Asked for its version, it takes no target. A part
# of the headers of Debian's Python is in /usr/include.
COMPILER = """#!/bin/sh
: "${{ZIG_GLOBAL_CACHE_DIR:={cache}}}" "${{ZIG_LOCAL_CACHE_DIR:={cache}}}"
export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
for argument do
    shift
    case "$argument" in
        -fopenmp | -lgomp | -march=native) ;;
        --version | -v) exec "{zig}" c++ "$argument" ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{zig}" c++ -target x86_64-linux-gnu.2.28 -I"{headers}" "$@" -idirafter /usr/include
"""
OMP_HEADER = """#pragma once
inline int omp_get_max_threads() { return 1; }
inline int omp_get_num_threads() { return 1; }
inline int omp_get_thread_num() { return 0; }
"""


@pytest.fixture(scope="session")
def _compiler(tmp_path_factory):
    ziglang = pytest.importorskip("ziglang", reason="inductor compiles with the compiler of ziglang")
    folder = tmp_path_factory.mktemp("inductor")
    (folder / "omp.h").write_text(OMP_HEADER, encoding="utf-8")
    path, zig = folder / "c++", Path(ziglang.__file__).parent / "zig"
    path.write_text(COMPILER.format(cache=BUILD / "zig-cache", zig=zig, headers=folder), encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def inductor(_compiler, monkeypatch):
    """torch.compile() starts afresh, and its default backend can compile. Random numbers are those of eager programs:
    inductor has its own otherwise."""
    torch = pytest.importorskip("torch")
    config = importlib.import_module("torch._inductor.config")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(_compiler.parent / "cache"))
    torch._dynamo.reset()
    scalar = {"cpp.cxx": (None, str(_compiler)), "cpp.threads": 1, "cpp.vec_isa_ok": False}
    with config.patch({**scalar, "fallback_random": True}):
        yield
    torch._dynamo.reset()
