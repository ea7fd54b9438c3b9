"""The bill of materials names what is in the wheel."""

from __future__ import annotations

import json
from typing import Any

import pytest

import check_wheel
import sbom


@pytest.fixture(scope="module")
def bill(finished_files: dict[str, bytes]) -> dict[str, Any]:
    (name,) = (name for name in finished_files if "/sboms/" in name)
    assert name.endswith(f".dist-info/{check_wheel.BILL_OF_MATERIALS}")
    parsed: dict[str, Any] = json.loads(finished_files[name])
    return parsed


def test_it_is_cyclonedx_of_this_version(bill: dict[str, Any]) -> None:
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    product = bill["metadata"]["component"]
    assert (product["name"], product["version"]) == ("doorstep", sbom.header_version(check_wheel.PROJECT))


def test_everything_that_was_built_in_is_listed_once(bill: dict[str, Any]) -> None:
    components = {component["name"]: component["version"] for component in bill["components"]}
    assert components == {"Embree": "4.3.2", "DirectX Shader Compiler": "1.8.0.4461", "nvPTXCompiler": "13.4.92"}
    assert len(bill["components"]) == len(components)
    assert bill["dependencies"] == [{"ref": "doorstep", "dependsOn": [one["bom-ref"] for one in bill["components"]]}]


def test_the_hashes_are_those_that_the_names_of_grafted_libraries_begin(
    bill: dict[str, Any], finished_files: dict[str, bytes]
) -> None:
    hashes = [component["hashes"][0]["content"] for component in bill["components"]]
    grafted = [name for name in finished_files if name.startswith("doorstep.libs/")]
    assert len(grafted) == 2
    for name in grafted:
        assert [digest for digest in hashes if f"-{digest[:8]}." in name], name


def test_every_licence_is_part_of_the_licence_of_the_wheel(bill: dict[str, Any]) -> None:
    licences = {component["licenses"][0]["expression"] for component in bill["components"]}
    assert licences == set(check_wheel.LICENCE_EXPRESSION.split(" AND "))


def test_it_is_the_same_every_time() -> None:
    assert sbom.bill_of_materials(check_wheel.PROJECT) == sbom.bill_of_materials(check_wheel.PROJECT)
