"""Writes the fields of configurations into dataclasses of the Python package, from the tables of doorstep.h.

A class has them between `# generated: ds_scheduler_config DYNAMIC_CHUNK` and `# end`; the type is left out where fields
that all types have are meant.
"""

from __future__ import annotations

import re
from pathlib import Path

from header_parser import ConfigRow, Header

# The modules of the package that have such classes.
MODULES = ("config.py", "metrics/config.py", "policy/sampling.py", "rollouts/config.py")
MARKED = re.compile(r"^(    # generated: (ds_\w+)(?: (\w+))?\n).*?^(    # end\n)", re.DOTALL | re.MULTILINE)
LINE_LENGTH = 120


def with_config_fields(package: Path, header: Header) -> dict[Path, str]:
    """The modules with their present fields."""
    texts = {}
    for name in MODULES:
        path = package / name
        text = path.read_text(encoding="utf-8")
        if not MARKED.search(text):
            raise ValueError(f"{path} has no generated fields")
        texts[path] = MARKED.sub(lambda found: found[1] + fields(header, found[2], found[3] or "ALL") + found[4], text)
    return texts


def choice_names(header: Header) -> str:
    """The names of choices as types."""
    rows = {row.low: row for table in header.configs.values() for row in table if row.kind == "CHOICE"}
    lines = []
    for row in rows.values():
        names = ", ".join(f'"{name}"' for name in choices(header, row))
        lines.append(f"{choice_type(header, row)}: TypeAlias = Literal[{names}]")
    return "\n".join(lines)


def fields(header: Header, struct: str, of: str) -> str:
    """The fields of a class: those of a type, or those that all types have."""
    rows = [row for row in header.configs[struct] if row.of == of and row.kind != "TYPE"]
    required = [row for row in rows if default_of(header, row) is None]
    others = [row for row in rows if row not in required]
    lines = [] if of == "ALL" else [f'    type: ClassVar[str] = "{of.lower()}"']
    lines += [field(header, row) for row in required]
    lines += ["    _: KW_ONLY"] if any(row.kind == "REQUIRED" for row in required) else []
    return "\n".join([*lines, *(field(header, row) for row in others), ""])


def field(header: Header, row: ConfigRow) -> str:
    default = default_of(header, row)
    parts = [type_of(header, row), rule_of(header, row), f'"{row.sentence}"']
    parts = [part for part in parts if part]
    end = "" if default is None else f" = {default}"
    line = f"    {row.name}: Annotated[{', '.join(parts)}]{end}"
    if len(line) <= LINE_LENGTH:
        return line
    inner = "\n".join(f"        {part}," for part in parts)
    return f"    {row.name}: Annotated[\n{inner}\n    ]{end}"


def type_of(header: Header, row: ConfigRow) -> str:
    types = {
        "OPTIONAL": "int | None",
        "NUMBER": "float",
        "POSITIVE": "float",
        "FLAG": "bool",
        "DEVICE": "str",
        "DEVICES": "tuple[str, ...] | None",
        "OBSERVATIONS": "AnyObservations",
    }
    if row.kind == "CHOICE":
        return choice_type(header, row)
    if row.kind == "PART":
        return f"{part_of(row)}Config"
    return types.get(row.kind, "int")


def rule_of(header: Header, row: ConfigRow) -> str:
    low, high = number(header, row.low), number(header, row.high)
    match row.kind:
        case "INTEGER" | "REQUIRED" | "OPTIONAL":
            return f"Integer({low}, {high})"
        case "NUMBER" | "POSITIVE":
            limits = [] if row.high == "DS_NO_LIMIT" else [f"high={high}"]
            return f"Number({', '.join([f'above={low}' if row.kind == 'POSITIVE' else f'low={low}', *limits])})"
        case "DEVICE" | "DEVICES":
            return "Device()"
        case "OBSERVATIONS":
            return "ObservationsRule()"
    return ""


def default_of(header: Header, row: ConfigRow) -> str | None:
    """As Python writes it; None: there is no default."""
    if row.kind == "REQUIRED":
        return None
    if row.kind == "PART":
        table = header.configs[f"ds_{part_of(row).lower()}_config"]
        if any(other.kind == "REQUIRED" for other in table):
            return None
        kinds = [other for other in table if other.kind == "TYPE"]
        if not kinds:
            return f"field(default_factory={part_of(row)}Config)"
        member = kinds[0].default.removeprefix(f"DS_{part_of(row).upper()}_").title().replace("_", "")
        return f"field(default_factory={member}{part_of(row)})"
    default = number(header, row.default)
    match row.kind:
        case "OPTIONAL" if default == number(header, row.low) - 1:
            return "None"
        case "DEVICES":
            return "None"
        case "OBSERVATIONS":
            return "OBSERVATIONS"
        case "FLAG":
            return str(bool(default))
        case "NUMBER" | "POSITIVE":
            return str(float(default))
        case "CHOICE" | "DEVICE":
            return f'"{choices(header, row)[int(default)]}"'
    return str(default)


def part_of(row: ConfigRow) -> str:
    """DS_CONFIG_SCHEDULER -> Scheduler."""
    return row.low.removeprefix("DS_CONFIG_").title()


def number(header: Header, text: str) -> int | float:
    members = {name: value for item in header.enumerations for name, value in item.members}
    if text in members:
        return members[text]
    constant = header.constants.get(text, text)
    return constant if isinstance(constant, (int, float)) else int(constant)


def choice_type(header: Header, row: ConfigRow) -> str:
    """DS_ACTION_CHECK_CLAMP -> ActionCheckName."""
    name = next(item.name for item in header.enumerations if row.low in dict(item.members))
    return "".join(word.capitalize() for word in name.removeprefix("ds_").split("_")) + "Name"


def choices(header: Header, row: ConfigRow) -> list[str]:
    """The names from low to high, whose numbers are 0, 1, ..."""
    item = next(item for item in header.enumerations if row.low in dict(item.members))
    low, high = number(header, row.low), number(header, row.high)
    members = [(name, value) for name, value in item.members if low <= value <= high]
    if [value for _, value in members] != list(range(len(members))):
        raise ValueError(f"the choices of {row.name} are not numbered from 0")
    enumeration = item.name.upper().removesuffix("_KIND") + "_"
    return [name.removeprefix(enumeration).lower() for name, _ in members]
