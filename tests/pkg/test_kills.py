"""Writers that are killed at any moment: what is on the disk is whole, or says that it is not, and how far it goes."""

from __future__ import annotations

import os
import random
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.forks import server

import doorstep
from doorstep.evaluation import Evaluation
from doorstep.recording import Recording

MOMENTS = 200  # of all writers together
LONGEST_LIFE = 0.05  # seconds after the first file
PATIENCE = 120  # seconds until a writer has begun

# Each writes again and again, and prints a line when it has done so once.
CHECKPOINTS = """
import torch
import sys
from doorstep.training import Trainer, TrainingConfig, save_checkpoint
from tests.pkg.training.runs import small
checkpoint = Trainer(small()).checkpoint()
while True:
    save_checkpoint(sys.argv[1], checkpoint)
    print("written", flush=True)
"""
EVALUATIONS = """
import sys
from doorstep.evaluation import Evaluation
evaluation = Evaluation.from_json(sys.argv[2])
while True:
    evaluation.save(sys.argv[1])
    print("written", flush=True)
"""
RECORDINGS = """
import sys
import doorstep
from doorstep.recording import RecordingWriter
sim = doorstep.Simulator(4, num_threads=1)
while True:
    with RecordingWriter(sys.argv[1], sim, hash_interval=5) as writer:
        for step in range(40):
            sim.actions[:] = (step % 4, step % 8, step % 5, step % 2)
            writer.step()
    print("written", flush=True)
"""


def check_checkpoint(path: Path) -> str:
    from doorstep.training import load_checkpoint

    load_checkpoint(path)
    return "whole"


def check_evaluation(path: Path) -> str:
    assert Evaluation.load(path).policies == ("a", "b")
    return "whole"


def check_recording(path: Path) -> str:
    """The older one is whole. The complete blocks of the one that was being written are right."""
    with Recording(path) as recording:
        recording.replay(num_threads=1)
    part = path.with_name(f"{path.name}.0.part")
    if not part.exists():
        return "whole"
    try:
        Recording(part).close()
        return "whole"
    except doorstep.StateError as error:
        message = str(error)
    assert "truncated" in message or "is not a recording" in message
    if "steps are complete" not in message:
        return "without a step"
    with Recording(part, incomplete=True) as recording:
        recording.replay(num_threads=1)
        assert 0 < recording.num_steps <= 40
    return "cut"


WRITERS: dict[str, tuple[str, Callable[[Path], str]]] = {
    "checkpoint": (CHECKPOINTS, check_checkpoint),
    "evaluation": (EVALUATIONS, check_evaluation),
    "recording": (RECORDINGS, check_recording),
}


def kill_while_writing(code: str, path: Path, content: str, moment: float) -> None:
    """Ends a writer of a content, if it is given one, so many seconds after its first file."""
    reads, writes = os.pipe()
    with open(reads, "rb") as stdout, open(writes, "wb") as stdin, open(os.devnull, "w") as nowhere:
        fork = server(*(["torch"] if "torch" in code else [])).start(
            code, str(path), content, stdout=stdin, stderr=nowhere
        )
        stdin.close()
        assert select.select([stdout], [], [], PATIENCE)[0], "the writer has not begun"
        assert stdout.readline() == b"written\n"
        time.sleep(moment)
        fork.send_signal(signal.SIGKILL)
        assert fork.wait(PATIENCE) == -signal.SIGKILL


def evaluated() -> str:
    return doorstep.evaluate({"a": "random", "b": "idle"}, episodes=2, episode_length=3).to_json()


def kill_often(name: str, path: Path, moments: int) -> set[str]:
    """How files were found."""
    if name == "checkpoint":
        pytest.importorskip("torch")
    code, check = WRITERS[name]
    content = evaluated() if name == "evaluation" else ""
    chance = random.Random(name)
    found = set()
    for _ in range(moments):
        kill_while_writing(code, path, content, chance.uniform(0, LONGEST_LIFE))
        found.add(check(path))
        left = {entry.name for entry in path.parent.iterdir()} - {path.name}
        assert left <= {".doorstep-0.tmp", f"{path.name}.0.part"}  # which the next writer removes
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", WRITERS)
def test_no_moment_of_a_kill_leaves_half_a_file(name: str, tmp_path: Path) -> None:
    found = kill_often(name, tmp_path / "file.json", -(-MOMENTS // len(WRITERS)))
    assert found == {"whole"} if name != "recording" else found >= {"cut"}
