"""What requests record: actions, observations, steps as they are made; and batches of many results."""

import gc

import numpy as np
import pytest
from tests.pkg.rollouts.playing import results_of, some_requests

import doorstep
from doorstep import ArgumentError, EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.rollouts import pad_trajectories
from doorstep.rollouts.result import EpisodeStep


def address_of(array):
    return array.__array_interface__["data"][0]


def test_what_is_recorded_lives_as_long_as_a_view_of_it():
    with RolloutEngine(SimulatorConfig(4)) as engine:
        before = doorstep.live_counts()["memory"]
        engine.submit_batch(range(20), max_steps=5, record="observations")
        results = list(engine)
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


def test_dropped_recordings_are_freed():
    with RolloutEngine(SimulatorConfig(4)) as engine:
        before = doorstep.live_counts()["memory"]
        engine.submit_batch(range(20), max_steps=5, record="observations")
        assert engine.drain(30)
        assert len(engine.get_records()) == 20
        assert doorstep.live_counts()["memory"] == before
        engine.submit_batch(range(20), max_steps=5, record="observations")
        assert engine.drain(30)
        assert engine.get_outputs(most=1)
    del engine
    gc.collect()
    assert doorstep.live_counts()["memory"] == 0


def test_streams_of_many_episodes_are_in_order():
    """Every step once, whoever plays it: a replica is lost meanwhile, and outputs have little room."""
    config = RolloutConfig(SimulatorConfig(8), devices=("cpu", "cpu"), output_capacity=100)
    with RolloutEngine(config) as engine:
        ids = engine.submit(some_requests(100, record="stream"))
        lengths, ended = {}, []
        while engine.outstanding:
            for output in engine.get_outputs(most=7):
                seen = lengths.get(output.id, 0)
                if isinstance(output, EpisodeStep):
                    assert output.step == seen + 1
                    lengths[output.id] = output.step
                else:
                    assert output.length == seen == output.request.max_steps
                    ended.append(output.id)
            if len(ended) > 20:
                engine._core.handle.end_replica(0)
    assert sorted(ended) == sorted(ids)


def test_iterating_leaves_steps_out_and_records_drop_them():
    with RolloutEngine(SimulatorConfig(8)) as engine:
        engine.submit(some_requests(5, record="stream"))
        assert [type(output) for output in engine] == [EpisodeResult] * 5
        engine.submit(some_requests(5, record=("stream", "observations")))
        assert engine.drain(30)
        assert len(engine.get_records()) == 5
    assert doorstep.live_counts()["memory"] == 0


# ---- Batches of the trajectories of results: padded, time first

LENGTHS = (4, 9, 1, 6)


def play(record):
    with RolloutEngine(SimulatorConfig(3, num_threads=1)) as engine:
        requests = [EpisodeRequest(seed=n, max_steps=n, record=record, tag=2**63 + n) for n in LENGTHS]
        return results_of(engine, requests)


def test_a_batch_has_the_rows_of_every_result_in_memory_of_its_own():
    results = play("observations")
    batch = pad_trajectories(results)
    dtypes = {"lengths": np.int64, "mask": np.bool_, "reached_goal": np.bool_, "seed": np.int64, "tag": np.uint64}
    dtypes.update(observations=np.float32, actions=np.int32, rewards=np.float32, last_observations=np.float32)
    assert {name: array.dtype for name, array in batch.items()} == dtypes
    assert not batch["reached_goal"].any()
    assert batch["mask"].shape == batch["actions"].shape[:2] == (9, 4)
    assert batch["lengths"].tolist() == batch["mask"].sum(axis=0).tolist() == batch["seed"].tolist() == list(LENGTHS)
    assert batch["mask"][0].all()
    assert batch["tag"].tolist() == [2**63 + n for n in LENGTHS]
    for column, result in enumerate(results):
        assert (batch["last_observations"][column] == result.last_observations).all()
        for name in ("observations", "actions", "rewards"):
            assert (batch[name][: result.length, column] == getattr(result, name)).all()
            assert not batch[name][result.length :, column].any()
    before = batch["observations"].copy()
    for result in results:
        result.observations[:] = 7
    assert (batch["observations"] == before).all()
    assert {"observations", "rewards"}.isdisjoint(pad_trajectories(play("actions")))


def test_what_makes_no_batch_is_refused():
    for results in ([], play(()), [*play("actions"), *play("observations")]):
        with pytest.raises(ArgumentError, match="trajectories"):
            pad_trajectories(results)
