"""What holds of every renderer: it shows what double precision says and what the others show, of the present worlds."""

from contextlib import nullcontext

import numpy as np
import pytest
from tests.render.agreement import FLOOR, OUTPUTS, boxes_of, cast, check_agreement, rays_of, silhouettes, views_of
from tests.render.level_worlds import full_level, mixed_levels, playing
from tests.render.on_vulkan import each_renderer
from tests.scenes import random_actions

from doorstep import Cameras, EntityKind, Simulator, levels

TURNED = (0.8, -0.5, 0.2, 0.26457513110645903)
UP, DOWN = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0), (np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0)
SMALL = {"width": 24, "height": 16}


def step_randomly(sim, steps):
    for actions in random_actions(5, steps, sim.num_worlds, sim.num_agents):
        sim.actions.copy_from_host(actions)
        sim.step()


def views(renderer, num_worlds=5, num_agents=2, steps=10, edit=None, table=None, num_threads=1, **camera):
    """What all agents see after random actions."""
    settings = {"seed": 5, "num_agents": num_agents, "num_threads": num_threads}
    settings["cameras"] = Cameras(**{**OUTPUTS, **camera}, renderer=renderer)
    sim = Simulator(num_worlds, **settings) if table is None else playing(table, num_worlds, **settings)
    with sim:
        if table is None:
            sim.reset()  # as worlds with levels were
        step_randomly(sim, steps)
        if edit:
            edit(sim.state)
            sim.refresh()
        return views_of(sim)


def oddly(state):
    state.static_kinds.to_numpy()[0] = EntityKind.AGENT
    state.body_positions.to_numpy()[3, 0, 0] = 1e30
    state.body_positions.to_numpy()[4, 1] = np.nan


def played(num_agents, num_worlds):
    return {"table": mixed_levels(num_agents), "num_agents": num_agents, "num_worlds": num_worlds, **SMALL}


SCENES = {
    "": {}, "odd size": {"width": 37, "height": 23, "num_worlds": 33}, "one pixel": {"width": 1, "height": 1},
    "narrow": {"fov": 0.1}, "wide": {"fov": 150.0, "width": 50, "height": 50},
    "turned": {"position": (0.3, -2.5, 4.0), "rotation": TURNED}, "below the floor": {"position": (0.0, 0.0, -1.0)},
    "one agent": {"num_agents": 1, **SMALL},
    "eight agents": {"num_agents": 8, "num_worlds": 3, "width": 40, "height": 30},
    "edited": {"edit": oddly, "steps": 0},
    "levels of two": played(2, None), "levels of three": played(3, 5), "levels of eight": played(8, 4),
}  # fmt: skip


def test_agreement_notices_one_pixel_of_any_output():
    good = views("raycast", num_worlds=2, steps=5)
    view, row, column = np.argwhere((good["segmentation"][..., 0] == FLOOR) & ~silhouettes(good))[500]
    far = 2e-3 * float(good["depth"][view, row, column, 0] + 1)
    for name, too_little, enough in (("rgb", 1, 2), ("depth", 5e-4, far), ("normals", 5e-4, 2e-3)):
        for by in (too_little, enough):
            bad = {**good, name: good[name].copy()}
            bad[name][view, row, column, 0] += np.asarray(by).astype(bad[name].dtype)
            with pytest.raises(AssertionError, match=f"1 pixels of {name}") if by == enough else nullcontext():
                check_agreement(good, bad, 0.4)
    bad = {**good, "segmentation": good["segmentation"].copy()}
    bad["segmentation"][view] = (EntityKind.DOOR, 1)
    with pytest.raises(AssertionError):
        check_agreement(good, bad, 0.4)


@each_renderer
def test_all_see_the_same(renderer):
    """The others are compared with the ray caster, and that with itself where worlds are stepped by more threads."""
    for name, scene in SCENES.items():
        if (name, renderer) == ("edited", "vulkan"):
            continue  # from 1e30 m away it sees no floor
        others = views("raycast", **scene, num_threads=1 + (renderer == "raycast"))
        check_agreement(views(renderer, **scene), others, 0.7 if name == "one pixel" else 0.4)


@each_renderer
def test_depth_and_things_are_those_of_slabs_in_double_precision(renderer):
    cameras = Cameras(width=60, height=44, segmentation=True, renderer=renderer)
    with Simulator(6, seed=11, num_threads=1, cameras=cameras) as sim:
        step_randomly(sim, 30)
        sim.state.button_pressed.to_numpy()[2] = 1
        sim.refresh()
        pixels, differing, kinds = 0, 0, set()
        for world, agent in np.ndindex(6, 2):
            depth, seen = cast(*rays_of(sim, world, agent, cameras), *boxes_of(sim, world))
            drawn = sim.segmentation.to_numpy()[world, agent]
            is_box = drawn[..., 0] != EntityKind.AGENT
            same = (drawn == seen).all(-1) & is_box
            pixels, differing = pixels + is_box.sum(), differing + (is_box & ~same).sum()
            far = np.abs(sim.depth.to_numpy()[world, agent, ..., 0] - depth) / np.maximum(1, depth)
            assert far[same].max() < 5e-4
            kinds |= set(drawn[..., 0].ravel().tolist())
    assert differing < 2e-3 * pixels  # on edges
    assert kinds >= {0, EntityKind.BUTTON, EntityKind.CUBE, EntityKind.WALL, EntityKind.DOOR, FLOOR}


@each_renderer
def test_up_is_the_sky_and_down_the_floor_at_its_distance(renderer):
    settings = {"width": 9, "height": 9, "renderer": renderer, **OUTPUTS}
    with Simulator(2, cameras=Cameras(fov=20.0, position=(0, 0, 8), rotation=UP, **settings)) as sim:
        assert not any(sim.tensors[name].to_numpy().any() for name in ("segmentation", "depth", "normals"))
        assert (sim.rgb.to_numpy() == (158, 194, 230, 255)).all()  # 0.62, 0.76, 0.90 of 255
    with Simulator(2, cameras=Cameras(fov=2.0, position=(0, 3.0, 4.5), rotation=DOWN, **settings)) as sim:
        assert (sim.segmentation.to_numpy() == (FLOOR, 0)).all()
        assert sim.depth.to_numpy() == pytest.approx(4.5, abs=1e-5)
        assert np.abs(sim.normals.to_numpy() - (0, 0, 1)).max() < 1e-6


@each_renderer
def test_bits_depend_on_the_worlds_alone(renderer):
    """Neither on threads, nor on other outputs, nor on other worlds."""
    size = {"width": 21, "height": 13}
    everything = views(renderer, 9, **size)
    for table in (None, mixed_levels(2)[:9]):
        alone, together = (views(renderer, 9, table=table, num_threads=threads, **size) for threads in (1, 3))
        assert all((alone[name] == together[name]).all() for name in OUTPUTS)
    for name in OUTPUTS:
        wanted = {output: output == name for output in OUTPUTS}
        with Simulator(9, seed=5, cameras=Cameras(**size, renderer=renderer, **wanted)) as sim:
            assert str(sim.renderer).startswith(renderer)
            sim.reset()
            step_randomly(sim, 10)
            assert [other for other in OUTPUTS if other in sim.tensors] == [name]
            assert np.array_equal(sim.tensors[name].to_numpy().reshape(everything[name].shape), everything[name])
    first = views(renderer, 4, steps=0, **size)
    with Simulator(1, seed=5, world_offset=3, cameras=Cameras(**size, renderer=renderer, **OUTPUTS)) as sim:
        sim.reset()
        assert all(np.array_equal(view, first[name][6:]) for name, view in views_of(sim).items())


@each_renderer
def test_everything_that_changes_worlds_draws_again(renderer):
    """What is drawn is what a new simulator draws of the same state, and worlds that stay keep their pixels."""
    cameras = Cameras(width=20, height=16, renderer=renderer, **OUTPUTS)
    with Simulator(4, seed=2, num_threads=1, cameras=cameras) as sim:
        first, saved = sim.rgb.copy_to_host(), sim.save()

        def edit():
            sim.state.body_rotations.to_numpy()[2, 0] = (np.cos(0.5), 0, 0, np.sin(0.5))
            sim.refresh()

        changes = [
            (lambda: step_randomly(sim, 8), range(4)), (lambda: sim.step_async().wait(), None),
            (lambda: sim.reset([1, 3]), [1, 3]), (edit, [2]), (lambda: sim.restore(saved), range(4)),
        ]  # fmt: skip
        for change, worlds in changes:
            before = sim.rgb.copy_to_host()
            change()
            with Simulator(4, seed=9, num_threads=1, cameras=cameras) as other:
                other.restore(sim.save())
                shown, expected = views_of(sim), views_of(other)
            assert all(np.array_equal(shown[name], expected[name]) for name in OUTPUTS)
            changed = (sim.rgb.to_numpy() != before).reshape(4, -1).any(axis=1)
            assert worlds is None or np.flatnonzero(changed).tolist() == list(worlds)
        assert np.array_equal(sim.rgb.to_numpy(), first)
        tensor, picture = sim.rgb, sim.rgb.copy_to_host()
    assert np.array_equal(tensor.to_numpy(), picture)  # views outlive the simulator


@each_renderer
def test_odd_edits_draw_something_and_harm_no_other_world(renderer):
    def edit(state):
        state.body_positions.to_numpy()[0, [0, 3]] = np.nan
        state.body_positions.to_numpy()[0, 4] = np.inf
        state.static_sizes.to_numpy()[0, 0] = 1e30
        state.static_positions.to_numpy()[0, 1, 2] = -50

    edited, untouched = (views(renderer, 2, steps=0, edit=one, **SMALL) for one in (edit, None))
    assert np.isfinite(edited["depth"]).all()
    assert all(np.array_equal(edited[name][2:], untouched[name][2:]) for name in OUTPUTS)


@each_renderer
def test_levels_are_drawn_as_worlds_without_and_those_of_the_present_table(renderer):
    for num_agents in (1, 2, 8):
        plain = views(renderer, 3, num_agents, 8, **SMALL)
        leveled = views(renderer, 3, num_agents, 8, table=[levels.reference()], **SMALL)
        assert all(leveled[name].tobytes() == plain[name].tobytes() for name in OUTPUTS)
    cameras = Cameras(width=128, height=96, segmentation=True, renderer=renderer, position=(0, 0, 9))
    with playing([full_level(8)], num_agents=8, num_threads=1, cameras=cameras) as sim:
        kinds = sim.state.body_kinds, sim.state.static_kinds, sim.state.button_positions
        assert sum(field.shape[1] for field in kinds) == 8 + 24 + 32 + 12
        assert all((field.to_numpy() != EntityKind.NONE).all() for field in kinds[:2])
        things = set(map(tuple, sim.segmentation.to_numpy().reshape(-1, 2).tolist()))
        of_kind = {kind: {slot for other, slot in things if other == kind} for kind in EntityKind}
        assert of_kind[EntityKind.CUBE] == set(range(8, 32))
        assert all(len(of_kind[kind]) > least for kind, least in ((EntityKind.WALL, 15), (EntityKind.BUTTON, 6)))
        before = sim.rgb.copy_to_host()
        sim.set_levels([levels.reference()])
        sim.reset()
        assert (sim.rgb.to_numpy() != before).any(axis=-1).mean() > 0.3
