"""The declarations of Vulkan in native/src/render/vulkan against Khronos's header.

Everything that vulkan.h declares is compared: the file is read here, and a C++ source is generated that includes both
declarations of each name and asserts that they are the same. Its second half, the functions, is in tables.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.system_packages import vulkan_headers

PROJECT = Path(__file__).parents[2]
DECLARATIONS = PROJECT / "native" / "src" / "render" / "vulkan" / "vulkan.h"
FUNCTIONS = "// ---- Functions"  # begins the second half

COMMENT = re.compile(r"\s*//.*")
TYPE_ALIAS = re.compile(r"using (\w+) = (?:struct (\w+)\*|[\w()*]+(?: \(\*\)\(\))?);")
CONSTANTS = re.compile(r"constexpr \w+ (.*);")
FORWARD = re.compile(r"struct (\w+);")
RECORD = re.compile(r"(?:struct|union) (\w+) \{")
ENUMERATION = re.compile(r"enum (\w+) : int32_t \{(\};)?")
ENUMERATOR = re.compile(r"    (\w+) = -?\w+,")
MEMBER = re.compile(r".*?(\w+)(?:\[\w+\])?(?:\{\}| = (\w+))?")
NO_DECLARATION = re.compile(r"|#pragma once|#include <\w+\.h>|namespace doorstep \{|\}")

# Types are the same if they are equal except for the namespace of Khronos's names.
SAME_TYPES = """
template <class Ours, class Theirs>
struct Counterpart : std::is_same<Ours, Theirs> {};
template <class Ours, class Theirs>
struct Same : Counterpart<Ours, Theirs> {};
template <class Ours, class Theirs>
struct Same<const Ours, const Theirs> : Same<Ours, Theirs> {};
template <class Ours, class Theirs>
struct Same<Ours*, Theirs*> : Same<Ours, Theirs> {};
template <class Ours, class Theirs, size_t Count>
struct Same<Ours[Count], Theirs[Count]> : Same<Ours, Theirs> {};
template <class Ours, class... OurParameters, class Theirs, class... TheirParameters>
    requires(sizeof...(OurParameters) == sizeof...(TheirParameters))
struct Same<Ours(OurParameters...), Theirs(TheirParameters...)>
    : std::bool_constant<Same<Ours, Theirs>::value && (Same<OurParameters, TheirParameters>::value && ...)> {};
"""

SAME_FUNCTIONS = """
#define LOADER(result, name, parameters) \\
    static_assert(Same<decltype(doorstep::LoaderFunctions::name), PFN_##name>::value, #name);
#define INSTANCE(result, name, parameters) \\
    static_assert(Same<decltype(doorstep::InstanceFunctions::name), PFN_##name>::value, #name);
#define DEVICE(result, name, parameters) \\
    static_assert(Same<decltype(doorstep::DeviceFunctions::name), PFN_##name>::value, #name);
LOADER(, vkGetInstanceProcAddr, )
DS_VULKAN_GLOBAL_TABLE(LOADER)
DS_VULKAN_INSTANCE_TABLE(INSTANCE)
DS_VULKAN_DEVICE_TABLE(DEVICE)
DS_VULKAN_SHARING_TABLE(DEVICE)
"""


@dataclass
class Declarations:
    """The types and constants that are declared."""

    aliases: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    enumerations: dict[str, list[str]] = field(default_factory=dict)
    records: dict[str, dict[str, str | None]] = field(default_factory=dict)  # members and their default values


def read_declarations(text: str) -> Declarations:
    """A line that is no declaration of a known form is an error, so that nothing is left out of the comparison."""
    found = Declarations()
    types = text.partition(FUNCTIONS)[0]
    lines = iter(COMMENT.sub("", line).rstrip() for line in types.splitlines())
    for line in lines:
        if match := TYPE_ALIAS.fullmatch(line):
            found.aliases.append(match[1])
            if match[2]:
                found.incomplete.append(match[2])
        elif match := FORWARD.fullmatch(line):
            found.incomplete.append(match[1])
        elif match := CONSTANTS.fullmatch(line):
            found.constants += re.findall(r"(\w+) = ", match[1])
        elif match := ENUMERATION.fullmatch(line):
            found.enumerations[match[1]] = [] if match[2] else [only(ENUMERATOR, row)[1] for row in until_end(lines)]
        elif match := RECORD.fullmatch(line):
            members = (member for row in until_end(lines) for member in row.removesuffix(";").split(", "))
            found.records[match[1]] = {named[1]: named[2] for named in (only(MEMBER, member) for member in members)}
        else:
            only(NO_DECLARATION, line)
    return found


def until_end(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line == "};":
            return
        yield line


def only(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    match = pattern.fullmatch(line)
    assert match, f"the comparison cannot read this declaration: {line}"
    return match


def comparison(found: Declarations) -> str:
    """A C++ source that compiles if Khronos declares the same."""
    types = [*found.incomplete, *found.enumerations, *found.records]
    lines = [
        '#include "vulkan.h"',
        "#include <type_traits>",
        # Some are macros in Khronos's header.
        *(f"constexpr auto our_{name} = doorstep::{name};" for name in found.constants),
        "#include <vulkan/vulkan_core.h>",
        SAME_TYPES,
        *(f"template <> struct Counterpart<doorstep::{name}, ::{name}> : std::true_type {{}};" for name in types),
        *(f'static_assert(Same<doorstep::{name}, ::{name}>::value, "{name}");' for name in found.aliases),
        *(f'static_assert(our_{name} == {name}, "{name}");' for name in found.constants),
    ]
    for name, values in found.enumerations.items():
        lines.append(f'static_assert(sizeof(doorstep::{name}) == sizeof(::{name}), "{name}");')
        for value in values:
            lines.append(f'static_assert(std::is_same_v<decltype({value}), ::{name}>, "{value}");')
            lines.append(f'static_assert(static_cast<long>(doorstep::{value}) == {value}, "{value}");')
    for name, members in found.records.items():
        lines.append(f'static_assert(sizeof(doorstep::{name}) == sizeof(::{name}), "{name}");')
        for member in members:
            ours, theirs, text = f"doorstep::{name}", f"::{name}", f'"{name}.{member}"'
            lines.append(f"static_assert(offsetof({ours}, {member}) == offsetof({theirs}, {member}), {text});")
            lines.append(
                f"static_assert(Same<decltype({ours}::{member}), decltype({theirs}::{member})>::value, {text});"
            )
    return "\n".join([*lines, SAME_FUNCTIONS])


def compile_comparison(declarations: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "vulkan.h").write_text(declarations, encoding="utf-8")
    source = folder / "comparison.cpp"
    source.write_text(comparison(read_declarations(declarations)), encoding="utf-8")
    includes = [f"-I{folder}", f"-isystem{vulkan_headers()}"]
    command = [*compiler(), "-std=c++20", "-c", *includes, str(source), "-o", str(folder / "comparison.o")]
    cache = str(PROJECT / "build" / "zig-cache")
    environment = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache, **os.environ}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def compiler() -> list[str]:
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "c++"]
    found = shutil.which("c++")
    if found is None:
        pytest.skip("could not import 'ziglang', and there is no c++")
    return [found]


def test_the_declarations_are_those_of_khronos(tmp_path: Path) -> None:
    result = compile_comparison(DECLARATIONS.read_text(encoding="utf-8"), tmp_path)
    assert result.returncode == 0, result.stderr


def test_everything_is_read() -> None:
    found = read_declarations(DECLARATIONS.read_text(encoding="utf-8"))
    assert found.records["VkClearDepthStencilValue"] == {"depth": None, "stencil": None}
    assert found.records["VkMemoryType"] == {"propertyFlags": None, "heapIndex": None}
    assert found.enumerations["VkSemaphoreType"] == ["VK_SEMAPHORE_TYPE_TIMELINE"]
    assert "VkBuffer_T" in found.incomplete
    with pytest.raises(AssertionError, match="cannot read this declaration: class VkThing"):
        read_declarations("class VkThing {};\n")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        pytest.param("VK_TIMEOUT = 2", "VK_TIMEOUT = 3", "VK_TIMEOUT", id="value of an enumerator"),
        pytest.param("EXTERNAL = ~1u", "EXTERNAL = ~2u", "VK_QUEUE_FAMILY_EXTERNAL", id="constant"),
        pytest.param(" size{}, alignment{};", " alignment{}, size{};", "VkMemoryRequirements.size", id="order"),
        pytest.param("    int fd{};", "    unsigned fd{};", "VkImportMemoryFdInfoKHR.fd", id="type of a member"),
        pytest.param("DotProduct{}, maintenance4{};", "DotProduct{};", "Vulkan13Features", id="missing member"),
        pytest.param("using VkDeviceSize = uint64_t", "using VkDeviceSize = uint32_t", "VkDeviceSize", id="alias"),
        pytest.param("uint64_t timeout", "uint32_t timeout", "vkWaitSemaphores", id="parameter"),
        pytest.param("X(void, vkCmdDispatch", "X(VkResult, vkCmdDispatch", "vkCmdDispatch", id="result"),
    ],
)
def test_a_wrong_declaration_is_refused(right: str, wrong: str, message: str, tmp_path: Path) -> None:
    declarations = DECLARATIONS.read_text(encoding="utf-8")
    assert declarations.count(right) == 1
    result = compile_comparison(declarations.replace(right, wrong), tmp_path)
    assert result.returncode != 0
    assert message in result.stderr


def test_structs_have_their_own_type_number() -> None:
    """Khronos's registry, which its headers are generated from, names the number of each struct."""
    registry = ET.parse(vulkan_headers().parent / "share" / "vulkan" / "registry" / "vk.xml")
    numbers = {
        record.get("name"): member.get("values")
        for record in registry.iterfind("types/type[@category='struct']")
        for member in record.iterfind("member[@values]")
    }
    found = read_declarations(DECLARATIONS.read_text(encoding="utf-8")).records
    tagged = {name: members["sType"] for name, members in found.items() if "sType" in members}
    assert len(tagged) > 50
    assert tagged == {name: numbers[name] for name in tagged}
