"""One launch of a kernel, seen by Nsight Compute: its report, and a table of the metrics that tell most.

    python -m tests.gpu.contact.profiles {step,cubes,levels,policy,views} [--worlds 8192] [--output .]

If the profiler fails it is asked for less. Exit status: 0, 1 if it fails all the same, 77 if the profiler is not
here, or this user may not read the GPU's counters.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from pathlib import Path

from tests.gpu.contact.programs import NOT_HERE, find_tool

KERNELS = {
    "step": "doorstep_step",
    "policy": "doorstep_act",
    "cubes": "doorstep_step",
    "levels": "doorstep_step",
    "views": "doorstep_draw_views",
}
# The 63rd launch, when agents have spread over the first room.
SKIPPED, STEPS = 62, 66
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = {
    "duration": "gpu__time_duration.sum",
    # The step has several times as much machine code as a multiprocessor's instruction cache holds.
    "warps waiting for instructions": STALLED.format("no_instruction"),
    "warp instructions": "smsp__inst_executed.sum",
    "threads per instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "blocks per multiprocessor, by shared memory": "launch__occupancy_limit_shared_mem",
    "blocks per multiprocessor, by registers": "launch__occupancy_limit_registers",
    "hits in the L1 cache": "l1tex__t_sector_hit_rate.pct",
    "warps waiting at barriers": STALLED.format("barrier"),
    "warps waiting for local and global memory": STALLED.format("long_scoreboard"),
    "warps waiting for shared memory": STALLED.format("short_scoreboard"),
    "warps waiting for branches": STALLED.format("branch_resolving"),
}
NAMED = ("--metrics", ",".join(METRICS.values()))
FEW = ("--metrics", ",".join(list(METRICS.values())[:3]))
COLLECTED = (("--set", "full", *NAMED), NAMED, FEW)  # from most to least
NO_PERMISSION = "ERR_NVGPUCTRPERM"


def profile(workload: str, worlds: int, report: Path) -> int:
    """Runs the workload under the profiler; the exit status of this program."""
    profiler = find_tool("ncu")
    if profiler is None:
        print("ncu (Nsight Compute) is not here")
        return NOT_HERE
    # The clock is left as it is: as in the benchmark, and locking it takes privileges.
    which = ["--clock-control", "none", "-k", KERNELS[workload], "-s", str(SKIPPED), "-c", "1", "-f", "-o", str(report)]
    work = [sys.executable, "-m", "tests.gpu.workloads", workload, "--worlds", str(worlds), "--steps", str(STEPS)]
    for collected in COLLECTED:
        done = subprocess.run(
            [profiler, *which, *collected, *work],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(done.stdout, flush=True)
        if NO_PERMISSION in done.stdout:
            print(f"this user may not read the GPU's counters ({NO_PERMISSION}): run as root")
            return NOT_HERE
        if done.returncode == 0 and report.exists():
            return 0
    return 1


def print_metrics(report: Path, worlds: int) -> None:
    """Prints the table of a report."""
    table = report.with_suffix(".csv")
    page = ["--page", "raw", "--csv", "--print-units", "base", "--log-file", str(table)]
    subprocess.run([find_tool("ncu") or "ncu", "--import", str(report), *page], check=True)
    print("| metric | value |\n|---|---|")
    for name, value in metrics_of(table, worlds).items():
        print(f"| {name} | {value} |")


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workload", choices=KERNELS)
    parser.add_argument("--worlds", type=int, default=8192)
    parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER")
    options = parser.parse_args()
    report = options.output / f"{options.workload}.ncu-rep"
    status = profile(options.workload, options.worlds, report)
    if status == 0:
        print_metrics(report, options.worlds)
    return status


if __name__ == "__main__":
    sys.exit(main())
