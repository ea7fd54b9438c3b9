"""What an agent sees, drawn by the batch renderer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doorstep import Cameras
from doorstep.simulator import Simulator

_WIDTH, _HEIGHT = 256, 192  # pixels


class FirstPerson:
    """A simulator of one world with cameras, into which the world of interest is copied to have its picture taken."""

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._studio = Simulator(
            1,
            num_agents=sim.num_agents,
            episode_length=sim.episode_length,
            num_threads=1,
            cameras=Cameras(width=_WIDTH, height=_HEIGHT, depth=False),
        )

    def draw(self, world: int, agent: int) -> NDArray[np.uint8]:
        """uint8 [height, width, 3]"""
        self._studio.restore(self._sim.save([world]))
        return np.array(self._studio.rgb.to_numpy()[0, agent, :, :, :3], np.uint8)

    def close(self) -> None:
        """Ends the simulator with the cameras."""
        self._studio.close()
