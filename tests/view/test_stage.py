"""Only changes are sent to the scene, and a browser shows what the state says."""

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.render.level_worlds import full_level, mixed_levels, playing

from doorstep import Cameras, levels
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.render import look
from doorstep.viewer.agent_panel import AgentCamera
from doorstep.viewer.play import LivePlay
from doorstep.viewer.stage import Stage, _agent_eyes
from doorstep.viewer.viewer import Viewer
from doorstep.viewer.world_arrays import Layout, Trails, agents, buttons, cubes, doors, grab_rays, lidar_rays, walls


class Handle:
    """A thing in a scene; writes down what is set."""

    def __init__(self, name, sent, **properties):
        self.__dict__.update(properties, _name=name, _sent=sent)

    def __setattr__(self, name, value):
        self._sent.append(f"{self._name} {name}")
        self.__dict__[name] = value


class Shown:
    """A stage in what stands for viser's scene, as far as a stage needs it, shown as the viewer does."""

    def __init__(self, sim):
        self.sent, self.things = [], {}
        self.layout = Layout.of(sim, sim.num_worlds)
        self.stage, self.trails = Stage(self, sim, self.layout), Trails(sim.num_agents)

    def __getattr__(self, name):
        if name.startswith("configure_"):
            return lambda *_, **__: None
        if name.startswith("add_"):
            return self._add
        raise AttributeError(name)

    def _add(self, path, *_, visible=True, **properties):
        self.things[path] = Handle(path.removeprefix("/"), self.sent, visible=visible, **properties)
        return self.things[path]

    def show(self, current=0, names="world"):
        """Returns what is sent."""
        self.sent.clear()
        cells = self.layout.cells
        self.stage.show(range(cells), current, [f"{names} {cell}" for cell in range(cells)], self.trails)
        return list(self.sent)

    def array(self, path, name):
        return vars(self.things[path])[name]


def test_the_line_around_the_chosen_world_is_not_hidden_by_walls(sim):
    shown = Shown(sim)
    shown.show(3)
    points, layout = shown.array("/current world", "points").reshape(-1, 3), shown.layout
    assert (points[:, 2] > 5.0).all()  # where walls end
    assert points[:, :2].min(axis=0) == pytest.approx(layout.low + layout.offsets[3, :2])
    assert points[:, :2].max(axis=0) == pytest.approx(layout.high + layout.offsets[3, :2])


def test_only_what_changes_is_sent_in_its_type(sim):
    shown, state = Shown(sim), sim.state
    shown.show()
    found = [(path, *item) for path, thing in shown.things.items() for item in vars(thing).items()]
    arrays = {(path, name[8:]): value for path, name, value in found if name.startswith("batched_")}
    assert len(arrays) == 8 * 4
    assert all(array.dtype == (np.uint8 if name == "colors" else np.float32) for (_, name), array in arrays.items())
    assert [len(arrays[path, "positions"]) for path in ("/agents", "/walls")] == [4 * 2, 4 * 12]
    assert shown.show() == []

    play = LivePlay(sim, Player(load_policy("idle"), sim).act)
    play.player = (2, 0, lambda: (3, 0, 2, 0))
    play.step()
    walked = set(shown.show())
    assert {"agents batched_positions", "eyes batched_positions"} <= walked
    assert walked <= {f"{part} batched_{name}" for part in ("agents", "eyes") for name in ("positions", "wxyzs")}
    for name, place, sent in (
        ("button_pressed", (1, 0), ["buttons batched_scales", "buttons batched_colors"]),
        ("door_open", (1, 0), ["doors batched_colors"]), ("body_positions", (3, 4, 0), ["cubes batched_positions"]),
    ):  # fmt: skip
        getattr(state, name).to_numpy()[place] += 1
        assert shown.show() == sent
    assert shown.show(3) == ["current world points"]
    assert shown.show(3, names="level") == [f"world {number} text" for number in range(4)]


def test_rays_are_sent_only_while_they_are_drawn(sim):
    sim.state.body_rotations.to_numpy()[1, 1] = (np.cos(0.35), 0, 0, np.sin(0.35))
    sim.refresh()
    shown = Shown(sim)
    shown.show(1)
    shown.stage.lidar.visible = True
    assert shown.show(1) == ["lidar points", "lidar colors"]
    points = shown.array("/lidar", "points")
    start = sim.state.body_positions.to_numpy()[1, 1] + shown.layout.offsets[1] + np.array([0, 0, 0.5])
    assert points[30:, 0] == pytest.approx(np.tile(start, (30, 1)))
    assert _agent_eyes().vertices.mean(axis=0) == pytest.approx((0, 0.37, 0.69), abs=0.01)  # ahead, of one 1 m high
    assert shown.array("/eyes", "batched_wxyzs")[3] == pytest.approx((np.cos(0.35), 0, 0, np.sin(0.35)))
    assert shown.array("/eyes", "batched_positions")[3] == pytest.approx(start - np.array([0, 0, 0.5]))
    angles = 0.7 + np.pi / 2 + 2 * np.pi * np.arange(30) / 30  # the first is ahead, the next ones to the left
    along = 40 * sim.lidar.to_numpy()[1, 1, :, :1] * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    assert points[30:, 1] - points[30:, 0] == pytest.approx(along, abs=1e-4)
    shown.stage.lidar.visible = False
    sim.step()
    assert not [sent for sent in shown.show(1) if sent.startswith("lidar")]


def test_a_grab_ray_reaches_ahead_or_to_the_cube_that_is_held_and_rays_have_the_colours_of_what_they_hit(sim):
    state = sim.state
    state.body_positions.to_numpy()[1, :2] = [(0.0, 4.0, 0.0), (-3.0, 5.0, 0.0)]
    state.body_rotations.to_numpy()[1, :2] = [(1, 0, 0, 0), (np.sqrt(0.5), 0, 0, np.sqrt(0.5))]
    state.agent_grabs.to_numpy()[1] = (3, -1)
    offset = np.array([100.0, 0.0, 0.0])
    points, colours = grab_rays(sim, 1, offset)
    assert points[:, 0] == pytest.approx(np.array([(100, 4, 0.5), (97, 5, 0.5)]))
    assert points[0, 1] == pytest.approx(state.body_positions.to_numpy()[1, 3] + offset)
    assert points[1, 1] == pytest.approx((min(96, points[1, 1, 0]), 5, 0.5), abs=1e-5)
    assert [linear(colour) for colour in (look.HELD, look.MUTED)] == [pytest.approx(one, abs=1) for one in colours]
    sim.refresh()
    kinds, (_, colours) = sim.lidar.to_numpy()[1, 0, :, 1], lidar_rays(sim, 1, offset)
    assert len(np.unique(colours[:30], axis=0)) == len({int(kind) for kind in np.round(kinds * 100)}) > 1


def linear(colour):
    """A colour of the look as the scene has it."""
    part = np.array(look.rgb(colour))
    return 255 * np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def test_an_agent_that_leaves_the_cell_of_its_world_shrinks_and_is_gone_before_the_next_world(sim):
    layout, heights = Layout.of(sim, 4), []
    for beyond in (-0.1, 1.0, 2.0, 50.0):
        sim.state.body_positions.to_numpy()[1, 0, 1] = layout.high[1] + beyond
        heights.append(agents(sim, range(4), layout).sizes[2, 2])
    whole = agents(sim, range(4), layout).sizes[0, 2]
    assert heights == pytest.approx([whole, whole / 2, 0, 0], abs=1e-3)


def test_trails_are_where_the_agents_of_the_chosen_world_were(sim):
    trails, offset = Trails(2), np.array([100.0, 0, 0], np.float32)

    def nothing(points):
        return (points[:, 0] == points[:, 1]).all()

    assert nothing(trails.segments(offset)[0])
    for step in range(3):
        sim.state.body_positions.to_numpy()[1, :2] = [(step, 2 * step, 0), (-step, 0, 0)]
        trails.add(sim, 1)
    points, colours = trails.segments(offset)
    assert (points.shape, colours.shape) == ((2 * 59, 2, 3), (2 * 59, 3))
    assert points[::2][-2:, :, :2].tolist() == [[[100, 0], [101, 2]], [[101, 2], [102, 4]]]
    assert points[1::2][-2:, :, :2].tolist() == [[[100, 0], [99, 0]], [[99, 0], [98, 0]]]
    assert nothing(points[:-4])
    trails.clear()
    assert nothing(trails.segments(offset)[0])


def test_worlds_are_placed_in_a_square_apart_and_the_first_keeps_its_coordinates(sim):
    for cells, columns, rows in ((1, 1, 1), (2, 2, 1), (3, 2, 2), (9, 3, 3), (60, 8, 8), (64, 8, 8)):
        layout = Layout.of(sim, cells)
        assert (layout.low, layout.high) == (pytest.approx((-11, -1)), pytest.approx((11, 40)))
        assert layout.offsets[0] == pytest.approx((0, 0, 0))
        assert [len(np.unique(layout.offsets[:, axis])) for axis in (0, 1)] == [columns, rows]
        assert (np.diff(layout.offsets[:columns, 0]) > 0).all()  # the first row from left to right
        apart = np.abs(layout.offsets[:, None, :2] - layout.offsets[None, :, :2])
        assert ((apart >= layout.high - layout.low).any(axis=-1) | np.eye(cells, dtype=bool)).all()


# ---- Worlds with levels


def test_slots_that_a_level_does_not_use_have_no_size():
    level = levels.curated()["one door"]
    with playing([level, full_level(2)]) as sim:
        layout = Layout.of(sim, 2)
        for worlds, shown in ((range(1), level), (range(1, 2), full_level(2))):
            for boxes_of, things in ((walls, "walls"), (doors, "doors"), (buttons, "buttons"), (cubes, "cubes")):
                sizes = boxes_of(sim, worlds, layout).sizes
                assert (sizes > 0).all(axis=1).sum() == len(getattr(shown, things))
                assert ((sizes > 0).all(axis=1) == (sizes != 0).any(axis=1)).all()


def test_worlds_lie_apart_also_those_without_walls():
    with playing(mixed_levels(2)) as sim:
        layout = Layout.of(sim, sim.num_worlds)
        assert ((layout.low <= (-22, -3.5)) & (layout.high >= (23, 44.5))).all()
        assert np.isfinite(layout.offsets).all()
    with playing([levels.Level(spawns=[levels.Spawn(-20, 30), levels.Spawn(4, 2)])]) as sim:
        layout = Layout.of(sim, 1)
        assert (layout.low.tolist(), layout.high.tolist()) == (pytest.approx([-21, 1]), pytest.approx([5, 31]))


def test_the_agents_picture_is_what_its_camera_sees_of_its_world_now():
    for num_agents in (1, 8):
        settings = {"num_agents": num_agents, "seed": 3, "cameras": Cameras(width=256, height=192, depth=False)}
        with playing([levels.reference(), full_level(num_agents)], **settings) as sim:
            camera, seen = AgentCamera(sim), set()
            for _ in range(2):
                for world, agent in np.ndindex(2, num_agents):
                    picture = camera.draw(world, agent)
                    assert np.array_equal(picture, sim.rgb.to_numpy()[world, agent, ..., :3])
                    seen.add(picture.tobytes())
                sim.actions = np.full(sim.actions.shape, (3, 0, 2, 0))
                sim.step()
            assert len(seen) > 2
            camera.close()


# ---- In a browser


@pytest.mark.slow
def test_everything_is_seen_where_the_state_has_it(watch):
    with watch(worlds=1, policy="idle", seed=5) as still:
        still.ask(Viewer.toggle_pause)
        state = still.ask(lambda viewer: viewer._sim.state)
        state.door_open.to_numpy()[0, 1] = state.button_pressed.to_numpy()[0, 0] = 1
        still.ask(lambda viewer: viewer.show_trails(False))  # they have the colours of agents
        names = [*(f"{kind}_positions" for kind in ("body", "static", "button")), "static_sizes", "door_static"]
        fields = still.ask(lambda viewer: [getattr(viewer._sim.state, name) for name in (*names, "button_doors")])
        positions, statics, buttons, sizes, door_slots, button_doors = (field.copy_to_host()[0] for field in fields)
        door_colours = ("pink", "yellow", "blue")  # purple, yellow, teal
        colours = {**dict(zip(door_slots.tolist(), door_colours, strict=True)), int(door_slots[1]): "green"}  # open
        seen = ["green", *(door_colours[door] for door in button_doors[1:])]  # the first one is pressed
        still.until_seen(
            *zip(positions[:2] + np.array([0, 0, 1.9]), ("blue", "orange"), strict=True),
            *((cube, "orange") for cube in positions[2:] + np.array([0, 0, 1.5])),
            *zip(buttons, seen, strict=True),
            *((top, colours.get(slot, "white")) for slot, top in enumerate(statics + sizes * (0, 0, 1))),
            ((0.0, 5.0, 0.0), "white"),  # the floor
            ((15.0, 20.0, 0.0), "black"),  # nothing
        )
