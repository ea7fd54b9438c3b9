"""Videos and PNG files hold the frames that were given, in their order; notebooks show them."""

import base64
import io
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.refuses import refuses
from tests.render.pixels import read_png

from doorstep.notebook import Picture, Video
from doorstep.render import encode_png, write_png
from doorstep.video import write_video

av = pytest.importorskip("av")

SKY, RED, BROWN = (158, 194, 230), (230, 20, 20), (191, 108, 10)


def moving_square(count, width=160, height=120):
    for number in range(count):
        frame = np.full((height, width, 3), SKY, np.uint8)
        frame[20:60, 10 + 3 * number : 50 + 3 * number] = RED
        frame[70:110, 60:100] = BROWN
        yield frame


def read(file):
    """The frames of a path or an open file, their times in seconds, and the stream."""
    with av.open(str(file) if isinstance(file, Path) else file) as container:
        (stream,) = container.streams
        frames = list(container.decode(stream))
        return [frame.to_ndarray(format="rgb24") for frame in frames], [frame.time for frame in frames], stream


def test_an_mp4_shows_the_frames_it_was_made_of_and_says_how_its_colours_are_meant(tmp_path):
    path = tmp_path / "video.mp4"
    assert write_video(path, moving_square(30)) == 30
    frames, _, stream = read(path)
    assert len(frames) == 30
    context, bt709, limited = stream.codec_context, 1, 1
    assert (context.name, context.pix_fmt, context.color_range) == ("h264", "yuv420p", limited)
    assert (context.colorspace, context.color_primaries, context.color_trc) == (bt709, bt709, bt709)
    for number, (shown, given) in enumerate(zip(frames, moving_square(30), strict=True)):
        assert np.abs(shown.astype(int) - given).mean() < 4  # edges between colours are soft
        assert shown[40, 30 + 3 * number] == pytest.approx(np.array(RED), abs=4)
        assert shown[90, 80] == pytest.approx(np.array(BROWN), abs=4)


def test_a_gif_shows_few_colours_exactly_and_many_well(tmp_path):
    path = tmp_path / "video.gif"
    assert write_video(path, moving_square(30)) == 30
    assert np.array_equal(read(path)[0], list(moving_square(30)))
    rows, columns = np.mgrid[0:100, 0:140]
    given = [np.stack([rows * 2, columns + 10 * i, 0 * rows + 90], axis=-1).astype(np.uint8) for i in range(4)]
    write_video(path, given)
    for shown, frame in zip(read(path)[0], given, strict=True):
        assert np.abs(shown.astype(int) - frame).mean() < 8


def test_a_webp_shows_the_frames_it_was_made_of_again_and_again(tmp_path):
    images = pytest.importorskip("PIL.Image")
    assert write_video(tmp_path / "video.webp", moving_square(5), 12.5) == 5
    with images.open(tmp_path / "video.webp") as film:
        assert (film.format, film.n_frames, film.info["loop"]) == ("WEBP", 5, 0)
        for number, given in enumerate(moving_square(5)):
            film.seek(number)
            film.load()
            assert film.info["duration"] == 80
            assert np.abs(np.asarray(film.convert("RGB")).astype(int) - given).mean() < 4


def test_frames_come_at_the_given_rate(tmp_path):
    rates = [(ending, fps, 10, 1e-4) for ending in (".mp4", ".gif") for fps in (25, 10, 50, 0.01)]
    for ending, fps, count, within in (*rates, (".gif", 30, 31, 0.0051)):  # the last is a rate that a GIF cannot have
        write_video(tmp_path / f"video{ending}", moving_square(count), fps)
        times = read(tmp_path / f"video{ending}")[1]
        assert times == pytest.approx([number / fps for number in range(count)], abs=within)
    write_video(tmp_path / "video.mp4", moving_square(5), 12.5)
    assert read(tmp_path / "video.mp4")[2].average_rate == Fraction(25, 2)


def test_an_odd_size_grows_by_a_pixel(tmp_path):
    for width, height in ((161, 120), (160, 121), (1, 1)):
        for ending, more in ((".mp4", 1), (".gif", 0)):
            write_video(tmp_path / f"video{ending}", moving_square(3, width, height))
            frame = read(tmp_path / f"video{ending}")[0][0]
            assert frame.shape == (height + more * (height % 2), width + more * (width % 2), 3)
            assert frame[0, -1] == pytest.approx(np.array(SKY), abs=4)


def test_what_is_no_video_is_refused_and_leaves_no_file(tmp_path):
    small, other = np.zeros((4, 4, 3), np.uint8), np.zeros((4, 6, 3), np.uint8)
    form = "pictures, uint8 [H, W, 3]"
    wrong = [
        *((name, [small], 25, "be a file that ends in .mp4 or .gif or .webp") for name in ("video.avi", "video")),
        ("video.mp4", [], 25, "it must be at least one picture"),
        ("video.mp4", [small.astype(float)], 25, f"it must be {form}"), ("video.gif", [small[..., 0]], 25, form),
        ("video.mp4", [small, other], 25, "uint8 [4, 4, 3], as the first one"),
        ("video.mp4", [small], 0, "fps is 0; it must be frames per second, 0.01 to 1000 in .mp4 files"),
        ("video.mp4", [small], 10**400, "0.01 to 1000 in .mp4 files"), ("a.mp4", [small], float("nan"), "fps is nan"),
        ("video.gif", [small], 0.0001, "fps is 0.0001; it must be frames per second, 0.01 to 50 in .gif files"),
        ("video.mp4", 5, 25, f"frames is 5; it must be an iterable of {form}"),
    ]  # fmt: skip
    for name, frames, fps, says in wrong:
        refuses(re.escape(says), write_video, tmp_path / name, frames, fps)
    refuses(r"path is None; it must be a file that ends in \.mp4 or \.gif", write_video, None, [small])

    def frames():
        yield from moving_square(3)
        raise RuntimeError("no more")

    for name in ("video.mp4", "video.gif"):
        refuses("no more", write_video, tmp_path / name, frames(), error=RuntimeError)
    assert not list(tmp_path.iterdir())


# ---- PNG


def gradient():
    rows, columns = np.mgrid[0:40, 0:60]
    return np.stack([rows * 5, columns * 4, rows + columns], axis=-1).astype(np.uint8)


def test_a_png_is_read_as_it_was_written_and_is_small(tmp_path):
    def noise(*shape):
        return np.random.default_rng(3).integers(0, 256, shape, np.uint8)

    one_pixel, a_view = np.zeros((1, 1, 3), np.uint8), gradient()[::-1, ::2]
    for image in (noise(7, 5, 3), noise(4, 9, 4), noise(6, 3), gradient(), one_pixel, a_view):
        channels = image.shape[2] if image.ndim == 3 else 1
        assert np.array_equal(read_png(encode_png(image)), image.reshape(*image.shape[:2], channels))
    assert len(encode_png(gradient())) < gradient().size / 10
    path = tmp_path / "image.png"
    for shape, dtype in (((4, 4, 3), "f4"), ((4, 4, 2), "u1"), ((0, 4, 3), "u1"), ((4,), "u1"), ((1, 4, 4, 3), "u1")):
        refuses(r"image is \w+ \[.*\]; it must be uint8 \[H, W, 3\]", write_png, path, np.zeros(shape, dtype))
        assert not path.exists()
    write_png(path, gradient())
    assert path.read_bytes() == encode_png(gradient())


# ---- Notebooks


def test_notebooks_show_pictures_as_png_and_videos_with_all_their_frames():
    assert np.array_equal(read_png(Picture(gradient())._repr_png_()), gradient())
    shown = Video([np.full((32, 48, 3), 50 * number, np.uint8) for number in range(4)], fps=5)._repr_html_()
    found = re.fullmatch(r'<video controls autoplay loop muted src="data:video/mp4;base64,(.*)"></video>', shown)
    frames, times, _ = read(io.BytesIO(base64.b64decode(found[1])))
    assert times == pytest.approx([0, 0.2, 0.4, 0.6])
    assert [frame.mean() for frame in frames] == pytest.approx([0, 50, 100, 150], abs=2)
