"""The file of a training run's records, a line of JSON for each update; reading it needs no PyTorch."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from doorstep._files import checked_path, open_regular


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The records of a run's `log.jsonl` as dictionaries, in order; a line that was cut off is left out.

    Raises:
        OSError: the file cannot be read.
    """
    records = []
    with open(open_regular(checked_path(path)), "rb") as file:
        lines = file.read().splitlines()
    for line in lines:
        with contextlib.suppress(ValueError):
            records.append(json.loads(line))
    return [record for record in records if isinstance(record, dict) and "update" in record]
