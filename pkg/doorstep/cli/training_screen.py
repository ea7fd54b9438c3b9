"""What a training run shows: one screen that is redrawn in place on a terminal, lines in a log."""

from __future__ import annotations

import shutil
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, TextIO, final

if TYPE_CHECKING:
    from doorstep.training import Trainer
    from doorstep.training.logs import Record

REDRAW_SECONDS, LOG_SECONDS = 0.2, 10.0
SMOOTHED_EPISODES = 500  # shares and returns are means over at least so many, if there are
SHOWN_LEVELS = 6
DOORS = ("first", "second", "third")
SHOWN_LOSSES = ("policy_loss", "value_loss", "entropy", "approx_kl")


@final
class TrainingScreen:
    """Shows the records of a run; a context manager."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._on_terminal = stream.isatty()
        self._recent: deque[Record] = deque()
        self._shown_at = 0.0
        self._height = 0  # lines of the screen that are drawn
        self._total = 0
        self._first: tuple[int, float] = (0, 0.0)

    def begin(self, trainer: Trainer) -> None:
        """Call before the first update, with the run as it is then. The first process of a run shows it."""
        config = trainer.config
        if not trainer.ranks.is_first:
            return
        self._total = config.num_updates
        self._first = (trainer.updates, trainer.seconds)
        begun = f"from update {trainer.updates:,}" if trainer.updates else "from the beginning"
        simulator, processes = config.simulator, trainer.ranks.count
        where = trainer.worlds.sim.device if processes == 1 else f"{simulator.device} in {processes:,} processes"
        weights = sum(parameter.numel() for parameter in trainer.network.parameters())
        self._write(
            f"training {begun}: {simulator.num_worlds:,} worlds on {where}, "
            f"{weights:,} weights, {config.steps_per_update:,} world-steps an update\n"
        )

    def show(self, record: Record) -> None:
        """Call after each update."""
        self._remember(record)
        now = time.monotonic()
        is_last = record.update == self._total
        if not is_last and now - self._shown_at < (REDRAW_SECONDS if self._on_terminal else LOG_SECONDS):
            return
        self._shown_at = now
        if self._on_terminal:
            self._redraw(self._screen(record))
        else:
            self._write("  ".join(self._line(record)) + "\n")

    def __enter__(self) -> TrainingScreen:
        return self

    def __exit__(self, *_: object) -> None:
        """The screen stays where it is, as the last state of the run."""

    # ---- Text

    def _line(self, record: Record) -> list[str]:
        """A record in a log."""
        mean_return, _, by_all = self._smoothed()
        passed = ", ".join(f"{share:.0%}" for share in by_all) or "none ended"
        reached = [f"all past the doors {passed}"] if by_all or record.success is None else []
        if record.success is not None:
            reached.append(f"levels solved {record.success:.1%}")
        return [
            f"update {record.update:,} of {self._total:,}",
            f"{record.world_steps:,} steps",
            f"{record.world_steps_per_second:,.0f}/s",
            f"return {mean_return:+.2f}",
            *reached,
            f"{self._time_left(record)} left",
        ]

    def _screen(self, record: Record) -> list[str]:
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
        width = shutil.get_terminal_size().columns - 1
        lines = [
            f"update     {record.update:,} of {self._total:,}   {self._bar(record)}",
            f"time       {clock(record.seconds)}, {self._time_left(record)} left",
            f"steps      {record.world_steps:,} of a world, {record.world_steps_per_second:,.0f} a second",
            f"return     {mean_return:+.3f}",
            *reached,
            "loss       " + ", ".join(f"{name} {record.losses[name]:.4f}" for name in SHOWN_LOSSES),
        ]
        return [line[:width] for line in lines]

    def _bar(self, record: Record) -> str:
        filled = 24 * record.update // self._total
        return f"[{'#' * filled}{'.' * (24 - filled)}]"

    def _time_left(self, record: Record) -> str:
        updates, seconds = self._first
        each = (record.seconds - seconds) / (record.update - updates)
        return clock(each * (self._total - record.update))

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

    # ---- Stream

    def _redraw(self, lines: list[str]) -> None:
        up = f"\x1b[{self._height}A" if self._height else ""
        self._height = len(lines)
        self._write(up + "".join(f"\r\x1b[K{line}\n" for line in lines))

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def clock(seconds: float) -> str:
    """Hours, minutes and seconds: "1:02:03", "2:03"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
