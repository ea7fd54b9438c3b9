"""Every reason why a GPU cannot be used has an error of its own, which says what to do; the CPU works on."""

import ctypes.util
import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import environment_of, on_stand_in, require_stand_in, run
from tests.forks import WARNINGS

import doorstep
from doorstep import _native, cuda

DRIVER_TABLE = driver.PROJECT / "native/src/runtime/cuda/driver_table.h"

ASK_FOR_A_GPU = """
import doorstep, json
def reason(device):
    try:
        doorstep.Simulator(2, device=device)
    except doorstep.DoorstepError as error:
        return [type(error).__name__, str(error), error.hint, error.driver_code]
print(json.dumps([reason("cuda"), reason("cuda")]))
with doorstep.Simulator(2, device="auto") as sim:
    assert sim.device == "cpu", sim
    sim.step()
"""


def run_new(code_and_arguments: list[str], settings: dict[str, int | str], folder: Path = driver.FOLDER) -> str:
    """Runs code in a new interpreter, which finds the library in `folder` by itself; what it prints."""
    require_stand_in()
    command = [sys.executable, *WARNINGS, "-c", *code_and_arguments]
    environment = environment_of(settings, folder)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


class Refusal:
    """How doorstep refuses "cuda" in a process with a certain driver, twice alike; "auto" becomes the CPU."""

    def __init__(self, folder: Path = driver.FOLDER, **settings: int | str) -> None:
        in_process = run if folder == driver.FOLDER else functools.partial(run_new, folder=folder)
        first, second = json.loads(in_process([ASK_FOR_A_GPU], settings))
        assert first == second
        self.name, self.message, self.hint, self.code = first
        assert self.hint


def test_no_driver_is_told(tmp_path: Path) -> None:
    if ctypes.util.find_library("cuda"):
        pytest.skip("this machine has NVIDIA's driver")
    refusal = Refusal(tmp_path)
    assert refusal.name == "NoDriverError"
    assert "libcuda.so.1" in refusal.message


@pytest.mark.parametrize("content", [b"", b"not a library", b"\x7fELF\x02\x01\x01" + bytes(200)])
def test_driver_that_cannot_be_loaded_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(content)
    refusal = Refusal(tmp_path)
    assert refusal.name == "NoDriverError"
    assert "libcuda.so.1" in refusal.message


@pytest.mark.parametrize(("version", "words"), [(11040, "11.4"), (11080, "11.8")])
def test_too_old_a_driver_is_told_with_both_versions(version: int, words: str) -> None:
    refusal = Refusal(driver_version=version)
    assert refusal.name == "DriverVersionError"
    assert words in refusal.message
    assert "12.0" in refusal.message


def test_driver_of_before_versioned_functions_is_told_with_both_versions() -> None:
    refusal = Refusal(driver.OLD_DRIVER_FOLDER)
    assert refusal.name == "DriverVersionError"
    assert "11.2" in refusal.message
    assert "12.0" in refusal.message


def test_driver_without_a_device_is_told() -> None:
    refusal = Refusal(devices=0)
    assert refusal.name == "NoDeviceError"
    assert refusal.code == 100


def test_busy_device_is_told() -> None:
    refusal = Refusal(busy=1)
    assert refusal.name == "DeviceBusyError"
    assert refusal.code == driver.DEVICE_UNAVAILABLE


def test_device_older_than_the_kernels_is_told_with_its_compute_capability() -> None:
    refusal = Refusal(compute_capability=61)
    assert refusal.name == "DeviceError"
    assert "6.1" in refusal.message
    assert "7.5" in refusal.message


@on_stand_in(devices=2)
def test_number_of_a_device_that_is_not_there_is_told_with_the_range() -> None:
    for device in ("cuda:2", "cuda:999999999"):
        with pytest.raises(doorstep.NoDeviceError, match="2") as caught:
            doorstep.Simulator(2, device=device)
        assert caught.value.argument.startswith("device")
    with pytest.raises(doorstep.NoDeviceError):
        cuda.Device(2)


STEP_ON_THE_GPU = """
import doorstep, doorstep.cuda
with doorstep.Simulator(40, device="cuda") as sim, doorstep.Simulator(40) as cpu:
    sim.step()
    cpu.step()
    assert sim.hash() == cpu.hash()
print(doorstep.cuda.Device().compute_capability)
"""


OLD, NEW = 12000, 13000
# Architectures with machine code in the library.
EMBEDDED = sorted(int(name.removeprefix("sm_")) for name in _native.cuda_architectures())
COMPUTE_CAPABILITIES = (75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)  # 110: not even releases have it


def has_machine_code(compute_capability: int) -> bool:
    """Machine code runs on devices of the same major number and a minor number that is not smaller."""
    return any(compute_capability // 10 * 10 <= one <= compute_capability for one in EMBEDDED)


@pytest.mark.skipif(not EMBEDDED, reason="no machine code: the library has PTX alone")
@pytest.mark.parametrize("compute_capability", [one for one in COMPUTE_CAPABILITIES if has_machine_code(one)])
@pytest.mark.parametrize("driver_version", [OLD, NEW])
def test_devices_with_machine_code_in_the_library_need_no_new_driver(
    compute_capability: int, driver_version: int
) -> None:
    settings = {"compute_capability": compute_capability, "driver_version": driver_version}
    assert run([STEP_ON_THE_GPU], {**settings}) == f"{divmod(compute_capability, 10)}\n"


WITHOUT_MACHINE_CODE = [one for one in COMPUTE_CAPABILITIES if not has_machine_code(one)]


@pytest.mark.parametrize("compute_capability", WITHOUT_MACHINE_CODE)
def test_devices_without_machine_code_in_the_library_need_a_driver_that_knows_its_ptx(compute_capability: int) -> None:
    refusal = Refusal(compute_capability=compute_capability, driver_version=OLD)
    assert refusal.name == "DriverVersionError"
    assert "needs 12.9" in refusal.message
    assert "update the NVIDIA driver" in refusal.hint


@pytest.mark.slow  # compiles for seconds, as tests/wheel_build/test_cuda_compile.py does once
@pytest.mark.parametrize("compute_capability", WITHOUT_MACHINE_CODE)
def test_devices_without_machine_code_in_the_library_run_what_is_compiled_for_them(compute_capability: int) -> None:
    settings = {"compute_capability": compute_capability, "driver_version": NEW}
    assert run([STEP_ON_THE_GPU], {**settings}) == f"{divmod(compute_capability, 10)}\n"


TELLS_VERSION = "cuDriverGetVersion"  # a driver that does not tell its version counts as too old


def table_functions(name: str) -> list[str]:
    """The functions of a list in the driver table."""
    source = DRIVER_TABLE.read_text(encoding="utf-8")
    rows = source.partition(f"#define {name}(X)")[2].partition("\n\n")[0]
    return re.findall(r"X\((cu\w+),", rows)


def in_fork(action: Callable[[], None]) -> str:
    """Runs an action in a fork of this process, which has not opened the driver; the error it raises, as JSON."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        error = None
        try:
            action()
        except BaseException as raised:
            error = raised
        os.write(writable, json.dumps([type(error).__name__, str(error)]).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return said


def use_without(function: str) -> None:
    os.environ["STAND_IN_MISSING"] = function
    with doorstep.Simulator(2, device="cuda") as sim:
        sim.step()
        sim.wait()


def fail_once(function: str) -> None:
    driver.fail(function, 1, driver.UNKNOWN)
    cuda.Device()


def child_of_missing_functions() -> None:
    doorstep.live_counts()
    for name in table_functions("DS_DRIVER_BASELINE"):
        kind, message = json.loads(in_fork(lambda name=name: use_without(name)))  # type: ignore[misc]
        if name == TELLS_VERSION:
            assert kind == "DriverVersionError", (kind, message)
        else:
            assert kind == "DriverFunctionError", (name, kind, message)
            assert name in message, message
    for name in table_functions("DS_DRIVER_OPTIONAL"):
        assert json.loads(in_fork(lambda name=name: use_without(name)))[0] == "NoneType", name  # type: ignore[misc]


def child_of_failing_opening() -> None:
    doorstep.live_counts()
    for name in ("cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDevicePrimaryCtxRetain"):
        kind, message = json.loads(in_fork(lambda name=name: fail_once(name)))  # type: ignore[misc]
        assert kind == "DeviceError", (name, kind, message)
        assert name in message, message


def test_each_function_that_the_driver_lacks_is_told_by_name() -> None:
    run(["from tests.cuda.test_driver import *; child_of_missing_functions()"], {})


def test_each_call_that_fails_while_the_driver_is_opened_is_told_by_name() -> None:
    run(["from tests.cuda.test_driver import *; child_of_failing_opening()"], {})


USE_THE_CPU = """
import doorstep, doorstep.cuda
def mapped():
    with open("/proc/self/maps") as maps:
        return "libcuda" in maps.read()
with doorstep.Simulator(2) as sim:
    sim.step()
    sim.restore(sim.save())
    sim.rewards.__dlpack__()
doorstep.live_counts()
assert not mapped()
print(doorstep.cuda.Device.count())
assert mapped()
"""


def test_import_and_cpu_use_do_not_open_the_driver() -> None:
    assert run_new([USE_THE_CPU], {"devices": 3}) == "3\n"


def test_errors_tell_what_to_do_on_the_command_line() -> None:
    code = "from doorstep.cli import main; main(['doctor'])"
    printed = run([code], {"driver_version": 11040})
    assert "11.4" in printed
    assert "12.0" in printed
