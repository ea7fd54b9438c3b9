"""A disk that is full at any byte of a file: the error is the system's, an older file stays, and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

# The limit of a file's size stands for the disk's end: what goes beyond is EFBIG instead of ENOSPC.
CODE = """
import errno, json, os, resource, signal, sys
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
{setup}
path = Path({folder!r}) / "file{ending}"
write()
older = path.read_bytes()
sizes = sorted({{1, len(older) - 1, *range(0, len(older), max(1, len(older) // {steps}))}})
refused = 0
for size in sizes:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        write()
    except OSError as error:
        assert error.errno == errno.EFBIG, error
        refused += 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert path.read_bytes() == older, size
    assert os.listdir(path.parent) == [path.name], size
assert refused == len(sizes), (refused, len(sizes))
print(len(sizes))
"""
# What makes a function `write` that writes `path`, and the ending of the file's name.
WRITERS = {
    "level": (
        """
from doorstep import levels
write = lambda: levels.reference().save(path)
""",
        ".json",
    ),
    "levels": (
        """
from doorstep import levels
write = lambda: levels.save_levels(path, [levels.reference()] * 40)
""",
        ".json",
    ),
    "evaluation": (
        """
import doorstep
evaluation = doorstep.evaluate({"a": "random"}, episodes=2, episode_length=3)
write = lambda: evaluation.save(path)
""",
        ".json",
    ),
    "policy": (
        """
from doorstep.policy import SamplingParams
from doorstep.policy.files import StoredPolicy, write_policy
from tests.fuzz.targets.policies import linear_layers
policy = StoredPolicy(linear_layers(), SamplingParams(), None, {})
write = lambda: write_policy(path, policy)
""",
        ".safetensors",
    ),
    "checkpoint": (
        """
import torch
from doorstep.training import Trainer, save_checkpoint
from tests.pkg.training.runs import small
checkpoint = Trainer(small()).checkpoint()
write = lambda: save_checkpoint(path, checkpoint)
""",
        ".safetensors",
    ),
    "picture": (
        """
import numpy
from doorstep.render.png import write_png
picture = numpy.random.default_rng(0).integers(0, 256, (48, 64, 3), numpy.uint8)
write = lambda: write_png(path, picture)
""",
        ".png",
    ),
    "replay": (
        """
import doorstep
from doorstep.recording import Recording, RecordingWriter
sim = doorstep.Simulator(1)
recorded = {folder!r} + ".rec"
with RecordingWriter(recorded, sim) as writer:
    writer.step()
recording = Recording(recorded)
write = lambda: recording.render(path)
""",
        ".html",
    ),
    "series": (
        """
import doorstep
with doorstep.RolloutEngine(doorstep.RolloutConfig(doorstep.SimulatorConfig(1))) as engine:
    metrics = engine.metrics
write = lambda: metrics.to_csv(path)
""",
        ".csv",
    ),
}


@pytest.mark.parametrize(
    ("name", "steps"),
    [("level", 8), *(pytest.param(name, 60, marks=pytest.mark.slow, id=f"{name}-everywhere") for name in WRITERS)],
)
def test_a_full_disk_leaves_the_older_file(
    name: str, steps: int, tmp_path: Path, run_python: Callable[..., str]
) -> None:
    if name == "checkpoint":
        pytest.importorskip("torch")
    setup, ending = WRITERS[name]
    folder = tmp_path / "folder"
    folder.mkdir()
    setup = setup.replace("{folder!r}", repr(str(folder)))
    assert int(run_python(CODE.format(setup=setup, folder=str(folder), ending=ending, steps=steps))) >= steps
