"""Draws the pictures of worlds in docs/images/, and a sheet of all of them: `make docs-images`.

The page of a replay is drawn by the Chromium of the tests.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import sync_playwright
from tests.render.pixels import read_png
from tests.system_packages import chromium, chromium_environment, chromium_options

import doorstep
from doorstep import levels
from doorstep.policy import SamplingParams, load_policy
from doorstep.recording.film import Film
from doorstep.recording.grid import side_by_side
from doorstep.render import look, write_png

Image = NDArray[np.uint8]

IMAGES = Path(__file__).parent / "images"
SEED = 5
REPLAY_SIZE = (840, 440)
CELL = (480, 320)  # pixels of a picture on the sheet


def moments(sim: doorstep.Simulator, steps: int) -> Iterator[int]:
    """Of a trained policy; the number of steps taken."""
    act = load_policy("trained", sampling=SamplingParams(seed=SEED))
    for step in range(steps + 1):
        if step:
            sim.actions = act(sim.observations)
            sim.step()
        yield step


def trained(steps: int, num_worlds: int = 1, **film: object) -> Callable[[Path], None]:
    """Draws worlds after some steps of the trained policy."""

    def draw(path: Path) -> None:
        with doorstep.Simulator(num_worlds, seed=SEED) as sim:
            Film(list(range(num_worlds)), **film).write(path, sim, moments(sim, steps), "")  # type: ignore[arg-type]

    return draw


def curated(path: Path) -> None:
    """Draws six levels that come with doorstep."""
    names = ("two rooms", "slalom", "apart", "carry", "spiral", "far button")
    images = []
    for name in names:
        with doorstep.Simulator(1, seed=SEED, levels=levels.curated()[name]) as sim:
            images.append(sim.render(camera="overview", width=360, height=240, samples=3))
    write_png(path, side_by_side(images, 3))


def replay(path: Path) -> None:
    """Draws the page of a replay."""
    with tempfile.TemporaryDirectory() as folder, doorstep.Simulator(1, seed=SEED) as sim:
        page = Path(folder) / "replay.html"
        Film(until="out").write(page, sim, moments(sim, 120), "trained")
        with sync_playwright() as playwright:
            environment = {**os.environ, **chromium_environment()}
            browser = playwright.chromium.launch(
                executable_path=str(chromium()), args=chromium_options(), env=environment
            )
            width, height = REPLAY_SIZE
            opened = browser.new_page(viewport={"width": width, "height": height})
            opened.goto(f"{page.as_uri()}#moment=48&camera=follow")
            opened.wait_for_selector("#agents tr")
            opened.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            opened.screenshot(path=path)
            browser.close()


DRAWN: dict[str, Callable[[Path], None]] = {
    "overview.png": trained(42, camera="overview", width=720, height=440, samples=3, caption=False),
    "follow.png": trained(40, camera="follow", width=480, height=320, samples=3, caption=False),
    "first_agent.png": trained(48, 4, camera="overview", width=480, height=320),
    "grid.png": trained(84, 12, camera="overview", width=240, height=180, columns=4, counter=True, until="out"),
    "levels.png": curated,
    "replay.png": replay,
}


def gallery() -> Image:
    """All pictures on one sheet, each within a cell."""
    width, height = CELL
    background = np.rint(255 * np.array(look.rgb(look.PANEL))).astype(np.uint8)
    cells = []
    for name in DRAWN:
        image = _reduced(read_png((IMAGES / name).read_bytes())[..., :3])
        cell = np.tile(background, (height, width, 1))
        top, left = (height - image.shape[0]) // 2, (width - image.shape[1]) // 2
        cell[top : top + image.shape[0], left : left + image.shape[1]] = image
        cells.append(cell)
    return side_by_side(cells, 3)


def _reduced(image: Image) -> Image:
    """Made smaller until it fits a cell: each pixel is the mean of those that it covers."""
    scale = max(image.shape[1] / CELL[0], image.shape[0] / CELL[1], 1.0)
    for axis in (0, 1):
        size = int(image.shape[axis] / scale)
        edges = np.linspace(0, image.shape[axis], size + 1)
        sums = np.concatenate([np.zeros_like(image.take([0], axis), np.float64), image.cumsum(axis, np.float64)], axis)
        first = np.floor(edges).astype(int).clip(0, image.shape[axis] - 1)
        shape = [1, 1, 1]
        shape[axis] = -1
        at = sums.take(first, axis) + (edges - first).reshape(shape) * image.take(first, axis)
        image = np.rint(np.diff(at, axis=axis) * size / edges[-1]).astype(np.uint8)
    return image


if __name__ == "__main__":
    for name, draw in DRAWN.items():
        draw(IMAGES / name)
        print(f"docs/images/{name}: {(IMAGES / name).stat().st_size:,} bytes", flush=True)
    write_png(IMAGES / "gallery.png", gallery())
    print("docs/images/gallery.png")
