"""Drawings of numbers for the panel, as SVG: lidar around the agent, observations as bars, rewards over time.

Sizes are in units of the drawing, which is as wide as the panel. Text and axes have the colour of the panel's text.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from doorstep._native import EntityKind
from doorstep.render import look

Floats = NDArray[np.float64]

_WIDTH = 300.0
_FAINT, _TEXT = 'stroke="currentColor" stroke-opacity="0.15"', 'fill="currentColor" font-size="9"'
_KIND_COLOURS = {
    EntityKind.CUBE: look.CUBE,
    EntityKind.WALL: look.MUTED,
    EntityKind.AGENT: look.AGENTS[0],
    EntityKind.DOOR: look.DOORS[0],
}
_RETURN_COLOUR, _BAR_COLOUR = look.AGENTS[0], look.AGENTS[2]


def _svg(height: float, parts: Sequence[str], says: str) -> str:
    box = f'viewBox="0 0 {_WIDTH:g} {height:g}" style="width: 100%; display: block; padding: 0 0.6em"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{says}" {box}>{"".join(parts)}</svg>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:.1f}" {_TEXT} text-anchor="{anchor}">{html.escape(text)}</text>'


# ---- Lidar ----

_LIDAR_HEIGHT, _LIDAR_RADIUS = 210.0, 92.0
_RING = 5.0  # metres


def lidar(distances: Floats, kinds: NDArray[np.int64]) -> str:
    """What the rays of an agent hit, seen from above; the agent is in the middle and looks up.

    Args:
        distances: metres, [rays], counter-clockwise from ahead.
        kinds: of entities that were hit, [rays]; 0: nothing.
    """
    reach = _RING * max(math.ceil(float(distances.max(initial=0)) / _RING), 1)
    scale = _LIDAR_RADIUS / reach
    x, y = _WIDTH / 2, _LIDAR_HEIGHT / 2 - 8
    angles = 2 * np.pi * np.arange(len(distances)) / len(distances)
    ends = np.stack([x - scale * distances * np.sin(angles), y - scale * distances * np.cos(angles)], axis=1)
    parts = [_ring(x, y, _LIDAR_RADIUS * part) for part in (0.5, 1)]
    for (to_x, to_y), kind in zip(ends.tolist(), kinds.tolist(), strict=True):
        colour = _KIND_COLOURS.get(EntityKind(kind))
        if colour:
            parts.append(
                f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}" stroke-opacity="0.3"/>'
                f'<circle cx="{to_x:.1f}" cy="{to_y:.1f}" r="3" fill="{colour}"/>'
            )
    parts.append(f'<path d="M{x - 5:g} {y + 5:g} L{x:g} {y - 7:g} L{x + 5:g} {y + 5:g} Z" fill="currentColor"/>')
    parts.append(_text(x + 3, y - _LIDAR_RADIUS + 9, f"{reach:g} m"))
    return _svg(_LIDAR_HEIGHT, [*parts, *_legend()], "lidar, seen from above")


def _ring(x: float, y: float, radius: float) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="none" {_FAINT}/>'


def _legend() -> list[str]:
    """The colours of kinds, in one line."""
    step, y = _WIDTH / len(_KIND_COLOURS), _LIDAR_HEIGHT - 6
    return [
        f'<circle cx="{step * (i + 0.25):g}" cy="{y - 3:g}" r="3" fill="{colour}"/>'
        + _text(step * (i + 0.25) + 6, y, kind.name.lower())
        for i, (kind, colour) in enumerate(_KIND_COLOURS.items())
    ]


# ---- Observations ----

_ROW, _LABEL_WIDTH, _NUMBER_WIDTH = 11.0, 120.0, 34.0


def bars(groups: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """Groups of values, each with a label and a bar from the middle: as far as the end for 1 and -1."""
    parts, y = [], 0.0
    middle = (_LABEL_WIDTH + _WIDTH - _NUMBER_WIDTH) / 2
    half = middle - _LABEL_WIDTH
    for title, rows in groups:
        y += _ROW
        parts.append(f"<g font-weight='bold'>{_text(0, y + 8, title)}</g>")
        for label, value in rows:
            y += _ROW
            length = half * min(abs(value), 1)
            start = middle if value >= 0 else middle - length
            parts += [
                _text(6, y + 8, label),
                f'<rect x="{start:.1f}" y="{y + 2:g}" width="{length:.1f}" height="7" fill="{_BAR_COLOUR}"/>',
                _text(_WIDTH, y + 8, f"{value + 0.0:.2f}", "end"),
            ]
        y += 3
    height = y + _ROW + 2
    axis = f'<line x1="{middle:g}" y1="0" x2="{middle:g}" y2="{height:g}" {_FAINT}/>'
    return _svg(height, [axis, *parts], "observations")


# ---- Rewards ----

_CURVE_HEIGHT, _CURVE_TOP, _CURVE_BOTTOM, _CURVE_LEFT = 110.0, 14.0, 96.0, 34.0


def returns(totals: Sequence[Floats], most: int) -> str:
    """Curves of the return of the last steps, one for each episode, the last step at the right end.

    Args:
        totals: of each episode, the sums of rewards after each of its steps, one after the other in time.
        most: steps from the left end to the right one.
    """
    known = np.concatenate([*totals, np.zeros(1)])
    low, high = float(known.min()), max(float(known.max()), float(known.min()) + 0.1)
    width = (_WIDTH - _CURVE_LEFT) / max(most - 1, 1)
    height = (_CURVE_BOTTOM - _CURVE_TOP) / (high - low)

    def across(step: float) -> float:
        return _WIDTH - width * step

    def up(value: float) -> float:
        return _CURVE_BOTTOM - height * (value - low)

    parts = [f'<line x1="{_CURVE_LEFT:g}" y1="{up(0):.1f}" x2="{_WIDTH:g}" y2="{up(0):.1f}" {_FAINT}/>']
    parts += [_text(_CURVE_LEFT - 4, up(value) + 3, f"{value:.1f}", "end") for value in (low, high)]
    ends = np.cumsum([len(one) for one in totals])
    count = int(ends[-1]) if len(ends) else 0
    for one, end in zip(totals, ends.tolist(), strict=True):
        first = count - end + len(one) - 1  # steps ago
        points = " ".join(f"{across(first - i):.1f},{up(value):.1f}" for i, value in enumerate(one.tolist()))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{_RETURN_COLOUR}" stroke-width="1.5"/>')
    for end in itertools.islice(ends.tolist(), max(len(ends) - 1, 0)):
        x = across(count - end - 0.5)
        parts.append(f'<line x1="{x:.1f}" y1="{_CURVE_TOP:g}" x2="{x:.1f}" y2="{_CURVE_BOTTOM:g}" {_FAINT}/>')
    parts.append(_text(_CURVE_LEFT, 9, "return, episode by episode"))
    parts.append(_text(_WIDTH, _CURVE_HEIGHT - 2, "now", "end"))
    parts.append(_text(_CURVE_LEFT, _CURVE_HEIGHT - 2, f"{most} steps ago"))
    return _svg(_CURVE_HEIGHT, parts, "return of the last steps")
