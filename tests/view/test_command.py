"""`doorstep view` as a user starts and ends it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import RunPython

pytest.importorskip("viser", reason="the viewer needs viser")

from doorstep.action_dump import ActionDumpWriter
from doorstep.cli import main
from doorstep.view.policies import IDLE


@pytest.fixture
def started() -> Iterator[subprocess.Popen[str]]:
    """The command on a free port, as a process."""
    command = [sys.executable, "-m", "doorstep", "view", "--worlds", "3", "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as process:
        yield process
        process.kill()


def test_it_prints_one_address_serves_the_page_and_ends_quietly_with_ctrl_c(started: subprocess.Popen[str]) -> None:
    assert started.stdout is not None
    address = started.stdout.readline().split()[0]
    with urllib.request.urlopen(address, timeout=20) as response:
        assert response.status == 200
        assert b"<title>" in response.read()
    started.send_signal(signal.SIGINT)
    output, errors = started.communicate(timeout=30)
    assert (started.returncode, output, errors) == (0, "", "")


def test_a_busy_port_is_an_error_and_no_other_port_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", "--port", str(port)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(
        f"doorstep view: error: Port {port} of 127.0.0.1 is in use. (Give another one with --port"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "203.0.113.7"], "doorstep view: error: The page cannot be served on port 8080 of '203.0.113.7': "),
        (
            ["--host", "no.such.host.invalid"],
            "doorstep view: error: The page cannot be served on port 8080 of 'no.such",
        ),
        (["--port", "65536"], "doorstep view: error: argument --port: 65536 is not allowed; give 0 to 65535"),
        (["--port", "http"], "doorstep view: error: argument --port: 'http' is not a number"),
        (["--rate", "1001"], "doorstep view: error: argument --rate: 1001 is not allowed; give 0 to 1000"),
        (["--rate", "nan"], "doorstep view: error: argument --rate: nan is not allowed; give 0 to 1000"),
        (["--worlds", "0"], "doorstep view: error: argument --worlds: 0 is not allowed; give at least 1"),
        (["--agents", "9"], "doorstep view: error: num_agents is 9"),
        (["--device", "gpu"], "doorstep view: error: device is 'gpu'"),
        (["--policy", "wise"], "doorstep view: error: argument --policy: invalid choice: 'wise'"),
        (["--actions", "missing.bin"], "doorstep view: error: [Errno 2] No such file"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(says)
    assert output.err.count("\n") == 1


def test_a_recording_of_other_sizes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "actions.bin"
    with ActionDumpWriter(path, num_worlds=3) as dump:
        dump.append([[IDLE, IDLE]] * 3)
    assert main(["view", "--port", "0", "--worlds", "2", "--actions", str(path)]) == 2
    assert "which does not divide it" in capsys.readouterr().err


def test_without_viser_it_says_what_to_install(run_python: RunPython) -> None:
    output = run_python("""
import contextlib, io, sys
sys.modules["viser"] = None
from doorstep.cli import main
with contextlib.redirect_stderr(io.StringIO()) as errors:
    print(main(["view"]))
print(errors.getvalue())
""")
    code, message = output.split("\n", 1)
    assert code == "1"
    assert message.startswith("doorstep view: error: The viewer needs the package viser")
    assert 'pip install "viser>=1.1,<2"' in message


def test_nothing_else_imports_viser(run_python: RunPython) -> None:
    assert run_python("import sys, doorstep, doorstep.cli; print('viser' in sys.modules)") == "False\n"
