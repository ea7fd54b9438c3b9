"""What owns a file, memory, a thread or a handle by its number is never copied: both copies would release it."""

from __future__ import annotations

import ast
import copy
import importlib
import pickle
import re
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from tests.leaks import open_files

import doorstep
from doorstep._copies import Owner
from doorstep.metrics import MetricsStore
from doorstep.recording import Recording, RecordingWriter
from doorstep.recording.layout import ChunkFile
from doorstep.rollouts import AsyncEpisodes

COPIES: dict[str, Callable[[Any], object]] = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": pickle.dumps}


def simulator(kept: ExitStack) -> doorstep.Simulator:
    return kept.enter_context(doorstep.Simulator(2, num_threads=1))


def recorded(kept: ExitStack, folder: Path) -> Path:
    doorstep.record(folder / "a.rec", steps=3).close()
    return folder / "a.rec"


def future(kept: ExitStack) -> object:
    engine = kept.enter_context(doorstep.RolloutEngine(doorstep.SimulatorConfig(1, num_threads=1)))
    return engine.future(doorstep.EpisodeRequest(seed=1, max_steps=1))


def log(name: str, path: Path, *needs: str) -> Any:
    for need in ("torch", *needs):
        pytest.importorskip(need)
    return getattr(importlib.import_module("doorstep.training.logs"), name)(path)


def trainer() -> object:
    pytest.importorskip("torch")
    from tests.pkg.training.runs import small

    from doorstep.training import Trainer

    return Trainer(small())


OWNERS: dict[str, Callable[[ExitStack, Path], object]] = {
    "Tensor": lambda kept, folder: simulator(kept).rewards,
    "StateFields": lambda kept, folder: simulator(kept).state,
    "StepEvent": lambda kept, folder: simulator(kept).step_async(),
    "Session": lambda kept, folder: simulator(kept)._session,
    "Memory": lambda kept, folder: simulator(kept)._session.memory,
    "Recording": lambda kept, folder: kept.enter_context(Recording(recorded(kept, folder))),
    "ChunkFile": lambda kept, folder: kept.enter_context(closing(ChunkFile(recorded(kept, folder)))),
    "RecordingWriter": lambda kept, folder: kept.enter_context(RecordingWriter(folder / "b.rec", simulator(kept))),
    "AsyncEpisodes": lambda kept, folder: kept.enter_context(AsyncEpisodes(doorstep.SimulatorConfig(1, num_threads=1))),
    "RolloutEngine": lambda kept, folder: kept.enter_context(doorstep.RolloutEngine(doorstep.SimulatorConfig(1))),
    "_EpisodeFuture": lambda kept, folder: future(kept),
    "MetricsStore": lambda kept, folder: MetricsStore(),
    "Counter": lambda kept, folder: MetricsStore().counter("things"),
    "MetricsHandle": lambda kept, folder: MetricsStore()._handle,
    "Trainer": lambda kept, folder: trainer(),
    "JsonLines": lambda kept, folder: kept.enter_context(log("JsonLines", folder / "log")),
    "TensorBoardLog": lambda kept, folder: kept.enter_context(log("TensorBoardLog", folder, "tensorboard")),
}


@pytest.mark.parametrize("name", OWNERS)
def test_owners_refuse_copies_and_stay_as_they_are(name: str, tmp_path: Path) -> None:
    with ExitStack() as kept:
        owner = OWNERS[name](kept, tmp_path)
        assert type(owner).__name__ == name
        assert isinstance(owner, Owner)
        files = open_files(tmp_path)
        for attempt in COPIES.values():
            with pytest.raises(doorstep.CopyError, match=name) as caught:
                attempt({"inside": [owner]} if attempt is not copy.copy else owner)
            assert caught.value.hint
            assert isinstance(caught.value, TypeError)
        assert open_files(tmp_path) == files


def test_a_recording_is_read_after_an_attempt_to_copy_it(tmp_path: Path) -> None:
    with doorstep.record(tmp_path / "a.rec", steps=3) as recording:
        with pytest.raises(doorstep.CopyError, match="open its `path` again"):
            copy.deepcopy(recording)
        assert recording.actions(2).shape == (1, 2, 4)
        recording.replay()


# ---- The list is complete

COPIED_WHOLE = {"Simulator", "Rooms", "OverRooms", "AsyncEscapeRooms", "EscapeRoomPufferEnv"}  # tests/envs
HELD_BY_OWNERS = {"Exchange", "AgentCamera", "_Gate"}


def releases(tree: ast.ClassDef) -> bool:
    """Whether the class releases something: when it is closed, or at its end."""
    methods = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    finalized = re.search(r"[fF]inalize[r]?\(self\b", ast.unparse(tree))
    return bool(methods & {"close", "__del__"}) or finalized is not None


def test_every_class_that_releases_something_is_an_owner() -> None:
    classes = {
        node.name: {ast.unparse(base) for base in node.bases}
        for path in Path(doorstep.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and releases(node) and node.name not in COPIED_WHOLE | HELD_BY_OWNERS
    }
    assert (classes["RecordingFile"], classes["Session"]) == ({"ClosingOwner"}, {"Owner"})
    refusing = {"Owner", "ClosingOwner", "OverRooms", "OverSpecifiedRooms"}
    refused = {name for name, bases in classes.items() if not bases & refusing}
    assert not refused, "these are copied with what they own"
