"""What the library shows of worlds, compared with the reference: of a moment, and step by step along episodes.

In float32 a comparison that is close may be decided otherwise, and a ray that passes an edge may hit or miss. Such
cases are found by deciding twice, with thresholds or boxes slightly moved in both directions; they must be few.
"""

import numpy as np
from tests.reference import constants as c
from tests.reference import observations as reference
from tests.reference import rules
from tests.reference.boxes import yaw_of
from tests.reference.levels import generate
from tests.reference.lidar import cast, cubes_ahead
from tests.scenes import FINAL_OBSERVATIONS, FLAGS, OBSERVATIONS, Scene

MARGIN = 1e-5
GROWTH = 1e-4  # metres, of boxes
SLACK = 2e-4  # metres, beyond the difference that GROWTH makes
ROUNDING = 2e-5  # metres: a few float32 roundings at y = 40
TURN = 2.0  # bearings and yaws are in units of pi: -1 and 1 are the same direction
NEAR = 0.1 / c.WORLD_LENGTH  # closer than 10 cm a bearing is not comparable in float32
FIELDS = (
    *("body_positions", "body_rotations", "body_linear_velocities", "body_angular_velocities", "body_kinds"),
    *("static_positions", "static_sizes", "static_kinds", "button_positions", "button_pressed", "button_doors"),
    *("door_open", "door_static", "door_persistent", "agent_grabs", "agent_max_y", "episode_index", "physics"),
)


# ---- A moment


def assert_same(scene, other, names, worlds=slice(None)):
    for name in names:
        np.testing.assert_array_equal(getattr(scene, name), getattr(other, name)[worlds], err_msg=name)


def assert_polar_equal(measured, expected):
    """Compares (distance, bearing, flag) triples, bearings modulo a full turn."""
    np.testing.assert_allclose(measured[..., 0], expected[..., 0], atol=1e-6, rtol=1e-6)
    np.testing.assert_array_equal(measured[..., 2], expected[..., 2].astype(np.float32))
    off = (measured[..., 1] - expected[..., 1] + TURN / 2) % TURN - TURN / 2
    np.testing.assert_allclose(off[(expected[..., 0] > NEAR) | (expected == (0, 1, 0)).all(axis=-1)], 0.0, atol=2e-5)
    assert (np.abs(measured[..., 1]) <= 1).all()


def assert_observations_equal(scene, terms=None):
    """All but lidar and the flat ones."""
    situation = scene.situation(terms)
    expected, plain = reference.self_observations(situation), [0, 1, 2, 3, 4, 5, 7]
    np.testing.assert_allclose(scene.self_observations[..., plain], expected[..., plain], atol=1e-6, rtol=1e-6)
    yaw = scene.self_observations[..., 6]
    np.testing.assert_allclose((yaw - expected[..., 6] + 1) % TURN - 1, 0.0, atol=1e-6)
    assert (np.abs(yaw) <= 1).all()
    assert_polar_equal(scene.partner_observations, reference.partner_observations(situation))
    assert_polar_equal(scene.room_entity_observations, reference.room_entity_observations(situation))
    assert_polar_equal(scene.door_observations, reference.door_observations(situation))


def assert_lidar_equal(scene, most_left_out=0.02):
    boxes = scene.boxes()
    positions = scene.body_positions[:, scene.agents].astype(np.float64)
    rotations = scene.body_rotations[:, scene.agents].astype(np.float64)
    exact = cast(positions, rotations, boxes)
    distances = scene.lidar[..., 0].astype(np.float64) * c.WORLD_LENGTH
    kinds = np.round(scene.lidar[..., 1] * 6).astype(int)
    wrong = (kinds != exact.kinds) | (np.abs(distances - exact.distances) > SLACK)
    assert wrong.mean() < most_left_out
    doubtful = np.flatnonzero(wrong.any(axis=(1, 2)))
    if len(doubtful):
        near = boxes.of_worlds(doubtful)
        large, small = (cast(positions[doubtful], rotations[doubtful], near, growth) for growth in (GROWTH, -GROWTH))
        spread = np.abs(large.distances - small.distances)
        clear = (large.kinds == small.kinds) & (spread < 0.02)
        off = np.abs(distances - exact.distances)[doubtful]
        wrong = clear & ((kinds != exact.kinds)[doubtful] | (off > spread + SLACK))
        assert not wrong.any(), f"{wrong.sum()} rays, first at {np.argwhere(wrong)[0]}"


def flat_observations(scene, prefix, parts, lengths):
    """The named tensors side by side, each multiplied by its scale."""
    worlds, agents = scene.sim.num_worlds, scene.sim.num_agents
    index = np.arange(agents, dtype=np.float32) / np.float32(max(agents - 1, 1))
    relative = scene.physics / np.array([40 / 3, 1, 1000, 320, 30])
    columns = []
    for part in parts:
        name, scale = (part, 1.0) if isinstance(part, str) else part
        if name == "agent_index":
            values = np.broadcast_to(index[None, :, None], (worlds, agents, 1))
        elif name == "physics":
            values = np.repeat(relative[:, None], agents, axis=1)
        else:
            values = getattr(scene, prefix + name).reshape(worlds, agents, -1).astype(np.float64)
        if name == "steps_remaining":
            values = values / np.reshape(lengths, (-1, 1, 1))
        columns.append(values * scale)
    return np.concatenate(columns, axis=-1)


def assert_levels_equal(scene, expected, worlds=slice(None)):
    """Where everything stands at the start of an episode."""
    sure = ~expected.undecided
    assert sure.mean() > 0.95

    def same(measured, wanted, atol=ROUNDING):
        np.testing.assert_allclose(measured[worlds][sure], wanted[sure], atol=atol, rtol=0)

    same(scene.body_positions[:, scene.agents], expected.agent_positions)
    same(yaw_of(scene.body_rotations[:, scene.agents]), expected.agent_yaws, 1e-6)
    same(scene.body_positions[:, scene.cubes], expected.cube_positions)
    same(scene.button_positions, expected.button_positions)
    same(scene.doors, expected.door_positions)
    walls = scene.static_kinds == c.WALL
    shape = (scene.sim.num_worlds, 9, 3)
    positions, sizes = (field[walls].reshape(shape)[worlds] for field in (scene.static_positions, scene.static_sizes))
    walls, wanted = in_order(positions, sizes), in_order(expected.wall_positions, expected.wall_sizes)
    np.testing.assert_allclose(walls, wanted, atol=ROUNDING, rtol=0)


def in_order(positions, sizes):
    """Sorts walls by y, then x: their slots are unspecified."""
    order = np.argsort(np.round(positions[:, :, 1], 3) * 1000 + positions[:, :, 0], axis=1)[:, :, None]
    return np.take_along_axis(positions, order, axis=1), np.take_along_axis(sizes, order, axis=1)


# ---- Episodes


class Followed:
    """A simulator that resets itself, and a twin that does not and is reset by hand: what the twin shows of the end of
    an episode, the other must show in its final tensors, and both must go on alike.

    options: the simulators'; levels: what they play, None for the reference; scatter: places agents of new episodes.
    """

    def __init__(self, num_worlds, levels=None, scatter=True, **options):
        self.levels, self.scatter, self.options = levels, scatter, {"seed": 5, "episode_length": 30, **options}
        played = {} if levels is None else {"levels": levels}
        self.scene = Scene(num_worlds, num_threads=2, **played, **self.options)
        self.twin = Scene(num_worlds, auto_reset=False, **played, **self.options)
        self.draws = np.random.default_rng(self.options["seed"])
        agents = self.twin.sim.num_agents
        doors, buttons = (getattr(self.twin, name).shape[1] for name in ("door_open", "button_doors"))
        self.terms = rules.Terms(num_worlds, agents, buttons, doors)
        self.episodes = np.full(num_worlds, 2 if levels else 1)  # levels are played from the second one on
        self.remaining = np.zeros(num_worlds, dtype=np.int64)
        self.returns = np.zeros((num_worlds, agents))
        self.seen = {}  # how often things happened
        self.doubtful = self.decided = 0
        self.kept = self.scene.snapshot(*self._final_names(), "episode_returns", "episode_lengths")
        self._begin(np.ones(num_worlds, dtype=bool))

    def step(self):
        twin, scene = self.twin, self.scene
        agents = twin.sim.num_agents
        self._meet()
        before = twin.snapshot("agent_max_y", "door_open", "agent_grabs", "static_positions")
        panels = rules.move_panels(self.terms, twin.doors[:, :, 2], twin.door_open)
        away = self._metres_to_buttons()
        actions = np.stack([self.draws.integers(0, size, (len(panels), agents)) for size in (4, 8, 5, 2)], axis=-1)
        actions[..., 1] = np.where(self.draws.random(actions.shape[:2]) < 0.5, 0, actions[..., 1])
        requested, ahead = self.draws.random(len(panels)) < 0.02, self._cubes_ahead(panels)
        for one in (scene, twin):
            one.actions[:] = actions
        scene.resets[:, 0] = requested * self.draws.choice([1, -7, 2**30], len(panels))
        scene.step()
        twin.step()

        self._check_grabs(before["agent_grabs"], actions[..., 3], ahead)
        used = (self.terms.button_doors[:, None] == np.arange(panels.shape[1])[:, None]).any(axis=-1)
        np.testing.assert_allclose(twin.doors[:, :, 2][used], panels[used], atol=1e-5)
        self._check_buttons(before["door_open"])
        at_goal = self._check_scores(before["agent_max_y"], away)
        self.remaining -= 1
        ended = at_goal | (self.remaining == 0)
        self._check_flags(at_goal, ended)
        assert_observations_equal(twin, self.terms)
        if self.draws.random() < 0.15:
            assert_lidar_equal(twin)
        self._check_flat(twin, "")
        self._check_ends(ended | requested, actions)
        self._count("ended", ended)
        self._count("reset", requested & ~ended)

    # ---- Before a step

    def _begin(self, worlds):
        """New episodes of these worlds: where everything stands, by what terms."""
        twin, chosen = self.twin, np.flatnonzero(worlds)
        agents, offset = twin.sim.num_agents, self.options.get("world_offset", 0)
        np.testing.assert_array_equal(twin.episode_index, self.episodes)
        if self.levels is None:
            expected = generate(self.options["seed"], chosen + offset, self.episodes[chosen], agents)
            assert_levels_equal(twin, expected, chosen)
        drawn = twin.level_indices[:, 0] if self.levels else np.zeros(len(worlds), dtype=int)
        for world in chosen:
            level = self.levels[drawn[world]] if self.levels else None
            if level:
                things = np.concatenate([twin.button_positions[world], twin.body_positions[world, agents:]])
                self.terms.play(world, level, np.where(things[:, 0] > 1e6, np.nan, things[:, 1]))
            self._set_length(world, level)
        if reward := self.options.get("reward"):
            self.terms.reward(slice(None), reward)
        self.terms.drop = twin.physics[:, 4].astype(np.float64) / c.STEPS_PER_SECOND
        self.remaining[chosen], self.returns[chosen] = self.terms.length[chosen], 0
        assert (twin.steps_remaining == self.remaining[:, None, None]).all()
        assert_observations_equal(twin, self.terms)
        if self.draws.random() < 0.15:
            assert_lidar_equal(twin)
        if self.scatter:
            self._scatter(worlds)

    def _set_length(self, world, level):
        length = getattr(level, "episode_length", None) or self.options["episode_length"]
        if isinstance(length, tuple):
            low, high = length
            length = int(self.twin.steps_remaining[world, 0, 0])
            assert low <= length <= high
        self.terms.length[world] = length

    def _edit(self, field, index, value):
        for one in (self.scene, self.twin):
            getattr(one, field)[index] = value

    def _scatter(self, worlds):
        """Agents of two thirds of new episodes begin farther on, as if they had walked there."""
        moved = np.flatnonzero(worlds & (np.arange(len(worlds)) % 3 > 0))
        agents = self.twin.agents
        y = self.twin.body_positions[moved, agents, 1] + np.float32(c.ROOM_LENGTH) * (moved % 3)[:, None]
        self._edit("body_positions", (moved, agents, 1), y)
        self._edit("agent_max_y", moved, y)

    def _meet(self):
        """Now and then agents stand upon the buttons of a door, before a cube, or aside at the border of two rooms."""
        twin, agents, terms = self.twin, self.twin.sim.num_agents, self.terms
        for world in np.flatnonzero(self.draws.random(len(self.episodes)) < 0.15 * self.scatter):
            agent = int(self.draws.integers(agents))
            what = self.draws.choice(["buttons", "buttons", "cube", "border"])
            if what == "buttons":
                of_button = terms.button_doors[world]
                places = twin.button_positions[world, of_button == self.draws.choice(of_button[of_button >= 0]), :2]
                for one, place in enumerate(places[:agents]):
                    self._edit("body_positions", (world, one, slice(2)), place)
            elif what == "cube":
                cube = agents + int(self.draws.integers((twin.body_kinds[world, agents:] == c.CUBE).sum()))
                place = twin.body_positions[world, cube, :2] - np.array([0, self.draws.uniform(2.6, 3.7)])
                self._edit("body_positions", (world, agent, slice(2)), place)
                self._edit("body_rotations", (world, agent), (1, 0, 0, 0))
            else:
                y = self.draws.choice(terms.ends[world, : terms.last_room[world] + 1]) - 0.3
                self._edit("body_positions", (world, agent, slice(2)), (100 + 5 * agent, y))

    def _boxes(self, panels):
        boxes, first = self.twin.boxes(), self.twin.body_kinds.shape[1]
        worlds, slots = np.arange(len(panels))[:, None], self.twin.door_static
        middle = panels + self.twin.static_sizes[worlds, slots, 2] / 2
        is_door = self.twin.static_kinds[worlds, slots] == c.DOOR
        boxes.centres[worlds, first + slots, 2] = np.where(is_door, middle, boxes.centres[worlds, first + slots, 2])
        return boxes

    def _cubes_ahead(self, panels):
        """-2: too close to decide."""
        boxes = self._boxes(panels)
        places, turned = (field[:, self.twin.agents] for field in (self.twin.body_positions, self.twin.body_rotations))
        low, high = (cubes_ahead(places.astype(np.float64), turned, boxes, growth) for growth in (-GROWTH, GROWTH))
        return np.where(low == high, low, -2)

    def _metres_to_buttons(self):
        twin, agents = self.twin, self.twin.sim.num_agents
        metres = np.zeros(len(self.episodes))
        for world in np.flatnonzero(self.terms.weights["cube_approach"]):
            used = self.terms.button_doors[world] >= 0
            is_cube = twin.body_kinds[world, agents:, None] == c.CUBE
            cubes = np.where(is_cube, twin.body_positions[world, agents:, :2], np.nan)
            buttons, doors = twin.button_positions[world, used, :2], self.terms.button_doors[world][used]
            counted = ~self.terms.persistent[world] & np.isin(np.arange(len(self.terms.persistent[world])), doors)
            metres[world] = rules.metres_to_buttons(cubes, buttons, doors, counted)
        return metres

    # ---- After a step

    def _count(self, what, happened):
        self.seen[what] = self.seen.get(what, 0) + int(np.sum(happened))

    def _check_grabs(self, held, toggled, ahead):
        expected = np.where(toggled == 0, held, np.where(held >= 0, -1, ahead))
        sure = expected > -2
        np.testing.assert_array_equal(self.twin.agent_grabs[sure], expected[sure])
        self._count("grabbed", (held < 0) & (expected >= 0))
        self._count("released", (held >= 0) & (expected == -1))

    def _check_buttons(self, was_open):
        twin = self.twin
        bodies = twin.body_centres(), twin.body_rotations, twin.body_sizes
        used = self.terms.button_doors >= 0
        low, high = (rules.pressed(*bodies, twin.button_positions, margin) for margin in (-MARGIN, MARGIN))
        sure = (low == high) & used
        np.testing.assert_array_equal(twin.button_pressed[sure], low[sure])
        np.testing.assert_array_equal(twin.door_open, rules.open_doors(self.terms, twin.button_pressed, was_open))
        self._count("pressed", twin.button_pressed[used])
        self._count("opened", twin.door_open > was_open)
        self._count("closed", twin.door_open < was_open)

    def _check_scores(self, max_y, away):
        twin, metres = self.twin, away - self._metres_to_buttons()
        places = twin.body_positions[:, twin.agents].astype(np.float64)
        x, y = places[..., 0], places[..., 1]
        low, exact, high = (rules.score(self.terms, x, y, max_y, metres, m) for m in (-MARGIN, 0.0, MARGIN))
        sure = (np.abs(high[0] - low[0]) < 1e-9).all(axis=1) & (low[2] == high[2])
        self.doubtful, self.decided = self.doubtful + int((~sure).sum()), self.decided + int(sure.sum())
        np.testing.assert_allclose(twin.rewards[sure, :, 0], exact[0][sure], atol=2e-5, rtol=1e-5)
        np.testing.assert_allclose(twin.agent_max_y, exact[1], atol=1e-6)
        self.returns += twin.rewards[:, :, 0]
        self._count("progressed", exact[1] > max_y)
        self._count("entered a room", self.terms.room_of(exact[1]) > self.terms.room_of(max_y))
        end = np.take_along_axis(self.terms.ends, self.terms.last_room[:, None], axis=1)
        self._count("left the last room", (exact[1] > end) & (max_y <= end))
        return np.where(sure, exact[2], twin.terminations[:, 0, 0] != 0)

    def _check_flags(self, at_goal, ended):
        flags = {"dones": ended, "terminations": at_goal, "truncations": ended & ~at_goal}
        for name, expected in (flags | {"steps_remaining": self.remaining}).items():
            assert (getattr(self.twin, name) == expected[:, None, None]).all(), name
        self._count("reached a goal", at_goal)

    def _check_flat(self, scene, prefix):
        parts = self.options.get("observations", (*OBSERVATIONS, "steps_remaining", "agent_index"))
        expected = flat_observations(scene, prefix, parts, self.terms.length)
        np.testing.assert_allclose(getattr(scene, prefix + "observations"), expected, rtol=2e-6, atol=1e-7)

    def _final_names(self):
        return tuple(f"final_{name}" for name in (*FINAL_OBSERVATIONS, "observations"))

    def _check_ends(self, over, actions):
        """Of both simulators after a step in which these episodes ended, by themselves or because it was asked for."""
        scene, twin = self.scene, self.twin
        assert_same(scene, twin, FLAGS)
        for name in self._final_names():
            self.kept[name][over] = getattr(twin, name.removeprefix("final_"))[over]
        self.kept["episode_lengths"][over, 0] = (self.terms.length - self.remaining)[over]
        for name, expected in self.kept.items():
            if name != "episode_returns":
                np.testing.assert_array_equal(getattr(scene, name), expected, err_msg=name)
        self.kept["episode_returns"][over, :, 0] = self.returns[over]
        np.testing.assert_allclose(scene.episode_returns, self.kept["episode_returns"], atol=1e-5, rtol=1e-5)

        twin.sim.reset(over)
        assert not scene.resets.any()
        actions[over] = c.IDLE
        self.episodes += over
        assert_same(scene, twin, (*FINAL_OBSERVATIONS, "observations", *FIELDS, *["level_indices"] * bool(self.levels)))
        for one in (scene, twin):
            np.testing.assert_array_equal(one.actions, actions)
        assert not any(getattr(twin, flag)[over].any() for flag in FLAGS)
        if over.any():
            self._begin(over)
