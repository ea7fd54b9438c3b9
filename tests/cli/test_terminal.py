"""The progress line, on a terminal and in a log; colours."""

import contextlib
import io

import pytest
from tests.cli.conftest import Terminal

from doorstep.cli.terminal import Progress, clock, coloured


@pytest.fixture
def now(monkeypatch):
    """The time, in seconds; every change is drawn."""
    time = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: time[0])
    monkeypatch.setattr("doorstep.cli.terminal.REDRAW_SECONDS", 0)
    return time


@pytest.mark.usefixtures("now")
def test_on_a_terminal_the_bar_is_redrawn_in_one_line_and_goes_away_at_the_end_or_an_interrupt(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    with Progress(4, terminal) as progress:
        progress.update(1, "first")
        progress.update(4, "last")
    assert terminal.getvalue() == (
        "\r[########........................]  25%  step 1 of 4, 0:00 left  first\x1b[K"
        "\r[################################] 100%  step 4 of 4  last\x1b[K"
        "\r\x1b[K"
    )
    terminal = Terminal()
    with contextlib.suppress(KeyboardInterrupt), Progress(10, terminal) as progress:
        progress.update(5, "")
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\r\x1b[K")
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    with Progress(4, terminal) as progress:  # details are redrawn below the bar, cut to the width, and stay
        progress.update(2, "remark", ["one", "two"])
        progress.update(4, "remark", ["a line that is too long"])
    assert terminal.getvalue() == (
        "\r 50%  step 2 of 4, \x1b[K\none\x1b[K\ntwo\x1b[K"
        "\x1b[2A\r100%  step 4 of 4\x1b[K\na line that is too \x1b[K\n\x1b[K\n"
    )


def test_the_time_that_is_left_follows_from_the_steps_since_the_beginning_or_from_what_ends_first(now):
    log = io.StringIO()
    progress = Progress(100, log, "update", done=10)
    now[0] = 60.0
    progress.update(20)
    assert log.getvalue() == " 20%  update 20 of 100, 8:00 left  \n"
    log, now[0] = io.StringIO(), 0.0
    progress = Progress(100, log, "update", done=10, seconds=120)
    for now[0], done in ((30, 11), (60, 60), (120, 70), (125, 71)):
        progress.update(done)
    assert log.getvalue().splitlines() == [
        " 25%  update 11 of 100, 1:30 left  ",
        " 60%  update 60 of 100, 0:48 left  ",
        "100%  update 70 of 100  ",
        "100%  update 71 of 100  ",
    ]
    times = {0: "0:00", 59.6: "1:00", 3599: "59:59", 3723: "1:02:03"}
    assert {seconds: clock(seconds) for seconds in times} == times


def test_on_a_terminal_not_every_step_is_drawn_and_a_log_has_a_line_every_ten_seconds_and_the_last(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    terminal = Terminal()
    with Progress(100_000, terminal) as progress:
        for done in range(1, 1001):
            now[0] += 0.001
            progress.update(done, "")
    assert 3 < terminal.getvalue().count("\r") < 100
    log = io.StringIO()
    with Progress(25, log) as progress:
        for done in range(1, 26):
            now[0] += 1.0
            progress.update(done, f"remark {done}", ["not in logs"])
    assert log.getvalue().splitlines() == [
        " 40%  step 10 of 25, 0:15 left  remark 10",
        " 80%  step 20 of 25, 0:05 left  remark 20",
        "100%  step 25 of 25  remark 25",
    ]


def test_colours_are_for_terminals_without_no_color(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured("NO", "red", Terminal()) == "\x1b[31mNO\x1b[0m"
    assert coloured("NO", "red", io.StringIO()) == "NO"
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("NO", "red", Terminal()) == "NO"
