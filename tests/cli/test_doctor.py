"""`doorstep doctor`: an honest report, even where doorstep cannot work."""

import importlib.metadata
import json
import re

import pytest
from tests.driver import no_driver
from tests.refuses import raising

import doorstep
from doorstep import _golden
from doorstep._native import LIBRARY_PATH, cuda_architectures
from doorstep._native._generated import CudaDriverInfo
from doorstep.cli import doctor


@pytest.fixture
def examine(run):
    def look(code=0):
        report = json.loads(run("doctor", "--json", code=code))
        assert report["works"] is (code == 0)
        return {finding["name"]: finding for finding in report["findings"]}

    return look


def test_it_finds_what_is_there_and_prints_a_table_for_people(examine, run):
    findings = examine()
    assert findings["doorstep"]["found"].startswith(doorstep.__version__)
    assert findings["library"]["found"] == LIBRARY_PATH
    assert "avx2" in findings["CPU features"]["found"]
    with doorstep.Simulator(4096) as sim:
        assert findings["threads"]["found"].startswith(f"{sim.num_threads}: ")
    assert findings["cameras: raycast"]["ok"]
    assert findings["cameras: embree"]["found"].startswith("Embree 4.")
    architectures = " ".join(cuda_architectures()) or "no architecture"
    assert findings["CUDA kernels"]["found"].startswith(f"machine code for {architectures}; ")
    table = run("doctor")
    assert table.endswith("doorstep works here.\n")
    assert all(finding["found"] in table for finding in findings.values())


@no_driver
def test_without_a_driver_it_says_why_and_what_the_automatic_device_is(examine):
    findings = examine()
    driver, automatic = findings["CUDA driver"], findings['device="auto"']
    assert (driver["ok"], automatic["ok"]) == (False, True)
    assert re.fullmatch(r".*libcuda\.so\.1.*\[NoDriverError\]", driver["found"])
    assert "NVIDIA driver" in driver["remedy"]
    assert automatic["found"].startswith("cpu, because ")
    assert not [name for name in findings if name.startswith("cuda:")]


def test_a_device_that_somebody_else_has_is_reported(examine, monkeypatch):
    driver = CudaDriverInfo(version=12090, minimum_version=12000, device_count=3)
    is_busy = raising(doorstep.DeviceBusyError, "Somebody has it.", hint="Ask them.")
    monkeypatch.setattr("doorstep.cuda.device.cuda_device", is_busy)
    for module in ("doorstep.cuda.device", "doorstep.cli.doctor"):
        monkeypatch.setattr(f"{module}.cuda_driver", lambda: driver)
    findings = examine()
    assert findings["CUDA driver"]["found"] == "CUDA 12.9, at least 12.0 is needed; 3 devices"
    assert findings["cuda:2"]["found"] == "Somebody has it. [DeviceBusyError]"
    assert findings["cuda:2"]["remedy"] == "Ask them."


def test_what_is_missing_or_fails_comes_with_its_cause_and_a_remedy(examine, monkeypatch):
    no_brush = raising(doorstep.RendererError, "there is no brush", hint="buy one")
    no_library = raising(doorstep.LibraryError, "The library is gone.", hint="Install it again.")
    with monkeypatch.context() as changed:
        changed.setattr("ctypes.util.find_library", raising(PermissionError, "mine"))
        changed.setattr("doorstep.cli.doctor.describe_renderer", no_brush)
        findings = examine()  # the rest goes on
        assert "PermissionError" in findings["NVIDIA driver"]["found"]
        drawn = findings["cameras: embree"]
        assert (drawn["ok"], drawn["needed"], drawn["remedy"]) == (False, False, "buy one")
        assert drawn["found"] == "there is no brush [RendererError]"
    with monkeypatch.context() as changed:
        changed.setattr("importlib.metadata.version", raising(importlib.metadata.PackageNotFoundError, "mine"))
        changed.setattr("ctypes.util.find_library", lambda name: None)
        findings = examine(code=1)  # numpy is needed
        missing = [finding for finding in findings.values() if not finding["ok"]]
        assert "NVIDIA driver" in {finding["name"] for finding in missing}
        assert all(finding["remedy"] for finding in missing)
        for name in ("numpy", "torch", "jax", "av", "viser", "shtab"):
            assert re.search(rf': pip install "{name}>=[\d.]+(,<\d+)?"$', findings[name]["remedy"])
    for name in ("load", "cpu_features", "default_thread_count"):
        monkeypatch.setattr(doctor, name, no_library)
    findings = examine(code=1)
    library = findings["library"]
    assert (library["found"], library["remedy"]) == ("The library is gone.", "Install it again.")
    assert findings["threads"]["found"] == "unknown, because the library does not work"


@no_driver
def test_golden_results_are_verified_and_a_run_that_differs_or_fails_is_named(run, monkeypatch):
    def verify(code):
        report = json.loads(run("doctor", "--verify", "--json", code=code))
        assert report["verified"] is (code == 0)
        return report["runs"]

    runs = verify(0)
    assert [(one["run"], one["device"]) for one in runs] == [(name, "cpu") for name in _golden.RUNS]
    assert len(runs) == 20
    assert all(one["ok"] and int(one["hash"], 16) == _golden.HASHES[one["run"]] for one in runs)
    kept = {name: _golden.RUNS[name] for name in ("one agent", "three agents", "four agents")}
    monkeypatch.setattr(_golden, "RUNS", kept)
    monkeypatch.setitem(_golden.HASHES, "three agents", 7)
    assert [one["run"] for one in verify(1) if not one["ok"]] == ["three agents"]
    said = run("doctor", "--verify", code=1)
    assert re.search(r"^NO  cpu     three agents  0000000000000007, but here [0-9A-F]{16}$", said, re.MULTILINE)
    assert "1 of 3 runs differ" in said
    monkeypatch.setattr(_golden.Run, "hash", raising(doorstep.OutOfMemoryError, "There is no room."))
    assert {one["error"] for one in verify(1)} == {"There is no room. [OutOfMemoryError]"}


def test_it_imports_neither_torch_nor_jax(run_new_python):
    code = "import sys; from doorstep.cli import main; main(['doctor']); print({'torch', 'jax'} & sys.modules.keys())"
    assert run_new_python(code).endswith("set()\n")
