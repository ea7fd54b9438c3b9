"""cibuildwheel uses the image's interpreters, the missing ones are printed, and the caller's settings are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.wheel_build.conftest import AddProgram

import container_wheels
import package_index
import repair_wheel
import stand_in_image
from build_steps import BuildError


def test_interpreters_that_the_image_lacks_are_skipped_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert container_wheels.available(["cp310-x", "cp311-x", "cp314t-x"], {"cp314-x", "cp311-x"}) == ["cp311-x"]
    assert "not in the image, neither built nor tested: cp310-x, cp314t-x\n" in capsys.readouterr().err


def test_nothing_is_printed_if_nothing_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert container_wheels.available(["cp311-x"], {"cp314-x", "cp311-x"}) == ["cp311-x"]
    assert capsys.readouterr().err == ""


def test_an_image_without_any_of_the_interpreters_is_an_error() -> None:
    with pytest.raises(BuildError, match=r"chooses cp310-x, .* has cp311-x; .* CIBW_MANYLINUX_X86_64_IMAGE="):
        container_wheels.available(["cp310-x"], {"cp311-x"})


def test_the_callers_settings_are_kept() -> None:
    environment = container_wheels.wheel_environment({"CIBW_CONTAINER_ENGINE": "docker", "OTHER": "1"})
    assert environment["CIBW_CONTAINER_ENGINE"] == "docker"
    assert environment["OTHER"] == "1"
    assert environment["SOURCE_DATE_EPOCH"] == repair_wheel.SOURCE_DATE_EPOCH
    assert container_wheels.wheel_environment({})["CIBW_CONTAINER_ENGINE"].startswith("podman;")


@pytest.fixture
def last_run(add_program: AddProgram, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of the last command; commands are not executed, and the image is named "made here"."""
    environment: dict[str, str] = {}

    def record(command: Sequence[str], variables: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        environment.clear()
        environment.update(variables or {})

    for name in ("podman", "runc", "mmdebstrap"):
        add_program(name, "exit 0")
    monkeypatch.setattr(container_wheels, "run", record)
    monkeypatch.setattr(package_index, "index_variables", dict)
    monkeypatch.setattr(container_wheels, "pack_sources", lambda folder: folder / "doorstep.tar.gz")
    chosen = ["cp310-manylinux_x86_64", "cp313-manylinux_x86_64"]
    monkeypatch.setattr(container_wheels, "_chosen_identifiers", lambda *_: chosen)
    monkeypatch.setattr(stand_in_image, "make", lambda podman: "made here")
    for name in ("CIBW_BUILD", "CIBW_MANYLINUX_X86_64_IMAGE"):
        monkeypatch.delenv(name, raising=False)
    return environment


def test_without_an_image_one_is_made_and_its_interpreters_are_chosen(last_run: dict[str, str], tmp_path: Path) -> None:
    container_wheels.build(tmp_path / "wheels", tmp_path / "cache")
    assert last_run["CIBW_MANYLINUX_X86_64_IMAGE"] == "made here"
    assert last_run["CIBW_BUILD"] == "cp313-manylinux_x86_64"
    assert last_run["CONTAINERS_CONF"] == f"{tmp_path}/cache/containers.conf"


def test_an_image_that_the_caller_names_is_taken_as_it_is(
    last_run: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIBW_MANYLINUX_X86_64_IMAGE", "named")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin" / "mmdebstrap").unlink()
    container_wheels.build(tmp_path / "wheels", tmp_path / "cache")
    assert last_run["CIBW_MANYLINUX_X86_64_IMAGE"] == "named"
    assert "CIBW_BUILD" not in last_run
