"""The bill of materials lists the wheel's components."""

import json
import re

import pytest
from tests.wheel_build.conftest import PROJECT

import check_wheel
import sbom

# All except NVIDIA's, which has one text for all its software.
LICENCE_FILES = {
    "Embree": "licenses/Embree.txt", "DirectX Shader Compiler": "licenses/DirectXShaderCompiler.txt",
    sbom.CPP_LIBRARY: check_wheel.CPP_LIBRARY_LICENCE,
}  # fmt: skip
# Words that only these licences contain.
LICENCE_WORDS = {
    "Apache-2.0": "the Apache License, Version 2.0, wh",
    "Apache-2.0 WITH LLVM-exception": "LLVM Exceptions to the Apache 2.0 License",
    "BSD-3-Clause": "Redistribution and use in source and binary forms, with or without",
    "MIT": "shall be included in all copies or substantial portions of the Software.",
    "MIT-Khronos-old": "shall be included in all copies or substantial portions of the Materials.",
    "NCSA": "University of Illinois/NCSA Open Source", "Spencer-94": "Copyright 1992, 1993, 1994 Henry Spencer.",
}  # fmt: skip
VERSIONS = {"Embree": "4.3.2", "DirectX Shader Compiler": "1.8.0.4461", "nvPTXCompiler": "13.4.92", "libc++": "19.1"}


@pytest.fixture(scope="module")
def bill(finished):
    return json.loads(finished.metadata_file(check_wheel.BILL_OF_MATERIALS))


def licences_of(component):
    """SPDX identifiers of a component and its parts."""
    own = set(component["licenses"][0]["expression"].split(" AND "))
    return own.union(*map(licences_of, component.get("components", [])))


def test_it_is_cyclonedx_of_this_version_and_lists_everything_that_was_built_in_once(bill, finished):
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    product = bill["metadata"]["component"]
    assert (product["name"], product["version"]) == ("doorstep", sbom.header_version(PROJECT))
    assert sorted((one["name"], one["version"]) for one in bill["components"]) == sorted(VERSIONS.items())
    assert bill["dependencies"] == [{"ref": "doorstep", "dependsOn": [one["bom-ref"] for one in bill["components"]]}]
    hashes = [component["hashes"][0]["content"] for component in bill["components"] if "hashes" in component]
    grafted = [name for name in finished.files if name.startswith("doorstep.libs/")]
    assert len(grafted) == 2
    for name in grafted:
        assert [digest for digest in hashes if f"-{digest[:8]}." in name], name


def test_licences_are_those_of_the_licence_files_and_all_are_part_of_the_licence_of_the_wheel(bill, finished):
    named = set(finished.message("METADATA")["License-Expression"].split(" AND "))
    assert named == {sbom.PROJECT_LICENCE}.union(*map(licences_of, bill["components"]))
    components = {component["name"]: component for component in bill["components"]}
    for name, file in LICENCE_FILES.items():
        text = " ".join((PROJECT / file).read_text(encoding="utf-8").split())
        assert licences_of(components[name]) == {licence for licence, words in LICENCE_WORDS.items() if words in text}
        assert all(part["name"] in text for part in components[name].get("components", []))


def test_the_runtime_is_that_of_the_compiler():
    (path,) = PROJECT.glob("build/environments/build/lib/*/site-packages/ziglang/lib/libcxx/include/__config")
    match = re.search(r"define _LIBCPP_VERSION (\d\d)(\d\d)\d\d$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert f"{int(match[1])}.{int(match[2])}" == sbom.CPP_LIBRARY_VERSION
