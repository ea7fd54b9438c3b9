"""The scripts for machines with a GPU: with wheels and programs that contain and do next to nothing, and all of them
once on the stand-in driver."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cuda.on_stand_in import environment_of, require_stand_in
from tests.gpu import first_contact, profiles
from tests.gpu.first_contact import Contact, Part
from tests.gpu.sizes import REHEARSAL

import doorstep

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


def run(
    script: str, *arguments: str | Path, timeout: float = 120, **variables: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)


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


def test_a_wheels_content_may_be_kept_and_used(tmp_path: Path) -> None:
    content = tmp_path / "content"
    wheel = wheel_of(tmp_path, gpu=True)
    assert run("run.py", "--find", "--wheel", wheel, "--unpack", content).returncode == 0
    wheel.unlink()
    done = run("run.py", "--find", "--wheel", content)
    assert done.stdout == "doorstep: content: doorstep 7.8 on Imaginary 0, Imaginary 1\n"


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


def contact(folder: Path, budget: float = 600, memcheck: str | None = None) -> Contact:
    return Contact("Imaginary 0", folder, budget, memcheck=memcheck)


def results_in(folder: Path) -> dict[str, tuple[str, str]]:
    """Status and summary of each part."""
    results = json.loads((folder / "results.json").read_text())
    assert results["machine"] == "Imaginary 0"
    return {part["part"]: (part["status"], part["summary"]) for part in results["parts"]}


def program(path: Path, code: str) -> Path:
    """A program of that name."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{code}")
    path.chmod(0o755)
    return path


def has_ended(process: int) -> bool:
    """Whether a process ends within a moment; one that nobody has waited for is a zombie."""
    status = Path(f"/proc/{process}/status")
    for _ in range(100):
        if not status.exists() or "State:\tZ" in status.read_text():
            return True
        time.sleep(0.05)
    return False


def test_what_becomes_of_parts_is_written_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    look = f"import json; print(len(json.load(open({str(tmp_path / 'results.json')!r}))['parts']))"
    made = contact(tmp_path)
    for part in (
        Part("fails", python("print('one'); raise SystemExit(4)"), 60),
        Part("cannot-start", ["/no/such/program"], 60),
        Part("not:here", python("print('its tool is not here'); raise SystemExit(77)"), 60),
        Part("passes", python("print('| a | b |')"), 60),
        Part("looks", python(look), 60),
    ):
        made.run(part)
    found = results_in(tmp_path)
    assert found["fails"] == ("failed", "one")
    assert found["cannot-start"][0] == "failed"
    assert "/no/such/program" in found["cannot-start"][1]
    assert found["not:here"] == ("skipped", "its tool is not here")
    assert found["passes"] == ("passed", "| a | b |")
    assert found["looks"] == ("passed", "4")  # results are written after each part
    page = re.sub(r"\| \d+ \|", "| 0 |", (tmp_path / "results.md").read_text())  # seconds
    for line in ("| not:here | skipped | 0 | its tool is not here |", "| passes | passed | 0 | / a / b / |", "    one"):
        assert f"\n{line}\n" in page
    assert (tmp_path / "not-here.log").exists()
    assert capsys.readouterr().out.count("\n") == len(found)


@pytest.mark.slow
def test_a_part_that_takes_too_long_is_ended_with_all_its_processes_and_says_where_it_was(tmp_path: Path) -> None:
    child = f"import os, time; print(os.getpid(), file=open({str(tmp_path / 'child')!r}, 'w')); time.sleep(600)"
    code = f"import subprocess, sys\ndef sleep_long(): subprocess.run({python(child)!r})\nprint('begun')\nsleep_long()"
    contact(tmp_path).run(Part("hangs", python(code), 6))
    assert results_in(tmp_path)["hangs"][0] == "timed out"
    assert "in sleep_long" in (tmp_path / "hangs.log").read_text()
    assert has_ended(int((tmp_path / "child").read_text()))


def test_what_does_not_fit_into_the_budget_is_named(tmp_path: Path) -> None:
    made = contact(tmp_path, budget=50)
    made.run(Part("long", python("print('never')"), 600, needs=100))
    made.run(Part("short", python("print('done')"), 600, needs=1))
    found = results_in(tmp_path)
    assert found["long"][0] == "skipped"
    assert found["long"][1].startswith("about 100 s do not fit into the ")
    assert found["short"] == ("passed", "done")


@pytest.mark.parametrize(
    "said",
    [
        "cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (700) (this process can no longer use the device: ...)",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "Fatal Python error: Segmentation fault",
    ],
)
def test_a_part_that_loses_the_context_runs_again_under_memcheck(said: str, tmp_path: Path) -> None:
    code = "import sys; print('watched', sys.argv[1:3], sys.argv[-1])"
    tool = program(tmp_path / "tools" / "compute-sanitizer", code)
    made = contact(tmp_path, memcheck=str(tool))
    made.run(Part("tests:lost", python(f"print({said!r}); raise SystemExit(1)"), 60))
    made.run(Part("tests:other", python("print('an assertion'); raise SystemExit(1)"), 60))
    found = results_in(tmp_path)
    assert list(found) == ["tests:lost", "tests:lost-memcheck", "tests:other"]
    assert found["tests:lost-memcheck"][1].startswith("watched ['--tool', 'memcheck'] print(")


def test_a_failed_smoke_is_shown_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = contact(tmp_path)
    for name in ("smoke", "tests:other"):
        made.run(Part(name, python(f"print('why {name}'); print('failed'); raise SystemExit(1)"), 60))
    printed = capsys.readouterr().out
    assert "why smoke" in printed
    assert "why tests:other" not in printed


def test_the_first_minutes_tell_most() -> None:
    parts = first_contact.parts_of(Path("folder"))
    names, seconds = [part.name for part in parts], 0.0
    assert len(set(names)) == len(names)
    assert names[:2] == ["facts", "smoke"]
    assert all(0 < part.needs <= part.limit < 600 for part in parts)
    fitting = []
    for part in parts:
        seconds += part.needs
        if seconds <= first_contact.BUDGET:
            fitting.append(part.name)
    assert {part.group for part in parts} == {"facts", "smoke", "tests", "speed", "profile"}
    assert {"tests:same_bits", "speed:worlds", "speed:rooms", "speed:levels", "profile:step-8192"} <= set(fitting)
    assert {"tests:policies", "tests:engines", "tests:trainer", "tests:torch", "tests:training"} <= set(fitting)


def test_all_tests_are_in_it() -> None:
    programs = [part.program for part in first_contact.parts_of(Path("folder"))]
    for file in SCRIPTS.glob("test_*.py"):
        assert any(str(file) in program for program in programs), file


# ---- tests/gpu/profiles.py

NCU = """
import os, sys
arguments = sys.argv[1:]
print(*arguments, file=open(os.environ["CALLS"], "a"))
if "--import" in arguments:
    names = ["ID", "Kernel Name", "smsp__inst_executed.sum", "launch__occupancy_limit_registers"]
    rows = [names, ["", "", "inst", "block"], ["0", "doorstep_step", "20,480,000", "8"]]
    table = arguments[arguments.index("--log-file") + 1]
    lines = ['"' + '","'.join(row) + '"' for row in rows]
    print("==PROF== a line, before", *lines, sep="\\n", file=open(table, "w"))
elif "full" in arguments and os.environ.get("REFUSES"):
    sys.exit(os.environ["REFUSES"])
else:
    begin = next(index for index, word in enumerate(arguments) if "python" in os.path.basename(word))
    open(arguments[arguments.index("-o") + 1], "w").close()
    if os.environ.get("PLAYS"):
        program = arguments[begin:]
        program[program.index("--worlds") + 1], program[program.index("--steps") + 1] = "3", "2"
        os.execv(program[0], program)
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the arguments of every call of a profiler that is found."""
    profiler = program(tmp_path / "tools" / "ncu", NCU)
    monkeypatch.setattr(profiles, "find_tool", lambda name: str(profiler))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def test_metrics_of_the_profiler_are_read(
    calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["profiles", "views", "--worlds", "8192", "--output", str(tmp_path)])
    assert profiles.main() == 0
    assert (tmp_path / "views_8192.ncu-rep").exists()
    printed = capsys.readouterr().out
    for line in (
        "| warp instructions | 20,480,000 inst |",
        "| blocks per multiprocessor, by registers | 8 block |",
        "| warp instructions per world | 2,500 |",
    ):
        assert f"{line}\n" in printed
    profiled, _ = calls.read_text().splitlines()
    assert "--clock-control none -k doorstep_draw_views -s 62 -c 1" in profiled
    assert "-m tests.gpu.workloads views --worlds 8192 --steps 66" in profiled


def test_a_profiler_that_fails_is_asked_for_less(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFUSES", "==ERROR== Unknown section")
    assert profiles.profile("step", 100, tmp_path / "report") == 0
    first, second = calls.read_text().splitlines()
    assert "--set full" in first
    assert "--set full" not in second
    assert profiles.METRICS["warps waiting at barriers"] in second


def test_counters_that_the_user_may_not_read_end_it(
    calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
    monkeypatch.setenv("REFUSES", refusal)
    assert profiles.profile("step", 100, tmp_path / "report") == first_contact.NOT_HERE
    assert len(calls.read_text().splitlines()) == 1
    assert "may not read the GPU's counters" in capsys.readouterr().out.splitlines()[-1]


def test_without_a_profiler_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "find_tool", lambda name: None)
    assert profiles.profile("step", 100, tmp_path / "report") == first_contact.NOT_HERE
    assert capsys.readouterr().out == "ncu (Nsight Compute) is not here\n"


# ---- The command


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    output = tmp_path / "results"
    done = run("first_contact.py", "--output", output, "--wheel", wheel_of(tmp_path, gpu=False))
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == "doorstep: nothing is run on a GPU: There is no driver.\n"
    assert not output.exists()


def test_a_failing_part_fails_the_whole(tmp_path: Path) -> None:
    # This wheel's doorstep has no tests that could pass.
    wheel = wheel_of(tmp_path, gpu=True)
    arguments = ("--output", tmp_path / "out", "--wheel", wheel, "--parts", "tests:vulkan", "--limit", "90")
    done = run("first_contact.py", *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    parts = json.loads((tmp_path / "out" / "results.json").read_text())["parts"]
    assert [(part["part"], part["status"]) for part in parts] == [("tests:vulkan", "failed"), ("facts-after", "passed")]


def test_an_unknown_part_is_named(tmp_path: Path) -> None:
    done = run("first_contact.py", "--parts", "speed,sped", "--wheel", wheel_of(tmp_path, gpu=True))
    assert done.returncode == 2
    assert "--parts: sped; there are facts, smoke, tests, speed, profile, and of these tests:same_bits, " in done.stderr


SANITIZER = """
import os, sys
begin = next(index for index, word in enumerate(sys.argv) if "python" in os.path.basename(word))
os.execv(sys.argv[begin], sys.argv[begin:])
"""


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_rehearsal_of_all_on_the_stand_in(tmp_path: Path) -> None:
    require_stand_in()
    for name, code in {"ncu": NCU, "compute-sanitizer": SANITIZER}.items():
        program(tmp_path / "tools" / name, code)
    variables = environment_of({}) | {
        "PATH": f"{tmp_path / 'tools'}{os.pathsep}{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
        "PLAYS": "1",
        REHEARSAL: "1",
    }
    content, output = Path(doorstep.__file__).parents[1], tmp_path / "out"
    limits = ("--budget", "100000", "--limit", "550")
    done = run("first_contact.py", "--wheel", content, "--output", output, *limits, timeout=3000, **variables)
    results = json.loads((output / "results.json").read_text())["parts"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert [result["part"] for result in results] == [
        *(part.name for part in first_contact.parts_of(output)),
        "facts-after",
    ]
    # These files need PyTorch with CUDA, which cannot use the stand-in driver: pytest skips them whole.
    files = ("bridge", "environments", "policies", "torch", "trainer", "training")
    without_frameworks = {f"tests:{name}" for name in files}
    assert {result["part"] for result in results if result["status"] == "skipped"} <= without_frameworks
    known = "cannot use the GPU|import 'cupy'|no Vulkan loader|nvidia-smi is not there"
    for report in output.glob("*.xml"):
        for skipped in ElementTree.parse(report).iter("skipped"):
            assert re.search(known, skipped.attrib["message"] + (skipped.text or "")), (report.name, skipped.attrib)
    profiled = (tmp_path / "calls").read_text()
    assert all(kernel in profiled for kernel in profiles.KERNELS.values())
