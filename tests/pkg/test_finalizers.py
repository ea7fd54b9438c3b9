"""Ctrl-C while an object goes: what it owns is released all the same, and the code that let it go is interrupted."""

import gc
import sys

import numpy as np
import pytest
from tests.interrupts import interrupted_everywhere
from tests.live_objects import soon_more_than

import doorstep
from doorstep import EpisodeRequest, RolloutEngine, Simulator, live_counts
from doorstep._native.finalizer import Finalizer


def engine_that_plays():
    engine = RolloutEngine(num_worlds=1, num_threads=1)
    engine.submit([EpisodeRequest(policy=lambda rows: np.zeros((len(rows), 4), np.int32))] * 3)
    engine.future(EpisodeRequest())
    return engine


def recorded():
    with RolloutEngine(num_worlds=1, num_threads=1) as engine:
        return engine.run([EpisodeRequest(max_steps=1, record="observations")])


OWNERS = {
    "simulator": lambda: Simulator(1, num_threads=1),
    "tensor": lambda: Simulator(1, num_threads=1).rewards,
    "step": lambda: Simulator(1, num_threads=1).step_async(),
    "engine": engine_that_plays,
    "recorded steps": recorded,
    "metrics": doorstep.metrics.MetricsStore,
}


@pytest.fixture(autouse=True)
def without_other_garbage(monkeypatch):
    # Ctrl-C that meets a finaliser of Python's own modules is dropped; the hook of pytest keeps its frames
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("make", OWNERS.values(), ids=OWNERS)
def test_what_goes_is_released_whenever_ctrl_c_comes(make):
    before, owners = live_counts(), [make()]

    def let_go():
        owners.clear()
        for _ in range(10):
            pass  # a jump back: here Python looks for signals

    for place in interrupted_everywhere(lambda: let_go()):
        assert soon_more_than(before) == {}, place
        owners.append(make())
    owners.clear()
    assert soon_more_than(before) == {}


class Owner:
    """Something that has a finalizer."""


def test_ctrl_c_reaches_the_code_that_let_the_object_go():
    owners, calls = [Owner()], []

    def press(again):
        calls.append(again)
        if len(calls) == 1:
            raise KeyboardInterrupt

    finalizer = Finalizer(owners[0], press, "called")
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        owners.clear()
        for _ in range(10):
            pass
    assert calls == ["called", "called"]
    assert not finalizer.alive
