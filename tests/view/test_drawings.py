"""Drawings of the panel show the numbers that they are given, where they belong."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from doorstep import EntityKind
from doorstep.viewer import drawings

_SVG = "{http://www.w3.org/2000/svg}"


def parts(drawing: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(drawing).iter(_SVG + tag))


def numbers(element: ElementTree.Element, *names: str) -> tuple[float, ...]:
    return tuple(float(element.attrib[name]) for name in names)


def texts(drawing: str) -> list[str]:
    return [element.text or "" for element in parts(drawing, "text")]


@pytest.mark.parametrize(("ray", "direction"), [(0, (0, -1)), (1, (-1, 0)), (2, (0, 1)), (3, (1, 0))])
def test_a_ray_ahead_points_up_and_the_next_ones_turn_to_the_left(ray: int, direction: Sequence[int]) -> None:
    distances, kinds = np.zeros(4), np.zeros(4, np.int64)
    distances[ray], kinds[ray] = 5.0, EntityKind.WALL
    (line,) = parts(drawings.lidar(distances, kinds), "line")
    x1, y1, x2, y2 = numbers(line, "x1", "y1", "x2", "y2")
    length = np.hypot(x2 - x1, y2 - y1)
    assert ((x2 - x1) / length, (y2 - y1) / length) == pytest.approx(direction, abs=1e-3)


def test_lidar_is_drawn_to_scale_up_to_the_next_ring_and_misses_are_not_drawn() -> None:
    distances, kinds = np.array([6.0, 3.0, 0.0, 0.0]), np.array([EntityKind.CUBE, EntityKind.DOOR, 0, 0])
    drawing = drawings.lidar(distances, kinds)
    lengths = [np.hypot(x2 - x1, y2 - y1) for x1, y1, x2, y2 in
               (numbers(line, "x1", "y1", "x2", "y2") for line in parts(drawing, "line"))]  # fmt: skip
    assert lengths == pytest.approx([92 * 6 / 10, 92 * 3 / 10], abs=0.1)
    assert "10 m" in texts(drawing)
    colours = [line.attrib["stroke"] for line in parts(drawing, "line")]
    assert len(set(colours)) == 2


def test_bars_reach_to_the_side_of_the_sign_and_not_beyond_the_drawing() -> None:
    drawing = drawings.bars([("one", [("a", 0.5), ("b", -0.5), ("c", 7.0)]), ("<two>", [("d", 0.0)])])
    middle = numbers(parts(drawing, "line")[0], "x1")[0]
    (a, b, c, d) = (numbers(bar, "x", "width") for bar in parts(drawing, "rect"))
    assert a[0] == pytest.approx(middle, abs=0.1)
    assert b[0] + b[1] == pytest.approx(middle, abs=0.1)
    assert a[1] == b[1]
    assert c[1] == pytest.approx(2 * a[1], abs=0.1)
    assert d[1] == 0
    assert [text for text in texts(drawing) if re.match(r"-?\d", text)] == ["0.50", "-0.50", "7.00", "0.00"]
    assert "<two>" in texts(drawing)


def test_each_episode_has_a_curve_of_its_own_and_the_last_step_is_at_the_right() -> None:
    drawing = drawings.returns([np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5])], most=10)
    curves = [
        [tuple(map(float, point.split(","))) for point in curve.attrib["points"].split()]
        for curve in parts(drawing, "polyline")
    ]
    assert [len(curve) for curve in curves] == [3, 2]
    across = [x for curve in curves for x, _ in curve]
    assert np.diff(across) == pytest.approx([across[1] - across[0]] * 4, abs=0.11)
    assert across[-1] == 300
    (low, high), second = (curves[0][0][1], curves[0][2][1]), curves[1][0][1]
    assert high < low == second  # y points down


def test_a_return_before_any_step_is_an_empty_drawing() -> None:
    assert parts(drawings.returns([], most=10), "polyline") == []
