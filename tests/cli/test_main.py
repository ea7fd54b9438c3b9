"""The command line as a whole: help, mistakes, interruption."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from doorstep.cli import main


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in ("demo", "bench", "doctor"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "doorstep: error: the following arguments are required: COMMAND"),
        (["fly"], "doorstep: error: argument COMMAND: invalid choice: 'fly'"),
        (["bench", "--worlds", "0"], "doorstep bench: error: argument --worlds: 0 is not allowed; give at least 1"),
        (["bench", "--worlds", "many"], "doorstep bench: error: argument --worlds: 'many' is not an integer"),
        (["bench", "--steps", "-5"], "doorstep bench: error: argument --steps: -5 is not allowed; give at least 1"),
        (["bench", "--start", "roof"], "doorstep bench: error: argument --start: invalid choice: 'roof'"),
        (["bench", "--agents", "9"], "doorstep bench: error: num_agents "),
        (["bench", "--seed", "-1"], "doorstep bench: error: seed "),
        (["bench", "--worlds", "1099511627776"], "doorstep bench: error: num_worlds "),
        (["bench", "--threads", "100000"], "doorstep bench: error: num_threads "),
        (["bench", "--device", "gpu"], "doorstep bench: error: device is 'gpu'; it must be "),
        (["demo", "--device", "cuda:x"], "doorstep demo: error: device is 'cuda:x'; it must be "),
        (
            ["demo", "--output", "missing/folder/picture.svg"],
            "doorstep demo: error: --output missing/folder/picture.svg",
        ),
        (["demo", "--output", "."], "doorstep demo: error: --output . "),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(says)
    assert output.err.count("\n") == 1


def test_the_module_is_the_command(command: Command) -> None:
    finished = command("bench", "--worlds", "nought")
    assert finished.returncode == 2
    assert finished.stderr == "doorstep bench: error: argument --worlds: 'nought' is not an integer\n"


def test_an_interrupt_ends_the_command_without_a_traceback(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "doorstep", "demo", "--worlds", "4", "--steps", "1000000000"]
    with subprocess.Popen(
        arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it has begun
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "doorstep demo: interrupted\n"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    arguments = [sys.executable, "-m", "doorstep", "doctor"]
    finished = subprocess.run(arguments, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(writer)
    assert (finished.returncode, finished.stderr) == (141, "")


def test_output_that_cannot_be_written_is_one_line() -> None:
    arguments = [sys.executable, "-m", "doorstep", "doctor"]
    with open("/dev/full", "w") as full:
        finished = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert finished.returncode == 2
    assert finished.stderr == "doorstep doctor: error: [Errno 28] No space left on device\n"
