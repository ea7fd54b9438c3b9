"""`doorstep doctor`: an honest report, even where doorstep cannot work."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
from tests.cli.conftest import Command
from tests.driver import no_driver

import doorstep
from doorstep import _golden
from doorstep._native import LIBRARY_PATH, cuda_architectures
from doorstep._native._generated import CudaDeviceInfo, CudaDriverInfo
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


def test_it_names_what_can_draw_and_why_something_cannot(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = examine(capsys)
    assert findings["cameras: raycast"]["ok"]
    assert findings["cameras: embree"]["found"].startswith("Embree 4.")
    assert findings["cameras: vulkan"]["found"]

    def describe(renderer: object) -> str:
        raise doorstep.RendererError("there is no brush", hint="buy one")

    monkeypatch.setattr("doorstep.cli.doctor.describe_renderer", describe)
    finding = examine(capsys)["cameras: embree"]
    assert (finding["ok"], finding["needed"], finding["remedy"]) == (False, False, "buy one")
    assert finding["found"] == "there is no brush [RendererError]"


@no_driver
def test_without_a_driver_it_says_why_and_what_the_automatic_device_is(capsys: pytest.CaptureFixture[str]) -> None:
    findings = examine(capsys)
    driver, automatic = findings["CUDA driver"], findings['device="auto"']
    assert not driver["ok"]
    assert "libcuda.so.1" in driver["found"]
    assert driver["found"].endswith("[NoDriverError]")
    assert "NVIDIA driver" in driver["remedy"]
    assert automatic["found"].startswith("cpu, because ")
    assert automatic["ok"]
    assert not [name for name in findings if name.startswith("cuda:")]


def test_it_names_the_architectures_that_the_library_has_machine_code_for(capsys: pytest.CaptureFixture[str]) -> None:
    finding = examine(capsys)["CUDA kernels"]
    architectures = " ".join(cuda_architectures()) or "no architecture"
    assert finding["ok"]
    assert finding["found"].startswith(f"machine code for {architectures}; ")


def test_it_reports_a_driver_and_devices(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    gib = 1 << 30
    devices = [
        CudaDeviceInfo(name=b"Old", compute_capability=90, kernel_source=0, total_bytes=3 * gib, free_bytes=gib),
        CudaDeviceInfo(name=b"New", compute_capability=103, kernel_source=1, total_bytes=gib, free_bytes=gib // 2),
    ]

    def device(index: int) -> CudaDeviceInfo:
        if index == 2:
            raise doorstep.DeviceBusyError("Somebody has it.", hint="Ask them.")
        return devices[index]

    driver = CudaDriverInfo(version=12090, minimum_version=12000, device_count=3)
    monkeypatch.setattr("doorstep.cuda.device.cuda_device", device)
    for module in ("doorstep.cuda.device", "doorstep.cli.doctor"):
        monkeypatch.setattr(f"{module}.cuda_driver", lambda: driver)
    findings = examine(capsys)
    assert findings["CUDA driver"]["found"] == "CUDA 12.9, at least 12.0 is needed; 3 devices"
    assert findings["cuda:0"]["found"].startswith("Old, compute capability 9.0, 1.0 of 3.0 GiB free; its kernels are")
    assert findings["cuda:1"]["found"].startswith("New, compute capability 10.3, 0.5 of 1.0 GiB free")
    assert "compiled once" in findings["cuda:1"]["found"]
    assert findings["cuda:2"]["found"] == "Somebody has it. [DeviceBusyError]"
    assert findings["cuda:2"]["remedy"] == "Ask them."


@pytest.mark.slow  # tests/wheel_build/test_cuda_compile.py compiles too
def test_kernels_can_be_compiled_without_a_gpu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for attempt in ("first", "second"):
        assert main(["doctor", "--compile", "sm_103", "--agents", "3", "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["architecture"], result["agents"]) == ("sm_103", 3)
        assert result["bytes"] > 10_000
        assert Path(result["cache_path"]).is_relative_to(tmp_path)
        assert result["from_cache"] is (attempt == "second")
    assert main(["doctor", "--compile", "sm_103", "--agents", "3"]) == 0
    assert f"{result['bytes']:,} bytes of machine code" in capsys.readouterr().out


@pytest.mark.parametrize("architecture", ["", "103", "sm_", "sm_x", "compute_90", "sm_1"])
def test_an_architecture_that_does_not_exist_is_one_line(architecture: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--compile", architecture]) == 2
    assert capsys.readouterr().err.startswith("doorstep doctor: error: architecture is ")


def test_everything_missing_comes_with_a_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_installed(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr("importlib.metadata.version", not_installed)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    findings = examine(capsys, expected_code=1)  # numpy is needed
    missing = [finding for finding in findings.values() if not finding["ok"]]
    assert {"numpy", "torch", "jax", "NVIDIA driver"} <= {finding["name"] for finding in missing}
    assert all(finding["remedy"] for finding in missing)
    for name in ("numpy", "torch", "jax", "av", "viser", "shtab"):
        assert re.search(rf': pip install "{name}>=[\d.]+(,<\d+)?"$', findings[name]["remedy"])


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


def verify(capsys: pytest.CaptureFixture[str], expected_code: int) -> list[dict[str, Any]]:
    assert main(["doctor", "--verify", "--json"]) == expected_code
    report = json.loads(capsys.readouterr().out)
    assert report["verified"] is (expected_code == 0)
    runs: list[dict[str, Any]] = report["runs"]
    return runs


@no_driver
def test_this_machine_computes_the_golden_results(capsys: pytest.CaptureFixture[str]) -> None:
    runs = verify(capsys, expected_code=0)
    assert [(run["run"], run["device"]) for run in runs] == [(name, "cpu") for name in _golden.RUNS]
    assert len(runs) == 20
    assert all(run["ok"] and int(run["hash"], 16) == _golden.HASHES[run["run"]] for run in runs)


@no_driver
def test_a_run_that_differs_or_fails_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(run: _golden.Run, device: str) -> int:
        raise doorstep.OutOfMemoryError("There is no room.")

    kept = {name: _golden.RUNS[name] for name in ("one agent", "three agents", "four agents")}
    monkeypatch.setattr(_golden, "RUNS", kept)
    monkeypatch.setitem(_golden.HASHES, "three agents", 7)
    assert [run["run"] for run in verify(capsys, expected_code=1) if not run["ok"]] == ["three agents"]
    assert main(["doctor", "--verify"]) == 1
    said = capsys.readouterr().out
    assert re.search(r"^NO  cpu     three agents  0000000000000007, but here [0-9A-F]{16}$", said, re.MULTILINE)
    assert "1 of 3 runs differ" in said
    monkeypatch.setattr(_golden.Run, "hash", fail)
    errors = {run["error"] for run in verify(capsys, expected_code=1)}
    assert errors == {"There is no room. [OutOfMemoryError]"}


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
