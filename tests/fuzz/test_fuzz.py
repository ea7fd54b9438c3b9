"""The runner of the fuzz targets finds what breaks the invariant, and the targets find nothing in a short time."""

from __future__ import annotations

import mmap
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.forks import PROJECT
from tests.fuzz.__main__ import TARGETS, missing_packages
from tests.fuzz.mutations import change_bytes, change_json
from tests.fuzz.running import FoundError, fuzz, kept_input

import doorstep

SECONDS = 12  # for each target


class Reader:
    """A target that does the same with every input."""

    def __init__(self, read: Callable[[bytes], object]) -> None:
        self._read = read

    def inputs(self) -> Sequence[bytes]:
        return [b"abc"]

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        return change_bytes(data, chance, others)

    def run(self, data: bytes) -> str:
        self._read(data)
        return "read"

    def close(self) -> None:
        pass


def refuse(data: bytes) -> None:
    raise doorstep.ArgumentError("no")


def look_up(data: bytes) -> None:
    if data != b"abc":
        raise KeyError(data)


def test_accepted_and_refused_inputs_are_counted(tmp_path: Path) -> None:
    for read, accepted in ((len, 50), (refuse, 0)):
        report = fuzz(Reader(read), seconds=60, seed=0, most_runs=50, last=tmp_path / "last")
        assert (report.runs, report.accepted) == (50, accepted)


def test_what_breaks_the_invariant_is_found_and_its_input_kept(tmp_path: Path) -> None:
    with pytest.raises(FoundError, match="KeyError instead of a typed error"):
        fuzz(Reader(look_up), seconds=60, seed=0, most_runs=50, last=tmp_path / "last")
    assert kept_input(tmp_path / "last") != b"abc"


def test_what_lives_on_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.running.PATIENCE", 0.1)
    kept: list[doorstep.Simulator] = []
    with pytest.raises(FoundError, match=r"these live on: .*simulator"):
        fuzz(
            Reader(lambda _: kept.append(doorstep.Simulator(1, num_threads=1)) if len(kept) < 2 else None),
            seconds=60, seed=0, most_runs=1, last=tmp_path / "last",
        )  # fmt: skip
    for sim in kept:
        sim.close()
    kept.clear()


class LargeReader(Reader):
    """Whose inputs are large, and each of which has an outcome of its own, so that the runner keeps them."""

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        return chance.randbytes(200_000)

    def run(self, data: bytes) -> str:
        super().run(data)
        return "".join(chr(ord("a") + byte % 26) for byte in data[:20])


def test_memory_that_stays_is_found_but_not_inputs_that_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fuzz.running.CHECK_EVERY", 10)
    monkeypatch.setattr("tests.fuzz.running.MOST_GROWTH", 16 << 20)
    assert fuzz(LargeReader(len), seconds=60, seed=0, most_runs=200, last=tmp_path / "last").ways == 200
    stays: list[mmap.mmap] = []

    def leak(data: bytes) -> None:
        """More than the runner keeps, and not from the heap: there is room from earlier tests."""
        stays.append(mmap.mmap(-1, 3 * len(data)))
        stays[-1].write(3 * data)

    leaking = LargeReader(leak)
    with pytest.raises(FoundError, match="resident memory has grown"):
        fuzz(leaking, seconds=60, seed=0, most_runs=200, last=tmp_path / "last")


def test_the_same_seed_gives_the_same_inputs() -> None:
    document = b'{"a": [1, 2.5, "x"], "b": {"c": null}}'
    for change in (change_bytes, change_json):
        first, again = ([change(document, random.Random(seed), [document]) for seed in range(50)] for _ in range(2))
        assert first == again
        assert len(set(first)) > 40


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_the_invariant(name: str) -> None:
    if missing := missing_packages(name):
        pytest.skip(f"the target needs {', '.join(missing)}")
    command = [sys.executable, "-m", "tests.fuzz", "--here", "--seconds", str(SECONDS), name]
    path = os.pathsep.join([str(PROJECT), str(PROJECT / "native")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
