"""Episodes that fail raise where their results are read, once, unless failures were asked for as results."""

from __future__ import annotations

import asyncio
import gc
import time
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg.rollouts.playing import some_requests

import doorstep
from doorstep import EpisodeRequest, RolloutEngine, SimulatorConfig, StateError


def divides(observations: NDArray[np.float32]) -> NDArray[np.int32]:
    raise ZeroDivisionError("by the policy")


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise SystemExit


def unreadable(observations: NDArray[np.float32]) -> NDArray[np.int32]:
    raise UnreadableError


BAD = EpisodeRequest(seed=5, policy=divides, max_steps=3)
GOOD = EpisodeRequest(seed=6, max_steps=3)


def submit(engine: RolloutEngine, *requests: EpisodeRequest) -> list[int]:
    """Requests of an engine with one world, which plays them in their order, once all have ended."""
    ids = engine.submit(list(requests))
    assert engine.drain(30)
    return ids


READERS: dict[str, Callable[[RolloutEngine], Any]] = {
    "get_outputs": lambda engine: engine.get_outputs(),
    "get_records": lambda engine: engine.get_records(),
    "iteration": lambda engine: next(iter(engine)),
}


@pytest.fixture(params=[False, True], ids=["", "with futures"])
def engine(request: pytest.FixtureRequest) -> Any:
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as made:
        if request.param:
            made.future(GOOD).result(30)
        yield made


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_policy_that_raises_raises_where_results_are_read(read: Any, engine: RolloutEngine) -> None:
    (request_id,) = submit(engine, BAD)
    with pytest.raises(StateError, match="with seed 5, failed: ZeroDivisionError: by the policy") as caught:
        read(engine)
    result = caught.value.result  # type: ignore[attr-defined]
    assert (result.id, result.request, result.reason) == (request_id, BAD, "failed")
    told = "".join(traceback.format_exception(caught.value))
    assert 'raise ZeroDivisionError("by the policy")' in told  # the line of the policy
    assert engine.outstanding == 0
    assert engine.get_outputs() == []


@pytest.mark.parametrize("most", [1, 4096])
def test_results_before_and_behind_a_failure_are_returned(most: int, engine: RolloutEngine) -> None:
    ids = submit(engine, GOOD, GOOD, BAD, BAD, GOOD)
    read: list[int] = []
    raised: list[int] = []
    while engine.outstanding:
        try:
            read += [output.id for output in engine.get_outputs(most=most)]
        except StateError as error:  # noqa: PERF203
            raised.append(error.result.id)  # type: ignore[attr-defined]
            read.append(raised[-1])
    assert read == ids
    assert raised == ids[2:4]


def test_a_loop_goes_on_behind_a_failure(engine: RolloutEngine) -> None:
    ids = submit(engine, GOOD, BAD, GOOD)
    taken: list[int] = []
    with pytest.raises(StateError):  # noqa: PT012
        for result in engine:
            taken.append(result.id)  # noqa: PERF401
    taken += [result.id for result in engine]
    assert taken == [ids[0], ids[2]]


@pytest.mark.parametrize(
    "policy",
    [lambda rows: None, lambda rows: np.zeros((1, 4), np.float32), lambda rows: [[1, 2]], unreadable],
    ids=["nothing", "floats", "too few", "an unreadable error"],
)
def test_nonsense_raises_and_others_play_on(policy: Any) -> None:
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as engine:
        submit(engine, EpisodeRequest(policy=policy), GOOD)
        with pytest.raises(StateError, match=r"failed: (ArgumentError: the policy returned|UnreadableError, whose)"):
            engine.get_outputs()
        assert [result.finished for result in engine] == [True]


def test_logits_that_are_not_finite_raise() -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(94, 19)
    torch.nn.init.constant_(net.bias, float("nan"))
    with RolloutEngine(SimulatorConfig(1)) as engine:
        submit(engine, EpisodeRequest(policy=doorstep.load_policy(net)))
        with pytest.raises(StateError, match="the logits of agent 0 were not finite in step 0"):
            list(engine)


def test_futures_and_tasks_raise(engine: RolloutEngine) -> None:
    good, bad = engine.future(GOOD), engine.future(BAD)
    with pytest.raises(StateError, match="by the policy") as caught:
        bad.result(30)
    assert caught.value.result.request == BAD  # type: ignore[attr-defined]
    assert isinstance(bad.exception(), StateError)
    assert good.result(30).finished
    with pytest.raises(StateError, match="by the policy"):
        asyncio.run(engine.play(BAD))


def test_failures_are_results_where_they_were_asked_for() -> None:
    with RolloutEngine(SimulatorConfig(1), on_error="return") as engine:
        submit(engine, GOOD, BAD)
        assert [result.reason for result in engine.get_outputs()] == ["time", "failed"]  # type: ignore[union-attr]
        submit(engine, GOOD, BAD)
        assert engine.get_records()["length"].tolist() == [3, 0]
        results = [engine.future(BAD).result(30), *engine.run([BAD]), asyncio.run(engine.play(BAD))]
    assert {result.error for result in results} == {"ZeroDivisionError: by the policy"}
    with pytest.raises(doorstep.ArgumentError, match="on_error is 'ignore'; it must be one of 'raise', 'return'"):
        RolloutEngine(SimulatorConfig(1), on_error="ignore")  # type: ignore[arg-type]


def test_closing_an_engine_fails_no_episode() -> None:
    with RolloutEngine(SimulatorConfig(1)) as engine:
        ids = engine.submit(some_requests(50, max_steps=None))
    results = list(engine)
    assert sorted(result.id for result in results) == sorted(ids)
    assert {result.error for result in results if not result.finished} == {"the engine was closed"}


def test_a_failure_keeps_no_policy_alive() -> None:
    """Its exception would, by the frames of its traceback."""

    class Raises:
        def __call__(self, observations: Any) -> Any:
            raise ZeroDivisionError

    policy = Raises()
    alive = weakref.ref(policy)
    with RolloutEngine(SimulatorConfig(1)) as engine:
        with pytest.raises(StateError):
            engine.run([EpisodeRequest(policy=policy)])
        del policy
        end = time.monotonic() + 10
        while alive() is not None and time.monotonic() < end:
            time.sleep(0.01)
            gc.collect()
        assert alive() is None
