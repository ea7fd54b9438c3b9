"""What a training run shows of its records."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, TextIO, final

from doorstep.cli.terminal import Progress, clock

if TYPE_CHECKING:
    from doorstep.training import Trainer
    from doorstep.training.logs import Record

SMOOTHED_EPISODES = 500  # shares and returns are means over at least so many, if there are
SHOWN_LEVELS = 6
DOORS = ("first", "second", "third")
SHOWN_LOSSES = ("policy_loss", "value_loss", "entropy", "approx_kl")


@final
class TrainingScreen:
    """Shows the records of a run in a `Progress`; a context manager. minutes: after which the run ends; None: never."""

    def __init__(self, stream: TextIO, minutes: float | None = None) -> None:
        self._stream = stream
        self._seconds = None if minutes is None else 60 * minutes
        self._recent: deque[Record] = deque()
        self._progress: Progress | None = None

    def begin(self, trainer: Trainer) -> None:
        """Call before the first update, with the run as it is then. The first process of a run shows it."""
        config = trainer.config
        if not trainer.ranks.is_first:
            return
        begun = f"from update {trainer.updates:,}" if trainer.updates else "from the beginning"
        simulator, processes = config.simulator, trainer.ranks.count
        where = trainer.worlds.sim.device if processes == 1 else f"{simulator.device} in {processes:,} processes"
        weights = sum(parameter.numel() for parameter in trainer.network.parameters())
        is_shaped = config.reward is not None
        self._return = "shaped return" if is_shaped else "return"
        note = "; returns are shaped by the config's reward, which evaluations leave out" * is_shaped
        self._stream.write(
            f"training {begun}: {simulator.num_worlds:,} worlds on {where}, "
            f"{weights:,} weights, {config.steps_per_update:,} world-steps an update{note}\n"
        )
        self._stream.flush()
        self._progress = Progress(config.num_updates, self._stream, "update", trainer.updates, self._seconds)

    def show(self, record: Record) -> None:
        """Call after each update."""
        self._remember(record)
        if self._progress is not None:
            self._progress.update(record.update, self._remark(record), self._details(record))

    def __enter__(self) -> TrainingScreen:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress is not None:
            self._progress.__exit__(*exception)

    # ---- Text

    def _remark(self, record: Record) -> str:
        """A record in a log."""
        mean_return, _, by_all = self._smoothed()
        passed = ", ".join(f"{share:.0%}" for share in by_all) or "none ended"
        parts = [
            f"{record.world_steps:,} steps",
            f"{record.world_steps_per_second:,.0f}/s",
            f"{self._return} {mean_return:+.2f}",
        ]
        parts += [f"all past the doors {passed}"] if by_all or record.success is None else []
        parts += [f"levels solved {record.success:.1%}"] if record.success is not None else []
        return "  ".join(parts)

    def _details(self, record: Record) -> list[str]:
        """A record on a terminal."""
        mean_return, one, by_all = self._smoothed()
        reached = [
            "past door  " + "".join(f"{door:>8}" for door in DOORS),
            "  one      " + "".join(f"{share:8.1%}" for share in one),
            "  all      " + "".join(f"{share:8.1%}" for share in by_all),
        ]
        if not one:
            reached = []
        if record.success is not None:
            reached += [f"success    {record.success:.1%}, the mean over all levels", *self._levels()]
        return [
            f"time       {clock(record.seconds)}",
            f"steps      {record.world_steps:,} of a world, {record.world_steps_per_second:,.0f} a second",
            f"{self._return:<10} {mean_return:+.3f}",
            *reached,
            "loss       " + ", ".join(f"{name} {record.losses[name]:.4f}" for name in SHOWN_LOSSES),
        ]

    # ---- Means over episodes

    def _remember(self, record: Record) -> None:
        self._recent.append(record)
        while sum(one.episodes for one in self._recent) - self._recent[0].episodes >= SMOOTHED_EPISODES:
            self._recent.popleft()

    def _smoothed(self) -> tuple[float, list[float], list[float]]:
        """Mean return, and shares that passed each door; NaN and none before the first episode has ended."""
        records = [record for record in self._recent if record.episodes]
        total = sum(record.episodes for record in records)
        if not total:
            return float("nan"), [], []
        mean = sum(record.episodes * (record.mean_return or 0) for record in records) / total
        with_doors = [record for record in records if record.rooms_one]  # others have levels with other rooms
        total = sum(record.episodes for record in with_doors)
        doors = range(len(DOORS) if with_doors else 0)
        one = [sum(record.episodes * record.rooms_one[i] for record in with_doors) / total for i in doors]
        by_all = [sum(record.episodes * record.rooms_all[i] for record in with_doors) / total for i in doors]
        return mean, one, by_all

    def _levels(self) -> list[str]:
        """A line for each level, if they are few: how often it was solved lately."""
        episodes: Counter[str] = Counter()
        successes: Counter[str] = Counter()
        for record in self._recent:
            for name, level in record.levels.items():
                episodes[name] += level.episodes
                successes[name] += level.successes
        names = sorted(episodes) if len(episodes) <= SHOWN_LEVELS else []
        return [f"           {successes[name] / episodes[name]:.1%} {name}" for name in names]
