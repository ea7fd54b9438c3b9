"""What requests record: actions, observations, steps as they are made; and batches of many results."""

import gc

import numpy as np
import pytest
from tests.pkg.rollouts.playing import some_requests

import doorstep
from doorstep import ArgumentError, EpisodeRequest, EpisodeResult, RolloutEngine, SimulatorConfig
from doorstep.rollouts import pad_trajectories


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
    """Also those of steps, which iteration and records leave out."""
    with RolloutEngine(SimulatorConfig(4)) as engine:
        engine.submit(some_requests(5, record="stream"))
        assert [type(output) for output in engine] == [EpisodeResult] * 5
        before = doorstep.live_counts()["memory"]
        for record in ("observations", ("stream", "observations")):
            engine.submit_batch(range(20), max_steps=5, record=record)
            assert engine.drain(30)
            assert len(engine.get_records()) == 20
            assert doorstep.live_counts()["memory"] == before
        engine.submit_batch(range(20), max_steps=5, record="observations")
        assert engine.drain(30)
        assert engine.get_outputs(most=1)
    del engine
    gc.collect()
    assert doorstep.live_counts()["memory"] == 0


def test_a_batch_has_the_rows_of_every_result_in_memory_of_its_own():
    """Padded, time first."""
    lengths = [4, 9, 1, 6]
    with RolloutEngine(SimulatorConfig(3, num_threads=1)) as engine:
        results, with_actions, without = (
            engine.run([EpisodeRequest(seed=n, max_steps=n, record=record, tag=2**63 + n) for n in lengths])
            for record in ("observations", "actions", ())
        )
    batch = pad_trajectories(results)
    dtypes = {"lengths": np.int64, "mask": np.bool_, "reached_goal": np.bool_, "seed": np.int64, "tag": np.uint64}
    dtypes.update(observations=np.float32, actions=np.int32, rewards=np.float32, last_observations=np.float32)
    assert {name: array.dtype for name, array in batch.items()} == dtypes
    assert not batch["reached_goal"].any()
    assert batch["lengths"].tolist() == batch["seed"].tolist() == lengths
    assert batch["tag"].tolist() == [2**63 + n for n in lengths]
    assert (batch["mask"] == (np.arange(9)[:, None] < lengths)).all()
    for column, result in enumerate(results):
        assert (batch["last_observations"][column] == result.last_observations).all()
        for name in ("observations", "actions", "rewards"):
            assert (batch[name][: result.length, column] == getattr(result, name)).all()
            assert not batch[name][result.length :, column].any()
    before = batch["observations"].copy()
    for result in results:
        result.observations[:] = 7
    assert (batch["observations"] == before).all()
    assert {"observations", "rewards"}.isdisjoint(pad_trajectories(with_actions))
    for wrong in ([], without, [*with_actions, *results]):
        with pytest.raises(ArgumentError, match="trajectories"):
            pad_trajectories(wrong)
