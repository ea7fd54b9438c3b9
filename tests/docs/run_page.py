"""Runs the code blocks of a page in order, in the current folder, as a reader would who copies them.

It is run in a fork of a server, of which it makes others for the commands: tests/forks.py. Its arguments are a page,
and --gpu where there is one.

Python blocks share one namespace; those with `>>>` are compared with the output that they show. C blocks are one
extension module `mine`. Diffs are compared with this project's files. Ends with 77, and prints why, at a block that
needs a package that is not installed.
"""

import contextlib
import doctest
import importlib.util
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

from tests.docs.pages import ROOT, blocks_of
from tests.forks import COMMAND, server

import doorstep

SKIPPED = 77
# Packages that blocks use, by what they write.
NEEDED = {
    r"\bimport torch\b|doorstep\.torch": "torch", r"\bimport jax\b|to_jax\(": "jax",
    r"\bimport ray\b|doorstep\.ray": "ray", r"\bimport gymnasium\b|EscapeRoomVectorEnv": "gymnasium",
    r"\bstable_baselines3\b": "stable_baselines3",
    r"doorstep\.video|\bVideo\(|^\$ doorstep render .*\.(mp4|gif)": "av", r"\bimport minari\b": "minari",
    r"^\$ doorstep view|doorstep\.view\(": "viser", r"^\$ doorstep serve|doorstep\.serve": "aiohttp",
    r"^\$ doorstep train|doorstep\.training": "torch",
    r"^\$ doorstep evaluate .*--plot|metrics\.plot\(": "matplotlib", r"^\$ doorstep .*\.yaml": "yaml",
}  # fmt: skip
C_FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function")
SERVES = re.compile(r"doorstep\.view\(|^ *serve\(", re.MULTILINE)
SERVER_TIMEOUT = 60  # seconds


def main():
    page, on_gpu = Path(sys.argv[1]), "--gpu" in sys.argv[2:]
    warnings.resetwarnings()  # a reader sees those of other libraries
    sys.path.insert(0, os.getcwd())
    blocks = list(blocks_of(page))
    for block in blocks:
        block.code = block.as_run
        if block.file:
            Path(block.file).write_text(block.code, encoding="utf-8")
    c_code = "\n".join(block.code for block in blocks if block.language == "c")
    if c_code:
        compile_module(c_code)
    namespace = {"__name__": "__main__"}
    for block in blocks:
        named = [package for pattern, package in NEEDED.items() if re.search(pattern, block.code, re.MULTILINE)]
        missing = [package for package in named if importlib.util.find_spec(package) is None]
        if missing and not block.reason_not_to_run:
            print(f"could not import {missing[0]!r}")
            return SKIPPED
        try:
            run(block, page, namespace, on_gpu)
        except BaseException:
            print(f"{page}, line {block.line}:\n{block.code}", file=sys.stderr)
            raise
    return 0


def run(block, page, namespace, on_gpu):
    """Runs a block, or checks its form where it cannot run."""
    if block.language in ("c", "text") or block.file:  # C is compiled as a whole
        return
    if block.language == "python":
        run_python(block, page, namespace, only_check=bool(block.reason_not_to_run) or (block.needs_gpu and not on_gpu))
    elif block.language == "console":
        for command in commands_of(block.code):
            run_command(command, only_check=bool(block.reason_not_to_run))
    elif block.language != "diff":
        raise ValueError(f"a block of the language {block.language!r}")
    elif not block.reason_not_to_run:
        check_diff(block.code)


# ---- Changes of this project's files


def check_diff(code):
    """The files exist and have the lines around their changes."""
    text = ""
    for line in code.splitlines():
        if line.startswith("--- "):
            text = (ROOT / line.removeprefix("--- ")).read_text("utf-8")
        elif not line.startswith("+"):
            assert line[1:] in text.splitlines(), f"not in the file: {line}"


# ---- Python


def run_python(block, page, namespace, only_check):
    if not block.code.lstrip().startswith(">>>"):
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec", dont_inherit=True)
        if not only_check:
            (run_until_served if SERVES.search(block.code) else exec)(code, namespace)
        return
    test = doctest.DocTestParser().get_doctest(block.code, namespace, page.name, str(page), block.line - 1)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    test.globs = namespace
    assert only_check or not runner.run(test, clear_globs=False).failed, "the examples show something else"


def run_until_served(code, namespace):
    """Runs code that serves pages, which gets a Ctrl-C as soon as it has printed its address."""
    printed = Printed()
    with contextlib.redirect_stdout(printed), contextlib.suppress(KeyboardInterrupt):
        exec(code, namespace)
    assert "http://" in printed.getvalue(), f"it ended by itself, and printed {printed.getvalue()!r}"


class Printed(io.StringIO):
    def write(self, text):
        written = super().write(text)
        if "http://" in text:
            signal.raise_signal(signal.SIGINT)
        return written


# ---- C


def compile_module(code):
    """Compiles mine.c into an extension module in the current folder."""
    Path("mine.c").write_text(code, encoding="utf-8")
    # Debian's Python has a part of its headers in /usr/include.
    includes = [f"-I{doorstep.get_include()}", f"-I{sysconfig.get_paths()['include']}", "-idirafter", "/usr/include"]
    subprocess.run([*compiler(), *C_FLAGS, *includes, "-shared", "-fPIC", "-o", "mine.so", "mine.c"], check=True)


def compiler():
    """The C compiler that pip installs, else the system's."""
    if importlib.util.find_spec("ziglang"):
        for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):  # where a build has compiled its parts already
            os.environ.setdefault(name, str(ROOT / "build" / "zig-cache"))
        return [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu.2.28"]
    if shutil.which("cc") is None:
        print("could not import 'ziglang', and there is no cc")
        sys.exit(SKIPPED)
    return ["cc"]


# ---- Commands


def commands_of(code):
    """The commands after the prompts, as words."""
    lines = code.replace("\\\n", " ").splitlines()  # a backslash continues a line
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines if line.startswith("$ ")]


def run_command(words, only_check):
    program, *arguments = words
    if program == "make":  # it is not run: the target must exist
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        assert [one for one in arguments if one not in targets and "=" not in one] == []
    elif only_check or program == "pip" or arguments[:2] == ["-m", "pip"]:
        return
    elif program == "doorstep":
        run_until_ctrl_c(arguments) if arguments[0] in ("view", "serve") else run_doorstep(arguments)
    elif program == "python":
        subprocess.run([sys.executable, *arguments], check=True)
    else:
        raise ValueError(f"the unknown command {program}")


def run_doorstep(arguments):
    code = f"import warnings; warnings.resetwarnings(); {COMMAND}"
    done = server().run(code, *arguments, folder=Path.cwd(), timeout=250)
    assert done.returncode == 0, f"doorstep {shlex.join(arguments)} ended with {done.returncode}: {done.stderr}"


def run_until_ctrl_c(arguments):
    """A server prints its address and ends with Ctrl-C; it gets a port that is free."""
    reader, writer = os.pipe()
    with open(reader) as printed, open(writer, "w") as stdout:
        words = (*arguments, "--port", "0")
        started = server().start(COMMAND, *words, folder=Path.cwd(), stdout=stdout, stderr=sys.stderr)
        stdout.close()
        line = printed.readline()
        started.send_signal(signal.SIGINT)
        status = started.wait(SERVER_TIMEOUT)
    assert (line[:7], status) == ("http://", 0), f"doorstep {arguments[0]} printed {line!r} and ended with {status}"
