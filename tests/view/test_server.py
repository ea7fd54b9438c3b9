"""`doorstep view` as a user starts and ends it, and which pages may connect to it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import RunPython

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import OpenViewer, Visitor, until
from websockets.exceptions import InvalidStatus

import doorstep
from doorstep.cli import main
from doorstep.recording import RecordingWriter
from doorstep.viewer.server import Settings, address, opened


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


def test_a_policy_comes_from_the_folder_in_which_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / "walk.py").write_text("""
from pathlib import Path
from typing import Any
import numpy

def ahead(observations):
    Path("part").write_text(str(observations.shape))
    Path("part").rename("called")  # complete whenever it exists: Ctrl-C may interrupt any call
    return numpy.full((3, 2, 4), (1, 0, 2, 0))
""")
    arguments = ["view", "--worlds", "3", "--port", "0", "--policy", "walk:ahead", "--keep-running"]
    command = [sys.executable, "-I", "-m", "doorstep", *arguments]  # -I: Python itself does not add the folder
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        until((tmp_path / "called").exists)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert (tmp_path / "called").read_text() == "(3, 2, 94)"


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
        (
            ["--policy", "wise"],
            "doorstep view: error: policy is 'wise'; it must be 'random', 'idle', 'scripted', 'trained', 'general', ",
        ),
        (
            ["--policy", "missing.py:act"],
            "doorstep view: error: policy is 'missing.py:act'; there is no file 'missing.",
        ),
        (["--actions", "missing.bin"], "doorstep view: error: missing.bin: No such file"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(says)
    assert output.err.count("\n") == 1


def test_a_recording_that_an_option_contradicts_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.rec"
    with doorstep.Simulator(3) as sim, RecordingWriter(path, sim) as writer:
        writer.step()
    assert main(["view", "--port", "0", "--worlds", "2", "--actions", str(path)]) == 2
    assert f"--worlds is 2, but {path} was recorded with 3. (Leave --worlds out.)" in capsys.readouterr().err


def test_a_program_shows_any_policy_and_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(observations: Any) -> Any:
        return np.full((*observations.shape[:-1], 4), (2, 1, 3, 0))

    acted = []

    def serve(settings: Settings) -> None:
        with opened(settings) as (viewer, _):
            viewer.step_once()
            sim = viewer._sim
            acted.append((sim.config.max_levels, sim.actions.copy_to_host().tolist(), viewer.error))

    monkeypatch.setattr("doorstep.viewer.server.serve", serve)
    doorstep.view(walk, levels="curated", worlds=3, port=0)
    assert acted == [(len(doorstep.levels.curated()), [[[2, 1, 3, 0]] * 2] * 3, "")]


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
    assert message.startswith("doorstep view: error: the viewer needs viser")
    assert 'pip install "doorstep[view]"' in message


def test_nothing_else_imports_viser(run_new_python: RunPython) -> None:
    assert run_new_python("import sys, doorstep, doorstep.cli; print('viser' in sys.modules)") == "False\n"


def test_pages_of_other_sites_cannot_connect(open_viewer: OpenViewer) -> None:
    with open_viewer(policy="idle") as running:
        port = running.server.get_port()
        for origin, host in (
            ("https://evil.example", "127.0.0.1"),
            ("null", "127.0.0.1"),
            ("http://127.0.0.1:1", "127.0.0.1"),
            (f"http://evil.example:{port}", "evil.example"),  # a name that its owner lets lead here
        ):
            with pytest.raises(InvalidStatus) as caught:
                Visitor(running, origin, host)
            assert caught.value.response.status_code == 403
        assert not running.server.get_clients()
        with Visitor(running, f"http://127.0.0.1:{port}"):
            assert len(running.server.get_clients()) == 1


@pytest.mark.parametrize("sent", [b"", b"nonsense", b"\xc1", b"\xdd\xff\xff\xff\xff", "a text"])
def test_nonsense_ends_at_most_the_connection_that_sent_it(open_viewer: OpenViewer, sent: bytes | str) -> None:
    with open_viewer(policy="idle") as running:
        Visitor(running)._socket.send(sent)
        with Visitor(running) as other:
            other.set(running.control("rate"), 7)
            until(lambda: running.ask(lambda viewer: viewer._pace.rate) == 7)
        assert running.error() == ""


@pytest.mark.parametrize(
    ("host", "opened"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("localhost", "http://localhost:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),
        ("::", "http://[::1]:8080"),
        ("::1", "http://[::1]:8080"),
        ("2001:db8::7", "http://[2001:db8::7]:8080"),
    ],
)
def test_the_address_that_is_printed_can_be_opened(host: str, opened: str) -> None:
    assert address(host, 8080) == opened


def test_worlds_are_shown_before_the_first_browser_asks() -> None:
    with opened(Settings(worlds=4, policy="idle", port=0)) as (viewer, _):
        assert all(thing._shown for thing in viewer._page.stage._things)
