"""What is special to views that Vulkan draws, on lavapipe: large ones, threads, forks, and what is missing."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.leaks import resident_bytes
from tests.render.agreement import OUTPUTS, views_of
from tests.render.on_vulkan import on_vulkan
from tests.scenes import random_actions

import doorstep
from doorstep import Cameras, RendererError, Simulator


@on_vulkan()
def test_views_that_do_not_fit_into_one_target_are_drawn_one_after_the_other():
    # Two views of 2049 x 2049 pixels: two targets, and the second begins at an odd pixel.
    views = []
    for renderer in ("vulkan", "raycast"):
        cameras = Cameras(renderer=renderer, width=2049, height=2049, depth=False, segmentation=True)
        with Simulator(1, seed=3, cameras=cameras) as sim:
            views.append((sim.rgb.copy_to_host(), sim.segmentation.copy_to_host()))
    (rgb, segmentation), (other_rgb, other_segmentation) = views
    same = (segmentation == other_segmentation).all(axis=-1)
    assert same.mean() > 0.9999
    assert (np.abs(rgb[same].astype(int) - other_rgb[same]) > 1).mean() < 1e-5
    assert len(np.unique(segmentation[0, 1, ..., 0])) >= 3


@on_vulkan()
def test_simulators_share_a_device_and_draw_from_several_threads():
    cameras = Cameras(width=24, height=16, renderer="vulkan", **OUTPUTS)

    def step(sim):
        for actions in random_actions(5, 10, 5, 2):
            sim.actions.to_numpy()[:] = actions
            sim.step()

    with Simulator(5, seed=5, cameras=cameras) as sim:
        step(sim)
        alone = views_of(sim)
    with Simulator(5, seed=5, cameras=cameras) as first, Simulator(5, seed=5, cameras=cameras) as second:
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(step, (first, second)))
        for sim in (first, second):
            assert all(np.array_equal(seen, alone[name]) for name, seen in views_of(sim).items())


@pytest.mark.slow
@on_vulkan()
def test_opening_and_closing_again_and_again_takes_no_memory_and_no_files():
    def open_and_close(count):
        for _ in range(count):
            with Simulator(64, num_threads=1, cameras=Cameras(width=64, height=64, renderer="vulkan")) as sim:
                sim.step()  # the views are 2 MiB, and more in the driver's memory

    open_and_close(15)
    before, files, threads = resident_bytes(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    open_and_close(25)
    assert resident_bytes() < before + 32 * 2**20
    assert (len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))) == (files, threads)


@on_vulkan()
def test_a_forked_child_steps_but_does_not_draw():
    cameras = Cameras(width=16, height=16, renderer="vulkan")
    with Simulator(2, seed=1, cameras=cameras) as sim, Simulator(2, seed=1) as other:
        child = os.fork()
        if child == 0:
            try:
                for draw in (sim.step, lambda: Simulator(1, cameras=cameras)):
                    with pytest.raises(RendererError, match="forked"):
                        draw()
                other.step()
                same = np.array_equal(sim.world_hashes(), other.world_hashes())
                sim.close()
                os._exit(0 if same else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        before = sim.rgb.copy_to_host()
        sim.state.body_positions.to_numpy()[:, 0, 1] += 5
        sim.refresh()
        assert (sim.rgb.to_numpy() != before).any()


@on_vulkan(VK_DRIVER_FILES="/nowhere.json", VK_ICD_FILENAMES="/nowhere.json")
def test_without_a_driver_the_message_says_what_to_install():
    with pytest.raises(RendererError, match=r"finds no driver|no device") as caught:
        Simulator(2, cameras=Cameras(renderer="vulkan"))
    assert "mesa-vulkan-drivers" in str(caught.value.hint)
    with Simulator(2, cameras=Cameras(renderer="raycast")) as sim:
        sim.step()


def test_without_a_loader_the_message_says_what_to_install(run_python):
    run_python("""
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
""")


@on_vulkan()
def test_the_device_is_named_and_views_too_large_for_it_are_refused():
    with Simulator(1, cameras=Cameras(width=8, height=8, renderer="vulkan")) as sim:
        assert re.fullmatch(r"vulkan \(llvmpipe .*\(Vulkan 1\.\d+\.\d+\)\)", sim.renderer or "")
    # One view's normals take 201 MB; lavapipe's shaders see buffers of 134 MB.
    cameras = Cameras(width=4096, height=4096, rgb=False, depth=False, normals=True, renderer="vulkan")
    with pytest.raises(RendererError, match="4096 x 4096"):
        Simulator(1, num_agents=1, cameras=cameras)
    assert not any(doorstep.live_counts().values())
    command = [sys.executable, "-m", "doorstep", "doctor"]
    doctor = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "llvmpipe" in doctor.stdout, doctor.stdout + doctor.stderr
