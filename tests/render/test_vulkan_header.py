"""The declarations of Vulkan in native/src/render/vulkan against Khronos's header.

Everything that vulkan.h declares is compared: the file is read here, and a C++ source is generated that includes both
declarations of each name and asserts that they are the same. Its second half, the functions, is in tables.
"""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
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
#define SAME(of, name) static_assert(Same<decltype(doorstep::of##Functions::name), PFN_##name>::value, #name);
#define LOADER(result, name, parameters) SAME(Loader, name)
#define INSTANCE(result, name, parameters) SAME(Instance, name)
#define DEVICE(result, name, parameters) SAME(Device, name)
LOADER(, vkGetInstanceProcAddr, )
DS_VULKAN_GLOBAL_TABLE(LOADER)
DS_VULKAN_INSTANCE_TABLE(INSTANCE)
DS_VULKAN_DEVICE_TABLE(DEVICE)
DS_VULKAN_SHARING_TABLE(DEVICE)
"""


class Declarations:
    """The types and constants that a text declares. A line that is no declaration of a known form is an error, so that
    nothing is left out of the comparison."""

    def __init__(self, text):
        self.aliases, self.incomplete, self.constants = [], [], []
        self.enumerations, self.records = {}, {}  # of records members and their default values
        lines = iter(COMMENT.sub("", line).rstrip() for line in text.partition(FUNCTIONS)[0].splitlines())
        for line in lines:
            if match := TYPE_ALIAS.fullmatch(line):
                self.aliases.append(match[1])
                self.incomplete += [match[2]] if match[2] else []
            elif match := FORWARD.fullmatch(line):
                self.incomplete.append(match[1])
            elif match := CONSTANTS.fullmatch(line):
                self.constants += re.findall(r"(\w+) = ", match[1])
            elif match := ENUMERATION.fullmatch(line):
                self.enumerations[match[1]] = [] if match[2] else [only(ENUMERATOR, row)[1] for row in until_end(lines)]
            elif match := RECORD.fullmatch(line):
                members = (member for row in until_end(lines) for member in row.removesuffix(";").split(", "))
                self.records[match[1]] = {named[1]: named[2] for named in (only(MEMBER, member) for member in members)}
            else:
                only(NO_DECLARATION, line)


def until_end(lines):
    return iter(lambda: next(lines, "};"), "};")


def only(pattern, line):
    match = pattern.fullmatch(line)
    assert match, f"the comparison cannot read this declaration: {line}"
    return match


def comparison(found):
    """A C++ source that compiles if Khronos declares the same."""
    types = [*found.incomplete, *found.enumerations, *found.records]
    lines = [
        '#include "vulkan.h"\n#include <type_traits>',
        # Some are macros in Khronos's header.
        *(f"constexpr auto our_{name} = doorstep::{name};" for name in found.constants),
        f"#include <vulkan/vulkan_core.h>\n{SAME_TYPES}",
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
            ours, where = f"doorstep::{name}", f"offsetof(::{name}, {member})"
            same = f"Same<decltype({ours}::{member}), decltype(::{name}::{member})>::value"
            lines.append(f'static_assert({same} && offsetof({ours}, {member}) == {where}, "{name}.{member}");')
    return "\n".join([*lines, SAME_FUNCTIONS])


def test_the_declarations_are_those_of_khronos(tmp_path):
    pytest.importorskip("ziglang")
    declarations = DECLARATIONS.read_text(encoding="utf-8")
    (tmp_path / "vulkan.h").write_text(declarations, encoding="utf-8")
    (tmp_path / "comparison.cpp").write_text(comparison(Declarations(declarations)), encoding="utf-8")
    command = [sys.executable, "-m", "ziglang", "c++", "-std=c++20", "-ferror-limit=0", f"-isystem{vulkan_headers()}"]
    caches = dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(PROJECT / "build" / "zig-cache"))
    how = {"cwd": tmp_path, "env": {**caches, **os.environ}, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([*command, "-I.", "-c", "comparison.cpp"], **how)
    assert done.returncode == 0, done.stderr


def test_structs_have_their_own_type_number():
    """Khronos's registry, which its headers are generated from, names the number of each struct."""
    registry = ET.parse(vulkan_headers().parent / "share" / "vulkan" / "registry" / "vk.xml")
    structs = registry.iterfind("types/type[@category='struct']")
    numbers = {one.get("name"): member.get("values") for one in structs for member in one.iterfind("member[@values]")}
    found = Declarations(DECLARATIONS.read_text(encoding="utf-8")).records
    tagged = {name: members["sType"] for name, members in found.items() if "sType" in members}
    assert len(tagged) > 50
    assert tagged == {name: numbers[name] for name in tagged}
