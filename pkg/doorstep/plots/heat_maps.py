"""Heat maps of where agents go, from recordings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import refuse
from doorstep._files import check_ending, printable
from doorstep._native import EntityKind
from doorstep._optional import import_optional
from doorstep.errors import ArgumentError
from doorstep.plots.figures import ENDINGS, load_matplotlib, save_figure
from doorstep.recording import Recording, Replay
from doorstep.simulator import Simulator

Floats: TypeAlias = NDArray[np.float64]

_CELL = 0.5  # metres
_DRAWN_WORLDS = 64  # whose walls are drawn
_INCHES_PER_METRE, _LEAST_WIDTH, _TITLE_LETTERS = 0.17, 3.2, 40
_STATIC_COLOURS = {EntityKind.WALL: "#444444", EntityKind.DOOR: "#D55E00"}


@final
@dataclass(frozen=True, eq=False)
class Visits:
    """Where the agents of a recording were.

    Attributes:
        title: the name of the file.
        low, high: the corners (x, y) of the level, metres.
        counts: float64 [X, Y]: steps that agents spent in each cell.
        statics: rows (kind, x, y, size_x, size_y), float64 [S, 5]: the walls and doors with which worlds began.
        shares: of the worlds that had each of them, float64 [S].
    """

    title: str
    low: Floats
    high: Floats
    counts: Floats
    statics: Floats
    shares: Floats


def plot_positions(recordings: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str]) -> None:
    """Draws how often agents were in each cell of 0.5 m, seen from above, a panel for each recording.

    Recordings are replayed, and compared with the hashes in them. The walls and doors are those with which up to 64
    worlds began, the paler the fewer worlds had them.

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
    matplotlib = load_matplotlib()
    save_figure(_figure([count_visits(recording) for recording in recordings], matplotlib), path)


def count_visits(path: str | os.PathLike[str]) -> Visits:
    """Replays a recording."""
    with Recording(path) as recording:
        if not recording.num_steps:
            raise ArgumentError(f"{recording.path} has no steps", argument="recordings", hint="record some")
        with Simulator.from_config(recording.config, reward=recording.reward) as sim:
            play = Replay(recording, sim)
            statics, shares = _statics_of(sim)
            low, high = _bounds_of(statics, sim)
            edges = [np.arange(start, end + _CELL, _CELL) for start, end in zip(low, high, strict=True)]
            counts = np.zeros([len(edge) - 1 for edge in edges])
            while play.position < recording.num_steps:
                play.step()
                counts += np.histogramdd(_positions_of(sim), bins=edges)[0]
    return Visits(printable(Path(recording.path).name), low, high, counts, statics, shares)


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


def _figure(maps: Sequence[Visits], matplotlib: Any) -> Any:
    patches = import_optional("matplotlib.patches", "plots need matplotlib", "plot")
    colors = import_optional("matplotlib.colors", "plots need matplotlib", "plot")
    extents = np.array([visits.high - visits.low for visits in maps])
    widths = np.maximum(extents[:, 0] * _INCHES_PER_METRE, _LEAST_WIDTH)
    size = (1.2 + widths.sum(), 1.2 + extents[:, 1].max() * _INCHES_PER_METRE)
    figure = matplotlib.Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(maps), squeeze=False, width_ratios=widths)[0]
    largest = max(visits.counts.max() for visits in maps)
    scale = colors.LogNorm(1, max(largest, 10))
    for visits, axis in zip(maps, axes, strict=True):
        image = _draw(visits, axis, scale, patches)
    label = f"steps of agents in a cell of {_CELL:g} m x {_CELL:g} m"
    figure.colorbar(image, ax=list(axes), shrink=0.7, label=label)
    figure.supxlabel("walls grey, doors orange: the paler, the fewer worlds began with them", fontsize="small")
    return figure


def _draw(visits: Visits, axis: Any, scale: Any, patches: Any) -> Any:
    cells_x, cells_y = visits.counts.shape
    x, y = (visits.low[0], visits.low[1])
    extent = (x, x + cells_x * _CELL, y, y + cells_y * _CELL)
    shown = np.ma.masked_equal(visits.counts.T, 0)
    image = axis.imshow(shown, origin="lower", extent=extent, norm=scale, cmap="viridis", interpolation="nearest")
    for (kind, centre_x, centre_y, size_x, size_y), share in zip(visits.statics, visits.shares, strict=True):
        corner = (centre_x - size_x / 2, centre_y - size_y / 2)
        colour = _STATIC_COLOURS.get(EntityKind(int(kind)), "#444444")
        axis.add_patch(patches.Rectangle(corner, size_x, size_y, color=colour, alpha=share, linewidth=0))
    title = visits.title
    axis.set_title(title if len(title) <= _TITLE_LETTERS else f"...{title[-_TITLE_LETTERS:]}", fontsize="medium")
    axis.set_xlabel("x, m")
    axis.set_ylabel("y, m")
    axis.set_xlim(visits.low[0] - 0.5, visits.high[0] + 0.5)
    axis.set_ylim(visits.low[1] - 0.5, visits.high[1] + 0.5)
    return image
