"""System packages for tests are fetched with apt-get, where failure is an error; without it tests are skipped."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests import system_packages

AddProgram = Callable[[str, str], None]


@pytest.fixture
def add_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AddProgram:
    """Writes a shell script that precedes the system's programs on the path during the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    installed = tmp_path / "status"
    installed.write_text("Package: bash\n", encoding="utf-8")
    monkeypatch.setattr(system_packages, "INSTALLED", installed)

    def add(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    return add


def test_without_apt_nothing_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    system_packages.fetch(tmp_path / "system")
    assert "no apt-get here" in capsys.readouterr().out
    assert not (tmp_path / "system").exists()


def test_with_apt_a_failure_is_an_error(tmp_path: Path, add_program: AddProgram) -> None:
    add_program("apt-get", 'case "$*" in *install*) exit 100;; esac')
    add_program("apt-cache", "echo '  Candidate: 1.0'")
    add_program("dpkg-deb", "exit 1")
    with pytest.raises(SystemExit, match=r"exit status 100 of: apt-get .* install chromium"):
        system_packages.fetch(tmp_path / "system")
    assert not (tmp_path / "system").exists()


def test_lists_that_cannot_be_fetched_are_an_error_with_a_remedy(tmp_path: Path, add_program: AddProgram) -> None:
    add_program("apt-get", "exit 100")
    add_program("apt-cache", "echo '  Candidate: (none)'")
    add_program("dpkg-deb", "exit 1")
    with pytest.raises(SystemExit, match="make test DOORSTEP_TEST_SYSTEM="):
        system_packages.fetch(tmp_path / "system")
    assert not (tmp_path / "system").exists()


def test_what_a_distribution_has_is_extracted_once(
    tmp_path: Path, add_program: AddProgram, capsys: pytest.CaptureFixture[str]
) -> None:
    add_program("apt-cache", 'case "$*" in *chromium) ;; *) echo "  Candidate: 1.0";; esac')
    add_program(
        "apt-get",
        'for option; do case "$option" in --option=Dir::Cache=*) cache="${option#*::Cache=}";; esac; done\n'
        'case "$*" in *install*) echo package > "$cache/archives/some.deb";; esac',
    )
    add_program("dpkg-deb", 'cp "$2" "$3/extracted"')
    system_packages.fetch(tmp_path / "system")
    assert "this distribution has no package chromium" in capsys.readouterr().out
    assert (tmp_path / "system" / "extracted").read_text(encoding="utf-8") == "package\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "status", "system", "system.lock"]

    add_program("apt-get", "exit 100")
    system_packages.fetch(tmp_path / "system")
    assert capsys.readouterr().out == ""


def test_two_processes_that_fetch_at_once_take_turns(tmp_path: Path, add_program: AddProgram) -> None:
    add_program("apt-cache", "echo '  Candidate: 1.0'")
    add_program("apt-get", f'case "$*" in *install*) echo begin >> {tmp_path}/log; sleep 0.3;; esac')
    add_program("dpkg-deb", "exit 1")
    with ThreadPoolExecutor(2) as threads:
        for fetched in [threads.submit(system_packages.fetch, tmp_path / "system") for _ in range(2)]:
            fetched.result()
    assert (tmp_path / "log").read_text(encoding="utf-8") == "begin\n"
    assert (tmp_path / "system" / system_packages.STAMP).exists()


def test_other_packages_of_the_machine_make_it_fetch_again(tmp_path: Path, add_program: AddProgram) -> None:
    stamp = tmp_path / "system" / system_packages.STAMP
    stamp.parent.mkdir()
    identity = hashlib.sha256("\n".join(system_packages.PACKAGES).encode() + b"Package: bash\n").hexdigest()
    stamp.write_text(identity, encoding="utf-8")
    add_program("apt-get", "exit 100")
    add_program("apt-cache", "echo '  Candidate: 1.0'")
    add_program("dpkg-deb", "exit 1")
    system_packages.fetch(tmp_path / "system")
    (tmp_path / "status").write_text("Package: bash\nPackage: libdrm2\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        system_packages.fetch(tmp_path / "system")


def test_tests_without_the_folder_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOORSTEP_TEST_SYSTEM", raising=False)
    for ask in (
        system_packages.vulkan_environment,
        system_packages.vulkan_headers,
        system_packages.chromium,
        system_packages.chromium_environment,
    ):
        with pytest.raises(pytest.skip.Exception, match="make test makes one"):
            ask()


def test_the_vulkan_driver_is_lavapipe() -> None:
    environment = system_packages.vulkan_environment()
    manifest = json.loads(Path(environment["VK_DRIVER_FILES"]).read_text(encoding="utf-8"))
    driver = Path(manifest["ICD"]["library_path"])
    assert driver.is_absolute()
    assert driver.name == "libvulkan_lvp.so"
    assert driver.exists()


def test_the_browser_runs() -> None:
    command = [*system_packages.chromium_command(), "--dump-dom", "data:text/html,<script>document.write(6*7)</script>"]
    environment = {"PATH": "/usr/bin:/bin", **system_packages.chromium_environment()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert "42" in done.stdout
