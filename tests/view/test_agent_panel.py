"""What is shown of one agent: rewards, numbers with their units, and curves."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

import doorstep
from doorstep.viewer import agent_panel
from doorstep.viewer.agent_panel import STEPS_KEPT, RewardHistory, StepReward


def test_returns_begin_anew_with_each_episode() -> None:
    history = RewardHistory()
    assert (history.returns(), history.last) == ([], None)
    for done in (False, True, False):
        history.add(0.5, done)
    assert [episode.tolist() for episode in history.returns()] == [[0.5, 1.0], [0.5]]
    assert history.last == StepReward(0.5, 0.5)
    for _ in range(1000):
        history.add(0.5, done=False)
    (episode,) = history.returns()
    assert episode.tolist() == [0.5 * (1002 - STEPS_KEPT + step) for step in range(STEPS_KEPT)]
    history.clear()
    assert history.last is None


@pytest.fixture
def sim() -> Iterator[doorstep.Simulator]:
    """Agent 1 of world 1 stands in the second room, 3 m to the right of its middle, and looks to the left."""
    with doorstep.Simulator(2, seed=5) as one:
        one.state.body_positions.to_numpy()[1, :2] = [(-9, 2, 0), (3, 15, 0)]
        one.state.body_positions.to_numpy()[1, 2:5] = [(x, 20, 1.5) for x in (-5, 0, 5)]  # the cubes of that room
        one.state.body_rotations.to_numpy()[1, 1] = (np.sqrt(0.5), 0, 0, np.sqrt(0.5))
        one.state.agent_max_y.to_numpy()[1, 1] = 16
        one.refresh()
        yield one


def test_the_numbers_have_their_units(sim: doorstep.Simulator) -> None:
    table = agent_panel.table(sim, 1, 1, StepReward(reward=-0.005, total=0.25))
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", table))
    for row in (
        "episode 1",
        "remaining 200 steps",
        "reward -0.0050",
        "return +0.250",
        "grabbing no",
        "x 3.00 m",
        "y 15.00 m",
        "z 0.00 m",
        "y in room 1.67 m",
        "largest y 16.00 m",
        "yaw 90 °",
    ):
        assert f" {row} " in shown


def test_nothing_is_minus_zero(sim: doorstep.Simulator) -> None:
    sim.state.body_positions.to_numpy()[1, 1, 0] = -0.001
    sim.state.body_rotations.to_numpy()[1, 1] = (1, 0, 0, -0.001)
    sim.refresh()
    assert "-0" not in agent_panel.table(sim, 1, 1, None)


def test_observations_have_names_and_the_values_that_the_agent_receives(sim: doorstep.Simulator) -> None:
    groups = dict(agent_panel.observations(sim, 1, 1))
    assert list(groups) == ["itself", "other agents", "the room's buttons and cubes", "the room's door"]
    own = dict(groups["itself"])
    assert (own["x"], own["y"], own["yaw"]) == pytest.approx((3 / 40, 15 / 40, 0.5))
    partner = dict(groups["other agents"])
    assert partner["agent 0: distance"] == pytest.approx(np.hypot(12, 13) / 40, rel=1e-3)
    values = [value for rows in groups.values() for _, value in rows]
    flat = sim.observations.to_numpy()[1, 1]
    assert values == flat[: len(values)].tolist()
    assert len(values) == 8 + 3 + 18 + 3


def test_an_agent_alone_has_no_row_of_others() -> None:
    with doorstep.Simulator(1, num_agents=1) as sim:
        assert "other agents" not in dict(agent_panel.observations(sim, 0, 0))
