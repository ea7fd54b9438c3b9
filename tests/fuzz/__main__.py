"""Fuzzes the parsers: all, or those that are named, each in a process of its own.

    python -m tests.fuzz --seconds 60 saves recordings
    python -m tests.fuzz --input build/fuzz/saves.input saves

An input that breaks the invariant (see running.py) stays in build/fuzz/TARGET.input; the second form runs it again.
Exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

from tests.fuzz.running import FoundError, Target, fuzz, kept_input, run_once

FOLDER = Path("build/fuzz")
# By name: the class, and the packages that it needs beside doorstep.
TARGETS = {
    "saves": ("Saves", ()),
    "level_documents": ("LevelDocuments", ()),
    "level_tables": ("LevelTables", ()),
    "recordings": ("Recordings", ()),
    "policies": ("Policies", ()),
    "checkpoints": ("Checkpoints", ("torch",)),
    "evaluations": ("Evaluations", ("matplotlib",)),
    "run_logs": ("RunLogs", ("torch", "matplotlib")),
    "configs": ("Configs", ("yaml",)),
    "flags": ("Flags", ()),
    "arrays": ("Arrays", ()),
    "c_calls": ("CCalls", ()),
    "http_messages": ("HttpMessages", ("aiohttp",)),
    "viewer_messages": ("ViewerMessages", ("viser",)),
}


def missing_packages(name: str) -> list[str]:
    """What a target needs and is not installed."""
    return [package for package in TARGETS[name][1] if importlib.util.find_spec(package) is None]


def open_target(name: str) -> Target:
    target: Target = getattr(importlib.import_module(f"tests.fuzz.targets.{name}"), TARGETS[name][0])()
    return target


def _run_here(name: str, options: argparse.Namespace) -> int:
    faulthandler.enable()
    target = open_target(name)
    try:
        if options.input is not None:
            with contextlib.closing(target):
                print(run_once(target, kept_input(options.input)))
            return 0
        FOLDER.mkdir(parents=True, exist_ok=True)
        last = FOLDER / f"{name}.input"
        print(f"{name}: {fuzz(target, seconds=options.seconds, seed=options.seed, most_runs=options.runs, last=last)}")
        return 0
    except FoundError as error:
        print(f"{name}: {error}")
        if error.__cause__ is not None:
            sys.excepthook(type(error.__cause__), error.__cause__, error.__cause__.__traceback__)
        return 1


def _run_apart(name: str, options: argparse.Namespace) -> int:
    command = [sys.executable, "-m", "tests.fuzz", "--here", "--seconds", str(options.seconds)]
    done = subprocess.run([*command, "--seed", str(options.seed), "--runs", str(options.runs), name], check=False)
    if done.returncode not in (0, 1):
        print(f"{name}: the process ended with {done.returncode}")
    return done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; none: all")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each target")
    parser.add_argument("--runs", type=int, default=10_000_000, help="for each target, at most")
    parser.add_argument("--seed", type=int, default=0, help="of the changes")
    parser.add_argument("--input", type=Path, help="run this input of one target alone")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    for name in options.targets:
        if name not in TARGETS:
            parser.error(f"there is no target {name}; there are {', '.join(TARGETS)}")
    found = 0
    for name in options.targets or TARGETS:
        if missing := missing_packages(name):
            print(f"{name}: not run, for {', '.join(missing)} is not installed")
            continue
        run = _run_here if options.here or options.input is not None else _run_apart
        found += run(name, options) != 0
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
