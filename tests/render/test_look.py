"""The table of the look: everything that is drawn for people takes its colours from there."""

import itertools
import json
import re

import numpy as np

import doorstep
from doorstep.recording.replay_page import ReplayPage
from doorstep.render import look
from doorstep.render.drawing import _LOOK
from doorstep.render.lettering import put_text, text_width
from doorstep.render.objects import objects_of
from doorstep.render.shapes import shapes_of

COLOUR = re.compile(r"#[0-9a-f]{6}")


def test_colours_of_agents_and_doors_are_unlike_each_other() -> None:
    for first, second in itertools.combinations([*look.AGENTS, *look.DOORS[:3], look.CUBE, look.WALL], 2):
        assert np.abs(np.subtract(look.rgb(first), look.rgb(second))).max() > 0.09, (first, second)


def test_the_page_of_a_replay_holds_the_table() -> None:
    with doorstep.Simulator(1, num_threads=1) as sim:
        page = ReplayPage(sim, [0], "").to_html()
    found = re.search(r'<script type="application/json" id="recording">(.*?)</script>', page, re.DOTALL)
    assert found
    recording = json.loads(found[1])
    assert recording["look"] == json.loads(json.dumps(look.table()))
    assert recording["colours"] == list(look.OBJECTS)
    script = page.replace(found[1], "")
    style = page[page.index("<style>") : page.index("</style>")]
    assert set(COLOUR.findall(style)) <= {value for value in look.table().values() if isinstance(value, str)}
    assert not COLOUR.findall(script.replace(style, ""))


def test_pictures_are_drawn_with_the_table() -> None:
    with doorstep.Simulator(1, num_threads=1, num_agents=3) as sim:
        (snapshot,) = sim._snapshots([0])
    objects = objects_of(snapshot)
    drawn = objects["kind"] != 0
    shapes = shapes_of(snapshot, objects, drawn)
    table = {tuple(np.round(look.rgb(colour), 4)) for colour in (*look.OBJECTS, look.FLOOR, look.GRID, look.GOAL)}
    assert {tuple(np.round(row.tolist(), 4)) for row in shapes["colour"]} <= table
    assert [look.OBJECTS[index] for index in objects["colour"][:3]] == list(look.AGENTS[:3])
    for name in ("ground", "background", "eye", "pupil"):
        assert _LOOK[name] == look.rgb(getattr(look, name.upper()))


def test_every_letter_is_unlike_every_other() -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.,:-+/()%_'!?<>="
    seen = {}
    for letter in letters:
        image = np.full((24, 16, 3), 255, np.uint8)
        put_text(image, letter, 12, 2, 3)
        assert image.min() < 120, letter
        seen[letter] = image.tobytes()
    assert len(set(seen.values())) == len(letters)


def test_text_stays_within_its_width_and_the_image() -> None:
    image = np.full((40, 200, 3), 255, np.uint8)
    put_text(image, "step 57", 12, 10, 10)
    rows, columns = np.nonzero(image.min(axis=-1) < 200)
    assert columns.min() >= 9
    assert columns.max() <= 11 + text_width("step 57", 12)
    assert rows.max() - rows.min() < 12 * 1.5
    put_text(image, "beyond the border", 12, 150, 36)
    put_text(image, "\u00fc", 12, -3, -3)  # not in the font
