"""The committed pictures of the documentation are what `make docs-images` draws."""

import re

import numpy as np
import pytest
from tests.docs.pages import PAGES
from tests.render.test_replay import read_recording

pytest.importorskip("matplotlib")
PIL_Image = pytest.importorskip("PIL.Image")

from draw_images import DRAWN, IMAGES  # noqa: E402

# The mean difference of a pixel, of 255: edges of letters differ between versions of matplotlib and between fonts.
DIFFERENCE = {"learning_curves.png": 6, "positions.png": 6, "evaluation.png": 6, "replay.png": 10}
# Drawn by hand, of what needs a running viewer or a Vulkan driver.
OTHERS = {"materials.png", "view.jpg", "gallery.png", "learning_curves.csv"}


def frames_of(path):
    """The pictures of a file, uint8 [H, W, 3]."""
    with PIL_Image.open(path) as image:
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            yield np.asarray(image.convert("RGB"))


def contents_of(page):
    """The recording of a replay without the version of doorstep, and its data: zlibs compress differently."""
    recording, data = read_recording(page.read_text("utf-8"))
    return {**recording, "version": None, "data": None}, data


def assert_alike(drawn, committed):
    if committed.suffix == ".svg":
        assert drawn.read_text("utf-8") == committed.read_text("utf-8")
        return
    if committed.suffix == ".html":
        assert contents_of(drawn) == contents_of(committed), committed.name
        return
    difference = DIFFERENCE.get(committed.name, 1)
    for number, (one, other) in enumerate(zip(frames_of(drawn), frames_of(committed), strict=True)):
        assert one.shape == other.shape, committed.name
        assert np.abs(one.astype(float) - other).mean() < difference, f"{committed.name}, frame {number}"


def test_pages_show_every_picture_and_every_picture_is_drawn():
    files = {str(path.relative_to(IMAGES)) for path in IMAGES.rglob("*") if path.is_file()}
    assert {name.partition("/")[0] for name in files} == set(DRAWN) | OTHERS
    shown = set(re.findall(r"images/([\w/]+\.\w+)", "".join(page.read_text("utf-8") for page in PAGES)))
    assert shown <= files
    assert files - shown <= {"gallery.png", "levels.png", "learning_curves.csv"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DRAWN))
def test_pictures_are_drawn_as_they_are_committed(name, tmp_path):
    if name == "replay.png":
        pytest.importorskip("playwright")
    committed = [path for path in ((IMAGES / name), *(IMAGES / name).rglob("*")) if path.is_file()]
    assert sum(path.stat().st_size for path in committed) < 3_000_000
    if (IMAGES / name).is_dir():
        (tmp_path / name).mkdir()
    DRAWN[name](tmp_path / name)
    drawn = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(drawn) == len(committed)
    for path in drawn:
        assert_alike(path, IMAGES / path.relative_to(tmp_path))
