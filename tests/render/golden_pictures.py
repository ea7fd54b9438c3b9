"""Pictures that were looked at once, and how they are made again.

A change of how things look changes them: write the new ones with `python -m tests.render.golden_pictures`, and look at
them.
"""

from pathlib import Path

import numpy as np
from tests.render.pixels import read_png
from tests.scenes import Scene, random_actions

import doorstep
from doorstep.render import write_png

FOLDER = Path(__file__).parent / "golden"
WIDTH, HEIGHT = 160, 120
NUM_WORLDS = 4
EVERYTHING = doorstep.Cameras(width=WIDTH, height=HEIGHT, segmentation=True, normals=True, renderer="embree")


def scene(steps=60):
    """Worlds after random actions; agents have moved cubes and stand about."""
    made = Scene(NUM_WORLDS, seed=5, cameras=EVERYTHING)
    for actions in random_actions(3, steps, NUM_WORLDS):
        made.actions[:] = actions
        made.sim.step()
    return made


def face_to_face(made):
    """In world 0 the agents look at each other, in the first room, a cube and two buttons beside them."""
    made.body_positions[0, :3] = ((-3.0, 5.0, 0.0), (3.0, 7.0, 0.0), (0.0, 9.5, 0.8))
    for body, yaw in enumerate((-1.25, 1.9, 0.5)):
        made.body_rotations[0, body] = (np.cos(yaw / 2), 0, 0, np.sin(yaw / 2))
    made.button_positions[0, 0] = (0.0, 4.5, 0.0)
    made.sim.refresh()
    return made


def four_views():
    """What agent 0 sees in four worlds."""
    return _beside(*scene().rgb[:, 0, ..., :3])


def two_agents():
    """What two agents see that look at each other."""
    return _beside(*face_to_face(scene()).rgb[0, :, ..., :3])


def outputs():
    """Depth (10 m white to black), normals and kinds of what agent 0 sees."""
    made = face_to_face(scene())
    depth = np.clip(255 - 25.5 * made.depth[0, 0], 0, 255).astype(np.uint8)
    normals = np.round(127.5 + 127.5 * made.normals[0, 0]).astype(np.uint8)
    kinds = (40 * made.segmentation[0, 0, ..., :1]).astype(np.uint8)
    return _beside(np.repeat(depth, 3, axis=-1), normals, np.repeat(kinds, 3, axis=-1))


def from_above():
    return face_to_face(scene()).sim.render(0, "top", width=HEIGHT, height=2 * HEIGHT)


def following():
    return face_to_face(scene()).sim.render(0, "follow", width=2 * WIDTH, height=2 * HEIGHT)


def overview():
    """All of a level, high and wide."""
    made = face_to_face(scene())
    return _beside(*(made.sim.render(0, "overview", width=width, height=HEIGHT) for width in (2 * WIDTH, WIDTH)))


def behind_a_wall():
    """A followed agent close behind a wall that would hide its lower half, and one before which a wall is as high."""
    made = face_to_face(scene())
    made.static_kinds[0, 1:] = 0
    made.static_kinds[0, 0] = doorstep.EntityKind.WALL
    made.static_sizes[0, 0] = (10.0, 0.2, 2.7)
    made.body_positions[0, 0], pictures = (0.0, 4.0, 0.0), []
    for y in (2.0, 5.5):
        made.static_positions[0, 0] = (0.0, y, 0.0)
        pictures.append(made.sim.render(0, "follow", agent=0, width=WIDTH, height=HEIGHT))
    return _beside(*pictures)


def _beside(*pictures):
    return np.concatenate(pictures, axis=1)


MADE = (four_views, two_agents, outputs, from_above, following, overview, behind_a_wall)
PICTURES = {make.__name__: make for make in MADE}


def golden(name):
    return read_png((FOLDER / f"{name}.png").read_bytes())


def main():
    for name, make in PICTURES.items():
        write_png(FOLDER / f"{name}.png", make())


if __name__ == "__main__":
    main()
