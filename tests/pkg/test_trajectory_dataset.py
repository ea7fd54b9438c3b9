"""`TrajectoryDataset`: the trajectories of requested episodes, in the order of the requests."""

import threading

import numpy as np
import pytest
from tests.pkg.rollouts.playing import play_all
from tests.refuses import raising, refuses

import doorstep
from doorstep.errors import StateError

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from doorstep.rollouts import TrajectoryDataset, pad_trajectories  # noqa: E402

LENGTHS = [3 + seed * 7 % 11 for seed in range(12)]
REQUESTS = [doorstep.EpisodeRequest(seed=seed, max_steps=LENGTHS[seed], tag=100 + seed) for seed in range(12)]


@pytest.fixture
def engine():
    with doorstep.RolloutEngine(doorstep.SimulatorConfig(4, num_threads=1)) as made:
        yield made


def make_dataset(**options):
    return TrajectoryDataset(doorstep.SimulatorConfig(4, num_threads=1), REQUESTS, **options)


def test_trajectories_are_episodes_of_a_simulator_in_the_order_of_the_requests(engine):
    for trajectory, request in zip(TrajectoryDataset(engine, REQUESTS), REQUESTS, strict=True):
        assert (int(trajectory["seed"]), int(trajectory["tag"])) == (request.seed, request.tag)
        assert len(trajectory["rewards"]) == request.max_steps
        with doorstep.Simulator(1, seed=request.seed, episode_length=request.max_steps, auto_reset=False) as sim:
            steps = [trajectory[name].numpy() for name in ("observations", "actions", "rewards")]
            for observations, actions, rewards in zip(*steps, strict=True):
                assert np.array_equal(sim.observations.to_numpy()[0], observations)
                sim.actions = actions[None]
                sim.step()
                assert np.array_equal(sim.rewards.to_numpy()[0, :, 0], rewards)
            assert np.array_equal(sim.observations.to_numpy()[0], trajectory["last_observations"])
    kinds = {name: str(value.dtype).removeprefix("torch.") for name, value in trajectory.items()}
    floats = dict.fromkeys(("observations", "rewards", "last_observations"), "float32")
    assert kinds == {**floats, "actions": "int32", "reached_goal": "bool", "seed": "int64", "tag": "int64"}


def test_iterations_are_equal_whatever_is_requested_ahead_and_whoever_plays(engine):
    first = list(make_dataset())
    for ahead in (None, 1, 100):
        dataset = TrajectoryDataset(engine, REQUESTS, ahead=ahead)
        for one, other in [pair for _ in range(2) for pair in zip(first, dataset, strict=True)]:
            assert one.keys() == other.keys()
            for name, value in one.items():
                torch.testing.assert_close(value, other[name], rtol=0, atol=0)
        assert engine.outstanding == 0


def test_trajectories_have_what_requests_record_of_acting(engine):
    requests = [doorstep.EpisodeRequest(seed=seed, max_steps=3 + seed, record="log_probs") for seed in range(3)]
    batch = pad_trajectories(list(TrajectoryDataset(engine, requests)))
    assert ("values" in batch, batch["versions"].dtype) == (False, torch.int32)
    expected = torch.where(batch["mask"], -np.log(320), 0.0)[..., None].expand(5, 3, 2)
    torch.testing.assert_close(batch["log_probs"].double(), expected.double(), rtol=0, atol=1e-6)


def test_a_loader_makes_padded_batches(engine):
    dataset = TrajectoryDataset(engine, REQUESTS)
    batches = list(DataLoader(dataset, batch_size=5, collate_fn=pad_trajectories))
    assert [len(batch["seed"]) for batch in batches] == [5, 5, 2]
    rows = [(batch, row) for batch in batches for row in range(len(batch["seed"]))]
    for trajectory, (batch, row), length in zip(dataset, rows, LENGTHS, strict=True):
        assert int(batch["lengths"][row]) == length
        assert batch["mask"][:, row].tolist() == [step < length for step in range(len(batch["mask"]))]
        for name in ("observations", "actions", "rewards"):
            assert torch.equal(batch[name][:length, row], trajectory[name])
            assert not batch[name][length:, row].any()


def test_an_iteration_that_is_left_cancels_what_it_requested(engine):
    calls, has_left = [], threading.Event()

    def still(observations):
        calls.append(observations)
        if len(calls) == 60:
            assert has_left.wait(60)
        return np.tile(np.array((0, 0, 2, 0)), (*observations.shape[:-1], 1))

    requests = [doorstep.EpisodeRequest(seed=seed, max_steps=20, policy=still) for seed in range(500)]
    for trajectory in TrajectoryDataset(engine, requests, ahead=400):
        assert len(trajectory["rewards"]) == 20
        break
    has_left.set()
    play_all(engine)
    assert len(calls) < 200  # of 2,000


def test_an_episode_that_fails_and_wrong_arguments_are_errors(engine, monkeypatch):
    failing = TrajectoryDataset(engine, [doorstep.EpisodeRequest(seed=4, policy=raising(ZeroDivisionError, "mine"))])
    refuses("with seed 4, failed: ZeroDivisionError: mine", list, failing, error=StateError)
    config = doorstep.SimulatorConfig(1)
    for argument, make in (
        ("engine", lambda: TrajectoryDataset(3, REQUESTS)),
        ("requests", lambda: list(TrajectoryDataset(engine, 3))),
        ("requests", lambda: list(TrajectoryDataset(engine, [3]))),
        ("requests", lambda: TrajectoryDataset(config, iter(REQUESTS), shuffle_seed=1)),
        ("ahead", lambda: TrajectoryDataset(engine, REQUESTS, ahead=0)),
        ("shuffle_seed", lambda: TrajectoryDataset(config, REQUESTS, shuffle_seed=-1)),
        ("epoch", lambda: TrajectoryDataset(config, REQUESTS).set_epoch(-1)),
    ):
        refuses(None, make, argument=argument)
    monkeypatch.setattr("doorstep.rollouts.dataset.get_worker_info", object)  # in a process of a loader
    refuses("num_workers=0", next, iter(TrajectoryDataset(engine, REQUESTS)), error=StateError)


# ---- Epochs, workers


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
def test_the_order_follows_from_seed_and_epoch_which_workers_share():
    dataset = make_dataset(shuffle_seed=5)
    alone, shared = (
        DataLoader(dataset, batch_size=None, num_workers=workers, persistent_workers=workers > 0) for workers in (0, 2)
    )
    for epoch in (0, 2):
        dataset.set_epoch(epoch)  # seen by workers that live on
        order = np.random.default_rng([5, epoch]).permutation(12).tolist()
        for loader in (alone, shared):
            assert [int(trajectory["seed"]) for trajectory in loader] == order
