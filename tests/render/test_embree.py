"""Embree's views: they are what they were when somebody looked at them, and what the ray caster sees."""

from typing import Any

import numpy as np
import pytest
from tests.benchmarks.render.plain_embree import LIBRARY, PlainEmbree
from tests.render.agreement import OUTPUTS, Views, check_agreement, compare, views_of
from tests.render.golden_pictures import FOLDER, PICTURES
from tests.render.pixels import read_png
from tests.scenes import random_actions

import doorstep
from doorstep import Cameras

TURNED = (0.8, -0.5, 0.2, 0.26457513110645903)


def play(renderer: Any, num_worlds: int = 6, steps: int = 40, seed: int = 5, **settings: Any) -> Views:
    """What all agents see after random actions."""
    num_agents = settings.pop("num_agents", 2)
    num_threads = settings.pop("num_threads", 1)
    cameras = Cameras(**OUTPUTS, renderer=renderer, **settings)
    with doorstep.Simulator(
        num_worlds, seed=seed, num_agents=num_agents, num_threads=num_threads, cameras=cameras
    ) as sim:
        for actions in random_actions(seed, steps, num_worlds, num_agents):
            sim.actions.to_numpy()[:] = actions
            sim.step()
        return views_of(sim)


# ---- Pictures that were looked at


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_what_they_were(name: str) -> None:
    golden = read_png((FOLDER / f"{name}.png").read_bytes())
    picture = PICTURES[name]()
    assert picture.shape == golden.shape
    far = np.abs(picture.astype(np.int32) - golden).max(axis=-1)
    # Another processor may round a few pixels on edges to the other side.
    assert (far > 2).mean() < 1e-3


# ---- Agreement


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"width": 128, "height": 37},
        {"fov": 30.0},
        {"fov": 150.0, "width": 50, "height": 50},
        {"position": (0.3, -2.5, 4.0), "rotation": TURNED},
        {"num_agents": 1},
        {"num_agents": 5, "num_worlds": 3},
    ],
    ids=str,
)
def test_embree_and_the_ray_caster_see_the_same(settings: dict[str, Any]) -> None:
    check_agreement(play("embree", **settings), play("raycast", **settings), most_silhouettes=0.3)


def test_both_see_the_same_of_edited_worlds() -> None:
    def edited(renderer: Any) -> Views:
        with doorstep.Simulator(6, seed=3, num_threads=1, cameras=Cameras(**OUTPUTS, renderer=renderer)) as sim:
            state = sim.state
            state.static_kinds.to_numpy()[0] = doorstep.EntityKind.AGENT
            state.body_positions.to_numpy()[4, 0, 0] = 1e30
            state.body_positions.to_numpy()[5, 1] = np.nan
            sim.refresh()
            return views_of(sim)

    check_agreement(edited("embree"), edited("raycast"), most_silhouettes=0.3)


def test_comparison_finds_what_is_wrong() -> None:
    good = play("embree", num_worlds=2, steps=5)
    floor = np.argwhere(good["segmentation"][..., 0] == 6)
    view, row, column = floor[len(floor) // 2]

    def differing(name: str, by: float) -> int:
        bad = {key: value.copy() for key, value in good.items()}
        bad[name][view, row, column, 0] += np.asarray(by).astype(bad[name].dtype)
        return compare(good, bad).differing[name]

    assert differing("rgb", 1) == 0
    assert differing("rgb", 2) == 1
    assert differing("depth", 5e-4) == 0
    assert differing("depth", 2e-3 * float(good["depth"][view, row, column, 0] + 1)) == 1
    assert differing("normals", 2e-3) == 1
    # A thing of another kind is on a silhouette at once, and astray.
    bad = {key: value.copy() for key, value in good.items()}
    bad["segmentation"][view, row, column] = (4, 1)
    assert compare(good, bad).stray == 1


@pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is missing: make test-native")
def test_the_plain_loop_draws_the_same() -> None:
    with doorstep.Simulator(4, num_threads=1, cameras=Cameras(width=72, height=48, renderer="embree")) as sim:
        for actions in random_actions(1, 20, 4):
            sim.actions.to_numpy()[:] = actions
            sim.step()
        plain = PlainEmbree(sim, width=72, height=48)
        plain.draw()
        grey_levels = np.abs(plain.rgb.astype(np.int32) - sim.rgb.to_numpy())
        metres = np.abs(plain.depth - sim.depth.to_numpy()) / np.maximum(1, plain.depth)
    assert (grey_levels.max(axis=-1) > 1).mean() < 1e-3
    assert (metres > 1e-3).mean() < 1e-3


# ---- The rest


def test_threads_change_no_bit() -> None:
    alone, together = play("embree", num_worlds=9), play("embree", num_worlds=9, num_threads=3)
    assert all((alone[name] == together[name]).all() for name in OUTPUTS)


def test_views_follow_the_worlds() -> None:
    cameras = Cameras(**OUTPUTS, renderer="embree")
    with doorstep.Simulator(2, num_threads=1, cameras=cameras) as sim:
        first = views_of(sim)
        sim.state.body_rotations.to_numpy()[0, 0] = (np.cos(0.5), 0, 0, np.sin(0.5))
        sim.refresh()
        second = views_of(sim)
        assert (first["rgb"][0] != second["rgb"][0]).mean() > 0.05
        assert (first["rgb"][2:] == second["rgb"][2:]).all()
        sim.reset()
        assert (first["rgb"] != views_of(sim)["rgb"]).any()
