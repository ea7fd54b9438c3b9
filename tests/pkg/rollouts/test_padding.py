"""Batches of the trajectories of results: padded, time first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.pkg.rollouts.playing import results_of

from doorstep import ArgumentError, EpisodeRequest, RolloutEngine, SimulatorConfig
from doorstep.rollouts import pad_trajectories

LENGTHS = (4, 9, 1, 6)


def play(record: Any) -> list[Any]:
    with RolloutEngine(SimulatorConfig(3, num_threads=1)) as engine:
        requests = [EpisodeRequest(seed=n, max_steps=n, record=record, tag=2**63 + n) for n in LENGTHS]
        return results_of(engine, requests)


def test_a_batch_has_the_rows_of_every_result() -> None:
    results = play("observations")
    batch = pad_trajectories(results)
    assert {name: (array.shape, array.dtype) for name, array in batch.items()} == {
        "observations": ((9, 4, 2, 94), np.float32),
        "actions": ((9, 4, 2, 4), np.int32),
        "rewards": ((9, 4, 2), np.float32),
        "last_observations": ((4, 2, 94), np.float32),
        "reached_goal": ((4,), np.bool_),
        "seed": ((4,), np.int64),
        "tag": ((4,), np.uint64),
        "lengths": ((4,), np.int64),
        "mask": ((9, 4), np.bool_),
    }
    assert batch["lengths"].tolist() == batch["mask"].sum(axis=0).tolist() == list(LENGTHS)
    assert batch["tag"].tolist() == [2**63 + n for n in LENGTHS]
    for column, result in enumerate(results):
        assert (batch["last_observations"][column] == result.last_observations).all()
        for name in ("observations", "actions", "rewards"):
            assert (batch[name][: result.length, column] == getattr(result, name)).all()
            assert not batch[name][result.length :, column].any()


def test_actions_alone_are_padded() -> None:
    batch = pad_trajectories(play("actions"))
    assert batch["actions"].shape == (9, 4, 2, 4)
    assert "observations" not in batch
    assert "rewards" not in batch


def test_a_batch_has_memory_of_its_own() -> None:
    results = play("observations")
    batch = pad_trajectories(results)
    before = batch["observations"].copy()
    for result in results:
        result.observations[:] = 7
    assert (batch["observations"] == before).all()


@pytest.mark.parametrize(
    "make",
    [list, lambda: play(()), lambda: [*play("actions"), *play("observations")]],
    ids=["none", "nothing recorded", "different records"],
)
def test_what_makes_no_batch_is_refused(make: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        pad_trajectories(make())
    assert caught.value.argument == "trajectories"
