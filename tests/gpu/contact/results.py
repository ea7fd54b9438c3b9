"""What became of the parts: a folder with everything, a few files of it that may travel, and a text of one screen."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.gpu.contact.programs import ENDED, FAILED, TIMED_OUT

LEFT_OUT = "left out"  # it did not fit into the time
NOT_DONE = (LEFT_OUT, ENDED)  # what another call with the same output does
DIAGNOSIS = "diagnosis:"  # parts whose output is shown as such
PROFILES = 4  # reports of the profiler that are published
MOST_BYTES = 15 << 20  # of a published file
SHOWN_LINES = 40  # of a log, on the page
DIFFERENCE = "difference.npz"

# What doorstep's errors, PyTorch's and an interpreter that crashes say of a context that is lost.
LOST = re.compile(
    r"[^\n]*(?:can no longer use the device|Fatal Python error: (?!Aborted)|CUDA error: (?:an illegal|a misaligned|"
    r"misaligned|unspecified|device-side|the launch timed out|invalid program counter|hardware stack))[^\n]*"
)
# The lines of tracebacks, and of `doorstep doctor`, that name a fault.
SAYS_WHY = re.compile(r"NO |[\w.]*(?:Error|Exception): ")


@dataclass
class Result:
    """What became of a part."""

    part: str
    status: str
    seconds: float
    summary: str  # the last line that it printed, or why it did not run
    log: str  # the file's name in the folder; empty if it did not run


class Results:
    """Written anew after each part; any thread may add one.

    Files: `results.md`, `results.json`, a log of each part, reports of tests and of the profiler, and the first
    difference that twins found. Published: the pages, logs and reports of tests as `logs.tgz`, profiles, difference.

    Attributes:
        mine: of this call. earlier: of earlier calls with the same output, where a part ran to an end.
    """

    def __init__(self, output: Path, publish: Path | None) -> None:
        self.output = output
        self.mine: list[Result] = []
        file = output / "results.json"
        earlier = json.loads(file.read_text())["parts"] if file.exists() else []
        self.earlier = [Result(**one) for one in earlier if one["status"] not in NOT_DONE]
        self._machine = ""
        self._verdict = "not finished"
        self._publish = publish
        self._lock = threading.Lock()

    def begin(self, machine: str) -> None:
        self._machine = machine
        self.output.mkdir(parents=True, exist_ok=True)
        (self.output / DIFFERENCE).unlink(missing_ok=True)

    def add(self, result: Result) -> None:
        with self._lock:
            self.mine.append(result)
            self._write()
        print(f"doorstep: {result.part}: {result.status} after {result.seconds:.0f} s: {result.summary}", flush=True)

    def finish(self, verdict: str, diagnosis: list[str]) -> None:
        with self._lock:
            self._verdict = verdict
            self._write()
        print(self._closing_text(diagnosis), flush=True)

    def log_of(self, result: Result) -> str:
        return (self.output / result.log).read_text(errors="replace") if result.log else ""

    def failed(self) -> list[str]:
        """The names of the parts of this call that did, those of a diagnosis aside."""
        ends = (FAILED, TIMED_OUT)
        return [one.part for one in self.mine if one.status in ends and not one.part.startswith(DIAGNOSIS)]

    def lost(self) -> list[str]:
        """What the parts of this call said of contexts that were lost."""
        found = ((one, LOST.search(self.log_of(one))) for one in self.mine if one.status == FAILED)
        return [f"{one.part}: {match.group().strip()}" for one, match in found if match]

    def _write(self) -> None:
        parts = list({one.part: one for one in (*self.earlier, *self.mine)}.values())
        whole = {"machine": self._machine, "verdict": self._verdict, "parts": [asdict(one) for one in parts]}
        replace(self.output / "results.json", lambda path: path.write_text(json.dumps(whole, indent=2) + "\n"))
        replace(self.output / "results.md", lambda path: path.write_text(self._page(parts)))
        if self._publish is not None:
            self._publish.mkdir(parents=True, exist_ok=True)
            for file in self._published():
                if file.stat().st_size <= MOST_BYTES:
                    replace(self._publish / file.name, functools.partial(shutil.copyfile, file))
            replace(self._publish / "logs.tgz", self._pack_logs)

    def _published(self) -> Iterator[Path]:
        yield from (self.output / "results.json", self.output / "results.md")
        profiled = [self.output / f"{one.part.removeprefix('profile:')}.ncu-rep" for one in self.mine]
        yield from [report for report in profiled if report.exists()][:PROFILES]
        if (difference := self.output / DIFFERENCE).exists():
            yield difference

    def _pack_logs(self, path: Path) -> None:
        with tarfile.open(path, "w:gz") as archive:
            for file in sorted((*self.output.glob("*.log"), *self.output.glob("*.xml"))):
                archive.add(file, file.name)

    def _page(self, parts: list[Result]) -> str:
        lines = ["# First contact", "", self._machine, "", self._verdict, "", *table(parts)]
        for result in parts:
            if result.log:
                lines += ["", f"## {result.part}", "", f"The end of `{result.log}`:", ""]
                lines += [f"    {line}".rstrip() for line in self.log_of(result).splitlines()[-SHOWN_LINES:]]
        return "\n".join(lines) + "\n"

    # ---- What is shown

    def figures(self) -> list[str]:
        """The tables that benchmarks and profiles print."""
        lines = []
        for one in self.mine:
            rows = [line for line in self.log_of(one).splitlines() if line.startswith("| ")]
            if rows and one.part.startswith(("speed:", "profile:")):
                lines += [f"{one.part}:", *rows]
        return lines

    def failures(self) -> list[str]:
        """The first assertion of each test that failed; the last lines of other programs that did."""
        lines = []
        for one in self.mine:
            if one.part in self.failed():
                failed = list(failed_tests(self.output / one.log.replace(".log", ".xml")))
                log = spoken(self.log_of(one))
                said = [line for line in log if SAYS_WHY.match(line)][:5] or log[-6:-1]
                lines += failed or [f"{one.part}:", *(f"  {line[:200]}" for line in (*said, *log[-1:]))]
        return lines

    def _closing_text(self, diagnosis: list[str]) -> str:
        """What a caller sees who gets only the last 10,000 characters."""
        sections = (
            ("Diagnosis", diagnosis, 3000),
            ("Parts", table(self.mine), 2900),
            ("Figures", self.figures(), 2600),
            ("First assertions of what failed", self.failures(), 1100),
        )
        shown, spare = [], 0
        for title, lines, share in sections:
            text = within(lines, share + spare)
            spare += share - len(text)
            shown.append(f"---- {title}\n{text}" if lines else "")
        return f"{self._machine}\n\n{''.join(shown)}\nverdict: {self._verdict}"


def table(parts: list[Result]) -> list[str]:
    """A row for each part that ran; the names of the others."""
    ran = [one for one in parts if one.status != LEFT_OUT]
    rows = [(one.part, one.status, f"{one.seconds:.0f}", one.summary.replace("|", "/")[:60]) for one in ran]
    lines = ["| part | result | seconds | |", "|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    left_out = ", ".join(one.part for one in parts if one.status == LEFT_OUT)
    return [*lines, "", f"left out: {left_out}"] if left_out else lines


def spoken(log: str) -> list[str]:
    """The lines of a log, without what an interpreter says of itself when it is ended."""
    noise = ("Extension modules:", '  File "<frozen ')
    return [line for line in log.splitlines() if line.strip() and not line.startswith(noise)]


def failed_tests(report: Path) -> Iterator[str]:
    """Names and messages in a report of pytest; none if it was not written."""
    with contextlib.suppress(OSError, ElementTree.ParseError):
        for case in ElementTree.parse(report).iter("testcase"):
            for problem in (*case.iter("failure"), *case.iter("error")):
                message = problem.attrib.get("message", "").strip()[:400]
                yield f"{report.stem.removeprefix('tests-')}: {case.attrib['name']}: {message}"


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file beside it first, so that nobody reads half of it."""
    beside = path.with_name(f".{path.name}")
    write(beside)
    os.replace(beside, path)


def within(lines: list[str], characters: int) -> str:
    """As many whole lines from the beginning as fit."""
    text, left = "", characters - 40
    for number, line in enumerate(lines):
        if len(line) + 1 > left:
            return f"{text}({len(lines) - number} more lines)\n"
        text += f"{line}\n"
        left -= len(line) + 1
    return text
