"""Worlds with levels in the viewer."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.render.level_worlds import full_level, mixed_levels, playing

from doorstep import levels
from doorstep.viewer.agent_panel import AgentCamera
from doorstep.viewer.world_arrays import Layout, buttons, cubes, doors, walls


def test_slots_that_a_level_does_not_use_have_no_size() -> None:
    level = levels.curated()["one door"]
    with playing([level, full_level(2)]) as sim:
        layout = Layout.of(sim, 2)
        for worlds, shown in ((range(1), level), (range(1, 2), full_level(2))):
            for boxes_of, things in ((walls, "walls"), (doors, "doors"), (buttons, "buttons"), (cubes, "cubes")):
                sizes = boxes_of(sim, worlds, layout).sizes
                assert (sizes > 0).all(axis=1).sum() == len(getattr(shown, things))
                assert ((sizes > 0).all(axis=1) == (sizes != 0).any(axis=1)).all()


def test_worlds_lie_apart() -> None:
    with playing(mixed_levels(2)) as sim:
        layout = Layout.of(sim, sim.num_worlds)
        assert (layout.low <= (-22, -3.5)).all()
        assert (layout.high >= (23, 44.5)).all()
        assert np.isfinite(layout.offsets).all()


def test_a_level_without_walls_has_a_place() -> None:
    with playing([levels.Level(spawns=[levels.Spawn(-20, 30), levels.Spawn(4, 2)])]) as sim:
        layout = Layout.of(sim, 1)
        assert layout.low.tolist() == pytest.approx([-21, 1])
        assert layout.high.tolist() == pytest.approx([5, 31])


@pytest.mark.parametrize("num_agents", [1, 2, 8])
def test_the_agents_picture_is_of_its_level(num_agents: int) -> None:
    with playing([levels.reference(), full_level(num_agents)], num_agents=num_agents, seed=3) as sim:
        camera = AgentCamera(sim)
        pictures = [camera.draw(world, num_agents - 1) for world in range(2)]
        assert (pictures[0] != pictures[1]).any(axis=-1).mean() > 0.1
        sim.step()
        assert camera.draw(0, 0).shape == pictures[0].shape
        camera.close()
