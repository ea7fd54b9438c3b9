"""Only changes are sent to the scene, and a browser shows what the state says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.eyes import FIELD_OF_VIEW, HEIGHT, centroid
from tests.view.running import Watch, Watched

import doorstep
from doorstep import EntityKind
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.render import look
from doorstep.viewer.play import LivePlay
from doorstep.viewer.stage import Stage
from doorstep.viewer.viewer import Viewer
from doorstep.viewer.world_arrays import Layout, Trails, agents


class Handle:
    """A thing in a scene; writes down what is set."""

    _name: str
    _sent: list[str]

    def __init__(self, name: str, sent: list[str], **properties: Any) -> None:
        self.__dict__.update(properties, _name=name, _sent=sent)

    def __setattr__(self, name: str, value: Any) -> None:
        self._sent.append(f"{self._name} {name}")
        self.__dict__[name] = value


class FakeScene:
    """viser's scene, as far as a stage needs it."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.things: dict[str, Handle] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("configure_"):
            return lambda *_, **__: None
        if name.startswith("add_"):
            return self._add
        raise AttributeError(name)

    def _add(self, path: str, *_: Any, visible: bool = True, **properties: Any) -> Handle:
        self.things[path] = Handle(path.removeprefix("/"), self.sent, visible=visible, **properties)
        return self.things[path]

    def take(self) -> list[str]:
        """What was sent since the last time."""
        sent = self.sent[:]
        self.sent.clear()
        return sent


def show(stage: Stage, cells: int, current: int, trails: Trails | None = None, names: str = "world") -> None:
    """As the viewer does."""
    stage.show(range(cells), current, [f"{names} {cell}" for cell in range(cells)], trails or Trails(2))


@pytest.fixture
def sim() -> Iterator[doorstep.Simulator]:
    with doorstep.Simulator(4, seed=5) as one:
        yield one


def test_the_line_around_the_chosen_world_is_not_hidden_by_walls(sim: doorstep.Simulator) -> None:
    scene, layout = FakeScene(), Layout.of(sim, 4)
    show(Stage(cast(Any, scene), sim, layout), 4, 3)
    points = vars(scene.things["/current world"])["points"].reshape(-1, 3)
    walls_end = 5.0  # metres above the floor
    assert (points[:, 2] > walls_end).all()
    assert points[:, :2].min(axis=0) == pytest.approx(layout.low + layout.offsets[3, :2])
    assert points[:, :2].max(axis=0) == pytest.approx(layout.high + layout.offsets[3, :2])


def test_only_what_moves_is_sent(sim: doorstep.Simulator) -> None:
    scene = FakeScene()
    stage = Stage(cast(Any, scene), sim, Layout.of(sim, 4))
    show(stage, 4, 0)
    scene.take()
    show(stage, 4, 0)
    assert scene.take() == []

    play = LivePlay(sim, Player(load_policy("idle"), sim).act)
    play.player = (2, 0, lambda: (3, 0, 2, 0))
    play.step()
    show(stage, 4, 0)
    walked = set(scene.take())
    assert {"agents batched_positions", "eyes batched_positions"} <= walked
    assert walked <= {
        f"{part} {array}" for part in ("agents", "eyes") for array in ("batched_positions", "batched_wxyzs")
    }

    sim.state.button_pressed.to_numpy()[1, 0] = 1
    show(stage, 4, 0)
    assert scene.take() == ["buttons batched_scales", "buttons batched_colors"]

    sim.state.door_open.to_numpy()[1, 0] = 1
    show(stage, 4, 0)
    assert scene.take() == ["doors batched_colors"]

    sim.state.body_positions.to_numpy()[3, 4, 0] += 1
    show(stage, 4, 0)
    assert scene.take() == ["cubes batched_positions"]

    show(stage, 4, 3)
    assert scene.take() == ["current world points"]
    show(stage, 4, 3, names="level")
    assert scene.take() == ["world 0 text", "world 1 text", "world 2 text", "world 3 text"]


def test_rays_are_sent_only_while_they_are_drawn(sim: doorstep.Simulator) -> None:
    scene = FakeScene()
    stage = Stage(cast(Any, scene), sim, Layout.of(sim, 4))
    show(stage, 4, 1)
    scene.take()
    stage.lidar.visible = True
    show(stage, 4, 1)
    assert scene.take() == ["lidar visible", "lidar points", "lidar colors"]
    points = vars(scene.things["/lidar"])["points"]
    assert points.shape == (60, 2, 3)
    offset = Layout.of(sim, 4).offsets[1]
    start = sim.state.body_positions.to_numpy()[1, 1] + offset + np.array([0, 0, 0.5])
    assert points[30:, 0] == pytest.approx(np.tile(start, (30, 1)))
    lengths = np.linalg.norm(points[30:, 1] - points[30:, 0], axis=1)
    assert lengths == pytest.approx(40 * sim.lidar.to_numpy()[1, 1, :, 0], rel=1e-5, abs=1e-5)
    stage.lidar.visible = False
    scene.take()
    sim.step()
    show(stage, 4, 1)
    assert [sent for sent in scene.take() if sent.startswith("lidar")] == []


def test_everything_that_is_sent_is_float32_or_bytes(sim: doorstep.Simulator) -> None:
    scene = FakeScene()
    show(Stage(cast(Any, scene), sim, Layout.of(sim, 4)), 4, 0)
    arrays = {
        (path, name): value
        for path, thing in scene.things.items()
        for name, value in vars(thing).items()
        if name.startswith("batched_")
    }
    assert len(arrays) == 8 * 4
    for (_, name), array in arrays.items():
        assert array.dtype == (np.uint8 if name == "batched_colors" else np.float32)
    assert len(arrays["/agents", "batched_positions"]) == 4 * 2
    assert len(arrays["/walls", "batched_positions"]) == 4 * 12


def test_everything_has_the_colours_of_pictures() -> None:
    scene = FakeScene()
    with doorstep.Simulator(2, num_agents=8) as sim:
        sim.state.button_pressed.to_numpy()[:] = 0
        sim.state.door_open.to_numpy()[:] = 0
        show(Stage(cast(Any, scene), sim, Layout.of(sim, 2)), 2, 0, Trails(8))
        button_doors = sim.state.button_doors.copy_to_host()

    def shown(name: str) -> Any:
        light = np.reshape(vars(scene.things[name])["batched_colors"], (-1, 3)) / 255
        return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)  # sRGB, IEC 61966-2-1

    doors = np.array([look.rgb(colour) for colour in look.DOORS])
    assert shown("/agents") == pytest.approx(np.array([look.rgb(colour) for colour in look.AGENTS] * 2), abs=0.01)
    assert shown("/walls") == pytest.approx(np.array([look.rgb(look.WALL)]), abs=0.01)
    assert shown("/cubes") == pytest.approx(np.array([look.rgb(look.CUBE)]), abs=0.01)
    assert shown("/floors") == pytest.approx(np.array([look.rgb(look.FLOOR)]), abs=0.01)
    assert shown("/doors") == pytest.approx(np.concatenate([doors[:3]] * 2), abs=0.01)
    assert shown("/buttons") == pytest.approx(doors[button_doors.reshape(-1)], abs=0.01)


def test_an_agent_that_leaves_the_cell_of_its_world_shrinks_and_is_gone_before_the_next_world(
    sim: doorstep.Simulator,
) -> None:
    layout = Layout.of(sim, 4)
    heights = []
    for beyond in (-0.1, 1.0, 2.0, 50.0):
        sim.state.body_positions.to_numpy()[1, 0, 1] = layout.high[1] + beyond
        heights.append(agents(sim, range(4), layout).sizes[2, 2])
    whole = agents(sim, range(4), layout).sizes[0, 2]
    assert heights == pytest.approx([whole, whole / 2, 0, 0], abs=1e-3)


def test_trails_are_where_the_agents_of_the_chosen_world_were(sim: doorstep.Simulator) -> None:
    trails, offset = Trails(2), np.array([100.0, 0, 0], np.float32)
    points, _ = trails.segments(offset)
    assert (points[:, 0] == points[:, 1]).all()  # nothing
    seen = []
    for step in range(3):
        sim.state.body_positions.to_numpy()[1, 0] = (step, 2 * step, 0)
        trails.add(sim, 1)
        seen.append((100 + step, 2 * step))
    points, colours = trails.segments(offset)
    assert points.shape == (2 * 59, 2, 3)
    assert colours.shape == (2 * 59, 3)
    of_agent = points[::2]
    assert of_agent[-2:, :, :2].tolist() == [[list(seen[0]), list(seen[1])], [list(seen[1]), list(seen[2])]]
    trails.clear()
    assert (trails.segments(offset)[0][:, 0] == trails.segments(offset)[0][:, 1]).all()


def test_worlds_do_not_overlap_and_the_first_keeps_its_coordinates() -> None:
    with doorstep.Simulator(64) as sim:
        layout = Layout.of(sim, 64)
    assert layout.low == pytest.approx((-11, -1))
    assert layout.high == pytest.approx((11, 40))
    assert layout.offsets[0] == pytest.approx((0, 0, 0))
    size = layout.high - layout.low
    apart = np.abs(layout.offsets[:, None, :2] - layout.offsets[None, :, :2])
    assert ((apart >= size).any(axis=-1) | np.eye(64, dtype=bool)).all()


@pytest.mark.parametrize(
    ("cells", "columns", "rows"), [(1, 1, 1), (2, 2, 1), (3, 2, 2), (9, 3, 3), (16, 4, 4), (60, 8, 8), (64, 8, 8)]
)
def test_worlds_are_placed_in_a_square(cells: int, columns: int, rows: int) -> None:
    with doorstep.Simulator(1) as sim:
        offsets = Layout.of(sim, cells).offsets
    assert len(np.unique(offsets[:, 0])) == columns
    assert len(np.unique(offsets[:, 1])) == rows
    assert (np.diff(offsets[:columns, 0]) > 0).all()  # the first row from left to right
    assert len(np.unique(offsets, axis=0)) == cells


def state(watched: Watched, name: str) -> Any:
    """A field of world 0."""
    return watched.ask(lambda viewer: getattr(viewer._sim.state, name).copy_to_host()[0])


def edit(watched: Watched, name: str, slot: Any, value: Any) -> None:
    def write(viewer: Viewer) -> None:
        getattr(viewer._sim.state, name).to_numpy()[0, slot] = value

    watched.ask(write)


@pytest.mark.slow
def test_everything_is_seen_where_the_state_has_it(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        watched.eyes.look_down(0, 20, 45)
        tops = {EntityKind.AGENT: 1.9, EntityKind.CUBE: 1.5}
        positions, kinds = state(watched, "body_positions"), state(watched, "body_kinds")
        bodies = [position + np.array([0, 0, tops[kind]]) for position, kind in zip(positions, kinds, strict=True)]
        assert kinds.tolist() == [EntityKind.AGENT] * 2 + [EntityKind.CUBE] * (len(kinds) - 2)
        statics, sizes = state(watched, "static_positions"), state(watched, "static_sizes")
        door_colours = ("pink", "yellow", "blue")  # purple, yellow, teal
        colours = dict(zip(state(watched, "door_static").tolist(), door_colours, strict=True))
        watched.until_seen(
            *zip(bodies, ["blue", "orange"] + ["orange"] * (len(bodies) - 2), strict=True),
            *(
                (button, door_colours[door])
                for button, door in zip(
                    state(watched, "button_positions"), state(watched, "button_doors"), strict=True
                )
            ),
            *((top, colours.get(slot, "white")) for slot, top in enumerate(statics + sizes * (0, 0, 1))),
            ((0.0, 5.0, 0.0), "white"),  # the floor
            ((15.0, 20.0, 0.0), "black"),  # nothing
        )


@pytest.mark.slow
def test_eyes_show_where_an_agent_looks(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        edit(watched, "body_positions", slice(0, 2), [(9.0, 1.0, 0.0), (0.0, 6.0, 0.0)])
        edit(watched, "body_rotations", 1, (np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4)))  # to the left
        watched.eyes.look_down(0, 6, 8)
        sides = (6.0 - 0.36, 6.0 + 0.36)
        eyes = [((-0.85, y, 1.38), "black") for y in sides]
        back = [((0.5, y, 1.6), "orange") for y in sides]
        watched.until_seen(*eyes, *back)


@pytest.mark.slow
def test_an_open_door_is_gone_and_a_closed_one_is_there(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        slot = int(state(watched, "door_static")[0])
        door = state(watched, "static_positions")[slot]
        watched.eyes.look_down(door[0], door[1], 20)
        watched.until_seen(((*door[:2], 4.375), "pink"))
        edit(watched, "door_open", 0, 1)
        edit(watched, "static_positions", (slot, 2), -4.8)
        watched.until_seen(((*door[:2], 0.0), "white"))


@pytest.mark.slow
def test_a_pressed_button_lights_up(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        button = state(watched, "button_positions")[0]
        watched.eyes.look_down(button[0], button[1], 6)
        watched.until_seen((button, "pink"))
        edit(watched, "button_pressed", 0, 1)
        watched.until_seen((button, "green"))


@pytest.mark.slow
def test_an_agent_moves_on_the_screen_as_far_as_in_the_world(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        watched.ask(lambda viewer: viewer.show_trails(False))  # they have the colours of agents
        edit(watched, "body_positions", slice(0, 2), [(0.0, 4.0, 0.0), (9.0, 1.0, 0.0)])
        edit(watched, "body_rotations", 0, (1, 0, 0, 0))
        watched.eyes.look_down(0, 6, 15)
        watched.until_seen(((0, 4, 1.9), "blue"))
        before = centroid(watched.eyes.see(), "blue")

        def walk(viewer: Viewer) -> None:
            viewer._play.player = (0, 0, lambda: (3, 0, 2, 0))  # type: ignore[attr-defined]
            for _ in range(4):
                viewer.step_once()

        watched.ask(walk)
        assert state(watched, "body_positions")[0, 1] == pytest.approx(8.0, abs=0.05)
        watched.until_seen(((0, 8, 1.9), "blue"))
        up, left = before - centroid(watched.eyes.see(), "blue")
        pixels_per_metre = HEIGHT / 2 / np.tan(FIELD_OF_VIEW / 2) / (15 - 1.0)  # halfway up the agent
        assert up == pytest.approx(4 * pixels_per_metre, rel=0.1)
        assert abs(left) < 3


@pytest.mark.slow
def test_worlds_stand_side_by_side_with_the_numbers_of_the_sheet(watch: Watch) -> None:
    with watch(worlds=70, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        watched.ask(lambda viewer: viewer.choose_world(69))
        layout = watched.ask(lambda viewer: viewer._layout)
        assert layout.cells == 64
        first = watched.ask(lambda viewer: viewer._shown).start
        assert first == 6
        positions = watched.ask(lambda viewer: viewer._sim.state.body_positions.copy_to_host())
        for cell in (0, 30, 63):
            cube = positions[first + cell, 5] + layout.offsets[cell]
            watched.eyes.look_down(cube[0], cube[1], 12)
            top = cube + np.array([0, 0, 1.5], np.float32)
            watched.until_seen((top, "orange"))


@pytest.mark.slow
def test_rays_are_drawn_once_they_are_switched_on(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        edit(watched, "body_positions", 0, (0.0, 6.0, 0.0))
        edit(watched, "body_rotations", 0, (1, 0, 0, 0))
        edit(watched, "body_positions", 1, (-8.0, 2.0, 0.0))
        watched.ask(lambda viewer: viewer._sim.refresh())
        watched.eyes.look_down(0, 6, 6)
        eighth = 2 * np.pi * 8 / 30 + np.pi / 2
        on_a_ray, beside = (2 * np.cos(eighth), 6 + 2 * np.sin(eighth), 0.5), (-1.9, 6.0, 0.5)
        watched.until_seen((on_a_ray, "white"), (beside, "white"))
        watched.page.get_by_role("checkbox", name="lidar rays").check()
        watched.until_seen((on_a_ray, "blue"), (beside, "white"))
        watched.page.get_by_role("checkbox", name="lidar rays").uncheck()
        ahead, too_far = (0.0, 7.5, 0.5), (0.0, 8.3, 0.5)
        watched.until_seen((on_a_ray, "white"), (ahead, "white"))
        watched.page.get_by_role("checkbox", name="grab rays").check()
        watched.until_seen((ahead, "blue"), (too_far, "white"))
