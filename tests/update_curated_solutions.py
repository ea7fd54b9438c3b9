"""Records anew how the curated levels are solved: by two agents, and by one agent where that is possible.

Run from the root of the project after a change of the levels or of results: python -m tests.update_curated_solutions
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

import doorstep
from doorstep import levels
from doorstep.planner import ScriptedPolicy
from doorstep.recording import RecordingWriter

IDLE = (0, 0, 2, 0)


def solutions_of(file, num_agents, names):
    """A recording with a world for each level, in the order of names, which has the hashes of every step."""
    found = [levels.curated()[name] for name in names]
    return SimpleNamespace(path=FOLDER / file, num_agents=num_agents, names=names, levels=found)


FOLDER = Path(__file__).parent / "data"
EASY = ("one door", "far button", "two rooms", "slalom", "one cube", "two cubes", "blocked door", "spiral", "carry")
BY_TWO = solutions_of("curated_solutions.rec", 2, tuple(levels.curated()))
BY_ONE = solutions_of("curated_solutions_of_one_agent.rec", 1, (*EASY, "cube in a cell"))


def record(solutions):
    """Lets the scripted policy play until every world has reached its goal; how many steps that took."""
    worlds = len(solutions.levels)
    config = {"num_agents": solutions.num_agents, "max_levels": worlds, "auto_reset": False, "strict": True}
    with doorstep.Simulator(worlds, **config) as sim, RecordingWriter(solutions.path, sim, hash_interval=1) as writer:
        sim.set_levels(solutions.levels)
        sim.level_weights[...] = np.eye(worlds, dtype=np.float32)
        writer.reset()
        policy, solved = ScriptedPolicy(), np.zeros(worlds, np.bool_)
        while not solved.all():
            actions = policy(sim)
            actions[solved] = IDLE  # takes no room in the file
            sim.actions = actions
            writer.step()
            solved |= sim.terminations.to_numpy().all(axis=(1, 2))
            failed = sim.dones.to_numpy().all(axis=(1, 2)) & ~solved
            if failed.any():
                raise SystemExit(f"not solved: {[solutions.names[world] for world in np.flatnonzero(failed)]}")
        return writer.num_steps


def main():
    for solutions in (BY_TWO, BY_ONE):
        print(f"{solutions.path}: {record(solutions)} steps")


if __name__ == "__main__":
    main()
