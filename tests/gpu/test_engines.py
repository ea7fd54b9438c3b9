"""Engines on a real GPU give the CPU's results: with levels, with recordings, with several replicas."""

from typing import Any

import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.twins import some_levels
from tests.gpu.sizes import sized
from tests.pkg.rollouts.playing import assert_equal_results, results_of, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, cuda
from doorstep.policy import SamplingParams
from doorstep.rollouts.request import Recorded

pytest.importorskip("torch")

from tests.gpu.workloads import policy_on
from tests.pkg.policy.networks import mlp

WORLDS, EPISODES = sized(256, 6), sized(2000, 24)
RECORDED: tuple[Recorded, ...] = ("observations", "actions", "stream")


def some_requests(networks: tuple[Any, ...], *, levels: bool, records: bool) -> list[EpisodeRequest]:
    """Episodes of all lengths, of which several begin and end within most steps."""
    table = [None, *some_levels(2)] if levels else [None]
    players: tuple[Any, ...] = ("random", "idle", *networks, *((walk,) if records else ()))
    return [
        EpisodeRequest(
            seed=seed,
            max_steps=1 + seed * 7 % sized(90, 12),
            policy=players[seed % len(players)],
            level=table[seed % len(table)],
            record=RECORDED if records and seed % 3 == 0 else (),
        )
        for seed in range(EPISODES)
    ]


def devices() -> list[tuple[str, ...]]:
    """One replica, two on one GPU, one beside the CPU's, and one on every GPU."""
    all_gpus = tuple(f"cuda:{index}" for index in range(cuda.Device.count()))
    return [("cuda",), ("cuda", "cuda"), ("cuda", "cpu"), *([all_gpus] if len(all_gpus) > 1 else [])]


@pytest.mark.parametrize("records", [False, True], ids=["results", "recordings"])
@pytest.mark.parametrize("levels", [False, True], ids=["reference", "levels"])
def test_engines_give_the_cpus_results(levels: bool, records: bool) -> None:
    rules = SimulatorConfig(WORLDS, max_levels=int(levels))
    module = mlp(sized(256, 16))
    on_cpu = doorstep.load_policy(module, sampling=SamplingParams(seed=3))
    with RolloutEngine(rules) as engine:
        expected = results_of(engine, some_requests((on_cpu,), levels=levels, records=records))
    for chosen in devices():
        # Weights are on one GPU.
        acts_there = all(device in ("cuda", "cuda:0") for device in chosen)
        with driver.users_stream() as stream, policy_on(stream, module) as (on_gpu, _):
            networks = (on_gpu if acts_there else on_cpu,)
            with RolloutEngine(RolloutConfig(rules, devices=chosen)) as engine:
                results = results_of(engine, some_requests(networks, levels=levels, records=records))
            del on_gpu, networks
        assert_equal_results(results, expected)
        for result, other in zip(results, expected, strict=True):
            if other.observations is not None:
                assert result.observations.tobytes() == other.observations.tobytes()
                assert result.actions.tobytes() == other.actions.tobytes()
                assert result.rewards.tobytes() == other.rewards.tobytes()
        del results, result
