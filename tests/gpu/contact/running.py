"""Runs the stages of a plan within a budget, and what explains a failure after them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from tests.gpu.contact.plan import Lane, Part, Stage, python, sanitized
from tests.gpu.contact.programs import GRACE_PERIOD, TIMED_OUT, run_program
from tests.gpu.contact.results import DIAGNOSIS, DIFFERENCE, LEFT_OUT, Result, Results, spoken

CLOSING = 35.0  # seconds after the budget in which parts may still end
MOST_HANGS = 2


class Contact:
    """Runs parts, the lanes of a stage at the same time, unless a part ends all, or two time out.

    begin: when the budget began, as time.monotonic() tells it. environment: of all programs.
    """

    def __init__(self, results: Results, begin: float, budget: float, environment: Mapping[str, str]) -> None:
        self.results = results
        self.stopped = ""  # the reason
        self._end = begin + budget
        # As tests/cuda/differences.py reads it.
        self._environment = {**environment, "DOORSTEP_DIFFERENCE": str(results.output / DIFFERENCE)}
        self._stop = threading.Event()
        self._hangs = 0

    def run(self, stages: list[Stage]) -> None:
        for lanes in stages:
            # Daemons: a program that cannot even be killed keeps nobody waiting.
            threads = [threading.Thread(target=self._run_lane, args=(lane,), daemon=True) for lane in lanes]
            for thread in threads:
                thread.start()
            try:
                for thread in threads:
                    thread.join(max(self._end + CLOSING + GRACE_PERIOD + 1 - time.monotonic(), 0))
            except BaseException:
                self.stop_early("interrupted")
                for thread in threads:
                    thread.join(GRACE_PERIOD + 1)
                raise

    def stop_early(self, reason: str) -> None:
        self.stopped = self.stopped or f"stopped: {reason}"
        self._stop.set()

    def _run_lane(self, lane: Lane) -> None:
        for part in lane:
            left = self._end - time.monotonic()
            if self.stopped or left < part.needs:
                reason = self.stopped or f"about {part.needs:.0f} s do not fit into {max(left, 0):.0f} s"
                self.results.add(Result(part.name, LEFT_OUT, 0.0, reason, ""))
                continue
            status = self.run_part(part).status
            self._hangs += status == TIMED_OUT
            if status in part.ends_all:
                self.stop_early(f"{part.name} {status}")
            elif self._hangs == MOST_HANGS:
                self.stop_early(f"{MOST_HANGS} parts timed out")

    def run_part(self, part: Part) -> Result:
        log, begin = self.results.output / f"{part.file_name}.log", time.monotonic()
        last = self._end + CLOSING
        end = min(begin + part.limit, last)
        status = run_program(part.program, end, last, log, self._environment, self._stop)
        lines = spoken(log.read_text(errors="replace"))
        last_line = lines[-1].strip("= ") if lines else ""
        result = Result(part.name, status, time.monotonic() - begin, last_line, log.name)
        self.results.add(result)
        return result

    def diagnose(self) -> list[str]:
        """Explains why it stopped, and contexts that were lost: the lines that matter."""
        lost = self.results.lost()
        if not self.stopped and not lost:
            return self._difference()
        self._stop.clear()
        lines = [*lost, *self._hung()]
        if self.stopped:
            lines += self._shown(python(f"{DIAGNOSIS}ladder", "tests.gpu.contact.ladder", limit=60, needs=0), 30)
        if lost or self._hangs:
            lines += self._shown(
                python(f"{DIAGNOSIS}messages", "tests.gpu.contact.facts", "--messages", limit=30, needs=0), 10
            )
        if lost:
            one = ("--worlds", "1", "--steps", "1")
            lines += self._shown(sanitized(f"{DIAGNOSIS}memcheck", "memcheck", "step", *one, limit=90, needs=0), 15)
        return lines + self._difference()

    def _shown(self, part: Part, most: int) -> list[str]:
        result = self.run_part(part)
        text = spoken(self.results.log_of(result))
        text = [line for line in text if line.startswith("=====")] or text  # as compute-sanitizer marks its own
        return [f"{part.name} ({result.status}):", *(f"  {line[:200]}" for line in text[:most])]

    def _hung(self) -> list[str]:
        """Where the parts were whose time ran out: the debugger's and the interpreter's last words."""
        lines = []
        for one in self.results.mine:
            if one.status == TIMED_OUT:
                lines.append(f"{one.part} timed out:")
                lines += [f"  {line[:160]}" for line in spoken(self.results.log_of(one))[-14:]]
        return lines

    def _difference(self) -> list[str]:
        """The first that twins found."""
        path = self.results.output / DIFFERENCE
        if not path.exists():
            return []
        import numpy as np  # only what runs the parts needs it otherwise

        with np.load(path) as found:
            return str(found["text"]).splitlines()
