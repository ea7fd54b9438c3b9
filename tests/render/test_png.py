"""PNG files hold exactly the pixels that were given."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.render.pixels import read_png

import doorstep
from doorstep.render import encode_png, write_png

Image = NDArray[np.uint8]


def noise(*shape: int) -> Image:
    return np.random.default_rng(3).integers(0, 256, shape, np.uint8)


def gradient() -> Image:
    rows, columns = np.mgrid[0:40, 0:60]
    return np.stack([rows * 5, columns * 4, rows + columns], axis=-1).astype(np.uint8)


@pytest.mark.parametrize(
    "image",
    [noise(7, 5, 3), noise(4, 9, 4), noise(6, 3), gradient(), np.zeros((1, 1, 3), np.uint8), gradient()[::-1, ::2]],
    ids=["noise", "alpha", "grey", "gradient", "one pixel", "a view"],
)
def test_what_is_read_is_what_was_written(image: Image) -> None:
    channels = image.shape[2] if image.ndim == 3 else 1
    assert np.array_equal(read_png(encode_png(image)), image.reshape(*image.shape[:2], channels))


def test_other_programs_read_them() -> None:
    av = pytest.importorskip("av")
    image = gradient()
    packet = av.Packet(encode_png(image))
    (frame,) = av.CodecContext.create("png", "r").decode(packet)
    assert np.array_equal(frame.to_ndarray(format="rgb24"), image)


def test_smooth_pictures_are_small() -> None:
    assert len(encode_png(gradient())) < gradient().size / 10


def test_a_file_has_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    write_png(path, gradient())
    assert path.read_bytes() == encode_png(gradient())


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 4, 3), np.float32),
        np.zeros((4, 4, 2), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros(4, np.uint8),
        np.zeros((1, 4, 4, 3), np.uint8),
    ],
)
def test_what_is_no_picture_is_refused(image: NDArray[np.uint8], tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    with pytest.raises(doorstep.ArgumentError, match=r"image is \w+ \[.*\]; it must be uint8 \[H, W, 3\]"):
        write_png(path, image)
    assert not path.exists()
