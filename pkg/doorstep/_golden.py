"""Golden results: runs that every machine plays with the same bits, and their hashes.

`doorstep doctor --verify` plays them here and compares. A changed hash means that results change for users: describe
that in the changelog, then paste the new table, which `python -m tests.update_golden_hashes` prints.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._native import ACTIONS
from doorstep.cameras import Cameras
from doorstep.levels import GeneratedLevel, Physics, Rewards, curated
from doorstep.levels.generated import ROOM_LENGTH
from doorstep.policy import SamplingParams, load_policy
from doorstep.policy.playing import Player
from doorstep.simulator import Simulator

_SEED = 5
_STEPS_BETWEEN = 10  # hashes
_PRIME = 0x100000001B3  # odd: no bit of an earlier hash is lost
_OBSERVED = (
    *("self_observations", "partner_observations", "room_entity_observations", "door_observations", "lidar"),
    *("steps_remaining", "rewards", "dones", "terminations", "truncations"),
)


@dataclass(frozen=True)
class Run:
    """What is played, and of what the hash is.

    Attributes:
        num_worlds: worlds of 2 agents, unless `rules` say otherwise.
        steps: a multiple of 10.
        room: where agents begin, 0 to 2.
        tensors: whose bytes the hash depends on, besides the worlds.
        policy: a text that names a policy; "": uniform random actions.
        rules: arguments of the simulator, made when they are needed.
    """

    num_worlds: int
    steps: int
    room: int = 0
    tensors: tuple[str, ...] = ()
    policy: str = ""
    rules: Callable[[], dict[str, Any]] = field(default=dict)

    def hash(self, device: str = "cpu") -> int:
        """A hash of the worlds and tensors after every tenth step, so that ended episodes count too."""
        history = 0
        with Simulator(self.num_worlds, seed=_SEED, device=device, **self.rules()) as sim:
            if self.room:
                start_in_room(sim, self.room)
            for step, _ in enumerate(self._act(sim), 1):
                sim.step()
                if step % _STEPS_BETWEEN == 0:
                    for value in (sim.hash(), *(_hash_of(sim.tensors[name].copy_to_host()) for name in self.tensors)):
                        history = (history * _PRIME + value) % 2**64
        return history

    def _act(self, sim: Simulator) -> Iterator[None]:
        """Sets the actions of each step."""
        if self.policy:
            player = Player(load_policy(self.policy, sampling=SamplingParams(seed=_SEED)), sim)
            for _ in range(self.steps):
                player.act()
                yield
        else:
            for actions in random_actions(_SEED, self.steps, self.num_worlds, sim.num_agents):
                sim.actions = actions
                yield


def _hash_of(array: NDArray[Any]) -> int:
    return int.from_bytes(hashlib.blake2b(array.tobytes(), digest_size=8).digest(), "little")


def start_in_room(sim: Simulator, room: int) -> None:
    """Shifts newly spawned agents to the same position in another room, as if they had moved there."""
    positions = sim.state.body_positions.copy_to_host()
    positions[:, : sim.num_agents, 1] += np.float32(room * ROOM_LENGTH)
    sim.state.body_positions.copy_from_host(positions)
    sim.state.agent_max_y.copy_from_host(np.ascontiguousarray(positions[:, : sim.num_agents, 1]))


def random_actions(seed: int, steps: int, num_worlds: int, num_agents: int = 2) -> NDArray[np.int32]:
    """Uniform legal actions [steps, N, A, 4]; depends on its arguments only, not on the numpy version."""
    count = steps * num_worlds * num_agents * 4
    with np.errstate(over="ignore"):
        mixed = np.arange(count, dtype=np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    buckets = np.tile(np.array(ACTIONS, dtype=np.uint64), count // 4)
    actions: NDArray[np.int32] = ((mixed >> np.uint64(32)) * buckets >> np.uint64(32)).astype(np.int32)
    return actions.reshape(steps, num_worlds, num_agents, 4)


# ---- The runs


def _with_agents(num_agents: int) -> Run:
    return Run(32, 100, rules=lambda: {"num_agents": num_agents})


def _drawn_physics() -> Physics:
    return Physics(
        cube_mass=(5, 30), friction=(0.5, 1.5), walking_force=(600, 1200), turning_torque=(200, 400), door_speed=(2, 30)
    )


RUNS = {
    "first room, three episodes": Run(64, 450, rules=lambda: {"episode_length": 150}),
    "among cubes of the second room": Run(64, 200, room=1),
    "among cubes of the third room": Run(64, 200, room=2),
    "one agent": _with_agents(1),
    "three agents": _with_agents(3),
    "four agents": _with_agents(4),
    "five agents": _with_agents(5),
    "six agents": _with_agents(6),
    "seven agents": _with_agents(7),
    "eight agents": _with_agents(8),
    "curated levels": Run(64, 200, rules=lambda: {"levels": list(curated().values())}),
    "rooms of all types": Run(
        64, 200, rules=lambda: {"levels": GeneratedLevel(room_types=("any", "any", "any"), cubes_near_buttons=0.5)}
    ),
    "drawn physics": Run(64, 200, room=2, rules=lambda: {"levels": GeneratedLevel(physics=_drawn_physics())}),
    "drawn physics in a curated level": Run(
        64, 200, rules=lambda: {"levels": curated()["slalom"].replace(physics=_drawn_physics())}
    ),
    "other rewards": Run(
        64, 200, tensors=("rewards",), rules=lambda: {"reward": Rewards(progress=0.01, room=1, exit=3, goal=2)}
    ),
    "observations": Run(64, 200, room=1, tensors=_OBSERVED, rules=lambda: {"observations": "by_name"}),
    "flat observations with physics": Run(
        64,
        200,
        tensors=("observations",),
        rules=lambda: {
            "levels": GeneratedLevel(physics=_drawn_physics()),
            "observations": ("physics", "lidar", "self_observations", "partner_observations"),
        },
    ),
    "views: colour and depth": Run(
        8, 20, room=1, tensors=("rgb", "depth"), rules=lambda: {"cameras": Cameras(width=48, height=36)}
    ),
    "views: segmentation and normals": Run(
        8,
        20,
        tensors=("segmentation", "normals"),
        rules=lambda: {
            "num_agents": 3,
            "cameras": Cameras(width=48, height=36, rgb=False, depth=False, segmentation=True, normals=True),
        },
    ),
    "actions of the trained policy": Run(32, 100, policy="trained"),
}

HASHES: dict[str, int] = {
    "first room, three episodes": 0xD66959EEFAEE3E44,
    "among cubes of the second room": 0xB281E888988B72DA,
    "among cubes of the third room": 0x9319B6E58E069FE1,
    "one agent": 0xB4C5289B118A4A9D,
    "three agents": 0x2A0A9EB8CE9BB88A,
    "four agents": 0xE3FD1FDCBED227E7,
    "five agents": 0x58D1B9253215B20B,
    "six agents": 0xAD7E3A467B3D18C5,
    "seven agents": 0x2C3F23E366CD8ADB,
    "eight agents": 0x6A23513EC6AB932C,
    "curated levels": 0x5DC7E60661C999CF,
    "rooms of all types": 0x352EAFD3899E8326,
    "drawn physics": 0x25971FEDEC955AF5,
    "drawn physics in a curated level": 0x51AFB55519A39318,
    "other rewards": 0x97317E95948F6A68,
    "observations": 0xA687BBB342A2554F,
    "flat observations with physics": 0x2D94943F12293368,
    "views: colour and depth": 0xA6D4D4A39FCAD870,
    "views: segmentation and normals": 0x48C60A68A9E99281,
    "actions of the trained policy": 0x655B8AF005C79055,
}
