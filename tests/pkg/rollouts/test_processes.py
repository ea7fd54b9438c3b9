"""Engines at the interpreter's exit, in forked children, and when Ctrl-C is pressed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

RunPython = Callable[..., str]

BEGIN = """
import doorstep, numpy as np, os, signal, sys, threading, time
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, rollouts
def walk(rows):
    return np.ones((len(rows), 4), np.int32)
config = RolloutConfig(SimulatorConfig(16), devices=("cpu", "cpu"), controller=rollouts.RoundRobinController())
engine = RolloutEngine(config)
"""

AT_EXIT = {
    "nothing done": "",
    "requests that are played": "engine.submit_batch(range(100_000))",
    "a policy in Python": "engine.submit_batch(range(10_000), policy=walk); time.sleep(0.05)",
    "futures": "futures = [engine.future(EpisodeRequest()) for _ in range(100)]",
    "results that wait": "engine.submit_batch(range(100), record='observations', max_steps=3); engine.drain()",
    "records in a module": """
engine.submit_batch(range(100), record='observations', max_steps=3)
sys.results = list(engine)
""",
    "an engine in a module": "sys.engine = engine; engine.submit_batch(range(100_000))",
    "a closed engine": "engine.submit_batch(range(1000)); engine.close()",
    "a thread that takes": """
def take():
    try:
        while True:
            engine.get_outputs()
            engine.submit_batch(range(10))
    except doorstep.ClosedError:
        pass
threading.Thread(target=take, daemon=True).start()
time.sleep(0.05)
""",
}


@pytest.mark.parametrize("code", AT_EXIT.values(), ids=AT_EXIT)
def test_the_interpreter_exits_cleanly_with(code: str, run_python: RunPython) -> None:
    assert run_python(BEGIN + code) == ""


def test_an_exit_waits_for_no_policy_for_ever(run_python: RunPython) -> None:
    code = """
from doorstep.rollouts import core
core._EXIT_SECONDS = 0.1
engine.submit(EpisodeRequest(policy=lambda rows: time.sleep(1000)))
time.sleep(0.05)
"""
    assert run_python(BEGIN + code) == ""


@pytest.mark.parametrize(
    "wait",
    ["engine.get_outputs()", "engine.get_records()", "engine.drain()", "list(engine)", "engine.close()",
     "engine.submit_batch(range(100))", "engine.future(EpisodeRequest(max_steps=1)).result()"],
)  # fmt: skip
def test_ctrl_c_ends_a_wait_soon(wait: str, run_python: RunPython) -> None:
    code = f"""
entered, open_gate = threading.Event(), threading.Event()
def blocks(rows):
    entered.set()
    open_gate.wait(60)
    return walk(rows)
engine = RolloutEngine(RolloutConfig(SimulatorConfig(1), queue_capacity=2))
engine.submit([EpisodeRequest(policy=blocks, max_steps=1) for _ in range(2)])
assert entered.wait(60)
pressed = []
def press():
    time.sleep(0.1)
    pressed.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
try:
    threading.Thread(target=press).start()
    {wait}
except KeyboardInterrupt:
    print(time.monotonic() - pressed[0] < 5)  # the policy would take 60
open_gate.set()
engine.close()  # also after one that was interrupted
try:
    engine.submit(EpisodeRequest())
except doorstep.ClosedError:
    print("closed")
"""
    assert run_python(BEGIN + code) == "True\nclosed\n"


def test_ctrl_c_loses_no_output(run_python: RunPython) -> None:
    code = """
engine = RolloutEngine(SimulatorConfig(64))
submitted, taken = set(), set()
stop, done = time.monotonic() + 60, threading.Event()
def press():
    while not done.wait(0.003):
        os.kill(os.getpid(), signal.SIGINT)
presser = threading.Thread(target=press)
armed = False
def handler(*_):
    if armed:
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)
presser.start()
rounds = 0
from doorstep._native import rollouts as native
real = native.wait
def wait(*arguments):  # Ctrl-C is raised in the call of the library only: elsewhere it may come between any two lines
    global armed
    armed = True
    try:
        return real(*arguments)
    finally:
        armed = False
native.wait = wait
interrupted = 0
while interrupted < 100 and time.monotonic() < stop:
    submitted.update(engine.submit_batch(range(50), max_steps=20).tolist())
    while engine.outstanding:
        try:
            taken.update(output.id for output in engine.get_outputs())
        except KeyboardInterrupt:
            interrupted += 1
done.set()
presser.join()
print(taken == submitted, interrupted > 10)
engine.close()
"""
    assert run_python(BEGIN + code) == "True True\n"


def test_a_forked_child_has_no_engine_but_may_make_one(run_python: RunPython) -> None:
    code = """
import gc
engine.submit_batch(range(100_000))
future = engine.future(EpisodeRequest())
for attempt in range(10):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        for call in (lambda: engine.submit(EpisodeRequest()), engine.get_outputs, engine.drain,
                     lambda: list(engine), lambda: engine.cancel(3), lambda: engine.future(EpisodeRequest())):
            try:
                call()
            except doorstep.ClosedError as error:
                assert "belongs to the process that was forked" in str(error), error
            else:
                os._exit(2)
        engine.close()
        with RolloutEngine(SimulatorConfig(4)) as own:
            own.submit_batch(range(10), max_steps=5, policy=walk)
            assert len(list(own)) == 10
        del engine, own, future, call
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
engine.close()
print(sum(1 for _ in engine))
"""
    assert run_python(BEGIN + code) == "100000\n"


def test_a_fork_within_the_first_submission_disturbs_neither_side(run_python: RunPython) -> None:
    code = """
from dataclasses import dataclass
from typing import ClassVar
from doorstep.rollouts import RolloutConfig, SchedulerConfig, register_scheduler
@dataclass(frozen=True)
class Config(SchedulerConfig):
    type: ClassVar[str] = "forks"
children = []
@register_scheduler(Config)
class Scheduler:
    def __init__(self, config):
        pass
    def __call__(self, request):
        if not children and (child := os.fork()):
            children.append(child)
        return request.seed
parent = os.getpid()
forking = RolloutEngine(RolloutConfig(SimulatorConfig(2), scheduler=Config()))
try:
    forking.submit([EpisodeRequest(seed=seed, policy=walk, max_steps=5) for seed in range(10)])
except doorstep.ClosedError:
    assert os.getpid() != parent
if os.getpid() != parent:
    signal.alarm(30)
    with RolloutEngine(SimulatorConfig(4)) as own:
        own.submit_batch(range(10), max_steps=5, policy=walk)
        os._exit(len(list(own)))
print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]), len(list(forking)))
forking.close()
engine.close()
"""
    assert run_python(BEGIN + code) == "10 10\n"


def test_a_child_that_ends_as_a_script_leaves_the_parents_engine(run_python: RunPython) -> None:
    code = """
import multiprocessing
def work(value):
    with RolloutEngine(SimulatorConfig(2, num_threads=1)) as own:
        own.submit(EpisodeRequest(seed=value, max_steps=5))
        return next(iter(own)).state_hash
engine.submit_batch(range(20_000))
with multiprocessing.get_context("fork").Pool(2) as pool:
    hashes = pool.map(work, range(4))
assert len(set(hashes)) == 4
print(len(list(engine)))
engine.close()
"""
    assert run_python(BEGIN + code) == "20000\n"
