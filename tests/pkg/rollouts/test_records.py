"""What requests record: actions, observations, and steps as they are made."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tests.pkg.rollouts.playing import play_again, results_of, some_requests

import doorstep
from doorstep import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.rollouts.result import EpisodeStep


def test_a_result_has_what_its_request_records() -> None:
    with RolloutEngine(SimulatorConfig(4)) as engine:
        for record in ((), "actions", ("observations",), ("actions", "observations")):
            (result,) = results_of(engine, [EpisodeRequest(max_steps=7, record=record)])
            assert (result.actions is None) == (not record)
            assert (result.observations is None) == (result.rewards is None) == ("observations" not in record)
            if record:
                assert result.actions.shape == (7, 2, 4)
                assert result.actions.dtype == np.int32
            if "observations" in record:
                assert result.observations.shape == (7, 2, 94)
                assert result.rewards.shape == (7, 2)
                assert result.observations.flags.c_contiguous
                np.testing.assert_allclose(result.rewards.sum(axis=0), result.returns, atol=1e-5)


def test_records_outlive_the_engine() -> None:
    with RolloutEngine(SimulatorConfig(4)) as engine:
        results = results_of(engine, some_requests(10, record="actions"))
    actions = [result.actions.copy() for result in results]
    del engine
    gc.collect()
    for result, expected in zip(results, actions, strict=True):
        assert (result.actions == expected).all()
        play_again(result).close()


def address_of(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def test_what_is_recorded_lives_as_long_as_a_view_of_it() -> None:
    with RolloutEngine(SimulatorConfig(4)) as engine:
        before = doorstep.live_counts()["memory"]
        ids = engine.submit_batch(range(20), max_steps=5, record="observations")
        results = list(engine)
        assert len(results) == len(ids)
        for result in results:  # parts of one block: nothing was copied
            assert address_of(result.observations) - address_of(result.actions) == 5 * 2 * 4 * 4
            assert address_of(result.last_observations) - address_of(result.observations) == 5 * 2 * 94 * 4
            assert address_of(result.rewards) - address_of(result.last_observations) == 2 * 94 * 4
        assert doorstep.live_counts()["memory"] == before + 20
        kept = [result.rewards[-1] for result in results[:3]]
        expected = [view.copy() for view in kept]
        del results, result
        gc.collect()
        assert doorstep.live_counts()["memory"] == before + 3
    del engine
    assert all((view == values).all() for view, values in zip(kept, expected, strict=True))
    kept.clear()
    assert doorstep.live_counts()["memory"] == 0


def test_dropped_recordings_are_freed() -> None:
    with RolloutEngine(SimulatorConfig(4)) as engine:
        before = doorstep.live_counts()["memory"]
        engine.submit_batch(range(20), max_steps=5, record="observations")
        count = 0
        while count < 20:
            count += len(engine.get_records())
        assert doorstep.live_counts()["memory"] == before
        engine.submit_batch(range(20), max_steps=5, record="observations")
        assert engine.drain(30)
        assert engine.get_outputs(most=1)
    del engine
    gc.collect()
    assert doorstep.live_counts()["memory"] == 0


@pytest.mark.parametrize("record", [("stream",), ("stream", "actions"), ("stream", "observations")])
def test_every_step_is_streamed(record: tuple[str, ...]) -> None:
    request = EpisodeRequest(seed=3, max_steps=12, record=record, tag=4)  # type: ignore[arg-type]
    with RolloutEngine(SimulatorConfig(2)) as engine:
        recorded = {**vars(request), "record": ("observations",)}
        (whole,) = results_of(engine, [EpisodeRequest(**recorded)])
        request_id = engine.submit(request)
        outputs = []
        while engine.outstanding:
            outputs += engine.get_outputs()
    *steps, result = outputs
    assert isinstance(result, EpisodeResult)
    assert [step.step for step in steps if isinstance(step, EpisodeStep)] == list(range(1, 13))
    for step, actions, observations, rewards in zip(
        steps, whole.actions, whole.observations, whole.rewards, strict=True
    ):
        assert isinstance(step, EpisodeStep)
        assert (step.id, step.request) == (request_id, request)
        assert (step.actions == actions).all()
        if "observations" in record:
            assert step.observations is not None
            assert (step.observations == observations).all()
            assert (step.rewards == rewards).all()
        else:
            assert step.observations is step.rewards is None
    assert (result.actions is None) == (record == ("stream",))


def test_streams_of_many_episodes_are_in_order() -> None:
    config = RolloutConfig(SimulatorConfig(8), devices=("cpu", "cpu"))
    with RolloutEngine(config) as engine:
        engine.submit(some_requests(60, record="stream"))
        lengths: dict[int, int] = {}
        while engine.outstanding:
            for output in engine.get_outputs(most=7):
                seen = lengths.get(output.id, 0)
                if isinstance(output, EpisodeStep):
                    assert output.step == seen + 1
                    lengths[output.id] = output.step
                else:
                    assert output.length == seen == output.request.max_steps


def test_iterating_leaves_steps_out_and_records_drop_them() -> None:
    with RolloutEngine(SimulatorConfig(8)) as engine:
        engine.submit(some_requests(5, record="stream"))
        assert [type(output) for output in engine] == [EpisodeResult] * 5
        engine.submit(some_requests(5, record=("stream", "observations")))
        assert engine.drain(30)
        count = 0
        while engine.outstanding:
            count += len(engine.get_records())
        assert count == 5
    assert doorstep.live_counts()["memory"] == 0
