"""Variables of the environment: what is no number is refused by name, and an empty one counts as unset."""

import importlib.util
import re
from pathlib import Path

import pytest
from tests.refuses import refuses

import doorstep
from doorstep._native.calls import SWITCH, fast_calls

TEXTS = {"NO_COLOR", "TERM"}
WRITTEN = {"GLOO_SOCKET_IFNAME"}


def join():
    from doorstep.training import Ranks

    Ranks.join()


def threads():
    from doorstep.training.distributed import threads_of_rank

    threads_of_rank()


def device():
    import torch

    from doorstep.training.distributed import device_of_rank

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "set_device", lambda index: None)
        device_of_rank("cuda")


# name: what reads it, the other variables that this needs, and the least and the largest value
READERS = {
    SWITCH: (fast_calls.__wrapped__, {}, 0, 1),
    "WORLD_SIZE": (join, {}, 1, 2**31 - 1),
    "RANK": (join, {"WORLD_SIZE": "2"}, 0, 1),
    "MASTER_PORT": (join, {"WORLD_SIZE": "2", "RANK": "1"}, 0, 65535),
    "LOCAL_RANK": (device, {}, 0, 2**31 - 1),
    "LOCAL_WORLD_SIZE": (threads, {}, 1, 2**31 - 1),
}


def test_what_is_no_number_in_range_is_refused_by_name_and_an_empty_one_counts_as_unset():
    for name, (read, others, low, high) in READERS.items():
        if name != SWITCH and not importlib.util.find_spec("torch"):
            continue
        with pytest.MonkeyPatch.context() as patch:
            for other in READERS:
                patch.delenv(other, raising=False)
            for other, value in others.items():
                patch.setenv(other, value)
            for bad in ("x", "1.5", "1e3", "\u0663", "9" * 5000, str(high + 1), str(low - 1)):
                patch.setenv(name, bad)
                says = f"the environment variable {name} is {bad[:60]!r}; it must be an integer, {low} to {high} ("
                refuses(re.escape(says), read, argument=name)
            for empty in ("", "  ") if name != "MASTER_PORT" else ():  # without a port no process is reached
                patch.setenv(name, empty)
                read()


def test_these_are_all_that_the_package_reads():
    found = set()
    for path in Path(doorstep.__file__).parent.rglob("*.py"):
        text = re.sub(r"(?m)^\s*(#|>>>).*", "", path.read_text())
        found |= set(re.findall(r"environment_integer\(\s*\"?(\w+)", text))
        found |= set(re.findall(r"environ(?:\.\w+\(|\[)\s*\"?(\w+)", text)) | set(re.findall(r"getenv\(\"?(\w+)", text))
    assert found - {"name"} == {"SWITCH", *READERS, *TEXTS, *WRITTEN} - {SWITCH}
