"""Reads native/include/doorstep.h, with its chapters, and doorstep_render.h into plain data.

The headers are regular, so regular expressions suffice; declarations that do not match raise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HEADER_PATH = Path(__file__).resolve().parent / "include" / "doorstep.h"
RENDER_HEADER_PATH = HEADER_PATH.with_name("doorstep_render.h")
NAMED_NUMBERS = {"UINT64_MAX": 2**64 - 1}


@dataclass(frozen=True)
class Field:
    """A field of a struct or a parameter of a function; `length` is 0 unless it is an array."""

    type: str
    name: str
    length: int = 0


@dataclass(frozen=True)
class Struct:
    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Enumeration:
    """A C enumeration; the anonymous one that holds the limits has an empty name."""

    name: str
    members: tuple[tuple[str, int], ...]
    comment: str  # the one right above it, or ""


@dataclass(frozen=True)
class Function:
    name: str
    result: str
    parameters: tuple[Field, ...]


@dataclass(frozen=True)
class StatusRow:
    name: str
    number: int
    python_class: str
    python_base: str
    sentence: str


@dataclass(frozen=True)
class ActionRow:
    """A component of an action: legal values are 0 to size - 1."""

    name: str
    size: int
    neutral: int
    sentence: str


@dataclass(frozen=True)
class RendererRow:
    """A renderer: the simulators that it draws ("ANY", "CPU"), the materials that it takes ("HLSL", "NONE")."""

    member: str
    name: str
    number: int
    simulators: str
    materials: str
    sentence: str


@dataclass(frozen=True)
class ConfigRow:
    """A field of a configuration, see DS_CONFIG_FIELD. default, low and high are C expressions."""

    kind: str
    name: str
    default: str
    low: str
    high: str
    of: str  # the type that has it, or "ALL"
    unit: str
    sentence: str
    remedy: str


@dataclass(frozen=True)
class TensorRow:
    """A row of the tensor or state table. Shape entries are symbols ("N") or numbers ("4")."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    writable: bool
    sentence: str
    flat: bool = False  # exists only with flat observations
    levels: bool = False  # exists only with max_levels
    outlives_step: bool = False  # written where an episode ends, kept until the next one does


@dataclass(frozen=True)
class PartRow:
    """A part of the flat observation; shape of an agent's values, as of tensors."""

    name: str
    shape: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class Header:
    """The contents of a header that the bindings and the documentation need; tables it does not have are empty."""

    constants: dict[str, int | float | str]
    statuses: tuple[StatusRow, ...]
    actions: tuple[ActionRow, ...]
    tensors: tuple[TensorRow, ...]
    state_fields: tuple[TensorRow, ...]
    observation_parts: tuple[PartRow, ...]
    camera_tensors: tuple[TensorRow, ...]
    renderers: tuple[RendererRow, ...]
    configs: dict[str, tuple[ConfigRow, ...]]  # by their structs
    enumerations: tuple[Enumeration, ...]
    handles: tuple[str, ...]
    structs: tuple[Struct, ...]
    functions: tuple[Function, ...]


def parse_header(path: Path = HEADER_PATH) -> Header:
    source = header_source(path)
    text = re.sub(r"/\*.*?\*/", " ", source, flags=re.DOTALL).replace("\\\n", " ")
    code = _expand_config_fields(text, re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE))
    return Header(
        constants=_parse_constants(text),
        statuses=tuple(
            StatusRow(name, int(number), python_class, python_base, sentence)
            for name, number, python_class, python_base, sentence in _parse_table(text, "DS_STATUS_TABLE")
        ),
        actions=tuple(
            ActionRow(name, int(size), int(neutral), sentence)
            for name, size, neutral, sentence in _parse_table(text, "DS_ACTION_TABLE")
        ),
        tensors=_parse_tensor_table(text, "DS_TENSOR_TABLE"),
        state_fields=_parse_tensor_table(text, "DS_STATE_TABLE"),
        observation_parts=tuple(
            PartRow(name, tuple(shape.split(",")), sentence)
            for name, shape, sentence in _parse_table(text, "DS_OBSERVATION_PART_TABLE")
        ),
        camera_tensors=_parse_tensor_table(text, "DS_CAMERA_TENSOR_TABLE"),
        renderers=tuple(
            RendererRow(member, name, int(number), simulators, materials, sentence)
            for member, name, number, simulators, materials, sentence in _parse_table(text, "DS_RENDERER_TABLE")
        ),
        configs={
            f"ds_{name.lower()}_config": tuple(ConfigRow(*row) for row in _parse_table(text, f"DS_{name}_CONFIG_TABLE"))
            for name in re.findall(r"^#define DS_(\w+)_CONFIG_TABLE\(X\)", text, flags=re.MULTILINE)
        },
        enumerations=(*_parse_dtypes(text), *_parse_enumerations(code, _parse_enumeration_comments(source))),
        handles=tuple(re.findall(r"typedef uint64_t (\w+);", code)),
        structs=_parse_structs(code),
        functions=_parse_functions(code),
    )


def header_source(path: Path = HEADER_PATH) -> str:
    """The header and the chapters that it includes, one after the other."""
    text = path.read_text(encoding="utf-8")
    chapters = re.findall(rf'^#include "({path.stem}/\w+\.h)"', text, flags=re.MULTILINE)
    return "\n".join([text, *((path.parent / chapter).read_text(encoding="utf-8") for chapter in chapters)])


def _expand_config_fields(text: str, code: str) -> str:
    """Structs whose fields are those of a table, as the preprocessor writes them."""
    declarations = dict(re.findall(r"^#define DS_CONFIG_FIELD_(\w+)\(name\) (.*)$", text, flags=re.MULTILINE))

    def expand(use: re.Match[str]) -> str:
        rows = _parse_table(text, use[1])
        return " ".join(re.sub(r"(##)?\bname(##)?", name, declarations[kind]) for kind, name, *_ in rows)

    return re.sub(r"\b(DS_\w+_TABLE)\(DS_CONFIG_FIELD\)", expand, code)


def _parse_constants(text: str) -> dict[str, int | float | str]:
    numbers = re.findall(r"^#define (DS_\w+) (\d+|UINT64_MAX)$", text, flags=re.MULTILINE)
    floats = re.findall(r"^#define (DS_\w+) (\d+\.\d+e[+-]\d+)$", text, flags=re.MULTILINE)
    strings = re.findall(r'^#define (DS_\w+) "([^"]*)"$', text, flags=re.MULTILINE)
    return {
        **{name: NAMED_NUMBERS.get(number) or int(number) for name, number in numbers},
        **{name: float(number) for name, number in floats},
        **dict(strings),
    }


def _parse_table(text: str, table: str) -> list[list[str]]:
    """The rows X(a, b, "c" "d") of a table macro, each as a list of strings; adjacent literals are joined."""
    definition = re.search(rf"^#define {table}\(X\)(.*)$", text, flags=re.MULTILINE)
    if definition is None:
        return []
    pattern = r"""\bX\(((?:"(?:[^"\\]|\\.)*"|[^"()])*)\)"""
    rest = re.sub(pattern, "", definition[1]).strip()
    assert not rest, f"{table}: this is no row X(...), or its line does not end with a backslash: {rest}"
    rows = re.findall(pattern, definition[1])
    return [[_argument_text(argument) for argument in _split_arguments(row)] for row in rows]


def _split_arguments(row: str) -> list[str]:
    return re.findall(r'((?:"(?:[^"\\]|\\.)*"|[^",])+)(?:,|$)', row)


def _argument_text(argument: str) -> str:
    literals = re.findall(r'"((?:[^"\\]|\\.)*)"', argument)
    return "".join(literals) if literals else argument.strip()


def _parse_tensor_table(text: str, table: str) -> tuple[TensorRow, ...]:
    return tuple(
        TensorRow(
            name,
            dtype.lower(),
            tuple(shape.split(",")),
            access == "READ_WRITE",
            sentence,
            flat="FLAT" in columns,
            levels="LEVELS" in columns,
            outlives_step="EPISODE" in columns,
        )
        for name, dtype, shape, access, *columns, sentence in _parse_table(text, table)
    )


def _parse_dtypes(text: str) -> tuple[Enumeration, ...]:
    members = tuple((f"DS_DTYPE_{name}", int(number)) for name, number, *_ in _parse_table(text, "DS_DTYPE_TABLE"))
    return (Enumeration("ds_dtype", members, "Types of elements, by the names of numpy."),) if members else ()


def _parse_enumeration_comments(source: str) -> dict[str, str]:
    found = re.findall(r"/\*((?:(?!\*/).)*)\*/\ntypedef enum (\w+)", source, flags=re.DOTALL)
    return {name: " ".join(comment.split()) for comment, name in found}


def _parse_enumerations(code: str, comments: dict[str, str]) -> tuple[Enumeration, ...]:
    """Enumerations that list their members; those made from a table are known by the table."""
    found = re.findall(r"(?:typedef )?enum (?:(\w+) )?\{([^}]*)\}", code)
    return tuple(
        Enumeration(name, tuple((member, int(value)) for member, value in members), comments.get(name, ""))
        for name, body in found
        if (members := re.findall(r"(\w+) = (-?\d+),", body))
    )


def _parse_structs(code: str) -> tuple[Struct, ...]:
    found = re.findall(r"typedef struct (\w+) \{([^}]*)\} \1;", code)
    if len(found) != code.count("typedef struct"):
        raise ValueError(f"read {len(found)} of {code.count('typedef struct')} structs")
    return tuple(Struct(name, tuple(map(_parse_field, body.split(";")[:-1]))) for name, body in found)


def _parse_functions(code: str) -> tuple[Function, ...]:
    found = re.findall(r"DS_API\s+([\w\s*]*?)(ds_\w+)\(([^)]*)\);", code)
    if len(found) != code.count("DS_API"):
        raise ValueError(f"read {len(found)} of {code.count('DS_API')} functions")
    return tuple(Function(name, result.strip(), _parse_parameters(list_)) for result, name, list_ in found)


def _parse_parameters(parameters: str) -> tuple[Field, ...]:
    return () if parameters.strip() == "void" else tuple(map(_parse_field, parameters.split(",")))


def _parse_field(declaration: str) -> Field:
    match = re.fullmatch(r"(.*?[\s*])(\w+)(?:\[(\d+)\])?", " ".join(declaration.split()))
    if match is None:
        raise ValueError(f"cannot read the declaration {declaration!r}")
    return Field(match.group(1).strip(), match.group(2), int(match.group(3) or 0))
