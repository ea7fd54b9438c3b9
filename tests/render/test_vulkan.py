"""Views that Vulkan draws, on lavapipe: what the other renderers see, and what double precision says."""

import os
import re
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.render.agreement import OUTPUTS, Views, check_agreement, compare, views_of
from tests.render.on_vulkan import on_vulkan
from tests.scenes import random_actions

import doorstep
from doorstep import Cameras, EntityKind, RendererError, Simulator

TURNED = (0.8, -0.5, 0.2, 0.26457513110645903)
FLOOR = 6
BUTTON_SIDE, BUTTON_HEIGHT, PRESSED_BUTTON_HEIGHT = 1.3, 0.12, 0.03

Array = NDArray[np.float64]


def play(renderer: Any, num_worlds: int = 5, steps: int = 40, seed: int = 5, **settings: Any) -> Views:
    """What all agents see after random actions."""
    num_agents = settings.pop("num_agents", 2)
    cameras = Cameras(**{**OUTPUTS, **settings}, renderer=renderer)
    with Simulator(num_worlds, seed=seed, num_agents=num_agents, cameras=cameras) as sim:
        for actions in random_actions(seed, steps, num_worlds, num_agents):
            sim.actions.to_numpy()[:] = actions
            sim.step()
        return views_of(sim)


# ---- Agreement


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"width": 37, "height": 23, "num_worlds": 33},
        {"width": 1, "height": 1},
        {"fov": 0.1},
        {"fov": 30.0},
        {"fov": 150.0, "width": 50, "height": 50},
        {"position": (0.3, -2.5, 4.0), "rotation": TURNED},
        {"position": (0.0, 0.0, -1.0)},
        {"num_agents": 1},
        {"num_agents": 8, "num_worlds": 3},
    ],
    ids=str,
)
@on_vulkan()
def test_sees_what_the_other_renderers_see(settings: dict[str, Any]) -> None:
    seen = play("vulkan", **settings)
    most_silhouettes = 0.7 if settings.get("width") == 1 else 0.4
    for renderer in ("raycast", "embree"):
        check_agreement(seen, play(renderer, **settings), most_silhouettes)


@on_vulkan()
def test_views_that_do_not_fit_into_one_target_are_drawn_one_after_the_other() -> None:
    # Two views of 2049 x 2049 pixels: two targets, and the second begins at an odd pixel.
    settings: dict[str, Any] = {"width": 2049, "height": 2049, "depth": False, "normals": False}
    views = []
    for renderer in ("vulkan", "raycast"):
        cameras = Cameras(renderer=renderer, rgb=True, segmentation=True, **settings)
        with Simulator(1, seed=3, cameras=cameras) as sim:
            views.append((sim.rgb.copy_to_host(), sim.segmentation.copy_to_host()))
    (rgb, segmentation), (other_rgb, other_segmentation) = views
    same = (segmentation == other_segmentation).all(axis=-1)
    assert same.mean() > 0.9999
    assert (np.abs(rgb[same].astype(int) - other_rgb[same]) > 1).mean() < 1e-5
    assert len(np.unique(segmentation[0, 1, ..., 0])) >= 3


@on_vulkan()
def test_no_output_depends_on_which_others_are_wanted() -> None:
    everything = play("vulkan", width=21, height=13)
    for name in OUTPUTS:
        wanted: dict[str, Any] = {output: output == name for output in OUTPUTS}
        with Simulator(5, seed=5, cameras=Cameras(width=21, height=13, renderer="vulkan", **wanted)) as sim:
            for actions in random_actions(5, 40, 5, 2):
                sim.actions.to_numpy()[:] = actions
                sim.step()
            alone = sim.tensors[name].copy_to_host()
        assert np.array_equal(alone.reshape(everything[name].shape), everything[name])


# ---- Against double precision


def rays_of(sim: Simulator, world: int, agent: int, cameras: Cameras) -> tuple[Array, Array]:
    """Origin and directions [H, W, 3] of a view's rays; along forward a direction has length 1."""
    assert cameras.rotation == (1, 0, 0, 0)
    w, _, _, z = sim.state.body_rotations.to_numpy()[world, agent].astype(float)
    yaw = 2 * np.arctan2(z, w)
    right, forward = np.array([np.cos(yaw), np.sin(yaw), 0]), np.array([-np.sin(yaw), np.cos(yaw), 0])
    tangent = np.tan(np.radians(cameras.fov) / 2)
    columns = tangent * cameras.width / cameras.height * ((np.arange(cameras.width) + 0.5) * 2 / cameras.width - 1)
    rows = tangent * (1 - (np.arange(cameras.height) + 0.5) * 2 / cameras.height)
    directions = forward + columns[None, :, None] * right + rows[:, None, None] * np.array([0, 0, 1.0])
    origin = sim.state.body_positions.to_numpy()[world, agent].astype(float) + np.array([0, 0, 1.5])
    return origin, directions


def boxes_of(sim: Simulator, world: int) -> list[tuple[int, int, Array, Array, Array]]:
    """Kind, slot, centre, axes (rows) and half extents of everything but agents."""
    state, boxes = sim.state, []
    for slot in range(sim.num_agents, state.body_kinds.shape[1]):
        w, x, y, z = state.body_rotations.to_numpy()[world, slot].astype(float)
        columns = [
            [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
            [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
            [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
        ]
        half = state.body_sizes.to_numpy()[world, slot].astype(float) / 2
        kind = int(state.body_kinds.to_numpy()[world, slot])
        boxes.append((kind, slot, state.body_positions.to_numpy()[world, slot].astype(float), np.array(columns), half))
    for slot in range(state.static_kinds.shape[1]):
        half = state.static_sizes.to_numpy()[world, slot].astype(float) / 2
        centre = state.static_positions.to_numpy()[world, slot] + np.array([0, 0, half[2]])
        boxes.append((int(state.static_kinds.to_numpy()[world, slot]), slot, centre, np.eye(3), half))
    for slot in range(state.button_pressed.shape[1]):
        height = PRESSED_BUTTON_HEIGHT if state.button_pressed.to_numpy()[world, slot] else BUTTON_HEIGHT
        half = np.array([BUTTON_SIDE, BUTTON_SIDE, height]) / 2
        centre = state.button_positions.to_numpy()[world, slot] + np.array([0, 0, half[2]])
        boxes.append((EntityKind.BUTTON, slot, centre, np.eye(3), half))
    return [box for box in boxes if box[0] != EntityKind.NONE]


def cast(origin: Array, directions: Array, boxes: list[Any]) -> tuple[Array, Array]:
    """Depth and (kind, slot) that the rays meet, by slabs, floor included."""
    depth = np.where(directions[..., 2] < 0, -origin[2] / np.minimum(directions[..., 2], -1e-30), np.inf)
    seen = np.zeros((*directions.shape[:2], 2))
    seen[np.isfinite(depth)] = (FLOOR, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        for kind, slot, centre, axes, half in boxes:
            start, along = axes @ (origin - centre), directions @ axes.T
            first, second = (-half - start) / along, (half - start) / along
            enter, leave = np.minimum(first, second).max(-1), np.maximum(first, second).min(-1)
            hit = (enter < leave) & (enter > 0) & (enter < depth)
            depth[hit] = enter[hit]
            seen[hit] = (kind, slot)
    return np.where(np.isfinite(depth), depth, 0), seen


@on_vulkan()
def test_depth_and_segmentation_are_those_of_slabs_in_double_precision() -> None:
    cameras = Cameras(width=60, height=44, segmentation=True, renderer="vulkan")
    with Simulator(6, seed=11, cameras=cameras) as sim:
        for actions in random_actions(11, 30, 6, 2):
            sim.actions.to_numpy()[:] = actions
            sim.step()
        pixels, differing, kinds = 0, 0, set()
        for world in range(6):
            for agent in range(2):
                depth, seen = cast(*rays_of(sim, world, agent, cameras), boxes_of(sim, world))
                drawn = sim.segmentation.to_numpy()[world, agent]
                is_box = drawn[..., 0] != EntityKind.AGENT
                same = (drawn == seen).all(-1) & is_box
                pixels, differing = pixels + is_box.sum(), differing + (is_box & ~same).sum()
                far = np.abs(sim.depth.to_numpy()[world, agent, ..., 0] - depth) / np.maximum(1, depth)
                assert far[same].max() < 1e-4
                kinds |= set(drawn[..., 0].ravel().tolist())
    assert differing < 2e-3 * pixels  # on edges
    assert kinds >= {0, EntityKind.BUTTON, EntityKind.CUBE, EntityKind.WALL, EntityKind.DOOR, FLOOR}


# ---- Life


@on_vulkan()
def test_everything_that_changes_worlds_draws_again() -> None:
    cameras = [Cameras(width=20, height=16, renderer=name, **OUTPUTS) for name in ("vulkan", "raycast")]
    with Simulator(4, seed=2, cameras=cameras[0]) as sim, Simulator(4, seed=2, cameras=cameras[1]) as other:
        saved = [each.save() for each in (sim, other)]

        def check() -> None:
            check_agreement(views_of(sim), views_of(other), 0.6)

        check()
        for each in (sim, other):
            each.step_async().wait()
        check()
        for each in (sim, other):
            each.reset([1, 3])
        check()
        for each in (sim, other):
            each.state.body_positions.to_numpy()[:, :2, 1] += 3
            each.refresh()
        check()
        for each, data in zip((sim, other), saved, strict=True):
            each.restore(data)
        check()


@on_vulkan()
def test_odd_edits_draw_something_and_harm_nothing() -> None:
    cameras = Cameras(width=20, height=16, renderer="vulkan", **OUTPUTS)
    with Simulator(2, seed=2, cameras=cameras) as sim, Simulator(2, seed=2, cameras=cameras) as untouched:
        state = sim.state
        state.body_positions.to_numpy()[0, 3] = np.nan
        state.body_positions.to_numpy()[0, 4] = np.inf
        state.body_positions.to_numpy()[0, 0] = np.nan
        state.static_sizes.to_numpy()[0, 0] = 1e30
        state.static_positions.to_numpy()[0, 1, 2] = -50
        sim.refresh()
        untouched.refresh()
        assert np.isfinite(sim.depth.to_numpy()).all()
        assert np.array_equal(sim.rgb.to_numpy()[1], untouched.rgb.to_numpy()[1])


@on_vulkan()
def test_simulators_share_a_device_and_draw_from_several_threads() -> None:
    cameras = Cameras(width=24, height=16, renderer="vulkan", **OUTPUTS)
    alone = play("vulkan", width=24, height=16, steps=10)
    with Simulator(5, seed=5, cameras=cameras) as first, Simulator(5, seed=5, cameras=cameras) as second:
        simulators = (first, second)

        def step(sim: Simulator) -> None:
            for actions in random_actions(5, 10, 5, 2):
                sim.actions.to_numpy()[:] = actions
                sim.step()

        threads = [threading.Thread(target=step, args=(sim,)) for sim in simulators]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for sim in simulators:
            assert all(np.array_equal(seen, alone[name]) for name, seen in views_of(sim).items())


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@on_vulkan()
def test_opening_and_closing_again_and_again_takes_no_memory_and_no_files() -> None:
    def open_and_close(count: int) -> None:
        for _ in range(count):
            with Simulator(64, num_threads=1, cameras=Cameras(width=64, height=64, renderer="vulkan")) as sim:
                sim.step()  # the views are 2 MiB, and more in the driver's memory

    open_and_close(15)
    before, files, threads = resident_bytes(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    open_and_close(25)
    assert resident_bytes() < before + 32 * 2**20
    assert len(os.listdir("/proc/self/fd")) == files
    assert len(os.listdir("/proc/self/task")) == threads


@on_vulkan()
def test_views_outlive_the_simulator() -> None:
    with Simulator(3, cameras=Cameras(renderer="vulkan")) as sim:
        tensor, picture = sim.rgb, sim.rgb.copy_to_host()
    assert np.array_equal(tensor.to_numpy(), picture)
    assert picture[..., 3].min() == 255


@on_vulkan()
def test_a_forked_child_steps_but_does_not_draw() -> None:
    cameras = Cameras(width=16, height=16, renderer="vulkan")
    with Simulator(2, seed=1, cameras=cameras) as sim, Simulator(2, seed=1) as other:
        child = os.fork()
        if child == 0:
            try:
                with pytest.raises(RendererError, match="forked"):
                    sim.step()
                with pytest.raises(RendererError, match="forked"):
                    Simulator(1, cameras=cameras)
                other.step()
                same = np.array_equal(sim.world_hashes(), other.world_hashes())
                sim.close()
                os._exit(0 if same else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        before = sim.rgb.copy_to_host()
        sim.step()
        assert before.shape == sim.rgb.shape


# ---- What is missing


@on_vulkan(VK_DRIVER_FILES="/nowhere.json", VK_ICD_FILENAMES="/nowhere.json")
def test_without_a_driver_the_message_says_what_to_install() -> None:
    with pytest.raises(RendererError, match=r"finds no driver|no device") as caught:
        Simulator(2, cameras=Cameras(renderer="vulkan"))
    assert "mesa-vulkan-drivers" in str(caught.value.hint)
    with Simulator(2, cameras=Cameras(renderer="raycast")) as sim:
        sim.step()


def test_without_a_loader_the_message_says_what_to_install(run_python: Any) -> None:
    run_python(
        """
import ctypes, doorstep
try:
    ctypes.CDLL("libvulkan.so.1")
except OSError:
    for _ in range(2):
        try:
            doorstep.Simulator(2, cameras=doorstep.Cameras(renderer="vulkan"))
        except doorstep.RendererError as error:
            assert "libvulkan.so.1" in str(error) and "libvulkan1" in error.hint, error
        else:
            raise AssertionError
    assert not any(doorstep.live_counts().values())
"""
    )


@on_vulkan()
def test_views_too_large_for_the_device_are_refused() -> None:
    # One view's normals take 201 MB; lavapipe's shaders see buffers of 134 MB.
    cameras = Cameras(width=4096, height=4096, rgb=False, depth=False, normals=True, renderer="vulkan")
    with pytest.raises(RendererError, match="4096 x 4096"):
        Simulator(1, num_agents=1, cameras=cameras)
    assert not any(doorstep.live_counts().values())


def test_agreement_notices_a_difference() -> None:
    """What the tests above would say of a renderer that is broken."""
    views = play("raycast", steps=1)
    broken = {**views, "depth": views["depth"] * np.float32(1.002)}
    assert compare(views, broken).differing["depth"] > 0


@on_vulkan()
def test_the_device_is_named() -> None:
    cameras = Cameras(width=8, height=8, renderer="vulkan")
    with Simulator(1, cameras=cameras) as sim:
        assert re.fullmatch(r"vulkan \(llvmpipe .*\(Vulkan 1\.\d+\.\d+\)\)", sim.renderer or "")
    doctor = subprocess.run(
        [sys.executable, "-m", "doorstep", "doctor"], capture_output=True, text=True, timeout=120, check=False
    )
    assert "llvmpipe" in doctor.stdout, doctor.stdout + doctor.stderr
