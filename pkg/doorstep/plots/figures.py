"""The style of all plots: sizes, fonts and colours, and what every figure has."""

from __future__ import annotations

import contextlib
import io
import os
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from doorstep._files import check_ending, replaced_file
from doorstep._optional import import_optional
from doorstep.render import look

Floats: TypeAlias = NDArray[np.float64]

ENDINGS = (".png", ".svg", ".pdf")

WIDTH = 8.0  # inches of every figure with curves or tables: narrow, so that letters can be read on a phone
LETTERS_PER_INCH = 13  # of the font, about

# The first ones are the agents'; four of Tol's follow. Neighbours differ in lightness too.
COLOURS = (*look.SERIES, "#882255", "#999933", "#555555", "#332288")
INK, GREY, LINE = look.TEXT, look.MUTED, "#AAAAAA"
WALL, DOOR = "#333333", COLOURS[1]
SHADES = ("#EAF2F8", "#7FBCE6", COLOURS[0], "#06365A")  # from little to much
OPPOSITES = (COLOURS[1], "#F7F7F7", COLOURS[0])  # to either side of a middle

AXES = {"steps": "steps of worlds", "seconds": "time, s", "updates": "updates"}  # labels of x of runs

_DPI = 200
_LARGEST_SHADE = 0.9  # of the map from which more colours are taken; its end is too light for lines
_GAMMA, _DARK = 2.2, 0.2  # of screens; luminance below which white letters contrast more than dark ones
_LEGEND_LETTERS, _CAPTION_LETTERS_PER_INCH = 36, 15.5
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_STYLE = {
    "font.family": "DejaVu Sans",  # which matplotlib contains
    "font.size": 9,
    "text.color": INK,
    "text.parse_math": False,  # names may have dollars
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": GREY,
    "axes.edgecolor": LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
}


def load_matplotlib() -> Any:
    """matplotlib's module of figures, which only plots need.

    Raises:
        LibraryError: it is missing.
    """
    return _module("matplotlib.figure")


def _module(name: str) -> Any:
    return import_optional(name, "plots need matplotlib", "plot")


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Figures that are made, drawn or saved meanwhile have the style, whatever the user's settings are."""
    matplotlib = _module("matplotlib")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def new_figure(height: float, width: float = WIDTH, layout: str = "constrained") -> Any:
    """An empty figure of this size, inches."""
    return load_matplotlib().Figure(figsize=(width, height), layout=layout)


def colours(count: int) -> Sequence[Any]:
    """A colour for each of so many things; the first ones do not depend on how many follow, up to ten."""
    if count <= len(COLOURS):
        return COLOURS[:count]
    shades = _module("matplotlib").colormaps["viridis"]
    return [shades(_LARGEST_SHADE * number / (count - 1)) for number in range(count)]


def shortened(text: str, letters: int) -> str:
    """The end of a text that is longer: of paths it tells most."""
    return text if len(text) <= letters else f"…{text[1 - letters :]}"


def in_percent(value: float, _: object = None) -> str:
    """0.5 as 50%."""
    return f"{100 * value:.3g}%"


def in_short(value: float, _: object = None) -> str:
    """1,200,000 as 1.2M."""
    size, letter = next((unit for unit in _UNITS if abs(value) >= unit[0]), (1, ""))
    return f"{value / size:g}{letter}".replace("-", "\N{MINUS SIGN}")


def colour_map(colours: Sequence[str]) -> Any:
    """All colours between these, which are at equal distances."""
    return _module("matplotlib.colors").LinearSegmentedColormap.from_list("doorstep", colours)


def logarithmic(low: float, high: float) -> Any:
    """A scale of colours from one number > 0 to another, over at least a factor of ten."""
    return _module("matplotlib.colors").LogNorm(min(low, high / 10), high)


def rectangle(x: float, y: float, width: float, height: float, **style: Any) -> Any:
    """A rectangle around its centre (x, y)."""
    return _module("matplotlib.patches").Rectangle((x - width / 2, y - height / 2), width, height, **style)


def add_legend(figure: Any, labels: Sequence[str]) -> None:
    """The colours of curves, above all panels."""
    lines = _module("matplotlib.lines")
    names = [shortened(label, _LEGEND_LETTERS) for label in labels]
    handles = [
        lines.Line2D([], [], color=colour, linewidth=3, label=name)
        for name, colour in zip(names, colours(len(names)), strict=True)
    ]
    columns = int(figure.get_figwidth() * LETTERS_PER_INCH) // (max(map(len, names)) + 6)
    figure.legend(handles=handles, loc="outside upper left", ncols=max(columns, 1), handlelength=1.2)


def add_colour_bar(figure: Any, image: Any, label: str) -> None:
    """What the colours of shares mean, below all panels."""
    style = {"location": "bottom", "aspect": 9 * figure.get_figwidth(), "pad": 0.03, "format": in_percent}
    bar = figure.colorbar(image, ax=figure.axes, label=label, **style)
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)


def add_caption(figure: Any, sentences: Sequence[str]) -> None:
    """What readers need to know of all panels, below them."""
    letters = int(figure.get_figwidth() * _CAPTION_LETTERS_PER_INCH)
    figure.supxlabel(textwrap.fill(" ".join(sentences), letters), x=0.01, ha="left", color=GREY, fontsize=8)


def draw_cells(axis: Any, values: Floats, *, shades: Sequence[str] = SHADES, columns: Floats | None = None) -> Any:
    """Cells [rows, columns] in colours for 0 .. 1, the first row on top; a cell of NaN stays white.

    Args:
        axis: where they are drawn, a row at each integer.
        values: of the cells.
        shades: of the map of colours.
        columns: the edges of the columns, ascending; None: a column at each integer.
    """
    rows = np.arange(len(values) + 1) - 0.5
    edges = np.arange(values.shape[1] + 1) - 0.5 if columns is None else columns
    style = {"cmap": colour_map(shades), "vmin": 0, "vmax": 1, "edgecolors": "white", "linewidth": 0.8}
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    axis.set_ylim(rows[-1], rows[0])
    return axis.pcolormesh(edges, rows, np.ma.masked_invalid(values), **style)


def ink_on(mesh: Any, value: float) -> str:
    """The colour of letters on a cell of this value."""
    red, green, blue = (channel**_GAMMA for channel in mesh.to_rgba(value)[:3])
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > _DARK else "white"


@styled()
def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Writes a figure of the kind that the file's ending says, whole or not at all.

    Raises:
        ArgumentError: another ending than one of `ENDINGS`.
        OSError: the file cannot be written.
    """
    ending = check_ending(path, ENDINGS)
    picture = io.BytesIO()
    figure.savefig(picture, format=ending[1:], dpi=_DPI)
    with replaced_file(path) as file:
        file.write(picture.getvalue())
