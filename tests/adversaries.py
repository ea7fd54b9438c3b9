"""Policies that try to break the physics, and the laws that must hold under every policy."""

import numpy as np
from tests.reference import constants as c
from tests.reference.boxes import corners
from tests.scenes import BACK, FORWARD, HARD_LEFT, HARD_RIGHT, STRAIGHT, random_actions

# Policies are functions (step, worlds, agents) -> actions [N, A, 4].


def _alternating(first, second, period):
    actions = np.array([first, second], dtype=np.int32)
    return lambda step, worlds, agents: np.broadcast_to(actions[step // period % 2], (worlds, agents, 4))


def _constant(*action):
    return _alternating(action, action, 1)


def _each_its_own_way(step, worlds, agents):
    """Each agent moves at full speed in a direction of its own, held for 25 steps."""
    actions = random_actions(step // 25 + 1, 1, worlds, agents)[0].copy()
    actions[..., 0], actions[..., 3] = 3, 0
    actions[..., 2] = np.where(actions[..., 2] == HARD_RIGHT, HARD_LEFT, STRAIGHT)
    return actions


def _grab_and_ram(step, worlds, agents):
    """Each agent moves ahead at full speed and grabs the first cube, then drags and swings it."""
    actions = random_actions(step // 8 + 77, 1, worlds, agents)[0].copy()
    actions[..., 0] = 3
    actions[..., 1] = np.where(step // 8 % 3 == 0, FORWARD, actions[..., 1])
    actions[..., 3] = step % 8 == 7
    return actions


POLICIES = {
    "all forward": _constant(3, FORWARD, STRAIGHT, 0),
    "forward and back": _alternating((3, FORWARD, STRAIGHT, 0), (3, BACK, STRAIGHT, 0), 7),
    "spinning forward": _constant(3, FORWARD, HARD_LEFT, 0),
    "shaking": _alternating((3, FORWARD, HARD_LEFT, 0), (3, BACK, HARD_RIGHT, 0), 1),
    "grabbing at every step": _constant(3, FORWARD, STRAIGHT, 1),
    "each its own way": _each_its_own_way,
    "grab and ram": _grab_and_ram,
    "random": lambda step, worlds, agents: random_actions(step + 1000, 1, worlds, agents)[0],
}

LOWEST = -0.5  # metres: lowest corner of any body; a cube yanked at full force dips into the floor for a step
HIGHEST = 12.0  # metres: bodies squeezed by others may rise, but are not launched


class ShutRooms:
    """Worlds whose doors never open: bodies must stay in their room.

    A cube that is repeatedly rammed at full force may tumble over a wall, so bodies whose centre has been that high are
    no longer checked.
    """

    def __init__(self, scene):
        self.scene = scene
        self.rooms = np.zeros((scene.sim.num_worlds, scene.cubes.stop), dtype=int)
        self.flew = np.zeros_like(self.rooms, dtype=bool)
        self.begin_episodes(np.ones(scene.sim.num_worlds, dtype=bool))

    def begin_episodes(self, worlds):
        """Moves the buttons out of reach and records the room of each body."""
        self.scene.button_positions[:, :, 1] = -1000.0
        self.rooms[worlds] = room_of(self.scene.body_positions[worlds, : self.scene.cubes.stop, 1])
        self.flew[worlds] = False

    def watch(self):
        """Call after every step."""
        self.flew |= self.scene.body_positions[:, : self.scene.cubes.stop, 2] > c.END_WALL_HEIGHT - 0.5

    def broken_laws(self):
        place = self.scene.body_positions[:, : self.scene.cubes.stop]
        inside = (np.abs(place[..., 0]) < c.WORLD_WIDTH / 2) & (room_of(place[..., 1]) == self.rooms)
        left = np.argwhere(~inside & ~self.flew)[:1]
        return [f"world {world}: body {body} left its room, to {place[world, body].tolist()}" for world, body in left]


def room_of(y):
    """Number of the room by y alone, unclamped: beyond the last wall is 3."""
    return np.floor(np.asarray(y, dtype=np.float64) / c.ROOM_LENGTH).astype(int)


def violations(scene):
    """The laws that the current state breaks."""
    bodies = slice(0, scene.cubes.stop)
    place = scene.body_positions[:, bodies]
    if not np.isfinite(place).all() or not np.isfinite(scene.body_rotations[:, bodies]).all():
        return ["a pose is not finite"]
    found = []
    extents = corners(scene.body_centres()[:, bodies], scene.body_rotations[:, bodies], scene.body_sizes[:, bodies])
    lowest, highest = float(extents[..., 2].min()), float(extents[..., 2].max())
    if lowest < LOWEST:
        found.append(f"a body is {-lowest:.3f} m below the floor")
    if highest > HIGHEST:
        found.append(f"a body is {highest:.1f} m high")
    if np.abs(np.linalg.norm(scene.body_rotations[:, bodies].astype(np.float64), axis=-1) - 1).max() > 1e-4:
        found.append("a rotation is not a unit quaternion")
    return found
