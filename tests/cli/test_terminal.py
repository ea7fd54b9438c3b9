"""The progress line, on a terminal and in a log; colours."""

import io

import pytest

from doorstep.cli.terminal import Progress, coloured


class Terminal(io.StringIO):
    """Collects what is drawn, and says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_bar_is_redrawn_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    with Progress(4, terminal) as progress:
        progress.update(1, "first")
        progress.update(4, "last")
    assert terminal.getvalue() == (
        "\r[########........................]  25%  step 1 of 4  first\x1b[K"
        "\r[################################] 100%  step 4 of 4  last\x1b[K"
        "\r\x1b[K"
    )


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


def test_the_bar_goes_away_when_the_work_is_interrupted() -> None:
    terminal = Terminal()
    try:
        with Progress(10, terminal) as progress:
            progress.update(5, "")
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_in_a_log_there_are_five_lines() -> None:
    log = io.StringIO()
    with Progress(1000, log) as progress:
        for done in range(1, 1001):
            progress.update(done, f"remark {done}")
    assert log.getvalue().splitlines() == [
        " 20%  step 200 of 1,000  remark 200",
        " 40%  step 400 of 1,000  remark 400",
        " 60%  step 600 of 1,000  remark 600",
        " 80%  step 800 of 1,000  remark 800",
        "100%  step 1,000 of 1,000  remark 1000",
    ]


def test_in_a_log_few_steps_make_few_lines() -> None:
    log = io.StringIO()
    with Progress(2, log) as progress:
        progress.update(1, "")
        progress.update(2, "")
    assert log.getvalue() == " 50%  step 1 of 2  \n100%  step 2 of 2  \n"


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
