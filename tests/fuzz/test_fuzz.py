"""The runner of the fuzz targets finds what breaks the invariant, and the targets find nothing in a short time."""

import mmap
import os
import random
import subprocess
import sys

import pytest
from tests.forks import PROJECT
from tests.fuzz.__main__ import TARGETS, missing_packages
from tests.fuzz.mutations import change_bytes, change_json
from tests.fuzz.running import FoundError, fuzz, kept_input

import doorstep

SECONDS = 12  # for each target


class Reader:
    """A target that does the same with every input."""

    def __init__(self, read, size=0):
        self._read, self._size = read, size

    def inputs(self):
        return [b"abc"]

    def change(self, data, chance, others):
        return chance.randbytes(self._size) if self._size else change_bytes(data, chance, others)

    def run(self, data):
        self._read(data)  # large ones have an outcome each, so that the runner keeps them
        return "".join(chr(ord("a") + byte % 26) for byte in data[:20]) if self._size else "read"

    def close(self):
        pass


def refuse(data):
    raise doorstep.ArgumentError("no")


def look_up(data):
    if data != b"abc":
        raise KeyError(data)


def test_what_is_accepted_and_refused_is_counted_and_what_breaks_the_invariant_found(tmp_path, monkeypatch):
    options = {"seconds": 60, "seed": 0, "last": tmp_path / "last"}
    for read, accepted in ((len, 50), (refuse, 0)):
        report = fuzz(Reader(read), most_runs=50, **options)
        assert (report.runs, report.accepted) == (50, accepted)
    with pytest.raises(FoundError, match="KeyError instead of a typed error"):
        fuzz(Reader(look_up), most_runs=50, **options)
    assert kept_input(tmp_path / "last") != b"abc"
    monkeypatch.setattr("tests.fuzz.running.PATIENCE", 0.1)
    kept = []
    with pytest.raises(FoundError, match=r"these live on: .*simulator"):
        fuzz(
            Reader(lambda _: kept.append(doorstep.Simulator(1, num_threads=1)) if len(kept) < 2 else None),
            most_runs=1, **options,
        )  # fmt: skip
    for sim in kept:
        sim.close()
    kept.clear()


def test_memory_that_stays_is_found_but_not_inputs_that_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.fuzz.running.CHECK_EVERY", 10)
    monkeypatch.setattr("tests.fuzz.running.MOST_GROWTH", 16 << 20)
    options = {"seconds": 60, "seed": 0, "most_runs": 200, "last": tmp_path / "last"}
    assert fuzz(Reader(len, 200_000), **options).ways == 200
    stays = []

    def leak(data):
        """More than the runner keeps, and not from the heap: there is room from earlier tests."""
        stays.append(mmap.mmap(-1, 3 * len(data)))
        stays[-1].write(3 * data)

    with pytest.raises(FoundError, match="resident memory has grown"):
        fuzz(Reader(leak, 200_000), **options)


def test_the_same_seed_gives_the_same_inputs():
    document = b'{"a": [1, 2.5, "x"], "b": {"c": null}}'
    for change in (change_bytes, change_json):
        first, again = ([change(document, random.Random(seed), [document]) for seed in range(50)] for _ in range(2))
        assert first == again
        assert len(set(first)) > 40


@pytest.mark.nightly
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_the_invariant(name):
    if missing := missing_packages(name):
        pytest.skip(f"the target needs {', '.join(missing)}")
    command = [sys.executable, "-m", "tests.fuzz", "--here", "--seconds", str(SECONDS), name]
    path = os.pathsep.join([str(PROJECT), str(PROJECT / "native")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
