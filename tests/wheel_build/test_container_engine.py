"""Podman works with separate settings; missing programs are installed, or named with the remedy."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from tests.wheel_build.conftest import AddProgram

import container_engine
from build_steps import BuildError
from container_engine import configure, containers_settings, require_programs

PROGRAMS = ("podman", "runc", "mmdebstrap")
RECORD_ARGUMENTS = 'echo "${0##*/} $*" >> '


@pytest.fixture
def _empty_machine(add_program: AddProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only programs that the test adds are on the path."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(container_engine, "SYSTEM_FOLDERS", ())


@pytest.mark.usefixtures("_empty_machine")
def test_root_gets_missing_programs_installed(
    add_program: AddProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_program("apt-get", f"{RECORD_ARGUMENTS} {tmp_path}/calls")
    add_program("runc", "exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    require_programs(PROGRAMS)
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert calls == ["apt-get update", "apt-get install --yes --no-install-recommends podman mmdebstrap"]


@pytest.mark.usefixtures("_empty_machine")
def test_other_users_get_an_error_with_the_command(add_program: AddProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    add_program("apt-get", "exit 1")
    add_program("podman", "exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BuildError, match=r"no runc and no mmdebstrap here; as root, run: apt-get install .*runc"):
        require_programs(PROGRAMS)


@pytest.mark.usefixtures("_empty_machine")
def test_without_apt_the_missing_programs_are_named() -> None:
    with pytest.raises(BuildError, match="no podman and no runc and no mmdebstrap here, and no apt-get"):
        require_programs(PROGRAMS)


@pytest.mark.usefixtures("_empty_machine")
def test_nothing_is_installed_if_no_program_is_missing(add_program: AddProgram) -> None:
    for name in ("apt-get", *PROGRAMS):
        add_program(name, "exit 1")
    require_programs(PROGRAMS)


def test_storage_that_cannot_share_files_copies_them(add_program: AddProgram, tmp_path: Path) -> None:
    add_program("podman", '! grep --quiet overlay "$CONTAINERS_STORAGE_CONF"')
    configure(tmp_path / "cache", {}, [])
    assert 'driver = "vfs"' in (tmp_path / "cache" / "storage.conf").read_text(encoding="utf-8")


def test_storage_that_works_is_kept_in_the_folder(add_program: AddProgram, tmp_path: Path) -> None:
    add_program("podman", "exit 0")
    configure(tmp_path / "cache", {}, [])
    settings = (tmp_path / "cache" / "storage.conf").read_text(encoding="utf-8")
    assert 'driver = "overlay"' in settings
    assert f'graphroot = "{tmp_path}/cache/overlay"' in settings


def test_podman_that_does_not_work_is_an_error_with_its_output(add_program: AddProgram, tmp_path: Path) -> None:
    add_program("podman", "echo 'no such kernel' >&2; exit 125")
    with pytest.raises(BuildError, match="exit status 125 of: podman info\nno such kernel"):
        configure(tmp_path / "cache", {}, [])


def test_containers_get_variables_whose_values_are_not_written_down(add_program: AddProgram, tmp_path: Path) -> None:
    add_program("podman", 'echo "$PIP_INDEX_URL"')
    podman = configure(tmp_path / "cache", {"PIP_INDEX_URL": "https://user:password@a/"}, [])
    settings = (tmp_path / "cache" / "containers.conf").read_text(encoding="utf-8")
    assert 'env = ["PIP_INDEX_URL"]' in settings
    assert "password" not in settings
    assert podman.output("images") == "https://user:password@a/\n"


def test_containers_read_what_is_mounted_and_cannot_write_it() -> None:
    assert 'volumes = ["/a:/a:ro", "/b/c:/b/c:ro"]' in containers_settings([], [Path("/a"), Path("/b/c")])


def test_containers_have_the_limits_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    highest = tmp_path / "pid_max"
    highest.write_text("32768\n", encoding="ascii")
    monkeypatch.setattr(container_engine, "HIGHEST_PROCESS_ID", highest)
    limits = {resource.RLIMIT_NOFILE: (10, 2000), resource.RLIMIT_NPROC: (10, 3000)}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits[kind])
    assert 'default_ulimits = ["nofile=2000:2000", "nproc=3000:3000"]' in containers_settings([], [])
    for most in (99999, resource.RLIM_INFINITY):
        limits[resource.RLIMIT_NPROC] = (10, most)
        assert '"nproc=32768:32768"]' in containers_settings([], [])
