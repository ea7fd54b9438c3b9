"""A soak test: random and adversarial actions for many world-steps, checking physical laws all the time.

Run from the root of the project: python -m tests.soak --world-steps 1e8
Prints one line per broken law and a summary; exits with 1 if any law was broken.

With --twin-threads a second set of simulators with so many threads does the same, is reset and restored from saves of
the first set halfway, and must end with the same hashes. --lifetimes creates and closes objects instead.
"""

import argparse
import sys
import time

import numpy as np
from tests.adversaries import POLICIES, ShutRooms, violations
from tests.lifetimes import KINDS, live_and_end
from tests.reference import constants as c
from tests.reference.boxes import rotation_matrices
from tests.scenes import Array, Scene, random_actions

TABLE = 64  # random action sets, drawn in advance
MOST_PRINTED = 20


# In every fourth episode all agents stop at step STOP; from AT_REST to CHECKED, what nobody holds must be at rest.
EPISODE, STOP, AT_REST, CHECKED = 200, 90, 140, 190
CREEP = 0.1  # metres in that time: one that creeps on at 0.07 m/s covers 0.14, one wedged between others up to 0.08
MOST_CREEPING = 1e-3  # of the cubes that should rest: some that press against another one creep


class Soak:
    """Two simulators per starting room, one with doors that never open, where no body may leave its room.

    A quarter of the worlds at a time follows an adversarial policy, the others act at random. In every fourth episode
    they stop halfway.
    """

    def __init__(self, num_worlds: int, num_agents: int, seed: int, num_threads: int | None) -> None:
        self.runs = [
            Run(Scene(num_worlds, seed=seed + room, num_agents=num_agents, num_threads=num_threads), room, sealed)
            for room in range(3)
            for sealed in (False, True)
        ]
        self.table = random_actions(seed, TABLE, num_worlds, num_agents)
        self.step_count = 0
        self.broken = 0
        self.creeping = self.resting = 0  # cubes that should rest and move, or do not

    def step(self) -> None:
        for run in self.runs:
            run.scene.actions[:] = self._actions(run.scene)
            run.scene.step()
            if self._stopped_at(AT_REST):
                run.resting_places = run.scene.body_positions[:, run.scene.cubes].copy()
            if self._stopped_at(CHECKED):
                self._look_at_resting_cubes(run)
            if run.shut:
                run.shut.watch()
            run.begin_episodes(run.scene.dones[:, 0, 0] > 0)
        self.step_count += 1

    def check(self) -> None:
        for run in self.runs:
            self._report(run, run.broken_laws())

    def restore_from(self, other: "Soak") -> None:
        """Goes on from saves of another's worlds, after a reset that forgets the own ones."""
        for run, source in zip(self.runs, other.runs, strict=True):
            run.scene.sim.reset()
            run.scene.sim.restore(source.scene.sim.save())

    def compare_with(self, other: "Soak") -> None:
        for run, twin in zip(self.runs, other.runs, strict=True):
            if run.scene.sim.hash() != twin.scene.sim.hash():
                self._report(run, ["the twin's hash is another"])

    def _look_at_resting_cubes(self, run: "Run") -> None:
        creep = run.creep_of_cubes()
        creeping = np.count_nonzero(creep > CREEP)
        self.creeping += creeping
        self.resting += len(creep) - creeping
        if creeping > MOST_CREEPING * len(creep):
            worst = max(creep)
            self._report(run, [f"{creeping} of {len(creep)} cubes creep, by up to {worst:.3f} m, though nobody pushes"])

    def _report(self, run: "Run", laws: list[str]) -> None:
        for law in laws:
            self.broken += 1
            if self.broken <= MOST_PRINTED:
                print(f"step {self.step_count}, {run.name}: {law}", flush=True)

    def _stopped_at(self, step: int) -> bool:
        return self.step_count // EPISODE % 4 == 3 and self.step_count % EPISODE == step

    def _actions(self, scene: Scene) -> Array:
        if self.step_count // EPISODE % 4 == 3 and self.step_count % EPISODE >= STOP:
            return np.broadcast_to(np.array(c.IDLE, dtype=np.int32), scene.actions.shape)
        worlds, agents = scene.sim.num_worlds, scene.sim.num_agents
        actions: Array = self.table[(self.step_count * 7) % TABLE].copy()
        policy = list(POLICIES.values())[self.step_count // 50 % len(POLICIES)]
        quarter = worlds // 4 or worlds
        start = (self.step_count // 50 * quarter) % worlds
        chosen = actions[start : start + quarter]
        chosen[:] = policy(self.step_count, len(chosen), agents)
        return actions


class Run:
    """A simulator whose episodes start in one room."""

    def __init__(self, scene: Scene, room: int, sealed: bool) -> None:
        self.scene, self.room = scene, room
        self.name = f"start in room {room}" + (", doors shut" if sealed else "")
        self.shut = ShutRooms(scene) if sealed else None
        self.resting_places = scene.body_positions[:, scene.cubes].copy()
        self.begin_episodes(np.ones(scene.sim.num_worlds, dtype=bool))

    def begin_episodes(self, worlds: Array) -> None:
        scene = self.scene
        if not worlds.any():
            return
        scene.body_positions[worlds, scene.agents, 1] += np.float32(self.room * c.ROOM_LENGTH)
        if self.shut:
            self.shut.begin_episodes(worlds)

    def creep_of_cubes(self) -> Array:
        """By how much cubes have moved although all agents have stood still for long: metres, of the flat ones.

        Cubes that are or were stacked or leaning may slide, and cubes that agents hold may push others.
        """
        scene = self.scene
        place = scene.body_positions[:, scene.cubes]
        up = np.abs(rotation_matrices(scene.body_rotations[:, scene.cubes])[..., 2, :]).max(axis=-1)
        highest = np.maximum(place[..., 2], self.resting_places[..., 2])
        flat = (highest < c.CUBE_SIDE / 2 + 0.02) & (up > 0.9999)
        held = (scene.agent_grabs >= 0).any(axis=1, keepdims=True)
        moved: Array = np.linalg.norm(place - self.resting_places, axis=-1)
        creep: Array = moved[flat & ~held]
        return creep

    def broken_laws(self) -> list[str]:
        laws = violations(self.scene) + (self.shut.broken_laws() if self.shut else [])
        for name in ("lidar", "self_observations", "room_entity_observations", "rewards"):
            if not np.isfinite(getattr(self.scene, name)).all():
                laws.append(f"{name} is not finite")
        return laws


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world-steps", type=float, default=1e8)
    parser.add_argument("--worlds", type=int, default=512, help="worlds per simulator; there are six")
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--twin-threads", type=int, default=None, help="of a second set with equal hashes")
    parser.add_argument("--lifetimes", type=int, default=0, help="instead: create and close so many objects of a kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="of these objects")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--check-every", type=int, default=10, help="steps between two looks at the laws")
    options = parser.parse_args()
    return _lifetimes(options.lifetimes, options.kinds) if options.lifetimes else _laws(options)


def _lifetimes(count: int, kinds: list[str]) -> int:
    troubles = [trouble for kind in kinds for trouble in live_and_end(kind, count)]
    print("\n".join([*troubles[:MOST_PRINTED], f"{len(troubles)} troubles"]))
    return 1 if troubles else 0


def _laws(options: argparse.Namespace) -> int:
    soak = Soak(options.worlds, options.agents, options.seed, options.threads)
    twin = Soak(options.worlds, options.agents, options.seed, options.twin_threads) if options.twin_threads else None
    steps = int(np.ceil(options.world_steps / (len(soak.runs) * options.worlds)))
    begin = time.monotonic()
    for step in range(1, steps + 1):
        soak.step()
        if step % options.check_every == 0:
            soak.check()
        if twin:
            twin.step()
            if step == steps // 2:
                twin.restore_from(soak)
        if step % max(steps // 20, 1) == 0:
            print(f"{step / steps:4.0%}  {time.monotonic() - begin:6.0f} s  {soak.broken} broken laws", flush=True)
    if twin:
        soak.compare_with(twin)
        print(f"hashes of {len(soak.runs)} simulators and their twins compared after a restore at step {steps // 2}")
    healths = [run.scene.sim.health for run in soak.runs]
    trouble = sum(health.nonfinite_values + health.dropped_contacts for health in healths)
    print(f"{steps * len(soak.runs) * options.worlds:.3g} world-steps, {soak.broken} broken laws")
    print(f"{soak.creeping} of {soak.creeping + soak.resting} cubes that should rest crept by more than {CREEP} m")
    print(f"dropped contacts, values not finite: {trouble}")
    return 1 if soak.broken or trouble else 0


if __name__ == "__main__":
    sys.exit(main())
