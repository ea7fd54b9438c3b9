"""What is shown of one agent: rewards, numbers with their units, and curves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

import doorstep
from doorstep.viewer import agent_panel
from doorstep.viewer.agent_panel import STEPS_KEPT, Plots, RewardHistory, StepReward


def test_returns_begin_anew_with_each_episode() -> None:
    history = RewardHistory()
    assert [curve.tolist() for curve in history.curves()] == [[0], [0], [0]]
    for done in (False, True, False):
        history.add(0.5, done)
    steps, rewards, totals = history.curves()
    assert steps.tolist() == [-2, -1, 0]
    assert rewards.tolist() == [0.5, 0.5, 0.5]
    assert totals.tolist() == [0.5, 1.0, 0.5]
    assert history.last == StepReward(0.5, 0.5)
    for _ in range(1000):
        history.add(0.5, done=False)
    steps, rewards, totals = history.curves()
    assert steps.tolist() == list(range(1 - STEPS_KEPT, 1))
    assert rewards.tolist() == [0.5] * STEPS_KEPT
    assert totals.tolist() == [0.5 * (1002 - STEPS_KEPT + step) for step in range(STEPS_KEPT)]
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


class FakeGui:
    """viser's panel, as far as plots need it."""

    def __init__(self) -> None:
        self.plots: dict[str, Any] = {}

    def add_uplot(self, data: tuple[Any, ...], series: Any, *, title: str, **options: Any) -> Any:
        class Handle:
            pass

        handle = self.plots[title] = Handle()
        vars(handle).update(data=data, series=series, **options)
        return handle


def test_lidar_is_a_curve_of_distances_and_one_of_kinds(sim: doorstep.Simulator) -> None:
    gui = FakeGui()
    Plots(gui, sim).show(1, 1, RewardHistory())
    angles, metres = gui.plots["lidar: distance in metres"].data
    same_angles, kinds = gui.plots["lidar: 2 cube, 3 wall, 4 agent, 5 door"].data
    assert angles.tolist() == same_angles.tolist() == list(range(0, 360, 12))
    seen = dict(zip(angles.tolist(), zip(metres.tolist(), kinds.tolist(), strict=True), strict=True))
    assert seen[0] == pytest.approx((13, 3), abs=1e-4)  # the wall on the left, x = -10
    assert seen[180] == pytest.approx((7, 3), abs=1e-4)  # the wall behind it, x = 10
    from_y = np.radians(30)  # angle between this ray and +y; the cubes begin at y = 18.5
    assert seen[300] == pytest.approx((3.5 / np.cos(from_y), 2), abs=1e-4)


def test_what_is_plotted_lies_within_the_axis_that_it_is_plotted_on(sim: doorstep.Simulator) -> None:
    gui, history = FakeGui(), RewardHistory()
    plots = Plots(gui, sim)
    for _ in range(1000):
        history.add(0.5, done=False)
    for agent in range(2):
        plots.show(1, agent, history)
        for plot in gui.plots.values():
            low, high = plot.scales["x"]["range"]
            assert plot.scales["x"]["time"] is False
            assert len(plot.data) == len(plot.series)
            assert low <= plot.data[0].min() < plot.data[0].max() <= high
    assert len(gui.plots["observations except lidar, scaled"].data[0]) == 8 + 3 + 18 + 3
