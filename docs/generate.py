"""Writes the generated parts of this folder; the output is committed.

python docs/generate.py           writes them
python docs/generate.py --check   exits with 1 and names the files that are not current

- python_api.md as a whole, from the docstrings of the installed package.
- Between the markers `<!-- generated: NAME -->` and `<!-- end -->` of the other pages: the tables of tensors and state
  fields, from the headers in native/include, and the table of stages, from native/src/sim/stages.h.
"""

from __future__ import annotations

import argparse
import ast
import enum
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import doorstep
import doorstep.action_dump
import doorstep.cuda
import doorstep.interop
import doorstep.notebook
import doorstep.render
import doorstep.replay
import doorstep.video
from doorstep.compat import madrona_escape_room

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
# What imports PyTorch is read, not imported.
TORCH_SOURCES = [ROOT / "pkg" / "doorstep" / "torch" / name for name in ("__init__.py", "training.py", "worlds.py")]
STAGES = ROOT / "native" / "src" / "sim" / "stages.h"
sys.path.insert(0, str(ROOT / "native"))

from header_parser import RENDER_HEADER_PATH, TensorRow, parse_header  # noqa: E402

NOTICE = "<!-- Written by docs/generate.py from the docstrings of the package; do not edit. -->"
SECTIONS = ("Args:", "Attributes:", "Raises:", "Returns:")
MARKED = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

API_HEAD = """
# Python API

Everything importable from `doorstep`, and the modules beside it. Shapes use N worlds and A agents. Units are metres,
seconds and radians unless a line says otherwise. What the tensors hold is told in [the environment](environment.md).

All errors derive from `DoorstepError` and carry `status`, `argument`, `hint` and `driver_code`. A call that raises has
changed nothing; only where drawing fails (`RendererError`) has the step been taken.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is not current")
    check = parser.parse_args().check
    stale = [(path, text) for path, text in generate() if not path.exists() or path.read_text("utf-8") != text]
    for path, text in stale:
        name = path.relative_to(ROOT)
        if check:
            print(f"{name} is not current: run python docs/generate.py", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if check and stale else 0


def generate() -> Iterator[tuple[Path, str]]:
    yield DOCS / "python_api.md", api_page()
    for path in sorted(DOCS.glob("*.md")):
        if path.name == "python_api.md":
            continue
        text = path.read_text("utf-8")
        filled = MARKED.sub(lambda match: f"{match[1]}{TABLES[match['name']]()}\n{match[3]}", text)
        if filled != text or MARKED.search(text):
            yield path, filled


# ---- Tables ----


def tensor_table() -> str:
    return field_table(parse_header().tensors)


def state_table() -> str:
    return field_table(parse_header().state_fields)


def camera_tensor_table() -> str:
    return field_table(parse_header(RENDER_HEADER_PATH).camera_tensors)


def field_table(rows: tuple[TensorRow, ...]) -> str:
    return table(
        ("name", "shape", "type", "access", "content"),
        [
            (
                f"`{row.name}`",
                f"[{', '.join(row.shape)}]",
                row.dtype.lower(),
                "read, write" if row.writable else "read",
                row.sentence,
            )
            for row in rows
        ],
    )


def stage_table() -> str:
    text = re.sub(r"\\\n", " ", STAGES.read_text("utf-8"))
    body = next(line for line in text.splitlines() if "define DS_STAGE_TABLE(X)" in line)
    rows = re.findall(r'X\((\w+), "([^"]*)", "([^"]*)", "([^"]*)",\s*((?:"[^"]*"\s*)+)\)', body)
    if len(rows) < body.count(" X("):
        raise ValueError(f"a row of the stage table in {STAGES} is not understood")
    return table(
        ("stage", "runs over", "reads", "writes", "does"),
        [(f"`{row[0]}`", *row[1:4], "".join(re.findall(r'"([^"]*)"', row[4]))) for row in rows],
    )


TABLES: dict[str, Callable[[], str]] = {
    "tensors": tensor_table,
    "state": state_table,
    "camera_tensors": camera_tensor_table,
    "stages": stage_table,
}


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


# ---- The API page ----


def api_page() -> str:
    parts = [NOTICE, API_HEAD.strip()]
    names = [name for name in doorstep.__all__ if not name.startswith("_")]
    exports = {name: getattr(doorstep, name) for name in names}
    order = ("Simulator", "Cameras", "CameraPose", "Tensor", "State", "Event", "Health")
    parts += [class_section(exports.pop(name)) for name in order]
    errors = [export for export in exports.values() if is_error(export)]
    parts.append(error_section(errors))
    for export in exports.values():
        if isinstance(export, type) and issubclass(export, enum.Enum):
            parts.append(enum_section(export))
        elif isinstance(export, types.FunctionType):
            parts.append(function_section(export, "##", f"doorstep.{export.__name__}"))
    parts.append(module_section(doorstep.cuda))
    parts.append(source_section("doorstep.torch", TORCH_SOURCES))
    parts.append(source_section("doorstep.jax", [ROOT / "pkg" / "doorstep" / "jax.py"]))
    parts.append(module_section(doorstep.interop))
    parts.append(module_section(doorstep.action_dump))
    for module in (doorstep.render, doorstep.video, doorstep.replay, doorstep.notebook):
        parts.append(module_section(module))
    parts.append(module_section(madrona_escape_room))
    return "\n\n".join(parts) + "\n"


def is_error(export: Any) -> bool:
    return isinstance(export, type) and issubclass(export, BaseException)


def class_section(cls: type, level: str = "##") -> str:
    parts = [f"{level} {cls.__name__}"]
    if "__init__" in vars(cls) and not public_constructor_is_hidden(cls):
        parts.append(f"```python\n{signature_block(cls.__name__, cls)}\n```")
    parts.append(markdown(inspect.getdoc(cls) or ""))
    properties, functions = members_of(cls)
    if properties:
        rows = [(f"`{name}`", annotation_of(prop), inline(inspect.getdoc(prop) or "")) for name, prop in properties]
        parts.append(table(("property", "type", "content"), rows))
    parts += [function_section(function, level + "#", f"{cls.__name__}.{name}") for name, function in functions]
    return "\n\n".join(parts)


def public_constructor_is_hidden(cls: type) -> bool:
    """Tensors, states and events come from a simulator; only dataclasses, errors and owners are made by users."""
    return cls in (doorstep.Tensor, doorstep.StateFields, doorstep.StepEvent, doorstep.Health)


def members_of(cls: type) -> tuple[list[tuple[str, property]], list[tuple[str, Any]]]:
    """Documented public properties and methods: the class's own in their order, then inherited properties."""
    properties: list[tuple[str, property]] = []
    functions: list[tuple[str, Any]] = []
    for owner in cls.__mro__[:-1]:
        for name, member in vars(owner).items():
            if name.startswith("_"):
                continue
            if isinstance(member, property):
                properties.append((name, member))
            elif isinstance(member, (types.FunctionType, classmethod, staticmethod)) and owner is cls:
                functions.append((name, getattr(cls, name)))
    return properties, functions


def annotation_of(prop: property) -> str:
    annotation = getattr(prop.fget, "__annotations__", {}).get("return", "")
    return f"`{annotation}`" if annotation else ""


def error_section(errors: list[Any]) -> str:
    root = next(error for error in errors if error.__name__ == "DoorstepError")
    rows = [
        (
            f"`{error.__name__}`",
            ", ".join(f"`{base.__name__}`" for base in error.__bases__),
            inline(inspect.getdoc(error)),
        )
        for error in errors
        if error is not root
    ]
    return "\n\n".join(
        [
            "## Errors",
            f"### {root.__name__}",
            markdown(inspect.getdoc(root) or ""),
            table(("error", "is a", "when"), rows),
        ]
    )


def enum_section(kind: type[enum.Enum]) -> str:
    members = [(f"`{member.name}`", str(member.value)) for member in kind]
    return "\n\n".join([f"## {kind.__name__}", markdown(inspect.getdoc(kind) or ""), table(("name", "value"), members)])


def module_section(module: types.ModuleType) -> str:
    parts = [f"## Module {module.__name__}", markdown(inspect.getdoc(module) or "")]
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    in_python = getattr(module, "__test__", {})  # of functions that builtins stand in for
    for name in names:
        member = in_python.get(name, getattr(module, name))
        if not is_of(module, member):
            continue
        if inspect.isclass(member):
            parts.append(class_section(member, "###"))
        elif inspect.isfunction(member):
            parts.append(function_section(member, "###", name))
    return "\n\n".join(parts)


def is_of(module: types.ModuleType, member: Any) -> bool:
    """Whether it is defined in the module, or is what the module exports of its inside."""
    home = getattr(member, "__module__", None) or ""
    return home == module.__name__ or home.startswith((f"{module.__name__}.", "doorstep._native."))


def source_section(name: str, sources: Sequence[Path]) -> str:
    """The public functions and classes of a package, from its source; its docstring is the first file's."""
    trees = [ast.parse(path.read_text("utf-8")) for path in sources]
    parts = [f"## Module {name}", markdown(ast.get_docstring(trees[0]) or "")]
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                parts += [f"### {node.name}", markdown(ast.get_docstring(node) or "")]
                parts += [source_function(member, "####", f"{node.name}.") for member in functions_of(node)]
        parts += [source_function(node, "###") for node in functions_of(tree)]
    return "\n\n".join(parts)


def functions_of(node: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
            yield member


def source_function(node: ast.FunctionDef, level: str, owner: str = "") -> str:
    described = ast.unparse(node.args).removeprefix("self, ").removeprefix("self")
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{node.name}({described}){result}"
    if len(line) > 100:
        arguments = "".join(f"    {argument},\n" for argument in re.split(r", (?=\w+:|\*)", described))
        line = f"{node.name}(\n{arguments}){result}"
    return f"{level} {owner}{node.name}\n\n```python\n{line}\n```\n\n{markdown(ast.get_docstring(node) or '')}"


def function_section(function: Any, level: str, name: str) -> str:
    head = f"{level} {name}\n\n```python\n{signature_block(name.rpartition('.')[2], function)}\n```"
    doc = inspect.getdoc(function)
    return f"{head}\n\n{markdown(doc)}" if doc else head


def signature_block(name: str, function: Any) -> str:
    """name(arguments) -> result, a line per argument if it would be too long for one."""
    signature = inspect.signature(function)
    arguments: list[str] = []
    keyword_only = False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            arguments.append("*")
        arguments.append(argument_text(parameter))
    annotation = signature.return_annotation
    result = "" if annotation in (signature.empty, None, "None") else f" -> {annotation}"
    line = f"{name}({', '.join(arguments)}){result}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){result}"


def argument_text(parameter: inspect.Parameter) -> str:
    annotated = parameter.annotation is not parameter.empty
    name = f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
    text = f"{name}: {parameter.annotation}" if annotated else name
    if parameter.default is parameter.empty:
        return text
    return f"{text} = {parameter.default!r}" if annotated else f"{text}={parameter.default!r}"


# ---- Docstrings ----


def inline(doc: str | None) -> str:
    """A docstring as the content of a table cell."""
    return " ".join((doc or "").split())


def markdown(doc: str) -> str:
    """Sections become lists, examples become code blocks; the rest is paragraphs."""
    blocks = re.split(r"\n\s*\n", doc.strip())
    return "\n\n".join(block_markdown(block) for block in blocks if block)


def block_markdown(block: str) -> str:
    lines = block.splitlines()
    if lines[0].startswith(">>>"):
        return "```python\n" + block + "\n```"
    if lines[0] in SECTIONS:
        return f"**{lines[0].rstrip(':')}**\n\n" + "\n".join(section_items(textwrap.dedent("\n".join(lines[1:]))))
    if lines[0].startswith("    "):
        return "```text\n" + textwrap.dedent(block) + "\n```"
    return block


def section_items(text: str) -> Iterator[str]:
    """`name: words` with continuation lines, as list items."""
    items: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") and items:
            items[-1] += " " + line.strip()
        else:
            items.append(line)
    for item in items:
        name, colon, words = item.partition(": ")
        yield f"- `{name}`: {words}" if colon else f"- {item}"


if __name__ == "__main__":
    sys.exit(main())
