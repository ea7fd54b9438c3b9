"""A disk that is full at any byte of a file: the error is the system's, an older file stays, and nothing else remains."""

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
refused, sizes = 0, sorted({{0, 1, len(older) // 2, len(older) - 1, *range(0, len(older), max(1, len(older) // {steps}))}})
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
WRITERS = {
    "level": ("from doorstep import levels\nwrite = lambda: levels.reference().save(path)", ".json"),
    "levels": ("from doorstep import levels\nwrite = lambda: levels.save_levels(path, [levels.reference()] * 40)", ".json"),
    "evaluation": (
        'import doorstep\nevaluation = doorstep.evaluate({"a": "random"}, episodes=2, episode_length=3)\n'
        "write = lambda: evaluation.save(path)",
        ".json",
    ),
    "policy": (
        "from tests.fuzz.targets.policies import linear_layers\nfrom doorstep.policy import SamplingParams\n"
        "from doorstep.policy.files import StoredPolicy, write_policy\n"
        "policy = StoredPolicy(linear_layers(), SamplingParams(), None, {})\nwrite = lambda: write_policy(path, policy)",
        ".safetensors",
    ),
    "checkpoint": (
        "import torch\nfrom doorstep.training import Trainer, save_checkpoint\nfrom tests.pkg.training.runs import small\n"
        "checkpoint = Trainer(small()).checkpoint()\nwrite = lambda: save_checkpoint(path, checkpoint)",
        ".safetensors",
    ),
    "picture": ("import doorstep\nsim = doorstep.Simulator(1)\nwrite = lambda: sim.render(path)", ".png"),
    "replay": (
        "import doorstep\nfrom doorstep.recording import Recording, RecordingWriter\n"
        'recorded = {folder!r} + ".rec"\nsim = doorstep.Simulator(1)\n'
        "with RecordingWriter(recorded, sim) as writer:\n    writer.step()\n"
        "recording = Recording(recorded)\nwrite = lambda: recording.render(path)",
        ".html",
    ),
    "series": (
        "import doorstep\nengine = doorstep.RolloutEngine(doorstep.RolloutConfig(doorstep.SimulatorConfig(1)))\n"
        "metrics = engine.metrics\nengine.close()\nwrite = lambda: metrics.to_csv(path)",
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
