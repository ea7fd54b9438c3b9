"""The wheel of cibuildwheel and the locally built one have the same contents, if both exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.wheel_build.conftest import PROJECT

from kernel_image_file import unpack
from wheel_file import LIBRARY, Wheel


@pytest.fixture(scope="module")
def container_wheel() -> Wheel:
    wheels = list((PROJECT / "wheelhouse").glob("doorstep-*.whl"))
    if not wheels:
        pytest.skip("no wheel of cibuildwheel: make wheels")
    (path,) = wheels
    return Wheel(path, PROJECT)


@pytest.fixture(scope="module")
def local_wheel(finished_wheel: Path) -> Wheel:
    return Wheel(finished_wheel, PROJECT)


def test_they_have_the_same_name_and_list_the_same_files(container_wheel: Wheel, local_wheel: Wheel) -> None:
    assert container_wheel.path.name == local_wheel.path.name
    assert list(container_wheel.files) == list(local_wheel.files)


def test_every_file_is_the_same_except_for_kernels_of_unselected_architectures(
    container_wheel: Wheel, local_wheel: Wheel
) -> None:
    images = [unpack(wheel.files[LIBRARY]) for wheel in (container_wheel, local_wheel)]
    shared = images[0].keys() & images[1].keys()
    assert shared == images[1].keys() != set()  # the container's has those of all architectures
    assert [name for name in shared if images[0][name] != images[1][name]] == []
    names = [name for name in local_wheel.files if container_wheel.files[name] != local_wheel.files[name]]
    if images[0].keys() == images[1].keys():
        assert names == []
    else:
        assert {name.rpartition("/")[2] for name in names} == {"libdoorstep.so", "RECORD"}


def test_the_libraries_import_and_export_the_same(container_wheel: Wheel, local_wheel: Wheel) -> None:
    assert container_wheel.libraries.keys() == local_wheel.libraries.keys()
    for name, library in container_wheel.libraries.items():
        other = local_wheel.libraries[name]
        assert library.exports() == other.exports()
        assert set(library.needed_versions()) == set(other.needed_versions())
        for tag in ("DT_NEEDED", "DT_RPATH", "DT_RUNPATH", "DT_SONAME"):
            assert library.dynamic_entries(tag) == other.dynamic_entries(tag)
