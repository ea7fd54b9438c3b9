"""Requests and results in columns are those of objects; what results record is memory of their own."""

import gc
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.pkg.rollouts.playing import assert_equal_results, in_order, some_requests, still, walk
from tests.refuses import assert_refused

import doorstep
from doorstep import ArgumentError, EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine, SimulatorConfig, levels
from doorstep.rollouts import EpisodeColumns, pad_trajectories
from doorstep.rollouts.results import REASONS

LEVELS = list(levels.curated().values())[:3]
COLUMNS = EpisodeColumns(
    range(12),
    max_steps=[1 + seed % 5 for seed in range(12)],
    level=[LEVELS[seed % 3] for seed in range(12)],
    policy=["random", walk, ("idle", "random"), still] * 3,
    tag=9,
    record="actions",
)
REQUESTS = [
    EpisodeRequest(
        seed=seed, max_steps=1 + seed % 5, level=LEVELS[seed % 3], tag=9, record="actions",
        policy=["random", walk, ("idle", "random"), still][seed % 4],
    )
    for seed in range(12)
]  # fmt: skip


def test_columns_are_requests():
    assert (len(COLUMNS), list(COLUMNS), COLUMNS[-1]) == (12, REQUESTS, REQUESTS[-1])
    assert list(EpisodeColumns(np.array([3, 4], np.uint8), policy=("idle", "random"), n=2)) == [
        EpisodeRequest(seed=seed, policy=("idle", "random"), n=2) for seed in (3, 4)
    ]
    with pytest.raises(IndexError):
        COLUMNS[12]
    assert len(EpisodeColumns([])) == 0


def test_columns_are_played_as_requests():
    config = RolloutConfig(SimulatorConfig(5, num_threads=1, max_levels=1), devices=("cpu", "cpu"))
    with RolloutEngine(config) as engine:
        expected = engine.run(REQUESTS)
        ids = engine.submit(COLUMNS)
        assert (ids.dtype, ids.shape) == (np.uint64, (12,))
        futures = [future.result(30) for future in engine.future(COLUMNS)]
        for results in (engine.run(COLUMNS), in_order(engine, ids.tolist()), futures):
            assert_equal_results(results, expected)
            for result, request in zip(results, REQUESTS, strict=True):
                assert result.request == request


def test_columns_of_numbers_are_checked_as_requests():
    rows = [
        ({"seed": 3}, "seed is 3"),
        ({"seed": [0.5]}, "seed is [0.5]"),
        ({"seed": [1, -2]}, "seed[1] is -2; it must be an integer, 0 to 4294967295"),
        ({"seed": [1, 2], "max_steps": [1, 0]}, "max_steps[1] is 0; it must be an integer, 1 to"),
        ({"seed": [1, 2], "max_steps": [1, 2, 3]}, "max_steps is [1, 2, 3]; it must be"),
        ({"seed": [1, 2], "policy": ["idle"]}, "policy is ['idle']"),
        ({"seed": [1, 2], "level": [LEVELS[0]]}, "level is"),
        ({"seed": [1, 2], "priority": 2**63}, "priority is"),
    ]
    assert_refused(EpisodeColumns, rows)
    with pytest.raises(TypeError, match="seeds"):
        EpisodeColumns([1], seeds=3)
    with RolloutEngine(SimulatorConfig(2)) as engine:
        for policies in (["idle", "walk"], ["idle", None]):
            with pytest.raises(ArgumentError, match=f"policy is {policies[1]!r}"):
                engine.submit(EpisodeColumns([1, 2], policy=policies))
        assert engine.outstanding == 0


@pytest.mark.parametrize("num_agents", [1, 2, 5])
def test_columns_of_results_are_those_of_each(num_agents):
    requests = [replace(one, tag=tag, n=1 + tag % 2) for tag, one in enumerate(some_requests(20))]
    with RolloutEngine(num_worlds=4, num_agents=num_agents) as engine:
        begin = time.monotonic_ns()
        engine.submit([replace(one, record="stream") for one in requests])
        taken = [engine.run(requests)]
        while engine.outstanding:
            taken.append(engine.get_outputs(most=300))
        end = time.monotonic_ns()
        taken.append(engine.get_outputs())
    for outputs in taken:
        results = [one for one in outputs if isinstance(one, EpisodeResult)]
        assert len(outputs) == len(list(outputs))
        assert outputs.returns.shape == outputs.max_y.shape == (len(results), num_agents)
        for name in ("id", "continuation", "reason", "length", "state_hash", "replica"):
            assert getattr(outputs, name).tolist() == [getattr(one, name) for one in results], name
        for name in ("returns", "max_y", "queued_seconds", "played_seconds"):
            expected = [getattr(one, name) for one in results]
            np.testing.assert_array_equal(
                getattr(outputs, name), np.array(expected).reshape(getattr(outputs, name).shape)
            )
        assert outputs.tag.tolist() == [one.request.tag for one in results]
        records = outputs.records
        assert [REASONS[reason] for reason in records["reason"].tolist()] == outputs.reason.tolist()
        assert all(records.dtype[name].shape == () for name in records.dtype.names)
        assert f"returns_{num_agents - 1}" in records.dtype.names
        assert f"returns_{num_agents}" not in records.dtype.names
        assert (records["returns_0"] == outputs.returns[:, 0]).all()
        for earlier, later in (("submitted_ns", "started_ns"), ("started_ns", "ended_ns")):
            assert (records[earlier] <= records[later]).all()
        assert ((records["submitted_ns"] >= begin) & (records["ended_ns"] <= end)).all()
    assert sum(len(outputs.id) for outputs in taken) == 2 * 30
    assert taken[0][-1].id == taken[0][29].id
    with pytest.raises(IndexError):
        taken[0][30]


def test_columns_of_what_was_not_played_are_those_of_each():
    with RolloutEngine(num_worlds=4) as engine:
        outputs = engine.run([EpisodeRequest(deadline=1e-9)] * 3)  # which have no time to begin
    assert set(outputs.reason) == {"expired"}
    for name in ("queued_seconds", "played_seconds"):
        assert getattr(outputs, name).tolist() == [getattr(one, name) for one in outputs], name


# ---- Memory of what is recorded


def address_of(array):
    return array.__array_interface__["data"][0]


def test_what_is_recorded_lives_as_long_as_a_view_of_it():
    with RolloutEngine(SimulatorConfig(4)) as engine:
        before = doorstep.live_counts()["memory"]
        results = list(engine.run(EpisodeColumns(range(20), max_steps=5, record="observations")))
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
    """Also those of steps, which iteration leaves out, and of results that are read as columns alone."""
    with RolloutEngine(SimulatorConfig(4)) as engine:
        before = doorstep.live_counts()["memory"]
        for record in ("stream", "observations", ("stream", "observations")):
            engine.submit(some_requests(5, record=record))
            assert [type(output) for output in engine] == [EpisodeResult] * 5
            assert len(engine.run(EpisodeColumns(range(20), max_steps=5, record="observations")).length) == 20
            gc.collect()
            assert doorstep.live_counts()["memory"] == before
        engine.submit(EpisodeColumns(range(20), max_steps=5, record="observations"))
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
