"""A long soak: random and adversarial actions for many world-steps, while the laws of the physics are watched.

Run from the root of the project: python -m tests.soak --world-steps 1e8
Prints one line per broken law and a summary; exits with 1 if there was any.
"""

import argparse
import sys
import time

import numpy as np
from tests.adversaries import POLICIES, violations
from tests.scenes import Array, Scene, random_actions

TABLE = 64  # random action sets drawn beforehand
MOST_PRINTED = 20


class Soak:
    """One simulator per starting room; a quarter of the worlds at a time follows an adversarial policy."""

    def __init__(self, num_worlds: int, num_agents: int, seed: int, num_threads: int | None) -> None:
        self.scenes = [
            Scene(num_worlds, seed=seed + room, num_agents=num_agents, num_threads=num_threads) for room in range(3)
        ]
        for room, scene in enumerate(self.scenes):
            scene.start_in_room(room)
        self.table = random_actions(seed, TABLE, num_worlds, num_agents)
        self.step_count = 0
        self.broken = 0

    def step(self) -> None:
        for room, scene in enumerate(self.scenes):
            scene.actions[:] = self._actions(scene)
            scene.step()
            ended = scene.dones[:, 0, 0] > 0
            if room and ended.any():
                scene.body_positions[ended, : scene.sim.num_agents, 1] += np.float32(room * 40 / 3)
        self.step_count += 1

    def check(self) -> None:
        for room, scene in enumerate(self.scenes):
            for law in violations(scene):
                self._report(f"step {self.step_count}, scene of room {room}: {law}")
            for name in ("lidar", "self_observations", "room_entity_observations", "rewards"):
                if not np.isfinite(getattr(scene, name)).all():
                    self._report(f"step {self.step_count}, scene of room {room}: {name} is not finite")

    def _actions(self, scene: Scene) -> Array:
        worlds, agents = scene.sim.num_worlds, scene.sim.num_agents
        actions: Array = self.table[(self.step_count * 7) % TABLE].copy()
        policy = list(POLICIES.values())[self.step_count // 50 % len(POLICIES)]
        quarter = worlds // 4 or worlds
        start = (self.step_count // 50 * quarter) % worlds
        chosen = actions[start : start + quarter]
        chosen[:] = policy(self.step_count, len(chosen), agents)
        return actions

    def _report(self, line: str) -> None:
        self.broken += 1
        if self.broken <= MOST_PRINTED:
            print(line, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world-steps", type=float, default=1e8)
    parser.add_argument("--worlds", type=int, default=1024, help="worlds per simulator; there are three")
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--check-every", type=int, default=10, help="steps between two looks at the laws")
    options = parser.parse_args()
    soak = Soak(options.worlds, options.agents, options.seed, options.threads)
    steps = int(np.ceil(options.world_steps / (3 * options.worlds)))
    begin = time.monotonic()
    for step in range(1, steps + 1):
        soak.step()
        if step % options.check_every == 0:
            soak.check()
        if step % max(steps // 20, 1) == 0:
            print(f"{step / steps:4.0%}  {time.monotonic() - begin:6.0f} s  {soak.broken} broken laws", flush=True)
    healths = [scene.sim.health for scene in soak.scenes]
    trouble = sum(health.nonfinite_values + health.dropped_contacts for health in healths)
    print(f"{steps * 3 * options.worlds:.3g} world-steps, {soak.broken} broken laws, health {healths}")
    return 1 if soak.broken or trouble else 0


if __name__ == "__main__":
    sys.exit(main())
