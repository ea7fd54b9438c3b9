"""Names of levels, files and titles stay text in replay pages and notebooks, whatever they contain."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.markup import HOSTILE, HOSTILE_NAME, Markup

import doorstep
from doorstep.recording import Recording, RecordingWriter
from doorstep.recording.replay_page import ReplayPage


def page_of(name: str) -> str:
    level = doorstep.levels.curated()["one door"].replace(name=name, description=name)
    with doorstep.Simulator(1, levels=level, num_threads=1) as sim:
        page = ReplayPage(sim, [0], name)
        sim.step()
        page.record()
        return page.to_html()


def test_a_replay_page_shows_names_as_text() -> None:
    page = page_of(HOSTILE)
    markup, plain = Markup(page), Markup(page_of("plain"))
    assert markup.elements == plain.elements
    assert HOSTILE in markup.texts["title"]
    assert HOSTILE in markup.texts["h1"]
    found = re.search(r'<script type="application/json" id="recording">(.*?)</script>', page, re.DOTALL)
    assert found
    assert "<" not in found[1]
    assert json.loads(found[1])["worlds"][0]["level"] == HOSTILE


def test_a_notebook_shows_the_name_of_a_recording_as_text(tmp_path: Path) -> None:
    path = tmp_path / HOSTILE_NAME
    with doorstep.Simulator(1, num_threads=1) as sim, RecordingWriter(path, sim) as writer:
        writer.step()
    with Recording(path) as recording:
        ((name, attributes),) = Markup(recording._repr_html_()).elements
    assert (name, sorted(attributes)) == ("iframe", ["srcdoc", "style"])
    page = Markup(attributes["srcdoc"] or "")
    assert "img" not in page.names
    assert page.names.count("script") == 2
    assert HOSTILE_NAME in page.texts["title"]
