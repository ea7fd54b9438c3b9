"""The image is built once, from packages of the Debian archive of this machine's apt."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from tests.wheel_build.conftest import AddProgram

import stand_in_image
from build_steps import BuildError
from container_engine import Podman

TARGETS = """\
Someone\tmain\tbookworm\thttps://someone/
Debian\tmain\tbookworm-updates\thttps://updates/debian/
Debian\tcontrib\tbookworm\thttps://contrib/debian/
Debian\tmain\tbookworm-security\thttps://security/debian/
Debian\tmain\tbookworm\thttps://mirror/debian/
"""


@pytest.fixture
def podman() -> Podman:
    """Podman without settings."""
    return Podman(os.environ)


@pytest.fixture
def _debian(add_program: AddProgram, tmp_path: Path) -> None:
    """A machine with Debian's archive, with a fake podman that stores images and a fake mmdebstrap."""
    add_program("apt-get", f"printf {shlex.quote(TARGETS)}")
    add_program("apt-config", """echo 'Acquire::http::Proxy "http://proxy/";'; echo 'APT::Color "yes";'""")
    add_program("mmdebstrap", f'printf "%s\\n" "$@" >> {tmp_path}/arguments')
    # podman import --quiet FILE IMAGE
    add_program("podman", f'cd {tmp_path}; case "$1" in images) cat images;; import) echo "$4" >> images;; esac')
    (tmp_path / "images").touch()


@pytest.mark.usefixtures("_debian")
def test_the_image_is_built_once(podman: Podman, tmp_path: Path) -> None:
    image = stand_in_image.make(podman)
    arguments = (tmp_path / "arguments").read_text(encoding="utf-8")
    assert image.startswith(f"{stand_in_image.REPOSITORY}:")
    assert stand_in_image.make(podman) == image
    assert (tmp_path / "arguments").read_text(encoding="utf-8") == arguments


@pytest.mark.usefixtures("_debian")
def test_another_recipe_builds_another_image(podman: Podman, monkeypatch: pytest.MonkeyPatch) -> None:
    image = stand_in_image.make(podman)
    monkeypatch.setattr(stand_in_image, "PYTHONS", ("3.13",))
    assert stand_in_image.make(podman) != image


@pytest.mark.usefixtures("_debian")
def test_packages_come_from_the_archive_of_this_machine_as_it_fetches_them(podman: Podman, tmp_path: Path) -> None:
    stand_in_image.make(podman)
    arguments = (tmp_path / "arguments").read_text(encoding="utf-8").splitlines()
    sources = [argument for argument in arguments if argument.startswith("deb ")]
    assert sources == [f"deb https://mirror/debian/ {suite} main" for suite in stand_in_image.SUITES]
    assert '--aptopt=Acquire::http::Proxy "http://proxy/";' in arguments
    assert not [argument for argument in arguments if "Color" in argument]


def test_lists_that_are_missing_are_fetched(
    add_program: AddProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fetched").write_text(TARGETS, encoding="utf-8")
    (tmp_path / "lists").touch()
    add_program("apt-get", f'cd {tmp_path}; if [ "$1" = update ]; then mv fetched lists; else cat lists; fi')
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert stand_in_image.debian_archive() == "https://mirror/debian/"


@pytest.mark.parametrize("user", [0, 1000])
def test_a_machine_without_a_debian_archive_is_an_error_with_a_remedy(
    add_program: AddProgram, monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
    add_program("apt-get", r"printf 'Ubuntu\tmain\tnoble\thttps://mirror/ubuntu/\n'")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(BuildError, match=r"no lists of a Debian archive; .* as root: apt-get update"):
        stand_in_image.debian_archive()


def test_without_apt_the_error_states_what_apt_is_needed_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match="a Debian archive to make a container image from is found with apt: "):
        stand_in_image.debian_archive()


def test_every_interpreter_is_where_cibuildwheel_looks_for_it() -> None:
    assert stand_in_image.identifiers() == {f"cp3{minor}-manylinux_x86_64" for minor in (11, 13, 14)}
    hooks = [option for option in stand_in_image.bootstrap_options([]) if option.startswith("--customize-hook=")]
    for minor in (11, 13, 14):
        folder = f"/opt/python/cp3{minor}-cp3{minor}"
        assert f'--customize-hook=chroot "$1" python3.{minor} -m venv' in " ".join(hooks)
        assert f"{folder}/bin/python -m pip install" in " ".join(hooks)
