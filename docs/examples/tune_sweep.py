"""Searches for settings of `doorstep train` with Ray Tune. A trial whose worker was lost goes on from its checkpoint,
and a sweep that was interrupted from its folder.

pip install "doorstep[ray]" "doorstep[train]"
"""

import math
import sys
import tempfile
from pathlib import Path

from ray import tune

from doorstep.training import Trainer, load_checkpoint, preset, save_checkpoint

FILE = "checkpoint.safetensors"
CONFIG = preset("default").changed(
    "simulator.num_worlds=64",
    "simulator.num_threads=1",  # Ray sets one core aside for a trial
    "num_updates=20",
    "checkpoint_every=5",
)


def train(settings: dict) -> None:
    """A trial. settings: fields of the config by name, as on the command line."""
    config = CONFIG.changed(*(f"{name}={value}" for name, value in settings.items()))
    trainer = Trainer(config)
    if checkpoint := tune.get_checkpoint():  # the trial has run before
        with checkpoint.as_directory() as folder:
            trainer.restore(load_checkpoint(Path(folder) / FILE))
    while trainer.updates < config.num_updates:
        record = trainer.update()
        mean_return = math.nan if record.mean_return is None else record.mean_return
        result = {"update": record.update, "mean_return": mean_return}
        if record.update % config.checkpoint_every == 0 or record.update == config.num_updates:
            with tempfile.TemporaryDirectory() as folder:
                save_checkpoint(Path(folder) / FILE, trainer.checkpoint())
                tune.report(result, checkpoint=tune.Checkpoint.from_directory(folder))  # copies it
        else:
            tune.report(result)


def sweep(settings: dict, folder: Path) -> tune.ResultGrid:
    """Runs a trial for each combination of settings, or goes on with the sweep of the folder.

    folder: on a cluster, one that all machines see.
    """
    if tune.Tuner.can_restore(str(folder)):
        return tune.Tuner.restore(str(folder), train, resume_errored=True).fit()
    run = tune.RunConfig(
        name=folder.name,
        storage_path=str(folder.parent.resolve()),
        failure_config=tune.FailureConfig(max_failures=3),  # of each trial
    )
    return tune.Tuner(train, param_space=settings, run_config=run).fit()


if __name__ == "__main__":
    settings = {"ppo.learning_rate": tune.grid_search([5e-4, 2e-3])}
    results = sweep(settings, Path(sys.argv[1] if len(sys.argv) > 1 else "sweep").resolve())
    best = results.get_best_result("mean_return", "max")
    print(f"{best.config}: mean return {best.metrics['mean_return']:.3f}, {best.checkpoint.path}/{FILE}")
