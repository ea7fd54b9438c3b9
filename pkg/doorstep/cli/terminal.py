"""What commands write to a terminal: how far they are, redrawn in place, and colours."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from typing import TextIO, final

_BAR_WIDTH, _SMALLEST_BAR_WIDTH = 32, 8
REDRAW_SECONDS, LOG_SECONDS = 0.1, 10.0
_COLOURS = {"red": 31, "green": 32, "yellow": 33}


@final
class Progress:
    """Shows how many of `total` things are done, and the time that is left: on a terminal by lines that are redrawn, in
    a log by a line every ten seconds, and by the last one.

    A context manager: at its end, also after an exception, a single line is erased from the terminal; several stay.

    Args:
        total: things to do.
        stream: a terminal, or a log.
        thing: what is counted.
        done: how many were done before.
        seconds: after which it ends in any case; None: no limit.
    """

    def __init__(
        self, total: int, stream: TextIO, thing: str = "step", done: int = 0, seconds: float | None = None
    ) -> None:
        self._total = total
        self._thing = thing
        self._stream = stream
        self._on_terminal = stream.isatty()
        self._first = done
        self._seconds = float("inf") if seconds is None else seconds
        self._began_at = self._shown_at = time.monotonic()
        self._height = 0  # lines that are drawn

    def update(self, done: int, remark: str = "", details: Sequence[str] = ()) -> None:
        """Call after each step.

        Args:
            done: how many are done by now.
            remark: in the same line.
            details: further lines, which a terminal shows in place of the remark.
        """
        now = time.monotonic()
        is_due = now - self._shown_at >= (REDRAW_SECONDS if self._on_terminal else LOG_SECONDS)
        passed = now - self._began_at
        percent = max(100 * done // self._total, min(int(100 * passed / self._seconds), 100))
        if not (is_due or percent == 100):
            return
        self._shown_at = now
        text = f"{percent:3d}%  {self._thing} {done:,} of {self._total:,}"
        left = min(passed / max(done - self._first, 1) * (self._total - done), self._seconds - passed)
        text += f", {clock(left)} left" if percent < 100 else ""
        if self._on_terminal:
            self._redraw([_with_bar(percent, text if details else f"{text}  {remark}"), *details])
        else:
            self._write(f"{text}  {remark}\n")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._height == 1:
            self._write("\r\x1b[K")
        elif self._height:
            self._write("\n")

    def _redraw(self, lines: Sequence[str]) -> None:
        """Lines are narrower than the terminal: one that wraps cannot be redrawn."""
        up = f"\x1b[{self._height - 1}A" if self._height > 1 else ""
        blank = [""] * (self._height - len(lines))  # over lines that were drawn
        self._height = max(self._height, len(lines))
        self._write(f"{up}\r" + "\n".join(f"{line[: _columns()]}\x1b[K" for line in (*lines, *blank)))

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _with_bar(percent: int, text: str) -> str:
    """The bar takes the space that is left in the terminal's width."""
    width = min(_BAR_WIDTH, _columns() - len(text) - len("[] "))
    filled = width * percent // 100
    return text if width < _SMALLEST_BAR_WIDTH else f"[{'#' * filled}{'.' * (width - filled)}] {text}"


def _columns() -> int:
    return shutil.get_terminal_size().columns - 1


def clock(seconds: float) -> str:
    """Hours, minutes and seconds: "1:02:03", "2:03"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour where `stream` is a terminal, unless the environment has NO_COLOR (https://no-color.org)."""
    plain = not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"
