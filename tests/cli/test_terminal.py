"""The progress line, on a terminal and in a log; colours."""

import io

import pytest

from doorstep.cli.terminal import Progress, clock, coloured


class Terminal(io.StringIO):
    """Collects what is drawn, and says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_bar_is_redrawn_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    monkeypatch.setattr("doorstep.cli.terminal.REDRAW_SECONDS", 0)
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    with Progress(4, terminal) as progress:
        progress.update(1, "first")
        progress.update(4, "last")
    assert terminal.getvalue() == (
        "\r[########........................]  25%  step 1 of 4, 0:00 left  first\x1b[K"
        "\r[################################] 100%  step 4 of 4  last\x1b[K"
        "\r\x1b[K"
    )


def test_on_a_terminal_details_are_redrawn_below_the_bar_and_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr("doorstep.cli.terminal.REDRAW_SECONDS", 0)
    terminal = Terminal()
    with Progress(4, terminal) as progress:
        progress.update(2, "remark", ["one", "two"])
        progress.update(4, "remark", ["a line that is too long"])
    assert terminal.getvalue() == (
        "\r 50%  step 2 of 4, \x1b[K\none\x1b[K\ntwo\x1b[K"
        "\x1b[2A\r100%  step 4 of 4\x1b[K\na line that is too \x1b[K\n\x1b[K\n"
    )


def test_the_time_that_is_left_follows_from_the_steps_since_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    log = io.StringIO()
    progress = Progress(100, log, "update", done=10)
    now[0] = 60.0
    progress.update(20)
    assert log.getvalue() == " 20%  update 20 of 100, 8:00 left  \n"


def test_where_time_is_limited_share_and_time_left_are_those_of_what_ends_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    log = io.StringIO()
    progress = Progress(100, log, "update", done=10, seconds=120)
    for now[0], done in ((30, 11), (60, 60), (120, 70), (125, 71)):
        progress.update(done)
    assert log.getvalue().splitlines() == [
        " 25%  update 11 of 100, 1:30 left  ",
        " 60%  update 60 of 100, 0:48 left  ",
        "100%  update 70 of 100  ",
        "100%  update 71 of 100  ",
    ]


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3723, "1:02:03")])
def test_times_are_clocks(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize("columns", [20, 50, 80, 200])
def test_the_line_never_wraps(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal()
    with Progress(1000, terminal) as progress:
        progress.update(1000, "628,873 world-steps/s, mean return -0.527")
    line = terminal.getvalue().split("\x1b[K")[0].removeprefix("\r")
    assert len(line) < columns
    assert line.endswith("mean return -0.527") == (columns >= 80)
    assert ("[" in line) == (columns >= 80)


def test_on_a_terminal_not_every_step_is_drawn() -> None:
    terminal = Terminal()
    with Progress(100_000, terminal) as progress:
        for done in range(1, 1001):
            progress.update(done, "")
    assert terminal.getvalue().count("\r") < 100


def test_the_bar_goes_away_when_the_work_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorstep.cli.terminal.REDRAW_SECONDS", 0)
    terminal = Terminal()
    try:
        with Progress(10, terminal) as progress:
            progress.update(5, "")
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_log_has_a_line_every_ten_seconds_and_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
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


def test_colours_are_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured("NO", "red", Terminal()) == "\x1b[31mNO\x1b[0m"
    assert coloured("NO", "red", io.StringIO()) == "NO"
    monkeypatch.setenv("TERM", "dumb")
    assert coloured("NO", "red", Terminal()) == "NO"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("NO", "red", Terminal()) == "NO"
