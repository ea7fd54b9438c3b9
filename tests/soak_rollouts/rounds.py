"""One engine of the soak: made, used by many, disturbed, ended, and its balance drawn."""

from __future__ import annotations

import collections
import gc
import random
import threading
import time
import warnings
import weakref

from tests.soak_rollouts.ledger import Ledger, References
from tests.soak_rollouts.users import Users, fork_and_look, kill_replica

from doorstep import RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.rollouts import ControllerConfig, SchedulerConfig

SCHEDULERS = [
    *map(SchedulerConfig.of, ("dynamic_chunk", "priority", "earliest_deadline", "least_remaining_steps")),
    SchedulerConfig.of("fixed_chunk", max_chunk=3),
    SchedulerConfig.of("fair_share", max_chunk=8),
]
ENDS = ("drained", "closed", "closed by many", "dropped", "all replicas die")


class Round:
    """What it does follows from its number; when exactly, from the machine."""

    def __init__(self, number: int, references: References, *, most_seconds: float, forks: bool) -> None:
        draw = random.Random(number)
        self._draw, self._forks = draw, forks
        levels = draw.random() < 0.3
        self.config = RolloutConfig(
            SimulatorConfig(
                draw.choice((1, 16, 64, 256)), num_threads=draw.choice((1, 2)), max_levels=int(levels),
                action_check="raise", strict=draw.random() < 0.2,
            ),
            devices=("cpu",) * draw.randrange(1, 4),
            scheduler=draw.choice(SCHEDULERS),
            controller=ControllerConfig.of(draw.choice(("pull", "round_robin"))),
            queue_capacity=draw.choice((2, 50, 1000)),
            output_capacity=draw.choice((3, 1000)),
            output_bytes=draw.choice((10_000, 10_000_000)),
        )  # fmt: skip
        self.end = ENDS[number % len(ENDS)]
        self.seconds = draw.uniform(0.1, most_seconds)
        self.ledger = Ledger(references, plays_levels=levels)
        self.replicas_die = self.end == "all replicas die" or draw.random() < 0.3
        engine = RolloutEngine(self.config, on_error=draw.choice(("raise", "return")))
        self._users = Users(engine, self.ledger, number, levels=levels)
        self._kept = [engine]

    def __str__(self) -> str:
        config, rules = self.config, self.config.simulator
        replicas = f"{len(config.replica_devices)} replicas of {rules.num_worlds} worlds"
        return f"{self.end}, {replicas}, {config.scheduler}, {config.controller}"

    @property
    def _engine(self) -> RolloutEngine:
        return self._kept[0]

    def run(self) -> list[str]:
        """What went wrong."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # replicas that die, and forks with threads, warn
            self._users.start()
            self._disturb()
            {
                "drained": self._drain,
                "closed": self._close,
                "closed by many": self._close_by_many,
                "dropped": self._drop,
                "all replicas die": self._let_die,
            }[self.end]()
        return self.ledger.imbalance_of_futures() if self.end == "dropped" else self._balance()

    def _balance(self) -> list[str]:
        engine = self._engine
        found = self.ledger.imbalance()
        if engine.outstanding:
            found.append(f"{engine.outstanding} requests are outstanding")
        return found + differences_of_counts(engine, self.ledger)

    # ---- Disturbances

    def _disturb(self) -> None:
        engine, count = self._engine, len(self.config.replica_devices)
        time.sleep(self.seconds / 2)
        if self.replicas_die and count > 1:
            kill_replica(engine, self._draw.randrange(count))
        if self._forks and self._draw.random() < 0.2 and (trouble := fork_and_look(engine)):
            self.ledger.trouble.append(trouble)
        time.sleep(self.seconds / 2)

    # ---- Ends

    def _drain(self) -> None:
        self._users.stopping.set()
        self._users.join()
        self._close()

    def _close(self) -> None:
        self._engine.close()
        self._users.stopping.set()
        self._users.join()

    def _close_by_many(self) -> None:
        closers = [threading.Thread(target=self._engine.close) for _ in range(4)]
        for thread in closers:
            thread.start()
        self._close()
        for thread in closers:
            thread.join()

    def _drop(self) -> None:
        """Users stop with requests unanswered, and nobody refers to the engine any more."""
        self._users.stopping.set()
        self._users.join(all_is_read=False)
        engine = weakref.ref(self._engine)
        self._kept.clear()
        del self._users.engine
        end = time.monotonic() + 60
        while engine() is not None and time.monotonic() < end:
            gc.collect()
        if engine() is not None:
            self.ledger.trouble.append("the engine that nobody refers to was not collected")
        self.ledger.await_futures()

    def _let_die(self) -> None:
        for number in range(len(self.config.replica_devices)):
            kill_replica(self._engine, number)
        self._users.stopping.set()
        self._users.join()
        self._close()


def differences_of_counts(engine: RolloutEngine, ledger: Ledger) -> list[str]:
    """What the engine has counted, compared with what its users have. Counters of the engine belong here."""
    metrics = engine.metrics
    assert metrics is not None
    played = collections.Counter(ledger.reasons)
    answers = sum(played.values()) - played["refused"]
    found = []
    begun = metrics.total("episodes_begun").value
    if begun < played["goal"] + played["time"]:
        found.append(f"{begun} episodes were begun, and {played} ended")
    if answers:
        submitted, answered = metrics.total("requests_submitted").count, metrics.total("requests_answered").count
        # users of futures also count those that were cancelled before they were submitted
        if submitted != answered or not ledger.num_accepted <= answered <= answers:
            told = f"{ledger.num_accepted} ids and {answers} answers"
            found.append(f"{submitted} requests were submitted, {answered} answered; users got {told}")
    return found
