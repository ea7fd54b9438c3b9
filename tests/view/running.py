"""A viewer in a thread, and what connects to it: a browser's page, or a program. Needs viser."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import msgspec
import viser
from tests.view.eyes import Eyes
from websockets.sync.client import connect

from doorstep.viewer.viewer import Viewer

PATIENCE = 60.0  # seconds until a test gives up

T = TypeVar("T")


def until(condition: Callable[[], T]) -> T:
    """Calls the condition again and again until it is true, and returns its value."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return answer


class Running:
    """A viewer that runs in a thread of its own."""

    def __init__(self, viewer: Viewer, server: Any) -> None:
        self.viewer = viewer
        self.server = server
        self.url = f"http://127.0.0.1:{server.get_port()}"
        self._ended = False
        self._thread = threading.Thread(target=self._run)

    def ask(self, question: Callable[[Viewer], T]) -> T:
        """Calls a function in the viewer's thread, between steps, and returns or raises what it does."""
        answers: list[T] = []
        errors: list[BaseException] = []
        answered = threading.Event()

        def answer() -> None:
            try:
                answers.append(question(self.viewer))
            except BaseException as error:
                errors.append(error)
            answered.set()

        self.viewer.requests.post(answer)
        assert answered.wait(PATIENCE)
        for error in errors:
            raise error
        return answers[0]

    def error(self) -> str:
        """What the page shows as an error."""
        return self.ask(lambda viewer: viewer.error)

    def control(self, name: str) -> Any:
        """A control of the panel."""
        return getattr(self.viewer._page.controls, name)

    def client(self) -> Any:
        """viser's handle of the one browser that is connected."""
        (client,) = until(lambda: list(self.server.get_clients().values()))
        return client

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self.viewer.requests.post(lambda: None)
        self._thread.join()

    def _run(self) -> None:
        while not self._ended:
            self.viewer.requests.wait(self.viewer.tick(time.monotonic()))


class Watched:
    """A running viewer, the browser's page, and eyes for its picture."""

    def __init__(self, running: Running, page: Any) -> None:
        self.running = running
        self.page = page
        self.ask = running.ask
        self.eyes = Eyes(running.client())
        self.eyes.look_down(0, 20, 45)
        until(lambda: self.eyes.see().any())  # the worlds are drawn

    def until_seen(self, *things: tuple[Any, str]) -> None:
        """Waits until each point has its colour."""

        def seen() -> bool:
            image = self.eyes.see()
            return all(self.eyes.colour_at(image, point) == colour for point, colour in things)

        until(seen)

    def position(self) -> int:
        """Steps taken."""
        return self.ask(lambda viewer: viewer._play.position)

    def agent(self) -> Any:
        """x and y of agent 0 of world 0."""
        return self.ask(lambda viewer: viewer._sim.state.body_positions.copy_to_host()[0, 0, :2])

    def stand(self, x: float, y: float) -> None:
        """Puts agent 0 of world 0 there, facing +y, and the other one out of its way."""

        def write(viewer: Viewer) -> None:
            viewer._sim.state.body_positions.to_numpy()[0, :2] = [(x, y, 0), (9, 1, 0)]
            viewer._sim.state.body_rotations.to_numpy()[0, 0] = (1, 0, 0, 0)

        self.ask(write)

    def click(self, button: str) -> None:
        """Clicks a button by its name."""
        self.page.get_by_role("button", name=button, exact=True).click()

    def choose(self, menu: str, choice: str) -> None:
        """Chooses from a menu."""
        self.page.get_by_role("combobox", name=menu).click()
        self.page.get_by_role("option", name=choice, exact=True).click()


_CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": (1.0, 0.0, 0.0, 0.0),
    "position": (0.0, 0.0, 1.0),
    "fov": 1.0,
    "near": 0.1,
    "far": 10.0,
    "image_height": 10,
    "image_width": 10,
    "look_at": (0.0, 1.0, 0.0),
    "up_direction": (0.0, 0.0, 1.0),
}


class Visitor:
    """A program that connects as a page does. origin: the site of its page; host: the viewer's name in its request."""

    def __init__(self, running: Running, origin: str | None = None, host: str = "127.0.0.1") -> None:
        self._running = running
        port = running.server.get_port()
        self._socket = connect(
            f"ws://{host}:{port}",
            sock=socket.create_connection(("127.0.0.1", port)),
            origin=origin,
            subprotocols=[f"viser-v{viser.__version__}"],
            open_timeout=PATIENCE,
            max_size=None,
        )

    def __enter__(self) -> Visitor:
        self._send(_CAMERA)  # with its first camera it counts as connected
        until(self._running.server.get_clients)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def look(self, **camera: object) -> None:
        """As the page does when the camera has moved or the window has another size."""
        self._send({**_CAMERA, **camera})

    def set(self, control: Any, value: object) -> None:
        """As the page does when a control is used."""
        self._send({"type": "GuiUpdateMessage", "uuid": control._impl.uuid, "updates": {"value": value}})

    def _send(self, message: dict[str, object]) -> None:
        self._socket.send(msgspec.msgpack.encode(message))


OpenViewer = Callable[..., AbstractContextManager[Running]]
Watch = Callable[..., AbstractContextManager[Watched]]
