"""Named scenes whose hashes are pinned: the same worlds, bit for bit, on every machine.

A changed hash means that results change for users: describe that in the changelog, then paste the new table, which
`python -m tests.update_golden_hashes` prints.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.scenes import Scene, random_actions


@dataclass(frozen=True)
class Run:
    """Uniform random actions in `num_worlds` worlds for `steps` steps, starting in `room`."""

    num_worlds: int
    steps: int
    room: int = 0
    seed: int = 5
    num_agents: int = 2
    episode_length: int = 200

    def scene(self, first: int = 0, count: int | None = None, **options: Any) -> Scene:
        """A simulator of worlds [first, first + count) of this run, before its first step."""
        scene = Scene(
            self.num_worlds if count is None else count,
            **{
                "seed": self.seed,
                "num_agents": self.num_agents,
                "episode_length": self.episode_length,
                "world_offset": first,
                **options,
            },
        )
        if self.room:
            scene.start_in_room(self.room)
        return scene

    def play(
        self, scene: Scene, start: int = 0, stop: int | None = None, step: Callable[[], None] | None = None
    ) -> None:
        """Plays steps [start, stop) in the worlds of `scene`, with `step` instead of `scene.step` if given."""
        first = scene.sim.world_offset
        table = random_actions(self.seed, self.steps, self.num_worlds, self.num_agents)
        for actions in table[start:stop]:
            scene.actions[:] = actions[first : first + scene.sim.num_worlds]
            (step or scene.step)()

    def hash(self, **options: Any) -> int:
        """The hash of the worlds after the last step."""
        scene = self.scene(**options)
        self.play(scene)
        return scene.sim.hash()

    def history_hash(self) -> int:
        """A hash of the worlds of all steps: unlike the final state, it also depends on episodes that ended before."""
        scene = self.scene()
        history = 0
        for start in range(0, self.steps, 10):
            self.play(scene, start, start + 10)
            history = (history * 0x100000001B3 + scene.sim.hash()) % 2**64
        return history


SCENES = {
    "first room, three episodes": Run(64, 450, episode_length=150),
    "among cubes of the second room": Run(64, 200, room=1),
    "among cubes of the third room": Run(64, 200, room=2),
    "one agent": Run(32, 100, num_agents=1),
    "three agents": Run(32, 100, num_agents=3),
    "eight agents": Run(32, 100, num_agents=8),
}

HASHES: dict[str, int] = {
    "first room, three episodes": 0xD66959EEFAEE3E44,
    "among cubes of the second room": 0xB281E888988B72DA,
    "among cubes of the third room": 0x9319B6E58E069FE1,
    "one agent": 0xB4C5289B118A4A9D,
    "three agents": 0x2A0A9EB8CE9BB88A,
    "eight agents": 0xDA9FD420C9389E27,
}
