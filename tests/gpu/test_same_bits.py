"""A real GPU gives the CPU's bits."""

from pathlib import Path

import numpy as np
import pytest
from tests.cuda.twins import Twins, play_levels
from tests.gpu.sizes import AGENTS, sized
from tests.scenes import random_actions

import doorstep
from doorstep.recording import Recording, RecordingWriter


@pytest.mark.parametrize("num_worlds", sized([1, 31, 100, 1024, 8192], [1, 8]))
def test_hash_is_the_cpus_after_1_200_and_2000_steps(num_worlds: int) -> None:
    with Twins(num_worlds, num_threads=None, seed=num_worlds) as twins:
        for first, last in sized([(0, 1), (1, 200), (200, 2000)], [(0, 1), (1, 20)]):
            twins.step_randomly(last - first, seed=last)
            twins.assert_same_worlds()


@pytest.mark.parametrize("num_agents", AGENTS)
def test_worlds_and_tensors_are_the_cpus(num_agents: int) -> None:
    with Twins(sized(333, 5), num_threads=None, num_agents=num_agents, episode_length=sized(60, 5)) as twins:
        twins.assert_same()
        twins.step_randomly(sized(150, 12))
        twins.assert_same()


@pytest.mark.parametrize("num_agents", AGENTS)
def test_levels_are_played_as_on_the_cpu(num_agents: int) -> None:
    play_levels(sized(333, 5), num_agents=num_agents, seed=5, num_threads=None)


def test_actions_out_of_range_are_treated_alike() -> None:
    worlds = sized(300, 9)
    for action_check in ("clamp", "off"):
        with Twins(worlds, num_threads=None, action_check=action_check) as twins:
            for seed in range(sized(20, 4)):
                twins.step(np.random.default_rng(seed).integers(-40, 40, (worlds, 2, 4), dtype=np.int32))
            twins.assert_same()


@pytest.mark.parametrize(("recorded_on", "replayed_on"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_recording_of_one_device_replays_on_the_other(recorded_on: str, replayed_on: str, tmp_path: Path) -> None:
    path, worlds = tmp_path / "run.rec", sized(500, 9)
    with doorstep.Simulator(worlds, device=recorded_on, episode_length=80) as sim, RecordingWriter(path, sim) as writer:
        for actions in random_actions(1, sized(200, 9), worlds):
            sim.actions = actions
            writer.step()
        writer.reset([7, worlds - 1])
        writer.step()
    with Recording(path) as recording:
        recording.replay(device=replayed_on)


def test_edited_states_are_stepped_alike() -> None:
    with Twins(sized(200, 9), num_threads=None) as twins:
        generator = np.random.default_rng(0)
        for _ in range(sized(5, 1)):
            edited = twins.cpu.state.body_positions.to_numpy().copy()
            edited[..., :2] = generator.uniform((-9.5, 0.0), (9.5, 45.0), edited[..., :2].shape)
            twins.cpu.state.body_positions.to_numpy()[:] = edited
            twins.gpu.state.body_positions.copy_from_host(edited)
            twins.step_randomly(10)
            twins.assert_same()


def test_save_on_the_cpu_continues_on_the_gpu_and_back() -> None:
    worlds, steps = sized((500, 50), (9, 5))
    with Twins(worlds, num_threads=None, seed=2) as twins, doorstep.Simulator(worlds) as back:
        twins.step_randomly(steps)
        assert twins.gpu.save() == twins.cpu.save()
        twins.gpu.reset()
        twins.gpu.restore(twins.cpu.save())
        twins.assert_same_worlds()
        twins.step_randomly(steps, seed=2)
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
