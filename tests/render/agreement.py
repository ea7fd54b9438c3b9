"""Whether two renderers agree: on every pixel but those on silhouettes, where rounding decides what is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import doorstep

Array = NDArray[Any]
Views = dict[str, Array]

OUTPUTS: dict[str, Any] = {"rgb": True, "depth": True, "segmentation": True, "normals": True}
GREY_LEVELS = 1
DEPTH = 1e-3  # metres up to 1 m, relative beyond
NORMAL = 1e-3
# Within one thing a jump of the normal is an edge, and one of an agent's colour the rim of an eye.
EDGE_NORMAL = 0.3
EDGE_GREY_LEVELS = 40


@dataclass(frozen=True)
class Agreement:
    """How two renderers' views compare.

    Attributes:
        pixels: how many there are.
        silhouettes: on how many of them something ends in either picture; those are not compared.
        differing: by output, how many of the others differ by more than the renderers may.
        largest: by output, the largest difference among them.
        stray: how many silhouette pixels show a thing that neither picture has there or next to it.
    """

    pixels: int
    silhouettes: int
    differing: dict[str, int]
    largest: dict[str, float]
    stray: int


def views_of(sim: doorstep.Simulator) -> Views:
    """Copies of what cameras with all outputs show, as arrays [views, H, W, ...]."""
    views = {name: sim.tensors[name].copy_to_host() for name in OUTPUTS}
    return {name: view.reshape(-1, *view.shape[2:]) for name, view in views.items()}


def compare(left: Views, right: Views) -> Agreement:
    """Compares the views of two renderers of the same worlds."""
    edges = silhouettes(left) | silhouettes(right)
    depth_scale = np.maximum(1, np.minimum(left["depth"], right["depth"]))
    differences = {
        "rgb": _distance(left["rgb"], right["rgb"]),
        "depth": _distance(left["depth"] / depth_scale, right["depth"] / depth_scale),
        "segmentation": _distance(left["segmentation"], right["segmentation"]),
        "normals": _distance(left["normals"], right["normals"]),
    }
    allowed = {"rgb": GREY_LEVELS, "depth": DEPTH, "segmentation": 0, "normals": NORMAL}
    return Agreement(
        pixels=edges.size,
        silhouettes=int(edges.sum()),
        differing={name: int(((far > allowed[name]) & ~edges).sum()) for name, far in differences.items()},
        largest={name: float(np.where(edges, 0, far).max()) for name, far in differences.items()},
        stray=int((~_is_near(left, right) | ~_is_near(right, left)).sum()),
    )


def check_agreement(left: Views, right: Views, most_silhouettes: float = 0.2) -> None:
    """Asserts that two renderers agree, and that nearly all pixels were compared."""
    found = compare(left, right)
    assert not any(found.differing.values()), found
    assert found.stray == 0, found
    assert found.silhouettes < most_silhouettes * found.pixels, found


def silhouettes(views: Views) -> Array:
    """Pixels [views, H, W] whose neighbourhood of 3 x 3 shows more than one thing, or an edge of one."""
    things, normals, colours = _things(views), views["normals"], views["rgb"].astype(np.int32)
    is_agent = views["segmentation"][..., 0] == doorstep.EntityKind.AGENT
    edges = np.zeros(things.shape, np.bool_)
    for offset in _offsets():
        edges |= things != _shifted(things, offset)
        edges |= _distance(normals, _shifted(normals, offset)) > EDGE_NORMAL
        edges |= is_agent & (_distance(colours, _shifted(colours, offset)) > EDGE_GREY_LEVELS)
    return edges


def _is_near(left: Views, right: Views) -> Array:
    """Where the left picture shows something that the right one shows there or next to it."""
    things, others = _things(left), _things(right)
    near = np.zeros(things.shape, np.bool_)
    for offset in _offsets():
        near |= things == _shifted(others, offset)
    return near


def _things(views: Views) -> Array:
    segmentation = views["segmentation"].astype(np.int32)
    things: Array = segmentation[..., 0] + 256 * segmentation[..., 1]
    return things


def _offsets() -> list[tuple[int, int]]:
    return [(rows, columns) for rows in (-1, 0, 1) for columns in (-1, 0, 1)]


def _shifted(image: Array, offset: tuple[int, int]) -> Array:
    """Every pixel's neighbour at (rows, columns); at the border the nearest one there is."""
    height, width = image.shape[1:3]
    rows = np.clip(np.arange(height) + offset[0], 0, height - 1)
    columns = np.clip(np.arange(width) + offset[1], 0, width - 1)
    shifted: Array = image[:, rows][:, :, columns]
    return shifted


def _distance(left: Array, right: Array) -> Array:
    return np.abs(left.astype(np.float64) - right).max(axis=-1)  # type: ignore[no-any-return]
