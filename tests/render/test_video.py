"""Videos hold the frames that were given, in their order, and last as long as they should."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import doorstep
from doorstep.video import write_video

av = pytest.importorskip("av")

Frame = NDArray[np.uint8]
SKY, RED, BROWN = (158, 194, 230), (230, 20, 20), (191, 108, 10)


def moving_square(count: int, width: int = 160, height: int = 120) -> Iterator[Frame]:
    for number in range(count):
        frame = np.full((height, width, 3), SKY, np.uint8)
        frame[20:60, 10 + 3 * number : 50 + 3 * number] = RED
        frame[70:110, 60:100] = BROWN
        yield frame


def read(path: Path) -> tuple[list[Frame], Any]:
    with av.open(str(path)) as container:
        (stream,) = container.streams
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)], stream


def times(path: Path) -> list[float]:
    with av.open(str(path)) as container:
        return [frame.time for frame in container.decode(video=0)]


def test_an_mp4_shows_the_frames_it_was_made_of(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    assert write_video(path, moving_square(30)) == 30
    frames, stream = read(path)
    assert len(frames) == 30
    assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
    for shown, given in zip(frames, moving_square(30), strict=True):
        difference = np.abs(shown.astype(int) - given)
        assert np.median(difference) <= 2
        assert difference.mean() < 4  # edges between colours are soft
    for number in (0, 15, 29):
        assert frames[number][40, 30 + 3 * number] == pytest.approx(np.array(RED), abs=4)
        assert frames[number][90, 80] == pytest.approx(np.array(BROWN), abs=4)


def test_an_mp4_says_how_its_colours_are_meant(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    write_video(path, moving_square(2))
    context = read(path)[1].codec_context
    bt709, limited_range = 1, 1
    assert (context.colorspace, context.color_primaries, context.color_trc) == (bt709, bt709, bt709)
    assert context.color_range == limited_range


def test_a_gif_shows_few_colours_exactly(tmp_path: Path) -> None:
    path = tmp_path / "video.gif"
    assert write_video(path, moving_square(30)) == 30
    frames, _ = read(path)
    assert len(frames) == 30
    for shown, given in zip(frames, moving_square(30), strict=True):
        assert np.array_equal(shown, given)


def test_a_gif_shows_many_colours_well(tmp_path: Path) -> None:
    path = tmp_path / "video.gif"
    rows, columns = np.mgrid[0:100, 0:140]
    given = [np.stack([rows * 2, columns + 10 * i, 0 * rows + 90], axis=-1).astype(np.uint8) for i in range(4)]
    write_video(path, given)
    for shown, frame in zip(read(path)[0], given, strict=True):
        assert np.abs(shown.astype(int) - frame).mean() < 8


@pytest.mark.parametrize("ending", [".mp4", ".gif"])
@pytest.mark.parametrize("fps", [25, 10, 50, 0.01])
def test_frames_come_at_the_given_rate(ending: str, fps: int, tmp_path: Path) -> None:
    path = tmp_path / f"video{ending}"
    write_video(path, moving_square(10), fps)
    assert times(path) == pytest.approx([number / fps for number in range(10)], abs=1e-4)


def test_a_gif_lasts_as_long_as_it_should_at_rates_it_cannot_have(tmp_path: Path) -> None:
    path = tmp_path / "video.gif"
    write_video(path, moving_square(31), 30)
    assert times(path) == pytest.approx([number / 30 for number in range(31)], abs=0.0051)


def test_rates_need_not_be_whole(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    write_video(path, moving_square(5), 12.5)
    assert read(path)[1].average_rate == Fraction(25, 2)


@pytest.mark.parametrize(("width", "height"), [(161, 120), (160, 121), (33, 35), (1, 1)])
def test_an_odd_size_grows_by_a_pixel(width: int, height: int, tmp_path: Path) -> None:
    write_video(tmp_path / "video.mp4", moving_square(3, width, height))
    write_video(tmp_path / "video.gif", moving_square(3, width, height))
    assert read(tmp_path / "video.mp4")[0][0].shape == (height + height % 2, width + width % 2, 3)
    assert read(tmp_path / "video.gif")[0][0].shape == (height, width, 3)
    assert read(tmp_path / "video.mp4")[0][0][0, -1] == pytest.approx(np.array(SKY), abs=4)


@pytest.mark.parametrize(
    ("name", "frames", "fps", "says"),
    [
        ("video.avi", moving_square(2), 25, "it must be a file that ends in .mp4 or .gif or .webp"),
        ("video", moving_square(2), 25, "it must be a file that ends in .mp4 or .gif or .webp"),
        ("video.mp4", [], 25, "it must be at least one picture"),
        ("video.mp4", [np.zeros((4, 4, 3))], 25, "it must be pictures, uint8 [H, W, 3]"),
        ("video.gif", [np.zeros((4, 4), np.uint8)], 25, "it must be pictures, uint8 [H, W, 3]"),
        (
            "video.mp4",
            [np.zeros((4, 4, 3), np.uint8), np.zeros((4, 6, 3), np.uint8)],
            25,
            "uint8 [4, 4, 3], as the first one",
        ),
        ("video.mp4", moving_square(2), 0, "fps is 0; it must be frames per second, 0.01 to 1000 in .mp4 files"),
        ("video.mp4", moving_square(2), 1e-320, "0.01 to 1000 in .mp4 files"),
        ("video.mp4", moving_square(2), 10**400, "0.01 to 1000 in .mp4 files"),
        (
            "video.gif",
            moving_square(2),
            0.0001,
            "fps is 0.0001; it must be frames per second, 0.01 to 50 in .gif files",
        ),
        ("video.gif", moving_square(2), 1000, "0.01 to 50 in .gif files"),
        ("video.mp4", 5, 25, "frames is 5; it must be an iterable of pictures, uint8 [H, W, 3]"),
        ("video.mp4", moving_square(2), float("nan"), "fps is nan"),
    ],
)
def test_what_is_no_video_is_refused(name: str, frames: Any, fps: float, says: str, tmp_path: Path) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        write_video(tmp_path / name, frames, fps)
    assert says in str(caught.value)
    assert not (tmp_path / name).exists()


def test_a_name_is_text_or_a_path() -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"path is None; it must be a file that ends in \.mp4 or \.gif"):
        write_video(None, moving_square(2))  # type: ignore[arg-type]


def test_what_fails_while_frames_are_made_leaves_no_file(tmp_path: Path) -> None:
    def frames() -> Iterator[Frame]:
        yield from moving_square(3)
        raise RuntimeError("no more")

    for name in ("video.mp4", "video.gif"):
        with pytest.raises(RuntimeError, match="no more"):
            write_video(tmp_path / name, frames())
        assert not list(tmp_path.iterdir())
