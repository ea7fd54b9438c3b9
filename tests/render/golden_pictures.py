"""Pictures that were looked at once, and how they are made again.

A change of how things look changes them: write the new ones with `python -m tests.render.golden_pictures`, and look at
them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.scenes import Scene, random_actions

import doorstep
from doorstep.render import write_png

Picture = NDArray[np.uint8]

FOLDER = Path(__file__).parent / "golden"
WIDTH, HEIGHT = 160, 120
NUM_WORLDS = 4
EVERYTHING = doorstep.Cameras(width=WIDTH, height=HEIGHT, segmentation=True, normals=True, renderer="embree")


def scene(steps: int = 60) -> Scene:
    """Worlds after random actions; agents have moved cubes and stand about."""
    made = Scene(NUM_WORLDS, seed=5, cameras=EVERYTHING)
    for actions in random_actions(3, steps, NUM_WORLDS):
        made.actions[:] = actions
        made.sim.step()
    return made


def face_to_face(made: Scene) -> Scene:
    """In world 0 the agents look at each other, in the first room, a cube and two buttons beside them."""
    made.body_positions[0, :3] = ((-3.0, 5.0, 0.0), (3.0, 7.0, 0.0), (0.0, 9.5, 0.8))
    for body, yaw in enumerate((-1.25, 1.9, 0.5)):
        made.body_rotations[0, body] = (np.cos(yaw / 2), 0, 0, np.sin(yaw / 2))
    made.button_positions[0, 0] = (0.0, 4.5, 0.0)
    made.sim.refresh()
    return made


def four_views() -> Picture:
    """What agent 0 sees in four worlds."""
    return _beside(*scene().rgb[:, 0, ..., :3])


def two_agents() -> Picture:
    """What two agents see that look at each other."""
    return _beside(*face_to_face(scene()).rgb[0, :, ..., :3])


def outputs() -> Picture:
    """Depth (10 m white to black), normals and kinds of what agent 0 sees."""
    made = face_to_face(scene())
    depth = np.clip(255 - 25.5 * made.depth[0, 0], 0, 255).astype(np.uint8)
    normals = np.round(127.5 + 127.5 * made.normals[0, 0]).astype(np.uint8)
    kinds = (40 * made.segmentation[0, 0, ..., :1]).astype(np.uint8)
    return _beside(np.repeat(depth, 3, axis=-1), normals, np.repeat(kinds, 3, axis=-1))


def from_above() -> Picture:
    return face_to_face(scene()).sim.render(0, "top", width=HEIGHT, height=2 * HEIGHT)


def following() -> Picture:
    return face_to_face(scene()).sim.render(0, "follow", width=2 * WIDTH, height=2 * HEIGHT)


def _beside(*pictures: Picture) -> Picture:
    return np.concatenate(pictures, axis=1)


PICTURES: dict[str, Callable[[], Picture]] = {
    make.__name__: make for make in (four_views, two_agents, outputs, from_above, following)
}


def main() -> None:
    for name, make in PICTURES.items():
        write_png(FOLDER / f"{name}.png", make())


if __name__ == "__main__":
    main()
