"""The binary interface of the C API only grows as long as DS_ABI_VERSION is the same: native/abi.json has it, and the
table of functions for other native libraries keeps its order."""

import copy
import json
from dataclasses import replace

import pytest
from tests.refuses import refuses

import abi
import function_table
from header_parser import Function, parse_header

NEW = Function("ds_new", "ds_status", ())


@pytest.fixture(scope="module")
def committed():
    return json.loads(abi.ABI_PATH.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def header():
    return parse_header()


def grown_struct(offset):
    def change(new):
        struct = new["structs"]["ds_health"]
        struct["fields"]["more"] = f"{struct['size'] + offset} int64_t"
        struct["size"] += 8

    return change


GROWTH = [
    lambda new: new["functions"].update(ds_new="ds_status (void)"),
    lambda new: new["structs"].update(ds_new={"size": 4, "fields": {"a": "0 int32_t"}}),
    lambda new: new["enumerations"]["ds_status"].update(DS_STATUS_NEW=99),
    lambda new: new["constants"].update(DS_MAX_NEW=1),
    grown_struct(0),
]
BREAKS = [
    (lambda new: new["functions"].pop("ds_version"), "functions: ds_version is gone"),
    (lambda new: new["callbacks"].update(ds_task="void (void*)"), "callbacks: ds_task is void (void*), and was"),
    (lambda new: new["structs"]["ds_error"]["fields"].update(status="8 int32_t"),
     "ds_error: status is 8 int32_t, and was 4 int32_t"),
    (lambda new: new["structs"]["ds_device"]["fields"].update(more="16 int64_t"),
     "ds_device has no struct_size and must not grow"),
    (grown_struct(-4), "ds_health: more is at "),
    (lambda new: new["enumerations"]["ds_status"].update(DS_STATUS_OK=1), "ds_status: DS_STATUS_OK is 1, and was 0"),
    (lambda new: new["enumerations"].pop("ds_access"), "ds_access: DS_ACCESS_READ is gone"),
]  # fmt: skip


def test_what_is_added_is_no_break_and_what_a_compiled_program_would_find_wrong_is_named(committed, header):
    now = abi.abi_of(header)
    assert now["abi_version"] == committed["abi_version"]
    assert list(abi.breaks(committed, now)) == []
    for change in GROWTH:
        new = copy.deepcopy(committed)
        change(new)
        assert new != committed
        assert list(abi.breaks(committed, new)) == []
    for change, says in BREAKS:
        new = copy.deepcopy(committed)
        change(new)
        assert next(abi.breaks(committed, new)).startswith(says)


def test_the_generator_refuses_a_break_unless_the_version_is_raised(committed, header, tmp_path, monkeypatch):
    path = tmp_path / "abi.json"
    monkeypatch.setattr(abi, "ABI_PATH", path)
    more = {**committed, "functions": {**committed["functions"], "ds_gone": "ds_status (void)"}}
    path.write_text(json.dumps(more), encoding="utf-8")
    refuses(r"ds_gone is gone; raise DS_ABI_VERSION, or leave it as it was", abi.abi_text, header, error=ValueError)
    path.write_text(json.dumps({**more, "abi_version": more["abi_version"] - 1}), encoding="utf-8")
    assert "ds_gone" not in abi.abi_text(header)


def test_the_table_of_functions_keeps_its_order_until_another_version_begins_anew(header, tmp_path, monkeypatch):
    path = tmp_path / "doorstep_api.h"
    monkeypatch.setattr(function_table, "TABLE_PATH", path)
    path.write_text(function_table.function_table(header, "notice"), encoding="utf-8")

    def names_of_table(**changes):
        return function_table.row_names(function_table.function_table(replace(header, **changes), "notice"))

    names = [function.name for function in header.functions]
    assert names_of_table() == names
    assert names_of_table(functions=(NEW, *reversed(header.functions))) == [*names, "ds_new"]
    refuses("ds_check_version", names_of_table, error=ValueError, functions=header.functions[1:])
    constants = {**header.constants, "DS_ABI_VERSION": int(header.constants["DS_ABI_VERSION"]) + 1}
    assert names_of_table(constants=constants, functions=(NEW, *header.functions[1:])) == ["ds_new", *names[1:]]
