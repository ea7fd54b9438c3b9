"""The command line as a whole: help, mistakes, interruption, streams."""

import io
import os
import re
import shlex
import subprocess
import sys

import pytest

import doorstep
from doorstep.cli import _COMMANDS, _parser, main


def test_help_names_every_command_and_ends_with_examples_that_it_understands(run, capsys):
    whole = run("--help")
    assert "examples:\n  doorstep demo --trained\n" in whole
    assert main([]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", whole)
    assert all(f"\n    {name} " in whole for name in _COMMANDS)
    for command in _COMMANDS:
        text = run(command, "--help")
        examples = text.partition("\nexamples:\n")[2].splitlines()
        assert examples
        for example in examples:
            program, *arguments = shlex.split(example)
            assert program == "doorstep"
            assert _parser().parse_args(arguments).command == command
        if command in ("demo", "record", "render", "view", "bench"):
            assert re.search(r"--seed SEED\s+seed of the levels and of the actions\s+\(0\)", text)
    assert run("--version") == f"doorstep {doorstep.__version__}\n"


MISTAKES = {
    "fly": "error: argument COMMAND: invalid choice: 'fly' (choose from ",
    "trian": "error: argument COMMAND: invalid choice: 'trian'; did you mean 'train'?",
    "'--a\nb'": "error: unrecognized arguments: --a b",
    "--print-completion fish": "error: argument --print-completion: invalid choice: 'fish'",
    "bench --start room": "argument --start: invalid choice: 'room'; did you mean",
    "bench --worlds 0": "argument --worlds: 0 is not allowed; give at least 1",
    "bench --agents 9": "num_agents ",
    "bench --device gpu": "device is 'gpu'; it must be ",
    "demo --output missing/folder/picture.png": "--output missing/folder/picture.png",
    "demo --output .": "--output . must end in .png.",
    "demo --policy missing:act": "policy is 'missing:act'; there is no module 'missing'",
    "demo --trained --policy random": "--trained, which is short for --policy trained, is given with --policy ",
    "record --output missing/run.rec": "--output missing/run.rec is not a file in an existing folder",
    "record --output .": "--output . is not a file in an existing folder",
    "record --levels missing.json": "missing.json: there is no such file; levels are ",
    "doctor --compile sm_x": "architecture is ",
    "replay": "the following arguments are required: FILE",
    "replay missing.rec": "missing.rec: No such file or directory",
    f"replay {os.devnull}": f"path is '{os.devnull}'; it must be a regular file",
    f"replay {__file__}": f"{__file__} is not a recording of doorstep: it begins",
    "evaluate --json missing/out.json": "--json missing/out.json is not a file in an existing folder",
    "evaluate --plot out.txt": "--plot out.txt must end in .png or .svg or .pdf",
    "evaluate --metrics a.json --trace a.json": "--metrics and --trace are both",
    "serve --policy scripted --worlds 1": "policy is 'scripted'; it must be one that observes",
    "serve --allow-host http://a --worlds 1": "allow_hosts is ['http://a']",
    "bench --report --json": "--report is given with --json",
}
REWARDS = {
    "gaol=1": "reward: 'gaol' is not a field of Rewards (did you mean 'goal'?)",
    "goal": "reward is 'goal'; it must be doorstep.Rewards, or its terms, such as goal=5,cube_approach=0.25",
    "nowhere.py:terms": "reward is 'nowhere.py:terms'; there is no file 'nowhere.py'",
    "json:dumps": "reward is 'json:dumps'; it must be terms, such as goal=5,cube_approach=0.25 (doorstep train",
}


def test_a_mistake_is_one_line_and_exit_code_2(refused):
    cases = dict(MISTAKES)
    for name in ("render", "demo", "record"):
        cases[f"{name} --levels curated --start rooms"] = "--start rooms is given together with --levels"
        cases[f"{name} --levels curated --agents 3"] = "levels[0] has 2 spawns"
    for name in ("demo", "record", "render", "view", "bench", "evaluate"):
        cases |= {f"{name} --reward {reward}": says for reward, says in REWARDS.items()}
    for line, says in cases.items():
        program = "" if says.startswith("error: ") else f" {line.split()[0]}: error"
        assert refused(*shlex.split(line)).startswith(f"doorstep{program}: {says}"), line


def test_names_of_files_may_have_any_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8", "strict"))
    assert main(["record", "--worlds", "2", "--steps", "1", "--output", "\udc80.rec"]) == 0
    assert main(["replay", "\udc80.rec"]) == 0
    assert main(["render", "--actions", "\udc80.rec", "--output", "\udc80.html"]) == 0
    sys.stdout.seek(0)
    assert [line.partition(":")[0] for line in sys.stdout] == [r"\udc80.rec", r"\udc80.rec", r"\udc80.html"]
    assert rb"doorstep: \udc80.rec, seed 0" in (tmp_path / "\udc80.html").read_bytes()


def in_shell(line, folder):
    """Runs a line of bash in which `doorstep` is the command."""
    function = f'doorstep() {{ {sys.executable} -m doorstep "$@"; }}\n'
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    how = {"cwd": folder, "env": buffered, "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run(["bash", "-c", function + line], check=False, **how)
    assert done.stderr == ""
    return done.returncode, done.stdout


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
        ("doorstep demo --worlds 1 --steps 9 2>&- | tail -1; exit ${PIPESTATUS[0]}", 0, "picture  doorstep-demo-ra"),
        ("doorstep demo --worlds 1 --steps 9 <&- >&- 2>&-", 0, ""),
        ("doorstep bench --agents 9 2>/dev/full", 2, ""),
        ("doorstep doctor >/dev/full 2>said; code=$?; cat said; exit $code", 2, "doorstep doctor: error: [Errno 28]"),
    ],
)
def test_closed_and_full_streams_end_it_as_they_should(line, code, says, tmp_path):
    (tmp_path / "waiting.py").write_text(WAITING)
    found, said = in_shell(line, tmp_path)
    assert found == code
    assert said.startswith(says)
    assert bool(said) == bool(says)


def test_shells_complete_commands_options_choices_and_files(tmp_path, run):
    pytest.importorskip("shtab")
    script = run("--print-completion", "bash")
    assert in_shell(script, tmp_path) == (0, "")
    for completed in (
        r"_subparsers=\(.*\bbench\b", r"_render_option_strings=\(.*--camera", r"_render___camera_choices=\(.*overview",
        "_render___actions_COMPGEN=_shtab_compgen_files",
    ):  # fmt: skip
        assert re.search(completed, script), completed
    assert run("--print-completion", "zsh").startswith("#compdef doorstep\n")
