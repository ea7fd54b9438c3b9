"""Cameras on a GPU: the ray caster gives the CPU's bits, on the simulator's stream, without the host in between."""

from typing import Any

import numpy as np
import pytest
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.twins import Twins

import doorstep

ALL = {"rgb": True, "depth": True, "segmentation": True, "normals": True}


def cameras(**options: Any) -> doorstep.Cameras:
    return doorstep.Cameras(**{"width": 24, "height": 20, **ALL, **options})


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
@on_stand_in()
def test_pixels_are_the_cpus(num_agents: int) -> None:
    with Twins(5, num_agents=num_agents, seed=4, episode_length=20, cameras=cameras()) as twins:
        twins.assert_same()
        twins.step_randomly(30)
        twins.assert_same()


@pytest.mark.parametrize(("width", "height"), [(1, 1), (7, 5), (33, 70)])
@on_stand_in()
def test_any_resolution_gives_the_same_pixels(width: int, height: int) -> None:
    with Twins(3, seed=6, cameras=cameras(width=width, height=height)) as twins:
        twins.step_randomly(10)
        twins.assert_same()
