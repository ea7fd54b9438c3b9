"""Modules of the package depend on each other in one direction: no circle of imports, and one seam to native code."""

import ast
import functools
from graphlib import TopologicalSorter
from pathlib import Path

import doorstep

FOLDER = Path(doorstep.__file__).parent
MODULES = {
    ".".join(("doorstep", *path.relative_to(FOLDER).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in FOLDER.rglob("*.py")
}
# What remains: an import for the type of an argument.
CIRCULAR = {("doorstep.training.trained", "doorstep.training.checkpoint")}


@functools.cache
def nodes_of(name):
    return tuple(ast.walk(ast.parse(MODULES[name].read_text("utf-8"))))


def imported(node):
    """What an import names, without knowing which are modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []


@functools.cache
def dependencies(name):
    """The modules of the package that a module imports: anywhere, also within functions and for types."""
    found = [path for node in nodes_of(name) for path in imported(node)]
    return {path if path in MODULES else path.rpartition(".")[0] for path in found} & (MODULES.keys() - {name})


def test_no_modules_import_each_other_in_a_circle():
    assert not [node for name in MODULES for node in nodes_of(name) if isinstance(node, ast.ImportFrom) and node.level]
    edges = {(name, other) for name in MODULES for other in dependencies(name)}
    assert edges >= CIRCULAR, "remove from CIRCULAR what is no import any more"
    graph = {name: {other for other in dependencies(name) if (name, other) not in CIRCULAR} for name in MODULES}
    assert sum(map(len, graph.values())) > 100
    TopologicalSorter(graph).prepare()  # its error shows the circle


def test_only_the_native_seam_calls_foreign_functions():
    paths = {name: {path for node in nodes_of(name) for path in imported(node)} for name in MODULES}
    callers = {name for name, found in paths.items() if any(p.startswith("ctypes") for p in found - {"ctypes.util"})}
    assert {name.split(".")[1] for name in callers} == {"_native"}


def test_no_finalizers_of_python_are_used():
    """They lose Ctrl-C; doorstep._native.finalizer does not."""
    for name in MODULES:
        called = {getattr(node, "attr", getattr(node, "name", "")) for node in nodes_of(name)}
        assert not called & {"finalize", "__del__"}, name
