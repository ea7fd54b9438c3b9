"""The table of the look: everything that is drawn for people takes its colours from there."""

import itertools
import json
import re

import numpy as np
from tests.render.test_replay import read_recording

import doorstep
from doorstep.recording.replay_page import ReplayPage
from doorstep.render import look
from doorstep.render.lettering import put_text, text_width

COLOUR = re.compile(r"#[0-9a-f]{6}")


def test_colours_of_agents_and_doors_are_unlike_each_other():
    for first, second in itertools.combinations([*look.AGENTS, *look.DOORS[:3], look.CUBE, look.WALL], 2):
        assert np.abs(np.subtract(look.rgb(first), look.rgb(second))).max() > 0.09, (first, second)


def test_the_page_of_a_replay_holds_the_table():
    with doorstep.Simulator(1, num_threads=1) as sim:
        page = ReplayPage(sim, [0], "").to_html()
    recording, _ = read_recording(page)
    assert recording["look"] == json.loads(json.dumps(look.table()))
    assert recording["colours"] == list(look.OBJECTS)
    script = page.partition('id="recording">')[0] + page.partition('id="recording">')[2].partition("</script>")[2]
    style = page[page.index("<style>") : page.index("</style>")]
    assert set(COLOUR.findall(style)) <= {value for value in look.table().values() if isinstance(value, str)}
    assert not COLOUR.findall(script.replace(style, ""))


def test_text_stays_within_its_width_and_the_image():
    image = np.full((40, 200, 3), 255, np.uint8)
    put_text(image, "step 57", 12, 10, 10)
    rows, columns = np.nonzero(image.min(axis=-1) < 200)
    assert 9 <= columns.min() < columns.max() <= 11 + text_width("step 57", 12)
    assert np.ptp(rows) < 12 * 1.5
    put_text(image, "beyond the border", 12, 150, 36)
    put_text(image, "\u00fc", 12, -3, -3)  # not in the font
