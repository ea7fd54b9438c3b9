"""The pages of the documentation are listed, linked, complete and generated anew; the replays that they show are."""

import argparse
import re
import sys
from pathlib import Path

from public_names import public_names
from tests.docs.pages import DOCS, PAGES, ROOT

import doorstep
from doorstep.cli import _COMMANDS as COMMANDS
from doorstep.recording import replay_page

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
EMBEDDED = re.compile(
    r'<object class="replay" type="text/html" data="([^"#]+)[^>]*>\n<img src="([^"]+)" alt="[^"]+">\n</object>'
)
TEXTS = {page: page.read_text("utf-8") for page in PAGES}


def navigation():
    """Titles of all pages in `nav` of mkdocs.yml by their paths, in its order."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2].partition("\n\n")[0]
    return {path: title for title, path in re.findall(r"- (.+): (\S+\.md)$", text, re.MULTILINE)}


def test_pages_are_in_the_navigation_the_index_and_the_readme_by_their_titles():
    titles = navigation()
    assert sorted(titles) == sorted(str(page.relative_to(DOCS)) for page in PAGES if page.is_relative_to(DOCS))
    listed = [(target, title) for title, target in LINK.findall(TEXTS[DOCS / "index.md"].partition("## Tutorial")[2])]
    assert listed == [(path, title) for path, title in titles.items() if path != "index.md"]
    section = TEXTS[ROOT / "README.md"].partition("## Documentation")[2].partition("\n## ")[0]
    listed = {target.removeprefix("docs/"): text for text, target in LINK.findall(section)}
    assert len(listed) > 10
    del listed["index.md"]
    assert listed == {path: titles.get(path) for path in listed}


def anchors(text):
    """The headings of a page as the site and GitHub call them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_links_to_files_and_headings_lead_somewhere_and_lines_of_prose_are_short():
    for page, text in TEXTS.items():
        for target, heading in re.findall(r"\]\(([^)#:\s]+)(?:#([^)]*))?\)", text):
            file = (page.parent / target).resolve()
            assert file.exists(), (page, target)
            if heading and not heading.startswith("doorstep."):  # headings of the Python API are made by the site
                assert heading in anchors(file.read_text("utf-8")), f"{page}: {target}#{heading}"
        for line in text.splitlines():
            assert len(line) <= 120 or line.startswith("|"), f"{page.name}: {line}"


def test_every_marked_table_of_every_page_is_generated(monkeypatch):
    monkeypatch.setattr("sys.path", list(sys.path))  # to which the program adds folders
    import generate

    marked = {page: re.findall(r"<!-- generated: (\w+) -->", text) for page, text in TEXTS.items()}
    marked = {page: names for page, names in marked.items() if names}
    assert dict(generate.generate()) == {page: TEXTS[page] for page in marked}
    assert len({page.parent for page in marked}) > 1
    assert {name for names in marked.values() for name in names} == generate.TABLES.keys()


def test_the_walk_of_a_request_is_that_of_the_code():
    """Each function of the drawing is in its file, is called there or in a file before it, and is counted."""
    page = TEXTS[DOCS / "developers/policies_and_rollouts.md"].partition("### The walk of a request\n")[2]
    drawing = page.partition("```text\n")[2].partition("```")[0].splitlines()[2:]
    folders = [ROOT / f"pkg/doorstep/{name}" for name in ("rollouts", ".")]
    folders += [ROOT / f"native/src/{name}" for name in ("rollouts", ".", "exec/cpu")]
    files, functions = set(), set()
    for start in (0, 41, 82):
        texts = ""
        for file, names in (cell.split(maxsplit=1) for line in drawing if (cell := line[start : start + 41].strip())):
            text = next(folder / file for folder in folders if (folder / file).is_file()).read_text("utf-8")
            texts += text
            for name in names.replace(" ", "").split(","):
                assert re.search(rf"^ *[\w:<>*& ]+\b{name}\([^;]*?[{{:]", text, re.MULTILINE), (file, name)
                is_called = len(re.findall(rf"\b{name}\b", texts)) > 1
                assert is_called or name.startswith("__") or not functions, (file, name)
                functions.add((file, name))
            files.add(file)
    said = re.match(r"\nFrom `submit\(\)` to its result a request passes (\d+) files and (\d+) functions", page)
    assert [int(number) for number in said.groups()] == [len(files), len(functions)]


def test_the_api_reference_leaves_no_module_and_no_name_of_the_package_out():
    pages = "\n".join(text for page, text in TEXTS.items() if page.parent == DOCS / "reference/api")
    assert MODULES - DOCUMENTED_ELSEWHERE - set(re.findall(r"^::: doorstep\.(\w+)", pages, re.MULTILINE)) == set()
    page = TEXTS[DOCS / "reference/api/doorstep.md"]
    (filters,) = re.findall(r"filters: (\[.*\])", page)
    excluded = [re.compile(pattern.removeprefix("!")) for pattern in re.findall(r'"([^"]+)"', filters)]
    for name in doorstep.__all__:
        is_there = f"::: doorstep.{name}\n" in page or not any(pattern.search(name) for pattern in excluded)
        assert is_there or hasattr(doorstep.errors, name) or name.startswith("_"), name


def test_every_public_name_has_a_sentence_and_stands_once():
    modules = dict(public_names())
    names = [(name, sentence) for rows in modules.values() for name, sentence in rows.items()]
    assert len(names) > 100
    assert not [name for name, sentence in names if not sentence]
    assert set(modules["doorstep"]) == set(doorstep.__all__) - {"__version__"}
    assert "EpisodeRequest" not in modules["doorstep.rollouts"]  # which offers it too
    assert "write_minari" in modules["doorstep.rollouts"]


def test_every_tensor_and_state_field_is_in_the_environment_page():
    with doorstep.Simulator(1) as sim:
        for name in [*sim.tensors, *(name for name in dir(type(sim.state)) if not name.startswith("_"))]:
            assert f"`{name}`" in TEXTS[DOCS / "reference/environment.md"], name


def test_every_option_of_a_command_is_in_its_section():
    page = TEXTS[DOCS / "reference/command_line.md"]

    def options_in(heading):
        section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        assert section, heading
        return set(re.findall(r"^\| `(--[\w-]+)", section, re.MULTILINE))

    common = options_in("Options of several commands")
    for name, command in COMMANDS.items():
        parser, documented = argparse.ArgumentParser(add_help=False), options_in(f"doorstep {name}")
        command.add_arguments(parser)
        options = {option for action in parser._actions for option in action.option_strings}
        assert (options - common - documented, documented - options) == (set(), set()), name


def test_installation_commands_name_the_requirements_of_the_package():
    required = (ROOT / "pyproject.toml").read_text("utf-8")
    texts = [*PAGES, *(ROOT / "pkg").rglob("*.py"), *(DOCS / "examples").glob("*.py")]
    found = {name for path in texts for name in re.findall(r'pip install "([^"]+)"', path.read_text("utf-8"))}
    found |= set(re.findall(r'_look_for_package\("([^"]+)"', (ROOT / "pkg/doorstep/cli/doctor.py").read_text("utf-8")))
    assert {"av>=14", "numpy>=1.26", "torch>=2.6", "viser>=1.1,<2"} <= found
    extras = {name for name in found if re.fullmatch(r"doorstep\[[\w-]+\]", name)}
    assert len(extras) > 5
    assert all(f"\n{name[len('doorstep[') : -1]} = [" in required for name in extras)
    assert {name for name in found - extras if f'"{name}"' not in required} == {"{requirement}", "doorstep[{extra}]"}
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {doorstep.__version__}\n" in citation
    assert citation.startswith("cff-version: 1.2.0\n")


# ---- Replays that pages show live


def test_embedded_replays_and_their_pictures_exist_are_small_and_have_the_present_page():
    shown = set()
    for page, text in TEXTS.items():
        embedded = EMBEDDED.findall(text)
        assert len(embedded) == text.count('<object class="replay"'), page.name
        for replay, picture in embedded:
            shown.add((page.parent / replay).resolve())
            assert (page.parent / picture).is_file(), "what GitHub shows in its place"
    assert sorted(shown) == sorted((DOCS / "images").glob("*.html")) != []
    folder = Path(replay_page.__file__).parent / "page"
    parts = {name: (folder / name).read_text("utf-8") for name in (*replay_page._SCRIPTS, "page.css")}
    for text in (replay.read_text("utf-8") for replay in shown):
        assert len(text) < 300_000
        assert [name for name in parts if parts[name] not in text] == [], "they have changed: make docs-images"
