"""Embree where memory ends: it is refused with an error, and the process goes on."""

import json

import pytest

# For one amount of address space after the other a process that has this much left uses Embree as it can, then without
# the limit. The processes are forked: a fresh one would take most of its time to start.
PROCESSES = """
import contextlib, json, os, resource
os.environ["OPENBLAS_NUM_THREADS"] = "1"    # a process that forks has one thread
import numpy
import doorstep.render
from doorstep import Cameras, OutOfMemoryError, Simulator

MIB = 1 << 20

def simulator():
    return Simulator(16, num_threads=COUNT, cameras=Cameras(width=8, height=8, renderer="embree"))

def attempt(action):
    "What action() returns; None where memory ended, in doorstep or in Python."
    with contextlib.suppress(OutOfMemoryError, MemoryError):
        return action()

@contextlib.contextmanager
def limited(mib):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(mib * MIB), resource.RLIM_INFINITY))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

def first_use(mib):
    with limited(mib):
        sim = attempt(simulator)
        attempt(lambda: sim and sim.step())
    simulator().step()
    return sim is not None

def step_and_draw(sim):
    sim.step()
    return sim.render(width=8, height=8)

def later_use(mib):
    sim = simulator()
    sim.render(width=8, height=8)
    with limited(mib):
        drawn = attempt(lambda: step_and_draw(sim))
        attempt(sim.step)
    step_and_draw(sim)
    return drawn is not None

def status(mib):
    "How a process ended that had this much left: 0 if that was enough, 3 if it was refused, else it died."
    child = os.fork()
    if child == 0:
        os._exit(0 if USE(mib) else 3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
# Finds out how much is enough, then tries what is a little less, and next to nothing.
SEARCH = """
Simulator(1, num_threads=1, cameras=Cameras(renderer="raycast")).close()    # loads the library that draws
too_little, enough = 0.0, 2048.0
while enough - too_little > 0.125:
    middle = (too_little + enough) / 2
    too_little, enough = (too_little, middle) if status(middle) == 0 else (middle, enough)
amounts = [i / 16 for i in range(64)] + [enough - i / 16 for i in range(64)]
print(json.dumps({mib: status(mib) for mib in [2048.0, *amounts] if mib >= 0}))
"""


@pytest.mark.parametrize("use", ["first_use", "later_use"])
@pytest.mark.parametrize("threads", [2, *(pytest.param(number, marks=pytest.mark.nightly) for number in (1, 8))])
def test_where_memory_ends_embree_is_refused_and_the_process_goes_on(threads, use, run_python):
    ended = json.loads(run_python(PROCESSES.replace("COUNT", str(threads)).replace("USE", use) + SEARCH))
    worked, refused = 0, 3
    assert {mib: status for mib, status in ended.items() if status not in (worked, refused)} == {}
    assert (ended["2048.0"], ended["0.0"]) == (worked, refused)
