"""Waiting for an engine in what it waits for: refused at once, where it would last for ever."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg.rollouts.playing import Gate

from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, StateError, rollouts

PATIENCE = 20  # seconds, after which something hangs
SHORT = EpisodeRequest(max_steps=1)

WAITS: dict[str, Callable[[RolloutEngine], Any]] = {
    "get_outputs": lambda engine: engine.get_outputs(),
    "get_outputs with a timeout": lambda engine: engine.get_outputs(timeout=1e6),
    "get_records": lambda engine: engine.get_records(),
    "drain": lambda engine: engine.drain(),
    "iteration": lambda engine: list(engine),
    "future": lambda engine: engine.future(SHORT).result(),
    "exception of a future": lambda engine: engine.future(SHORT).exception(),
    "wait for futures": lambda engine: concurrent.futures.wait([engine.future(SHORT)]),
    "futures as they are completed": lambda engine: list(concurrent.futures.as_completed([engine.future(SHORT)])),
    "run": lambda engine: engine.run([SHORT]),
    "play": lambda engine: asyncio.run(engine.play(SHORT)),
    "submit to a full queue": lambda engine: engine.submit([SHORT] * 9),
    "submit_batch to a full queue": lambda engine: engine.submit_batch(range(9)),
}


class Within:
    """A policy that makes a call when it acts."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.made: list[Any] = []
        self.done = threading.Event()

    def __call__(self, observations: NDArray[np.float32]) -> NDArray[np.int32]:
        try:
            self.made.append(self._call())
        except Exception as error:
            self.made.append(error)
        self.done.set()
        return np.zeros((len(observations), 4), np.int32)


def within_policy(engine: RolloutEngine, call: Callable[[], Any]) -> Any:
    """What a call of a policy returns or raises."""
    policy = Within(call)
    engine.submit(EpisodeRequest(policy=policy, max_steps=1))
    assert policy.done.wait(PATIENCE)
    return policy.made[0]


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_policy_cannot_wait_for_its_engine(wait: Any) -> None:
    with RolloutEngine(RolloutConfig(SimulatorConfig(1, num_threads=1), queue_capacity=2)) as engine:
        error = within_policy(engine, lambda: wait(engine))
        assert isinstance(error, StateError)
        assert "a policy would wait for the engine that calls it" in str(error)
        assert "wait in another thread" in error.hint
        submitted = getattr(error, "ids", [])
        assert len(submitted) in (0, 2)
        assert engine.drain(PATIENCE)
        assert set(submitted) <= {result.id for result in engine}


def test_a_policy_may_do_what_needs_no_wait() -> None:
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as engine:
        (first,) = engine.run([SHORT])
        ready = engine.future(SHORT)
        ready.result(PATIENCE)
        waiting = engine.submit(SHORT)
        assert engine.drain(PATIENCE)

        def call() -> Any:
            taken = engine.get_outputs()  # it has come already
            more = engine.submit([SHORT] * 3)
            assert concurrent.futures.wait([ready]).done == {ready}
            assert list(concurrent.futures.as_completed([ready])) == [ready]
            return ready.result(), taken, more, engine.get_outputs(block=False), engine.drain(0), engine.outstanding

        result, taken, more, nothing, drained, outstanding = within_policy(engine, call)
        assert result.state_hash == first.state_hash
        assert [one.id for one in taken] == [waiting] or taken == []  # the thread of futures may be about to take it
        assert nothing == []
        assert not drained
        assert outstanding >= 4
        assert set(more) <= {one.id for one in engine}


def test_a_policy_may_wait_for_another_engine() -> None:
    with (
        RolloutEngine(SimulatorConfig(1, num_threads=1)) as engine,
        RolloutEngine(SimulatorConfig(1, num_threads=1)) as other,
    ):
        (result,) = within_policy(engine, lambda: other.run([SHORT]))
        assert result.finished


@pytest.mark.parametrize("name", [name for name in WAITS if "queue" not in name])
def test_a_callback_of_a_future_cannot_wait_for_its_engine(name: str) -> None:
    raised: list[Any] = []
    done = threading.Event()

    def wait(_: Any) -> None:
        try:
            WAITS[name](engine)
        except Exception as error:
            raised.append(error)
        done.set()

    gate = Gate()
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as engine:
        engine.future(EpisodeRequest(policy=gate, max_steps=1)).add_done_callback(wait)
        engine.submit(EpisodeRequest(policy=gate, max_steps=200))
        gate.open.set()
        assert done.wait(PATIENCE)
        assert len(raised) <= 1  # none, if the results had come by then
        assert all("a callback of a future would wait" in str(error) for error in raised)
        if name in ("drain", "run", "play", "future", "exception of a future", "wait for futures"):
            assert raised


@pytest.mark.parametrize("library", ["gevent", "eventlet"])
@pytest.mark.parametrize(
    "call",
    [
        lambda engine, policy: engine.submit(EpisodeRequest(policy=policy)),
        lambda engine, policy: engine.submit_batch([1], policy=policy),
        lambda engine, policy: engine.future(EpisodeRequest(policy=("idle", policy))),
        lambda engine, policy: engine.run([EpisodeRequest(policy=policy)]),
        lambda engine, policy: asyncio.run(engine.play(EpisodeRequest(policy=policy))),
        lambda engine, policy: engine.policies.update(mine=policy),
        lambda engine, policy: rollouts.AsyncEpisodes(engine.config),
    ],
)
def test_functions_are_refused_where_threads_are_none(call: Any, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those libraries patch them: a thread that waits in the library would stop all others."""

    def get_ident() -> int:
        return threading.main_thread().ident or 0

    get_ident.__module__ = f"{library}.thread"
    monkeypatch.setattr(threading, "get_ident", get_ident)
    with RolloutEngine(SimulatorConfig(1)) as engine:
        with pytest.raises(StateError, match=rf"{library} has replaced Python's threads.*thread=False"):
            call(engine, lambda rows: np.zeros((len(rows), 4), np.int32))
        assert engine.outstanding == len(engine.policies) == 0
        assert len(engine.run([SHORT])) == 1
