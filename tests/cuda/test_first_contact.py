"""The scripts for machines with a GPU, with wheels and commands that contain and do next to nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from tests.gpu import first_contact
from tests.gpu.first_contact import Part

pytest.importorskip("torch")

SCRIPTS = Path(first_contact.__file__).parent
NO_DRIVER = """
class NoDriverError(Exception): pass
class NoDeviceError(Exception): pass
__version__ = "7.8"
"""
CUDA = """
import doorstep
class Device:
    def __init__(self, index): self.name = f"Imaginary {index}"
    def count():
        if %r: return 2
        raise doorstep.NoDriverError("There is no driver.")
"""


def wheel_of(folder: Path, *, gpu: bool) -> Path:
    """A wheel with as much of doorstep as finding GPUs needs."""
    wheel = folder / "doorstep-7.8-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("doorstep/__init__.py", NO_DRIVER)
        archive.writestr("doorstep/cuda.py", CUDA % gpu)
    return wheel


def run(script: str, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


# ---- tests/gpu/run.py


def test_gpus_are_found(tmp_path: Path) -> None:
    done = run("run.py", "--find", "--wheel", wheel_of(tmp_path, gpu=True))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "doorstep: doorstep-7.8-py3-none-any.whl: doorstep 7.8 on Imaginary 0, Imaginary 1\n"


@pytest.mark.parametrize(("arguments", "status"), [((), 0), (("--bench",), 0), (("--find",), 3)])
def test_without_a_gpu_nothing_runs(arguments: tuple[str, ...], status: int, tmp_path: Path) -> None:
    done = run("run.py", *arguments, "--wheel", wheel_of(tmp_path, gpu=False))
    assert (done.returncode, done.stderr) == (status, "")
    assert done.stdout == "doorstep: nothing is run on a GPU: There is no driver.\n"


def test_a_command_runs_with_the_wheel(tmp_path: Path) -> None:
    code = "import sys, doorstep; print(doorstep.__version__, sys.argv[1:])"
    wheel = wheel_of(tmp_path, gpu=True)
    done = run("run.py", "--command", "--wheel", wheel, sys.executable, "-c", code, "-s", "62", "--set", "full", "-f")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "7.8 ['-s', '62', '--set', 'full', '-f']"


def test_another_package_named_tests_is_reported(tmp_path: Path) -> None:
    other = tmp_path / "tests" / "__init__.py"
    other.parent.mkdir()
    other.touch()
    done = run("run.py", "--find", "--wheel", wheel_of(tmp_path, gpu=True), PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert f"{other} hides the tests of this repository" in done.stderr


# ---- tests/gpu/first_contact.py


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def has_ended(process: int) -> bool:
    """Whether a process ends within a moment; one that nobody has waited for is a zombie."""
    status = Path(f"/proc/{process}/status")
    for _ in range(100):
        if not status.exists() or "State:\tZ" in status.read_text():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_a_part_that_fails_or_takes_too_long_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child = f"import os, time; print(os.getpid(), file=open({str(tmp_path / 'child')!r}, 'w')); time.sleep(600)"
    sleeper = f"import subprocess, sys; print('begun', flush=True); subprocess.run({python(child)!r})"
    parts = [
        Part("fails", [python("print('one'); raise SystemExit(4)"), python("print('never')")], 60),
        Part("hangs", [python("print('first')"), python(sleeper)], 6),
        Part("cannot-start", [["/no/such/program"]], 60),
        Part("absent", [python("print('never')")], 60, "its tool is not here"),
        Part("passes", [python("print('| a | b |')")], 60, read=lambda: {"speed": "5 m/s"}),
        Part("unreadable", [python("")], 60, read=lambda: {"speed": (tmp_path / "none").read_text()}),
    ]
    first_contact.run_parts(parts, "Imaginary 0", tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["machine"] == "Imaginary 0"
    found = {part["part"]: (part["status"], part["summary"]) for part in results["parts"]}
    assert found["fails"] == ("failed", "one")
    assert found["hangs"] == ("timed out", "begun")
    assert found["cannot-start"][0] == "failed"
    assert "/no/such/program" in found["cannot-start"][1]
    assert found["absent"] == ("skipped", "its tool is not here")
    assert found["passes"] == ("passed", "| a | b |")
    assert found["unreadable"][0] == "failed"
    assert [part["figures"] for part in results["parts"]] == [{}, {}, {}, {}, {"speed": "5 m/s"}, {}]
    page = (tmp_path / "results.md").read_text()
    for line in ("| absent | skipped | 0 | its tool is not here |", "| speed | 5 m/s |", "    one", "    first"):
        assert f"\n{line}\n" in page
    assert "never" not in page
    assert capsys.readouterr().out.count("\n") == len(parts)
    assert has_ended(int((tmp_path / "child").read_text()))


def test_results_are_written_after_each_part(tmp_path: Path) -> None:
    look = f"import json; print(len(json.load(open({str(tmp_path / 'results.json')!r}))['parts']))"
    first_contact.run_parts([Part("a", [python("")], 60), Part("b", [python(look)], 60)], "", tmp_path)
    assert (tmp_path / "b.log").read_text() == "1\n"


NCU = f"""#!{sys.executable}
import sys
worlds = sys.argv[sys.argv.index("--import") + 1].rpartition("_")[2].partition(".")[0]
table = sys.argv[sys.argv.index("--log-file") + 1]
names = ["ID", "Kernel Name", "smsp__inst_executed.sum", "launch__occupancy_limit_registers"]
rows = [names, ["", "", "inst", "block"], ["0", "doorstep_step", "20,480,000", "8"]]
open(table, "w").write("==PROF== a line, before\\n" + "".join('"' + '","'.join(row) + '"\\n' for row in rows))
"""


def test_metrics_of_the_profiler_are_read(tmp_path: Path) -> None:
    profiler = tmp_path / "ncu"
    profiler.write_text(NCU)
    profiler.chmod(0o755)
    log = tmp_path / "commands"
    note = f"import sys; print(*sys.argv[1:], file=open({str(log)!r}, 'a'))"
    part = first_contact.profile_part(python(note), tmp_path, str(profiler))
    result = first_contact.run_part(part, tmp_path)
    assert result.status == "passed", result
    assert result.figures == {
        "warp instructions, 8,192 worlds": "20,480,000 inst",
        "blocks per multiprocessor, by registers, 8,192 worlds": "8 block",
        "warp instructions per world, 8,192 worlds": "2,500",
        "warp instructions, 65,536 worlds": "20,480,000 inst",
        "blocks per multiprocessor, by registers, 65,536 worlds": "8 block",
        "warp instructions per world, 65,536 worlds": "312",
    }
    profiled = log.read_text()
    assert profiled.count("--clock-control none") == 2
    assert profiled.count("-k doorstep_step") == 2


def test_parts_and_their_limits() -> None:
    parts = first_contact.parts_of(["run"], Path("folder"))
    assert [part.name for part in parts] == [
        *("correctness", "speed", "profile", "sanitizers", "eight-agents", "vulkan")
    ]
    assert all(part.limit < 600 for part in parts)


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    output = tmp_path / "results"
    done = run("first_contact.py", "--output", output, "--wheel", wheel_of(tmp_path, gpu=False))
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == "doorstep: nothing is run on a GPU: There is no driver.\n"
    assert not output.exists()


def test_a_failing_part_fails_the_whole(tmp_path: Path) -> None:
    # This wheel's doorstep has no tests that could pass.
    wheel = wheel_of(tmp_path, gpu=True)
    done = run("first_contact.py", "--output", tmp_path / "out", "--wheel", wheel, "--parts", "vulkan", "--limit", "90")
    assert done.returncode == 1, done.stdout + done.stderr
    (part,) = json.loads((tmp_path / "out" / "results.json").read_text())["parts"]
    assert (part["part"], part["status"]) == ("vulkan", "failed")


def test_an_unknown_part_is_named(tmp_path: Path) -> None:
    done = run("first_contact.py", "--parts", "speed,sped", "--wheel", wheel_of(tmp_path, gpu=True))
    assert done.returncode == 2
    assert "--parts: sped; there are correctness,speed,profile" in done.stderr
