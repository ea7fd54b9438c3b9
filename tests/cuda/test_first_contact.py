"""The command for a GPU that this code has never met: all of it once on the stand-in, and what it says of failures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cuda.on_stand_in import environment_of, require_stand_in
from tests.gpu.contact import plan, profiles
from tests.gpu.contact.programs import NOT_HERE
from tests.gpu.contact.results import PROFILES
from tests.gpu.contact.running import CLOSING
from tests.gpu.sizes import REHEARSAL

import doorstep
from doorstep._native import cuda_architectures

pytest.importorskip("torch")

PROJECT = Path(__file__).resolve().parents[2]
COMMAND = [
    sys.executable,
    str(PROJECT / "tests/gpu/first_contact.py"),
    "--wheel",
    str(Path(doorstep.__file__).parents[1]),
]
SHOWN = 10_000  # characters of its output that reach the caller at least
MEBIBYTE = 2**20

# What the tools of the toolkit do that it calls, as far as it looks.
RUN = """
import os, sys
begin = next(index for index, word in enumerate(sys.argv) if "python" in os.path.basename(word))
program = sys.argv[begin:]
"""
TOOLS = {
    "ncu": RUN.replace("begin =", "begin = '--import' not in sys.argv and")
    + r"""
if "--import" in sys.argv:
    names = ["ID", "Kernel Name", "smsp__inst_executed.sum", "launch__occupancy_limit_registers"]
    rows = [names, ["", "", "inst", "block"], ["0", "doorstep_step", "20,480,000", "8"]]
    lines = ['"' + '","'.join(row) + '"' for row in rows]
    print("==PROF== a line, before", *lines, sep="\n", file=open(sys.argv[sys.argv.index("--log-file") + 1], "w"))
    raise SystemExit
if "full" in sys.argv and os.environ.get("NCU") == "refuses much":
    sys.exit("==ERROR== Unknown section")
if os.environ.get("NCU") == "refuses all":
    sys.exit("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters")
open(sys.argv[sys.argv.index("-o") + 1], "w").write(sys.argv[sys.argv.index("-k") + 1])
program[program.index("--worlds") + 1], program[program.index("--steps") + 1] = "3", "2"
os.execv(program[0], program)
""",
    "compute-sanitizer": RUN
    + "print('========= COMPUTE-SANITIZER', sys.argv[2], flush=True); os.execv(program[0], program)",
    "cuda-gdb": "print('  Kernel 0 doorstep_step<<<(16,1,1),(512,1,1)>>>')",
    "dmesg": "print('[7.0] NVRM: Xid (PCI:0000:00:05): 31, pid=1, MMU Fault')",
}


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of these names, which are found first."""
    for name, code in TOOLS.items():
        path = tmp_path / "tools" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\n{code}")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}{os.pathsep}{os.environ['PATH']}")


def meet(
    folder: Path, *arguments: str, budget: float = 60, patience: float = 15, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Meets the stand-in with these settings; programs may take so many times as long as on a GPU."""
    require_stand_in()
    given = [
        "--output",
        str(folder / "out"),
        "--publish",
        str(folder / "published"),
        "--budget",
        str(budget),
        *arguments,
    ]
    variables = environment_of(dict(settings)) | {REHEARSAL: str(patience)}
    done = subprocess.run([*COMMAND, *given], env=variables, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done


def results_in(folder: Path) -> dict[str, str]:
    """The status of each part."""
    return {part["part"]: part["status"] for part in json.loads((folder / "results.json").read_text())["parts"]}


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.usefixtures("tools")
def test_a_rehearsal_of_all(tmp_path: Path) -> None:
    done = meet(tmp_path, budget=2900)
    found, output, shown = results_in(tmp_path / "out"), tmp_path / "out", done.stdout[-SHOWN:]
    parts = [part for stage in plan.stages(output) for lane in stage for part in lane]
    assert sorted(found) == sorted(part.name for part in parts)
    assert set(found.values()) <= {"passed", "nothing done"}, found
    # These files need PyTorch with CUDA, which cannot use the stand-in driver: pytest skips them whole.
    files = ("bridge", "environments", "policies", "torch", "trainer", "training")
    assert {name for name, status in found.items() if status == "nothing done"} <= {f"tests:{name}" for name in files}
    known = "cannot use the GPU|import 'cupy'|no Vulkan loader|nvidia-smi is not there"
    for report in output.glob("*.xml"):
        for skipped in ElementTree.parse(report).iter("skipped"):
            assert re.search(known, skipped.attrib["message"] + (skipped.text or "")), (report.name, skipped.attrib)
    assert {path.read_text() for path in output.glob("*.ncu-rep")} == set(profiles.KERNELS.values())
    profiled = sorted(path.name for path in output.glob("*.ncu-rep"))[:PROFILES]
    published = sorted(path.name for path in (tmp_path / "published").iterdir())
    assert len(published) == 3 + len(profiled)
    assert {"logs.tgz", "results.json", "results.md"} < set(published)
    assert done.returncode == 0
    assert shown.startswith(done.stdout[-SHOWN : -SHOWN + 1])
    for line in (
        "verdict: everything that ran is well; parts left out: 0",
        "| engine, random | 5 |",
        "| warp instructions per world |",
    ):
        assert line in shown
    assert "| normal | 5 |" in shown
    assert "doorstep 0" in shown


FAILING: dict[str, tuple[float, list[str]]] = {
    "refuses_machine_code": (
        15,
        [
            "machine code of steps: FAILED: the driver refuses it: code 209",
            "PTX of steps, compiled by the driver: [1-9]",
            "verdict: stopped: smoke failed",
        ],
    ),
    "wrong_bit": (
        15,
        [
            r"1 of 5 worlds differ, step 1 of 3: worlds 2",
            r"  state.body_positions\[0, 0\]: CPU .*, GPU .*, 1 ULP apart",
            "30 steps: FAILED",
            "verdict: stopped: smoke failed",
        ],
    ),
    "hang": (
        0.25,
        [
            "smoke timed out:",
            r"Kernel 0 doorstep_step<<<",
            'File ".*smoke.py", line [0-9]+ in main',
            r"  1 step: +Kernel 0",
            "verdict: stopped: smoke timed out",
        ],
    ),
    "crash": (
        15,
        [
            r"smoke: .*CUDA_ERROR_700",
            "NVRM: Xid .*: 31",
            "========= COMPUTE-SANITIZER memcheck",
            "verdict: stopped: smoke failed",
        ],
    ),
}


# The stand-in's device has compute capability 9.0.
MARKS = {
    "refuses_machine_code": pytest.mark.skipif(
        "sm_90" not in cuda_architectures(), reason="no machine code: the library has none for compute capability 9.0"
    )
}


@pytest.mark.slow
@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("failure", [pytest.param(one, marks=MARKS.get(one, ())) for one in FAILING])
def test_a_driver_that_fails_is_diagnosed(failure: str, tmp_path: Path) -> None:
    patience, expected = FAILING[failure]
    begin, budget = time.monotonic(), 60.0
    done = meet(tmp_path, "--parts", "smoke,speed,facts", budget=budget, patience=patience, planted=failure)
    assert time.monotonic() - begin < budget + CLOSING
    assert done.returncode == 1
    for line in expected:
        assert re.search(line, done.stdout[-SHOWN:], re.MULTILINE), (line, done.stdout)
    found = results_in(tmp_path / "published")
    assert {name for name, status in found.items() if status == "left out"} > {"speed:worlds", "facts"}
    assert (tmp_path / "published/difference.npz").exists() == (failure == "wrong_bit")
    if failure == "wrong_bit":
        command = [
            sys.executable,
            "-m",
            "tests.cuda.differences",
            str(tmp_path / "published/difference.npz"),
            "cpu",
            "cuda",
        ]
        of_ptx = environment_of({"interprets": 1, "compute_capability": 130})
        replayed = subprocess.run(command, env=of_ptx, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
        assert "played again on cpu: the CPU's result\nplayed again on cuda: the CPU's result\n" in replayed


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(("ncu", "status"), [("refuses much", 0), ("refuses all", NOT_HERE)])
def test_a_profiler_that_fails_is_asked_for_less(
    ncu: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCU", ncu)
    command = [sys.executable, "-m", "tests.gpu.contact.profiles", "step", "--output", str(tmp_path)]
    done = subprocess.run(command, env=environment_of({}), cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert ("| warp instructions per world | 2,500 |" in done.stdout) == (status == 0)


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, "--output", str(tmp_path / "out")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.startswith("doorstep: no GPU: ")
    assert not (tmp_path / "out").exists()


def test_what_was_left_out_is_done_by_the_next_call(tmp_path: Path) -> None:
    first = meet(tmp_path, "--parts", "facts,racecheck", budget=0)
    assert "verdict: everything that ran is well; parts left out: 3" in first.stdout
    assert set(results_in(tmp_path / "out").values()) == {"left out"}
    assert meet(tmp_path, "--parts", "facts").returncode == 0
    rest = meet(tmp_path, "--parts", "facts,racecheck", "--rest", patience=1)
    assert "facts: passed" not in rest.stdout
    assert "racecheck:step: " in rest.stdout
    assert results_in(tmp_path / "out")["facts"] == "passed"


def test_an_unknown_part_is_named() -> None:
    done = subprocess.run([*COMMAND, "--parts", "speed,sped"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--parts: sped is none of doctor, smoke, speed:worlds, " in done.stderr


def test_ending_it_ends_what_it_runs(tmp_path: Path) -> None:
    require_stand_in()
    variables = environment_of({"planted": "hang"}) | {REHEARSAL: "1"}
    given = ["--output", str(tmp_path / "out"), "--parts", "smoke"]
    with subprocess.Popen([*COMMAND, *given], env=variables, stdout=subprocess.PIPE, text=True) as process:
        wait_until(lambda: (tmp_path / "out/smoke.log").exists() and bool(children_of(process.pid)))
        children = children_of(process.pid)
        process.terminate()
        assert process.wait(60) == 1
    wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


def children_of(process: int) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_travels_to_a_machine_with_a_gpu_is_small() -> None:
    """Such a machine gets 64 MiB: the tree, one wheel, and what else it may need."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(listed, cwd=PROJECT, capture_output=True, text=True, check=False)
    wheels = sorted((PROJECT / "dist").glob("doorstep-*.whl"), key=lambda path: path.stat().st_mtime)
    if done.returncode or not wheels:
        pytest.skip("this is no clone of the repository, or there is no wheel in dist/")
    files = [PROJECT / name for name in done.stdout.split("\0") if name] + wheels[-1:]
    assert sum(path.stat().st_size for path in files if path.exists()) < 56 * MEBIBYTE
