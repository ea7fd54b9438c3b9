"""The pages of docs/ are current, complete, and lead nowhere that does not exist."""

import re
import subprocess
import sys
from pathlib import Path

import doorstep

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))


def test_generated_parts_are_current() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_public_name_has_its_place_in_the_api_page() -> None:
    page = (DOCS / "python_api.md").read_text("utf-8")
    for name in doorstep.__all__:
        if not name.startswith("_"):
            assert re.search(rf"\b{name}\b", page), name


def test_every_tensor_and_state_field_is_in_the_environment_page() -> None:
    page = (DOCS / "environment.md").read_text("utf-8")
    with doorstep.Simulator(1, flat_observations=True) as sim:
        names = [*sim.tensors, *(name for name in dir(type(sim.state)) if not name.startswith("_"))]
    for name in names:
        assert f"`{name}`" in page, name


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_what_people_are_to_install_is_what_the_package_asks_for() -> None:
    asked_for = (ROOT / "pyproject.toml").read_text("utf-8")
    texts = [*PAGES, ROOT / "README.md", *(ROOT / "pkg").rglob("*.py")]
    found = {name for path in texts for name in re.findall(r'pip install "([^"]+)"', path.read_text("utf-8"))}
    found |= set(re.findall(r'_look_for_package\("([^"]+)"', (ROOT / "pkg/doorstep/cli/doctor.py").read_text("utf-8")))
    assert {"av>=14", "numpy>=1.26", "torch>=2.6", "viser>=1.1,<2"} <= found
    assert {requirement for requirement in found if f'"{requirement}"' not in asked_for} == {"{requirement}"}


def test_lines_of_prose_are_short() -> None:
    for page in PAGES:
        if page.name == "python_api.md":
            continue
        for line in page.read_text("utf-8").splitlines():
            assert len(line) <= 120 or line.startswith("|"), f"{page.name}: {line}"
