"""Modules of the package depend on each other in one direction: no circle of imports, no simulator below its layer."""

import ast
import functools
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import doorstep

FOLDER = Path(doorstep.__file__).parent
MODULES = {
    ".".join(("doorstep", *path.relative_to(FOLDER).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in FOLDER.rglob("*.py")
}


# What remains: an import for the type of an argument.
CIRCULAR = {("doorstep.training.trained", "doorstep.training.checkpoint")}
# Names of an object that another package uses, by module.
PRIVATE_USES = {
    "doorstep.envs._rooms": {"_redirector"},
    "doorstep.evaluation.by_stepping": {"_begin"},
    "doorstep.jax": {"_session"},
    "doorstep.planner.reader": {"_session"},
    "doorstep.ray.player": {"_core"},
    "doorstep.recording.film": {"_snapshots"},
    "doorstep.recording.replay_page": {"_snapshots"},
    "doorstep.recording.writer": {"_interventions"},
    "doorstep.rollouts.core": {"_of"},
    "doorstep.rollouts.native_policies": {"_weights"},
    "doorstep.rollouts.recorded": {"_begin", "_resume"},
    "doorstep.serve.server": {"_core"},
    "doorstep.simulator": {"_forget"},
    "doorstep.training.acting": {"_act"},
}

# Of argparse, named tuples and modules of PyTorch.
NAMES_OF_LIBRARIES = {"_actions", "_asdict", "_buffers", "_fields", "_parameters", "_replace"}


@functools.cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text("utf-8"))


@functools.cache
def dependencies(name: str) -> frozenset[str]:
    """The modules of the package that a module imports: anywhere, also within functions and for types."""
    found = set()
    for statement in ast.walk(tree_of(name)):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{name} has a relative import"
            for alias in statement.names:
                submodule = f"{statement.module}.{alias.name}"
                found.add(submodule if submodule in MODULES else str(statement.module))
    return frozenset(found & (MODULES.keys() - {name}))


def reachable(name: str) -> set[str]:
    """The modules that a module needs, directly or through others."""
    found: set[str] = set()
    pending = set(dependencies(name))
    while pending:
        found |= pending
        pending = {further for module in pending for further in dependencies(module)} - found
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    edges = {(name, other) for name in MODULES for other in dependencies(name)}
    assert edges >= CIRCULAR, "remove from CIRCULAR what is no import any more"
    graph = {name: {other for other in dependencies(name) if (name, other) not in CIRCULAR} for name in MODULES}
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


def package_of(name: str) -> str:
    """The folder or file below doorstep that a module belongs to."""
    return ".".join(name.split(".")[:2])


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@functools.cache
def defined_in(name: str) -> frozenset[str]:
    """Private names of classes, functions and attributes of `self` and `cls` that a module defines."""
    found = set()
    for node in ast.walk(tree_of(name)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(filter(is_private, found)) - NAMES_OF_LIBRARIES


def private_uses(name: str) -> set[str]:
    """Private names of another package's objects that a module uses. Names that its own package defines too count as
    its own, unless they are of a simulator."""
    own = {found for other in MODULES if package_of(other) == package_of(name) for found in defined_in(other)}
    others = {found for other in MODULES for found in defined_in(other) if package_of(other) != package_of(name)}
    uses = set()
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.Attribute) and node.attr in others:
            base = ast.unparse(node.value)
            is_of_simulator = base.rpartition(".")[2].strip("_") in ("sim", "simulator")
            if base not in ("self", "cls") and (is_of_simulator or node.attr not in own):
                uses.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("doorstep"):
            names = {alias.name for alias in node.names if f"{node.module}.{alias.name}" not in MODULES}
            uses |= set(filter(is_private, names))
    return uses


def test_no_package_uses_private_names_of_another() -> None:
    found = {name: uses for name in MODULES if (uses := private_uses(name))}
    assert found == PRIVATE_USES
