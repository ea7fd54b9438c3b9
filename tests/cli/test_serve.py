"""`doorstep serve`, from its start to a signal, and what all commands that serve withstand."""

import contextlib
import json
import resource
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

pytest.importorskip("aiohttp")

from tests.pkg.serve.serving import Served, head_of

TOKEN = "0123456789abcdef"
SLOW = """
import time
import numpy

def still(observations):
    time.sleep(0.05)
    return numpy.tile(numpy.array((0, 0, 2, 0)), (len(observations), 1))
"""


@contextlib.contextmanager
def started(name, *options, **how):
    """The command on a free port, and the address that it prints. It must end without a word."""
    command = [sys.executable, "-m", "doorstep", name, "--port", "0", "--worlds", "2", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **how) as process:
        try:
            yield process, process.stdout.readline().split()[0]
            output, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, output, errors) == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly_in_the_middle_of_a_stream(number, tmp_path):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "slow.py").write_text(SLOW)
    options = ["--policy", "random", "--policy", "slow:still", "--token-file", "token", "scheduler.type=priority"]
    with started("serve", *options, cwd=tmp_path) as (process, address):
        at = Served(address)
        info = json.loads(at.call("GET", "/info", Authorization=f"Bearer {TOKEN}")[2])
        assert info["policies"] == ["random", "slow:still"]
        assert info["config"]["scheduler"]["type"] == "priority"
        assert at.refusal("GET", "/info")[0] == 401
        body = json.dumps([{"max_steps": 1, "policy": "random"}, {"policy": "slow:still"}])
        head = head_of(f"Authorization: Bearer {TOKEN}", f"Content-Length: {len(body)}")
        with socket.create_connection(("127.0.0.1", at.port), 20) as client, client.makefile("rb") as answer:
            client.sendall(head + body.encode())
            while b'"index": 0' not in answer.readline():
                pass
            process.send_signal(number)
            assert b"ClosedError" in answer.read()


def as_a_script_starts_it():
    """In the background a shell's script lets programs ignore SIGINT. It may open few files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("name", "module", "path"), [("serve", "aiohttp", "/info"), ("view", "viser", "/")])
def test_silent_clients_keep_nobody_out_and_a_signal_ends_it(name, module, path, number):
    pytest.importorskip(module)
    with started(name, preexec_fn=as_a_script_starts_it) as (process, url), contextlib.ExitStack() as stack:
        for begun in (b"", b"GET / HTTP/1.1\r\nHost: loc") * 70:
            connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 20)
            stack.enter_context(connection).sendall(begun)
        with urllib.request.urlopen(url + path, timeout=20) as answer:
            assert answer.status == 200
        stack.close()
        process.send_signal(number)


def test_a_bad_token_is_refused_and_not_told(refused, tmp_path_factory):
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text("short")
    line = refused("serve", "--token-file", str(token), "--worlds", "1")
    assert "token" in line
    assert "short" not in line  # a token is no text for logs
    token.write_bytes(b"\xff\xfe")
    assert "no text" in refused("serve", "--token-file", str(token), "--worlds", "1")
