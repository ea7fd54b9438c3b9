"""The walk of a request, as the developers' page draws it, is that of the code."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "developers" / "policies_and_rollouts.md").read_text("utf-8")
SECTION = PAGE.partition("### The walk of a request")[2]
DRAWING = SECTION.split("```")[1]
STEPS = [
    (file, function)
    for file, functions in re.findall(r"([\w/]+\.(?:py|cpp)) +(\w+(?:, \w+)*)", DRAWING)
    for function in functions.split(", ")
]
FOLDERS = ("pkg/doorstep/rollouts", "pkg/doorstep", "native/src/rollouts", "native/src/exec/cpu", "native/src")


def test_every_function_of_the_walk_is_in_its_file() -> None:
    for file, function in STEPS:
        path = next(ROOT / folder / file for folder in FOLDERS if (ROOT / folder / file).exists())
        defined = rf"\bdef {function}\(" if path.suffix == ".py" else rf"\b(\w+::)?{function}\("
        assert re.search(defined, path.read_text("utf-8")), f"{file} has no {function}"


def test_the_walk_is_as_long_as_the_page_says() -> None:
    files, functions = map(int, re.findall(r"(\d+) files and (\d+) functions", SECTION)[0])
    assert (files, functions) == (len({file for file, _ in STEPS}), len(STEPS))
