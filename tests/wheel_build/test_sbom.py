"""The bill of materials lists the wheel's components."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from tests.conftest import RunPython

import check_wheel
import sbom

# All except NVIDIA's, which has one text for all its software.
LICENCE_FILES = {
    "Embree": "licenses/Embree.txt",
    "DirectX Shader Compiler": "licenses/DirectXShaderCompiler.txt",
    sbom.CPP_LIBRARY: check_wheel.CPP_LIBRARY_LICENCE,
}
# Words that only these licences contain.
LICENCE_WORDS = {
    "Apache-2.0": "the Apache License, Version 2.0, wh",
    "Apache-2.0 WITH LLVM-exception": "LLVM Exceptions to the Apache 2.0 License",
    "BSD-3-Clause": "Redistribution and use in source and binary forms, with or without",
    "MIT": "shall be included in all copies or substantial portions of the Software.",
    "MIT-Khronos-old": "shall be included in all copies or substantial portions of the Materials.",
    "NCSA": "University of Illinois/NCSA Open Source License",
    "Spencer-94": "Copyright 1992, 1993, 1994 Henry Spencer.",
}
LIBRARY_HEADER = "ziglang/lib/libcxx/include/__config"


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
    assert components == {
        "Embree": "4.3.2",
        "DirectX Shader Compiler": "1.8.0.4461",
        "nvPTXCompiler": "13.4.92",
        "libc++": "19.1",
    }
    assert len(bill["components"]) == len(components)
    assert bill["dependencies"] == [{"ref": "doorstep", "dependsOn": [one["bom-ref"] for one in bill["components"]]}]


def test_the_hashes_begin_as_in_the_names_of_grafted_libraries(
    bill: dict[str, Any], finished_files: dict[str, bytes]
) -> None:
    hashes = [component["hashes"][0]["content"] for component in bill["components"] if "hashes" in component]
    grafted = [name for name in finished_files if name.startswith("doorstep.libs/")]
    assert len(grafted) == 2
    for name in grafted:
        assert [digest for digest in hashes if f"-{digest[:8]}." in name], name


def test_every_licence_is_part_of_the_licence_of_the_wheel(
    bill: dict[str, Any], finished_files: dict[str, bytes]
) -> None:
    (metadata,) = (content.decode() for name, content in finished_files.items() if name.endswith("/METADATA"))
    (expression,) = (line for line in metadata.splitlines() if line.startswith("License-Expression: "))
    named = set(expression.removeprefix("License-Expression: ").split(" AND "))
    assert named == {sbom.PROJECT_LICENCE}.union(*(licences_of(component) for component in bill["components"]))


@pytest.mark.parametrize("name", LICENCE_FILES)
def test_the_licences_of_a_component_are_those_of_its_licence_file(bill: dict[str, Any], name: str) -> None:
    (component,) = (component for component in bill["components"] if component["name"] == name)
    text = " ".join((check_wheel.PROJECT / LICENCE_FILES[name]).read_text(encoding="utf-8").split())
    shown = {licence for licence, words in LICENCE_WORDS.items() if words in text}
    assert licences_of(component) == shown
    for part in component.get("components", []):
        assert part["name"] in text


def test_the_runtime_is_that_of_the_compiler() -> None:
    (header,) = (check_wheel.PROJECT / "build/environments/build").glob(f"lib/*/site-packages/{LIBRARY_HEADER}")
    match = re.search(r"define _LIBCPP_VERSION (\d\d)(\d\d)\d\d$", header.read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None
    assert f"{int(match[1])}.{int(match[2])}" == sbom.CPP_LIBRARY_VERSION


def test_it_is_the_same_in_another_process(bill: dict[str, Any], run_new_python: RunPython) -> None:
    code = f"import sys; sys.path.insert(0, {str(check_wheel.PROJECT / 'wheel_build')!r}); import json, pathlib, sbom\n"
    code += f"print(json.dumps(sbom.bill_of_materials(pathlib.Path({str(check_wheel.PROJECT)!r}))))"
    printed = run_new_python(code, **{**os.environ, "PYTHONHASHSEED": "7"})
    assert list(json.loads(printed).items()) == list(bill.items())


def licences_of(component: dict[str, Any]) -> set[str]:
    """SPDX identifiers of a component and its parts."""
    own = set(component["licenses"][0]["expression"].split(" AND "))
    return own.union(*map(licences_of, component.get("components", [])))
