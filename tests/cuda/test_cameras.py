"""Cameras on a GPU: the ray caster gives the CPU's bits, on the simulator's stream, without the host in between."""

from typing import Any

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.twins import Twins, play_levels
from tests.render.level_worlds import full_level, playing

import doorstep

ALL: dict[str, Any] = {"rgb": True, "depth": True, "segmentation": True, "normals": True}


def cameras(**options: Any) -> doorstep.Cameras:
    return doorstep.Cameras(**{"width": 24, "height": 20, **ALL, **options})


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
@on_stand_in()
def test_pixels_are_the_cpus(num_agents: int) -> None:
    with Twins(5, num_agents=num_agents, seed=4, episode_length=20, cameras=cameras()) as twins:
        twins.assert_same()
        twins.step_randomly(30)
        twins.assert_same()


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
@on_stand_in()
def test_pixels_of_levels_are_the_cpus(num_agents: int) -> None:
    play_levels(5, num_agents=num_agents, seed=4, cameras=cameras())


@pytest.mark.parametrize("num_agents", [1, 2, 8])
@on_stand_in()
def test_pixels_of_as_many_things_as_there_can_be_are_the_cpus(num_agents: int) -> None:
    # 70 tiles: more than a block draws at a time
    settings: dict[str, Any] = {"num_agents": num_agents, "cameras": cameras(width=77, height=52)}
    with (
        playing([full_level(num_agents)], **settings) as cpu,
        playing([full_level(num_agents)], device="cuda", **settings) as gpu,
    ):
        for name in ALL:
            assert gpu.tensors[name].copy_to_host().tobytes() == cpu.tensors[name].to_numpy().tobytes()


@pytest.mark.parametrize(("width", "height"), [(1, 1), (7, 5), (33, 70)])
@on_stand_in()
def test_any_resolution_gives_the_same_pixels(width: int, height: int) -> None:
    with Twins(3, seed=6, cameras=cameras(width=width, height=height)) as twins:
        twins.step_randomly(10)
        twins.assert_same()


@on_stand_in()
def test_edited_worlds_give_the_same_pixels_after_a_refresh() -> None:
    with Twins(4, seed=8, cameras=cameras()) as twins:
        edited = twins.cpu.state.body_positions.to_numpy().copy()
        edited[..., :2] = np.random.default_rng(0).uniform((-9.5, 0.0), (9.5, 45.0), edited[..., :2].shape)
        twins.cpu.state.body_positions.to_numpy()[:] = edited
        twins.gpu.state.body_positions.copy_from_host(edited)
        for sim in twins.both():
            sim.refresh()
        twins.assert_same()


@pytest.mark.parametrize("outputs", [{"rgb": False}, {"depth": False}, {"segmentation": True, "rgb": False}])
@on_stand_in()
def test_tensors_that_are_not_asked_for_change_no_other(outputs: dict[str, Any]) -> None:
    some = doorstep.Cameras(width=24, height=20, **outputs)
    with doorstep.Simulator(3, cameras=cameras()) as cpu, doorstep.Simulator(3, device="cuda", cameras=some) as gpu:
        for name in some.outputs:
            assert gpu.tensors[name].copy_to_host().tobytes() == cpu.tensors[name].to_numpy().tobytes()


@on_stand_in()
def test_a_step_begins_one_launch_more_and_waits_for_nothing() -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(3, device="cuda", stream=stream, cameras=cameras()) as sim,
    ):
        sim.step()
        sim.wait()
        driver.clear()
        sim.step()
        calls = driver.report().calls
        assert calls.count("cuLaunchKernel") == 2
        assert not [name for name in calls if "Synchronize" in name or "Alloc" in name or "Memcpy" in name], calls
        assert driver.report().pending > 0
        sim.wait()


@on_stand_in()
def test_replays_of_a_graph_draw() -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(3, cameras=cameras()) as cpu,
        doorstep.Simulator(3, device="cuda", stream=stream, cameras=cameras()) as sim,
    ):
        with driver.RecordedGraph(stream) as graph:
            sim.step()
        for _ in range(3):
            graph.launch()
            cpu.step()
        for name in ALL:
            assert sim.tensors[name].copy_to_host().tobytes() == cpu.tensors[name].to_numpy().tobytes()
        graph.close()


@on_stand_in(memory_bytes=1 << 20)
def test_views_that_do_not_fit_are_refused_and_leave_nothing() -> None:
    with pytest.raises(doorstep.OutOfMemoryError):
        doorstep.Simulator(4, device="cuda", cameras=cameras(width=512, height=512))
