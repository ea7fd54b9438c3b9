"""Every reason why a GPU cannot be used has an error of its own, which says what to do; the CPU works on."""

import ctypes.util
import json
import re
import subprocess
import sys
from functools import partial

import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import environment_of, on_stand_in, require_stand_in, run
from tests.forks import WARNINGS

import doorstep
from doorstep import _native, cuda

ASK_FOR_A_GPU = """
import doorstep, json
for _ in range(2):
    try:
        doorstep.Simulator(2, device="cuda")
    except doorstep.DoorstepError as error:
        print(json.dumps([type(error).__name__, error.driver_code, error.hint, str(error)]))
with doorstep.Simulator(2, device="auto") as sim:
    assert sim.device == "cpu", sim
    sim.step()
"""


def run_new(code_and_arguments, settings, folder=driver.FOLDER):
    """Runs code in a new interpreter, which finds the library in `folder` by itself; what it prints."""
    require_stand_in()
    options = {"env": environment_of(settings, folder), "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run([sys.executable, *WARNINGS, "-c", *code_and_arguments], **options, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def check_refused(expected, words, settings, run=run):
    """doorstep refuses "cuda" in a process with a certain driver, twice alike; "auto" becomes the CPU."""
    first, second = run([ASK_FOR_A_GPU], settings).splitlines()
    name, code, hint, message = json.loads(first)
    assert first == second
    assert expected in (name, (name, code)), first
    assert hint
    assert all(word in message + hint for word in words), first


REFUSED = [
    ({"driver_version": 11040}, "DriverVersionError", ("11.4", "12.0")),
    ({"driver_version": 11080}, "DriverVersionError", ("11.8", "12.0")),
    ({"devices": 0}, ("NoDeviceError", 100), ()),
    ({"busy": 1}, ("DeviceBusyError", driver.DEVICE_UNAVAILABLE), ()),
    ({"compute_capability": 61}, "DeviceError", ("6.1", "7.5")),
]


def test_each_reason_has_an_error_of_its_own(run):
    for settings, expected, words in REFUSED:
        check_refused(expected, words, settings)


def test_libraries_that_are_no_driver_are_told(tmp_path, run):
    run_there = partial(run_new, folder=tmp_path)
    if not ctypes.util.find_library("cuda"):  # unless this machine has NVIDIA's driver
        check_refused("NoDriverError", ("libcuda.so.1",), {}, run_there)
    (tmp_path / "libcuda.so.1").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(200))
    check_refused("NoDriverError", ("libcuda.so.1",), {}, run_there)


@on_stand_in(devices=2)
def test_numbers_of_devices_that_are_not_there_are_told_with_the_range():
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
EMBEDDED = sorted(int(name.removeprefix("sm_")) for name in _native.cuda_architectures())  # with machine code
COMPUTE_CAPABILITIES = (75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)  # 110: not even releases have it
# Machine code runs on devices of the same major number and a minor number that is not smaller.
WITHOUT_CODE = [n for n in COMPUTE_CAPABILITIES if not any(n // 10 * 10 <= one <= n for one in EMBEDDED)]


def test_devices_need_a_driver_that_knows_their_code(run):
    for capability in COMPUTE_CAPABILITIES:
        settings = {"compute_capability": capability, "driver_version": 12000}
        if capability in WITHOUT_CODE:
            check_refused("DriverVersionError", ("needs 12.9", "update the NVIDIA driver"), settings)
        else:
            assert run([STEP_ON_THE_GPU], settings) == f"{divmod(capability, 10)}\n"


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


def test_import_and_cpu_use_do_not_open_the_driver(run):
    assert run_new([USE_THE_CPU], {"devices": 3}) == "3\n"


def test_errors_tell_what_to_do_on_the_command_line(run):
    printed = run(["from doorstep.cli import main; main(['doctor'])"], {"driver_version": 11040})
    assert re.search(r"(?s)(?=.*11\.4).*12\.0", printed)
