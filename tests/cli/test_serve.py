"""`doorstep serve`, from its start to a signal, and what all commands that serve withstand."""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import socket
import subprocess
import sys
import urllib.request
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


def as_a_script_starts_it() -> None:
    """In the background a shell's script lets programs ignore SIGINT. It may open few files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("name", "module", "path"), [("serve", "aiohttp", "/info"), ("view", "viser", "/")])
def test_silent_clients_keep_nobody_out_and_a_signal_ends_it(name: str, module: str, path: str, number: int) -> None:
    pytest.importorskip(module)
    command = [sys.executable, "-m", "doorstep", name, "--port", "0", "--worlds", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, preexec_fn=as_a_script_starts_it) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        with contextlib.ExitStack() as stack:
            for begun in (b"", b"GET / HTTP/1.1\r\nHost: loc") * 70:
                connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 20)
                stack.enter_context(connection).sendall(begun)
            with urllib.request.urlopen(url + path, timeout=20) as answer:
                assert answer.status == 200
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (0, "", "")


def test_mistakes_are_refused(refused: Refused, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert "--token-file" in refused("serve", "--host", "0.0.0.0", "--worlds", "1")
    assert "'scripted'" in refused("serve", "--policy", "scripted", "--worlds", "1")
    assert "allow_hosts is ['http://a']" in refused("serve", "--allow-host", "http://a", "--worlds", "1")
    assert "port is 70000" in refused("serve", "--port", "70000", "--worlds", "1")
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text("short")
    line = refused("serve", "--token-file", str(token), "--worlds", "1")
    assert "token" in line
    assert "short" not in line  # a token is no text for logs
    token.write_bytes(b"\xff\xfe")
    assert "no text" in refused("serve", "--token-file", str(token), "--worlds", "1")
