"""The command line as a whole: help, mistakes, interruption."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import doorstep
from doorstep.cli import _COMMANDS, _parser, main


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in ("demo", "record", "replay", "bench", "doctor"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fly"], "doorstep: error: argument COMMAND: invalid choice: 'fly' (choose from "),
        (["trian"], "doorstep: error: argument COMMAND: invalid choice: 'trian'; did you mean 'train'?"),
        (["bench", "--start", "room"], "doorstep bench: error: argument --start: invalid choice: 'room'; did you mean"),
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
            ["demo", "--output", "missing/folder/picture.png"],
            "doorstep demo: error: --output missing/folder/picture.png",
        ),
        (["demo", "--output", "."], "doorstep demo: error: --output . must end in .png."),
        (["demo", "--output", "picture.svg"], "doorstep demo: error: --output picture.svg must end in .png."),
        (["--a\nb"], "doorstep: error: unrecognized arguments: --a b"),
        (["--print-completion", "fish"], "doorstep: error: argument --print-completion: invalid choice: 'fish'"),
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


@pytest.mark.parametrize("command", _COMMANDS)
def test_help_ends_with_examples_that_the_command_understands(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    examples = capsys.readouterr().out.partition("\nexamples:\n")[2].splitlines()
    assert examples
    for example in examples:
        program, *arguments = shlex.split(example)
        assert program == "doorstep"
        assert _parser().parse_args(arguments).command == command


def test_the_first_help_has_examples_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "examples:\n  doorstep demo --trained\n" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["demo", "record", "render", "view", "evaluate"])
def test_what_was_trained_is_named_where_a_policy_is_chosen(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert "the folder of a run of doorstep train, a checkpoint or" in " ".join(capsys.readouterr().out.split())


def test_the_help_of_evaluate_fits_a_screen_and_names_no_field_of_the_engine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["evaluate", "--help"]) == 0
    text = capsys.readouterr().out
    assert "--scheduler" not in text
    assert "KEY=VALUE" in text


def test_without_a_command_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("usage: doorstep ")
    assert all(name in output.err for name in ("demo", "render", "view", "bench", "doctor"))


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"doorstep {doorstep.__version__}\n"


def test_all_commands_have_the_seed_of_the_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("demo", "record", "render", "view", "bench"):
        assert main([command, "--help"]) == 0
        assert re.search(r"--seed SEED\s+seed of the levels and of the actions\s+\(0\)", capsys.readouterr().out)
    assert main(["bench", "--json", "--worlds", "1", "--steps", "1"]) == 0
    with doorstep.Simulator(1) as sim:
        assert json.loads(capsys.readouterr().out)["seed"] == sim.seed == 0


def test_the_module_is_the_command() -> None:
    arguments = [sys.executable, "-m", "doorstep", "bench", "--worlds", "nought"]
    finished = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
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


def test_names_of_files_may_have_any_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8", "strict"))
    assert main(["record", "--worlds", "2", "--steps", "1", "--output", "\udc80.rec"]) == 0
    assert main(["replay", "\udc80.rec"]) == 0
    assert main(["render", "--actions", "\udc80.rec", "--output", "\udc80.html"]) == 0
    sys.stdout.seek(0)
    assert [line.partition(":")[0] for line in sys.stdout] == [r"\udc80.rec", r"\udc80.rec", r"\udc80.html"]
    assert rb"doorstep: \udc80.rec, seed 0" in (tmp_path / "\udc80.html").read_bytes()


def in_shell(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Runs a line of bash in which `doorstep` is the command."""
    function = f'doorstep() {{ {sys.executable} -m doorstep "$@"; }}\n'
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["bash", "-c", function + line],
        cwd=folder,
        env=buffered,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


WAITING = """
import pathlib, time
def act(observations):
    while not pathlib.Path("gone").exists():
        time.sleep(0.01)
    return [[(0, 0, 2, 0)] * 2] * len(observations)
"""
WAITING_DEMO = "doorstep demo --worlds 1 --steps 9 --policy waiting.py:act 2>/dev/null"


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (f"{WAITING_DEMO} | {{ head -1; exec <&-; touch gone; }}; exit ${{PIPESTATUS[0]}}", 141, "doorstep "),
        ("doorstep demo --worlds 1 --steps 9 2>/dev/null >&-", 0, ""),
        ("doorstep demo --worlds 1 --steps 9 2>&- | tail -1; exit ${PIPESTATUS[0]}", 0, "picture  doorstep-demo-ra"),
        ("doorstep demo --worlds 1 --steps 9 <&- >&- 2>&-", 0, ""),
        ("doorstep --version >&-", 0, ""),
        ("doorstep doctor --json >&-", 0, ""),
        ("doorstep bench --agents 9 2>&-", 2, ""),
        ("doorstep bench --agents 9 2>/dev/full", 2, ""),
        ("doorstep bench --agents nine 2>/dev/full", 2, ""),
        ("doorstep doctor >/dev/full 2>/dev/null", 2, ""),
        ("doorstep >&- 2>&-", 2, ""),
    ],
)
def test_closed_streams_are_no_errors(line: str, code: int, says: str, tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    finished = in_shell(line, tmp_path)
    assert (finished.returncode, finished.stderr) == (code, "")
    assert finished.stdout.startswith(says)
    assert bool(finished.stdout) == bool(says)


def test_bash_completes_commands_options_choices_and_files(tmp_path: Path) -> None:
    pytest.importorskip("shtab")
    (tmp_path / "recorded.bin").touch()
    script = """
eval "$(doorstep --print-completion bash)"
complete_last() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMPREPLY=()
    "$(complete -p doorstep | sed 's/.*-F \\([^ ]*\\).*/\\1/')"
    echo "${COMPREPLY[@]}"
}
complete_last doorstep be
complete_last doorstep render --cam
complete_last doorstep render --camera o
complete_last doorstep render --actions rec
"""
    finished = in_shell(script, tmp_path)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.splitlines() == ["bench", "--camera", "overview", "recorded.bin"]


def test_zsh_gets_a_script_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["--print-completion", "zsh"]) == 0
    assert capsys.readouterr().out.startswith("#compdef doorstep\n")


def test_without_shtab_completion_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--print-completion", "bash"]) == 1
    assert capsys.readouterr().err.endswith('(pip install "doorstep[cli]")\n')


def test_output_that_cannot_be_written_is_one_line() -> None:
    arguments = [sys.executable, "-m", "doorstep", "doctor"]
    with open("/dev/full", "w") as full:
        finished = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert finished.returncode == 2
    assert finished.stderr == "doorstep doctor: error: [Errno 28] No space left on device\n"
