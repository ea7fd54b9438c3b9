"""The viewer shows worlds on a GPU as it shows them on the CPU."""

import numpy as np
from tests.cuda.on_stand_in import on_stand_in

import doorstep


@on_stand_in()
def test_what_is_shown_of_a_gpu_is_what_is_shown_of_the_cpu() -> None:
    from doorstep.view import boxes, cameras, numbers, rays, reading
    from doorstep.view.layout import Layout
    from doorstep.view.play import LivePlay, Replay
    from doorstep.view.policies import random

    with doorstep.Simulator(5, seed=3) as cpu, doorstep.Simulator(5, seed=3, device="cuda") as gpu:
        for sim in (cpu, gpu):
            play = LivePlay(sim, random(sim))
            for _ in range(3):
                play.step()
        layout = Layout.of(gpu, 4)
        for look in (boxes.walls, boxes.doors, boxes.buttons, boxes.cubes, boxes.agents):
            shown, on_gpu = (vars(look(sim, range(1, 5), layout)) for sim in (cpu, gpu))
            for name, array in shown.items():
                assert array is None or np.array_equal(array, on_gpu[name])
        offset = layout.offsets[1]
        for draw in (rays.lidar, rays.grabs):
            for here, there in zip(draw(cpu, 2, offset), draw(gpu, 2, offset), strict=True):
                assert np.array_equal(here, there)
        assert np.array_equal(reading.observations(cpu, 2, 1), reading.observations(gpu, 2, 1))
        for here, there in zip(reading.lidar(cpu, 2), reading.lidar(gpu, 2), strict=True):
            assert np.array_equal(here, there)
        assert numbers.table(cpu, 2, 1, None) == numbers.table(gpu, 2, 1, None)
        assert np.array_equal(cameras.behind(cpu, 2, 1, offset), cameras.behind(gpu, 2, 1, offset))
        replay = Replay(gpu, np.ones((45, 5, 2, 4), np.int32))
        replay.seek(45)
        end = gpu.hash()
        replay.seek(21)
        replay.seek(45)
        assert gpu.hash() == end
