"""Files of native/src include files of their own layer and of those below it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "native" / "src"
# From low to high.
LAYERS = ("math", "physics", "sim", "runtime", "exec", "training", "policy", "metrics", "rollouts", "api", "interop")
# Beside the worlds, not above them: handles, memory and the driver know nothing of rooms.
UNRELATED = {"runtime": ("physics", "sim")}
# A library of its own, which contains a few files of the other one.
RENDER = ("math", "physics", "runtime", "render")
# Native code that serves another framework is a client of the C API, which shares only how errors are told.
SHARED_WITH_CLIENTS = {
    "math/base.h",
    "runtime/argument_checks.h",
    "runtime/dlpack.h",
    "runtime/futex.h",
    "runtime/status.h",
}
# Chapters of the C API that low layers know; the others know more, or all.
CHAPTERS = {
    "math": set(),
    "physics": set(),
    "sim": {"rooms"},
    "runtime": {"library", "rooms", "cuda"},
    "exec": {"library", "rooms", "cuda"},
}


def included(path: Path) -> Iterator[str]:
    """The layers that a file includes files of."""
    for folder in re.findall(r'^#include "(\w+)/', path.read_text("utf-8"), re.MULTILINE):
        if (SOURCES / folder).is_dir():
            yield folder


def allowed(layer: str) -> set[str]:
    """The layers that the files of a layer may include."""
    if layer == "render":
        return set(RENDER)
    return set(LAYERS[: LAYERS.index(layer) + 1]) - set(UNRELATED.get(layer, ()))


def test_every_folder_is_a_layer() -> None:
    assert {path.name for path in SOURCES.iterdir() if path.is_dir()} == {*LAYERS, "render"}


@pytest.mark.parametrize("layer", [*LAYERS, "render"])
def test_a_layer_includes_only_itself_and_layers_below(layer: str) -> None:
    files = [path for path in (SOURCES / layer).rglob("*") if path.suffix in {".h", ".cpp", ".cu"}]
    assert files
    upward = [
        f"{path.relative_to(SOURCES)} includes {other}"
        for path in files
        for other in included(path)
        if other not in allowed(layer)
    ]
    assert not upward


@pytest.mark.parametrize("layer", CHAPTERS)
def test_low_layers_know_only_their_chapters_of_the_c_api(layer: str) -> None:
    files = [path for path in (SOURCES / layer).rglob("*") if path.suffix in {".h", ".cpp", ".cu"}]
    known = {name for path in files for name in re.findall(r'"doorstep(?:/(\w+))?\.h"', path.read_text("utf-8"))}
    assert known <= CHAPTERS[layer]


def test_code_for_other_frameworks_is_a_client_of_the_c_api() -> None:
    for path in (SOURCES / "interop").rglob("*.*"):
        files = set(re.findall(r'^#include "([\w/]+\.h)"', path.read_text("utf-8"), re.MULTILINE))
        inside = {file for file in files if not file.startswith(("interop/", "doorstep"))}
        assert inside <= SHARED_WITH_CLIENTS, path.name
