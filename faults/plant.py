"""Plants the faults of this folder's TOML files, one at a time, and prints which of them the tests notice.

    python faults/plant.py                        # every fault
    python faults/plant.py engine policies        # those of layers, or by name
    python faults/plant.py --together NAME NAME   # several at once, and the whole fast tier: what notices any of them?

Needs Python 3.11 or newer, and works in a copy of the project below build/faults. Faults of native code are compiled
into one library and chosen by an environment variable, except for those with `form = "alone"`, which are built one by
one. A fault is noticed if a test of its `tests` fails; results are also added to build/faults/results.tsv.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tomllib

FOLDER = Path(__file__).resolve().parent
PROJECT = FOLDER.parent
COPY = PROJECT / "build" / "faults" / "copy"
RESULTS = PROJECT / "build" / "faults" / "results.tsv"
# Downloads and compilers, which the copy shares with the project.
SHARED = ("build/third_party", "build/cuda/packages", "build/zig-cache", "build/environments/build", "build/system")
VARIABLE = "DOORSTEP_PLANTED_FAULTS"
SECONDS = 900  # of the tests of one fault
# At the top of each native file with faults. Kernels for GPUs have none of them.
SWITCH = f"""#ifndef DS_PLANTED_FAULTS
#define DS_PLANTED_FAULTS
#if defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(__NVPTX__)
#define ds_planted(number) false
#else
#include <stdlib.h>
struct ds_planted_faults {{
  bool is_planted[1000] = {{}};
  ds_planted_faults() {{
    for (char* text = getenv("{VARIABLE}"); text && *text; text += *text == ',')
      is_planted[strtol(text, &text, 10)] = true;
  }}
}};
inline const ds_planted_faults ds_all_planted_faults;
inline bool ds_planted(int number) {{ return ds_all_planted_faults.is_planted[number]; }}
#endif
#endif
"""


@dataclass(frozen=True)
class Fault:
    """`old` occurs once in the file, or once in `context`, which occurs once in the file; `new` replaces it."""

    number: int
    name: str
    layer: str
    file: str
    old: str
    new: str
    tests: list[str]
    context: str = ""
    form: str = ""

    def applied(self, text: str, new: str) -> str:
        context = self.context or self.old
        if text.count(context) != 1 or context.count(self.old) != 1:
            sys.exit(f"{self.name}: the text that it changes does not occur once in {self.file}; mend the fault")
        return text.replace(context, context.replace(self.old, new))

    @property
    def is_switched(self) -> bool:
        return self.file.startswith("native/") and self.form in ("expression", "statements")

    @property
    def switched(self) -> str:
        if self.form == "expression":
            return f"(ds_planted({self.number}) ? ({self.new}) : ({self.old}))"
        return f"if (ds_planted({self.number})) {{ {self.new} }} else {{ {self.old} }}"


def read_faults() -> list[Fault]:
    tables = [table for path in sorted(FOLDER.glob("*.toml")) for table in tomllib.loads(path.read_text())["fault"]]
    faults = [Fault(number, **table) for number, table in enumerate(tables, 1)]
    if missing := {test for fault in faults for test in fault.tests if not (PROJECT / test).exists()}:
        sys.exit(f"these tests do not exist, name others that may notice the faults: {', '.join(sorted(missing))}")
    return faults


def make_copy(faults: list[Fault]) -> None:
    """Bring the copy up to date, with the switched faults in it, and build and install its wheel."""
    listed = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    texts = {name: (PROJECT / name).read_bytes() for name in listed.split("\n") if (PROJECT / name).is_file()}
    for fault in faults:
        if fault.is_switched:
            texts[fault.file] = fault.applied(texts[fault.file].decode(), fault.switched).encode()
    for name in {fault.file for fault in faults if fault.is_switched}:
        texts[name] = SWITCH.encode() + texts[name]
    for path in [path for path in COPY.rglob("*") if path.is_file() and path.relative_to(COPY).parts[0] != "build"]:
        if str(path.relative_to(COPY)) not in texts:
            path.unlink()
    for name, text in texts.items():  # unchanged files keep their times: ninja compiles what changed
        path = COPY / name
        if not path.is_file() or path.read_bytes() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        shutil.copymode(PROJECT / name, path)
    for name in SHARED:
        if (PROJECT / name).exists() and not (COPY / name).exists():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            (COPY / name).symlink_to(PROJECT / name)
    build()


def build() -> None:
    native_build = ["build/environments/build/bin/python", "wheel_build/native_build.py"]
    native_tests = [*native_build, "--build-folder", "build/library", "--target", "all"]
    for command in (["make", "wheel", "test-environment"], native_tests):
        done = subprocess.run(command, cwd=COPY, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout[-6000:] + done.stderr[-6000:])


def places(fault: Fault) -> list[Path]:
    """The file in the sources and, of the package, in the installed wheel."""
    installed = COPY.glob(f"build/environments/test/lib/python*/site-packages/{fault.file.removeprefix('pkg/')}")
    return [COPY / fault.file, *(installed if fault.file.startswith("pkg/") else [])]


def run_tests(faults: list[Fault], tests: list[str], *options: str) -> tuple[bool, str]:
    """Run tests, or the fast tier if none are named; returns whether they fail, and the names of those that do."""
    switched = ",".join(str(fault.number) for fault in faults if fault.is_switched)
    environment = {**os.environ, VARIABLE: switched, "DOORSTEP_TEST_SYSTEM": str(COPY / "build" / "system")}
    fast = ["build/environments/test/bin/pytest", "-q", "--tb=no", "-m", "not slow and not nightly", *options]
    ctest = ["build/environments/build/bin/ctest", "--test-dir", "build/library", "--parallel=2", "--stop-on-failure"]
    pytest = [test for test in tests if test != "native"]
    commands = [[*fast, *(pytest or ["-n2"])]] if pytest or not tests else []
    if len(pytest) < len(tests) or not tests:
        commands.append([*ctest, "-E", "ptx"])  # a comparison with kernels, which would have a real fault too
    for command in commands:
        try:
            settings = {"cwd": COPY, "env": environment, "capture_output": True, "text": True, "timeout": SECONDS}
            done = subprocess.run(command, check=False, **settings)
        except subprocess.TimeoutExpired:
            return True, "no end"
        if done.returncode:
            failed = [line for line in done.stdout.split("\n") if re.search("^FAILED|^ERROR|[*]{3}", line)]
            return True, " ".join(failed) or f"exit status {done.returncode}: {done.stdout[-300:]}"
    return False, ""


def with_planted(faults: list[Fault], tests: list[str], *options: str) -> tuple[bool, str]:
    """Plant the faults that are not switched, run the tests, and restore."""
    originals = {path: path.read_text() for fault in faults if not fault.is_switched for path in places(fault)}
    is_built_alone = any(fault.form == "alone" for fault in faults)
    try:
        for fault in faults:
            for path in [] if fault.is_switched else places(fault):
                path.write_text(fault.applied(path.read_text(), fault.new))
        if is_built_alone:
            build()
        return run_tests(faults, tests, *options)
    finally:
        for path, text in originals.items():
            path.write_text(text)
        if is_built_alone:
            build()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chosen", nargs="*", metavar="NAME")
    parser.add_argument("--together", action="store_true")
    arguments = parser.parse_args()
    faults = read_faults()
    if unknown := set(arguments.chosen) - {name for fault in faults for name in (fault.name, fault.layer)}:
        sys.exit(f"neither a fault nor a layer: {', '.join(sorted(unknown))}")
    chosen = [fault for fault in faults if not arguments.chosen or {fault.name, fault.layer} & set(arguments.chosen)]
    make_copy(faults)
    if arguments.together:
        print(*with_planted(chosen, [], "--timeout=120"))
        return
    noticed = 0
    for fault in chosen:
        begin = time.monotonic()
        is_noticed, by = with_planted([fault], fault.tests, "-x", "--timeout=120")
        noticed += is_noticed
        verdict, seconds = "noticed" if is_noticed else "NOT NOTICED", f"{time.monotonic() - begin:.0f} s"
        row = (fault.layer, fault.name, verdict, seconds, by)
        print(*row, flush=True)
        with RESULTS.open("a") as file:
            file.write("\t".join(row) + "\n")
    print(f"{noticed} of {len(chosen)} noticed")


main()
