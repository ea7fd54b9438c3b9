"""The rules that need the poses at the start and the end of a step and nothing else: buttons, doors, rewards, goals."""

import itertools

import numpy as np
from tests.reference import constants as c
from tests.reference.boxes import corners
from tests.reference.levels import cubes_of_room

MOST_ROOMS = 8


class Terms:
    """By what N worlds play; the first axis of every array is the world. Unused: -1, or infinite.

    Of A agents by the reference's rules, until `play()` says otherwise.
    """

    def __init__(self, num_worlds, num_agents, num_buttons=6, num_doors=3):
        def filled(*shape, value=-1):
            return np.full((num_worlds, *shape), value)

        self.starts, self.ends = (filled(MOST_ROOMS, value=np.inf) for _ in range(2))
        self.starts[:, : c.ROOMS] = c.ROOM_LENGTH * np.arange(c.ROOMS)
        self.ends[:, : c.ROOMS] = c.ROOM_LENGTH * np.arange(1, c.ROOMS + 1)
        self.last_room = filled(value=c.ROOMS - 1)
        self.room_doors = filled(MOST_ROOMS)  # that agents observe
        self.room_doors[:, : c.ROOMS] = np.arange(c.ROOMS)
        self.things = filled(MOST_ROOMS, c.ROOM_SLOTS)  # seen in a room: buttons, then num_buttons + cubes
        for room in range(c.ROOMS):
            cubes = [num_buttons + cube for cube in cubes_of_room(num_agents, room)]
            self.things[:, room, : 2 + len(cubes)] = [2 * room, 2 * room + 1, *cubes]
        self.button_doors = filled(num_buttons)
        self.button_doors[:, : 2 * c.ROOMS] = np.repeat(np.arange(c.ROOMS), 2)
        self.persistent, self.heights = filled(num_doors, value=False), filled(num_doors, value=c.END_WALL_HEIGHT)
        self.persistent[:, :2] = True
        self.drop = filled(value=c.DOOR_DROP)
        self.goal, self.goal_agents = filled(4, value=np.nan), filled(value="")
        self.goal_agents = self.goal_agents.astype("<U3")
        self.length = filled()
        self.weights = {name: filled(value=float(value)) for name, value in c.WEIGHTS.items()}
        self._reference = {name: array[:1].copy() for name, array in vars(self).items() if name != "weights"}

    def reward(self, worlds, rewards):
        for name, weights in self.weights.items():
            weights[worlds] = getattr(rewards, name)

    def play(self, world, level, things_at):
        """Level: with rewards and a goal, and rooms if it is not generated. things_at: y of its buttons and cubes at
        the start; not finite: unused."""
        for name, array in self._reference.items():
            getattr(self, name)[world] = array[0]
        self.reward(world, level.rewards)
        if level.goal:
            self.goal_agents[world] = level.goal.agents
            self.goal[world] = [level.goal.min_x, level.goal.max_x, level.goal.min_y, level.goal.max_y]
        if hasattr(level, "rooms"):
            self._play_rooms(world, level, things_at)

    def _play_rooms(self, world, level, things_at):
        self.starts[world], self.ends[world], self.room_doors[world] = np.inf, np.inf, -1
        for room, stretch in enumerate(level.rooms):
            self.starts[world, room], self.ends[world, room] = stretch.start, stretch.end
            self.room_doors[world, room] = -1 if stretch.door is None else stretch.door
        self.last_room[world] = len(level.rooms) - 1
        self.things[world] = -1
        rooms = self.room_of(things_at[None, :], worlds=[world])[0]
        for room in range(len(level.rooms)):
            here = np.flatnonzero((rooms == room) & np.isfinite(things_at))[: c.ROOM_SLOTS]
            self.things[world, room, : len(here)] = here
        self.button_doors[world] = -1
        self.button_doors[world, : len(level.buttons)] = [button.door for button in level.buttons]
        self.persistent[world], self.heights[world] = True, np.nan
        for number, door in enumerate(level.doors):
            self.persistent[world, number], self.heights[world, number] = door.persistent, door.height

    def room_of(self, y, margin=0.0, worlds=slice(None)):
        """The rooms of y [N, ...]: the first also has what is below, the last what is beyond."""
        starts = self.starts[worlds, 1:] - margin
        shape = (len(starts), *(1,) * (np.ndim(y) - 1), MOST_ROOMS - 1)
        return (np.asarray(y)[..., None] >= starts.reshape(shape)).sum(axis=-1)

    def of_rooms(self, values, rooms):
        """What of `values` [N, rooms, ...] belongs to rooms [N, A]."""
        return values[np.arange(len(values))[:, None], rooms]


def score(terms, x, y, max_y, metres=0.0, margin=0.0):
    """Rewards and new largest y of agents [N, A] at (x, y) that had reached max_y before; who reaches the goal, [N].

    metres: by which cubes came nearer to buttons. margin: by which agents are given more than they are due.
    """
    weights = {name: value[:, None] for name, value in terms.weights.items()}
    before = np.asarray(max_y, dtype=np.float64)
    reached = np.minimum(np.asarray(y, dtype=np.float64), weights["max_y"])
    progress = reached - before
    after = np.where(progress > 0, reached, before)
    rewards = np.where(progress > 0, weights["progress"] * progress, weights["idle"])
    apart = np.abs(after[:, :, None] - after[:, None, :]).max(axis=-1)
    bonus = (apart <= weights["bonus_distance"] + margin) & (rewards > 0) & (after.shape[1] > 1)
    rewards = np.where(bonus, weights["bonus_factor"] * rewards, rewards)
    rewards += weights["room"] * (terms.room_of(after, margin) - terms.room_of(before, margin))
    end = np.take_along_axis(terms.ends, terms.last_room[:, None], axis=1) - margin
    rewards += weights["exit"] * ((after > end) & ~(before > end))
    rewards += weights["cube_approach"] * np.broadcast_to(metres, len(after))[:, None]
    low_x, high_x, low_y, high_y = terms.goal.T[:, :, None]
    inside = (np.abs(x - (low_x + high_x) / 2) <= (high_x - low_x) / 2 + margin) & (
        np.abs(y - (low_y + high_y) / 2) <= (high_y - low_y) / 2 + margin
    )
    by_any = inside.any(axis=1) & (terms.goal_agents == "any")
    at_goal = np.where(terms.goal_agents == "all", inside.all(axis=1), by_any)
    return rewards + weights["goal"] * at_goal[:, None], after, at_goal


def pressed(centres, rotations, sizes, buttons, margin=0.0):
    """Whether any of bodies [N, B] presses buttons [N, K, 3]: bounds along the world axes overlap strictly."""
    points = corners(centres, rotations, sizes)
    low, high = points.min(axis=-2)[:, None], points.max(axis=-2)[:, None]
    plate = np.asarray(buttons, dtype=np.float64)[:, :, None]
    half = np.array([c.BUTTON_SIDE / 2, c.BUTTON_SIDE / 2, 0.0])
    plate_low = plate - half
    overlap = (low < (plate + half + np.array([0.0, 0.0, c.BUTTON_HEIGHT])) + margin) & (high > plate_low - margin)
    return np.asarray(overlap.all(axis=-1).any(axis=-1))


def open_doors(terms, pressed_buttons, was_open):
    """Door flags [N, D] from presses [N, K]: open while all buttons are pressed; persistent ones stay so."""
    linked = terms.button_doors[:, None, :] == np.arange(terms.persistent.shape[1])[:, None]
    held = (np.asarray(pressed_buttons, dtype=bool)[:, None, :] | ~linked).all(axis=-1) & linked.any(axis=-1)
    return np.asarray(held | (np.asarray(was_open, dtype=bool) & terms.persistent))


def move_panels(terms, z, is_open):
    """Heights of door panels [N, D] after the motion at the start of a step."""
    height, opening = np.asarray(z, dtype=np.float64), np.asarray(is_open, dtype=bool)
    drop, lowest = terms.drop[:, None], -(terms.heights + c.DOOR_CLEARANCE)
    sunk = np.where(opening & (height > lowest), height - drop, height)
    return np.where(opening, sunk, np.minimum(height + drop, 0.0))


def metres_to_buttons(cubes, buttons, doors, counted):
    """The smallest sum of distances for cubes [C, 2] (NaN: none), buttons [K, 2] of doors [K], for counted doors [D].

    The buttons of a door have different cubes; a distance is measured from where the cube covers the button.
    """
    places = np.asarray(cubes, dtype=np.float64)
    places, total = places[np.isfinite(places).all(axis=1)], 0.0
    for door in np.flatnonzero(counted):
        plates = np.asarray(buttons, dtype=np.float64)[np.asarray(doors) == door]
        gaps = np.maximum(np.abs(places[:, None] - plates[None]) - (c.CUBE_SIDE + c.BUTTON_SIDE) / 2, 0)
        few, many = sorted((np.hypot(gaps[..., 0], gaps[..., 1]), np.hypot(gaps[..., 0], gaps[..., 1]).T), key=len)
        ways = itertools.permutations(range(len(many)), len(few))
        total += min(sum(few[i, chosen] for i, chosen in enumerate(way)) for way in ways)
    return total
