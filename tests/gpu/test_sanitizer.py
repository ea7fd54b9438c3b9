"""NVIDIA's compute-sanitizer finds no errors in a small run, if the tool is installed and works."""

import subprocess
import sys

import pytest
from tests.gpu.first_contact import find_tool

RUN = """
import doorstep
for agents in (1, 2, 8):
    with doorstep.Simulator(70, device="cuda", num_agents=agents, episode_length=5) as sim:
        for _ in range(8):
            sim.step()
        sim.reset([3, 50])
        sim.refresh()
        sim.restore(sim.save())
        sim.wait()
"""
FOUND = 86


def run(tool: str, code: str) -> "subprocess.CompletedProcess[str]":
    program = find_tool("compute-sanitizer")
    if program is None:
        pytest.skip("compute-sanitizer is not on this machine")
    # Querying the attributes of a host address fails in the driver, which is expected.
    options = ["--tool", tool, "--error-exitcode", str(FOUND)]
    if tool == "memcheck":
        options += ["--report-api-errors", "no"]
    command = [program, *options, sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_nothing_is_found(tool: str) -> None:
    probe = run(tool, "import doorstep; doorstep.cuda.Device()")
    if probe.returncode:
        pytest.skip(f"compute-sanitizer does not work here: {(probe.stdout + probe.stderr)[-300:]}")
    done = run(tool, RUN)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
