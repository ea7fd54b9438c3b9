"""Engines at the interpreter's exit, in forked children, when Ctrl-C is pressed, and when their process is killed."""

import signal
import subprocess
import sys

BEGIN = """
import doorstep, os, signal, sys, threading, time
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.rollouts import EpisodeColumns
from tests.pkg.rollouts.playing import Gate, info_of, play_all, walk
engine = RolloutEngine(RolloutConfig(SimulatorConfig(16), devices=("cpu", "cpu"), controller="round_robin"))
"""

AT_EXIT = {
    "requests that are played": "sys.engine = engine; engine.submit(EpisodeColumns(range(100_000)))",
    "a policy in Python, and futures": """
engine.submit(EpisodeColumns(range(10_000), policy=walk)); time.sleep(0.05)
futures = engine.future(EpisodeColumns(range(100)))
""",
    "a thread that takes": """
def take():
    try:
        while True:
            engine.get_outputs()
            engine.submit(EpisodeColumns(range(10)))
    except doorstep.ClosedError:
        pass
threading.Thread(target=take, daemon=True).start()
time.sleep(0.05)
""",
    "a policy that does not end": """
doorstep.rollouts.engine._EXIT_SECONDS = 0.1
engine.submit(EpisodeRequest(policy=lambda rows: time.sleep(1000)))
time.sleep(0.05)
""",
}


def test_the_interpreter_exits_cleanly(run_python):
    for name, code in AT_EXIT.items():
        assert run_python(BEGIN + code) == "", name


def test_a_process_that_is_killed_leaves_no_other():
    """While it plays, for policies and futures too: what its output goes to is closed by all that it has started."""
    code = """
futures = engine.future(EpisodeColumns(range(1000), policy=walk))
engine.submit(EpisodeColumns(range(100_000), policy=walk))
futures[0].result()
print("plays", flush=True)
engine.run(EpisodeColumns(range(100_000)))
"""
    process = subprocess.Popen([sys.executable, "-c", BEGIN + code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "plays\n"
    finally:
        process.kill()
    assert process.communicate(timeout=60) == ("", None)
    assert process.returncode == -signal.SIGKILL


def test_ctrl_c_ends_a_wait_soon(run_python):
    """Of 60 seconds, for a policy."""
    code = """
engine.close()
def press():
    time.sleep(0.05)
    pressed.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
waits = dict(
    outputs=lambda engine: engine.get_outputs(), iteration=lambda engine: list(engine),
    submit=lambda engine: engine.submit(EpisodeColumns(range(100))), close=lambda engine: engine.close(),
    run=lambda engine: engine.run(EpisodeRequest(max_steps=1)),
    future=lambda engine: engine.future(EpisodeRequest(max_steps=1)).result(),
)
for name, wait in waits.items():
    gate = Gate()
    engine = RolloutEngine(RolloutConfig(SimulatorConfig(1), queue_capacity=2, output_capacity=2))
    engine.submit([EpisodeRequest(policy=gate, max_steps=1) for _ in range(2)])
    gate.entered.wait()  # an engine that is closed before it has called a policy waits for none
    pressed = []
    presser = threading.Thread(target=press)
    try:
        presser.start()
        wait(engine)
        print(name, "has ended")
    except KeyboardInterrupt:
        if time.monotonic() - pressed[0] > 20:
            print(name, "was not interrupted")
    presser.join()
    gate.open.set()
    engine.close()  # also after one that was interrupted
    lost = info_of(engine).submitted - len(list(engine)) - (name in ("future", "run"))
    if lost or engine.outstanding:
        print(name, "has lost some")
"""
    assert run_python(BEGIN + code) == ""


def test_a_forked_child_has_no_engine_but_may_make_one(run_python):
    """While it plays, and while its outputs have no room; with saved states and a future that is awaited."""
    code = """
import gc
state = doorstep.Simulator(1).save()
full = RolloutEngine(RolloutConfig(SimulatorConfig(3), output_capacity=2))
full.submit(EpisodeColumns(range(50), max_steps=1))
full.run(EpisodeRequest(max_steps=2))
resting = iter(full)
next(resting)
engine.submit(EpisodeRequest(state=state, n=4000))
future = engine.future(EpisodeRequest())
for attempt in range(4):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        calls = [lambda: engine.submit(EpisodeRequest()), engine.get_outputs, full.get_outputs, lambda: next(resting),
                 lambda: list(engine), lambda: engine.cancel(3), lambda: engine.future(EpisodeRequest()),
                 lambda: engine.run(EpisodeRequest())]
        for call in calls:
            try:
                call()
            except doorstep.ClosedError as error:
                assert "belongs to the process that was forked" in str(error), error
            else:
                os._exit(2)
        engine.close()
        counter = engine.metrics.counter("of_the_child")  # what was measured is there, and goes on
        counter.add(3)
        assert counter.value == 3 and engine.metrics.total("requests_submitted").value == 4001
        with RolloutEngine(SimulatorConfig(4)) as own:
            own.submit(EpisodeColumns(range(10), max_steps=5, policy=walk))
            assert len(list(own)) == 10
            assert len(own.run(EpisodeRequest(state=state, max_steps=5, n=3))) == 3
        del engine, own, counter, future, calls, call, resting
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
engine.close()
print(sum(1 for _ in engine), 1 + len(list(resting)))
"""
    assert run_python(BEGIN + code) == "4000 50\n"
