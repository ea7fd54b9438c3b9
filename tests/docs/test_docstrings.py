"""The examples of docstrings run as they are pasted: with nothing defined but what they import themselves."""

import ast
import doctest
import re

import pytest
from tests.docs.pages import ROOT
from tests.envs.stand_ins import pufferlib_or_stand_in

PACKAGE = ROOT / "pkg" / "doorstep"
# What the examples of files need beside gymnasium, which all of envs/ does; the first that matches.
NEEDED = {
    "jax": r"^(envs/)?jax",
    **{name: rf"^envs/{name}\.py" for name in ("pettingzoo", "rsl_rl", "skrl", "stable_baselines3", "torchrl")},
    "torch": r"^(torch|policy|training)/|^envs/distributions\.py|^rollouts/dataset\.py",
    "minari": r"^rollouts/minari\.py",
    "av": r"^(video|notebook)\.py",
    "gymnasium": r"^envs/",
    "numpy": "",
}


def docstrings(path):
    """Names and docstrings of a file that have examples."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        if documented and ">>>" in (text := ast.get_docstring(node) or ""):
            yield getattr(node, "name", path.stem), text


FILES = {name: [] for name in NEEDED}
for file in sorted(PACKAGE.rglob("*.py")):
    relative = str(file.relative_to(PACKAGE))
    FILES[next(name for name, pattern in NEEDED.items() if re.match(pattern, relative))].append(relative)


@pytest.mark.usefixtures("undone_registrations")
@pytest.mark.parametrize("package", [pytest.param(name, marks=[pytest.mark.slow] * (name == "jax")) for name in NEEDED])
def test_examples_run_as_they_are_pasted(package, tmp_path, monkeypatch):
    pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    found = [(name, *one) for name in FILES[package] for one in docstrings(PACKAGE / name)]
    assert found
    if any(name.startswith("envs/") for name, _, _ in found):
        pytest.importorskip("gymnasium")
    output = []
    with pufferlib_or_stand_in():
        for name, owner, text in found:
            test = doctest.DocTestParser().get_doctest(text, {}, owner, name, 0)
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=output.append)
    assert not output, "".join(output)
