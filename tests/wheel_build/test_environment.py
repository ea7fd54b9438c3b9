"""Environments contain the packages that dependency groups of pyproject.toml pin, and are updated when one changes."""

import re

from tests.wheel_build.conftest import PROJECT

import environment

PYPROJECT = "\n" + (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
# Trainers of others, whose pins conflict.
NOT_IN_ALL = {"pufferlib", "ray", "rllib", "rsl-rl", "skrl", "stable-baselines3", "torchrl"}


def table(header):
    """The lists of a table of pyproject.toml, by name."""
    text = PYPROJECT.partition(f"\n[{header}]\n")[2].partition("\n[")[0]
    rows = re.findall(r"^([\w-]+) = \[(.*?)\](?: *#[^\n]*)?$", text, re.MULTILINE | re.DOTALL)
    return {name: re.findall(r'"([^"]+)"', re.sub(r'include-group = "[^"]+"', "", entries)) for name, entries in rows}


def test_what_pip_builds_with_is_what_the_makefile_builds_with_and_everything_is_pinned():
    pinned, groups = table("build-system")["requires"], table("dependency-groups")
    assert len(pinned) >= 7
    assert groups["build"] == pinned
    assert environment.pinned_pip() in pinned
    requirements = [text for group in groups.values() for text in group]
    assert len(requirements) > 50
    unpinned = [text for text in requirements if not re.match(r"[\w.-]+(\[\w+\])?==\d[\w.]*(; python_version|$)", text)]
    assert unpinned == ["numpy"]


def test_the_extras_accept_packages_that_users_have_and_all_has_all_of_them():
    extras = table("project.optional-dependencies")
    (combined,) = extras.pop("all")
    assert set(combined.removeprefix("doorstep[").removesuffix("]").split(",")) == extras.keys() - NOT_IN_ALL
    assert extras.keys() > NOT_IN_ALL
    requirements = [text for extra in extras.values() for text in extra]
    assert len(requirements) == 27
    assert all(re.fullmatch(r"[\w-]+(\[\w+\])?>=\d+(\.\d+)?(,<\d+)?", text) for text in requirements)
    # What is needed together is asked for alike, wherever it is asked for.
    bounds = {}
    for text in requirements:
        name = re.split(r"[\[>]", text)[0]
        assert bounds.setdefault(name, text.partition(">")[2]) == text.partition(">")[2] or name == "ray", text
