"""`doorstep view` as a user starts and ends it, and which pages may connect to it."""

import signal
import socket
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import Visitor, until
from websockets.exceptions import InvalidStatus

import doorstep
from doorstep.cli import main
from doorstep.recording import RecordingWriter
from doorstep.viewer.server import Settings, address, opened

POLICY = """
from pathlib import Path
import numpy

def ahead(observations):
    Path("part").write_text(str(observations.shape))
    Path("part").rename("called")  # complete whenever it exists: Ctrl-C may interrupt any call
    return numpy.full((3, 2, 4), (1, 0, 2, 0))
"""


def test_it_prints_one_address_serves_the_page_plays_a_policy_of_its_folder_and_ends_quietly_with_ctrl_c(tmp_path):
    (tmp_path / "walk.py").write_text(POLICY)
    arguments = ["view", "--worlds", "3", "--port", "0", "--policy", "walk:ahead", "--keep-running"]
    # -I: Python itself does not add the folder. Programs that shells start in the background ignore Ctrl-C.
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-I", "-m", "doorstep", *arguments]
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, text=True, **pipes) as process:
        try:
            with urllib.request.urlopen(process.stdout.readline().split()[0], timeout=20) as response:
                assert b"<title>" in response.read()
            until((tmp_path / "called").exists)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, output, errors, (tmp_path / "called").read_text()) == (0, "", "", "(3, 2, 94)")


MISTAKES = {
    **{f"--host {host}": f"The page cannot be served on port 8080 of '{host}': "
       for host in ("203.0.113.7", "no.such.host.invalid")},
    "--port 65536": "argument --port: 65536 is not allowed; give 0 to 65535",
    **{f"--rate {rate}": f"argument --rate: {rate} is not allowed; give 0 to 1000" for rate in (1001, "nan")},
    "--policy wise": "policy is 'wise'; it must be 'random', 'idle', 'scripted', 'trained', 'general', ",
    "--policy missing.py:act": "policy is 'missing.py:act'; there is no file 'missing.",
    "--actions missing.bin": "missing.bin: No such file",
    "--actions run.rec --worlds 2": "--worlds is 2, but run.rec was recorded with 3. (Leave --worlds out.",
}  # fmt: skip


def test_a_mistake_is_one_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with doorstep.Simulator(3) as sim, RecordingWriter("run.rec", sim) as writer:
        writer.step()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        busy = {f"--port {port}": f"Port {port} of 127.0.0.1 is in use. (Give another one with --port"}
        for words, says in {**MISTAKES, **busy}.items():
            assert main(["view", *words.split()]) == 2, words
            output = capsys.readouterr()
            assert output.err.startswith(f"doorstep view: error: {says}")
            assert (output.out, output.err.count("\n")) == ("", 1)


def test_a_program_shows_any_policy_and_levels_before_the_first_browser_asks(monkeypatch):
    acted = []

    def serve(settings):
        with opened(settings) as (viewer, _):
            assert all(thing._shown for thing in viewer._page.stage._things)
            viewer.step_once()
            sim = viewer._sim
            acted.append((sim.config.max_levels, sim.actions.copy_to_host().tolist(), viewer.error))

    def walk(observations):
        return np.full((*observations.shape[:-1], 4), (2, 1, 3, 0))

    monkeypatch.setattr("doorstep.viewer.server.serve", serve)
    doorstep.view(walk, levels="curated", worlds=3, port=0)
    assert acted == [(len(doorstep.levels.curated()), [[[2, 1, 3, 0]] * 2] * 3, "")]


def test_worlds_are_those_of_the_settings():
    reward = doorstep.Rewards(progress=0, idle=-3.0)
    shared = {"worlds": 70, "seed": 7, "agents": 3, "episode_length": 33}
    settings = Settings(**shared, policy="idle", reward=reward, rate=7, keep_running=True, port=0)
    with opened(settings) as (viewer, _), doorstep.Simulator(70, seed=7, num_agents=3, episode_length=33) as sim:
        assert viewer._sim.config.replace(num_threads=None) == sim.config.replace(num_threads=None)
        assert viewer._sim.hash() == sim.hash()
        assert (viewer._layout.cells, viewer._pace.rate, viewer._keep_running) == (64, 7, True)
        assert viewer._sim.reward == reward


def test_pages_of_other_sites_cannot_connect(open_viewer):
    with open_viewer(policy="idle") as running:
        port = running.server.get_port()
        own_name = (f"http://evil.example:{port}", "evil.example")  # that its owner lets lead here
        for origin, host in (("https://evil.example", "127.0.0.1"), own_name):
            with pytest.raises(InvalidStatus) as caught:
                Visitor(running, origin, host)
            assert caught.value.response.status_code == 403
        assert not running.server.get_clients()
        with Visitor(running, f"http://127.0.0.1:{port}"):
            assert len(running.server.get_clients()) == 1


def test_the_address_that_is_printed_can_be_opened():
    hosts = {"localhost": "localhost", "0.0.0.0": "127.0.0.1", **dict.fromkeys(("::", "::1"), "[::1]")}
    for host, opened_as in {**hosts, "2001:db8::7": "[2001:db8::7]"}.items():
        assert address(host, 8080) == f"http://{opened_as}:8080"
