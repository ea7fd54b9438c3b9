"""Where things must appear in a picture, and what colour they have there; derived from the descriptions alone."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doorstep.render import look

Array = NDArray[np.float64]


def shown(colour: str) -> tuple[float, ...]:
    """A colour of the look as pixels have it."""
    return tuple(255 * part for part in look.rgb(colour))


CUBE, WALL, FLOOR, GRID, GROUND, GOAL = map(
    shown, (look.CUBE, look.WALL, look.FLOOR, look.GRID, look.GROUND, look.GOAL)
)
DOORS, AGENTS = tuple(map(shown, look.DOORS)), tuple(map(shown, look.AGENTS))
# Of faces that look up: in the light of sun and sky, and in shadow, far from other objects.
LIT, SHADED = look.SKY + look.SUN * look.TO_SUN[2] / float(np.linalg.norm(look.TO_SUN)), look.SKY


def in_light(colour: ArrayLike, light: float) -> Array:
    """A colour as pixels show it in so much light; light is linear (sRGB, IEC 61966-2-1)."""
    part = np.asarray(colour, np.float64) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4) * light
    linear = linear.clip(0, 1)
    return 255 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def hue(colour: ArrayLike) -> Array:
    """A colour whatever the light on it."""
    values = np.asarray(colour, np.float64)
    return values / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-9)  # type: ignore[no-any-return]


def has_hue(pixels: NDArray[Any], colour: ArrayLike, tolerance: float = 0.04) -> NDArray[np.bool_]:
    """Which pixels show this colour, in light or in shadow."""
    near = np.linalg.norm(hue(pixels) - hue(colour), axis=-1) < tolerance
    return near & (np.asarray(pixels).max(axis=-1) > 30)  # type: ignore[no-any-return]


def top_pixels(points: ArrayLike, low: ArrayLike, high: ArrayLike, width: float, height: float) -> Array:
    """(column, row) of points (x, y) in the view straight down on the rectangle from low to high.

    The rectangle is in the middle and takes 1 / 1.04 of the picture in one direction; +y is up, or, where that leaves
    the rectangle larger, to the right.
    """
    points, low, high = (np.asarray(values, np.float64) for values in (points, low, high))
    extent_x, extent_y = high - low
    upright = min(width / extent_x, height / extent_y) / 1.04
    lying = min(width / extent_y, height / extent_x) / 1.04
    offset = points[..., :2] - (low + high) / 2
    if upright >= lying:
        right, up, scale = offset[..., 0], offset[..., 1], upright
    else:
        right, up, scale = offset[..., 1], -offset[..., 0], lying
    return np.stack([width / 2 + scale * right, height / 2 - scale * up], axis=-1)


def at(picture: NDArray[Any], place: ArrayLike) -> tuple[int, ...]:
    """The pixel at a place (column, row)."""
    column, row = (int(np.floor(value)) for value in np.asarray(place))
    return tuple(int(value) for value in picture[row, column])


def read_png(data: bytes) -> NDArray[np.uint8]:
    """Decodes a PNG of 8 bits a channel without interlacing: [H, W, channels]. Slow and plain, from the standard."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    header, compressed, offset = (0, 0, 0, 0, 0, 0, 0), b"", 8
    while offset < len(data):
        length, kind = struct.unpack_from(">I4s", data, offset)
        content = data[offset + 8 : offset + 8 + length]
        assert struct.unpack_from(">I", data, offset + 8 + length)[0] == zlib.crc32(kind + content)
        header = struct.unpack(">2I5B", content) if kind == b"IHDR" else header
        compressed += content if kind == b"IDAT" else b""
        offset += 12 + length
    assert kind == b"IEND"
    width, height, depth, colour_type, *methods = header
    assert (depth, methods) == (8, [0, 0, 0])
    channels = {0: 1, 2: 3, 6: 4}[colour_type]
    return _unfiltered(zlib.decompress(compressed), width, height, channels)


def _unfiltered(data: bytes, width: int, height: int, channels: int) -> NDArray[np.uint8]:
    stride = width * channels
    assert len(data) == height * (1 + stride)
    rows = np.zeros((height + 1, stride + channels), np.uint8)  # with a row above and a pixel to the left
    for row in range(height):
        kind, line = data[row * (1 + stride)], data[row * (1 + stride) + 1 : (row + 1) * (1 + stride)]
        for column, value in enumerate(line, channels):
            left, above = int(rows[row + 1, column - channels]), int(rows[row, column])
            predicted = (0, left, above, (left + above) // 2, _paeth(left, above, int(rows[row, column - channels])))
            rows[row + 1, column] = (value + predicted[kind]) & 0xFF
    return rows[1:, channels:].reshape(height, width, channels)


def _paeth(left: int, above: int, corner: int) -> int:
    estimate = left + above - corner
    return min((left, above, corner), key=lambda value: abs(estimate - value))
