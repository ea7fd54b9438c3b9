"""`doorstep serve`, from its start to a signal."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Refused

pytest.importorskip("aiohttp")

from tests.pkg.serve.serving import Served, head_of

TOKEN = "0123456789abcdef"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The command on a free port, with a token and a policy that is slow."""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "slow.py").write_text("""
import time
import numpy

def still(observations):
    time.sleep(0.05)
    return numpy.tile(numpy.array((0, 0, 2, 0)), (len(observations), 1))
""")
    options = ["--port", "0", "--worlds", "2", "--policy", "random", "--policy", "slow:still", "--token-file", "token"]
    command = [sys.executable, "-m", "doorstep", "serve", *options, "scheduler.type=priority"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        yield process
        process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly_in_the_middle_of_a_stream(started: subprocess.Popen[str], number: int) -> None:
    assert started.stdout is not None
    at = Served(started.stdout.readline().split()[0])
    allowed = {"Authorization": f"Bearer {TOKEN}"}
    info = json.loads(at.call("GET", "/info", **allowed)[2])
    assert info["policies"] == ["random", "slow:still"]
    assert info["config"]["scheduler"]["type"] == "priority"
    assert at.refusal("GET", "/info")[0] == 401
    body = json.dumps([{"max_steps": 1, "policy": "random"}, {"policy": "slow:still"}])
    head = head_of(f"Authorization: Bearer {TOKEN}", f"Content-Length: {len(body)}")
    with socket.create_connection(("127.0.0.1", at.port), 20) as client, client.makefile("rb") as answer:
        client.sendall(head + body.encode())
        while b'"index": 0' not in answer.readline():
            pass
        started.send_signal(number)
        assert b"ClosedError" in answer.read()
    output, errors = started.communicate(timeout=30)
    assert (started.returncode, output, errors) == (0, "", "")


def test_mistakes_are_refused(refused: Refused, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert "--token-file" in refused("serve", "--host", "0.0.0.0", "--worlds", "1")
    assert "'scripted'" in refused("serve", "--policy", "scripted", "--worlds", "1")
    assert "port is 70000" in refused("serve", "--port", "70000", "--worlds", "1")
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text("short")
    line = refused("serve", "--token-file", str(token), "--worlds", "1")
    assert "token" in line
    assert "short" not in line  # a token is no text for logs
    token.write_bytes(b"\xff\xfe")
    assert "no text" in refused("serve", "--token-file", str(token), "--worlds", "1")
