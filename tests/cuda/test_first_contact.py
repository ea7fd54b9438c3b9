"""The command for a GPU that this code has never met: all of it once on the stand-in, and what it says of failures."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cuda.on_stand_in import environment_of, require_stand_in
from tests.cuda.stand_in_driver import PROJECT
from tests.gpu.contact import plan, profiles
from tests.gpu.contact.running import CLOSING
from tests.gpu.sizes import REHEARSAL

import doorstep

pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("run")
COMMAND = [sys.executable, f"{PROJECT}/tests/gpu/first_contact.py", "--wheel", str(Path(doorstep.__file__).parents[1])]
SHOWN = 10_000  # characters of its output that reach the caller at least

# What the tools of the toolkit do that it calls, as far as it looks.
RUN = """
import os, sys
begin = next((index for index, word in enumerate(sys.argv) if "python" in os.path.basename(word)), 0)
program = sys.argv[begin:]
"""
TOOLS = {
    "ncu": RUN
    + r"""
if "--import" in sys.argv:
    names = ["ID", "Kernel Name", "smsp__inst_executed.sum", "launch__occupancy_limit_registers"]
    rows = [names, ["", "", "inst", "block"], ["0", "doorstep_step", "20,480,000", "8"]]
    lines = ['"' + '","'.join(row) + '"' for row in rows]
    print("==PROF== a line, before", *lines, sep="\n", file=open(sys.argv[sys.argv.index("--log-file") + 1], "w"))
    raise SystemExit
open(sys.argv[sys.argv.index("-o") + 1], "w").write(sys.argv[sys.argv.index("-k") + 1])
program[program.index("--worlds") + 1], program[program.index("--steps") + 1] = "3", "2"
os.execv(program[0], program)
""",
    "compute-sanitizer": RUN
    + "print('========= COMPUTE-SANITIZER', sys.argv[2], flush=True); os.execv(program[0], program)",
    "cuda-gdb": "print('  Kernel 0 doorstep_step<<<(16,1,1),(512,1,1)>>>')",
}


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Programs of these names, which are found first."""
    (tmp_path / "tools").mkdir()
    for name, code in TOOLS.items():
        path = tmp_path / "tools" / name
        path.write_text(f"#!{sys.executable}\n{code}")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}{os.pathsep}{os.environ['PATH']}")


def meet(folder, *arguments, budget=60.0, patience=15.0, **settings):
    """Meets the stand-in with these settings; programs may take so many times as long as on a GPU."""
    require_stand_in()
    given = ["--output", str(folder / "out"), "--publish", str(folder / "published"), "--budget", str(budget)]
    done = output_of([*COMMAND, *given, *arguments], env=environment_of(settings) | {REHEARSAL: str(patience)})
    assert done.stderr == ""
    return done


def output_of(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def results_in(folder):
    """The status of each part."""
    return {part["part"]: part["status"] for part in json.loads((folder / "results.json").read_text())["parts"]}


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.usefixtures("tools")
def test_a_rehearsal_of_all(tmp_path):
    done = meet(tmp_path, budget=2900)
    found, output, shown = results_in(tmp_path / "out"), tmp_path / "out", done.stdout[-SHOWN:]
    assert sorted(found) == sorted(part.name for stage in plan.stages(output) for lane in stage for part in lane)
    assert set(found.values()) <= {"passed", "nothing done"}, found
    # These files need PyTorch with CUDA, which cannot use the stand-in driver: pytest skips them whole.
    files = ("bridge", "environments", "policies", "torch", "trainer", "training")
    assert {name for name, status in found.items() if status == "nothing done"} <= {f"tests:{name}" for name in files}
    known = "cannot use the GPU|import 'cupy'|no Vulkan loader|nvidia-smi is not there"
    for report in output.glob("*.xml"):
        for skipped in ElementTree.parse(report).iter("skipped"):
            assert re.search(known, skipped.attrib["message"] + (skipped.text or "")), (report.name, skipped.attrib)
    assert {path.read_text() for path in output.glob("*.ncu-rep")} == set(profiles.KERNELS.values())
    assert {"logs.tgz", "results.json", "results.md"} < set(os.listdir(tmp_path / "published"))
    assert done.returncode == 0
    for line in ("verdict: everything that ran is well; parts left out: 0", "| engine, random | 5 |", "| normal | 5 |"):
        assert line in shown


FAILING = {  # regular expressions of lines
    "wrong_bit": r"""1 of 5 worlds differ, step 1 of 3: worlds 2
  state.body_positions\[0, 0\]: CPU .*, GPU .*, 1 ULP apart
30 steps: FAILED
verdict: stopped: smoke failed""",
    "hang": """Kernel 0 doorstep_step<<<
File ".*smoke.py", line [0-9]+ in main
verdict: stopped: smoke timed out""",
}


@pytest.mark.slow
@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("failure", FAILING)
def test_a_driver_that_fails_is_diagnosed(failure, tmp_path):
    patience = 0.25 if failure == "hang" else 15
    begin = time.monotonic()
    done = meet(tmp_path, "--parts", "smoke,speed,facts", patience=patience, planted=failure)
    assert time.monotonic() - begin < 60 + CLOSING
    assert done.returncode == 1
    for line in FAILING[failure].splitlines():
        assert re.search(line, done.stdout[-SHOWN:], re.MULTILINE), (line, done.stdout)
    found = results_in(tmp_path / "published")
    assert {name for name, status in found.items() if status == "left out"} > {"speed:worlds", "facts"}
    difference = tmp_path / "published/difference.npz"
    assert difference.exists() == (failure == "wrong_bit")
    if difference.exists():
        command = [sys.executable, "-m", "tests.cuda.differences", str(difference), "cpu", "cuda"]
        of_ptx = environment_of({"interprets": 1, "compute_capability": 130})
        replayed = output_of(command, env=of_ptx, cwd=PROJECT).stdout
        assert "played again on cpu: the CPU's result\nplayed again on cuda: the CPU's result\n" in replayed


def test_what_was_left_out_is_done_by_the_next_call(tmp_path):
    first = meet(tmp_path, "--parts", "facts,racecheck", budget=0)
    assert "verdict: everything that ran is well; parts left out: 3" in first.stdout
    assert set(results_in(tmp_path / "out").values()) == {"left out"}
    assert meet(tmp_path, "--parts", "facts").returncode == 0
    rest = meet(tmp_path, "--parts", "facts,racecheck", "--rest", patience=1)
    assert "facts: passed" not in rest.stdout
    assert "racecheck:step: " in rest.stdout
    assert results_in(tmp_path / "out")["facts"] == "passed"
