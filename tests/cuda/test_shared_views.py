"""Vulkan draws simulators on a GPU in memory that CUDA exported: the stand-in for the driver on one side, lavapipe on
the other, and between them a loader that makes them share (sharing_vulkan.cpp)."""

import ctypes
import functools
import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import require_stand_in
from tests.cuda.test_streams import FakeTorch
from tests.render.agreement import OUTPUTS, Views, check_agreement, views_of
from tests.render.on_vulkan import run
from tests.scenes import random_actions
from tests.system_packages import vulkan_environment

import doorstep
from doorstep import Cameras, RendererError, ShaderError, Simulator

RUN_CHILD = "import sys; from tests.cuda.on_stand_in import child; child(*sys.argv[1:])"
SHARING_LOADER = driver.FOLDER.parent / "sharing_vulkan" / "libvulkan.so.1"
CAMERAS = Cameras(width=24, height=16, renderer="vulkan", **OUTPUTS)
# What only sharing calls, and not to give back.
SHARING_CALLS = {
    "cuImportExternalSemaphore",
    "cuMemAddressReserve",
    "cuMemCreate",
    "cuMemExportToShareableHandle",
    "cuMemMap",
    "cuMemSetAccess",
    "cuSignalExternalSemaphoresAsync",
    "cuWaitExternalSemaphoresAsync",
}


def on_both(*, sharing: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a test run on the stand-in with lavapipe; sharing: they know each other."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run_in_child(**arguments: Any) -> None:
            require_stand_in()
            if not SHARING_LOADER.exists():
                pytest.skip("the loader for sharing is not built; build it with: make test-native")
            path = vulkan_environment()["LD_LIBRARY_PATH"]
            folders = [str(driver.FOLDER), *([str(SHARING_LOADER.parent)] if sharing else []), path]
            candidates = [*path.split(os.pathsep), "/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
            loader = next(found for folder in candidates if (found := Path(folder) / "libvulkan.so.1").exists())
            run(
                RUN_CHILD,
                test.__module__,
                test.__name__,
                json.dumps(arguments),
                LD_LIBRARY_PATH=os.pathsep.join(folders),
                SHARING_VULKAN_LOADER=str(loader),
            )

        return run_in_child

    return decorate


def play(device: str, renderer: Any, **settings: Any) -> Views:
    cameras = Cameras(width=24, height=16, renderer=renderer, **OUTPUTS)
    with Simulator(5, seed=5, device=device, cameras=cameras, **settings) as sim:
        for actions in random_actions(5, 12, 5, sim.num_agents):
            sim.actions.copy_from_host(actions)
            sim.step()
        return views_of(sim)


@pytest.mark.parametrize("num_agents", [1, 2, 8])
@on_both()
def test_a_gpu_sees_what_the_cpu_sees(num_agents: int) -> None:
    seen = play("cuda", "vulkan", num_agents=num_agents)
    other = play("cpu", "vulkan", num_agents=num_agents)
    assert all(np.array_equal(seen[name], other[name]) for name in OUTPUTS)
    check_agreement(seen, play("cpu", "raycast", num_agents=num_agents), 0.6)


@on_both()
def test_drawing_follows_the_current_stream_of_pytorch() -> None:
    with Simulator(3, seed=5, cameras=CAMERAS) as cpu:
        for _ in range(9):
            cpu.step()
        expected = views_of(cpu)
    with driver.users_stream() as first, driver.users_stream() as second:
        torch = FakeTorch(first)
        with Simulator(3, seed=5, device="cuda", cameras=CAMERAS) as sim:
            for step in range(9):
                torch.stream = (first, second)[step % 2]
                sim.step()
                assert sim.stream == torch.stream
            seen = views_of(sim)
            assert all(np.array_equal(seen[name], expected[name]) for name in OUTPUTS)
        del sys.modules["torch"]


@on_both()
def test_steps_with_vulkan_cameras_cannot_be_recorded() -> None:
    with (
        driver.users_stream() as stream,
        Simulator(3, seed=5, device="cuda", cameras=CAMERAS, stream=stream) as sim,
    ):
        with driver.RecordedGraph(stream) as graph, pytest.raises(RendererError, match="CUDA graph"):
            sim.step()
        graph.close()
        sim.step()
        assert sim.rgb.copy_to_host()[..., 3].min() == 255


@on_both()
def test_streams_that_were_left_may_be_gone_at_the_end() -> None:
    # Made on the first, drawn on the second, closed on the third: only that one exists then.
    with driver.users_context():
        first, second, third = (driver.call_for_value("cuStreamCreate", driver.NON_BLOCKING) for _ in range(3))
        torch = FakeTorch(first)
        sim = Simulator(3, seed=5, device="cuda", cameras=CAMERAS)
        for stream in (first, second):
            torch.stream = stream
            sim.step()
        torch.stream = third
        sim.actions.copy_from_host(np.zeros(sim.actions.shape, sim.actions.dtype))
        assert sim.stream == third
        for stream in (first, second):
            driver.synchronize(stream)
            driver.call("cuStreamDestroy_v2", ctypes.c_uint64(stream))
        sim.close()
        assert driver.report().violations == []
        driver.call("cuStreamDestroy_v2", ctypes.c_uint64(third))
    del sys.modules["torch"]


@on_both()
def test_closing_waits_for_the_copies_that_were_begun() -> None:
    with driver.users_stream() as stream:
        sim = Simulator(3, seed=5, device="cuda", cameras=CAMERAS, stream=stream)
        for _ in range(5):
            sim.step()
        sim.close()
        assert driver.report().violations == []


@on_both()
def test_closing_does_not_spoil_a_recording() -> None:
    with driver.users_stream() as stream:
        sim = Simulator(3, seed=5, device="cuda", cameras=CAMERAS, stream=stream)
        sim.step()
        with driver.RecordedGraph(stream) as graph:
            sim.close()
        graph.close()
    driver.objects_stay()  # what the recording might use


@on_both()
def test_broken_materials_leave_nothing() -> None:
    with pytest.raises(ShaderError, match="undeclared"):
        Simulator(
            2,
            device="cuda",
            cameras=Cameras(renderer="vulkan", material="float3 surface_colour(Surface s) { return nothing; }"),
        )


@on_both()
def test_whichever_call_for_sharing_fails_nothing_is_lost() -> None:
    def action() -> None:
        with Simulator(2, device="cuda", cameras=CAMERAS) as sim:
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
def test_a_gpu_that_vulkan_does_not_know_is_refused() -> None:
    with pytest.raises(RendererError, match="UUID") as caught:
        Simulator(2, device="cuda", cameras=CAMERAS)
    assert "raycast" in caught.value.hint
    with Simulator(2, device="cuda") as sim:
        sim.step()
