"""Where the worlds of two simulators part: the step, the worlds, the numbers; and a file to replay that step with.

    python -m tests.cuda.differences difference.npz [cpu cuda]

The file has what the step began from and what came of it on both sides. The command plays the step again on each device
that is named, and says whose result it gives: the file may come from a GPU, and be replayed where there is none.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import doorstep
from doorstep._native import STATE_FIELDS
from doorstep.levels.files import AnyLevel

FILE = "DOORSTEP_DIFFERENCE"  # an environment variable: the path of the file for the first difference
MOST_WORLDS = 8  # in the file and in the text
MOST_FIELDS, MOST_NUMBERS = 6, 2  # in the text, of the first world and of a field

Array = npt.NDArray[Any]
Drawn = Callable[[], Array]  # the actions of a step


@dataclass(frozen=True)
class Moment:
    """Worlds that may be gone on with, on any device, with all that their steps depend on but actions."""

    config: doorstep.SimulatorConfig
    levels: tuple[AnyLevel, ...]
    level_weights: Array | None
    reward: doorstep.Rewards | None
    saved: bytes

    @classmethod
    def of(cls, sim: doorstep.Simulator, worlds: Array | None = None) -> Moment:
        """Of all worlds of the simulator, or of these."""
        count = sim.num_worlds if worlds is None else len(worlds)
        weights = sim.level_weights.copy_to_host() if sim.config.max_levels else None
        weights = weights if worlds is None or weights is None else weights[worlds]
        return cls(sim.config.replace(num_worlds=count), sim.levels, weights, sim.reward, sim.save(worlds))

    def again(self, device: str) -> doorstep.Simulator:
        made = doorstep.Simulator.from_config(self.config.replace(device=device), reward=self.reward)
        if self.level_weights is not None:
            made.set_levels(self.levels)
            made.level_weights.copy_from_host(self.level_weights)
        made.restore(self.saved)
        return made


def step(sim: doorstep.Simulator, actions: Array) -> None:
    sim.actions.copy_from_host(actions)
    sim.step()


def bits(array: Array) -> Array:
    """[N, bytes of a world]"""
    return np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)


def differing_states(one: doorstep.Simulator, other: doorstep.Simulator) -> Array:
    """The worlds whose hashes are not the same, in order."""
    return np.flatnonzero(one.world_hashes() != other.world_hashes())


def differing_worlds(one: doorstep.Simulator, other: doorstep.Simulator) -> Array:
    """Those whose hashes or tensors are not the same, in order."""
    different = one.world_hashes() != other.world_hashes()
    for name, tensor in one.tensors.items():
        different |= (bits(tensor.copy_to_host()) != bits(other.tensors[name].copy_to_host())).any(axis=1)
    return np.flatnonzero(different)


def explain(cpu: doorstep.Simulator, gpu: doorstep.Simulator, agreed: Moment, since: Sequence[Drawn]) -> str:
    """What is different, and since which step: plays the steps since both agreed once more.

    `since` draws the actions of each step. Writes the file if its variable is set and there is none yet.
    """
    # Comparing all tensors takes longer than stepping.
    differing = differing_states if differing_states(cpu, gpu).size else differing_worlds
    with agreed.again("cpu") as one, agreed.again(gpu.device) as other:
        for number, draw in enumerate(since, 1):
            before, actions = Moment.of(one), draw()
            for sim in (one, other):
                step(sim, actions)
            worlds = differing(one, other)
            if worlds.size:
                return described(one, other, worlds, f"step {number} of {len(since)}", before, actions)
        if one.hash() == cpu.hash():
            reason = "not when the steps are played again, so it moves, as a race does"
        else:
            reason = "in a step that is not known, because calls other than steps changed the worlds"
    return described(cpu, gpu, differing_worlds(cpu, gpu), reason, agreed, None)


def described(
    cpu: doorstep.Simulator,
    gpu: doorstep.Simulator,
    worlds: Array,
    when: str,
    before: Moment,
    actions: Array | None,
) -> str:
    """Worlds and numbers, in words and in the file."""
    few = worlds[:MOST_WORLDS]
    fields = {name: (mine[few], its[few]) for name, (mine, its) in both_fields(cpu, gpu).items()}
    fields = {name: (mine, its) for name, (mine, its) in fields.items() if mine.tobytes() != its.tobytes()}
    lines = [f"{len(worlds)} of {cpu.num_worlds} worlds differ, {when}: worlds {', '.join(map(str, few))}"]
    of_first = [name for name, (mine, its) in fields.items() if mine[0].tobytes() != its[0].tobytes()]
    lines.append(f"in world {few[0]}: {', '.join(of_first)}")
    for name in of_first[:MOST_FIELDS]:
        lines += numbers(name, fields[name][0][0], fields[name][1][0])
    if test := os.environ.get("PYTEST_CURRENT_TEST"):
        lines.append(f"in {test}")
    text = "\n".join(lines)
    if path := os.environ.get(FILE):
        with before.again("cpu") as sim:
            few_before = Moment.of(sim, few)
        arrays: dict[str, Any] = {
            "text": text,
            "worlds": few,
            "before": np.frombuffer(pickle.dumps(few_before), np.uint8),
            "actions": np.empty(0) if actions is None else actions[few],
            "cpu": np.frombuffer(cpu.save(few), np.uint8),
            "gpu": np.frombuffer(gpu.save(few), np.uint8),
        }
        arrays |= {f"cpu_{name}": mine for name, (mine, _) in fields.items()}
        arrays |= {f"gpu_{name}": its for name, (_, its) in fields.items()}
        # Other processes compare at the same time: the first file stays.
        with contextlib.suppress(FileExistsError), Path(path).open("xb") as file:
            np.savez_compressed(file, **arrays)
    return text


def both_fields(cpu: doorstep.Simulator, gpu: doorstep.Simulator) -> dict[str, tuple[Array, Array]]:
    """All fields of the worlds' state, and all tensors."""
    names = [row.name for row in STATE_FIELDS]
    state = {f"state.{name}": (getattr(cpu.state, name), getattr(gpu.state, name)) for name in names}
    tensors = {name: (tensor, gpu.tensors[name]) for name, tensor in cpu.tensors.items()}
    return {name: (one.copy_to_host(), other.copy_to_host()) for name, (one, other) in (state | tensors).items()}


def numbers(what: str, mine: Array, its: Array) -> list[str]:
    """The first numbers of a field that are not the same in a world."""
    unequal = np.array([one.tobytes() != other.tobytes() for one, other in zip(mine.flat, its.flat, strict=True)])
    places = np.argwhere(unequal.reshape(mine.shape))
    lines = []
    for place in map(tuple, places[:MOST_NUMBERS]):
        one, other = mine[place], its[place]
        line = f"  {what}{list(map(int, place))}: CPU {one}, GPU {other}"
        if mine.dtype == np.float32:
            apart = abs(int(ordinal(one)) - int(ordinal(other)))
            line += f", {apart:,} ULP apart ({one.view(np.uint32):#010x}, {other.view(np.uint32):#010x})"
        lines.append(line)
    if len(places) > MOST_NUMBERS:
        lines.append(f"  and {len(places) - MOST_NUMBERS} more numbers of it")
    return lines


def ordinal(value: np.float32) -> int:
    """Its place among all numbers of its type."""
    pattern = int(value.view(np.int32))
    return pattern if pattern >= 0 else -(pattern & 0x7FFFFFFF)


# ---- The file


def replay(path: Path, device: str) -> str:
    """Whose result a device gives."""
    with np.load(path) as found:
        if not found["actions"].size:
            return "the step is not known"
        before: Moment = pickle.loads(found["before"].tobytes())
        with before.again(device) as sim:
            step(sim, found["actions"])
            for side in ("cpu", "gpu"):
                kept = {name: found[f"{side}_{name}"] for name in sim.tensors if f"{side}_{name}" in found}
                same = [sim.tensors[name].copy_to_host().tobytes() == array.tobytes() for name, array in kept.items()]
                if sim.save() == found[side].tobytes() and all(same):
                    return f"the {side.upper()}'s result"
    return "neither the CPU's result nor the GPU's"


def main() -> int:
    path, devices = Path(sys.argv[1]), sys.argv[2:] or ["cpu"]
    with np.load(path) as found:
        print(found["text"])
    for device in devices:
        print(f"played again on {device}: {replay(path, device)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
