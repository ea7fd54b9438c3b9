"""Heat maps count where the agents of a recording were."""

import dataclasses

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep
from doorstep._native import EntityKind
from doorstep.plots import plot_positions
from doorstep.plots.heat_maps import Visits, _count_beyond, _figure, count_visits
from doorstep.recording import RecordingWriter

pytest.importorskip("matplotlib")


def test_every_agent_is_counted_once_a_step_where_it_is(tmp_path):
    expected, positions = {}, []
    with doorstep.Simulator(3, seed=4) as sim, RecordingWriter(tmp_path / "walk.rec", sim) as writer:
        for step in range(25):
            sim.actions[:] = (2, step % 8, 2, 0)
            writer.step()
            positions.append(sim.state.body_positions.copy_to_host()[:, :2, :2].reshape(-1, 2))
    visits = count_visits(tmp_path / "walk.rec")
    for x, y in np.concatenate(positions).tolist():
        cell = (int((x - visits.low[0]) // 0.5), int((y - visits.low[1]) // 0.5))
        expected[cell] = expected.get(cell, 0) + 1
    assert visits.counts.sum() == 25 * 3 * 2
    assert {cell: int(visits.counts[cell]) for cell in expected} == expected


def test_walls_that_all_worlds_have_are_whole(tmp_path):
    with doorstep.Simulator(8) as sim, RecordingWriter(tmp_path / "a.rec", sim) as writer:
        writer.step()
    visits = count_visits(tmp_path / "a.rec")
    assert set(visits.statics[:, 0]) == {EntityKind.WALL, EntityKind.DOOR}
    assert visits.shares.max() == 1
    doors = visits.statics[:, 0] == EntityKind.DOOR
    assert visits.shares[doors].sum() == pytest.approx(3)  # a world has three, at places of its own


def test_steps_beyond_the_picture_are_counted_by_side():
    positions = np.array([[0, 5], [0, -1], [0, 11], [9, 12], [-6, 5], [6, 5], [7, 5.0]])
    assert _count_beyond(positions, np.array([-5.0, 0]), np.array([5.0, 10])).tolist() == [1, 2, 1, 2]


def test_maps_say_where_agents_beyond_them_were():
    low, high, statics = np.array([-5.0, 0]), np.array([5.0, 10]), np.array([[EntityKind.WALL, 0, 0.5, 10, 1]])
    counts = np.zeros((20, 20))
    counts[3, 4] = 96
    seen = Visits("all.rec", low, high, counts, np.zeros(4), statics, np.ones(1))
    left = dataclasses.replace(seen, title="left.rec", beyond=np.array([0.0, 3, 0.5, 0.5]))
    first, second, bar = _figure([seen, left]).axes
    assert first.get_xlabel() == "x, m\n"
    assert second.get_xlabel().splitlines() == [
        *("x, m", "3% of steps beyond y = 10 m"),
        *("below 1% of steps beyond x = -5 m", "below 1% of steps beyond x = 5 m"),
    ]
    assert second.images[0].get_array().max() == pytest.approx(0.96)
    filled, outline = second.patches
    assert (filled.get_bbox().bounds, outline.get_bbox().bounds) == ((-5, 0, 10, 1), (-5, 0, 10, 1))
    assert filled.zorder < second.images[0].zorder < outline.zorder
    assert bar.get_xlabel() == "share of the agents' steps in a cell of 0.5 m x 0.5 m"


def test_titles_are_within_the_picture():
    low, high, statics = np.array([-11.0, -1]), np.array([11.0, 40]), np.array([[EntityKind.WALL, 0, 0, 22, 1]])
    rooms = Visits("rooms.rec", low, high, np.ones((44, 82)), np.array([0, 9.0, 0, 0]), statics, np.ones(1))
    for count in (1, 3):
        figure = _figure([rooms] * count)
        figure.draw_without_rendering()
        assert all(axis.get_tightbbox().y1 <= figure.bbox.height for axis in figure.axes[:count])


def test_pictures_and_mistakes(tmp_path):
    with doorstep.Simulator(2) as sim, RecordingWriter(tmp_path / "a.rec", sim) as writer:
        writer.step()
    with doorstep.Simulator(2) as sim, RecordingWriter(tmp_path / "none.rec", sim):
        pass
    plot_positions([tmp_path / "a.rec"] * 2, tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_bytes().startswith(b"<?xml")
    refuses(r"none\.rec has no steps", plot_positions, [tmp_path / "none.rec"], tmp_path / "map.png")
    for refused in ([], "a.rec", True, 3):
        refuses("a sequence of files of recordings", plot_positions, refused, tmp_path / "map.png")
    assert not (tmp_path / "map.png").exists()
