"""Files of native/src include files of their own layer and of those below it."""

import re
from collections.abc import Iterator
from pathlib import Path

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


def test_a_layer_includes_only_itself_and_layers_below_and_its_chapters_of_the_c_api() -> None:
    for layer in (*LAYERS, "render"):
        files = [path for path in (SOURCES / layer).rglob("*") if path.suffix in {".h", ".cpp", ".cu"}]
        assert files
        upward = [(path.name, other) for path in files for other in included(path) if other not in allowed(layer)]
        assert not upward
        if layer in CHAPTERS:
            texts = "".join(path.read_text("utf-8") for path in files)
            assert set(re.findall(r'"doorstep(?:/(\w+))?\.h"', texts)) <= CHAPTERS[layer]


def test_code_for_other_frameworks_is_a_client_of_the_c_api() -> None:
    for path in (SOURCES / "interop").rglob("*.*"):
        files = set(re.findall(r'^#include "([\w/]+\.h)"', path.read_text("utf-8"), re.MULTILINE))
        inside = {file for file in files if not file.startswith(("interop/", "doorstep"))}
        assert inside <= SHARED_WITH_CLIENTS, path.name
