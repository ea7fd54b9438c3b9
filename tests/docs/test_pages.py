"""The pages of the documentation are listed, linked and complete."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, PAGES, ROOT

import doorstep
from doorstep.cli import _COMMANDS as COMMANDS

MODULES = {
    path.stem if path.stem != "__init__" else path.parent.name
    for path in [*(ROOT / "pkg/doorstep").glob("[!_]*.py"), *(ROOT / "pkg/doorstep").glob("[!_]*/__init__.py")]
}
# Their names are exported by `doorstep`, or they are no modules for users.
DOCUMENTED_ELSEWHERE = {
    *("cameras", "config", "event", "health", "simulator", "state", "tensor"),
    *("cli", "picture", "viewer"),
}
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)#:\s]+\.md)(?:#[^)]*)?\)")


def navigation() -> dict[str, str]:
    """Titles of all pages in `nav` of mkdocs.yml by their paths, in its order."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2].partition("\n\n")[0]
    return {path: title for title, path in re.findall(r"- (.+): (\S+\.md)$", text, re.MULTILINE)}


def links_of(name: str) -> dict[str, str]:
    """Texts of the links of a file in the root or in docs/ to pages of the site, by the pages' paths in docs/."""
    path = ROOT / name
    found = {}
    for text, target in LINK.findall(path.read_text("utf-8")):
        resolved = (path.parent / target).resolve()
        if resolved.is_relative_to(DOCS):
            found[str(resolved.relative_to(DOCS))] = text
    return found


def test_every_page_is_in_the_navigation_and_the_other_way_round() -> None:
    assert sorted(navigation()) == sorted(str(page.relative_to(DOCS)) for page in PAGES if page.is_relative_to(DOCS))


def test_the_index_lists_the_pages_of_the_navigation_by_their_titles_and_in_their_order() -> None:
    text = (DOCS / "index.md").read_text("utf-8").partition("## Tutorial")[2]
    listed = [(target, title) for title, target in LINK.findall(text)]
    assert listed == [(path, title) for path, title in navigation().items() if path != "index.md"]


def test_the_readme_calls_pages_by_their_titles() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## Documentation")[2].partition("\n## ")[0]
    listed = {target.removeprefix("docs/"): text for text, target in LINK.findall(section)}
    assert len(listed) > 10
    del listed["index.md"]
    assert listed == {path: navigation().get(path) for path in listed}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_and_headings_lead_somewhere(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#:\s]+)(?:#([^)]*))?\)", page.read_text("utf-8")):
        file = (page.parent / target).resolve()
        assert file.exists(), target
        if heading and not heading.startswith("doorstep."):  # headings of the Python API are made by the site
            assert heading in anchors(file.read_text("utf-8")), f"{target}#{heading}"


def anchors(text: str) -> set[str]:
    """The headings of a page as the site and GitHub call them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_module_has_a_page_of_the_api_reference() -> None:
    described = set(re.findall(r"^::: doorstep\.(\w+)", all_api_pages(), re.MULTILINE))
    assert MODULES - DOCUMENTED_ELSEWHERE - described == set()


def test_the_api_reference_leaves_no_name_of_the_package_out() -> None:
    page = (DOCS / "reference/api/doorstep.md").read_text("utf-8")
    (filters,) = re.findall(r"filters: (\[.*\])", page)
    excluded = [re.compile(pattern.removeprefix("!")) for pattern in re.findall(r'"([^"]+)"', filters)]
    for name in doorstep.__all__:
        is_excluded = any(pattern.search(name) for pattern in excluded)
        has_own_entry = f"::: doorstep.{name}\n" in page
        is_error = hasattr(doorstep.errors, name)
        assert not is_excluded or has_own_entry or is_error or name.startswith("_"), name


def all_api_pages() -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted((DOCS / "reference/api").glob("*.md")))


def test_every_tensor_and_state_field_is_in_the_environment_page() -> None:
    page = (DOCS / "reference/environment.md").read_text("utf-8")
    with doorstep.Simulator(1) as sim:
        names = [*sim.tensors, *(name for name in dir(type(sim.state)) if not name.startswith("_"))]
    for name in names:
        assert f"`{name}`" in page, name


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_option_of_a_command_is_in_its_section(command: str) -> None:
    page = (DOCS / "reference/command_line.md").read_text("utf-8")
    shared = page.partition("## Options of several commands\n")[2].partition("\n## ")[0]
    own = page.partition(f"## doorstep {command}\n")[2].partition("\n## ")[0]
    assert own
    parser = argparse.ArgumentParser(add_help=False)
    COMMANDS[command].add_arguments(parser)
    options = {option for action in parser._actions for option in action.option_strings}
    documented = set(re.findall(r"^\| `(--[\w-]+)", own, re.MULTILINE))
    common = set(re.findall(r"^\| `(--[\w-]+)", shared, re.MULTILINE))
    assert options - common - documented == set()
    assert documented - options == set()


def test_installation_commands_name_the_requirements_of_the_package() -> None:
    required = (ROOT / "pyproject.toml").read_text("utf-8")
    texts = [*PAGES, *(ROOT / "pkg").rglob("*.py"), *(DOCS / "examples").glob("*.py")]
    found = {name for path in texts for name in re.findall(r'pip install "([^"]+)"', path.read_text("utf-8"))}
    found |= set(re.findall(r'_look_for_package\("([^"]+)"', (ROOT / "pkg/doorstep/cli/doctor.py").read_text("utf-8")))
    assert {"av>=14", "numpy>=1.26", "torch>=2.6", "viser>=1.1,<2"} <= found
    extras = {name for name in found if re.fullmatch(r"doorstep\[[\w-]+\]", name)}
    assert len(extras) > 5
    assert all(f"\n{name[len('doorstep[') : -1]} = [" in required for name in extras)
    others = {name for name in found - extras if f'"{name}"' not in required}
    assert others == {"{requirement}", "doorstep[{extra}]"}


def test_the_citation_names_the_present_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {doorstep.__version__}\n" in citation
    assert citation.startswith("cff-version: 1.2.0\n")


def test_lines_of_prose_are_short() -> None:
    for page in PAGES:
        for line in page.read_text("utf-8").splitlines():
            assert len(line) <= 120 or line.startswith("|"), f"{page.name}: {line}"
