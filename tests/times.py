"""Prints where tests spent their seconds: by folder, by file, and the slowest tests.

    python tests/times.py JUNIT.xml...

Seconds are those of the clock, setup and teardown included, summed over all processes.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple
from xml.etree import ElementTree


class Test(NamedTuple):
    file: str  # without .py
    name: str
    seconds: float


def tests_of(report: str) -> Iterator[Test]:
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.attrib["classname"].replace(".", "/")
        yield Test(file, case.attrib["name"], float(case.attrib["time"]))


def sums(tests: list[Test], group: Callable[[Test], str]) -> list[tuple[str, float, int]]:
    """Groups with their seconds and number of tests, slowest first."""
    seconds: dict[str, list[float]] = collections.defaultdict(list)
    for test in tests:
        seconds[group(test)].append(test.seconds)
    return sorted(((name, sum(each), len(each)) for name, each in seconds.items()), key=lambda row: -row[1])


def main() -> None:
    tests = [test for report in sys.argv[1:] for test in tests_of(report)]
    print(f"{sum(test.seconds for test in tests):.0f} s, {len(tests)} tests")
    print("\nseconds, tests, folder")
    for name, seconds, count in sums(tests, lambda test: test.file.rpartition("/")[0]):
        print(f"{seconds:7.1f} {count:5} {name}")
    print("\nseconds, tests, file")
    for name, seconds, count in sums(tests, lambda test: test.file)[:40]:
        print(f"{seconds:7.1f} {count:5} {name}")
    print("\nseconds, test")
    for test in sorted(tests, key=lambda test: -test.seconds)[:40]:
        print(f"{test.seconds:7.1f} {test.file}::{test.name}")


if __name__ == "__main__":
    main()
