"""Everything that is worth knowing of a GPU on which this code has never run, in one command.

    python3 tests/gpu/first_contact.py [--output first_contact] [--parts speed,profile] [--limit 300]

Needs what tests/gpu/run.py needs: a finished wheel, and a Python with numpy, PyTorch and pytest. Parts run one after
another, each in processes of its own that are ended at its limit; one that fails does not keep the others from running.
The folder gets a log of each part, results.json and results.md, written anew after each part. Exit status: 0, 1 if a
part failed, 2 if there is no GPU.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
RUN = Path(__file__).with_name("run.py")
PASSED, FAILED, TIMED_OUT, SKIPPED = "passed", "failed", "timed out", "skipped"
NO_GPU = 3  # of run.py --find
SHOWN_LINES = 60  # of a log, on the page

# From the normal start; the 63rd step is profiled, when agents have spread over the first room.
PROFILED_STEPS = """
import sys
import numpy as np
import doorstep
worlds = int(sys.argv[1])
generator = np.random.default_rng(0)
with doorstep.Simulator(worlds, device="cuda") as sim:
    for _ in range(66):
        sim.actions.copy_from_host(generator.integers(0, doorstep.ACTIONS, (worlds, 2, 4), np.int32))
        sim.step()
    sim.wait()
"""
PROFILED_WORLDS = (8192, 65536)
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = {
    "duration of the step": "gpu__time_duration.sum",
    "warp instructions": "smsp__inst_executed.sum",
    "threads per instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "blocks per multiprocessor, by shared memory": "launch__occupancy_limit_shared_mem",
    "blocks per multiprocessor, by registers": "launch__occupancy_limit_registers",
    "hits in the L1 cache": "l1tex__t_sector_hit_rate.pct",
    "warps waiting for instructions": STALLED.format("no_instruction"),
    "warps waiting at barriers": STALLED.format("barrier"),
    "warps waiting for local and global memory": STALLED.format("long_scoreboard"),
    "warps waiting for shared memory": STALLED.format("short_scoreboard"),
    "warps waiting for branches": STALLED.format("branch_resolving"),
}


@dataclass(frozen=True)
class Part:
    """Commands that run one after another until one fails.

    Attributes:
        limit: seconds for all of them.
        absent: why it cannot run here; empty if it can.
        read: reads figures from the files that the commands have written.
    """

    name: str
    commands: list[list[str]]
    limit: float
    absent: str = ""
    read: Callable[[], dict[str, str]] = dict


@dataclass
class Result:
    """What became of a part."""

    part: str
    status: str
    seconds: float
    summary: str  # the last line that it printed, or why it did not run
    log: str  # the file's name in the folder; empty if it did not run
    figures: dict[str, str] = field(default_factory=dict)


def find_tool(name: str) -> str | None:
    """The path of a program of the CUDA toolkit."""
    beside_toolkit = sorted(Path("/usr/local").glob(f"cuda*/bin/{name}"))
    return shutil.which(name) or (str(beside_toolkit[-1]) if beside_toolkit else None)


def parts_of(run: list[str], output: Path) -> list[Part]:
    """All parts in order. run: the command that begins tests/gpu/run.py."""
    sanitizer = find_tool("compute-sanitizer")
    bench = [*run, "--bench", "--rounds", "3"]
    return [
        Part("correctness", [[*run, "--durations=15", "-k", "not sanitizer and not vulkan"]], 580),
        Part("speed", [bench, [*bench, "--start", "rooms", "--most-worlds", "65536"]], 580),
        profile_part(run, output, find_tool("ncu")),
        Part("sanitizers", [[*run, "-k", "sanitizer"]], 580, "" if sanitizer else "compute-sanitizer is not here"),
        Part("eight-agents", [[*bench, "--agents", "8", "--most-worlds", "32768"]], 400),
        Part("vulkan", [[*run, "-k", "vulkan"]], 200),
    ]


def profile_part(run: list[str], output: Path, profiler: str | None) -> Part:
    """One launch of the step for each number of worlds, seen by Nsight Compute."""
    commands = []
    tables = {worlds: output / f"profile_{worlds}.csv" for worlds in PROFILED_WORLDS}
    for worlds, table in tables.items():
        report = table.with_suffix(".ncu-rep")
        # The clock is left as it is: as in the benchmark, and locking it takes privileges.
        what = ["--clock-control", "none", "--set", "full", "--metrics", ",".join(METRICS.values())]
        which = ["-k", "doorstep_step", "-s", "62", "-c", "1", "-f", "-o", str(report)]
        steps = [sys.executable, "-c", PROFILED_STEPS, str(worlds)]
        commands.append([*run, "--command", profiler or "ncu", *what, *which, *steps])
        page = ["--page", "raw", "--csv", "--print-units", "base", "--log-file", str(table)]
        commands.append([profiler or "ncu", "--import", str(report), *page])

    def read() -> dict[str, str]:
        figures: dict[str, str] = {}
        for worlds, table in tables.items():
            figures |= {f"{name}, {worlds:,} worlds": value for name, value in metrics_of(table, worlds).items()}
        return figures

    return Part("profile", commands, 580, "" if profiler else "ncu (Nsight Compute) is not here", read)


def metrics_of(table: Path, worlds: int) -> dict[str, str]:
    """The metrics of the one launch in a table of ncu: a row of names, one of units, one of values."""
    rows = list(csv.reader(table.read_text().splitlines()))
    names, units, values = rows[next(i for i, row in enumerate(rows) if row[:1] == ["ID"]) :][:3]
    columns = dict(zip(names, zip(values, units, strict=True), strict=True))
    found = {name: " ".join(columns[metric]).strip() for name, metric in METRICS.items() if metric in columns}
    if METRICS["warp instructions"] in columns:
        executed = float(columns[METRICS["warp instructions"]][0].replace(",", ""))
        found["warp instructions per world"] = f"{executed / worlds:,.0f}"
    return found


def run_part(part: Part, output: Path) -> Result:
    """Runs its commands within its limit, with all that they print in its log."""
    if part.absent:
        return Result(part.name, SKIPPED, 0.0, part.absent, "")
    log = output / f"{part.name}.log"
    begin = time.monotonic()
    status = PASSED
    with log.open("w") as printed, tempfile.TemporaryDirectory(prefix="doorstep-first-contact-") as temporary:
        for command in part.commands:
            left = begin + part.limit - time.monotonic()
            status = run_command(command, left, printed.fileno(), {**os.environ, "TMPDIR": temporary})
            if status != PASSED:
                break
    seconds = time.monotonic() - begin
    lines = log.read_text(errors="replace").strip().splitlines()
    result = Result(part.name, status, round(seconds, 1), lines[-1] if lines else "", log.name)
    if status == PASSED:
        try:
            result.figures = part.read()
        except (OSError, StopIteration, ValueError) as error:
            result.status, result.summary = FAILED, f"its figures cannot be read: {error}"
    return result


def run_command(command: list[str], seconds: float, output: int, environment: dict[str, str]) -> str:
    """Runs one command; at the end of its time all processes of its session are ended."""
    try:
        process = subprocess.Popen(
            command,
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
        return PASSED if process.wait(max(seconds, 0)) == 0 else FAILED
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_parts(parts: list[Part], machine: str, output: Path) -> list[Result]:
    """Runs all, and writes the results after each."""
    results: list[Result] = []
    for part in parts:
        print(f"doorstep: {part.name}: ", end="", flush=True)
        results.append(run_part(part, output))
        print(f"{results[-1].status} after {results[-1].seconds:.0f} s: {results[-1].summary}", flush=True)
        whole = {"machine": machine, "parts": [asdict(result) for result in results]}
        (output / "results.json").write_text(json.dumps(whole, indent=2) + "\n")
        (output / "results.md").write_text(page_of(results, machine, output))
    return results


def page_of(results: list[Result], machine: str, output: Path) -> str:
    """The results as Markdown: a table of the parts, then the figures and the end of the log of each."""
    lines = ["# First contact", "", machine, "", "| part | result | seconds | |", "|---|---|---|---|"]
    lines += [f"| {r.part} | {r.status} | {r.seconds:.0f} | {r.summary.replace('|', '/')} |" for r in results]
    for result in results:
        if not result.log:
            continue
        lines += ["", f"## {result.part}", ""]
        if result.figures:
            lines += ["| figure | value |", "|---|---|"]
            lines += [f"| {name} | {value} |" for name, value in result.figures.items()]
            lines.append("")
        shown = (output / result.log).read_text(errors="replace").splitlines()[-SHOWN_LINES:]
        lines += [f"The end of `{result.log}`:", "", *(f"    {line}".rstrip() for line in shown)]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="the wheel to test; by default the newest in dist/")
    parser.add_argument("--output", type=Path, default=Path("first_contact"), metavar="FOLDER")
    parser.add_argument("--parts", metavar="A,B", help="by default all")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="of each part; by default less than 600")
    options = parser.parse_args()
    run = [sys.executable, str(RUN), *(["--wheel", str(options.wheel.resolve())] if options.wheel else [])]
    output = options.output.resolve()
    parts = parts_of(run, output)
    if options.parts is not None:
        by_name = {part.name: part for part in parts}
        unknown = set(options.parts.split(",")) - by_name.keys()
        if unknown:
            parser.error(f"--parts: {', '.join(sorted(unknown))}; there are {','.join(by_name)}")
        parts = [part for part in parts if part.name in options.parts.split(",")]
    if options.limit is not None:
        parts = [replace(part, limit=options.limit) for part in parts]
    found = subprocess.run([*run, "--find"], stdout=subprocess.PIPE, text=True, check=False)
    print(found.stdout.strip(), flush=True)
    if found.returncode:
        return 2 if found.returncode == NO_GPU else 1
    output.mkdir(parents=True, exist_ok=True)
    results = run_parts(parts, found.stdout.strip(), output)
    print(f"doorstep: see {output / 'results.md'}")
    return int(any(result.status in (FAILED, TIMED_OUT) for result in results))


if __name__ == "__main__":
    sys.exit(main())
