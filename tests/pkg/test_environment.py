"""Variables of the environment: what is no number is refused by name, and an empty one counts as unset."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import doorstep
from doorstep._native.calls import SWITCH, fast_calls

PACKAGE = Path(doorstep.__file__).parent
TEXTS = {"NO_COLOR", "TERM"}
WRITTEN = {"GLOO_SOCKET_IFNAME"}


def join() -> None:
    from doorstep.training import Ranks

    Ranks.join()


def threads() -> None:
    from doorstep.training.distributed import threads_of_rank

    threads_of_rank()


def device() -> None:
    import torch

    from doorstep.training.distributed import device_of_rank

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "set_device", lambda index: None)
        device_of_rank("cuda")


# name: what reads it, the other variables that this needs, and the least and the largest value
READERS: dict[str, tuple[Callable[[], object], dict[str, str], int, int]] = {
    SWITCH: (fast_calls.__wrapped__, {}, 0, 1),
    "WORLD_SIZE": (join, {}, 1, 2**31 - 1),
    "RANK": (join, {"WORLD_SIZE": "2"}, 0, 1),
    "MASTER_PORT": (join, {"WORLD_SIZE": "2", "RANK": "1"}, 0, 65535),
    "LOCAL_RANK": (device, {}, 0, 2**31 - 1),
    "LOCAL_WORLD_SIZE": (threads, {}, 1, 2**31 - 1),
}


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in READERS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_number_in_range_is_refused_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name != SWITCH:
        pytest.importorskip("torch")
    read, others, low, high = READERS[name]
    for other, value in others.items():
        monkeypatch.setenv(other, value)
    for bad in ("x", "1.5", "-1", "0x1", "1e3", "\u0663", "9" * 5000, str(high + 1), *([str(low - 1)] if low else [])):
        monkeypatch.setenv(name, bad)
        with pytest.raises(doorstep.ArgumentError) as caught:
            read()
        begin = f"the environment variable {name} is {bad[:60]!r}; it must be an integer, {low} to {high} ("
        assert str(caught.value).startswith(begin)
        assert caught.value.argument == name


@pytest.mark.parametrize("name", sorted(READERS.keys() - {"MASTER_PORT"}))  # without a port no process is reached
def test_an_empty_one_counts_as_unset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name != SWITCH:
        pytest.importorskip("torch")
    read, others, _, _ = READERS[name]
    for other, value in others.items():
        monkeypatch.setenv(other, value)
    for empty in ("", "  "):
        monkeypatch.setenv(name, empty)
        read()


def test_these_are_all_that_the_package_reads() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = re.sub(r"(?m)^\s*(#|>>>).*", "", path.read_text())
        found |= set(re.findall(r"environment_integer\(\s*\"?(\w+)", text))
        found |= set(re.findall(r"environ(?:\.\w+\(|\[)\s*\"?(\w+)", text)) | set(re.findall(r"getenv\(\"?(\w+)", text))
    assert found - {"name"} == {"SWITCH", *READERS, *TEXTS, *WRITTEN} - {SWITCH}
