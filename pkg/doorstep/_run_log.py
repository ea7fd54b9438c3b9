"""The files of a training run that are read without PyTorch: its config, and its records, a line of JSON each."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from doorstep._files import read_regular

CONFIG = "config.json"
LOG = "log.jsonl"


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The records of a run's `log.jsonl` as dictionaries, in order; lines that are no records, as one that was cut off,
    are left out.

    Raises:
        OSError: the file cannot be read.
    """
    records = []
    for line in read_regular(path).splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            records.append(json.loads(line))
    return [record for record in records if isinstance(record, dict) and isinstance(record.get("update"), int)]
