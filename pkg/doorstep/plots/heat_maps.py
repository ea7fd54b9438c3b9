"""Heat maps of where agents go, from recordings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from doorstep._arguments import refuse
from doorstep._files import check_ending, printable
from doorstep._native import EntityKind
from doorstep.errors import ArgumentError
from doorstep.plots import figures
from doorstep.plots.figures import ENDINGS, WIDTH, Floats, save_figure, shortened
from doorstep.recording import Recording, Replay
from doorstep.simulator import Simulator

_CELL = 0.5  # metres
_SLACK = 1e-6  # of a cell: of floats
_DRAWN_WORLDS = 64  # whose walls are drawn
_MOST_PANELS = 4  # side by side
_PANEL_INCHES, _MARGIN_INCHES, _WORDS_INCHES = 5.0, 1.0, 1.0  # a panel's longer side, around all, above and below one
_LEAST_INCHES = 4.5  # wide
_TITLE_LETTERS = 8  # per inch
_PALEST = 3  # cells with the fewest steps have the colour of so many times more than the palest one
_FILLED = 0.35  # opacity of walls and doors


@final
@dataclass(frozen=True, eq=False)
class Visits:
    """Where the agents of a recording were.

    Attributes:
        title: the name of the file.
        low, high: the corners (x, y) of the picture, metres.
        counts: float64 [X, Y]: steps that agents spent in each cell.
        beyond: float64 [4]: steps below the picture's y, above it, and left and right of the picture.
        statics: rows (kind, x, y, size_x, size_y), float64 [S, 5]: the walls and doors with which worlds began.
        shares: of the worlds that had each of them, float64 [S].
    """

    title: str
    low: Floats
    high: Floats
    counts: Floats
    beyond: Floats
    statics: Floats
    shares: Floats

    @property
    def steps(self) -> float:
        """Of all agents, within the picture and beyond it."""
        return float(self.counts.sum() + self.beyond.sum())


def plot_positions(recordings: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str]) -> None:
    """Draws how often agents were in each cell of 0.5 m, seen from above, a panel for each recording.

    Recordings are replayed, and compared with the hashes in them. Colours are shares of the steps of all agents. The
    walls and doors are those with which up to 64 worlds began, the paler the fewer worlds had them. A line below a
    panel says what share of the steps agents spent beyond it.

    >>> import doorstep, os, tempfile
    >>> from doorstep.plots import plot_positions
    >>> from doorstep.recording import RecordingWriter
    >>> folder = tempfile.mkdtemp()
    >>> with doorstep.Simulator(4) as sim, RecordingWriter(f"{folder}/walk.rec", sim) as writer:
    ...     for step in range(20):
    ...         sim.actions[:] = (2, step % 8, 2, 0)
    ...         writer.step()
    >>> plot_positions([f"{folder}/walk.rec"], f"{folder}/walk.png")
    >>> os.path.exists(f"{folder}/walk.png")
    True

    Args:
        recordings: files of `doorstep.recording.RecordingWriter` or `doorstep record`.
        path: a file that ends in .png, .svg or .pdf; it is replaced whole or not at all.

    Raises:
        ArgumentError: no recording is given, one has no steps, or the ending is another one.
        StateError: a file is no recording, or damaged.
        ReplayError: a replay differs from its recording.
        LibraryError: matplotlib is missing: pip install "doorstep[plot]".
        OSError: a recording cannot be read, or the file cannot be written.
    """
    check_ending(path, ENDINGS)
    if not isinstance(recordings, Sequence) or isinstance(recordings, (str, bytes)) or not recordings:
        refuse("recordings", "a sequence of files of recordings, at least one", recordings)
    figures.load_matplotlib()  # before the work
    save_figure(_figure([count_visits(recording) for recording in recordings]), path)


def count_visits(path: str | os.PathLike[str]) -> Visits:
    """Replays a recording."""
    with Recording(path) as recording:
        if not recording.num_steps:
            raise ArgumentError(f"{recording.path} has no steps", argument="recordings", hint="record some")
        with Simulator.from_config(recording.config, reward=recording.reward) as sim:
            play = Replay(recording, sim)
            statics, shares = _statics_of(sim)
            low, high = _bounds_of(statics, sim)
            cells = np.ceil((high - low) / _CELL - _SLACK).astype(int)
            high = low + _CELL * cells
            edges = [np.linspace(*ends) for ends in zip(low, high, cells + 1, strict=True)]
            counts, beyond = np.zeros(cells), np.zeros(4)
            while play.position < recording.num_steps:
                play.step()
                positions = _positions_of(sim)
                counts += np.histogramdd(positions, bins=edges)[0]
                beyond += _count_beyond(positions, low, high)
    return Visits(printable(Path(recording.path).name), low, high, counts, beyond, statics, shares)


def _count_beyond(positions: Floats, low: Floats, high: Floats) -> Floats:
    """`Visits.beyond`; who is beyond a corner is counted along y."""
    sides = np.concatenate([[positions[:, axis] < low[axis], positions[:, axis] > high[axis]] for axis in (1, 0)])
    return np.bincount(sides.argmax(axis=0)[sides.any(axis=0)], minlength=4).astype(np.float64)


def _positions_of(sim: Simulator) -> Floats:
    """x and y of all agents, float64 [N * A, 2]."""
    positions = sim.state.body_positions.copy_to_host()[:, : sim.num_agents, :2]
    return positions.reshape(-1, 2).astype(np.float64)


def _statics_of(sim: Simulator) -> tuple[Floats, Floats]:
    state = sim.state
    worlds = slice(min(sim.num_worlds, _DRAWN_WORLDS))
    kinds = state.static_kinds.copy_to_host()[worlds].reshape(-1, 1)
    positions = state.static_positions.copy_to_host()[worlds, :, :2].reshape(-1, 2)
    sizes = state.static_sizes.copy_to_host()[worlds, :, :2].reshape(-1, 2)
    rows = np.concatenate([kinds, positions, sizes], axis=1, dtype=np.float64)
    rows = np.round(rows[rows[:, 0] != EntityKind.NONE], 3)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    return distinct, np.minimum(counts / worlds.stop, 1)


def _bounds_of(statics: Floats, sim: Simulator) -> tuple[Floats, Floats]:
    """The corners of the rectangle around walls and doors, and around where agents begin."""
    agents = _positions_of(sim)
    lows = np.concatenate([statics[:, 1:3] - statics[:, 3:5] / 2, agents - 1])
    highs = np.concatenate([statics[:, 1:3] + statics[:, 3:5] / 2, agents + 1])
    return lows.min(axis=0), highs.max(axis=0)


# ---- Drawing


@figures.styled()
def _figure(maps: Sequence[Visits]) -> Any:
    rows = -(-len(maps) // _MOST_PANELS)
    columns = -(-len(maps) // rows)
    low, high = np.min([visits.low for visits in maps], axis=0), np.max([visits.high for visits in maps], axis=0)
    scale = min(_PANEL_INCHES / (high - low).max(), (WIDTH - _MARGIN_INCHES) / columns / (high - low)[0])
    width, height = scale * (high - low)
    size = (_MARGIN_INCHES + rows * (_WORDS_INCHES + height), max(_MARGIN_INCHES + columns * width, _LEAST_INCHES))
    figure = figures.new_figure(*size, "compressed")
    axes = figure.subplots(rows, columns, squeeze=False, sharey="row").reshape(-1)
    shares = np.concatenate([visits.counts[visits.counts > 0] / visits.steps for visits in maps])
    norm = figures.logarithmic(shares.min() / _PALEST, shares.max())
    letters = int(max(width, _LEAST_INCHES / columns) * _TITLE_LETTERS)
    for visits, axis in zip(maps, axes, strict=False):
        image = _draw(visits, axis, norm)
        axis.set(title=shortened(visits.title, letters), xlabel=f"x, m\n{_beyond(visits)}")
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    for axis in axes[::columns]:
        axis.set_ylabel("y, m")
    for axis in axes[len(maps) :]:
        axis.set_axis_off()
    figures.add_colour_bar(figure, image, f"share of the agents' steps in a cell of {_CELL:g} m x {_CELL:g} m")
    figures.add_caption(figure, ["Grey: walls; orange: doors; the paler, the fewer worlds began with them."])
    return figure


def _draw(visits: Visits, axis: Any, norm: Any) -> Any:
    for kind, *box, share in np.column_stack([visits.statics, visits.shares]).tolist():
        colour = figures.DOOR if kind == EntityKind.DOOR else figures.WALL
        axis.add_patch(figures.rectangle(*box, color=colour, alpha=_FILLED * share, linewidth=0, zorder=1))
        axis.add_patch(figures.rectangle(*box, edgecolor=colour, fill=False, alpha=share, linewidth=0.8, zorder=3))
    extent = np.stack([visits.low, visits.high], axis=1).ravel()
    shown = np.ma.masked_equal(visits.counts.T / visits.steps, 0)
    style = {"cmap": figures.colour_map(figures.SHADES), "norm": norm, "interpolation": "nearest", "zorder": 2}
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    return axis.imshow(shown, origin="lower", extent=extent, **style)


def _beyond(visits: Visits) -> str:
    """Where agents were that the picture does not show, a line for each side."""
    ends = (visits.low[1], visits.high[1], visits.low[0], visits.high[0])
    shares = visits.beyond / visits.steps
    return "\n".join(
        f"{f'{share:.0%}' if share >= 0.01 else 'below 1%'} of steps beyond {axis} = {end:.4g} m"
        for axis, end, share in zip("yyxx", ends, shares, strict=True)
        if share
    )
