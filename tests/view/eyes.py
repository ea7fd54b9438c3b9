"""Looks at the picture in a browser as a person would: what colour is where a thing should be?"""

import colorsys

import numpy as np

WIDTH, HEIGHT = 400, 400  # pixels
FIELD_OF_VIEW = np.radians(60.0)


class Eyes:
    """A camera of its own in the browser's scene. It looks straight down, +y is up in its picture."""

    def __init__(self, client):
        self._client = client
        self.centre = np.zeros(2)
        self.height = 30.0

    def look_down(self, x, y, height):
        """From now on, from this height above this point."""
        self.centre, self.height = np.array([x, y]), height

    def see(self):
        """What the browser draws, [HEIGHT, WIDTH, 3]."""
        down = (0.0, 1.0, 0.0, 0.0)  # half a turn about +x: from looking along +z
        place = {"wxyz": down, "position": (*self.centre, self.height), "fov": FIELD_OF_VIEW}
        picture = self._client.get_render(HEIGHT, WIDTH, **place, transport_format="png", timeout=60.0)
        return np.asarray(picture[..., :3], np.uint8)

    def pixel(self, point):
        """Row and column at which a point (x, y, z) is seen."""
        x, y, z = (float(value) for value in point)
        focal = HEIGHT / 2 / np.tan(FIELD_OF_VIEW / 2) / (self.height - z)
        return round(HEIGHT / 2 - (y - self.centre[1]) * focal), round(WIDTH / 2 + (x - self.centre[0]) * focal)

    def colour_at(self, image, point):
        """The name of the colour of a point."""
        return name(image[self.pixel(point)])


def name(pixel):
    """A colour in a word: what a person would say, whatever the light."""
    hue, saturation, value = colorsys.rgb_to_hsv(*(float(part) / 255 for part in pixel))
    if value < 0.15:
        return "black"
    if saturation < 0.18:
        return "white" if value > 0.85 else "grey"
    words = {15: "red", 45: "orange", 70: "yellow", 170: "green", 250: "blue", 345: "pink", 361: "red"}
    return next(word for limit, word in words.items() if 360 * hue < limit)
