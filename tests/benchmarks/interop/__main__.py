"""What crossing between Python and other frameworks costs, as a table: `make bench-interop`.

    python -m tests.benchmarks.interop [--rounds 25] [fast_calls bridge ...]

Every figure is CPU time, the median over rounds in which the sides of a comparison take turns, because machines are
shared and noisy: read the ratios. Each module of this folder that MODULES names yields rows.
"""

from __future__ import annotations

import argparse
import importlib
import time

from tests.benchmarks.interop.measuring import Row

MODULES = ("fast_calls", "bridge", "training", "jax_scan")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", default=MODULES, metavar="MODULE", help=f"of {', '.join(MODULES)}")
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    begin = time.monotonic()
    print("| what | doorstep | peer | ratio | asked |\n|---|---|---|---|---|")
    for name in options.modules:
        for row in importlib.import_module(f"tests.benchmarks.interop.{name}").rows(options.rounds):
            print(line_of(row), flush=True)
    print(f"\nmeasured in {time.monotonic() - begin:.0f} s")


def line_of(row: Row) -> str:
    mark = "" if row.fulfilled else " (missed)"
    return f"| {row.name} | {row.value} | {row.peer} | {row.ratio:.2f} | {row.asked}{mark} |"


if __name__ == "__main__":
    main()
