"""All plots have one style."""

import numpy as np
import pytest

from doorstep.plots import figures

matplotlib = pytest.importorskip("matplotlib")


def test_the_style_does_not_depend_on_the_settings_of_users_and_leaves_them():
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "grid.color": "red"}):
        with figures.styled():
            axis = figures.new_figure(2).subplots()
            assert matplotlib.rcParams["font.size"] < 12
        assert matplotlib.rcParams["font.size"] == 30
    assert matplotlib.colors.to_hex(axis.get_facecolor()) == "#ffffff"


def test_every_thing_has_a_colour_of_its_own():
    for count in (1, 10, 11, 40):
        colours = [matplotlib.colors.to_hex(colour) for colour in figures.colours(count)]
        assert len(set(colours)) == count
        assert count > 10 or colours == [colour.lower() for colour in figures.COLOURS[:count]]


@pytest.mark.parametrize("shades", [figures.SHADES, figures.OPPOSITES])
def test_letters_can_be_read_on_every_cell(shades):
    def luminance(colour):  # WCAG 2.1
        channels = np.array(matplotlib.colors.to_rgb(colour))
        linear = np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    mesh = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(0, 1), figures.colour_map(shades))
    for percent in range(101):
        cell, ink = (luminance(colour) for colour in (mesh.to_rgba(percent / 100), figures.ink_on(mesh, percent / 100)))
        assert (max(cell, ink) + 0.05) / (min(cell, ink) + 0.05) > 4, percent


def test_long_names_keep_their_ends_and_numbers_are_short():
    assert figures.shortened("runs/large/seed3", 20) == "runs/large/seed3"
    assert figures.shortened("runs/large/seed3", 6) == "…seed3"
    assert [figures.in_short(value) for value in (0, 1200, 2e6, 3e9)] == ["0", "1.2k", "2M", "3G"]
    assert figures.in_short(-1.5) == "\N{MINUS SIGN}1.5"
    assert [figures.in_percent(value) for value in (0, 0.0001, 0.5, 1)] == ["0%", "0.01%", "50%", "100%"]
