"""The stand-in for the module madrona_escape_room steps on a GPU too, and waits for each step as that module does."""

from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in

from doorstep.compat.madrona_escape_room import SimManager
from doorstep.compat.madrona_escape_room.madrona import ExecMode


@on_stand_in(devices=2)
def test_a_step_has_ended_when_it_returns() -> None:
    gpu = SimManager(ExecMode.CUDA, 1, 5, 7, True)
    cpu = SimManager(ExecMode.CPU, 0, 5, 7, True)
    assert gpu.lidar_tensor().__dlpack_device__() == (2, 1)
    for step in range(1, 4):
        gpu.step()
        cpu.step()
        assert driver.report().pending == 0
        assert (driver.peek(gpu._simulator.steps_remaining) == 200 - step).all()
    assert gpu._simulator.hash() == cpu._simulator.hash()
