"""A viewer in a thread, and a browser's page that looks at it. Needs viser."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from tests.view.eyes import Eyes

from doorstep.view.viewer import Viewer

PATIENCE = 60.0  # seconds until a test gives up

T = TypeVar("T")


def until(condition: Callable[[], T]) -> T:
    """Asks again and again, until the answer is true."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return answer


class Running:
    """A viewer that a thread of its own runs."""

    def __init__(self, viewer: Viewer, server: Any) -> None:
        self.viewer = viewer
        self.server = server
        self.url = f"http://127.0.0.1:{server.get_port()}"
        self._ended = False
        self._thread = threading.Thread(target=self._run)

    def ask(self, question: Callable[[Viewer], T]) -> T:
        """The answer, given by the viewer's thread: nothing moves meanwhile. What it raises comes out here."""
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

    def client(self) -> Any:
        """viser's handle of the one browser that looks."""
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
        until(lambda: self.eyes.see().any())  # the worlds are there

    def until_seen(self, *things: tuple[Any, str]) -> None:
        """Waits until each point has its colour."""

        def seen() -> bool:
            image = self.eyes.see()
            return all(self.eyes.colour_at(image, point) == colour for point, colour in things)

        until(seen)

    def click(self, button: str) -> None:
        """Clicks a button by its name."""
        self.page.get_by_role("button", name=button, exact=True).click()

    def choose(self, menu: str, choice: str) -> None:
        """Chooses from a menu."""
        self.page.get_by_role("combobox", name=menu).click()
        self.page.get_by_role("option", name=choice, exact=True).click()


OpenViewer = Callable[..., AbstractContextManager[Running]]
Watch = Callable[..., AbstractContextManager[Watched]]
