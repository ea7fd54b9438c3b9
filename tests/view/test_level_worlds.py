"""Worlds with levels in the viewer."""

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.render.level_worlds import full_level, mixed_levels, playing
from tests.view.running import until

from doorstep import Cameras, levels
from doorstep.viewer.agent_panel import AgentCamera
from doorstep.viewer.world_arrays import Layout, buttons, cubes, doors, walls


def test_slots_that_a_level_does_not_use_have_no_size():
    level = levels.curated()["one door"]
    with playing([level, full_level(2)]) as sim:
        layout = Layout.of(sim, 2)
        for worlds, shown in ((range(1), level), (range(1, 2), full_level(2))):
            for boxes_of, things in ((walls, "walls"), (doors, "doors"), (buttons, "buttons"), (cubes, "cubes")):
                sizes = boxes_of(sim, worlds, layout).sizes
                assert (sizes > 0).all(axis=1).sum() == len(getattr(shown, things))
                assert ((sizes > 0).all(axis=1) == (sizes != 0).any(axis=1)).all()


def test_worlds_lie_apart_also_those_without_walls():
    with playing(mixed_levels(2)) as sim:
        layout = Layout.of(sim, sim.num_worlds)
        assert ((layout.low <= (-22, -3.5)) & (layout.high >= (23, 44.5))).all()
        assert np.isfinite(layout.offsets).all()
    with playing([levels.Level(spawns=[levels.Spawn(-20, 30), levels.Spawn(4, 2)])]) as sim:
        layout = Layout.of(sim, 1)
        assert (layout.low.tolist(), layout.high.tolist()) == (pytest.approx([-21, 1]), pytest.approx([5, 31]))


def test_the_agents_picture_is_what_its_camera_sees_of_its_world_now():
    for num_agents in (1, 8):
        settings = {"num_agents": num_agents, "seed": 3, "cameras": Cameras(width=256, height=192, depth=False)}
        with playing([levels.reference(), full_level(num_agents)], **settings) as sim:
            camera, seen = AgentCamera(sim), set()
            for _ in range(2):
                for world, agent in np.ndindex(2, num_agents):
                    picture = camera.draw(world, agent)
                    assert np.array_equal(picture, sim.rgb.to_numpy()[world, agent, ..., :3])
                    seen.add(picture.tobytes())
                sim.actions = np.full(sim.actions.shape, (3, 0, 2, 0))
                sim.step()
            assert len(seen) > 2
            camera.close()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["random", "scripted"])
def test_worlds_draw_from_the_levels(open_viewer, policy):
    table = tuple(levels.curated().values())
    with open_viewer(levels=table, worlds=30, policy=policy, keep_running=True) as running:
        assert running.ask(lambda viewer: viewer._sim.levels) == table
        assert running.ask(lambda viewer: len(set(viewer._sim.level_indices.to_numpy().ravel().tolist()))) > 5
        until(lambda: running.ask(lambda viewer: viewer._sim.step_count) > 2)
        assert running.error() == ""
