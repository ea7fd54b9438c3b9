"""`doorstep doctor`: an honest report, even where doorstep cannot work."""

import importlib.metadata
import json
import os
import subprocess
import sys
from typing import Any

import numpy
import pytest
from tests.cli.conftest import Command

import doorstep
from doorstep._native import LIBRARY_PATH
from doorstep.cli import doctor, main


def examine(capsys: pytest.CaptureFixture[str], expected_code: int = 0) -> dict[str, dict[str, Any]]:
    assert main(["doctor", "--json"]) == expected_code
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    report = json.loads(output)
    assert report["works"] is (expected_code == 0)
    return {finding["name"]: finding for finding in report["findings"]}


def test_it_finds_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    findings = examine(capsys)
    assert findings["doorstep"]["found"].startswith(doorstep.__version__)
    assert findings["library"]["found"] == LIBRARY_PATH
    assert findings["numpy"]["found"] == numpy.__version__
    assert "avx2" in findings["CPU features"]["found"]


def test_the_threads_are_those_a_simulator_uses(capsys: pytest.CaptureFixture[str]) -> None:
    found = examine(capsys)["threads"]["found"]
    with doorstep.Simulator(4096) as sim:
        assert found.startswith(f"{sim.num_threads}: ")
    assert f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} CPUs" in found


def test_it_says_that_there_is_no_cuda_executor(capsys: pytest.CaptureFixture[str]) -> None:
    finding = examine(capsys)["CUDA executor"]
    assert (finding["found"], finding["ok"]) == ("not in this build", False)


def test_everything_missing_comes_with_a_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_installed(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr("importlib.metadata.version", not_installed)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    findings = examine(capsys, expected_code=1)  # numpy is needed
    missing = [finding for finding in findings.values() if not finding["ok"]]
    assert {"numpy", "torch", "jax", "NVIDIA driver", "CUDA executor"} <= {finding["name"] for finding in missing}
    assert all(finding["remedy"] for finding in missing)
    assert findings["torch"]["remedy"].endswith("pip install torch")


def test_a_library_that_cannot_be_loaded_is_reported_with_its_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise doorstep.LibraryError("The library is gone.", hint="Install it again.")

    for name in ("load", "cpu_features", "default_thread_count"):
        monkeypatch.setattr(doctor, name, fail)
    findings = examine(capsys, expected_code=1)
    assert findings["library"]["found"] == "The library is gone."
    assert findings["library"]["remedy"] == "Install it again."
    assert findings["threads"]["found"] == "unknown, because the library does not work"


def test_a_look_that_fails_unexpectedly_is_reported_and_the_rest_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise PermissionError(name)

    monkeypatch.setattr("ctypes.util.find_library", fail)
    findings = examine(capsys)
    assert "PermissionError" in findings["NVIDIA driver"]["found"]
    assert findings["numpy"]["ok"]


def test_the_report_is_a_table_for_people(command: Command) -> None:
    finished = command("doctor")
    assert finished.returncode == 0
    assert finished.stderr == ""
    assert finished.stdout.endswith("doorstep works here.\n")
    assert "libdoorstep.so" in finished.stdout


def test_it_imports_neither_torch_nor_jax() -> None:
    code = "import sys; from doorstep.cli import main; main(['doctor']); print({'torch', 'jax'} & sys.modules.keys())"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert finished.stdout.endswith("set()\n")
