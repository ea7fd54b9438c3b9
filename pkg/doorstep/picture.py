"""Top-down pictures of worlds, as one self-contained SVG.

A `Scene` is what one world looks like at one moment, copied out of a simulator's state and tensors; `draw_scenes`
lays scenes out side by side. Inside a panel the unit is the metre and y points up, so that every number in the
file is a number of the simulation.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep import EntityKind, Simulator
from doorstep.render.objects import BUTTON_SIDE
from doorstep.render.snapshot import FloatArray, Snapshot, take_snapshots

# The observations measure lengths in units of 40 metres and kinds in sixths.
_LIDAR_RANGE_UNIT = 40.0
_KIND_UNIT = 6.0

_PIXELS_PER_METRE = 11.0
_PANEL_GAP = 26.0
_MARGIN = 30.0
_HEADER = 88.0
_LABEL = 26.0
_FOOTER = 44.0
_PANELS_PER_ROW = 5

_STYLE = """
.paper { fill: #10151d }
.title { fill: #f2f5f9; font: 600 21px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif }
.subtitle, .label { fill: #8c99aa; font: 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif }
.name { fill: #dfe6ee; font: 600 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif }
.floor { fill: #1b2330 }
.wall { fill: #66748a }
.door.closed { fill: #ef4f4a }
.door.open { fill: #34d27b; fill-opacity: 0.12; stroke: #34d27b; stroke-width: 0.16; stroke-dasharray: 0.5 0.32 }
.button { fill: #f4c430; fill-opacity: 0.10; stroke: #f4c430; stroke-width: 0.17 }
.button.pressed { fill-opacity: 1 }
.cube { fill: #b9702b; stroke: #e8a765; stroke-width: 0.14; stroke-linejoin: round }
.cube-top { fill: #cf8740 }
.agent .body { stroke: #10151d; stroke-width: 0.12 }
.agent .facing { fill: #10151d; fill-opacity: 0.82 }
.ray { stroke: #7fd3ff; stroke-opacity: 0.5; stroke-width: 0.07 }
.hit { fill: #b9e6ff }
.hit-cube { fill: #ffc98a }
.hit-door { fill: #ffb3b0 }
.hit-agent { fill: #ffffff }
.grab { stroke: #ffffff; stroke-width: 0.22; stroke-linecap: round }
"""
_AGENT_COLOURS = ("#58a6ff", "#f778ba", "#7ee787", "#d2a8ff", "#ffa657", "#76e3ea", "#ffd8b5", "#c8d1da")


@dataclass(frozen=True)
class Scene(Snapshot):
    """A snapshot with what the agents see."""

    lidar: FloatArray  # [A, rays, 2]


def capture_scenes(sim: Simulator, worlds: Sequence[int]) -> list[Scene]:
    """Copies what `draw_scenes` needs to know about some worlds of `sim` as they are now."""
    lidar = sim.lidar.copy_to_host()
    return [
        Scene(**vars(snapshot), lidar=lidar[world].copy())
        for world, snapshot in zip(worlds, take_snapshots(sim, worlds), strict=True)
    ]


def draw_scenes(scenes: Sequence[Scene], title: str, subtitle: str = "") -> str:
    """Returns an SVG document with a panel per scene, a title and a legend."""
    if not scenes:
        raise ValueError("draw_scenes needs at least one scene")
    bounds = _Bounds.around(scenes)
    columns = min(len(scenes), _PANELS_PER_ROW)
    rows = math.ceil(len(scenes) / columns)
    panel_width, panel_height = bounds.width * _PIXELS_PER_METRE, bounds.height * _PIXELS_PER_METRE
    width = max(2 * _MARGIN + columns * panel_width + (columns - 1) * _PANEL_GAP, 940.0)
    height = _HEADER + rows * (panel_height + _LABEL + _PANEL_GAP) + _FOOTER

    svg = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {_number(width)} {_number(height)}",
            "width": _number(width),
            "height": _number(height),
            "role": "img",
        },
    )
    _add(svg, "title").text = title
    _add(svg, "style").text = _STYLE
    _add(svg, "rect", {"class": "paper"}, width=width, height=height, rx=14)
    _add(svg, "text", {"class": "title"}, x=_MARGIN, y=44).text = title
    _add(svg, "text", {"class": "subtitle"}, x=_MARGIN, y=66).text = subtitle
    left = (width - columns * panel_width - (columns - 1) * _PANEL_GAP) / 2
    for index, scene in enumerate(scenes):
        row, column = divmod(index, columns)
        x = left + column * (panel_width + _PANEL_GAP)
        y = _HEADER + row * (panel_height + _LABEL + _PANEL_GAP)
        _draw_panel(svg, scene, bounds, index, x, y)
        _draw_label(svg, scene, x, y + panel_height + 20)
    _draw_legend(svg, len(scenes[0].agent_grabs), width, height - _FOOTER / 2 - 4)
    ElementTree.indent(svg)
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


@dataclass(frozen=True)
class _Bounds:
    """The rectangle of the floor that every panel shows, in metres."""

    left: float
    bottom: float
    width: float
    height: float

    @staticmethod
    def around(scenes: Sequence[Scene]) -> _Bounds:
        lows, highs = zip(*(scene.floor_bounds() for scene in scenes), strict=True)
        low, high = np.min(lows, axis=0), np.max(highs, axis=0)
        return _Bounds(float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1]))

    @property
    def top(self) -> float:
        return self.bottom + self.height


# ---- One panel, from the floor up


def _draw_panel(svg: ElementTree.Element, scene: Scene, bounds: _Bounds, index: int, x: float, y: float) -> None:
    clip = _add(svg, "clipPath", {"id": f"panel-{index}"})
    _add_box(clip, "", bounds.left, bounds.bottom, bounds.width, bounds.height)
    scale = _number(_PIXELS_PER_METRE)
    origin_x = x - bounds.left * _PIXELS_PER_METRE
    origin_y = y + bounds.top * _PIXELS_PER_METRE
    panel = _add(
        svg,
        "g",
        {
            "class": "world",
            "data-world": str(scene.world),
            "transform": f"translate({_number(origin_x)} {_number(origin_y)}) scale({scale} -{scale})",
            "clip-path": f"url(#panel-{index})",
        },
    )
    _add_box(panel, "floor", bounds.left, bounds.bottom, bounds.width, bounds.height)
    _draw_buttons(panel, scene)
    _draw_statics(panel, scene)
    _draw_cubes(panel, scene)
    _draw_lidar(panel, scene)
    _draw_agents(panel, scene)


def _draw_buttons(panel: ElementTree.Element, scene: Scene) -> None:
    for position, pressed in zip(scene.button_positions, scene.button_pressed, strict=True):
        _add_centred_box(panel, "button pressed" if pressed else "button", position, (BUTTON_SIDE, BUTTON_SIDE))


def _draw_statics(panel: ElementTree.Element, scene: Scene) -> None:
    is_open = {int(slot): bool(flag) for slot, flag in zip(scene.door_static, scene.door_open, strict=True)}
    for slot, kind in enumerate(scene.static_kinds):
        if kind == EntityKind.WALL:
            style = "wall"
        elif kind == EntityKind.DOOR:
            style = "door open" if is_open.get(slot, False) else "door closed"
        else:
            continue
        _add_centred_box(panel, style, scene.static_positions[slot], scene.static_sizes[slot])


def _draw_cubes(panel: ElementTree.Element, scene: Scene) -> None:
    for position, rotation, size, kind in zip(
        scene.body_positions, scene.body_rotations, scene.body_sizes, scene.body_kinds, strict=True
    ):
        if kind == EntityKind.CUBE:
            shadow = _box_shadow(position, rotation, size)
            _add(panel, "polygon", {"class": "cube", "points": _points(shadow)})
            inner = position[:2] + 0.62 * (shadow - position[:2])
            _add(panel, "polygon", {"class": "cube-top", "points": _points(inner)})


def _draw_lidar(panel: ElementTree.Element, scene: Scene) -> None:
    agent = scene.leader
    origin = scene.body_positions[agent]
    depths, kinds = scene.lidar[agent, :, 0] * _LIDAR_RANGE_UNIT, scene.lidar[agent, :, 1] * _KIND_UNIT
    # sample 0 looks straight ahead, the following ones go counter-clockwise
    angles = _yaw(scene.body_rotations[agent]) + np.pi / 2 + 2 * np.pi * np.arange(len(depths)) / len(depths)
    group = _add(panel, "g", {"class": "lidar", "data-agent": str(agent)})
    for depth, kind, angle in zip(depths, kinds, angles, strict=True):
        if depth <= 0:
            continue  # hit nothing
        end_x = origin[0] + depth * math.cos(angle)
        end_y = origin[1] + depth * math.sin(angle)
        name = EntityKind(round(float(kind))).name.lower()
        _add(group, "line", {"class": "ray", "data-hit": name}, x1=origin[0], y1=origin[1], x2=end_x, y2=end_y)
        _add(group, "circle", {"class": f"hit hit-{name}"}, cx=end_x, cy=end_y, r=0.17)


def _draw_agents(panel: ElementTree.Element, scene: Scene) -> None:
    for agent, held in enumerate(scene.agent_grabs):
        if held >= 0:
            start, end = scene.body_positions[agent], scene.body_positions[held]
            _add(panel, "line", {"class": "grab"}, x1=start[0], y1=start[1], x2=end[0], y2=end[1])
    for agent in range(len(scene.agent_grabs)):
        position, size = scene.body_positions[agent], scene.body_sizes[agent]
        degrees = math.degrees(_yaw(scene.body_rotations[agent]))
        _add_agent(panel, agent, position, degrees, size)


def _add_agent(
    parent: ElementTree.Element, agent: int, position: Sequence[float] | FloatArray, degrees: float, size: Any
) -> None:
    """A square with an arrowhead that shows where the agent looks; forward is +y in the agent's own frame."""
    transform = f"translate({_number(position[0])} {_number(position[1])}) rotate({_number(degrees)})"
    group = _add(parent, "g", {"class": "agent", "data-agent": str(agent), "transform": transform})
    half_x, half_y = float(size[0]) / 2, float(size[1]) / 2
    colour = _AGENT_COLOURS[agent % len(_AGENT_COLOURS)]
    body = {"class": "body", "fill": colour}
    _add(group, "rect", body, x=-half_x, y=-half_y, width=2 * half_x, height=2 * half_y, rx=0.35 * half_x)
    arrow = np.array([[-0.66, -0.42], [0.0, 0.74], [0.66, -0.42], [0.0, -0.08]]) * (half_x, half_y)
    _add(group, "polygon", {"class": "facing", "points": _points(arrow)})


# ---- Around the panels


def _draw_label(svg: ElementTree.Element, scene: Scene, x: float, y: float) -> None:
    text = _add(svg, "text", {"class": "label"}, x=x, y=y)
    name = _add(text, "tspan", {"class": "name"})
    name.text = f"world {scene.world}"
    name.tail = f" reached {scene.agent_max_y.max():.1f} m"


def _draw_legend(svg: ElementTree.Element, num_agents: int, width: float, y: float) -> None:
    entries = [f"agent {agent}" for agent in range(num_agents)] if num_agents <= 2 else ["agents"]
    entries += ["cube", "wall", "door, closed", "door, open", "button", "button, pressed", "lidar"]
    icon_width, letter_width, gap = 24.0, 6.9, 24.0
    widths = [icon_width + letter_width * len(entry) + gap for entry in entries]
    x = (width - sum(widths) + gap) / 2
    for index, (entry, entry_width) in enumerate(zip(entries, widths, strict=True)):
        scale = _number(_PIXELS_PER_METRE)
        transform = f"translate({_number(x + 8)} {_number(y)}) scale({scale} -{scale})"
        icon = _add(svg, "g", {"class": "legend", "transform": transform})
        _draw_icon(icon, entry, index)
        _add(svg, "text", {"class": "label"}, x=x + icon_width, y=y + 4.5).text = entry
        x += entry_width


def _draw_icon(icon: ElementTree.Element, entry: str, agent: int) -> None:
    centre = (0.0, 0.0)
    if entry.startswith("agent"):
        _add_agent(icon, agent, centre, 0.0, (1.9, 1.9))
    elif entry == "lidar":
        _add(icon, "line", {"class": "ray"}, x1=-0.9, y1=-0.5, x2=0.8, y2=0.5)
        _add(icon, "circle", {"class": "hit"}, cx=0.8, cy=0.5, r=0.2)
    elif entry in ("wall", "door, closed", "door, open"):
        _add_centred_box(icon, entry.replace(",", ""), centre, (1.9, 0.9))
    else:
        side = 1.6 if entry == "cube" else BUTTON_SIDE
        _add_centred_box(icon, entry.replace(",", ""), centre, (side, side))


# ---- Geometry


def _yaw(rotation: FloatArray) -> float:
    """Counter-clockwise turn about +z, in radians; zero looks along +y."""
    w, x, y, z = (float(value) for value in rotation)
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def _box_shadow(position: FloatArray, rotation: FloatArray, size: FloatArray) -> NDArray[np.float64]:
    """Outline of a box seen from above, however it lies: [corners, 2], counter-clockwise."""
    w, x, y, z = (float(value) for value in rotation)
    # first two rows of the rotation matrix
    matrix = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        ]
    )
    signs = np.array([(i & 1, i >> 1 & 1, i >> 2) for i in range(8)]) - 0.5
    corners = (signs * size) @ matrix.T
    return _convex_hull(corners) + position[:2]


def _convex_hull(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Andrew's monotone chain: the hull's corners, counter-clockwise."""
    ordered = sorted({(round(float(x), 4), round(float(y), 4)) for x, y in points})

    def chain(candidates: list[tuple[float, float]]) -> list[tuple[float, float]]:
        kept: list[tuple[float, float]] = []
        for point in candidates:
            while len(kept) >= 2 and _turn(kept[-2], kept[-1], point) <= 0:
                kept.pop()
            kept.append(point)
        return kept[:-1]

    return np.array(chain(ordered) + chain(ordered[::-1]))


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Positive where a, b, c turn left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


# ---- SVG


def _add(
    parent: ElementTree.Element, tag: str, attributes: dict[str, str] | None = None, **numbers: float
) -> ElementTree.Element:
    written = {name: _number(value) for name, value in numbers.items()}
    return ElementTree.SubElement(parent, tag, {**(attributes or {}), **written})


def _add_box(parent: ElementTree.Element, style: str, x: float, y: float, width: float, height: float) -> None:
    _add(parent, "rect", {"class": style} if style else None, x=x, y=y, width=width, height=height)


def _add_centred_box(parent: ElementTree.Element, style: str, centre: Any, size: Any) -> None:
    _add_box(parent, style, centre[0] - size[0] / 2, centre[1] - size[1] / 2, size[0], size[1])


def _points(corners: NDArray[np.float64]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in corners)


def _number(value: float) -> str:
    """At most a millimetre of resolution, and no trailing zeros."""
    return f"{float(value):.3f}".rstrip("0").rstrip(".")
