"""Vulkan draws simulators on a GPU in memory that CUDA exported: the stand-in for the driver on one side, lavapipe on
the other, and between them a loader that makes them share (sharing_vulkan.cpp)."""

import ctypes
import functools
import gc
import json
import os
from pathlib import Path

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import RUN_CHILD, require_stand_in
from tests.cuda.users_memory import FakeTorch
from tests.render.agreement import OUTPUTS, check_agreement, views_of
from tests.render.on_vulkan import run
from tests.scenes import random_actions
from tests.system_packages import vulkan_environment

import doorstep
from doorstep import Cameras, RendererError, ShaderError, Simulator

SHARING_LOADER = driver.FOLDER.parent / "sharing_vulkan" / "libvulkan.so.1"
CAMERAS = Cameras(width=12, height=8, renderer="vulkan", **OUTPUTS)
# What only sharing calls, and not to give back.
SHARING_CALLS = {
    "cuImportExternalSemaphore", "cuMemAddressReserve", "cuMemCreate", "cuMemExportToShareableHandle", "cuMemMap",
    "cuMemSetAccess", "cuSignalExternalSemaphoresAsync", "cuWaitExternalSemaphoresAsync",
}  # fmt: skip


def on_both(*, sharing=True):
    """Makes a test run on the stand-in with lavapipe; sharing: they know each other."""

    def decorate(test):
        @functools.wraps(test)
        def run_in_child():
            require_stand_in()
            if not SHARING_LOADER.exists():
                pytest.skip("the loader for sharing is not built; build it with: make test-native")
            path = vulkan_environment()["LD_LIBRARY_PATH"]
            folders = [str(driver.FOLDER), *([str(SHARING_LOADER.parent)] if sharing else []), path]
            candidates = [*path.split(os.pathsep), "/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
            loader = next(found for folder in candidates if (found := Path(folder) / "libvulkan.so.1").exists())
            paths = {"LD_LIBRARY_PATH": os.pathsep.join(folders), "SHARING_VULKAN_LOADER": str(loader)}
            run(RUN_CHILD, test.__module__, test.__name__, json.dumps({}), **paths)

        return run_in_child

    return decorate


def simulator(num_worlds=3, **options):
    return Simulator(num_worlds, seed=5, **{"device": "cuda", "cameras": CAMERAS} | options)


def play(device, renderer, num_agents):
    cameras = Cameras(width=24, height=16, renderer=renderer, **OUTPUTS)
    with simulator(4, device=device, cameras=cameras, num_agents=num_agents) as sim:
        for actions in random_actions(5, 6, 4, num_agents):
            sim.actions.copy_from_host(actions)
            sim.step()
        return views_of(sim)


@on_both()
def test_a_gpu_sees_what_the_cpu_sees():
    for num_agents in (1, 3):
        seen, other = (play(device, "vulkan", num_agents) for device in ("cuda", "cpu"))
        assert all(np.array_equal(seen[name], other[name]) for name in OUTPUTS)
        check_agreement(seen, play("cpu", "raycast", num_agents), 0.6)


@on_both()
def test_drawing_follows_the_current_stream_of_pytorch_and_streams_that_were_left_may_be_gone():
    with simulator(device="cpu") as cpu:
        for _ in range(6):
            cpu.step()
        expected = views_of(cpu)
    with driver.users_context():
        first, second, third = (driver.call_for_value("cuStreamCreate", driver.NON_BLOCKING) for _ in range(3))
        with FakeTorch(first) as torch:
            sim = simulator()
            for step in range(6):
                torch.stream = (first, second)[step % 2]
                sim.step()
                assert sim.stream == torch.stream
            torch.stream = third
            seen = views_of(sim)
            assert all(np.array_equal(seen[name], expected[name]) for name in OUTPUTS)
            sim.actions.copy_from_host(np.zeros(sim.actions.shape, sim.actions.dtype))
            assert sim.stream == third
            for stream in (first, second):
                driver.synchronize(stream)
                driver.call("cuStreamDestroy_v2", ctypes.c_uint64(stream))
            sim.close()
            assert driver.report().violations == []
            driver.call("cuStreamDestroy_v2", ctypes.c_uint64(third))


@on_both()
def test_steps_cannot_be_recorded_and_closing_waits_for_them_but_spoils_no_recording():
    with driver.users_stream() as stream:
        sim = simulator(stream=stream)
        with driver.RecordedGraph(stream), pytest.raises(RendererError, match="CUDA graph"):
            sim.step()
        for _ in range(3):
            sim.step()
        assert sim.rgb.copy_to_host()[..., 3].min() == 255
        sim.step()
        sim.close()  # waits for the copies that were begun
        assert driver.report().violations == []
        sim = simulator(stream=stream)
        sim.step()
        with driver.RecordedGraph(stream):
            sim.close()
    driver.objects_stay()  # what the recording might use


@on_both()
def test_whatever_fails_nothing_is_lost():
    with pytest.raises(ShaderError, match="undeclared"):
        simulator(cameras=Cameras(renderer="vulkan", material="float3 surface_colour(Surface s) { return nothing; }"))

    def action():
        with simulator(1) as sim:
            sim.step()
            sim.wait()

    action()
    driver.clear()
    action()
    gc.collect()
    calls = driver.report().calls
    chosen = {calls.index(name) for name in SHARING_CALLS if name in calls}
    assert len(chosen) >= 6, set(calls)
    for nth in sorted(chosen):
        driver.clear()
        driver.fail("", nth + 1, driver.UNKNOWN)
        with pytest.raises(doorstep.DoorstepError):
            action()
        gc.collect()
        end = driver.report()
        assert (end.violations, end.failed) == ([], calls[nth])
    driver.clear()
    action()


@on_both(sharing=False)
def test_a_gpu_that_vulkan_does_not_know_is_refused():
    with pytest.raises(RendererError, match="UUID") as caught:
        simulator()
    assert "raycast" in caught.value.hint
    with simulator(cameras=None) as sim:
        sim.step()
