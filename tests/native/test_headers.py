"""The headers of the C API compile as C and C++, each alone, and compilers lay them out as native/abi.json says."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import abi

PROJECT = Path(__file__).resolve().parents[2]
HEADERS = PROJECT / "native" / "include"
STANDARDS = {"c11": "c", "c17": "c", "c++17": "cpp", "c++20": "cpp"}
OPTIONS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{HEADERS}"]


@functools.cache
def compilers() -> dict[str, dict[str, list[str]]]:
    """Those of this machine, by name: the commands for C and C++. zig, which builds the library, contains clang."""
    found = {}
    for zig in PROJECT.glob("build/environments/build/lib/*/site-packages/ziglang/zig"):
        own_headers = str(zig.parent / "lib" / "include")  # stdint.h and stddef.h, which need no system's
        clang = [str(zig), "clang", "--target=x86_64-linux-gnu", "-ffreestanding", "-isystem", own_headers]
        found["zig"] = {"c": clang, "cpp": clang}
    for name, c, cpp in (("gcc", "gcc", "g++"), ("clang", "clang", "clang++")):
        if shutil.which(c) and shutil.which(cpp):
            found[name] = {"c": [c], "cpp": [cpp]}
    return found


@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("standard", STANDARDS)
def test_every_header_compiles_alone_and_without_warnings(compiler: str, standard: str, tmp_path: Path) -> None:
    language = STANDARDS[standard]
    texts = [f'#include "{path.relative_to(HEADERS)}"\n' for path in sorted(HEADERS.rglob("*.h"))]
    texts.append('#include "doorstep.h"\n#include <stddef.h>\n' + "".join(assertions(language)))
    sources = []
    for number, text in enumerate(texts):
        sources.append(tmp_path / f"source_{number}.{language}")
        sources[-1].write_text(text, encoding="utf-8")
    command = [*compilers()[compiler][language], f"-std={standard}", *OPTIONS, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def assertions(language: str) -> Iterator[str]:
    """That numbers, sizes and offsets are those of the committed interface."""
    interface = json.loads(abi.ABI_PATH.read_text(encoding="utf-8"))
    keyword = "_Static_assert" if language == "c" else "static_assert"
    numbers = {name: number for members in interface["enumerations"].values() for name, number in members.items()}
    for name, number in numbers.items():
        yield f'{keyword}((long long){name} == {number}, "{name}");\n'
    for name, struct in interface["structs"].items():
        yield f'{keyword}(sizeof({name}) == {struct["size"]}, "{name}");\n'
        for field, place in struct["fields"].items():
            yield f'{keyword}(offsetof({name}, {field}) == {place.split()[0]}, "{name}.{field}");\n'
