"""Cameras on a real GPU: the CPU's bits, in the simulator's order, and in CUDA graphs."""

import ctypes
import dataclasses
from typing import Any

import numpy as np
import pytest
from tests.cuda.twins import Twins, play_levels
from tests.gpu.frameworks import cuda_torch
from tests.gpu.sizes import sized
from tests.render.agreement import Views, check_agreement, views_of
from tests.scenes import random_actions

import doorstep

ALL: dict[str, Any] = {"rgb": True, "depth": True, "segmentation": True, "normals": True}
PICTURES = doorstep.Cameras(width=sized(64, 12), height=sized(64, 12), **ALL)


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
def test_pixels_are_the_cpus(num_agents: int) -> None:
    with Twins(
        sized(100, 2), num_threads=None, num_agents=num_agents, episode_length=sized(60, 5), cameras=PICTURES
    ) as twins:
        twins.assert_same()
        twins.step_randomly(sized(90, 8))
        twins.assert_same()


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
def test_pixels_of_levels_are_the_cpus(num_agents: int) -> None:
    play_levels(sized(64, 3), num_agents=num_agents, seed=4, num_threads=None, cameras=PICTURES)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (7, 5), *sized([(33, 200), (640, 480)], [])])
def test_any_resolution_gives_the_same_pixels(width: int, height: int) -> None:
    with Twins(sized(9, 2), num_threads=None, cameras=doorstep.Cameras(width=width, height=height, **ALL)) as twins:
        twins.step_randomly(sized(70, 3))
        twins.assert_same()


def test_any_angle_gives_the_same_pixels() -> None:
    for fov in (1.0, 60.0, 170.0):
        with Twins(sized(20, 2), num_threads=None, cameras=dataclasses.replace(PICTURES, fov=fov)) as twins:
            twins.step_randomly(sized(30, 2))
            twins.assert_same()


def test_edited_worlds_give_the_same_pixels() -> None:
    with Twins(sized(200, 2), num_threads=None, cameras=PICTURES) as twins:
        generator = np.random.default_rng(0)
        for _ in range(sized(5, 1)):
            edited = twins.cpu.state.body_positions.to_numpy().copy()
            edited[..., :2] = generator.uniform((-9.5, 0.0), (9.5, 45.0), edited[..., :2].shape)
            twins.cpu.state.body_positions.to_numpy()[:] = edited
            twins.gpu.state.body_positions.copy_from_host(edited)
            for sim in twins.both():
                sim.refresh()
            twins.assert_same()


def test_replays_of_a_graph_draw() -> None:
    torch = cuda_torch()
    stream = torch.cuda.Stream()
    with (
        doorstep.Simulator(64, cameras=doorstep.Cameras()) as cpu,
        doorstep.Simulator(64, device="cuda", stream=stream, cameras=doorstep.Cameras()) as sim,
    ):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            sim.step()
        for _ in range(5):
            graph.replay()
            cpu.step()
        torch.cuda.synchronize()
        for name in ("rgb", "depth"):
            assert sim.tensors[name].copy_to_host().tobytes() == cpu.tensors[name].to_numpy().tobytes()


def views_after_random_actions(device: str, renderer: Any) -> Views:
    cameras = doorstep.Cameras(width=48, height=32, renderer=renderer, **ALL)
    with doorstep.Simulator(20, seed=5, device=device, cameras=cameras) as sim:
        for actions in random_actions(5, 40, 20):
            sim.actions.copy_from_host(actions)
            sim.step()
        return views_of(sim)


def test_vulkan_draws_in_memory_of_cuda_what_the_ray_caster_sees() -> None:
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError as reason:
        pytest.skip(f"no Vulkan loader: {reason}")
    check_agreement(views_after_random_actions("cuda", "vulkan"), views_after_random_actions("cpu", "raycast"), 0.4)
