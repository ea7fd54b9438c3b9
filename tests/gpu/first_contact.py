"""Everything that is worth knowing of a GPU on which this code has never run, in one command of less than ten minutes.

    python3 tests/gpu/first_contact.py [--wheel dist/NAME.whl] [--budget 540] [--output FOLDER] [--publish FOLDER]
        [--parts doctor,tests,speed:worlds] [--rest]

docs/developers/first_contact.md says what it needs and what to do after each verdict. What tells most for its time
comes first. `--rest` runs what earlier calls with the same output have left out. The last 10,000 characters that it
prints have all that matters; the output folder has everything, the published one its pages, logs, profiles and the
first difference.
Exit status: 0; 1 if a part failed or timed out; 2 if there is no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

BEGIN = time.monotonic()
if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.gpu.contact import plan  # noqa: E402
from tests.gpu.contact.programs import GRACE_PERIOD, begin, end_session  # noqa: E402
from tests.gpu.contact.results import NOT_DONE, Results  # noqa: E402
from tests.gpu.contact.running import CLOSING, Contact  # noqa: E402
from tests.gpu.run import environment_with, unpack  # noqa: E402

BUDGET = 540.0  # seconds
FIND_PATIENCE = 60.0
NO_GPU = 2
# Holds the device's context until its input ends: without one the driver would prepare the device for each program.
KEEPER = """
import sys
import doorstep
from doorstep import cuda
try:
    devices = [cuda.Device(index) for index in range(cuda.Device.count())]
except (doorstep.NoDriverError, doorstep.NoDeviceError) as error:
    print("no GPU:", error, flush=True)
    raise SystemExit
kept = cuda.Stream(0)
kernels = ", ".join(f"{device.name} (kernels: {device.kernel_source})" for device in devices)
print(f"doorstep {doorstep.__version__} on {kernels}", flush=True)
sys.stdin.read()
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="the wheel to test, or its content; by default the newest in dist/")
    parser.add_argument("--output", type=Path, default=Path("build/first_contact"), metavar="FOLDER")
    parser.add_argument("--publish", type=Path, metavar="FOLDER", help="for the few files that may travel")
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS", help="(%(default)s)")
    parser.add_argument("--parts", metavar="A,B", help="groups and parts; by default all")
    parser.add_argument("--rest", action="store_true", help="only what earlier calls have left out")
    options = parser.parse_args()
    output, publish = options.output.resolve(), options.publish and options.publish.resolve()
    results = Results(output, publish)
    done = [one.part for one in results.earlier] if options.rest else []
    try:
        stages = plan.chosen(plan.stages(output), options.parts, done)
    except ValueError as error:
        parser.error(f"--parts: {error}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("doorstep: ended"))
    with tempfile.TemporaryDirectory(prefix="doorstep-first-contact-", ignore_cleanup_errors=True) as folder:
        environment = environment_with(unpack(options.wheel, Path(folder)))
        groups = {part.group for stage in stages for lane in stage for part in lane}
        packages = ("torch", "jax") if groups & {"speed", "tests"} else ()
        with warm_up(packages, environment), kept_device(environment) as machine:
            print(f"doorstep: {machine}", flush=True)
            if machine.startswith("no GPU"):
                return NO_GPU
            results.begin(machine)
            contact = Contact(results, BEGIN, options.budget, environment)
            with last_resort(results, options.budget):
                if machine.startswith("doorstep "):
                    contact.run(stages)
                else:
                    contact.stop_early(machine)
                diagnosis = contact.diagnose()
                failed = results.failed()
                left = sum(one.status in NOT_DONE for one in results.mine)
                found = f"failed: {', '.join(failed)}" if failed else "everything that ran is well"
                results.finish("; ".join(filter(None, (contact.stopped, found, f"parts left out: {left}"))), diagnosis)
    return int(bool(contact.stopped or failed))


@contextlib.contextmanager
def warm_up(packages: Sequence[str], environment: Mapping[str, str]) -> Iterator[None]:
    """Reads in the background, from a disk that has never been read, what later parts import."""
    readers = [
        begin([sys.executable, "-c", f"import {package}"], environment, subprocess.DEVNULL) for package in packages
    ]
    try:
        yield
    finally:
        for reader in readers:
            end_session(reader)


@contextlib.contextmanager
def kept_device(environment: Mapping[str, str]) -> Iterator[str]:
    """What the machine is; its first device stays ready until the block ends."""
    command = [sys.executable, "-c", KEEPER]
    keeper = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        if select.select([keeper.stdout], [], [], FIND_PATIENCE)[0]:
            yield keeper.stdout.readline().strip() or "the wheel or the driver cannot be used"
        else:
            yield f"the driver does not answer within {FIND_PATIENCE:.0f} s"
    finally:
        keeper.kill()
        keeper.stdin.close()
        keeper.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            keeper.wait(GRACE_PERIOD)


@contextlib.contextmanager
def last_resort(results: Results, budget: float) -> Iterator[None]:
    """Ends this process with what is known, should it hang although nothing in it waits for ever."""

    def end() -> None:
        results.finish("this program hung", [])
        os._exit(1)

    timer = threading.Timer(BEGIN + budget + CLOSING + 13 - time.monotonic(), end)
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()


if __name__ == "__main__":
    sys.exit(main())
