"""Worlds with levels are drawn like all others, by every renderer and from everywhere."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from tests.render.agreement import OUTPUTS, Views, check_agreement, views_of
from tests.render.level_worlds import full_level, mixed_levels, playing
from tests.render.on_vulkan import on_vulkan
from tests.render.pixels import AGENTS, CUBE, DOORS, at, has_hue, read_png, top_pixels
from tests.render.test_replay import read_recording
from tests.scenes import random_actions

from doorstep import Cameras, EntityKind, Simulator, levels
from doorstep.recording.replay_page import ReplayPage
from doorstep.render import look, write_png
from doorstep.video import write_video

STEPS = 40
OF_TABLES = pytest.mark.parametrize(("num_agents", "num_worlds"), [(1, None), (2, None), (3, 5), (8, 4)])


def step_randomly(sim: Simulator, steps: int = STEPS) -> None:
    for actions in random_actions(5, steps, sim.num_worlds, sim.num_agents):
        sim.actions.copy_from_host(actions)
        sim.step()


def play(renderer: Any, num_agents: int, num_worlds: int | None, **settings: Any) -> Views:
    cameras = Cameras(**OUTPUTS, width=48, height=36, renderer=renderer)
    options: dict[str, Any] = {"seed": 5, "num_agents": num_agents, "num_threads": 1, **settings}
    with playing(mixed_levels(num_agents), num_worlds, cameras=cameras, **options) as sim:
        step_randomly(sim)
        return views_of(sim)


# ---- Cameras


@OF_TABLES
def test_embree_and_the_ray_caster_see_the_same(num_agents: int, num_worlds: int | None) -> None:
    seen = play("raycast", num_agents, num_worlds)
    check_agreement(play("embree", num_agents, num_worlds), seen, most_silhouettes=0.4)


@OF_TABLES
@on_vulkan()
def test_vulkan_and_the_ray_caster_see_the_same(num_agents: int, num_worlds: int | None) -> None:
    seen = play("raycast", num_agents, num_worlds)
    check_agreement(play("vulkan", num_agents, num_worlds), seen, most_silhouettes=0.4)


@pytest.mark.parametrize("renderer", ["raycast", "embree"])
def test_threads_change_no_bit(renderer: str) -> None:
    alone, together = (play(renderer, 2, 22, num_threads=threads) for threads in (1, 3))
    assert all((alone[name] == together[name]).all() for name in OUTPUTS)


@pytest.mark.parametrize("renderer", ["raycast", "embree"])
def test_of_a_full_level_much_is_in_sight(renderer: Any) -> None:
    cameras = Cameras(width=128, height=96, segmentation=True, renderer=renderer, position=(0, 0, 9))
    with playing([full_level(8)], num_agents=8, num_threads=1, cameras=cameras) as sim:
        kinds = sim.state.body_kinds, sim.state.static_kinds, sim.state.button_positions
        assert sum(field.shape[1] for field in kinds) == 8 + 24 + 32 + 12
        assert all((field.to_numpy() != EntityKind.NONE).all() for field in kinds[:2])
        things = set(map(tuple, sim.segmentation.to_numpy().reshape(-1, 2).tolist()))
        of_kind = {kind: {slot for other, slot in things if other == kind} for kind in EntityKind}
        assert of_kind[EntityKind.CUBE] == set(range(8, 32))
        assert len(of_kind[EntityKind.WALL]) > 15
        assert len(of_kind[EntityKind.BUTTON]) > 6


def check_reference_level(renderer: Any, num_agents: int) -> None:
    """The reference's level in worlds with levels, and the same worlds without."""
    cameras = Cameras(**OUTPUTS, width=40, height=30, renderer=renderer)
    settings: dict[str, Any] = {"seed": 7, "num_agents": num_agents, "num_threads": 1, "cameras": cameras}
    with Simulator(6, **settings) as plain, playing([levels.reference()], 6, **settings) as leveled:
        plain.reset()
        for sim in (plain, leveled):
            step_randomly(sim)
        expected, views = views_of(plain), views_of(leveled)
        for name in OUTPUTS:
            assert views[name].tobytes() == expected[name].tobytes(), name


@pytest.mark.parametrize("renderer", ["raycast", "embree"])
@pytest.mark.parametrize("num_agents", [1, 2, 8])
def test_the_references_level_has_the_pixels_of_worlds_without_levels(renderer: str, num_agents: int) -> None:
    check_reference_level(renderer, num_agents)


@pytest.mark.parametrize(
    "num_agents", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(8, marks=pytest.mark.slow)]
)
@on_vulkan()
def test_the_references_level_has_the_pixels_of_worlds_without_levels_on_vulkan(num_agents: int) -> None:
    check_reference_level("vulkan", num_agents)


def test_views_follow_a_change_of_levels() -> None:
    cameras = Cameras(width=32, height=24, depth=False)
    with playing([full_level(2)], num_threads=1, cameras=cameras) as sim:
        before = sim.rgb.to_numpy().copy()
        sim.set_levels([levels.curated()["spiral"]])
        sim.reset()
        assert (sim.rgb.to_numpy() != before).any(axis=-1).mean() > 0.3


# ---- Pictures for people


def test_from_above_everything_is_where_the_state_says() -> None:
    with playing([full_level(8)], num_agents=8, num_threads=1) as sim:
        picture = sim.render(width=640, height=640)
        positions, sizes = sim.state.static_positions.to_numpy()[0], sim.state.static_sizes.to_numpy()[0]
        goal = sim.levels[0].goal
        corners = [(goal.min_x, goal.min_y), (goal.max_x, goal.max_y)] if goal else np.zeros((0, 2))
        bounds = (
            np.concatenate([(positions - sizes / 2)[:, :2], corners]).min(axis=0),
            np.concatenate([(positions + sizes / 2)[:, :2], corners]).max(axis=0)
            + np.array((0, 0 if goal else look.EXIT_DEPTH)),
        )
        bodies, kinds = sim.state.body_positions.to_numpy()[0], sim.state.body_kinds.to_numpy()[0]
        doors = [(DOORS[door], positions[slot]) for door, slot in enumerate(sim.state.door_static.to_numpy()[0])]
        buttons = zip(sim.state.button_doors.to_numpy()[0], sim.state.button_positions.to_numpy()[0], strict=True)
        cubes = [(CUBE, place) for place in bodies[kinds == EntityKind.CUBE]]
        seen = [*cubes, *doors, *((DOORS[door], place) for door, place in buttons)]
        assert len(seen) > 20
        for colour, point in seen:
            (place,) = top_pixels([point], *bounds, picture.shape[1], picture.shape[0])
            assert has_hue(np.array(at(picture, place)), colour)


@pytest.mark.parametrize("camera", ["top", "overview", "follow", "agent"])
def test_every_named_camera_shows_every_level(camera: Literal["top", "overview", "follow", "agent"]) -> None:
    with playing(mixed_levels(2), num_threads=1) as sim:
        step_randomly(sim, 5)
        for world in range(sim.num_worlds):
            picture = sim.render(world, camera, width=80, height=60, samples=1)
            assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20


def test_a_level_without_walls_is_shown_around_its_agents() -> None:
    open_floor = levels.Level(spawns=[levels.Spawn(-20, 30), levels.Spawn(4, 2)])
    with playing([open_floor], num_threads=1) as sim:
        picture = sim.render(width=300, height=300)
        agents = sim.state.body_positions.to_numpy()[0, :2, :2]
        for agent, place in enumerate(top_pixels(agents, agents.min(0) - 1, agents.max(0) + 1, 300, 300)):
            assert has_hue(np.array(at(picture, place)), AGENTS[agent])
        assert len(np.unique(sim.render(camera="overview", width=80, height=60).reshape(-1, 3), axis=0)) > 20


def test_pngs_are_written(tmp_path: Path) -> None:
    with playing([full_level(2)], num_threads=1) as sim:
        picture = sim.render(0, "overview", width=64, height=48)
        write_png(tmp_path / "level.png", picture)
        assert (read_png((tmp_path / "level.png").read_bytes()) == picture).all()


def test_animations_are_written(tmp_path: Path) -> None:
    pytest.importorskip("av")
    with playing([full_level(2)], num_threads=1) as sim:
        pictures = [sim.render(0, camera, width=64, height=48) for camera in ("overview", "top")]
        assert write_video(tmp_path / "level.gif", pictures) == 2


# ---- Replays


def test_a_replay_is_as_precise_as_without_levels() -> None:
    table = mixed_levels(2)
    with playing(table, num_threads=1) as sim:
        recorder = ReplayPage(sim, range(len(table)), "")
        for actions in random_actions(3, 3, sim.num_worlds, 2):
            sim.actions.copy_from_host(actions)
            sim.step()
            recorder.record()
        recording, _ = read_recording(recorder.to_html())
        state, used = sim.state, sim.state.static_kinds.to_numpy() != EntityKind.NONE
        positions, sizes = (field.to_numpy()[used][:, :2] for field in (state.static_positions, state.static_sizes))
    assert recording["unit"] == pytest.approx(np.abs(positions).max() / 32767, rel=0.1)
    bounds = np.array([world["bounds"] for world in recording["worlds"]])
    assert bounds[:, :2].min(axis=0) == pytest.approx((positions - sizes / 2).min(axis=0))
    assert bounds[:, 2:].max(axis=0) == pytest.approx((positions + sizes / 2).max(axis=0))
    assert {world["objects"] for world in recording["worlds"]} == {2 + 24 + 32 + 12}


def test_a_replay_counts_the_steps_of_levels_with_a_length_of_their_own() -> None:
    with playing([full_level(2).replace(episode_length=4)], num_threads=1) as sim:
        recorder = ReplayPage(sim, [0], "")
        for _ in range(6):
            sim.step()
            recorder.record()
        _, data = read_recording(recorder.to_html())
    moments = 7
    steps = np.frombuffer(data, "<i4", moments, offset=4 * moments * (2 + 2 + 1))  # after rewards, final ones, episodes
    assert steps.tolist() == [0, 1, 2, 3, 0, 1, 2]
