"""What notebooks show of pictures and videos."""

import base64
import io
import re
import sys
from typing import Any

import numpy as np
import pytest
from tests.render.pixels import read_png

import doorstep
from doorstep.notebook import Picture, Video


def test_a_picture_is_shown_as_png() -> None:
    with doorstep.Simulator(1) as sim:
        frame = sim.render(width=40, height=30)
    assert np.array_equal(read_png(Picture(frame)._repr_png_()), frame)


def test_a_video_is_shown_with_all_its_frames() -> None:
    av = pytest.importorskip("av")
    frames = [np.full((32, 48, 3), 50 * number, np.uint8) for number in range(4)]
    shown = Video(frames, fps=5)._repr_html_()
    found = re.fullmatch(r'<video controls autoplay loop muted src="data:video/mp4;base64,(.*)"></video>', shown)
    assert found
    with av.open(io.BytesIO(base64.b64decode(found[1]))) as container:
        decoded = [(frame.time, frame.to_ndarray(format="rgb24").mean()) for frame in container.decode(video=0)]
    assert [time for time, _ in decoded] == pytest.approx([0, 0.2, 0.4, 0.6])
    assert [grey for _, grey in decoded] == pytest.approx([0, 50, 100, 150], abs=2)


def test_a_browser_plays_the_video(browser: Any) -> None:
    pytest.importorskip("av")
    video = Video([np.full((32, 48, 3), 50 * number, np.uint8) for number in range(4)], fps=5)
    page = browser.new_page()
    page.set_content(video._repr_html_())
    page.wait_for_function("document.querySelector('video').readyState >= HTMLMediaElement.HAVE_CURRENT_DATA")
    sizes = page.evaluate("(v => [v.videoWidth, v.videoHeight, v.duration])(document.querySelector('video'))")
    assert sizes == pytest.approx([48, 32, 0.8])
    page.close()


def test_without_pyav_a_video_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(doorstep.LibraryError, match=r'pip install "doorstep\[video\]"'):
        Video([np.zeros((4, 4, 3), np.uint8)])
