"""Kernels are compiled only if one of their inputs changes; what is packed is read again, also inside a library."""

import os
import random
import re
import sys
from pathlib import Path

import pytest
from tests.wheel_build.conftest import PROJECT

import cuda_packages
import kernel_images
from build_steps import BuildError
from kernel_image_file import ALIGNMENT, ENTRY, HEADER, ImageName, pack, unpack
from kernel_images import ARCHITECTURES_VARIABLE, MODULES, WORLDS_SOURCE, Compilation

PACKAGES = cuda_packages.CudaPackages(Path("packages"), "identity")
WORLDS = next(module for module in MODULES if module.source == WORLDS_SOURCE)
# A source that includes a neighbour, which includes a file by its path from an include folder.
FILES = {
    **dict.fromkeys((module.source for module in MODULES), '#include "near.h"\n'),
    WORLDS_SOURCE: '#include "near.h"\n#include <system.h>\n',
    WORLDS_SOURCE.with_name("near.h"): '#pragma once\n  #  include "sim/far.h"\n',
    Path("native/src/sim/far.h"): '#include "near.h"\n#include "doorstep.h"\n',
    Path("native/src/near.h"): "// found from sim/, where no near.h is\n",
    Path("native/src/sim/unused.h"): "",
    Path("native/include/doorstep.h"): '#include "sim/far.h"\n',
    kernel_images.SYSTEM_FOLDER / "system.h": "",
}


@pytest.fixture
def root(tmp_path):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


def test_an_output_is_made_once_and_one_that_fails_is_not_left(tmp_path):
    def run(code):
        """A compiler run that executes Python code with the output's path as its argument."""
        Compilation(ImageName(1, 90), (sys.executable, "-c", code), ("--option",), tmp_path / "a.ptx").run(tmp_path)

    with pytest.raises(BuildError, match=r"(?s)exit status 1 of: .*line 7: no such type"):
        run("import sys; open(sys.argv[1], 'w').write('half'); sys.exit('line 7: no such type')")
    assert not (tmp_path / "a.ptx").exists()
    run("import sys; print('said'); open(sys.argv[1], 'w').write('made')")
    run("raise SystemExit(1)")
    assert (tmp_path / "a.ptx").read_text(encoding="utf-8") == "made"
    assert (tmp_path / "a.ptx.log").read_text(encoding="utf-8") == "said\n"


def test_names_of_outputs_change_with_all_that_they_are_made_of_and_nothing_else(root, monkeypatch):
    def outputs(packages=PACKAGES):
        return [one.output for one in kernel_images.ptx_compilations(root, packages, root)]

    def cubins(packages=PACKAGES):
        ptx.output.write_text(text, encoding="utf-8")
        return {one.output for one in kernel_images.cubin_compilations(packages, root, ptx)}

    before = outputs()
    assert len(set(before)) == len(before) == len(MODULES)
    (root / "native/src/sim/unused.h").write_text("changed", encoding="utf-8")
    assert outputs() == before
    beside_worlds = sum(module.source.parent == WORLDS_SOURCE.parent for module in MODULES)
    for name, affected in (
        *(("src/near.h", len(MODULES)), ("src/exec/cuda/nvrtc/system.h", len(MODULES))),
        *(("src/exec/cuda/near.h", beside_worlds), ("include/doorstep.h", beside_worlds)),
    ):
        before, path = outputs(), root / "native" / name
        path.write_text(path.read_text(encoding="utf-8") + "// changed", encoding="utf-8")
        assert len(set(outputs()) - set(before)) == affected
    newer = cuda_packages.CudaPackages(Path("packages"), "newer")
    ptx, text = kernel_images.ptx_compilations(root, PACKAGES, root)[0], "// PTX"
    before, machine_code = set(outputs()), cubins()
    assert len(machine_code) == len(kernel_images.MODULE_OF_NUMBER[ptx.name.module].architectures)
    assert not set(outputs(newer)) & before
    assert not cubins(newer) & machine_code
    monkeypatch.setattr(kernel_images, "NVRTC_OPTIONS", (*kernel_images.NVRTC_OPTIONS, "--other"))
    assert not set(outputs()) & before
    monkeypatch.setattr(kernel_images, "PTXAS_OPTIONS", (*kernel_images.PTXAS_OPTIONS, "--other"))
    assert not cubins() & machine_code
    machine_code, text = cubins(), "// other PTX"
    assert not cubins() & machine_code
    (root / "native/include/doorstep.h").unlink()
    with pytest.raises(BuildError, match=r'native/src/sim/far\.h includes "doorstep\.h"'):
        outputs()


def test_kernels_are_compiled_for_every_kind_of_worlds():
    header = (PROJECT / "native/src/sim/world_model.h").read_text(encoding="utf-8")
    table = header.partition("#define DS_WORLD_KIND_TABLE(X)")[2].partition("\n\n")[0]
    assert [int(number) for number in re.findall(r"X\((\d+),", table)] == list(kernel_images.WORLD_KINDS)


def test_the_environment_or_this_machine_says_which_architectures_get_machine_code(add_program, monkeypatch):
    def chosen(text):
        monkeypatch.setenv(ARCHITECTURES_VARIABLE, text)
        return kernel_images.chosen_architectures()

    monkeypatch.setenv("PATH", os.environ["PATH"].partition(":")[0])  # the folder of added programs alone
    numbers = {"all": kernel_images.ARCHITECTURES, "80": (80,), "100,75": (75, 100), "": (), "native": ()}
    assert {text: chosen(text) for text in numbers} == numbers
    for text in ("sm_90", "90, 80", "91", "none", "90,91"):
        with pytest.raises(BuildError, match=r"DOORSTEP_CUDA_ARCHITECTURES is .* is not among 75, 80, .*\"all\""):
            chosen(text)
    add_program("nvidia-smi", "echo 8.7; echo 12.1; echo 6.1; echo 10.3; echo No devices were found")
    assert (chosen("native"), chosen("75")) == ((80, 100, 120), (75,))
    monkeypatch.delenv(ARCHITECTURES_VARIABLE)
    assert kernel_images.chosen_architectures() == (80, 100, 120)


# ---- The file of images

CONTENTS = {(1, 0): b"// PTX\0", (1, 90): bytes(range(200)), (8, 120): b"", (8, 75): b"x" * ALIGNMENT}
IMAGES = {ImageName(*name): content for name, content in CONTENTS.items()}


def test_images_are_read_as_they_were_packed_aligned_and_apart():
    assert unpack(pack(IMAGES)) == unpack(b"\x7fELF" + bytes(1001) + pack(IMAGES) + b"more") == IMAGES
    assert unpack(b"\x7fELF" + bytes(1001)) == unpack(pack({})) == {}
    images = {ImageName(module, 90): bytes(100 + module) for module in range(4)}
    content = pack(images)
    starts = [ENTRY.unpack_from(content, HEADER.size + ENTRY.size * i)[4] for i in range(len(images))]
    assert all(start % ALIGNMENT == 0 for start in starts)
    ends = [start + len(image) for start, image in zip(starts, images.values(), strict=True)]
    assert all(end <= start for end, start in zip(ends[:-1], starts[1:], strict=True))
    image = random.Random(1).randbytes(100_000)  # more than the window of the zip that wheels are
    alike = pack({ImageName(module, 90): image + bytes([module]) for module in range(8)})
    assert len(alike) < 1.02 * len(pack({ImageName(0, 90): image}))
