"""Wheels that pip builds from the sources are complete, independent of the build folder, and reproducible."""

import os
import subprocess
import sys
import tarfile

import pytest
from tests.system_packages import vulkan_environment
from tests.wheel_build.conftest import PROJECT

from native_build import third_party_folder
from repair_wheel import graft
from wheel_file import Wheel

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

DRAW = """
import sys
import doorstep
for renderer in sys.argv[1:]:
    with doorstep.Simulator(2, seed=3, cameras=doorstep.Cameras(width=32, height=32, renderer=renderer)) as sim:
        sim.step()
        print(renderer, len(set(sim.rgb.to_numpy().reshape(-1, 4).view("u4").ravel().tolist())) > 10)
"""


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The published sources (sdist)."""
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    subprocess.run(command, cwd=PROJECT, check=True)
    (path,) = folder.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel that pip builds in a temporary folder, with the build requirements that it installs."""
    folder = tmp_path_factory.mktemp("built")
    # Sharing the compiler's cache, which is keyed by content, saves time.
    environment = {"ZIG_GLOBAL_CACHE_DIR": str(PROJECT / "build" / "zig-cache"), **os.environ}
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder), str(sdist)]
    subprocess.run(command, env=environment, check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The programs of an environment with this wheel."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", str(wheel)], check=True)
    return folder / "bin"


def test_the_sources_are_published_with_everything_a_build_reads(sdist):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("no git: these are not a clone's sources")
    sources = {name for name in listed.stdout.split() if (PROJECT / name).exists()}
    with tarfile.open(sdist) as archive:
        published = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in sources - published if not name.startswith((".ci/", ".github/"))} == set()
    assert published - sources == {"PKG-INFO"}


def test_a_wheel_that_was_not_graded_has_the_tag_of_the_building_machine(wheel):
    assert wheel.name.endswith("-py3-none-linux_x86_64.whl")
    assert Wheel(wheel, PROJECT).message("WHEEL").get_all("Tag") == ["py3-none-linux_x86_64"]


def test_two_builds_in_two_folders_are_equal_to_the_byte(wheel, tmp_path):
    (built,) = (PROJECT / "build" / "wheel" / "built").glob("*.whl")
    other = graft(built, tmp_path, third_party_folder(PROJECT))
    here, there = Wheel(wheel, PROJECT).files, Wheel(other, PROJECT).files
    assert [name for name in here.keys() | there.keys() if here.get(name) != there.get(name)] == []
    assert (wheel.name, wheel.read_bytes()) == (other.name, other.read_bytes())


def test_every_renderer_draws_after_the_sources_are_removed(installed, tmp_path):
    renderers = ("raycast", "embree", "vulkan")
    command = [str(installed / "python"), "-c", DRAW, *renderers]
    environment = {**os.environ, **vulkan_environment()}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [word for name in renderers for word in (name, "True")], done.stderr
