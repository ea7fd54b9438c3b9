"""Where the worlds of two simulators part: the step, the worlds, the numbers; and a file to replay that step with.

    python -m tests.cuda.differences difference.npz [cpu cuda]

The file has what the step began from and what came of it on both sides. The command plays the step again on each device
that is named, and says whose result it gives: the file may come from a GPU, and be replayed where there is none.
"""

import contextlib
import os
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import doorstep
from doorstep._native import STATE_FIELDS

FILE = "DOORSTEP_DIFFERENCE"  # an environment variable: the path of the file for the first difference
MOST_WORLDS = 8  # in the file and in the text
MOST_FIELDS, MOST_NUMBERS = 6, 2  # in the text, of the first world and of a field


@dataclass(frozen=True)
class Moment:
    """Worlds that may be gone on with, on any device, with all that their steps depend on but actions."""

    config: doorstep.SimulatorConfig
    levels: tuple
    level_weights: np.ndarray | None
    reward: doorstep.Rewards | None
    saved: bytes

    @classmethod
    def of(cls, sim, worlds=None):
        """Of all worlds of the simulator, or of these."""
        count = sim.num_worlds if worlds is None else len(worlds)
        weights = sim.level_weights.copy_to_host() if sim.config.max_levels else None
        weights = weights if worlds is None or weights is None else weights[worlds]
        return cls(sim.config.replace(num_worlds=count), sim.levels, weights, sim.reward, sim.save(worlds))

    def again(self, device):
        made = doorstep.Simulator.from_config(self.config.replace(device=device), reward=self.reward)
        if self.level_weights is not None:
            made.set_levels(self.levels)
            made.level_weights.copy_from_host(self.level_weights)
        made.restore(self.saved)
        return made


def step(sim, actions):
    sim.actions.copy_from_host(actions)
    sim.step()


def bits(array):
    """[N, bytes of a world]"""
    return np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)


def differing_worlds(one, other):
    """Those whose hashes or tensors are not the same, in order."""
    different = one.world_hashes() != other.world_hashes()
    for name, tensor in one.tensors.items():
        different |= (bits(tensor.copy_to_host()) != bits(other.tensors[name].copy_to_host())).any(axis=1)
    return np.flatnonzero(different)


def explain(cpu, gpu, agreed, since):
    """What is different, and since which step: plays the steps since both agreed once more.

    `since` draws the actions of each step. Writes the file if its variable is set and there is none yet.
    """
    with agreed.again("cpu") as one, agreed.again(gpu.device) as other:
        for number, draw in enumerate(since, 1):
            before, actions = Moment.of(one), draw()
            for sim in (one, other):
                step(sim, actions)
            worlds = differing_worlds(one, other)
            if worlds.size:
                return described(one, other, worlds, f"step {number} of {len(since)}", before, actions)
        again = one.hash() == cpu.hash()
    race = "not when the steps are played again, so it moves, as a race does"
    reason = race if again else "in a step that is not known, because calls other than steps changed the worlds"
    return described(cpu, gpu, differing_worlds(cpu, gpu), reason, agreed, None)


def described(cpu, gpu, worlds, when, before, actions):
    """Worlds and numbers, in words and in the file."""
    few = worlds[:MOST_WORLDS]
    pairs = {f"state.{row.name}": (getattr(cpu.state, row.name), getattr(gpu.state, row.name)) for row in STATE_FIELDS}
    pairs |= {name: (tensor, gpu.tensors[name]) for name, tensor in cpu.tensors.items()}
    fields = {name: [tensor.copy_to_host()[few] for tensor in pair] for name, pair in pairs.items()}
    fields = {name: (mine, its) for name, (mine, its) in fields.items() if mine.tobytes() != its.tobytes()}
    of_first = [name for name, (mine, its) in fields.items() if mine[0].tobytes() != its[0].tobytes()]
    lines = [f"{len(worlds)} of {cpu.num_worlds} worlds differ, {when}: worlds {', '.join(map(str, few))}"]
    lines.append(f"in world {few[0]}: {', '.join(of_first)}")
    for name in of_first[:MOST_FIELDS]:
        lines += numbers(name, fields[name][0][0], fields[name][1][0])
    text = "\n".join([*lines, f"in {os.environ.get('PYTEST_CURRENT_TEST')}"])
    if path := os.environ.get(FILE):
        with before.again("cpu") as sim:
            few_before = pickle.dumps(Moment.of(sim, few))
        arrays = {"text": text, "worlds": few, "before": np.frombuffer(few_before, np.uint8)}
        arrays["actions"] = np.empty(0) if actions is None else actions[few]
        for side, (name, sim) in enumerate((("cpu", cpu), ("gpu", gpu))):
            arrays[name] = np.frombuffer(sim.save(few), np.uint8)
            arrays |= {f"{name}_{field}": pair[side] for field, pair in fields.items()}
        # Other processes compare at the same time: the first file stays.
        with contextlib.suppress(FileExistsError), Path(path).open("xb") as file:
            np.savez_compressed(file, **arrays)
    return text


def numbers(what, mine, its):
    """The first numbers of a field that are not the same in a world."""
    unequal = np.array([one.tobytes() != other.tobytes() for one, other in zip(mine.flat, its.flat, strict=True)])
    places = np.argwhere(unequal.reshape(mine.shape))
    for place in map(tuple, places[:MOST_NUMBERS]):
        one, other = mine[place], its[place]
        line = f"  {what}{list(map(int, place))}: CPU {one}, GPU {other}"
        if mine.dtype == np.float32:
            apart = abs(ordinal(one) - ordinal(other))
            line += f", {apart:,} ULP apart ({one.view(np.uint32):#010x}, {other.view(np.uint32):#010x})"
        yield line
    if len(places) > MOST_NUMBERS:
        yield f"  and {len(places) - MOST_NUMBERS} more numbers of it"


def ordinal(value):
    """Its place among all numbers of its type."""
    pattern = int(value.view(np.int32))
    return pattern if pattern >= 0 else -(pattern & 0x7FFFFFFF)


def replay(found, device):
    """Whose result a device gives."""
    if not found["actions"].size:
        return "the step is not known"
    with pickle.loads(found["before"].tobytes()).again(device) as sim:
        step(sim, found["actions"])
        for side in ("cpu", "gpu"):
            kept = {name: found[f"{side}_{name}"] for name in sim.tensors if f"{side}_{name}" in found}
            same = [sim.tensors[name].copy_to_host().tobytes() == array.tobytes() for name, array in kept.items()]
            if sim.save() == found[side].tobytes() and all(same):
                return f"the {side.upper()}'s result"
    return "neither the CPU's result nor the GPU's"


if __name__ == "__main__":
    with np.load(sys.argv[1]) as difference:
        print(difference["text"])
        for chosen in sys.argv[2:] or ["cpu"]:
            print(f"played again on {chosen}: {replay(difference, chosen)}")
