"""Figures of matplotlib: what all plots share."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

from doorstep._files import check_ending, replaced_file
from doorstep._optional import import_optional

ENDINGS = (".png", ".svg", ".pdf")

# Okabe and Ito's colours without black and yellow: people with any kind of colour blindness tell them apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_LARGEST_SHADE = 0.9  # of the map from which more colours are taken; its end is too light for lines


def load_matplotlib() -> Any:
    """matplotlib's module of figures, which only plots need.

    Raises:
        LibraryError: it is missing.
    """
    return import_optional("matplotlib.figure", "plots need matplotlib", 'pip install "doorstep[plot]"')


def colours(count: int) -> Sequence[Any]:
    """A colour for each of so many things."""
    if count <= len(_COLOURS):
        return _COLOURS[:count]
    shades = import_optional("matplotlib", "plots need matplotlib", 'pip install "doorstep[plot]"').colormaps["viridis"]
    return [shades(_LARGEST_SHADE * number / (count - 1)) for number in range(count)]


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Writes a figure of the kind that the file's ending says, whole or not at all.

    Raises:
        ArgumentError: another ending than one of `ENDINGS`.
        OSError: the file cannot be written.
    """
    ending = check_ending(path, ENDINGS)
    picture = io.BytesIO()
    figure.savefig(picture, format=ending[1:])
    with replaced_file(path) as file:
        file.write(picture.getvalue())
