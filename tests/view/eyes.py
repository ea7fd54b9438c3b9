"""Looks at the picture in a browser as a person would: what colour is where a thing should be?"""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]

WIDTH, HEIGHT = 400, 400  # pixels
FIELD_OF_VIEW = np.radians(60.0)


class Eyes:
    """A camera of its own in the browser's scene. It looks straight down, +y is up in its picture."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.centre = np.zeros(2)
        self.height = 30.0

    def look_down(self, x: float, y: float, height: float) -> None:
        """From now on, from this height above this point."""
        self.centre, self.height = np.array([x, y]), height

    def see(self) -> Image:
        """What the browser draws, [HEIGHT, WIDTH, 3]."""
        picture = self._client.get_render(
            HEIGHT,
            WIDTH,
            wxyz=(0.0, 1.0, 0.0, 0.0),  # half a turn about +x: from looking along +z to looking down
            position=(*self.centre, self.height),
            fov=FIELD_OF_VIEW,
            transport_format="png",
            timeout=60.0,
        )
        return np.asarray(picture[..., :3], np.uint8)

    def pixel(self, point: Any) -> tuple[int, int]:
        """Row and column at which a point (x, y, z) is seen."""
        x, y, z = (float(value) for value in point)
        focal = HEIGHT / 2 / np.tan(FIELD_OF_VIEW / 2) / (self.height - z)
        return round(HEIGHT / 2 - (y - self.centre[1]) * focal), round(WIDTH / 2 + (x - self.centre[0]) * focal)

    def colour_at(self, image: Image, point: Any) -> str:
        """The name of the colour of a point."""
        return name(image[self.pixel(point)])


def name(pixel: NDArray[np.uint8]) -> str:
    """A colour in a word: what a person would say, whatever the light."""
    red, green, blue = (float(value) / 255 for value in pixel)
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if value < 0.15:
        return "black"
    if saturation < 0.18:
        return "white" if value > 0.85 else "grey"
    degrees = 360 * hue
    for limit, word in ((15, "red"), (45, "orange"), (70, "yellow"), (170, "green"), (250, "blue"), (345, "pink")):
        if degrees < limit:
            return word
    return "red"


def centroid(image: Image, colour: str) -> NDArray[np.float64]:
    """Mean row and column of the pixels of a colour."""
    rows = [(row, column) for row in range(HEIGHT) for column in range(WIDTH) if name(image[row, column]) == colour]
    return np.asarray(np.mean(rows, axis=0), np.float64)
