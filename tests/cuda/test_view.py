"""The viewer shows worlds on a GPU as it shows them on the CPU."""

import tempfile

import numpy as np
import pytest
from tests.cuda.on_stand_in import on_stand_in

import doorstep

pytest.importorskip("viser", reason="the viewer needs viser")


@on_stand_in()
def test_what_is_shown_of_a_gpu_is_what_is_shown_of_the_cpu() -> None:
    from doorstep.policy import load_policy
    from doorstep.policy.playing import Player
    from doorstep.viewer import agent_panel, world_arrays
    from doorstep.viewer.page import place_behind
    from doorstep.viewer.play import LivePlay
    from doorstep.viewer.world_arrays import Layout

    with doorstep.Simulator(5, seed=3) as cpu, doorstep.Simulator(5, seed=3, device="cuda") as gpu:
        for sim in (cpu, gpu):
            play = LivePlay(sim, Player(load_policy("random"), sim).act)
            for _ in range(3):
                play.step()
        layout = Layout.of(gpu, 4)
        for look in (
            world_arrays.walls,
            world_arrays.doors,
            world_arrays.buttons,
            world_arrays.cubes,
            world_arrays.agents,
        ):
            shown, on_gpu = (vars(look(sim, range(1, 5), layout)) for sim in (cpu, gpu))
            for name, array in shown.items():
                assert array is None or np.array_equal(array, on_gpu[name])
        offset = layout.offsets[1]
        for draw in (world_arrays.lidar_rays, world_arrays.grab_rays):
            for here, there in zip(draw(cpu, 2, offset), draw(gpu, 2, offset), strict=True):
                assert np.array_equal(here, there)
        assert agent_panel.observations(cpu, 2, 1) == agent_panel.observations(gpu, 2, 1)
        for here, there in zip(world_arrays.lidar_readings(cpu, 2), world_arrays.lidar_readings(gpu, 2), strict=True):
            assert np.array_equal(here, there)
        assert agent_panel.table(cpu, 2, 1, None) == agent_panel.table(gpu, 2, 1, None)
        behind = [place_behind(sim, 2, 1, offset, turning=True) for sim in (cpu, gpu)]
        assert np.array_equal(behind[0], behind[1])


@on_stand_in()
def test_jumps_in_a_recording_lead_to_its_worlds() -> None:
    from doorstep.recording import Recording, RecordingWriter
    from doorstep.viewer.play import RecordedPlay

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/run.rec"
        with doorstep.Simulator(5) as cpu, RecordingWriter(path, cpu) as writer:
            cpu.actions[:] = 1
            for _ in range(45):
                writer.step()
            end = cpu.hash()
        with Recording(path) as recording, doorstep.Simulator(5, device="cuda") as gpu:
            recorded = RecordedPlay(gpu, recording)
            for goal in (45, 21, 45):
                recorded.seek(goal)
            assert gpu.hash() == end
