"""The drawing with dimensions of docs/reference/environment.md, as SVG: a world from above, and its heights.

Places and sizes are those of a simulator's first level, the rays are its lidar's, the colours are those of pictures. +y
is to the right and +x downwards, so that yaw turns as in the world.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import doorstep
from doorstep._native import EntityKind
from doorstep.levels.generated import ROOM_ENDS
from doorstep.levels.parts import BUTTON_SIZE
from doorstep.render import look

SEED = 34
METRE = 20  # units of the drawing
SIZE = (1000, 760)
ORIGIN = (116, 300)  # of the plan: where x = y = 0 is
GROUND = 720  # of the heights: where z = 0 is
DISTANCE_UNIT = 40  # metres; of observed distances
TICK = 5
GRID = 5  # metres
UPRIGHT = 90  # degrees
PAPER = "#ffffff"


class Box(NamedTuple):
    """Something of a level: its centre in x and y, its full extents, and which one of its kind it is."""

    kind: int
    x: float
    y: float
    size: tuple[float, float, float]
    number: int = 0


class Drawing:
    """Elements of SVG."""

    def __init__(self) -> None:
        width, height = SIZE
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
            f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
        ]

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str, turn: float = 0) -> None:
        """Turned counter-clockwise about its centre, degrees."""
        turned = f' transform="rotate({-turn:.1f} {x + width / 2:.1f} {y + height / 2:.1f})"' if turn else ""
        corner = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.lines.append(f'<rect {corner} fill="{fill}" stroke="{look.MUTED}"{turned}/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str = look.MUTED, width: float = 1) -> None:
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        self.lines.append(f'<line {ends} stroke="{colour}" stroke-width="{width:g}"/>')

    def disc(self, x: float, y: float, radius: float, fill: str) -> None:
        self.lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}"/>')

    def text(self, x: float, y: float, text: str, turn: float = 0, anchor: str = "middle", size: float = 16) -> None:
        """Letters with a rim of the paper's colour, so that lines below do not cross them."""
        turned = f' transform="rotate({-turn:g} {x:.1f} {y:.1f})"' if turn else ""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}"'
        rim = f'stroke="{PAPER}" stroke-width="3" paint-order="stroke"'
        self.lines.append(f'<text {place} {rim} fill="{look.TEXT}"{turned}>{escape(text)}</text>')

    def dimension(self, x1: float, y1: float, x2: float, y2: float, text: str) -> None:
        """A level or upright line between two ticks, with its length above it or to its left."""
        upright = x1 == x2
        self.line(x1, y1, x2, y2)
        for x, y in ((x1, y1), (x2, y2)):
            across, along = (TICK, 0) if upright else (0, TICK)
            self.line(x - across, y - along, x + across, y + along)
        middle = (x1 + x2) / 2 - 6 * upright, (y1 + y2) / 2 - 6 * (not upright)
        self.text(*middle, text, UPRIGHT * upright)


def plan(path: Path) -> None:
    """Draws a world from above, and the heights of what is in it."""
    with doorstep.Simulator(1, seed=SEED) as sim:
        boxes = boxes_of(sim)
        yaws = [math.pi * float(yaw) for yaw in sim.self_observations[0, :, 6]]
        distances = (DISTANCE_UNIT * sim.lidar[0, 0, :, 0]).tolist()
    drawing = Drawing()
    draw_floor(drawing, boxes)
    agents = [box for box in boxes if box.kind == EntityKind.AGENT]
    for box in boxes[: -len(agents)]:
        draw_box(drawing, box)
    draw_rays(drawing, agents[0], yaws[0], distances)
    for agent, yaw in zip(agents, yaws, strict=True):
        draw_box(drawing, agent, yaw)
        drawing.text(*at(agent.x + 0.25, agent.y), str(agent.number))
    draw_lengths(drawing, boxes)
    draw_axes(drawing)
    draw_heights(drawing, boxes)
    path.write_text("\n".join([*drawing.lines, "</svg>", ""]), encoding="utf-8")


def boxes_of(sim: doorstep.Simulator) -> list[Box]:
    """Buttons, walls and doors, cubes and agents of world 0, the agents last."""
    state = sim.state
    doors = state.door_static[0].tolist()
    statics = [
        Box(int(kind), float(x), float(y), tuple(size.tolist()), doors.index(slot) if slot in doors else 0)
        for slot, (kind, (x, y, _), size) in enumerate(
            zip(state.static_kinds[0], state.static_positions[0], state.static_sizes[0], strict=True)
        )
        if kind != EntityKind.NONE
    ]
    plate = (BUTTON_SIZE, BUTTON_SIZE, 0.0)
    buttons = [
        Box(EntityKind.BUTTON, float(x), float(y), plate, int(door))
        for (x, y, _), door in zip(state.button_positions[0], state.button_doors[0], strict=True)
    ]
    bodies = [
        Box(int(kind), float(x), float(y), tuple(size.tolist()), number)
        for number, (kind, (x, y, _), size) in enumerate(
            zip(state.body_kinds[0], state.body_positions[0], state.body_sizes[0], strict=True)
        )
        if kind != EntityKind.NONE
    ]
    return buttons + statics + sorted(bodies, key=lambda box: box.kind)  # of which agents have the largest


# ---- From above


def at(x: float, y: float) -> tuple[float, float]:
    """Where a point of the world is on the plan."""
    return ORIGIN[0] + METRE * y, ORIGIN[1] + METRE * x


def half_width(boxes: Sequence[Box]) -> float:
    """x of the inner side of the wall on the right; the one on the left mirrors it."""
    wall = max((box for box in boxes if box.kind == EntityKind.WALL), key=lambda box: box.x)
    return wall.x - wall.size[0] / 2


def draw_floor(drawing: Drawing, boxes: Sequence[Box]) -> None:
    half, end = half_width(boxes), ROOM_ENDS[-1]
    (left, top), (right, bottom) = at(-half, 0), at(half, end)
    drawing.rectangle(left, top, right - left, bottom - top, look.FLOOR)
    for y in range(GRID, round(end), GRID):
        drawing.line(*at(-half, y), *at(half, y), look.GRID)
    for x in range(GRID - round(half), round(half), GRID):
        drawing.line(*at(x, 0), *at(x, end), look.GRID)
    drawing.text(right + 24, ORIGIN[1], "no wall: the floor goes on", UPRIGHT)


def draw_box(drawing: Drawing, box: Box, yaw: float = 0) -> None:
    fill = {
        EntityKind.WALL: look.BORDER,
        EntityKind.CUBE: look.CUBE,
        EntityKind.AGENT: look.AGENTS[box.number % len(look.AGENTS)],
    }.get(EntityKind(box.kind), look.DOORS[box.number])
    x, y = at(box.x - box.size[0] / 2, box.y - box.size[1] / 2)
    drawing.rectangle(x, y, METRE * box.size[1], METRE * box.size[0], fill, math.degrees(yaw))


def draw_rays(drawing: Drawing, agent: Box, yaw: float, distances: Sequence[float]) -> None:
    """Rays of an agent, the first one straight ahead, the others counter-clockwise."""
    for number, distance in enumerate(distances):
        angle = yaw + 2 * math.pi * number / len(distances)
        x, y = agent.x - distance * math.sin(angle), agent.y + distance * math.cos(angle)
        drawing.line(*at(agent.x, agent.y), *at(x, y), look.AGENTS[agent.number], 2 if number == 0 else 0.7)
        drawing.disc(*at(x, y), 2.5, look.AGENTS[agent.number])
    degrees = 360 / len(distances)
    drawing.text(*at(-1.3, 6.2), f"{len(distances)} rays of lidar, {degrees:g}° apart", size=15)


def draw_lengths(drawing: Drawing, boxes: Sequence[Box]) -> None:
    """Of the world, the rooms, walls and doors, and one of each thing in them."""
    half, ends = half_width(boxes), (0.0, *ROOM_ENDS)
    above, below = at(-half, 0)[1] - 44, at(half, 0)[1] + 54
    drawing.dimension(at(0, 0)[0], above, at(0, ends[-1])[0], above, metres(ends[-1]))
    for number, (near, far) in enumerate(zip(ends, ROOM_ENDS, strict=False)):
        drawing.dimension(at(0, near)[0], below, at(0, far)[0], below, f"room {number}: {metres(far - near)}")
    edge = at(0, 0)[0] - 50
    drawing.dimension(edge, at(-half, 0)[1], edge, at(half, 0)[1], metres(2 * half))
    draw_door_lengths(drawing, boxes)
    cube, agent = of_kind(boxes, EntityKind.CUBE), of_kind(boxes, EntityKind.AGENT)
    button = next(box for box in boxes if box.number == 1)  # of the second door
    drawing.text(*at(button.x + 1.7, button.y), f"button {button.size[0]:g} x {metres(button.size[1])}", size=15)
    drawing.text(*at(cube.x - 1.8, cube.y), f"cube {metres(cube.size[0])}", size=15)
    drawing.text(*at(agent.x - 1.4, agent.y + 2.2), f"agent {metres(agent.size[0])}", size=15)


def draw_door_lengths(drawing: Drawing, boxes: Sequence[Box]) -> None:
    """Of a door and the opening that it closes."""
    door = of_kind(boxes, EntityKind.DOOR)
    beside = [box for box in boxes if box.kind == EntityKind.WALL and box.y == door.y]
    low = max(box.x + box.size[0] / 2 for box in beside if box.x < door.x)
    high = min(box.x - box.size[0] / 2 for box in beside if box.x > door.x)
    near, far = at(0, door.y - 1.2)[0], at(0, door.y + 1.6)[0]
    drawing.dimension(near, at(low, 0)[1], near, at(high, 0)[1], f"opening {metres(high - low)}")
    ends = at(door.x - door.size[0] / 2, 0)[1], at(door.x + door.size[0] / 2, 0)[1]
    drawing.dimension(far, ends[0], far, ends[1], f"door {metres(door.size[0])}")


def draw_axes(drawing: Drawing) -> None:
    """Where x = y = 0 is, and the directions of the axes."""
    drawing.disc(*at(0, 0), 4, look.TEXT)
    for end, name, place in (((0, 3), "+y", (0.3, 3.8)), ((3, 0), "+x", (3.2, 0.8))):
        drawing.line(*at(0, 0), *at(*end), look.TEXT, 2)
        drawing.disc(*at(*end), 3, look.TEXT)
        drawing.text(*at(*place), name)


# ---- Heights


def draw_heights(drawing: Drawing, boxes: Sequence[Box]) -> None:
    """What stands on the floor, side by side, across its shorter side."""
    outer, inner = boxes_by_height(boxes)
    cube, agent, door = (of_kind(boxes, kind) for kind in (EntityKind.CUBE, EntityKind.AGENT, EntityKind.DOOR))
    things = (
        ("outer wall", outer, look.BORDER),
        ("wall between rooms", inner, look.BORDER),
        ("door", door, look.DOORS[0]),
        ("cube", cube, look.CUBE),
        ("agent", agent, look.AGENTS[0]),
    )
    drawing.line(ORIGIN[0] - METRE, GROUND, SIZE[0] - ORIGIN[0], GROUND)
    for number, (name, box, fill) in enumerate(things):
        thickness, height = min(box.size[:2]), box.size[2]
        middle, top = ORIGIN[0] + 64 + 170 * number, GROUND - METRE * height
        left, right = middle - METRE * thickness / 2, middle + METRE * thickness / 2
        drawing.rectangle(left, top, right - left, GROUND - top, fill)
        drawing.dimension(left - 12, top, left - 12, GROUND, metres(height))
        drawing.dimension(left, top - 10, right, top - 10, metres(thickness))
        drawing.text(middle, GROUND + 20, name)


def boxes_by_height(boxes: Sequence[Box]) -> tuple[Box, Box]:
    """The highest wall and the lowest one."""
    walls = sorted((box for box in boxes if box.kind == EntityKind.WALL), key=lambda box: box.size[2])
    return walls[-1], walls[0]


def of_kind(boxes: Sequence[Box], kind: EntityKind) -> Box:
    return next(box for box in boxes if box.kind == kind)


def metres(length: float) -> str:
    return f"{round(length, 3):g} m"
