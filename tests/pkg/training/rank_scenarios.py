"""What the processes of `test_distributed.py` do: python -m tests.pkg.training.rank_scenarios NAME FOLDER.

Each process prints a line of JSON with what it found.
"""

import contextlib
import errno
import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
from tests.pkg.training.runs import WITH_MEMORY, small
from tests.refuses import raising

from doorstep.training import Ranks, Trainer, distributed, resume, save_checkpoint, train
from doorstep.training.run import CHECKPOINT

KINDS = {
    "mlp": ("ppo.num_epochs=2", "critic_observations=physics", "simulator.observations=lidar:2,self_observations"),
    "lstm": (*WITH_MEMORY, "experience.time_limit=bootstrap", "experience.normalize_observations=false"),
    "native": (*WITH_MEMORY, "experience.inference=native", "simulator.world_offset=5"),
}
UPDATES = 5


def config_of(kind):
    return small("simulator.num_worlds=8", "simulator.num_threads=none", *KINDS[kind])


def learn(config, ranks):
    """A run of some updates, and what it logs."""
    trainer = Trainer(config, ranks)
    return trainer, [trainer.update().to_dict() for _ in range(UPDATES)]


# ---- Scenarios


def curves(folder):
    """Runs of every kind."""
    ranks = Ranks.join()
    found = {}
    for kind in KINDS:
        trainer, records = learn(config_of(kind), ranks)
        checkpoint = trainer.checkpoint()
        if ranks.is_first:
            save_checkpoint(folder / f"{kind}.safetensors", checkpoint)
        sim = trainer.worlds.sim
        found[kind] = {"records": records, "worlds": sim.num_worlds, "offset": sim.world_offset}
    distributed.disconnect()
    end = time.monotonic() + 20
    while any("gloo" in name for name in thread_names()) and time.monotonic() < end:
        time.sleep(0.01)  # threads that were joined are listed for a moment
    return {**found, "threads": [*thread_names()]}


def thread_names():
    for path in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            yield path.read_text().strip()


def interruptions(folder):
    """A run that is stopped by its last process alone, and resumed; the same run without interruption."""
    ranks = Ranks.join()
    config = small("num_updates=6", *WITH_MEMORY)
    train(folder / "whole", config=config)
    updates = iter(range(1, 7))
    last = ranks.rank == ranks.count - 1
    stopped = train(folder / "parts", config=config, should_stop=lambda: next(updates) == 3 and last)
    if ranks.is_first:
        (folder / "third.safetensors").write_bytes((folder / "parts" / CHECKPOINT).read_bytes())
    begun = []
    resumed = resume(folder / "parts", on_begin=begun.append)
    assert begun == [resumed]  # on every rank
    return [stopped.updates, resumed.updates]


def failures(folder):
    """Runs that fail on one rank, or on all."""
    ranks = Ranks.join()

    def poison(trainer):
        judge = trainer._rollout.judge

        def judge_badly(*arguments, **options):
            judge(*arguments, **options)
            trainer._rollout.advantages[0, 0] *= float("nan") if ranks.rank == 1 else 1

        trainer._rollout.judge = judge_badly

    def fill_disk(record):
        if record.update == 3:
            os.fsync = raising(OSError, errno.ENOSPC, os.strerror(errno.ENOSPC), "checkpoint")

    fail = raising(LookupError, "no such thing")

    def end_on(run):
        try:
            run()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    return {
        "indivisible": end_on(lambda: Trainer(small("simulator.num_worlds=7"), ranks)),
        "device": end_on(lambda: Trainer(small("simulator.device=cuda:1"), ranks)),
        "callback": end_on(lambda: train(folder / "callback", config=small(), on_update=fail)),
        "nan": end_on(lambda: train(folder / "poisoned", config=small(), on_begin=poison)),
        "begun": end_on(lambda: train(folder / "begun", config=small("num_updates=1"))),
        "again": end_on(lambda: train(folder / "begun", config=small("num_updates=1"))),
        "rules": end_on(lambda: resume(folder / "begun", num_updates=2, episode_length=30)),
        "full": end_on(lambda: train(folder / "full", config=small("checkpoint_every=2"), on_update=fill_disk)),
    }


def loss(folder):
    """The last rank is killed, or stopped, in the midst of a run."""
    distributed.TIMEOUT = timedelta(seconds=10)
    ranks = Ranks.join()
    number = signal.SIGKILL if folder.name == "killed" else signal.SIGSTOP

    def should_stop():
        if ranks.rank == 1:
            os.kill(os.getpid(), number)
        return False

    try:
        train(folder / "run", config=small("num_updates=1000"), should_stop=should_stop)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def restarted(folder):
    """The last rank is killed in its first life."""
    ranks = Ranks.join()
    steps = 0

    def should_stop():
        nonlocal steps
        steps += 1
        if ranks.rank == 1 and steps == 4 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    config = small("num_updates=6", "checkpoint_every=3")
    train(folder / "run", config=config, should_stop=should_stop, auto_resume=True)


SCENARIOS = {scenario.__name__: scenario for scenario in (curves, interruptions, failures, loss, restarted)}

if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(SCENARIOS[sys.argv[1]](Path(sys.argv[2]))))
