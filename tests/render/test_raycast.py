"""The ray caster through Python: its pixels depend on the worlds and on nothing else."""

import hashlib
from typing import Any

import numpy as np
import pytest
from tests.render.agreement import OUTPUTS
from tests.scenes import random_actions

import doorstep
from doorstep import Cameras


def pixels(num_worlds: int = 70, steps: int = 30, num_threads: int = 1, **settings: Any) -> dict[str, bytes]:
    """Every tensor of the cameras after random actions."""
    cameras = Cameras(**{"width": 20, "height": 12, **settings})
    with doorstep.Simulator(num_worlds, seed=3, num_threads=num_threads, cameras=cameras) as sim:
        for actions in random_actions(3, steps, num_worlds):
            sim.actions.to_numpy()[:] = actions
            sim.step()
        return {name: sim.tensors[name].to_numpy().tobytes() for name in cameras.outputs}


def test_it_is_what_cameras_take_by_default() -> None:
    with doorstep.Simulator(1, cameras=Cameras()) as sim:
        assert sim.cameras is not None
        assert str(sim.renderer).startswith("raycast")


@pytest.mark.parametrize("num_threads", [2, 5])
def test_threads_draw_the_same_bytes(num_threads: int) -> None:
    assert pixels(num_threads=num_threads, **OUTPUTS) == pixels(**OUTPUTS)


def test_a_tensor_is_the_same_whatever_else_is_asked_for() -> None:
    everything = pixels(**OUTPUTS)
    nothing = dict.fromkeys(OUTPUTS, False)
    for name in OUTPUTS:
        assert pixels(**{**nothing, name: True}) == {name: everything[name]}


def test_asynchronous_steps_draw() -> None:
    with (
        doorstep.Simulator(5, seed=1, cameras=Cameras(width=16, height=16)) as one,
        doorstep.Simulator(5, seed=1, cameras=Cameras(width=16, height=16)) as other,
    ):
        for _ in range(5):
            one.step()
            other.step_async().wait()
            assert one.rgb.to_numpy().tobytes() == other.rgb.to_numpy().tobytes()


def test_an_edited_world_is_drawn_after_a_refresh_and_no_other_changes() -> None:
    with doorstep.Simulator(3, seed=1, cameras=Cameras(width=16, height=16)) as sim:
        before = [hashlib.sha256(view.tobytes()).digest() for view in sim.rgb.to_numpy()]
        sim.state.body_positions.to_numpy()[1, 0, 1] = 20.0
        sim.refresh()
        after = [hashlib.sha256(view.tobytes()).digest() for view in sim.rgb.to_numpy()]
        assert [left == right for left, right in zip(before, after, strict=True)] == [True, False, True]


def test_a_camera_that_looks_up_sees_the_sky_alone() -> None:
    up = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)
    cameras = Cameras(width=9, height=9, fov=20.0, position=(0, 0, 8), rotation=up, **OUTPUTS)
    with doorstep.Simulator(2, cameras=cameras) as sim:
        assert not sim.segmentation.to_numpy().any()
        assert not sim.depth.to_numpy().any()
        assert not sim.normals.to_numpy().any()
        assert (sim.rgb.to_numpy() == (158, 194, 230, 255)).all()  # 0.62, 0.76, 0.90 of 255


def test_a_camera_that_looks_down_sees_the_floor_at_its_height() -> None:
    down = (np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0)
    cameras = Cameras(width=9, height=9, fov=2.0, position=(0, 3.0, 4.5), rotation=down, **OUTPUTS)
    with doorstep.Simulator(2, cameras=cameras) as sim:
        assert (sim.segmentation.to_numpy() == (6, 0)).all()
        assert sim.depth.to_numpy() == pytest.approx(4.5, abs=1e-5)
        assert (sim.normals.to_numpy() == (0, 0, 1)).all()
