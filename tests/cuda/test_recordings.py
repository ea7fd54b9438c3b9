"""A recording of one device replays on the other."""

import tempfile

import numpy as np
import pytest
from tests.cuda.on_stand_in import on_stand_in
from tests.scenes import random_actions

import doorstep
from doorstep import levels
from doorstep.recording import Recording, RecordingWriter


@pytest.mark.parametrize(("recorded_on", "replayed_on"), [("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda")])
@on_stand_in()
def test_a_recording_of_one_device_replays_on_another(recorded_on: str, replayed_on: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/run.rec"
        with doorstep.Simulator(35, seed=5, device=recorded_on, episode_length=40) as sim:
            with RecordingWriter(path, sim, hash_interval=20) as writer:
                for step, actions in enumerate(random_actions(1, 90, 35)):
                    sim.actions = actions
                    sim.resets = (np.arange(35).reshape(35, 1) == step).astype(np.int32)
                    writer.step()
                    if step == 50:
                        writer.reset([3, 30])
                    if step == 70:
                        sim.restore(sim.save([4]), [9])
                        writer.checkpoint()
            expected = sim.world_hashes()
        with Recording(path) as recording:
            recording.replay(device=replayed_on)
            with doorstep.Simulator.from_config(recording.config.replace(device=replayed_on)) as sim:
                recording.replay(sim)
                assert (sim.world_hashes() == expected).all()


@pytest.mark.parametrize(("recorded_on", "replayed_on"), [("cpu", "cuda"), ("cuda", "cpu")])
@on_stand_in()
def test_a_recording_with_levels_replays_on_another_device(recorded_on: str, replayed_on: str) -> None:
    table = list(levels.curated().values())
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/run.rec"
        config = doorstep.SimulatorConfig(35, seed=5, device=recorded_on, episode_length=40, max_levels=len(table))
        with doorstep.Simulator.from_config(config) as sim, RecordingWriter(path, sim, hash_interval=20) as writer:
            sim.set_levels(table)
            writer.reset()
            for step, actions in enumerate(random_actions(1, 60, 35)):
                if step == 30:
                    sim.level_weights.copy_from_host(np.eye(len(table), dtype=np.float32)[np.arange(35) % len(table)])
                sim.actions = actions
                writer.step()
        with Recording(path) as recording:
            recording.replay(device=replayed_on)


@on_stand_in()
def test_a_step_of_a_graph_is_not_taken_for_a_recorded_one() -> None:
    with tempfile.TemporaryDirectory() as folder, doorstep.Simulator(3, device="cuda") as sim:
        writer = RecordingWriter(f"{folder}/run.rec", sim)
        writer.append()
        with pytest.raises(doorstep.StateError, match="steps of CUDA graphs do not count"):
            writer.append()
        writer.close()
