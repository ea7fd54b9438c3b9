"""What `doorstep view` costs while a browser looks at 64 worlds: `make bench-view`.

    python -m tests.benchmarks.view [--seconds 60] [--rate 30]

A server runs in a process of its own; its CPU time is that of all its threads. A headless Chromium looks at it through
a relay that counts bytes both ways.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import sync_playwright
from tests.benchmarks.view.relay import Relay
from tests.system_packages import chromium, chromium_environment, chromium_options

WORLDS = 64
MOST_CPU, MOST_MEGABYTES = 0.10, 2.0  # of one core, and per second


@dataclass(frozen=True)
class Reading:
    """Counters at one moment."""

    seconds: float
    cpu_seconds: float
    bytes_down: int
    bytes_up: int
    steps: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=30)
    options = parser.parse_args()
    print(f"{WORLDS} worlds at {options.rate:g} steps per second, {options.seconds:g} s each")
    print("| what | steps/s | CPU of one core | to the browser | from it |\n|---|---|---|---|---|")
    for name, start, prepare in (
        ("random actions", "normal", lambda _: None),
        ("among cubes", "rooms", lambda _: None),
        ("among cubes; all rays and the agent's picture drawn, camera follows", "rooms", switch_everything_on),
        ("paused", "normal", lambda page: page.get_by_role("button", name="pause").click()),
    ):
        first, last = measure(start, options.rate, options.seconds, prepare)
        print(f"| {name} | {row(first, last)} |", flush=True)


def measure(start: str, rate: float, seconds: float, prepare: Callable[[Any], None]) -> tuple[Reading, Reading]:
    """Counters before and after so many seconds of looking."""
    command = [sys.executable, "-m", "tests.benchmarks.view.served", str(WORLDS), str(rate), start]
    environment = {**os.environ, **chromium_environment()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served, sync_playwright() as playwright:
        assert served.stdout is not None
        with Relay(int(served.stdout.readline())) as relay:
            browser = playwright.chromium.launch(
                executable_path=str(chromium()), args=chromium_options(), env=environment
            )
            page = browser.new_page(viewport={"width": 500, "height": 800})
            page.goto(f"http://127.0.0.1:{relay.port}")
            page.get_by_role("button", name="pause").wait_for()
            prepare(page)
            page.wait_for_timeout(3000)
            first = read(served.pid, relay, page)
            page.wait_for_timeout(1000 * seconds)
            last = read(served.pid, relay, page)
            browser.close()
        served.kill()
    return first, last


def switch_everything_on(page: Any) -> None:
    page.get_by_text("look and numbers").click()  # the page is as narrow as a phone's
    for name in ("lidar rays", "grab rays", "what the agent sees"):
        page.get_by_role("checkbox", name=name).check()
    page.get_by_role("combobox", name="camera").click()
    page.get_by_role("option", name="follow").click()


def read(process: int, relay: Relay, page: Any) -> Reading:
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    cpu_seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # in user and system mode
    found = re.search(r"step ([\d,]+), (?:running|paused)", page.content())
    assert found
    steps = int(found[1].replace(",", ""))
    return Reading(time.monotonic(), cpu_seconds, relay.bytes_down, relay.bytes_up, steps)


def row(first: Reading, last: Reading) -> str:
    seconds = last.seconds - first.seconds
    cpu = (last.cpu_seconds - first.cpu_seconds) / seconds
    down, up = ((getattr(last, way) - getattr(first, way)) / seconds / 1e6 for way in ("bytes_down", "bytes_up"))
    missed = " (missed)" if cpu > MOST_CPU or down > MOST_MEGABYTES else ""
    steps = (last.steps - first.steps) / seconds
    return f"{steps:.1f} | {100 * cpu:.1f}%{missed} | {down:.2f} MB/s | {up:.2f} MB/s"


if __name__ == "__main__":
    main()
