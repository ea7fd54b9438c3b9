"""What commands write to a terminal: one progress line, redrawn in place, and colours."""

from __future__ import annotations

import os
import shutil
import time
from typing import TextIO

_BAR_WIDTH, _SMALLEST_BAR_WIDTH = 32, 8
_REDRAW_SECONDS = 0.1
_LINES_IN_A_LOG = 5
_COLOURS = {"red": 31, "green": 32, "yellow": 33}


class Progress:
    """Shows how many of `total` steps are done, with a remark: a line on a terminal, a few lines in a log.

    thing: what is counted, if not steps.

    A context manager: at its end, also after an exception, the line is erased from the terminal.
    """

    def __init__(self, total: int, stream: TextIO, thing: str = "step") -> None:
        self._total = total
        self._thing = thing
        self._stream = stream
        self._on_terminal = stream.isatty()
        self._drawn_at = 0.0
        self._lines = 0

    def update(self, done: int, remark: str) -> None:
        """Call after each step; at most ten updates a second are drawn."""
        if self._on_terminal:
            self._redraw(done, remark)
        elif done * _LINES_IN_A_LOG >= (self._lines + 1) * self._total:
            self._lines = done * _LINES_IN_A_LOG // self._total
            self._write(f"{self._text(done)}  {remark}\n")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._on_terminal:
            self._write("\r\x1b[K")

    def _redraw(self, done: int, remark: str) -> None:
        now = time.monotonic()
        if now - self._drawn_at >= _REDRAW_SECONDS or done == self._total:
            self._drawn_at = now
            self._write(f"\r{self._line(done, remark)}\x1b[K")

    def _line(self, done: int, remark: str) -> str:
        """Narrower than the terminal, for a line that wraps cannot be redrawn. The bar takes the space that is left."""
        space = shutil.get_terminal_size().columns - 1
        text = f"{self._text(done)}  {remark}"
        width = min(_BAR_WIDTH, space - len(text) - len("[] "))
        if width < _SMALLEST_BAR_WIDTH:
            return text[:space]
        filled = width * done // self._total
        return f"[{'#' * filled}{'.' * (width - filled)}] {text}"

    def _text(self, done: int) -> str:
        return f"{100 * done // self._total:3d}%  {self._thing} {done:,} of {self._total:,}"

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour where `stream` is a terminal, unless the environment has NO_COLOR (https://no-color.org)."""
    plain = not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"
