"""Everything that is worth knowing of a GPU on which this code has never run, in one command.

    python3 tests/gpu/first_contact.py [--output first_contact] [--budget 480] [--parts smoke,tests,speed] [--limit 300]

Needs what tests/gpu/run.py needs: a finished wheel, and a Python with numpy, PyTorch and pytest. Parts run one after
another, what tells most for its time first, each in processes of its own that are ended at its limit. One that fails
does not keep the others from running, and one that no longer fits into the budget is skipped and named. Where the GPU's
context was lost, the part runs once more under memcheck. The folder gets a log of each part, reports of tests and of
the profiler, results.json and results.md, written anew after each part. Exit status: 0, 1 if a part failed, 2 if there
is no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
RUN = Path(__file__).with_name("run.py")
TESTS = Path(__file__).parent
BENCHMARKS = PROJECT / "tests" / "benchmarks"
PASSED, FAILED, TIMED_OUT, SKIPPED = "passed", "failed", "timed out", "skipped"
NO_GPU = 3  # of run.py --find
NOT_HERE = 77  # of programs that cannot do their work on this machine
NO_TESTS = 5  # of pytest, where a whole file is skipped
SMOKE = "smoke"  # the part whose failure is shown at once
SHOWN_LINES = 60  # of a log, on the page
BUDGET = 480.0  # seconds
PATIENCE = 5.0  # seconds in which a process that is ended may say where it was

# What doorstep's errors, PyTorch's and an interpreter that crashes say.
LOST = re.compile(
    "can no longer use the device|Fatal Python error|CUDA error: (an illegal|a misaligned|misaligned|unspecified|"
    "device-side|the launch timed out|invalid program counter|hardware stack)"
)
MEMCHECK = ("--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "86")


@dataclass(frozen=True)
class Part:
    """A program.

    Attributes:
        name: `group:name`, or the group's alone; also names its log.
        limit: seconds after which it is ended.
        needs: seconds that it is expected to take where all goes well: with less left it is not begun.
    """

    name: str
    program: list[str]
    limit: float
    needs: float = 0.0

    @property
    def group(self) -> str:
        return self.name.partition(":")[0]

    @property
    def file_name(self) -> str:
        return self.name.replace(":", "-")


@dataclass
class Result:
    """What became of a part."""

    part: str
    status: str
    seconds: float
    summary: str  # the last line that it printed, or why it did not run
    log: str  # the file's name in the folder; empty if it did not run


# ---- What there is to do


def module(name: str, module: str, *arguments: str, limit: float, needs: float) -> Part:
    return Part(name, [sys.executable, "-m", module, *arguments], limit, needs)


def bench(name: str, script: str, *arguments: str, limit: float, needs: float) -> Part:
    return Part(f"speed:{name}", [sys.executable, str(BENCHMARKS / script), *arguments], limit, needs)


def parts_of(output: Path) -> list[Part]:
    """All parts, in order. The seconds that they need are guesses: none has run on a GPU."""

    def tests(file: str, *arguments: str, name: str = "", limit: float = 120, needs: float = 30) -> Part:
        name = f"tests:{name or file}"
        options = ["-c", str(TESTS / "pytest.ini"), "-v", "--durations=5"]
        report = f"--junitxml={output / name.replace(':', '-')}.xml"
        return module(
            name, "pytest", *options, report, str(TESTS / f"test_{file}.py"), *arguments, limit=limit, needs=needs
        )

    def profile(workload: str, worlds: int = 8192, needs: float = 45) -> Part:
        arguments = (workload, "--worlds", str(worlds), "--output", str(output))
        return module(f"profile:{workload}-{worlds}", "tests.gpu.profiles", *arguments, limit=150, needs=needs)

    return [
        module("facts", "tests.gpu.facts", limit=90, needs=15),
        module(SMOKE, "tests.gpu.smoke", limit=60, needs=20),
        tests("same_bits", limit=150, needs=60),
        bench("worlds", "measure_gpu.py", "--quick", limit=90, needs=30),
        bench("rooms", "measure_gpu.py", "--quick", "--start", "rooms", limit=60, needs=15),
        bench("levels", "measure_gpu.py", "--quick", "--levels", "reference", limit=60, needs=15),
        profile("step"),
        tests("policies", limit=150),
        tests("engines"),
        bench("programs", "gpu_programs.py", "--quick", limit=120, needs=60),
        tests("trainer"),
        tests("torch"),
        tests("training"),
        tests("cameras", "-k", "not vulkan", limit=150, needs=40),
        tests("environments", limit=90, needs=20),
        tests("jax"),
        profile("levels"),
        profile("policy"),
        profile("views"),
        tests("sanitizer", "-k", "memcheck", name="memcheck", limit=400, needs=120),
        tests("lifetimes", limit=200, needs=60),
        tests("bridge", needs=20),
        tests("sharing", needs=20),
        tests("other_libraries", needs=20),
        bench("drawn-friction", "measure_gpu.py", "--quick", "--levels", "drawn", limit=60, needs=15),
        bench("all-sizes", "measure_gpu.py", "--rounds", "3", limit=300, needs=100),
        bench("eight-agents", "measure_gpu.py", "--quick", "--agents", "8", limit=120, needs=30),
        bench("large-programs", "gpu_programs.py", "--large", limit=400, needs=180),
        profile("level-views"),
        profile("step", 65536, needs=60),
        tests("sanitizer", "-k", "racecheck", name="racecheck", limit=500, needs=200),
        tests("cameras", "-k", "vulkan", name="vulkan", needs=20),
    ]


def find_tool(name: str) -> str | None:
    """The path of a program of the CUDA toolkit."""
    beside_toolkit = sorted(Path("/usr/local").glob(f"cuda*/bin/{name}"))
    return shutil.which(name) or (str(beside_toolkit[-1]) if beside_toolkit else None)


# ---- Running a program


def run_program(program: list[str], seconds: float, output: int, environment: dict[str, str]) -> str:
    """Runs one; at the end of its time all processes of its session are ended, and Pythons say where they were."""
    try:
        process = subprocess.Popen(
            program,
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    except OSError as error:
        os.write(output, f"{error}\n".encode())
        return FAILED
    try:
        code = process.wait(max(seconds, 0))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGABRT)
        return TIMED_OUT
    finally:
        end_session(process)
    return PASSED if code == 0 else SKIPPED if code in (NOT_HERE, NO_TESTS) else FAILED


def end_session(process: subprocess.Popen[bytes]) -> None:
    """Waits a moment for its first process, and kills what is left of it."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# ---- Running all


class Contact:
    """Runs parts within a budget, and writes the results after each.

    launcher: begins the command of every program. memcheck: the path of compute-sanitizer, or None.
    """

    def __init__(
        self, machine: str, output: Path, budget: float, launcher: Sequence[str] = (), memcheck: str | None = None
    ) -> None:
        self.results: list[Result] = []
        self._machine = machine
        self._output = output
        self._end = time.monotonic() + budget
        self._launcher = list(launcher)
        self._memcheck = memcheck

    def run(self, part: Part) -> None:
        """Runs a part if it fits into what is left; once more under memcheck if the GPU's context was lost."""
        left = self._end - time.monotonic()
        if left < part.needs:
            reason = f"about {part.needs:.0f} s do not fit into the {max(left, 0):.0f} s that are left"
            self._note(Result(part.name, SKIPPED, 0.0, reason, ""))
            return
        result = self.run_anyway(part, min(part.limit, left))
        printed = self._log_of(result)
        if part.name == SMOKE and result.status in (FAILED, TIMED_OUT):
            print(printed, flush=True)
        if self._memcheck and result.status == FAILED and LOST.search(printed):
            self._watch(part)

    def run_anyway(self, part: Part, seconds: float, **variables: str) -> Result:
        """Runs a part for at most so many seconds, with all that it prints in its log."""
        log, begin = self._output / f"{part.file_name}.log", time.monotonic()
        with log.open("w") as printed, tempfile.TemporaryDirectory(prefix="doorstep-first-contact-") as temporary:
            environment = {**os.environ, "TMPDIR": temporary, "PYTHONFAULTHANDLER": "1", **variables}
            status = run_program([*self._launcher, *part.program], seconds, printed.fileno(), environment)
        lines = log.read_text(errors="replace").strip().splitlines()
        seconds = round(time.monotonic() - begin, 1)
        return self._note(Result(part.name, status, seconds, lines[-1] if lines else "", log.name))

    def _watch(self, part: Part) -> None:
        """Under memcheck, with a dump of the GPU's state."""
        again = replace(part, name=f"{part.name}-memcheck", program=[str(self._memcheck), *MEMCHECK, *part.program])
        self.run_anyway(
            again,
            max(part.limit, min(3 * part.limit, self._end - time.monotonic())),
            CUDA_ENABLE_COREDUMP_ON_EXCEPTION="1",
            CUDA_ENABLE_LIGHTWEIGHT_COREDUMP="1",  # without the memory of the device
            CUDA_COREDUMP_FILE=str(self._output / f"{again.file_name}.%p.nvcudmp"),
        )

    def _log_of(self, result: Result) -> str:
        return (self._output / result.log).read_text(errors="replace")

    def _note(self, result: Result) -> Result:
        self.results.append(result)
        print(f"doorstep: {result.part}: {result.status} after {result.seconds:.0f} s: {result.summary}", flush=True)
        whole = {"machine": self._machine, "parts": [asdict(one) for one in self.results]}
        (self._output / "results.json").write_text(json.dumps(whole, indent=2) + "\n")
        (self._output / "results.md").write_text(self._page())
        return result

    def _page(self) -> str:
        """The results as Markdown: a table of the parts, then the end of the log of each."""
        lines = ["# First contact", "", self._machine, "", "| part | result | seconds | |", "|---|---|---|---|"]
        for result in self.results:
            summary = result.summary.replace("|", "/")
            lines.append(f"| {result.part} | {result.status} | {result.seconds:.0f} | {summary} |")
        for result in self.results:
            if not result.log:
                continue
            lines += ["", f"## {result.part}", "", f"The end of `{result.log}`:", ""]
            lines += [f"    {line}".rstrip() for line in self._log_of(result).splitlines()[-SHOWN_LINES:]]
        return "\n".join(lines) + "\n"


# ---- The command


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="the wheel to test, or its content; by default the newest in dist/")
    parser.add_argument("--output", type=Path, default=Path("first_contact"), metavar="FOLDER")
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS", help="of all parts (%(default)s)")
    parser.add_argument("--parts", metavar="A,B", help="groups and parts; by default all")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="of each part; by default its own")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("doorstep: ended"))  # with the part that is running
    output = options.output.resolve()
    try:
        parts = chosen_parts(parts_of(output), options.parts, options.limit)
    except ValueError as error:
        parser.error(f"--parts: {error}")
    with tempfile.TemporaryDirectory(prefix="doorstep-first-contact-") as folder:
        # Of the wheel, for all parts.
        content = str(options.wheel.resolve()) if options.wheel and options.wheel.is_dir() else folder
        wheel = ["--wheel", str(options.wheel)] if options.wheel else []
        find = [sys.executable, str(RUN), *wheel, "--find", "--unpack", folder]
        found = subprocess.run(find, stdout=subprocess.PIPE, text=True, check=False)
        print(found.stdout.strip(), flush=True)
        if found.returncode:
            return 2 if found.returncode == NO_GPU else 1
        output.mkdir(parents=True, exist_ok=True)
        launcher = [sys.executable, str(RUN), "--wheel", content, "--command"]
        contact = Contact(found.stdout.strip(), output, options.budget, launcher, find_tool("compute-sanitizer"))
        for part in parts:
            contact.run(part)
        contact.run_anyway(module("facts-after", "tests.gpu.facts", limit=30, needs=0), 30)
    print(f"doorstep: see {output / 'results.md'}")
    return int(any(result.status in (FAILED, TIMED_OUT) for result in contact.results))


def chosen_parts(parts: list[Part], names: str | None, limit: float | None) -> list[Part]:
    """Those that are named, by their groups or by themselves, with their limit."""
    if names is not None:
        chosen, groups = set(names.split(",")), dict.fromkeys(part.group for part in parts)
        unknown = chosen - {part.name for part in parts} - groups.keys()
        if unknown:
            of_groups = ", ".join(part.name for part in parts if part.name != part.group)
            raise ValueError(f"{', '.join(sorted(unknown))}; there are {', '.join(groups)}, and of these {of_groups}")
        parts = [part for part in parts if {part.name, part.group} & chosen]
    return parts if limit is None else [replace(part, limit=limit) for part in parts]


if __name__ == "__main__":
    sys.exit(main())
