"""Writes frames as a video: MP4 (H.264), GIF or WebP, with PyAV."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import is_number, refuse
from doorstep._files import check_ending, replaced_file
from doorstep._optional import import_optional
from doorstep.errors import RendererError

__all__ = ["write_video"]

Frame = NDArray[np.uint8]  # [H, W, 3]

FRAMES_PER_SECOND = 25  # as the worlds have it: a step is 0.04 s
MIN_FRAMES_PER_SECOND = 0.01
_QUALITY = "18"  # x264's constant rate factor: nearly no visible difference
_WEBP_QUALITY = "80"  # 0 to 100
_BT709 = 1  # the standard's number in H.264 for colours, their primaries and transfer, and PyAV's for their matrix


def write_video(path: str | os.PathLike[str], frames: Iterable[Frame], fps: float = FRAMES_PER_SECOND) -> int:
    """Writes frames, uint8 [H, W, 3] and all of one size, as .mp4, .gif or .webp; returns how many there were.

    MP4 has even sizes only: an odd width or height grows by one pixel, which repeats the last one. GIF has 256 colours,
    chosen for all frames together, which are therefore held in memory, and shows a frame for a whole number of
    hundredths of a second: at 30 frames a second for 0.03 or 0.04 s. The rate is 0.01 to 1000, for GIF to
    50, for WebP to 100.

    >>> import doorstep, os, tempfile
    >>> from doorstep.video import write_video
    >>> path = os.path.join(tempfile.mkdtemp(), "world.mp4")
    >>> def frames(sim, steps):
    ...     for _ in range(steps):
    ...         yield sim.render(camera="follow", width=320, height=240)
    ...         sim.step()
    >>> with doorstep.Simulator(1) as sim:
    ...     write_video(path, frames(sim, 5))
    5

    Raises:
        ArgumentError: another ending of the name, a rate out of range, no frames, or a frame that is not a picture of
            the size of the first.
        LibraryError: PyAV is missing: pip install "doorstep[video]".
        RendererError: the encoder refuses the frames.
        OSError: the file cannot be written; an older file at `path` is unchanged.
    """
    ending = check_ending(path, _ENCODERS)
    rate = _check_rate(fps, ending)
    av = load_av()
    with replaced_file(path) as file:
        checked = _CheckedFrames(frames)
        try:
            data = _ENCODERS[ending](av, checked, rate)
        except av.error.FFmpegError as error:
            height, width = checked.first.shape[:2]
            raise RendererError(
                f"{width} x {height} pixels at {fps} frames a second cannot be encoded: {error}"
            ) from error
        file.write(data)
    return checked.count


def load_av() -> Any:
    """PyAV, which only videos need."""
    return import_optional("av", "videos need PyAV", "video")


def _check_rate(fps: object, ending: str) -> Fraction:
    highest = _MAX_RATES[ending]
    requirement = f"frames per second, {MIN_FRAMES_PER_SECOND} to {highest} in {ending} files"
    if not is_number(fps) or not MIN_FRAMES_PER_SECOND <= fps <= highest:
        refuse("fps", requirement, fps)
    return Fraction(float(fps)).limit_denominator(1001)


class _CheckedFrames:
    """Frames of one size; at least one."""

    def __init__(self, frames: Iterable[Frame]) -> None:
        self.count = 0
        try:
            self._frames = iter(frames)
        except TypeError:
            refuse("frames", "an iterable of pictures, uint8 [H, W, 3]", frames)
        first = next(self._frames, None)
        if first is None:
            refuse("frames", "at least one picture", frames)
        self.first = _check_frame(first, None)

    def __iter__(self) -> Iterator[Frame]:
        for frame in chain([self.first], self._frames):
            self.count += 1
            yield _check_frame(frame, self.first.shape)


def _check_frame(frame: Any, shape: tuple[int, ...] | None) -> Frame:
    pixels = np.asarray(frame)
    fits = pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[2] == 3 and pixels.size > 0
    if not fits or pixels.shape != (shape or pixels.shape):
        wanted = "uint8 [H, W, 3]" if shape is None else f"uint8 {list(shape)}, as the first one"
        refuse("frames", f"pictures, {wanted}", f"{pixels.dtype} {list(pixels.shape)}")
    return pixels


# ---- MP4


def _encode_mp4(av: Any, frames: _CheckedFrames, rate: Fraction) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=rate, options={"crf": _QUALITY})
        height, width = _even(frames.first).shape[:2]
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        # Players must not guess by the size which standard turned the colours into brightness and differences.
        context = stream.codec_context
        context.colorspace = context.color_primaries = context.color_trc = _BT709
        context.color_range = av.video.reformatter.ColorRange.MPEG
        for frame in frames:
            picture = av.VideoFrame.from_ndarray(_even(frame), format="rgb24")
            container.mux(stream.encode(picture.reformat(format="yuv420p", dst_colorspace=_BT709)))
        container.mux(stream.encode())
    return file.getvalue()


def _even(frame: Frame) -> Frame:
    """Half of the pixels have a colour of their own in each direction."""
    height, width = frame.shape[:2]
    return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")


# ---- GIF


def _encode_gif(av: Any, frames: _CheckedFrames, rate: Fraction) -> bytes:
    """Two passes: the first finds the palette."""
    pictures = [av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24") for frame in frames]
    palette = _palette(av, pictures)
    file = io.BytesIO()
    with av.open(file, "w", format="gif") as container:
        stream = container.add_stream("gif", rate=rate)
        stream.height, stream.width = frames.first.shape[:2]
        stream.pix_fmt = "pal8"
        for picture in _in_palette(av, pictures, palette, rate):
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return file.getvalue()


def _palette(av: Any, pictures: list[Any]) -> Any:
    graph = av.filter.Graph()
    source = _buffer(graph, pictures[0])
    generator, sink = graph.add("palettegen"), graph.add("buffersink")
    _link(source, generator, sink)
    graph.configure()
    for picture in pictures:
        source.push(picture)
    source.push(None)
    return sink.pull()


def _in_palette(av: Any, pictures: list[Any], palette: Any, rate: Fraction) -> Iterator[Any]:
    graph = av.filter.Graph()
    source, palette_source = _buffer(graph, pictures[0]), _buffer(graph, palette)
    user, sink = graph.add("paletteuse", "dither=none"), graph.add("buffersink")
    source.link_to(user, 0, 0)
    palette_source.link_to(user, 0, 1)
    user.link_to(sink)
    graph.configure()
    palette_source.push(palette)
    palette_source.push(None)
    for number, picture in enumerate(pictures):
        picture.pts = number
        source.push(picture)
    source.push(None)
    for number in range(len(pictures)):
        shown = sink.pull()
        shown.pts, shown.time_base = number, 1 / rate
        yield shown


def _buffer(graph: Any, picture: Any) -> Any:
    return graph.add_buffer(
        width=picture.width, height=picture.height, format=picture.format.name, time_base=Fraction(1, 1000)
    )


def _link(*filters: Any) -> None:
    for first, second in pairwise(filters):
        first.link_to(second)


# ---- WebP


def _encode_webp(av: Any, frames: _CheckedFrames, rate: Fraction) -> bytes:
    """An animation that repeats."""
    file = io.BytesIO()
    with av.open(file, "w", format="webp", container_options={"loop": "0"}) as container:
        stream = container.add_stream("libwebp_anim", rate=rate, options={"quality": _WEBP_QUALITY})
        stream.height, stream.width = frames.first.shape[:2]
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return file.getvalue()


_ENCODERS: dict[str, Callable[[Any, _CheckedFrames, Fraction], bytes]] = {
    ".mp4": _encode_mp4,
    ".gif": _encode_gif,
    ".webp": _encode_webp,
}
# Players show a frame of a GIF for at least 0.02 s; what asks for less gets 0.1 s.
_MAX_RATES = {".mp4": 1000, ".gif": 50, ".webp": 100}
VIDEO_ENDINGS = tuple(_ENCODERS)
