"""The public names of the package and what each is, read from the sources without importing them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "pkg" / "doorstep"


def public_names() -> Iterator[tuple[str, dict[str, str]]]:
    """Each module with a page in docs/reference/api, and the sentences of its names; a name of several modules is
    listed in the first of them."""
    pages = sorted(path.stem for path in (DOCS / "reference" / "api").glob("*.md"))
    pages.sort(key=lambda page: page != "doorstep")
    seen: set[tuple[str, str]] = set()
    for page in pages:
        module = {"doorstep": "doorstep", "compat": "doorstep.compat.madrona_escape_room"}.get(page, f"doorstep.{page}")
        origins = {name: _origin(module, name) for name in _names(module)}
        yield module, {name: _sentence(*origin) for name, origin in origins.items() if origin not in seen}
        seen |= set(origins.values())


@cache
def _path(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_path(module).read_text("utf-8"))


def _names(module: str) -> list[str]:
    """The names in __all__, or what a module without it defines."""
    for node in _tree(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [name for name in ast.literal_eval(node.value) if not name.startswith("__")]
    return [name for name in _definitions(module) if not name.startswith("_")]


@cache
def _definitions(module: str) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for node in _tree(module).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id: node for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


@cache
def _origin(module: str, name: str) -> tuple[str, str]:
    """The module that defines a name, and what it is called there."""
    if name in _definitions(module):
        return module, name
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("doorstep") and node.module != module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _origin(str(node.module), alias.name)
    if _path(f"{module}.{name}").exists():
        return f"{module}.{name}", ""
    raise LookupError(f"{module} has no {name}")


def _sentence(module: str, name: str) -> str:
    """The first sentence of a docstring, or of the comment or the string that follows or precedes an assignment."""
    node = _definitions(module).get(name) if name else _tree(module)
    if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
        text = ast.get_docstring(node) or ""
    else:
        assert isinstance(node, ast.stmt)
        text = _comment(module, node)
    return re.split(r"(?<=[.:])\s+|\n\n", text, maxsplit=1)[0].replace("\n", " ").rstrip(".:")


def _comment(module: str, node: ast.stmt) -> str:
    body, lines = _tree(module).body, _path(module).read_text("utf-8").splitlines()
    following = body[body.index(node) + 1 :][:1]
    if following and isinstance(following[0], ast.Expr) and isinstance(following[0].value, ast.Constant):
        return str(following[0].value.value)
    beside = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")[2]
    above = lines[node.lineno - 2].strip()
    return beside or (above.removeprefix("# ") if above.startswith("# ") else "")
