"""A viewer in a thread, and what connects to it: a browser's page, or a program. Needs viser."""

import socket
import threading
import time
from concurrent.futures import Future

import msgspec
import viser
from tests.view.eyes import Eyes
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

    def agent(self):
        """x and y of agent 0 of world 0."""
        return self.ask(lambda viewer: viewer._sim.state.body_positions.copy_to_host()[0, 0, :2])

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
