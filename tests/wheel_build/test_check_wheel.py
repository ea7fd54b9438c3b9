"""The finished wheel passes all checks, and each check refuses a wheel that violates it.

A broken wheel is the finished one with a few bytes changed: a name in a library's string table replaced by one of
equal length, or an entry of its dynamic section by another.
"""

from __future__ import annotations

import functools
import json
import re
import struct
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerSymSection
from tests.wheel_build.conftest import PROJECT, ChangeWheel

import check_wheel
import library_checks
import sbom
from check_wheel import find_faults
from kernel_image_file import ENTRY, HEADER, MAGIC, unpack
from kernel_images import ARCHITECTURES, ARCHITECTURES_VARIABLE, chosen_architectures
from wheel_file import GRAFTS, LIBRARY, RENDER_LIBRARY, SharedLibrary, header_functions

METADATA_FOLDER = f"doorstep-{sbom.header_version(PROJECT)}.dist-info"
BILL_OF_MATERIALS = f"{METADATA_FOLDER}/{check_wheel.BILL_OF_MATERIALS}"
EMBREE, SHADER_COMPILER = GRAFTS
DT_SONAME, DT_RUNPATH = 14, 29
Output = pytest.CaptureFixture[str]
# The kernels of a library take longer to decode than all other checks together, and most tests leave them alone.
UNPACK = functools.lru_cache(maxsize=4)(unpack)


@pytest.fixture
def library(finished_files: dict[str, bytes]) -> bytes:
    return finished_files[LIBRARY]


@pytest.fixture
def render_library(finished_files: dict[str, bytes]) -> bytes:
    return finished_files[RENDER_LIBRARY]


@pytest.fixture(autouse=True)
def _decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_checks, "unpack", UNPACK)


def read(wheel: Path, name: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name)


def faults_of(wheel: Path, check: str) -> list[str]:
    """The faults of this check; all other checks must find none."""
    faults = find_faults(wheel)
    assert {name for name, sentences in faults.items() if sentences} <= {check}
    return faults[check]


def replace_once(content: bytes, old: bytes, new: bytes) -> bytes:
    assert content.count(old) == 1
    assert len(old) == len(new)
    return content.replace(old, new)


def test_the_readme_says_how_large_the_wheel_is(finished_wheel: Path) -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    told = re.search(r"the wheel has (\d+) MB; with machine code for all GPUs at most (\d+) MB", readme)
    assert told is not None
    assert int(told[2]) * 10**6 == check_wheel.SIZE_LIMIT
    if not chosen_architectures():
        assert abs(finished_wheel.stat().st_size / 1e6 - int(told[1])) < 1


def soname_as(tag: int, library: bytes, text: bytes) -> bytes:
    """The library with its SONAME entry replaced by one of another tag, with the string `text`."""
    patched = bytearray(library)
    position = library.index(b"\0libdoorstep.so\0") + 1
    patched[position : position + len(b"libdoorstep.so")] = text.ljust(len(b"libdoorstep.so"), b"\0")
    entry = dynamic_entry(library, DT_SONAME)
    struct.pack_into("<Q", patched, entry, tag)
    return bytes(patched)


def dynamic_entry(library: bytes, tag: int) -> int:
    """Offset of the entry with this tag in the dynamic section (program header type 2)."""
    (headers,) = struct.unpack_from("<Q", library, 32)
    size, count = struct.unpack_from("<HH", library, 54)
    for header in range(headers, headers + size * count, size):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", library, header)
        if kind == 2:
            return next(i for i in range(offset, offset + length, 16) if struct.unpack_from("<Q", library, i)[0] == tag)
    raise AssertionError("the library has no dynamic section")


def test_the_finished_wheel_has_no_fault(finished_wheel: Path) -> None:
    faults = find_faults(finished_wheel)
    assert len(faults) == len(check_wheel.CHECKS)
    assert not any(faults.values()), faults


def test_an_unchanged_copy_has_no_fault(change_wheel: ChangeWheel) -> None:
    assert not any(find_faults(change_wheel({})).values())


def test_a_wheel_with_another_tag_in_its_name_is_refused(change_wheel: ChangeWheel, finished_wheel: Path) -> None:
    name = finished_wheel.name.replace("manylinux_2_28_x86_64", "linux_x86_64")
    assert f"named {name}" in faults_of(change_wheel({}, file_name=name), "check_tag")[0]


def test_a_wheel_with_another_tag_inside_is_refused(change_wheel: ChangeWheel, finished_wheel: Path) -> None:
    description = read(finished_wheel, f"{METADATA_FOLDER}/WHEEL")
    changed = description.replace(b"Tag: py3-none-manylinux_2_28_x86_64", b"Tag: cp311-cp311-linux_x86_64")
    faults = faults_of(change_wheel({f"{METADATA_FOLDER}/WHEEL": changed}), "check_tag")
    assert "cp311-cp311-linux_x86_64" in faults[0]


def test_a_wheel_tagged_as_pure_is_refused(change_wheel: ChangeWheel, finished_wheel: Path) -> None:
    description = read(finished_wheel, f"{METADATA_FOLDER}/WHEEL")
    changed = description.replace(b"Root-Is-Purelib: false", b"Root-Is-Purelib: true")
    assert "Purelib" in faults_of(change_wheel({f"{METADATA_FOLDER}/WHEEL": changed}), "check_tag")[0]


def test_a_wheel_with_another_version_inside_is_refused(change_wheel: ChangeWheel, finished_wheel: Path) -> None:
    metadata = read(finished_wheel, f"{METADATA_FOLDER}/METADATA")
    changed = metadata.replace(b"\nVersion: ", b"\nVersion: 9", 1)
    assert "has version 9" in faults_of(change_wheel({f"{METADATA_FOLDER}/METADATA": changed}), "check_tag")[0]


def test_a_wheel_with_another_dependency_is_refused(change_wheel: ChangeWheel, finished_wheel: Path) -> None:
    metadata = read(finished_wheel, f"{METADATA_FOLDER}/METADATA")
    changed = metadata.replace(b"\nRequires-Dist: numpy", b"\nRequires-Dist: scipy>=1\nRequires-Dist: numpy", 1)
    faults = faults_of(change_wheel({f"{METADATA_FOLDER}/METADATA": changed}), "check_dependencies")
    assert faults == ["METADATA requires ['numpy', 'scipy'], not ['numpy']"]


@pytest.mark.parametrize("name", ["doorstep/scratch.py", "doorstep.libs/libembree4-00000000.so.4", "tests/conftest.py"])
def test_a_wheel_with_a_stray_file_is_refused(change_wheel: ChangeWheel, name: str) -> None:
    assert faults_of(change_wheel({name: b""}), "check_files") == [f"{name} does not belong into the wheel"]


@pytest.mark.parametrize("name", ["doorstep/py.typed", "doorstep/include/doorstep/rooms.h"])
def test_a_wheel_without_one_of_its_files_is_refused(change_wheel: ChangeWheel, name: str) -> None:
    assert faults_of(change_wheel({name: None}), "check_files") == [f"{name} is missing"]


@pytest.mark.parametrize("name", [LIBRARY, RENDER_LIBRARY, *GRAFTS])
def test_a_wheel_without_one_of_its_libraries_is_refused(change_wheel: ChangeWheel, name: str) -> None:
    assert faults_of(change_wheel({name: None}), "check_files") == [f"{name} is missing"]


def test_a_file_that_is_not_as_recorded_is_refused(change_wheel: ChangeWheel, finished_wheel: Path) -> None:
    record = read(finished_wheel, f"{METADATA_FOLDER}/RECORD")
    wheel = change_wheel({"doorstep/errors.py": b"raise SystemExit\n", f"{METADATA_FOLDER}/RECORD": record})
    faults = faults_of(wheel, "check_record")
    assert len(faults) == 1
    assert "doorstep/errors.py" in faults[0]


@pytest.mark.parametrize("name", check_wheel.LICENCES)
def test_a_wheel_without_a_licence_is_refused(change_wheel: ChangeWheel, name: str) -> None:
    faults = faults_of(change_wheel({f"{METADATA_FOLDER}/licenses/{name}": b"none"}), "check_licence")
    assert faults[0].startswith(f"licenses/{name} is missing")


def test_a_wheel_under_another_licence_is_refused(change_wheel: ChangeWheel, finished_wheel: Path) -> None:
    metadata = read(finished_wheel, f"{METADATA_FOLDER}/METADATA")
    changed = metadata.replace(b"License-Expression: Apache-2.0", b"License-Expression: MIT", 1)
    faults = faults_of(change_wheel({f"{METADATA_FOLDER}/METADATA": changed}), "check_licence")
    assert len(faults) == 1
    assert "has the licence MIT AND" in faults[0]


@pytest.mark.parametrize("key", ["version", "hashes", "licenses", "name"])
def test_a_bill_of_materials_with_something_else_is_refused(
    change_wheel: ChangeWheel, finished_wheel: Path, key: str
) -> None:
    bill = json.loads(read(finished_wheel, BILL_OF_MATERIALS))
    del bill["components"][0][key]
    faults = faults_of(change_wheel({BILL_OF_MATERIALS: json.dumps(bill).encode()}), "check_bill_of_materials")
    assert len(faults) == 1
    assert faults[0].startswith(f"{check_wheel.BILL_OF_MATERIALS} has components [")


def test_a_bill_of_materials_that_cannot_be_read_is_refused(change_wheel: ChangeWheel) -> None:
    faults = faults_of(change_wheel({BILL_OF_MATERIALS: b"none"}), "check_bill_of_materials")
    assert "is not JSON" in faults[0]


def test_a_wheel_that_is_too_large_is_refused(finished_wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = finished_wheel.stat().st_size
    monkeypatch.setattr(check_wheel, "SIZE_LIMIT", size - 1)
    assert faults_of(finished_wheel, "check_size") == [f"the wheel has {size} bytes, more than {size - 1}"]


def test_the_release_with_machine_code_for_every_architecture_will_be_small_enough(
    finished_wheel: Path, library: bytes
) -> None:
    start = library.index(MAGIC)
    _, count, _ = HEADER.unpack_from(library, start)
    entries = [ENTRY.unpack_from(library, start + HEADER.size + index * ENTRY.size) for index in range(count)]
    streams = {architecture: stream_bytes for _, architecture, _, stream_bytes, _, _ in entries}
    missing = set(ARCHITECTURES) - streams.keys()
    # That of PTX is the largest: 1.4 MB, those of machine code have 0.87 to 1.14 MB.
    assert finished_wheel.stat().st_size + len(missing) * max(streams.values()) <= check_wheel.SIZE_LIMIT


def test_a_library_that_needs_another_library_is_refused(change_wheel: ChangeWheel, library: bytes) -> None:
    wheel = change_wheel({LIBRARY: replace_once(library, b"\0libpthread.so.0\0", b"\0libstdc++.so.6\0\0")})
    assert "libdoorstep.so needs libstdc++.so.6" in find_faults(wheel)["check_needed"][0]


@pytest.mark.parametrize("name", GRAFTS)
def test_a_third_party_library_that_needs_another_library_is_refused(
    change_wheel: ChangeWheel, finished_wheel: Path, name: str
) -> None:
    wheel = change_wheel({name: replace_once(read(finished_wheel, name), b"\0libdl.so.2\0", b"\0libX9.so.2\0")})
    assert f"{name.rpartition('/')[2]} needs libX9.so.2" in find_faults(wheel)["check_needed"][0]


def test_a_rendering_library_that_needs_the_systems_libraries_instead_is_refused(
    change_wheel: ChangeWheel, render_library: bytes
) -> None:
    grafted = EMBREE.rpartition("/")[2].encode()
    other = b"libembree4.so.4".ljust(len(grafted), b"\0")
    faults = find_faults(change_wheel({RENDER_LIBRARY: replace_once(render_library, grafted, other)}))["check_needed"]
    assert len(faults) == 2
    assert faults[0].startswith("libdoorstep_render.so needs libembree4.so.4, which is not among ")
    assert faults[1] == f"libdoorstep_render.so does not need {grafted.decode()}, which is in the wheel for it"


def test_the_core_needs_nothing_of_the_rendering_library(finished_wheel: Path) -> None:
    core = SharedLibrary(LIBRARY, read(finished_wheel, LIBRARY))
    assert not [name for name in core.dynamic_entries("DT_NEEDED") if "embree" in name or "dxcompiler" in name]


@pytest.mark.parametrize("folder", ["/opt/lib", "lib", "$ORIGINAL", ""])
def test_a_runpath_outside_the_wheel_is_refused(change_wheel: ChangeWheel, library: bytes, folder: str) -> None:
    wheel = change_wheel({LIBRARY: soname_as(DT_RUNPATH, library, folder.encode())})
    assert f"libdoorstep.so looks for libraries in {folder!r}" in find_faults(wheel)["check_runpath"][0]


@pytest.mark.parametrize("folder", ["$ORIGIN", "$ORIGIN/../lib"])
def test_a_runpath_inside_the_wheel_is_accepted(change_wheel: ChangeWheel, library: bytes, folder: str) -> None:
    wheel = change_wheel({LIBRARY: soname_as(DT_RUNPATH, library, folder.encode())})
    assert find_faults(wheel)["check_runpath"] == []


def test_a_rendering_library_with_another_rpath_is_refused(change_wheel: ChangeWheel, render_library: bytes) -> None:
    changed = replace_once(render_library, b"\0$ORIGIN/../../doorstep.libs\0", b"\0$ORIGIN/../../doorstep.LIBS\0")
    assert faults_of(change_wheel({RENDER_LIBRARY: changed}), "check_runpath") == [
        "libdoorstep_render.so does not look for libraries in $ORIGIN/../../doorstep.libs"
    ]


def test_a_rendering_library_that_imports_other_third_party_functions_is_refused(
    change_wheel: ChangeWheel, render_library: bytes
) -> None:
    changed = replace_once(render_library, b"\0DxcCreateInstance\0", b"\0_ZdlPvmSt11align_\0")
    assert faults_of(change_wheel({RENDER_LIBRARY: changed}), "check_imports") == [
        "libdoorstep_render.so imports _ZdlPvmSt11align_, which is for no library that it needs to bring"
    ]


def test_a_library_for_a_newer_glibc_is_refused(change_wheel: ChangeWheel, library: bytes) -> None:
    wheel = change_wheel({LIBRARY: replace_once(library, b"\0GLIBC_2.14\0", b"\0GLIBC_2.29\0")})
    assert faults_of(wheel, "check_symbol_versions") == ["libdoorstep.so needs GLIBC_2.29, above GLIBC_2.28"]


def test_a_library_that_needs_versions_of_another_library_is_refused(change_wheel: ChangeWheel, library: bytes) -> None:
    wheel = change_wheel({LIBRARY: replace_once(library, b"\0GLIBC_2.14\0", b"\0CXXABI_1.3\0")})
    assert "CXXABI_1.3" in faults_of(wheel, "check_symbol_versions")[0]


def test_exports_that_differ_from_the_header_are_refused(change_wheel: ChangeWheel, library: bytes) -> None:
    wheel = change_wheel({LIBRARY: library.replace(b"\0ds_version\0", b"\0ds_secrets\0")})
    assert faults_of(wheel, "check_exports") == [
        "libdoorstep.so exports ds_secrets, which doorstep.h does not declare",
        "doorstep.h declares ds_version, which libdoorstep.so does not export",
    ]


def test_exports_of_the_rendering_library_that_differ_from_its_header_are_refused(
    change_wheel: ChangeWheel, render_library: bytes
) -> None:
    wheel = change_wheel({RENDER_LIBRARY: replace_once(render_library, b"\0ds_render_open\0", b"\0ds_render_shut\0")})
    assert faults_of(wheel, "check_exports") == [
        "libdoorstep_render.so exports ds_render_shut, which doorstep_render.h does not declare",
        "doorstep_render.h declares ds_render_open, which libdoorstep_render.so does not export",
    ]


def test_a_library_that_imports_an_unknown_symbol_is_refused(change_wheel: ChangeWheel, library: bytes) -> None:
    patched = bytearray(library)
    versions = ELFFile(BytesIO(library)).get_section_by_name(".gnu.version")
    assert isinstance(versions, GNUVerSymSection)
    symbol = next(i for i, version in enumerate(versions.iter_symbols()) if isinstance(version["ndx"], int))
    struct.pack_into("<H", patched, versions["sh_offset"] + 2 * symbol, 1)  # the version of unversioned symbols
    faults = faults_of(change_wheel({LIBRARY: bytes(patched)}), "check_imports")
    assert len(faults) == 1
    assert faults[0].endswith(", which is for no library that it needs to bring")


@pytest.mark.parametrize("name", GRAFTS)
def test_a_third_party_library_with_another_instruction_is_refused(
    change_wheel: ChangeWheel, finished_wheel: Path, name: str
) -> None:
    patched = bytearray(read(finished_wheel, name))
    text = ELFFile(BytesIO(bytes(patched))).get_section_by_name(".text")
    assert text is not None
    patched[text["sh_offset"] + text["sh_size"] // 2] ^= 1
    faults = faults_of(change_wheel({name: bytes(patched)}), "check_grafts")
    assert len(faults) == 1
    assert f"{name.rpartition('/')[2]} has other content than {GRAFTS[name].file} of" in faults[0]


def test_a_third_party_library_with_another_soname_is_refused(change_wheel: ChangeWheel, finished_wheel: Path) -> None:
    soname = EMBREE.rpartition("/")[2].encode()
    changed = replace_once(read(finished_wheel, EMBREE), soname, soname.replace(b"embree", b"EMBREE"))
    assert faults_of(change_wheel({EMBREE: changed}), "check_grafts") == [
        f"{soname.decode()} has the soname ['{soname.decode().replace('embree', 'EMBREE')}']"
    ]


@pytest.mark.parametrize("name", [*GRAFTS, LIBRARY])
def test_another_version_than_the_bill_of_materials_says_is_refused(
    change_wheel: ChangeWheel, finished_wheel: Path, name: str
) -> None:
    old, new = {
        EMBREE: (b"\x004.3.2\0", b"\x004.3.3\0"),
        SHADER_COMPILER: (b"1.8.0.4461 (11e1318", b"1.8.0.4462 (11e1318"),
        LIBRARY: (b" V13.4.92\0", b" V13.4.93\0"),
    }[name]
    faults = find_faults(change_wheel({name: read(finished_wheel, name).replace(old, new)}))
    assert len(faults["check_versions"]) == 1
    assert faults["check_versions"][0].startswith(f"{name.rpartition('/')[2]} does not have the version text of ")


def test_a_library_without_kernels_is_refused(change_wheel: ChangeWheel, library: bytes) -> None:
    faults = faults_of(change_wheel({LIBRARY: replace_once(library, MAGIC, bytes(len(MAGIC)))}), "check_kernels")
    kinds = ["PTX", *(f"sm_{number}" for number in chosen_architectures())]
    # Training, views, policies, and six kinds of worlds; policies of bf16, from sm_80 on
    assert len(faults) == 9 * len(kinds) + len(set(kinds) - {"sm_75"})
    assert {f"the library has no kernels for 3_agents as {kind}" for kind in kinds} <= set(faults)


def test_a_wheel_without_selected_machine_code_is_refused(
    change_wheel: ChangeWheel, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, built_for = change_wheel({}), chosen_architectures()
    monkeypatch.setenv(ARCHITECTURES_VARIABLE, "all")
    missing = set(ARCHITECTURES) - set(built_for)
    assert {fault for fault in faults_of(wheel, "check_kernels") if " 2_agents as" in fault} == {
        f"the library has no kernels for 2_agents as sm_{number}" for number in missing
    }


def test_kernels_for_another_architecture_than_they_say_are_refused(change_wheel: ChangeWheel, library: bytes) -> None:
    patched = bytearray(library)
    entry = library.index(MAGIC) + HEADER.size  # the first: training, as PTX
    struct.pack_into("<i", patched, entry + 4, 76)
    assert faults_of(change_wheel({LIBRARY: bytes(patched)}), "check_kernels") == [
        "the library has no kernels for training as PTX",
        "the library has kernels for training as sm_76, which were not requested",
        "the kernels for training as sm_76 are something else",
    ]


def test_the_functions_of_the_header_are_found_with_any_return_type() -> None:
    functions = header_functions(PROJECT, "doorstep.h")
    assert {"ds_version", "ds_simulator_step", "ds_capsule_destructor", "ds_stage_name"} <= functions
    assert not functions & {"ds_status", "ds_api"}


def test_a_library_with_a_path_of_the_building_machine_is_refused(change_wheel: ChangeWheel, library: bytes) -> None:
    wheel = change_wheel({LIBRARY: library + b"\0/home/builder/native/world.h\0"})
    faults = faults_of(wheel, "check_paths")
    assert faults == ["libdoorstep.so contains the absolute path /home/builder/native/world.h"]


def test_paths_that_every_machine_has_are_accepted(change_wheel: ChangeWheel, library: bytes) -> None:
    wheel = change_wheel(
        {LIBRARY: library + b"\0/proc/self/cgroup\0/sys/fs/cgroup/cpu.max\0https://doorstep.example/a\0"}
    )
    assert find_faults(wheel)["check_paths"] == []


def test_a_module_with_the_path_of_the_project_is_refused(change_wheel: ChangeWheel) -> None:
    wheel = change_wheel({"doorstep/errors.py": f"LIBRARY = '{PROJECT}/build/libdoorstep.so'\n".encode()})
    assert "doorstep/errors.py contains the path of the project" in faults_of(wheel, "check_paths")[0]


def test_the_command_reports_faults_and_fails(change_wheel: ChangeWheel, capsys: Output) -> None:
    assert not check_wheel.check_wheel(change_wheel({"doorstep/scratch.py": b""}))
    output = capsys.readouterr().out
    assert "  fault files\n          doorstep/scratch.py does not belong into the wheel\n" in output
    assert "  ok    exports\n" in output
    architectures = " ".join(f"sm_{one}" for one in chosen_architectures()) or "none"
    assert output.endswith(f"doorstep: kernels: PTX, machine code for {architectures}\n")
