"""Folders of training runs: a line with the config, and the log, which is drawn and gone on from. Needs PyTorch and
matplotlib."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.mutations import change_bytes, change_json
from tests.pkg.plots.run_folders import level_record_of, record_of, write_run

from doorstep._run_log import CONFIG, LOG
from doorstep.plots import plot_runs
from doorstep.plots.runs import grouped, read_run
from doorstep.training.logs import JsonLines

DRAWN = 64  # one of so many inputs: a picture takes a thousand times as long as reading


class RunLogs:
    def __init__(self) -> None:
        self._folder = TemporaryDirectory()
        self._path = Path(self._folder.name)

    def inputs(self) -> Sequence[bytes]:
        levels = {"one": (4, 2), "two": (0, 0)}
        runs = (
            [record_of(1, returns=None), record_of(2), record_of(3, returns=-1.5)],
            [level_record_of(update, 0.25 * update, levels) for update in range(1, 4)],
        )
        folders = [write_run(self._path / str(number), records) for number, records in enumerate(runs)]
        plot_runs(folders, self._path / "curves.svg")  # opens the files of fonts, which stay open
        return [(folder / CONFIG).read_bytes() + b"\n" + (folder / LOG).read_bytes() for folder in folders]

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        lines = data.split(b"\n")
        if chance.random() < 0.1:
            return change_bytes(data, chance, others)
        at = chance.randrange(len(lines))
        how = chance.random()
        if how < 0.1:
            del lines[at]
        elif how < 0.2:
            lines.insert(chance.randrange(len(lines) + 1), lines[at])
        else:
            lines[at] = change_json(lines[at], chance, lines).replace(b"\n", b" ")
        return b"\n".join(lines)

    def run(self, data: bytes) -> str:
        config, _, log = data.partition(b"\n")
        (self._path / CONFIG).write_bytes(config)
        (self._path / LOG).write_bytes(log)
        run = read_run(self._path)
        assert grouped([run])
        is_drawn = zlib.crc32(data) % DRAWN == 0
        if is_drawn:
            plot_runs([self._path], self._path / "curves.svg")
        JsonLines(self._path / LOG, resumed_at=2).close()
        return f"{'drawn' if is_drawn else 'read'}: {len(run.updates)} updates, {len(run.levels)} levels"

    def close(self) -> None:
        self._folder.cleanup()
