"""NVIDIA's compute-sanitizer finds no errors in small runs of all kernels, if the tool is installed and works."""

import functools
import subprocess
import sys

import pytest
from tests.gpu.first_contact import find_tool
from tests.gpu.sizes import sized

FOUND = 86
WORKLOADS = ("step", "levels", "policy", "views", "training", "level-views", "agents")


def run(tool: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    program = find_tool("compute-sanitizer")
    if program is None:
        pytest.skip("compute-sanitizer is not on this machine")
    # Querying the attributes of a host address fails in the driver, which is expected.
    options = ["--tool", tool, "--error-exitcode", str(FOUND)]
    if tool == "memcheck":
        options += ["--report-api-errors", "no"]
    command = [program, *options, sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


@functools.cache
def reason_not_to_run(tool: str) -> str:
    """Why the tool does not work here; empty if it does."""
    probe = run(tool, "-c", "from doorstep import cuda; cuda.Device()")
    return (probe.stdout + probe.stderr)[-300:] if probe.returncode else ""


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_nothing_is_found(tool: str, workload: str) -> None:
    if reason := reason_not_to_run(tool):
        pytest.skip(f"compute-sanitizer does not work here: {reason}")
    sizes = ["--worlds", sized("70", "5"), "--steps", sized("8", "2")]
    done = run(tool, "-m", "tests.gpu.workloads", workload, *sizes)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
