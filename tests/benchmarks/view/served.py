"""A viewer for the benchmark; prints its port.

python -m tests.benchmarks.view.served WORLDS RATE normal|rooms
"""

from __future__ import annotations

import sys

import numpy as np

from doorstep.cli.rooms_start import RoomsStart
from doorstep.viewer.server import Settings, opened
from doorstep.viewer.viewer import Viewer


def main() -> None:
    worlds, rate, start = sys.argv[1:]
    with opened(Settings(worlds=int(worlds), rate=float(rate), port=0)) as (viewer, server):
        if start == "rooms":
            start_among_cubes(viewer)
        print(server.get_port(), flush=True)
        viewer.run()


def start_among_cubes(viewer: Viewer) -> None:
    """After every reset, agents are moved into the second and third room."""
    sim, play = viewer._sim, viewer._play
    rooms, step = RoomsStart(sim), play.step
    rooms.place(np.arange(sim.num_worlds))

    def step_and_move() -> None:
        step()
        rooms.place(np.flatnonzero(sim.dones.copy_to_host().any(axis=(1, 2))))

    play.step = step_and_move  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
