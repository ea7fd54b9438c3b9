"""A viewer in a thread, and what connects to it: a browser's page, or a program. Needs viser."""

import colorsys
import socket
import threading
import time
from concurrent.futures import Future

import msgspec
import numpy as np
import viser
from websockets.sync.client import connect

PATIENCE = 60.0  # seconds until a test gives up


def until(condition):
    """Calls the condition again and again until it is true, and returns its value."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return answer


class Running:
    """A viewer that runs in a thread of its own."""

    def __init__(self, viewer, server):
        self.viewer = viewer
        self.server = server
        self.url = f"http://127.0.0.1:{server.get_port()}"
        self._ended = False
        self._thread = threading.Thread(target=self._run)

    def ask(self, question):
        """Calls a function in the viewer's thread, between steps, and returns or raises what it does."""
        answered = Future()

        def answer():
            try:
                answered.set_result(question(self.viewer))
            except BaseException as error:
                answered.set_exception(error)

        self.viewer.requests.post(answer)
        return answered.result(PATIENCE)

    def error(self):
        """What the page shows as an error."""
        return self.ask(lambda viewer: viewer.error)

    def control(self, name):
        """A control of the panel."""
        return getattr(self.viewer._page.controls, name)

    def client(self):
        """viser's handle of the one browser that is connected."""
        (client,) = until(lambda: list(self.server.get_clients().values()))
        return client

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended = True
        self.viewer.requests.post(lambda: None)
        self._thread.join()

    def _run(self):
        while not self._ended:
            self.viewer.requests.wait(self.viewer.tick(time.monotonic()))


# ---- Eyes: what colour is where a thing should be?

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
        return colour(image[self.pixel(point)])


def colour(pixel):
    """A colour in a word: what a person would say, whatever the light."""
    hue, saturation, value = colorsys.rgb_to_hsv(*(float(part) / 255 for part in pixel))
    if value < 0.15:
        return "black"
    if saturation < 0.18:
        return "white" if value > 0.85 else "grey"
    words = {15: "red", 45: "orange", 70: "yellow", 170: "green", 250: "blue", 345: "pink", 361: "red"}
    return next(word for limit, word in words.items() if 360 * hue < limit)


class Watched:
    """A running viewer, the browser's page, and eyes for its picture."""

    def __init__(self, running, page):
        self.running = running
        self.page = page
        self.ask = running.ask
        self.eyes = Eyes(running.client())
        self.eyes.look_down(0, 20, 45)
        until(lambda: self.eyes.see().any())  # the worlds are drawn

    def until_seen(self, *things):
        """Waits until each point has its colour."""

        def seen(image):
            return all(self.eyes.colour_at(image, point) == colour for point, colour in things)

        until(lambda: seen(self.eyes.see()))

    def position(self):
        """Steps taken."""
        return self.ask(lambda viewer: viewer._play.position)

    def stand(self, x, y):
        """Puts agent 0 of world 0 there, facing +y, and the other one out of its way."""

        def write(viewer):
            viewer._sim.state.body_positions.to_numpy()[0, :2] = [(x, y, 0), (9, 1, 0)]
            viewer._sim.state.body_rotations.to_numpy()[0, 0] = (1, 0, 0, 0)

        self.ask(write)

    def click(self, button):
        """Clicks a button by its name."""
        self.page.get_by_role("button", name=button, exact=True).click()

    def choose(self, menu, choice):
        """Chooses from a menu."""
        self.page.get_by_role("combobox", name=menu).click()
        self.page.get_by_role("option", name=choice, exact=True).click()


_CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": (1.0, 0.0, 0.0, 0.0), "position": (0.0, 0.0, 1.0), "fov": 1.0, "near": 0.1,
    "far": 10.0, "image_height": 10, "image_width": 10, "look_at": (0.0, 1.0, 0.0), "up_direction": (0.0, 0.0, 1.0),
}  # fmt: skip


class Visitor:
    """A program that connects as a page does. origin: the site of its page; host: the viewer's name in its request."""

    def __init__(self, running, origin=None, host="127.0.0.1"):
        self._running = running
        port = running.server.get_port()
        sock, protocols = socket.create_connection(("127.0.0.1", port)), [f"viser-v{viser.__version__}"]
        how = {"sock": sock, "origin": origin, "subprotocols": protocols, "open_timeout": PATIENCE, "max_size": None}
        self._socket = connect(f"ws://{host}:{port}", **how)

    def __enter__(self):
        self._send(_CAMERA)  # with its first camera it counts as connected
        until(self._running.server.get_clients)
        return self

    def __exit__(self, *_):
        self._socket.close()

    def look(self, **camera):
        """As the page does when the camera has moved or the window has another size."""
        self._send({**_CAMERA, **camera})

    def set(self, control, value):
        """As the page does when a control is used."""
        self._send({"type": "GuiUpdateMessage", "uuid": control._impl.uuid, "updates": {"value": value}})

    def _send(self, message):
        self._socket.send(msgspec.msgpack.encode(message))
