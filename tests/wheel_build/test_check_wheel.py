"""The finished wheel passes all checks, and each check refuses a wheel that violates it.

A broken wheel is the finished one with a few bytes changed: a name in a library's string table replaced by one of
equal length, or an entry of its dynamic section by another.
"""

import functools
import json
import re
import struct
import zipfile
from io import BytesIO

import pytest
from elftools.elf.elffile import ELFFile
from tests.wheel_build.conftest import PROJECT

import check_wheel
import library_checks
import sbom
from check_wheel import CHECKS, check_record, find_faults
from kernel_image_file import HEADER, MAGIC, unpack
from kernel_images import ARCHITECTURES, ARCHITECTURES_VARIABLE, chosen_architectures
from wheel_file import GRAFTS, LIBRARY, RENDER_LIBRARY, Wheel

FOLDER = f"doorstep-{sbom.header_version(PROJECT)}.dist-info"
BILL = f"{FOLDER}/{check_wheel.BILL_OF_MATERIALS}"
EMBREE, SHADER_COMPILER = GRAFTS
EMBREE_NAME = EMBREE.rpartition("/")[2]
DT_RUNPATH = 29


def edited(name, old, new):
    """A change of a file, in which `old` becomes `new`: of a library's many bytes only as many others."""

    def change(files):
        assert old in files[name]
        assert not name.endswith((".so", ".4")) or len(old) == len(new)
        return {name: files[name].replace(old, new)}

    return change


def with_file(name, content=b""):
    return lambda files: {name: content if content is None else files.get(name, b"") + content}


def without_key(key):
    def change(files):
        bill = json.loads(files[BILL])
        del bill["components"][0][key]
        return {BILL: json.dumps(bill).encode()}

    return change


def patched(name, patch, *arguments):
    """A change of a library, in whose bytes patch(bytes, its sections, ...) writes."""

    def change(files):
        content = bytearray(files[name])
        patch(content, ELFFile(BytesIO(files[name])).get_section_by_name, *arguments)
        return {name: bytes(content)}

    return change


def flip(content, section):
    """In the middle of a library's instructions."""
    content[section(".text")["sh_offset"] + section(".text")["sh_size"] // 2] ^= 1


def write_runpath(content, section, folder):
    """The library's SONAME entry becomes a RUNPATH."""
    soname = b"libdoorstep.so"
    position = content.index(b"\0" + soname + b"\0") + 1
    content[position : position + len(soname)] = folder.encode().ljust(len(soname), b"\0")
    tags = [entry["d_tag"] for entry in section(".dynamic").iter_tags()]
    struct.pack_into("<Q", content, section(".dynamic")["sh_offset"] + 16 * tags.index("DT_SONAME"), DT_RUNPATH)


def write_unversioned_import(content, section):
    versions = section(".gnu.version")
    symbol = next(i for i, version in enumerate(versions.iter_symbols()) if isinstance(version["ndx"], int))
    struct.pack_into("<H", content, versions["sh_offset"] + 2 * symbol, 1)  # the version of unversioned symbols


def write_other_architecture(content, section):
    struct.pack_into("<i", content, content.index(MAGIC) + HEADER.size + 4, 76)  # the first: training, as PTX


def outside(folder):
    return f"libdoorstep.so looks for libraries in {folder!r}, which is not relative to $ORIGIN"


# A check, what is changed, and how the sentences begin of all faults that the check finds then.
CHANGES = [
    ("tag", edited(f"{FOLDER}/WHEEL", b"Tag: py3-none-manylinux_2_28_x86_64", b"Tag: cp311-cp311-linux_x86_64"),
     ["WHEEL has the tags ['cp311-cp311-linux_x86_64'], not py3-none-manylinux_2_28_x86_64 alone"]),
    ("tag", edited(f"{FOLDER}/WHEEL", b"Root-Is-Purelib: false", b"Root-Is-Purelib: true"), ["WHEEL says Root-Is-P"]),
    ("tag", edited(f"{FOLDER}/METADATA", b"\nVersion: ", b"\nVersion: 9"), ["METADATA has version 9"]),
    ("dependencies", edited(f"{FOLDER}/METADATA", b"\nRequires-Dist: numpy", b"\nRequires-Dist: scipy>=1\n" * 2),
     ["METADATA requires ['scipy'], not ['numpy']"]),
    ("files", with_file("doorstep/scratch.py"), ["doorstep/scratch.py does not belong into the wheel"]),
    ("files", with_file("doorstep.libs/libembree4-00000000.so.4"), ["doorstep.libs/libembree4-00000000.so.4 does not"]),
    ("files", with_file("doorstep/py.typed", None), ["doorstep/py.typed is missing"]),
    ("files", with_file("doorstep/include/doorstep/rooms.h", None), ["doorstep/include/doorstep/rooms.h is missing"]),
    *(("licence", edited(f"{FOLDER}/licenses/{name}", words.encode(), b"none"),
       [f"licenses/{name} is missing or does not have the words {words}"])
      for name, words in check_wheel.LICENCES.items()),
    ("licence", edited(f"{FOLDER}/METADATA", b"License-Expression: Apache-2.0", b"License-Expression: MIT"),
     ["METADATA has the licence MIT AND"]),
    *(("bill_of_materials", without_key(key), [f"{check_wheel.BILL_OF_MATERIALS} has components ["])
      for key in ("version", "hashes", "licenses", "name")),
    ("bill_of_materials", with_file(BILL, b"none"), [f"{check_wheel.BILL_OF_MATERIALS} is not JSON"]),
    ("needed", edited(LIBRARY, b"\0libpthread.so.0\0", b"\0libstdc++.so.6\0\0"),
     ["libdoorstep.so needs libstdc++.so.6"]),
    *(("needed", edited(name, b"\0libdl.so.2\0", b"\0libX9.so.2\0"), [f"{name.rpartition('/')[2]} needs libX9.so.2"])
      for name in GRAFTS),
    ("needed", edited(RENDER_LIBRARY, EMBREE_NAME.encode(), b"libembree4.so.4".ljust(len(EMBREE_NAME), b"\0")),
     ["libdoorstep_render.so needs libembree4.so.4, which is not among ",
      f"libdoorstep_render.so does not need {EMBREE_NAME}, which is in the wheel for it"]),
    *(("runpath", patched(LIBRARY, write_runpath, folder), found)
      for folder, found in (*((name, [outside(name)]) for name in ("/opt/lib", "lib", "$ORIGINAL", "")),
                            ("$ORIGIN", []), ("$ORIGIN/../lib", []))),
    ("runpath", edited(RENDER_LIBRARY, b"\0$ORIGIN/../../doorstep.libs\0", b"\0$ORIGIN/../../doorstep.LIBS\0"),
     ["libdoorstep_render.so does not look for libraries in $ORIGIN/../../doorstep.libs"]),
    ("imports", edited(RENDER_LIBRARY, b"\0DxcCreateInstance\0", b"\0_ZdlPvmSt11align_\0"),
     ["libdoorstep_render.so imports _ZdlPvmSt11align_, which is for no library that it needs to bring"]),
    ("imports", patched(LIBRARY, write_unversioned_import), ["libdoorstep.so imports "]),
    ("symbol_versions", edited(LIBRARY, b"\0GLIBC_2.14\0", b"\0GLIBC_2.29\0"),
     ["libdoorstep.so needs GLIBC_2.29, above GLIBC_2.28"]),
    ("symbol_versions", edited(LIBRARY, b"\0GLIBC_2.14\0", b"\0CXXABI_1.3\0"), ["libdoorstep.so needs CXXABI_1.3 of "]),
    ("exports", edited(LIBRARY, b"\0ds_version\0", b"\0ds_secrets\0"),
     ["libdoorstep.so exports ds_secrets, which doorstep.h does not declare",
      "doorstep.h declares ds_version, which libdoorstep.so does not export"]),
    ("exports", edited(RENDER_LIBRARY, b"\0ds_render_open\0", b"\0ds_render_shut\0"),
     ["libdoorstep_render.so exports ds_render_shut, which doorstep_render.h does not declare",
      "doorstep_render.h declares ds_render_open, which libdoorstep_render.so does not export"]),
    *(("grafts", patched(name, flip),
       [f"{name.rpartition('/')[2]} has other content than {library.file} of {library.name}"])
      for name, library in GRAFTS.items()),
    ("grafts", edited(EMBREE, EMBREE_NAME.encode(), EMBREE_NAME.replace("embree", "EMBREE").encode()),
     [f"{EMBREE_NAME} has the soname ['{EMBREE_NAME.replace('embree', 'EMBREE')}']"]),
    ("versions", edited(EMBREE, b"\x004.3.2\0", b"\x004.3.3\0"), [f"{EMBREE_NAME} does not have the version text of "]),
    ("versions", edited(SHADER_COMPILER, b"1.8.0.4461 (11e1318", b"1.8.0.4462 (11e1318"), ["libdxcompiler-"]),
    ("versions", edited(LIBRARY, b" V13.4.92\0", b" V13.4.93\0"), ["libdoorstep.so does not have the version"]),
    ("kernels", patched(LIBRARY, write_other_architecture),
     ["the library has no kernels for training as PTX",
      "the library has kernels for training as sm_76, which were not requested",
      "the kernels for training as sm_76 are something else"]),
    ("paths", with_file(LIBRARY, b"\0/home/builder/native/world.h\0"),
     ["libdoorstep.so contains the absolute path /home/builder/native/world.h"]),
    ("paths", with_file(LIBRARY, b"\0/proc/self/cgroup\0/sys/fs/cgroup/cpu.max\0https://doorstep.example/a\0"), []),
    ("paths", with_file("doorstep/errors.py", f"LIBRARY = '{PROJECT}/build/libdoorstep.so'\n".encode()),
     ["doorstep/errors.py contains the path of the project"]),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _decoded_once(monkeypatch):
    """The kernels of a library take longer to decode than all other checks together."""
    monkeypatch.setattr(library_checks, "unpack", functools.lru_cache(maxsize=4)(unpack))


def changed(finished, changes, name=None):
    wheel = Wheel(finished.path.with_name(name or finished.path.name), PROJECT)
    files = {**finished.files, **changes}
    vars(wheel)["files"] = {name: content for name, content in files.items() if content is not None}
    return wheel


def sentences(wheel, check):
    return list(getattr(check_wheel, f"check_{check}")(wheel))


def test_the_finished_wheel_has_no_fault_and_every_check_looks_at_it(finished):
    faults = find_faults(finished.path)
    written = {name for module in (check_wheel, library_checks) for name in vars(module) if name.startswith("check_")}
    assert faults.keys() == {check.__name__ for check in CHECKS} == written - {"check_wheel"}
    assert not any(faults.values()), faults


def test_each_check_finds_what_was_changed(finished):
    assert {check for check, _, _ in CHANGES} >= {check.__name__[6:] for check in CHECKS} - {"record", "size"}
    for check, change, expected in CHANGES:
        found = sentences(changed(finished, change(finished.files)), check)
        assert len(found) == len(expected), (check, found)
        assert all(map(str.startswith, found, expected)), (check, found)


def test_a_wheel_with_another_tag_in_its_name_and_one_that_is_too_large_are_refused(finished, monkeypatch):
    name = finished.path.name.replace("manylinux_2_28_x86_64", "linux_x86_64")
    assert sentences(changed(finished, {}, name), "tag") == [f"the file is named {name}, not {finished.path.name}"]
    size = finished.path.stat().st_size
    for limit, expected in ((size, []), (size - 1, [f"the wheel has {size} bytes, more than {size - 1}"])):
        monkeypatch.setattr(check_wheel, "SIZE_LIMIT", limit)
        assert sentences(finished, "size") == expected


def test_a_file_that_is_not_as_recorded_is_refused(finished, tmp_path):
    path = tmp_path / finished.path.name
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in finished.files.items():
            archive.writestr(name, content + b"raise SystemExit\n" * (name == "doorstep/errors.py"))
    (found,) = check_record(Wheel(path, PROJECT))
    assert "doorstep/errors.py" in found


def test_a_library_without_the_kernels_that_were_asked_for_is_refused(finished, monkeypatch):
    built_for = chosen_architectures()
    found = sentences(changed(finished, edited(LIBRARY, MAGIC, bytes(len(MAGIC)))(finished.files)), "kernels")
    kinds = ["PTX", *(f"sm_{number}" for number in built_for)]
    # Training, views, policies, and six kinds of worlds; policies of bf16, from sm_80 on
    assert len(found) == 9 * len(kinds) + len(set(kinds) - {"sm_75"})
    assert {f"the library has no kernels for 3_agents as {kind}" for kind in kinds} <= set(found)
    monkeypatch.setenv(ARCHITECTURES_VARIABLE, "all")
    assert {fault for fault in sentences(finished, "kernels") if " 2_agents as" in fault} == {
        f"the library has no kernels for 2_agents as sm_{number}" for number in set(ARCHITECTURES) - set(built_for)
    }


def test_the_command_reports_faults_and_fails(finished, capsys, monkeypatch):
    changes = {"doorstep/scratch.py": b""}
    monkeypatch.setattr(check_wheel, "Wheel", lambda path, project: changed(finished, changes))
    assert not check_wheel.check_wheel(finished.path)
    output = capsys.readouterr().out
    assert "  fault files\n          doorstep/scratch.py does not belong into the wheel\n" in output
    assert "  ok    exports\n" in output
    architectures = " ".join(f"sm_{one}" for one in chosen_architectures()) or "none"
    assert output.endswith(f"doorstep: kernels: PTX, machine code for {architectures}\n")
    for name in (LIBRARY, RENDER_LIBRARY, *GRAFTS):
        changes = {name: None}  # it is not checked further
        assert find_faults(finished.path) == {"check_files": [f"{name} is missing"]}
        assert not check_wheel.check_wheel(finished.path)
        assert ("doorstep: kernels: " in capsys.readouterr().out) == (name != LIBRARY)


def test_the_wheel_is_as_large_as_the_readme_says(finished):
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    told = re.search(r"the wheel has (\d+) MB; with machine code for all GPUs at most (\d+) MB", readme)
    assert int(told[2]) * 10**6 == check_wheel.SIZE_LIMIT
    assert chosen_architectures() or abs(finished.path.stat().st_size / 1e6 - int(told[1])) < 1
