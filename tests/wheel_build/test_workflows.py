"""Checks that actionlint and zizmor lack: workflows refer only to existing things and use only pinned ones."""

import re
from fnmatch import fnmatch

import pytest
from tests.wheel_build.conftest import PROJECT

FOLDER = PROJECT / ".github" / "workflows"
WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.yml"))}
TEXT = "\n".join(WORKFLOWS.values())
PYPROJECT = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
MAKEFILE = (PROJECT / "Makefile").read_text(encoding="utf-8")
# CPython 3.9 to 3.19, with the GIL and without, as cibuildwheel names them.
IDENTIFIERS = [f"cp3{minor}{threads}-manylinux_x86_64" for minor in range(9, 20) for threads in ("", "t")]

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="no .github: these are not a clone's sources")


def jobs(workflow):
    """The text of every job of a workflow, by name."""
    parts = re.split(r"^  ([\w-]+):\n", WORKFLOWS[workflow].partition("\njobs:\n")[2], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def table(header):
    """The lines of pyproject.toml below a header."""
    return PYPROJECT.partition(f"\n[{header}]\n")[2].partition("\n[")[0]


def selectors(option):
    """The patterns of an option of cibuildwheel, which is a string or a list of them."""
    found = re.search(rf'^{option} = (".*?"|\[.*?\])$', table("tool.cibuildwheel"), re.MULTILINE | re.DOTALL)
    return " ".join(re.findall(r'"([^"]+)"', found[1])).split() if found else []


def matches(identifier, patterns):
    return any(fnmatch(identifier, pattern) for pattern in patterns)


def test_make_targets_of_the_workflows_exist():
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    steps = "\n".join(line for line in TEXT.splitlines() if not re.match(r"\s*(#|(- )?name:)", line))
    matrices = re.findall(r"^ +target: \[(.*)\]$", steps, re.MULTILINE)
    asked_for = set(re.findall(r"\bmake ([a-z-]+)", steps)).union(*(matrix.split(", ") for matrix in matrices))
    assert len(asked_for) >= 10
    assert asked_for - targets == set()


def test_files_that_steps_name_exist():
    named = set(re.findall(r"(?<![\w/.])((?:\.ci|native|tests|wheel_build)/[\w./-]*\w)", TEXT))
    assert {".ci/run", "tests/distributions/Dockerfile", "wheel_build/release_notes.py"} <= named
    assert [path for path in named if not (PROJECT / path).exists()] == []


def test_groups_that_steps_name_are_in_pyproject():
    groups = set(re.findall(r"^([\w-]+) = \[", table("dependency-groups"), re.MULTILINE))
    (matrix,) = re.findall(r"groups: \[(.*)\]", jobs("ci.yml")["interpreters"])
    named = [*re.findall(r'"([^"]+)"', matrix), *re.findall(r"environment\.py \S+ (.+)", TEXT)]
    named += re.findall(r"TEST_GROUPS=([\w-]+)", TEXT)
    assert len(named) >= 4
    assert {group for line in named for group in line.split()} <= groups


def test_every_interpreter_of_the_release_is_tested_with_the_installed_wheel():
    (matrix,) = re.findall(r"python: \[(.*)\]", jobs("ci.yml")["interpreters"])
    tested = re.findall(r'"([^"]+)"', matrix)
    build, skip = selectors("build"), selectors("skip")
    configured = [name for name in IDENTIFIERS if matches(name, build) and not matches(name, skip)]
    assert len(configured) >= 6
    assert [re.sub(r"cp3(\d+t?)-.*", r"3.\1", name) for name in configured] == tested


def test_what_is_downloaded_was_uploaded():
    def names(action):
        return set(re.findall(rf"{action}-artifact@.*\n\s+with:\n\s+name: ([\w-]+)", TEXT))

    assert names("download") <= names("upload")
    assert {"distributions", "bill-of-materials", "release-notes"} <= names("download")


def test_every_job_has_a_time_limit():
    for name in WORKFLOWS:
        for job, text in jobs(name).items():
            assert ("timeout-minutes: " in text) != ("uses: ./" in text), f"{name}: {job}"


def test_nothing_is_written_with_a_secret_and_only_releases_write():
    assert not re.search(r"\bsecrets\b", TEXT)
    assert {name for name, text in WORKFLOWS.items() if re.search(r":\s*write\b|write-all", text)} == {"release.yml"}
    for job, text in jobs("release.yml").items():
        assert ("if: github.event_name == 'push'" in text) == bool(re.search(r":\s*write\b", text)), job


def test_machines_of_the_project_run_for_no_pull_request():
    assert [name for name, text in WORKFLOWS.items() if re.search(r"runs-on:.*self-hosted", text)] == ["gpu.yml"]
    triggers = WORKFLOWS["gpu.yml"].partition("\non:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^  (\w+):", triggers, re.MULTILINE) == ["schedule", "workflow_dispatch"]
