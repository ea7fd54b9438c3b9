"""Environments contain the packages that dependency groups of pyproject.toml pin, and are updated when one changes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.wheel_build.conftest import PROJECT

import environment

PYPROJECT = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.fixture
def pyproject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replaces the project's file; environments use this Python and nothing is installed."""

    def create(folder: Path) -> None:
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "python").unlink(missing_ok=True)
        (folder / "bin" / "python").symlink_to(sys.executable)
        print("making it")

    path = tmp_path / "pyproject.toml"
    path.write_text('requires = ["pip==1"]\n', encoding="utf-8")
    monkeypatch.setattr(environment, "PYPROJECT", path)
    monkeypatch.setattr(environment, "_create", create)
    monkeypatch.setattr(environment, "_pip", lambda python, *requirements: None)
    return path


def requirements_after(line: str) -> list[str]:
    """The entries of the list that starts with this line of pyproject.toml."""
    found = re.search(rf"^{re.escape(line)}$(.*?)^\]$", PYPROJECT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return re.findall(r'^  "([^"]+)",$', found[1], re.MULTILINE)


def test_what_pip_builds_with_is_what_the_makefile_builds_with() -> None:
    pinned = requirements_after("requires = [")
    assert len(pinned) >= 7
    assert requirements_after("build = [") == pinned
    assert environment.pinned_pip() in pinned


def test_everything_is_pinned_that_only_development_needs() -> None:
    groups = PYPROJECT.partition("\n[dependency-groups]\n")[2].partition("\n[")[0]
    requirements = re.findall(r'"([^"]+)"', re.sub(r'include-group = "[^"]+"', "", groups))
    unpinned = [text for text in requirements if not re.match(r"[\w.-]+(\[\w+\])?==\d[\w.]*(; python_version|$)", text)]
    assert unpinned == ["numpy"]


def test_the_extras_accept_packages_that_users_have() -> None:
    extras = PYPROJECT.partition("\n[project.optional-dependencies]\n")[2].partition("\n[")[0]
    requirements = re.findall(r'"([^"]+)"', extras)
    combined, *requirements = requirements
    assert len(requirements) == 27
    others = {"pufferlib", "ray", "rllib", "rsl-rl", "skrl", "stable-baselines3", "torchrl"}  # trainers of others
    names = set(re.findall(r"^([\w-]+) = ", extras, re.MULTILINE)) - {"all"}
    assert set(combined.removeprefix("doorstep[").removesuffix("]").split(",")) == names - others
    assert all(re.fullmatch(r"[\w-]+(\[\w+\])?>=\d+(\.\d+)?(,<\d+)?", text) for text in requirements)


def test_an_environment_is_made_once_and_again_for_other_groups(
    pyproject: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "environment"

    def messages(*groups: str) -> str:
        environment.prepare(folder, list(groups))
        return capsys.readouterr().out

    assert "making" in messages("first")
    assert messages("first") == ""
    assert "making" in messages("first", "second")
    pyproject.write_text(pyproject.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    again = messages("first", "second")
    assert "installing" in again
    assert "making" not in again
    (folder / environment.STAMP).write_text("torn", encoding="utf-8")
    assert "making" in messages("first", "second")


@pytest.mark.slow
def test_an_unknown_group_is_an_error_that_pip_explains(tmp_path: Path) -> None:
    script = Path(environment.__file__)
    command = [sys.executable, str(script), str(tmp_path / "environment"), "no-such-group"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode != 0
    assert "no-such-group" in done.stderr
    assert not (tmp_path / "environment" / environment.STAMP).exists()
