"""The examples of docstrings run as they are pasted: with nothing defined but what they import themselves."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import ROOT
from tests.envs.stand_ins import pufferlib_or_stand_in

PACKAGE = ROOT / "pkg" / "doorstep"
# What the examples of files need.
NEEDED = {
    "jax": r"^(envs/)?jax\.py",
    "gymnasium": r"^envs/",
    **{name: rf"^envs/{name}\.py" for name in ("pettingzoo", "rsl_rl", "skrl", "stable_baselines3", "torchrl")},
    "torch": r"^(torch|policy|training)/|^envs/distributions\.py|^rollouts/dataset\.py",
    "minari": r"^rollouts/minari\.py",
    "av": r"^(video|notebook)\.py",
}


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Names and docstrings of a file that have examples."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node) or ""
            if ">>>" in text:
                yield getattr(node, "name", path.stem), text


FILES = [str(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py")) if any(docstrings(path))]


@pytest.mark.usefixtures("undone_registrations")
@pytest.mark.parametrize("name", FILES)
def test_examples_run_as_they_are_pasted(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, pattern in NEEDED.items():
        if re.match(pattern, name):
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    with pufferlib_or_stand_in():
        for owner, text in docstrings(PACKAGE / name):
            test = doctest.DocTestParser().get_doctest(text, {}, owner, name, 0)
            output: list[str] = []
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=output.append)
            assert not output, "".join(output)
