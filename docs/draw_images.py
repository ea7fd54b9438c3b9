"""Draws the pictures in docs/images/, and a sheet of most of them: `make docs-images`.

The page of a replay is drawn by the Chromium of the tests.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import PIL.Image
from draw_pages import curated_page, trained_page
from draw_plan import plan
from draw_plots import evaluation, learning_curves, positions
from tests.system_packages import chromium, chromium_environment, chromium_options

import doorstep
from doorstep import levels
from doorstep.cli import main
from doorstep.policy import SamplingParams, load_policy
from doorstep.recording.film import Film
from doorstep.recording.grid import side_by_side
from doorstep.render import look, write_png

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


def command(*words: str) -> Callable[[Path], None]:
    """Draws by a command of doorstep."""

    def draw(path: Path) -> None:
        assert main([*words, "--output", str(path)]) == 0

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
    from playwright.sync_api import sync_playwright

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
            opened.goto(f"{page.as_uri()}#moment=60")
            opened.wait_for_selector("#agents tr")
            opened.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            opened.screenshot(path=path)
            browser.close()


DRAWN: dict[str, Callable[[Path], None]] = {
    "overview.png": trained(42, camera="overview", width=720, height=440, samples=3, caption=False),
    "follow.png": trained(40, camera="follow", width=720, height=480, samples=3, caption=False),
    "first_agent.png": trained(48, 4, camera="overview", width=480, height=320),
    "grid.png": trained(84, 12, camera="overview", width=240, height=180, columns=4, counter=True, until="out"),
    "levels.png": curated,
    "replay.png": replay,
    "trained.html": trained_page,
    "levels.html": curated_page,
    "learning_curves.png": learning_curves,
    "positions.png": positions,
    "evaluation.png": evaluation,
    "plan.svg": plan,
    "levels": command("levels", "curated"),
    "third_door.webp": command(*["render", "--policy", "trained", "--seed", "7", "--size", "640x400", "--fps", "12"]),
}


def gallery(path: Path) -> None:
    """Draws the pictures that are PNG on one sheet, each within a cell."""
    width, height = CELL
    cells = []
    for name in (name for name in DRAWN if name.endswith(".png")):
        cell = PIL.Image.new("RGB", CELL, look.PANEL)
        with PIL.Image.open(IMAGES / name) as image:
            image.thumbnail(CELL)
            cell.paste(image.convert("RGB"), ((width - image.width) // 2, (height - image.height) // 2))
        cells.append(np.asarray(cell))
    write_png(path, side_by_side(cells, 3))


if __name__ == "__main__":
    for name, draw in DRAWN.items():
        draw(IMAGES / name)
        print(f"docs/images/{name}", flush=True)
    gallery(IMAGES / "gallery.png")
