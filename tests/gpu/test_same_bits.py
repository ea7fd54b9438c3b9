"""A real GPU gives the CPU's bits."""

from pathlib import Path

import numpy as np
import pytest
from tests.cuda.twins import Twins, play_levels
from tests.scenes import random_actions

import doorstep
from doorstep.recording import Recording, RecordingWriter


@pytest.mark.parametrize("num_worlds", [1, 31, 100, 1024, 8192])
def test_hash_is_the_cpus_after_1_200_and_2000_steps(num_worlds: int) -> None:
    with Twins(num_worlds, num_threads=None, seed=num_worlds) as twins:
        for first, last in ((0, 1), (1, 200), (200, 2000)):
            twins.step_randomly(last - first, seed=last)
            twins.assert_same_worlds()


@pytest.mark.parametrize("num_agents", range(1, 9))
def test_worlds_and_tensors_are_the_cpus(num_agents: int) -> None:
    with Twins(333, num_threads=None, num_agents=num_agents, episode_length=60) as twins:
        twins.assert_same()
        twins.step_randomly(150)
        twins.assert_same()


@pytest.mark.parametrize("num_agents", range(1, 9))
def test_levels_are_played_as_on_the_cpu(num_agents: int) -> None:
    play_levels(333, num_agents=num_agents, seed=5, num_threads=None)


def test_actions_out_of_range_are_treated_alike() -> None:
    for action_check in ("clamp", "off"):
        with Twins(300, num_threads=None, action_check=action_check) as twins:
            for seed in range(20):
                twins.step(np.random.default_rng(seed).integers(-40, 40, (300, 2, 4), dtype=np.int32))
            twins.assert_same()


@pytest.mark.parametrize(("recorded_on", "replayed_on"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_recording_of_one_device_replays_on_the_other(recorded_on: str, replayed_on: str, tmp_path: Path) -> None:
    path = tmp_path / "run.rec"
    with doorstep.Simulator(500, device=recorded_on, episode_length=80) as sim, RecordingWriter(path, sim) as writer:
        for actions in random_actions(1, 200, 500):
            sim.actions = actions
            writer.step()
        writer.reset([7, 499])
        writer.step()
    with Recording(path) as recording:
        recording.replay(device=replayed_on)


def test_edited_states_are_stepped_alike() -> None:
    with Twins(200, num_threads=None) as twins:
        generator = np.random.default_rng(0)
        for _ in range(5):
            edited = twins.cpu.state.body_positions.to_numpy().copy()
            edited[..., :2] = generator.uniform((-9.5, 0.0), (9.5, 45.0), edited[..., :2].shape)
            twins.cpu.state.body_positions.to_numpy()[:] = edited
            twins.gpu.state.body_positions.copy_from_host(edited)
            twins.step_randomly(10)
            twins.assert_same()


def test_save_on_the_cpu_continues_on_the_gpu_and_back() -> None:
    with Twins(500, num_threads=None, seed=2) as twins, doorstep.Simulator(500) as back:
        twins.step_randomly(50)
        assert twins.gpu.save() == twins.cpu.save()
        twins.gpu.reset()
        twins.gpu.restore(twins.cpu.save())
        twins.assert_same_worlds()
        twins.step_randomly(50, seed=2)
        twins.assert_same_worlds()
        back.restore(twins.gpu.save())
        assert back.hash() == twins.cpu.hash()


def test_trouble_is_reported_as_on_the_cpu() -> None:
    with Twins(100, num_threads=None) as twins:
        edited = twins.cpu.state.body_positions.to_numpy().copy()
        edited[63, 2, 0] = np.nan
        twins.cpu.state.body_positions.to_numpy()[:] = edited
        twins.gpu.state.body_positions.copy_from_host(edited)
        twins.step_randomly(3)
        assert twins.gpu.health == twins.cpu.health
        assert twins.gpu.health.culprit_world == 63


def test_strict_simulator_refuses_the_step_after_trouble() -> None:
    with doorstep.Simulator(100, device="cuda", strict=True) as sim:
        edited = sim.state.body_positions.copy_to_host()
        edited[63, 2, 0] = np.inf
        sim.state.body_positions.copy_from_host(edited)
        sim.step()
        sim.wait()
        with pytest.raises(doorstep.SimulationError, match="63"):
            sim.step()
