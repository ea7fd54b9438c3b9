"""Modules of the package depend on each other in one direction: no circle of imports, no simulator below its layer."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import doorstep

FOLDER = Path(doorstep.__file__).parent
MODULES = {
    ".".join(("doorstep", *path.relative_to(FOLDER).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in FOLDER.rglob("*.py")
}


def imports_at_run_time(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a module is imported: none within functions or under TYPE_CHECKING."""
    for statement in body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING"):
            yield from imports_at_run_time(statement.orelse)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for block in ("body", "orelse", "finalbody"):
                yield from imports_at_run_time(getattr(statement, block, []))
            for handler in getattr(statement, "handlers", []):
                yield from imports_at_run_time(handler.body)


def dependencies(name: str) -> set[str]:
    """The modules of the package that a module names in its imports."""
    found = set()
    for statement in imports_at_run_time(ast.parse(MODULES[name].read_text("utf-8")).body):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        else:
            assert statement.level == 0, f"{name} has a relative import"
            for alias in statement.names:
                submodule = f"{statement.module}.{alias.name}"
                found.add(submodule if submodule in MODULES else str(statement.module))
    return found & (MODULES.keys() - {name})


def reachable(name: str) -> set[str]:
    """The modules that a module needs, directly or through others."""
    found: set[str] = set()
    pending = dependencies(name)
    while pending:
        found |= pending
        pending = {further for module in pending for further in dependencies(module)} - found
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: dependencies(name) for name in MODULES}
    assert sum(map(len, graph.values())) > 100
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise AssertionError(f"modules import each other in a circle: {circle}") from None


def test_pictures_are_drawn_below_the_simulator() -> None:
    drawing = {name for name in MODULES if name.startswith("doorstep.render")}
    assert drawing
    for name in drawing:
        assert "doorstep.simulator" not in reachable(name)
        assert "doorstep" not in reachable(name)
        assert "import Simulator" not in MODULES[name].read_text("utf-8"), f"{name}, under TYPE_CHECKING"
