"""What is shown of one agent: rewards, numbers with their units, curves, and drawings where they belong."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

import doorstep
from doorstep import EntityKind
from doorstep.viewer import agent_panel, drawings
from doorstep.viewer.agent_panel import STEPS_KEPT, RewardHistory, StepReward


def test_returns_begin_anew_with_each_episode():
    history = RewardHistory()
    assert (history.returns(), history.last) == ([], None)
    for done in (False, True, False):
        history.add(0.5, done)
    assert [episode.tolist() for episode in history.returns()] == [[0.5, 1.0], [0.5]]
    assert history.last == StepReward(0.5, 0.5)
    for _ in range(1000):
        history.add(0.5, done=False)
    assert history.returns()[0].tolist() == [0.5 * (1002 - STEPS_KEPT + step) for step in range(STEPS_KEPT)]
    history.clear()
    assert history.last is None


@pytest.fixture
def sim():
    """Agent 1 of world 1 stands in the second room, 3 m to the right of its middle, and looks to the left."""
    with doorstep.Simulator(2, seed=5) as one:
        one.state.body_positions.to_numpy()[1, :2] = [(-9, 2, 0), (3, 15, 0)]
        one.state.body_positions.to_numpy()[1, 2:5] = [(x, 20, 1.5) for x in (-5, 0, 5)]  # the cubes of that room
        one.state.body_rotations.to_numpy()[1, 1] = (np.sqrt(0.5), 0, 0, np.sqrt(0.5))
        one.state.agent_max_y.to_numpy()[1, 1] = 16
        one.refresh()
        yield one


def test_the_numbers_have_their_units_and_nothing_is_minus_zero(sim):
    table = agent_panel.table(sim, 1, 1, StepReward(reward=-0.005, total=0.25))
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", table))
    rows = "episode 1|remaining 200 steps|reward -0.0050|return +0.250|grabbing no|x 3.00 m|y 15.00 m|z 0.00 m"
    for row in f"{rows}|y in room 1.67 m|largest y 16.00 m|yaw 90 °".split("|"):
        assert f" {row} " in shown
    sim.state.body_positions.to_numpy()[1, 1, 0] = -0.001
    sim.state.body_rotations.to_numpy()[1, 1] = (1, 0, 0, -0.001)
    sim.refresh()
    assert "-0" not in agent_panel.table(sim, 1, 1, None)


def test_observations_have_names_and_the_values_that_the_agent_receives(sim):
    groups = dict(agent_panel.observations(sim, 1, 1))
    assert list(groups) == ["itself", "other agents", "the room's buttons and cubes", "the room's door"]
    own = dict(groups["itself"])
    assert (own["x"], own["y"], own["yaw"]) == pytest.approx((3 / 40, 15 / 40, 0.5))
    assert dict(groups["other agents"])["agent 0: distance"] == pytest.approx(np.hypot(12, 13) / 40, rel=1e-3)
    values = [value for rows in groups.values() for _, value in rows]
    assert (values, len(values)) == (sim.observations.to_numpy()[1, 1][: len(values)].tolist(), 8 + 3 + 18 + 3)
    with doorstep.Simulator(1, num_agents=1) as alone:
        assert "other agents" not in dict(agent_panel.observations(alone, 0, 0))


# ---- Drawings


def parts(drawing, tag):
    return list(ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}" + tag))


def numbers(element, *names):
    return tuple(float(element.attrib[name]) for name in names)


def rays(drawing):
    ends = np.array([numbers(line, "x1", "y1", "x2", "y2") for line in parts(drawing, "line")])
    return ends[:, 2:] - ends[:, :2]


def test_a_ray_ahead_points_up_the_next_ones_turn_to_the_left_and_all_are_drawn_to_scale_but_misses():
    for ray, direction in enumerate([(0, -1), (-1, 0), (0, 1), (1, 0)]):
        distances, kinds = np.zeros(4), np.zeros(4, np.int64)
        distances[ray], kinds[ray] = 5.0, EntityKind.WALL
        (along,) = rays(drawings.lidar(distances, kinds))
        assert along / np.hypot(*along) == pytest.approx(direction, abs=1e-3)
    drawing = drawings.lidar(np.array([6.0, 3.0, 0.0, 0.0]), np.array([EntityKind.CUBE, EntityKind.DOOR, 0, 0]))
    assert np.hypot(*rays(drawing).T) == pytest.approx([92 * 6 / 10, 92 * 3 / 10], abs=0.1)
    assert "10 m" in [element.text for element in parts(drawing, "text")]  # up to the next ring
    assert len({line.attrib["stroke"] for line in parts(drawing, "line")}) == 2


def test_bars_reach_to_the_side_of_the_sign_and_not_beyond_the_drawing():
    drawing = drawings.bars([("one", [("a", 0.5), ("b", -0.5), ("c", 7.0)]), ("<two>", [("d", 0.0)])])
    middle = numbers(parts(drawing, "line")[0], "x1")[0]
    (a, b, c, d) = (numbers(bar, "x", "width") for bar in parts(drawing, "rect"))
    assert (a[0], b[0] + b[1]) == (pytest.approx(middle, abs=0.1), pytest.approx(middle, abs=0.1))
    assert (a[1], d[1], c[1]) == (b[1], 0, pytest.approx(2 * a[1], abs=0.1))
    texts = [element.text or "" for element in parts(drawing, "text")]
    assert [text for text in texts if re.match(r"-?\d", text)] == ["0.50", "-0.50", "7.00", "0.00"]
    assert "<two>" in texts


def test_each_episode_has_a_curve_of_its_own_and_the_last_step_is_at_the_right():
    drawing = drawings.returns([np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5])], most=10)
    texts = [curve.attrib["points"].split() for curve in parts(drawing, "polyline")]
    curves = [[tuple(map(float, point.split(","))) for point in points] for points in texts]
    assert [len(curve) for curve in curves] == [3, 2]
    across = [x for curve in curves for x, _ in curve]
    assert (np.diff(across), across[-1]) == (pytest.approx([across[1] - across[0]] * 4, abs=0.11), 300)
    low, high = curves[0][0][1], curves[0][2][1]
    assert high < low == curves[1][0][1]  # y points down
    labels = {element.text: numbers(element, "y")[0] for element in parts(drawing, "text")}
    assert (labels["2.0"], labels["0.0"]) == (pytest.approx(high + 3, abs=0.1), pytest.approx(low + 3, abs=0.1))
    assert parts(drawings.returns([], most=10), "polyline") == []
