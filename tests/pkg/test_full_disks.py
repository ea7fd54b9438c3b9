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
    "recording": (
        """
import doorstep, numpy
from doorstep.recording import RecordingWriter
sim = doorstep.Simulator(8, num_threads=1)
def write():
    random = numpy.random.default_rng(1)
    with RecordingWriter(path, sim) as writer:
        for _ in range(100):
            sim.actions = random.integers(0, doorstep.ACTIONS, sim.actions.shape)
            writer.step()
""",
        ".rec",
    ),
    "record": (
        """
import doorstep
write = lambda: doorstep.record(path, steps=90, seed=1, policy=doorstep.load_policy("random").seeded(1)).close()
""",
        ".rec",
    ),
    "episode": (
        """
import doorstep
with doorstep.RolloutEngine(doorstep.SimulatorConfig(1, num_threads=1)) as engine:
    result = engine.future(doorstep.EpisodeRequest(seed=1, max_steps=9, record="actions")).result()
write = lambda: result.record(path, engine.config).close()
""",
        ".rec",
    ),
    "video": (
        """
import numpy
from doorstep.video import write_video
frames = numpy.random.default_rng(0).integers(0, 256, (3, 48, 64, 3), numpy.uint8)
write = lambda: write_video(path, frames)
""",
        ".gif",
    ),
    "figure": (
        """
import doorstep
evaluation = doorstep.evaluate({"a": "random"}, episodes=2, episode_length=3)
from doorstep.plots import plot_evaluation
write = lambda: plot_evaluation(evaluation, path)
""",
        ".png",
    ),
    "trace": (
        """
import doorstep
from doorstep.metrics import MetricsConfig
config = doorstep.RolloutConfig(doorstep.SimulatorConfig(1, num_threads=1), metrics=MetricsConfig(trace=100))
with doorstep.RolloutEngine(config) as engine:
    engine.future(doorstep.EpisodeRequest(seed=1, max_steps=9)).result()
    metrics = engine.metrics
write = lambda: metrics.write_trace(path)
""",
        ".json",
    ),
    "picture of metrics": (
        """
import doorstep
with doorstep.RolloutEngine(doorstep.SimulatorConfig(1, num_threads=1)) as engine:
    engine.future(doorstep.EpisodeRequest(seed=1, max_steps=9)).result()
    metrics = engine.metrics
write = lambda: metrics.plot(path)
""",
        ".png",
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

NEEDS = {"checkpoint": "torch", "video": "av", "figure": "matplotlib", "picture of metrics": "matplotlib"}
PLACES = {"figure": 20, "picture of metrics": 20}  # of the failure; each draws again, which takes seconds


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        *(pytest.param(name, 2, id=name) for name in WRITERS if name not in NEEDS),
        *(
            pytest.param(name, PLACES.get(name, 60), marks=pytest.mark.slow, id=f"{name}-everywhere")
            for name in WRITERS
        ),
    ],
)
def test_a_full_disk_leaves_the_older_file(
    name: str, steps: int, tmp_path: Path, run_python: Callable[..., str]
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    setup, ending = WRITERS[name]
    folder = tmp_path / "folder"
    folder.mkdir()
    setup = setup.replace("{folder!r}", repr(str(folder)))
    assert int(run_python(CODE.format(setup=setup, folder=str(folder), ending=ending, steps=steps))) >= steps
