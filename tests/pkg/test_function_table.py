"""The table of functions for other native libraries keeps its order as long as DS_ABI_VERSION is the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import function_table
from header_parser import Function, Header, parse_header

NEW = Function("ds_new", "ds_status", ())


@pytest.fixture
def header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Header:
    """The C API, with its table written to a place of its own."""
    header = parse_header()
    path = tmp_path / "doorstep_api.h"
    monkeypatch.setattr(function_table, "TABLE_PATH", path)
    path.write_text(function_table.function_table(header, "notice"), encoding="utf-8")
    return header


def names_of_table(header: Header) -> list[str]:
    return function_table.row_names(function_table.function_table(header, "notice"))


def test_every_function_of_the_header_is_in_the_table_once(header: Header) -> None:
    assert names_of_table(header) == [function.name for function in header.functions]


def test_a_new_function_comes_last_wherever_it_stands_in_the_header(header: Header) -> None:
    names = [function.name for function in header.functions]
    changed = replace(header, functions=(NEW, *reversed(header.functions)))
    assert names_of_table(changed) == [*names, "ds_new"]


def test_a_function_may_not_go(header: Header) -> None:
    with pytest.raises(ValueError, match="ds_check_version"):
        names_of_table(replace(header, functions=header.functions[1:]))


def test_another_abi_version_begins_anew(header: Header) -> None:
    constants = {**header.constants, "DS_ABI_VERSION": int(header.constants["DS_ABI_VERSION"]) + 1}
    changed = replace(header, constants=constants, functions=(NEW, *header.functions[1:]))
    assert names_of_table(changed) == ["ds_new", *[function.name for function in header.functions[1:]]]
