"""The replays that pages of the documentation show live."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, PAGES

from doorstep.recording import replay_page

REPLAYS = sorted((DOCS / "images").glob("*.html"))
LARGEST = 300_000  # bytes
EMBEDDED = re.compile(
    r'<object class="replay" type="text/html" data="([^"#]+)[^>]*>\n<img src="([^"]+)" alt="[^"]+">\n</object>'
)


def test_embedded_replays_and_their_pictures_exist_and_every_replay_is_embedded() -> None:
    shown = set()
    for page in PAGES:
        text = page.read_text("utf-8")
        embedded = EMBEDDED.findall(text)
        assert len(embedded) == text.count('<object class="replay"'), page.name
        for replay, picture in embedded:
            shown.add((page.parent / replay).resolve())
            assert (page.parent / picture).is_file(), "what GitHub shows in its place"
    assert sorted(shown) == REPLAYS != []


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda path: path.name)
def test_replays_are_small_and_have_the_present_page(replay: Path) -> None:
    text = replay.read_text("utf-8")
    assert len(text) < LARGEST
    for name in (*replay_page._SCRIPTS, "page.css"):
        part = (Path(replay_page.__file__).parent / "page" / name).read_text("utf-8")
        assert part in text, f"{name} has changed: make docs-images"
