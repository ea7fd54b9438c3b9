"""The binary interface of the C API only grows as long as DS_ABI_VERSION is the same; native/abi.json has it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import abi
from header_parser import Header, parse_header

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(abi.ABI_PATH.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def header() -> Header:
    return parse_header()


def grown_struct(offset: int) -> Change:
    def change(new: dict[str, Any]) -> None:
        struct = new["structs"]["ds_health"]
        struct["fields"]["more"] = f"{struct['size'] + offset} int64_t"
        struct["size"] += 8

    return change


def test_the_headers_have_everything_of_the_committed_interface(committed: dict[str, Any], header: Header) -> None:
    now = abi.abi_of(header)
    assert now["abi_version"] == committed["abi_version"]
    assert list(abi.breaks(committed, now)) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda new: new["functions"].update(ds_new="ds_status (void)"),
        lambda new: new["structs"].update(ds_new={"size": 4, "fields": {"a": "0 int32_t"}}),
        lambda new: new["enumerations"]["ds_status"].update(DS_STATUS_NEW=99),
        lambda new: new["enumerations"].update(ds_new={"DS_NEW_A": 0}),
        lambda new: new["constants"].update(DS_MAX_NEW=1),
        grown_struct(0),
    ],
)
def test_what_is_added_is_no_break(committed: dict[str, Any], change: Change) -> None:
    new = copy.deepcopy(committed)
    change(new)
    assert new != committed
    assert list(abi.breaks(committed, new)) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda new: new["functions"].pop("ds_version"), "functions: ds_version is gone"),
        (lambda new: new["functions"].update(ds_version="char* (void)"), "functions: ds_version is char* (void), and"),
        (lambda new: new["callbacks"].update(ds_task="void (void*)"), "callbacks: ds_task is void (void*), and was"),
        (lambda new: new["structs"].pop("ds_error"), "ds_error is gone"),
        (
            lambda new: new["structs"]["ds_error"]["fields"].update(status="8 int32_t"),
            "ds_error: status is 8 int32_t, and was 4 int32_t",
        ),
        (lambda new: new["structs"]["ds_error"]["fields"].pop("hint"), "ds_error: hint is gone"),
        (
            lambda new: new["structs"]["ds_device"]["fields"].update(more="16 int64_t"),
            "ds_device has no struct_size and must not grow",
        ),
        (grown_struct(-4), "ds_health: more is at "),
        (
            lambda new: new["enumerations"]["ds_status"].update(DS_STATUS_OK=1),
            "ds_status: DS_STATUS_OK is 1, and was 0",
        ),
        (lambda new: new["enumerations"].pop("ds_access"), "ds_access: DS_ACCESS_READ is gone"),
        (lambda new: new["constants"].pop("DS_MAX_SEED"), "constants: DS_MAX_SEED is gone"),
    ],
)
def test_what_a_compiled_program_would_find_wrong_is_named(
    committed: dict[str, Any], change: Change, says: str
) -> None:
    new = copy.deepcopy(committed)
    change(new)
    assert next(abi.breaks(committed, new)).startswith(says)


def test_the_generator_refuses_a_break_unless_the_version_is_raised(
    committed: dict[str, Any], header: Header, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "abi.json"
    monkeypatch.setattr(abi, "ABI_PATH", path)
    more = {**committed, "functions": {**committed["functions"], "ds_gone": "ds_status (void)"}}
    path.write_text(json.dumps(more), encoding="utf-8")
    with pytest.raises(ValueError, match=r"ds_gone is gone; raise DS_ABI_VERSION, or leave it as it was"):
        abi.abi_text(header)
    path.write_text(json.dumps({**more, "abi_version": more["abi_version"] - 1}), encoding="utf-8")
    assert "ds_gone" not in abi.abi_text(header)
