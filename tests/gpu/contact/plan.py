"""What is done on a GPU that this code meets for the first time, in which order, and what runs beside what."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.gpu.contact.programs import FAILED, NOT_HERE, PROJECT, TIMED_OUT, find_tool
from tests.gpu.sizes import PATIENCE, sized

TESTS = PROJECT / "tests" / "gpu"
MEMCHECK_OPTIONS = ("--report-api-errors", "no")  # asking for the attributes of a host address fails, as it should


@dataclass(frozen=True)
class Part:
    """A program.

    Attributes:
        name: `group:name`, or the group's alone; also names its log.
        limit: seconds after which it is ended; far more than it needs, so that what reaches it hangs.
        needs: seconds that it is expected to take where all goes well: with less left it is not begun.
        ends_all: if it ends so, the rest would tell nothing new.
    """

    name: str
    program: Sequence[str]
    limit: float
    needs: float
    ends_all: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        return self.name.partition(":")[0]

    @property
    def file_name(self) -> str:
        return self.name.replace(":", "-")


Lane = list[Part]  # parts that run one after another
Stage = list[Lane]  # lanes that run at the same time


def python(name: str, module: str, *arguments: str, limit: float, needs: float) -> Part:
    return Part(name, [sys.executable, "-m", module, *arguments], limit * PATIENCE, needs)


def bench(name: str, module: str, *arguments: str, seconds: int, needs: float) -> Part:
    """A benchmark that begins no row after so many seconds."""
    given = ("--seconds", str(seconds * PATIENCE), *arguments)
    return python(f"speed:{name}", f"tests.benchmarks.{module}", *given, limit=2 * seconds, needs=needs)


def sanitized(name: str, tool: str, workload: str, *sizes: str, limit: float, needs: float) -> Part:
    """A workload under compute-sanitizer."""
    program = find_tool("compute-sanitizer")
    if program is None:
        code = f"print('compute-sanitizer is not here'); raise SystemExit({NOT_HERE})"
        return Part(name, [sys.executable, "-c", code], limit, 1)
    options = [program, "--tool", tool, "--error-exitcode", "86", *(MEMCHECK_OPTIONS if tool == "memcheck" else ())]
    work = [sys.executable, "-m", "tests.gpu.workloads", workload, *sizes]
    return Part(name, [*options, *work], limit * PATIENCE, needs)


def stages(output: Path) -> list[Stage]:
    """All parts. Their seconds are guesses: none has run on a GPU."""

    def tests(file: str, *arguments: str, name: str = "", limit: float = 120, needs: float = 15) -> Part:
        name = f"tests:{name or file}"
        report = f"--junitxml={output / name.replace(':', '-')}.xml"
        options = ("-c", str(TESTS / "pytest.ini"), "-v", "--durations=5", report, *arguments)
        return python(name, "pytest", str(TESTS / f"test_{file}.py"), *options, limit=limit, needs=needs)

    def profile(workload: str) -> Part:
        arguments = (workload, "--worlds", "8192", "--output", str(output))
        return python(f"profile:{workload}", "tests.gpu.contact.profiles", *arguments, limit=90, needs=15)

    few = ("--worlds", sized("70", "5"), "--steps", "2")
    return [
        [[replace(python("doctor", "doorstep", "doctor", "--verify", limit=60, needs=5), ends_all=(TIMED_OUT,))]],
        [[replace(python("smoke", "tests.gpu.contact.smoke", limit=60, needs=10), ends_all=(FAILED, TIMED_OUT))]],
        [[bench("worlds", "measure_gpu", "--quick", seconds=50, needs=15)]],
        [[bench("programs", "gpu_programs", "--rounds", "1", "--worlds", sized("65536", "5"), seconds=50, needs=20)]],
        [[profile("step"), profile("policy")]],
        [
            [tests("same_bits", limit=150), tests("cameras", "-k", "not vulkan")],
            [tests("torch"), tests("policies"), tests("trainer"), tests("training")],
            [tests("jax"), tests("other_libraries"), tests("bridge"), tests("sharing"), tests("environments")],
            [tests("engines"), sanitized("memcheck", "memcheck", "all", limit=200, needs=60)],
        ],
        [[tests("lifetimes", needs=20)]],
        [[sanitized(f"racecheck:{work}", "racecheck", work, *few, limit=120, needs=15) for work in ("step", "policy")]],
        [[python("facts", "tests.gpu.contact.facts", limit=60, needs=3)]],
        # What matters most is done by now.
        [[bench("all-sizes", "measure_gpu", "--rounds", "3", seconds=60, needs=30)]],
        [[bench("eight-agents", "measure_gpu", "--quick", "--agents", "8", seconds=30, needs=10)]],
        [[profile("cubes"), profile("levels"), profile("views")]],
        [[tests("cameras", "-k", "vulkan", name="vulkan")]],
    ]


def chosen(plan: list[Stage], names: str | None, done: Sequence[str]) -> list[Stage]:
    """The parts that are named, by their groups or by themselves (None: all), without those that are done."""
    parts = [part for stage in plan for lane in stage for part in lane]
    wanted = {part.name for part in parts} if names is None else set(names.split(","))
    unknown = wanted - {part.name for part in parts} - {part.group for part in parts}
    if unknown:
        there_are = ", ".join(part.name for part in parts)
        raise ValueError(f"{', '.join(sorted(unknown))} must be one of {there_are}, or a group before a colon")
    chosen = [
        [[part for part in lane if {part.name, part.group} & wanted and part.name not in done] for lane in stage]
        for stage in plan
    ]
    return [stage for stage in ([lane for lane in stage if lane] for stage in chosen) if stage]
