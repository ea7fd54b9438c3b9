"""Whether a curriculum learns more from the same steps than levels that are all equally likely.

    python tests/benchmarks/curriculum.py [--million-steps 2] [--seeds 8] [--episodes 100] [--json FILE] [KEY=VALUE...]

Runs of each curriculum, in pairs with the same seed, on the 20 curated levels and a level of each type of the
reference's rooms. The trained policies are then evaluated in all of these levels, each with the same weight whatever
the curriculum, in episodes that no run has seen. Success is what a run counts as such: the goal reached, or without a
goal all agents beyond the last door. Intervals are those of Student's t at 95%, over seeds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import doorstep
from doorstep.evaluation.arenas import find_arenas
from doorstep.evaluation.scores import Score
from doorstep.levels import save_levels
from doorstep.policy import load_policy
from doorstep.training import Trainer, TrainingConfig, preset, save_checkpoint

CURRICULA = ("uniform", "learnability")
EVALUATION_SEED = 1_000_003
# The 97.5% quantile of Student's t, by the number of seeds.
STUDENT_T = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
CHANGES = ("simulator.num_worlds=128", "simulator.num_threads=1", "num_threads=1")


def all_levels() -> dict[str, Any]:
    """The levels by name."""
    return {arena.name: arena.level for kind in ("curated", "room_types") for arena in find_arenas(kind, 2)}


def success(score: Score) -> float:
    """The share of episodes that succeeded."""
    return score.rooms[-1].all.value if score.success is None else score.success.value


def measure(config: TrainingConfig, million_steps: float, episodes: int, folder: Path) -> dict[str, Any]:
    """Trains, and evaluates the result: success by level, and the time that training took."""
    config = config.changed(f"num_updates={round(1e6 * million_steps / config.steps_per_update)}")
    trainer = Trainer(config)
    while trainer.updates < config.num_updates:
        trainer.update()
    path = folder / "checkpoint.safetensors"
    save_checkpoint(path, trainer.checkpoint())
    evaluation = doorstep.evaluate(
        {"trained": load_policy(path)}, levels=all_levels(), episodes=episodes, seed=EVALUATION_SEED, num_threads=1
    )
    return {"seconds": trainer.seconds, "success": {score.level: success(score) for score in evaluation.scores}}


def mean_success(run: dict[str, Any]) -> float:
    """All levels with the same weight."""
    return statistics.fmean(run["success"].values())


def interval(numbers: Sequence[float]) -> str:
    """Mean and 95% interval, in percent."""
    mean = statistics.fmean(numbers)
    half = STUDENT_T[len(numbers)] * statistics.stdev(numbers) / len(numbers) ** 0.5
    return f"{mean:.1%} ({mean - half:.1%} to {mean + half:.1%})"


def report(runs: dict[str, list[dict[str, Any]]]) -> None:
    """A table of levels, and the means over all."""
    print(f"\n| level | {' | '.join(runs)} |\n|---|{'---|' * len(runs)}")
    for level in all_levels():
        shares = (statistics.fmean(run["success"][level] for run in of_one) for of_one in runs.values())
        print(f"| {level} | {' | '.join(f'{share:.0%}' for share in shares)} |")
    base, *others = runs
    means = {name: [mean_success(run) for run in of_one] for name, of_one in runs.items()}
    print("\n" + "\n".join(f"{name}: {interval(one)}" for name, one in means.items()))
    for name in others:
        differences = [other - one for one, other in zip(means[base], means[name], strict=True)]
        print(f"{name} - {base}: {interval(differences)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("changes", nargs="*", metavar="KEY=VALUE", help="of all configs")
    parser.add_argument("--million-steps", type=float, default=2)
    parser.add_argument("--seeds", type=int, default=8, choices=STUDENT_T)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=100, help="of each level in the evaluation")
    parser.add_argument("--curricula", nargs="+", default=CURRICULA)
    parser.add_argument("--json", type=Path, help="also write success by run and level")
    options = parser.parse_args()

    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in options.curricula}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "levels.json")
        save_levels(table, [level.replace(name=name) for name, level in all_levels().items()])
        base = preset("default").changed(*CHANGES, levels=table, reward=None, retries=0)
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for name, of_one in runs.items():
                changes = (f"seed={seed}", f"simulator.seed={seed}", f"curriculum.type={name}", *options.changes)
                config = base.changed(*changes)
                of_one.append(measure(config, options.million_steps, options.episodes, Path(folder)))
                print(f"seed {seed}, {name}: {mean_success(of_one[-1]):.1%}, {of_one[-1]['seconds']:.0f} s", flush=True)
    report(runs)
    if options.json is not None:
        options.json.write_text(json.dumps({"config": base.to_dict(), "runs": runs}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
