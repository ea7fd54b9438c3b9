"""Where things must appear in a picture, and what colour they have there; derived from the descriptions alone."""

import io

import numpy as np
import pytest

from doorstep.render import look


def shown(colour):
    """A colour of the look as pixels have it."""
    return tuple(255 * part for part in look.rgb(colour))


CUBE, WALL, FLOOR, GRID = map(shown, (look.CUBE, look.WALL, look.FLOOR, look.GRID))
DOORS, AGENTS = tuple(map(shown, look.DOORS)), tuple(map(shown, look.AGENTS))
# Of faces that look up, in the light of sun and sky.
LIT = look.SKY + look.SUN * look.TO_SUN[2] / float(np.linalg.norm(look.TO_SUN))


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
    """What Pillow reads, which checks the file's sums: [H, W, channels]."""
    image = np.asarray(pytest.importorskip("PIL.Image").open(io.BytesIO(data)))
    return image.reshape(*image.shape[:2], -1)
