"""The commands on a GPU: the same hashes and pictures as on the CPU, and a report of the devices."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cuda.on_stand_in import on_stand_in, run

import doorstep
from doorstep import _golden, cuda
from doorstep._native import Kernel, cuda_kernel
from doorstep.cli import doctor
from doorstep.cli.random_actions import ActionTable, DeviceActionTable, pieces

MAIN = "import sys; from doorstep.cli import main; sys.exit(main(sys.argv[1:]))"


def bench(device: str, *arguments: str) -> dict[str, object]:
    output = run([MAIN, "bench", "--json", "--worlds", "24", "--device", device, *arguments], {})
    result: dict[str, object] = json.loads(output)
    return result


@pytest.mark.parametrize("start", ["normal", "rooms"])
@pytest.mark.parametrize("agents", ["1", "2"])
def test_bench_steps_the_same_worlds_as_on_the_cpu(start: str, agents: str) -> None:
    arguments = ("--steps", "405", "--start", start, "--agents", agents)
    gpu, cpu = bench("cuda:0", *arguments), bench("cpu", *arguments)
    assert gpu["hash"] == cpu["hash"]
    assert str(gpu["device"]).startswith("cuda:0 ")


# The stand-in has kernels for 1, 2, 3, 5 and 8 agents.
@pytest.mark.parametrize("name", ["one agent", "drawn physics"])
@on_stand_in()
def test_golden_results_are_the_cpus(name: str) -> None:
    assert _golden.RUNS[name].hash("cuda:0") == _golden.HASHES[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted(_golden.RUNS.keys() - {"four agents", "six agents", "seven agents", "one agent", "drawn physics"})
)
@on_stand_in()
def test_the_other_golden_results_are_the_cpus(name: str) -> None:
    assert _golden.RUNS[name].hash("cuda:0") == _golden.HASHES[name]


@on_stand_in()
def test_table_of_actions_comes_around_on_the_gpu_as_on_the_cpu() -> None:
    step = -3 * pow(618_033, -1, 1 << 20) % (1 << 20)  # begins three rows before the end of the table
    assert [(source, count) for _, source, count in pieces(step, 10)] == [((1 << 20) - 3, 3), (0, 7)]
    table, expected = ActionTable(5), np.empty((5, 2, 4), np.int32)
    stream = cuda.Stream()
    with doorstep.Simulator(5, device="cuda", stream=stream) as sim:
        on_device = DeviceActionTable(table, sim.actions, stream)
        for number in (step, step + 1):
            table.copy_into(expected, number)
            on_device.copy(number)
            assert (sim.actions.copy_to_host() == expected).all()


def test_demo_draws_the_same_picture_as_on_the_cpu(tmp_path: Path) -> None:
    pictures = []
    for device in ("cpu", "cuda"):
        path = tmp_path / f"{device}.png"
        arguments = ("--worlds", "12", "--steps", "60", "--start", "rooms", "--output", str(path), "--device", device)
        code = f"import io, sys; sys.stderr = io.StringIO(); {MAIN.removeprefix('import sys; ')}"
        assert f"12 worlds on {device}" in run([code, "demo", *arguments], {})
        pictures.append(path.read_bytes())
    assert pictures[0] == pictures[1]


def test_doctor_reports_every_device_and_takes_the_first_for_auto() -> None:
    report = json.loads(run([MAIN, "doctor", "--json"], {"devices": 2}))
    findings = {finding["name"]: finding for finding in report["findings"]}
    assert report["works"]
    assert findings["CUDA driver"]["found"].endswith("2 devices")
    for device in ("cuda:0", "cuda:1"):
        assert findings[device]["ok"]
        assert "GiB free" in findings[device]["found"]
    assert findings['device="auto"'] == {
        "name": 'device="auto"',
        "found": "cuda:0",
        "ok": True,
        "needed": False,
        "remedy": "",
    }


THREADS = 2048 * 4  # of the stand-in's device


@on_stand_in()
def test_kernels_say_what_they_reserve_of_the_device() -> None:
    taken = {kernel: cuda_kernel(0, 2, kernel) for kernel in Kernel}
    for info in taken.values():
        assert 0 < info.registers <= 255
        assert info.threads == THREADS
        assert info.local_memory == info.local_bytes * THREADS
    assert {kernel for kernel, info in taken.items() if info.scratch_memory} == {Kernel.STEP, Kernel.LEVEL_STEP}


@pytest.mark.slow  # for this driver the library compiles kernels of which it has no machine code: PTX has no stacks
@on_stand_in(driver_version=13000)
def test_kernels_say_how_large_their_stacks_are() -> None:
    stacks = {kernel: cuda_kernel(0, 2, kernel).local_bytes for kernel in Kernel}
    assert all(stacks[kernel] for kernel in (Kernel.STEP, Kernel.LEVEL_STEP, Kernel.VIEWS, Kernel.LEVEL_VIEWS))
    assert stacks[Kernel.LEVEL_VIEWS] > stacks[Kernel.VIEWS]


@pytest.mark.parametrize(("kernel", "max_levels"), [(Kernel.STEP, 0), (Kernel.LEVEL_STEP, 1)])
@on_stand_in()
def test_simulators_of_many_worlds_allocate_the_scratch_memory_that_is_said(kernel: int, max_levels: int) -> None:
    scratch = cuda_kernel(0, 2, Kernel(kernel)).scratch_memory
    taken = []
    for num_worlds in (2000, 4000):  # more than fit the device at once
        with doorstep.Simulator(num_worlds, device="cuda", max_levels=max_levels) as sim:
            taken.append(sim.allocated_bytes)
    of_a_world = (taken[1] - taken[0]) / 2000
    # Beside the worlds and their scratch memory there are tables, and memory shared with the host.
    assert scratch < taken[0] - 2000 * of_a_world < scratch + 5 * 2**20


@on_stand_in()
def test_kernels_that_do_not_exist_are_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="kernel is 5; it must be 0 to 4"):
        cuda_kernel(0, 2, 5)  # type: ignore[arg-type]
    with pytest.raises(doorstep.ArgumentError, match="num_agents"):
        cuda_kernel(0, 9, Kernel.STEP)
    with pytest.raises(doorstep.DeviceError):
        cuda_kernel(7, 2, Kernel.STEP)


@on_stand_in()
def test_doctor_says_what_kernels_reserve() -> None:
    findings = {finding.name: finding for finding in doctor.examine()}
    finding, info = findings["cuda:0 memory"], cuda_kernel(0, 2, Kernel.LEVEL_STEP)
    assert finding.ok
    assert finding.found.startswith("kernels reserve, with 2 agents: steps ")
    stacks, scratch = info.local_memory / 1e6, info.scratch_memory / 1e6
    assert f"; steps of levels {stacks:.0f} MB of stacks and {scratch:.0f} MB of scratch memory; " in finding.found
