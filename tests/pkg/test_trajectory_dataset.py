"""`TrajectoryDataset`: the trajectories of requested episodes, in the order of the requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep.errors import ArgumentError, StateError

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from doorstep.rollouts import TrajectoryDataset, pad_trajectories  # noqa: E402

LENGTHS = [3 + seed * 7 % 11 for seed in range(12)]
REQUESTS = [doorstep.EpisodeRequest(seed=seed, max_steps=LENGTHS[seed], tag=100 + seed) for seed in range(12)]


@pytest.fixture
def engine() -> Iterator[doorstep.RolloutEngine]:
    with doorstep.RolloutEngine(doorstep.SimulatorConfig(4, num_threads=1)) as made:
        yield made


def test_trajectories_come_in_the_order_of_the_requests(engine: doorstep.RolloutEngine) -> None:
    for trajectory, request in zip(TrajectoryDataset(engine, REQUESTS), REQUESTS, strict=True):
        assert int(trajectory["seed"]) == request.seed
        assert int(trajectory["tag"]) == request.tag
        assert {name: value.dtype for name, value in trajectory.items()} == {
            "observations": torch.float32,
            "actions": torch.int32,
            "rewards": torch.float32,
            "last_observations": torch.float32,
            "reached_goal": torch.bool,
            "seed": torch.int64,
            "tag": torch.int64,
        }
        assert trajectory["observations"].shape == (request.max_steps, 2, 94)
        assert trajectory["actions"].shape == (request.max_steps, 2, 4)
        assert trajectory["rewards"].shape == (request.max_steps, 2)


def test_a_trajectory_is_the_episode_of_a_simulator(engine: doorstep.RolloutEngine) -> None:
    (trajectory,) = TrajectoryDataset(engine, [doorstep.EpisodeRequest(seed=8)])
    with doorstep.Simulator(1, seed=8, auto_reset=False) as sim:
        for observations, actions, rewards in zip(
            *(trajectory[name].numpy() for name in ("observations", "actions", "rewards")), strict=True
        ):
            assert np.array_equal(sim.observations.to_numpy()[0], observations)
            sim.actions = actions[None]
            sim.step()
            assert np.array_equal(sim.rewards.to_numpy()[0, :, 0], rewards)
        assert sim.dones.to_numpy().all()


@pytest.mark.parametrize("ahead", [None, 1, 100])
def test_iterations_are_equal_whatever_is_requested_ahead(engine: doorstep.RolloutEngine, ahead: int | None) -> None:
    dataset = TrajectoryDataset(engine, REQUESTS, ahead=ahead)
    for first, second in zip(dataset, dataset, strict=True):
        for name, value in first.items():
            assert torch.equal(value, second[name])
    assert engine.outstanding == 0


def test_trajectories_have_what_requests_record_of_acting(engine: doorstep.RolloutEngine) -> None:
    requests = [doorstep.EpisodeRequest(seed=seed, max_steps=3 + seed, record="log_probs") for seed in range(3)]
    batch = pad_trajectories(list(TrajectoryDataset(engine, requests)))
    assert "values" not in batch
    assert batch["versions"].dtype == torch.int32
    expected = torch.where(batch["mask"], -np.log(320), 0.0)[..., None].expand(5, 3, 2)
    torch.testing.assert_close(batch["log_probs"].double(), expected.double(), rtol=0, atol=1e-6)


def test_a_loader_makes_padded_batches(engine: doorstep.RolloutEngine) -> None:
    dataset = TrajectoryDataset(engine, REQUESTS)
    alone = list(dataset)
    batches = list(DataLoader(dataset, batch_size=5, collate_fn=pad_trajectories))
    assert [len(batch["seed"]) for batch in batches] == [5, 5, 2]
    timed = ("observations", "actions", "rewards", "mask")
    rows = [
        {name: value[:, row] if name in timed else value[row] for name, value in batch.items()}
        for batch in batches
        for row in range(len(batch["seed"]))
    ]
    for trajectory, row, length in zip(alone, rows, LENGTHS, strict=True):
        assert int(row["lengths"]) == length == int(row["mask"].sum())
        for name in ("observations", "actions", "rewards"):
            assert torch.equal(row[name][:length], trajectory[name])
            assert not row[name][length:].any()


def test_an_iteration_that_is_left_cancels_what_it_requested(engine: doorstep.RolloutEngine) -> None:
    requests = [doorstep.EpisodeRequest(seed=seed, policy="idle") for seed in range(500)]
    for trajectory in TrajectoryDataset(engine, requests, ahead=400):
        assert len(trajectory["rewards"]) == 200
        break
    assert engine.drain(timeout=60)


def test_an_engine_is_refused_where_a_worker_process_reads(
    engine: doorstep.RolloutEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doorstep.rollouts.dataset.get_worker_info", object)
    with pytest.raises(StateError, match="num_workers=0"):
        next(iter(TrajectoryDataset(engine, REQUESTS)))


@pytest.mark.slow
def test_worker_processes_are_refused(engine: doorstep.RolloutEngine) -> None:
    dataset = TrajectoryDataset(engine, REQUESTS)
    loader = DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(StateError, match="num_workers=0"):
        list(loader)


def test_an_episode_that_fails_is_an_error(engine: doorstep.RolloutEngine) -> None:
    def fail(_: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(StateError, match="with seed 4, failed: ZeroDivisionError: mine"):
        list(TrajectoryDataset(engine, [doorstep.EpisodeRequest(seed=4, policy=fail)]))


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"engine": 3}, "engine"),
        ({"requests": 3}, "requests"),
        ({"requests": [3]}, "requests"),
        ({"ahead": 0}, "ahead"),
    ],
)
def test_arguments_of_other_kinds_are_named(
    engine: doorstep.RolloutEngine, arguments: dict[str, Any], argument: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        list(TrajectoryDataset(**{"engine": engine, "requests": REQUESTS, **arguments}))
    assert caught.value.argument == argument


# ---- Epochs, workers


def seeds_of(dataset: Any, num_workers: int = 0, **options: Any) -> list[int]:
    loader = DataLoader(dataset, batch_size=2, collate_fn=pad_trajectories, num_workers=num_workers, **options)
    return [seed for batch in loader for seed in batch["seed"].tolist()]


def make_dataset(**options: Any) -> TrajectoryDataset:
    return TrajectoryDataset(doorstep.SimulatorConfig(4, num_threads=1), REQUESTS, **options)


def test_a_config_and_an_engine_yield_the_same(engine: doorstep.RolloutEngine) -> None:
    for one, other in zip(make_dataset(), TrajectoryDataset(engine, REQUESTS), strict=True):
        assert one.keys() == other.keys()
        for name in one:
            assert torch.equal(one[name], other[name]), name


def test_the_order_follows_from_seed_and_epoch() -> None:
    dataset, in_order = make_dataset(shuffle_seed=3), list(range(12))
    assert seeds_of(make_dataset()) == in_order
    orders = []
    for epoch in range(3):
        dataset.set_epoch(epoch)
        orders.append(seeds_of(dataset))
        assert sorted(orders[-1]) == in_order
        again = make_dataset(shuffle_seed=3)
        again.set_epoch(epoch)
        assert seeds_of(again) == orders[-1]
    assert len({tuple(order) for order in (*orders, seeds_of(make_dataset(shuffle_seed=4)), in_order)}) == 5


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
@pytest.mark.parametrize("num_workers", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_workers_share_an_epoch(num_workers: int) -> None:
    dataset = make_dataset(shuffle_seed=5)
    loader = DataLoader(dataset, batch_size=None, num_workers=num_workers, persistent_workers=True)
    for epoch in (0, 2):
        dataset.set_epoch(epoch)  # seen by workers that live on
        order = np.random.default_rng([5, epoch]).permutation(12).tolist()
        assert [int(trajectory["seed"]) for trajectory in loader] == order
    del loader


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("engine", lambda: TrajectoryDataset(3, REQUESTS)),  # type: ignore[arg-type]
        ("requests", lambda: TrajectoryDataset(doorstep.SimulatorConfig(1), iter(REQUESTS), shuffle_seed=1)),
        ("shuffle_seed", lambda: TrajectoryDataset(doorstep.SimulatorConfig(1), REQUESTS, shuffle_seed=-1)),
        ("epoch", lambda: TrajectoryDataset(doorstep.SimulatorConfig(1), REQUESTS).set_epoch(-1)),
    ],
)
def test_wrong_arguments_of_datasets_are_named(name: str, make: Any) -> None:
    with pytest.raises(ArgumentError, match=name):
        make()
