"""Where things must appear in a picture, and what colour they have there; derived from the descriptions alone."""

import struct
import zlib

import numpy as np

from doorstep.render import look


def shown(colour):
    """A colour of the look as pixels have it."""
    return tuple(255 * part for part in look.rgb(colour))


CUBE, WALL, FLOOR = map(shown, (look.CUBE, look.WALL, look.FLOOR))
GRID, GROUND, GOAL = map(shown, (look.GRID, look.GROUND, look.GOAL))
DOORS, AGENTS = tuple(map(shown, look.DOORS)), tuple(map(shown, look.AGENTS))
# Of faces that look up: in the light of sun and sky, and in shadow, far from other objects.
LIT, SHADED = look.SKY + look.SUN * look.TO_SUN[2] / float(np.linalg.norm(look.TO_SUN)), look.SKY


def in_light(colour, light):
    """A colour as pixels show it in so much light; light is linear (sRGB, IEC 61966-2-1)."""
    part = np.asarray(colour, np.float64) / 255
    linear = (np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4) * light).clip(0, 1)
    return 255 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def hue(colour):
    """A colour whatever the light on it."""
    values = np.asarray(colour, np.float64)
    return values / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-9)


def has_hue(pixels, colour, tolerance=0.04):
    """Which pixels show this colour, in light or in shadow."""
    return (np.linalg.norm(hue(pixels) - hue(colour), axis=-1) < tolerance) & (np.asarray(pixels).max(axis=-1) > 30)


def top_pixels(points, low, high, width, height):
    """(column, row) of points (x, y) in the view straight down on the rectangle from low to high.

    The rectangle is in the middle and takes 1 / 1.04 of the picture in one direction; +y is up, or, where that leaves
    the rectangle larger, to the right.
    """
    points, low, high = (np.asarray(values, np.float64) for values in (points, low, high))
    extent_x, extent_y = high - low
    upright = min(width / extent_x, height / extent_y) / 1.04
    lying = min(width / extent_y, height / extent_x) / 1.04
    offset = points[..., :2] - (low + high) / 2
    right, up = (offset[..., 0], offset[..., 1]) if upright >= lying else (offset[..., 1], -offset[..., 0])
    scale = max(upright, lying)
    return np.stack([width / 2 + scale * right, height / 2 - scale * up], axis=-1)


def at(picture, place):
    """The pixel at a place (column, row)."""
    column, row = np.floor(place).astype(int)
    return tuple(picture[row, column].tolist())


def read_png(data):
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


def _unfiltered(data, width, height, channels):
    stride = width * channels
    assert len(data) == height * (1 + stride)
    rows = np.zeros((height + 1, stride + channels), np.uint8)  # with a row above and a pixel to the left
    for row in range(height):
        kind, line = data[row * (1 + stride)], data[row * (1 + stride) + 1 : (row + 1) * (1 + stride)]
        for column, value in enumerate(line, channels):
            left, above = int(rows[row + 1, column - channels]), int(rows[row, column])
            corner = int(rows[row, column - channels])
            distances = {value: abs(left + above - corner - value) for value in (left, above, corner)}
            predicted = (0, left, above, (left + above) // 2, min(distances, key=distances.get))
            rows[row + 1, column] = (value + predicted[kind]) & 0xFF
    return rows[1:, channels:].reshape(height, width, channels)
