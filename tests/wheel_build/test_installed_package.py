"""The tests use the installed wheel, byte for byte, and neither the sources nor an older wheel."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.wheel_build.conftest import PROJECT

import doorstep


def test_the_package_under_test_is_not_the_source_tree() -> None:
    assert not Path(doorstep.__file__).is_relative_to(PROJECT / "pkg")


def test_the_package_under_test_is_the_finished_wheel(finished_wheel: Path) -> None:
    site_packages = Path(doorstep.__file__).parent.parent
    with zipfile.ZipFile(finished_wheel) as archive:
        for name in archive.namelist():
            if name.startswith(("doorstep/", "doorstep.libs/")) and not name.endswith("/"):
                assert (site_packages / name).read_bytes() == archive.read(name), name
