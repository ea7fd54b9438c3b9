"""System packages for tests are fetched with apt-get, where failure is an error; without it tests are skipped."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests import system_packages
from tests.wheel_build.conftest import add_program  # noqa: F401 (a fixture)

DOWNLOADS = """
for option; do case "$option" in --option=Dir::Cache=*) cache="${option#*::Cache=}";; esac; done
case "$*" in *install*) echo begin >> LOG; echo package > "$cache/archives/some.deb";; esac
"""


@pytest.fixture
def machine(add_program, monkeypatch, tmp_path):  # noqa: F811
    """A machine with apt, whose installed packages and programs a test may change."""
    status = tmp_path / "status"
    status.write_text("Package: bash\n", encoding="utf-8")
    monkeypatch.setattr(system_packages, "INSTALLED", status)
    add_program("apt-get", DOWNLOADS.replace("LOG", str(tmp_path / "log")))
    add_program("apt-cache", 'case "$*" in *chromium) ;; *) echo "  Candidate: 1.0";; esac')
    add_program("dpkg-deb", 'cp "$2" "$3/extracted"')
    return add_program


def test_what_a_distribution_has_is_fetched_once_for_the_packages_of_the_machine(machine, tmp_path, capsys):
    folder = tmp_path / "system"
    with ThreadPoolExecutor(2) as threads:  # processes that fetch at once take turns
        for fetched in [threads.submit(system_packages.fetch, folder) for _ in range(2)]:
            fetched.result()
    assert (tmp_path / "log").read_text(encoding="utf-8") == "begin\n"
    assert "this distribution has no package chromium" in capsys.readouterr().out
    assert (folder / "extracted").read_text(encoding="utf-8") == "package\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "log", "status", "system", "system.lock"]
    machine("apt-get", "exit 100")
    system_packages.fetch(folder)
    assert capsys.readouterr().out == ""
    (tmp_path / "status").write_text("Package: bash\nPackage: libdrm2\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        system_packages.fetch(folder)


def test_a_failure_is_an_error_with_a_remedy_and_without_apt_nothing_is_fetched(machine, tmp_path, monkeypatch, capsys):
    machine("apt-get", 'case "$*" in *install*) exit 100;; esac')
    with pytest.raises(SystemExit, match=r"exit status 100 of: apt-get .* install "):
        system_packages.fetch(tmp_path / "system")
    machine("apt-cache", "echo '  Candidate: (none)'")
    with pytest.raises(SystemExit, match="make test DOORSTEP_TEST_SYSTEM="):
        system_packages.fetch(tmp_path / "system")
    monkeypatch.setenv("PATH", "")
    system_packages.fetch(tmp_path / "system")
    assert "no apt-get here" in capsys.readouterr().out
    assert not (tmp_path / "system").exists()


def test_tests_without_the_folder_are_skipped(monkeypatch):
    monkeypatch.delenv("DOORSTEP_TEST_SYSTEM", raising=False)
    for name in ("vulkan_environment", "vulkan_headers", "chromium", "chromium_environment"):
        with pytest.raises(pytest.skip.Exception, match="make test makes one"):
            getattr(system_packages, name)()


def test_the_vulkan_driver_is_lavapipe():
    manifest = json.loads(Path(system_packages.vulkan_environment()["VK_DRIVER_FILES"]).read_text(encoding="utf-8"))
    driver = Path(manifest["ICD"]["library_path"])
    assert (driver.name, driver.exists(), driver.is_absolute()) == ("libvulkan_lvp.so", True, True)
