"""The commands on a GPU: the same hashes and pictures as on the CPU, and a report of the devices."""

import json

import numpy as np
import pytest

import doorstep
from doorstep import cuda
from doorstep._native import Kernel, cuda_kernel
from doorstep.cli import doctor
from doorstep.cli.random_actions import ActionTable, DeviceActionTable, pieces

MAIN = "import io, sys; sys.stderr = io.StringIO(); from doorstep.cli import main; sys.exit(main(sys.argv[1:]))"


def test_bench_steps_the_same_worlds_as_on_the_cpu(run):
    for start, agents in (("normal", "1"), ("rooms", "2")):
        command = [MAIN, "bench", "--json", "--worlds", "24", "--steps", "405", "--start", start, "--agents", agents]
        gpu, cpu = (json.loads(run([*command, "--device", device], {})) for device in ("cuda:0", "cpu"))
        assert gpu["hash"] == cpu["hash"]
        assert gpu["device"].startswith("cuda:0 ")


def test_table_of_actions_comes_around_on_the_gpu_as_on_the_cpu():
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


def test_commands_draw_the_same_pictures_as_on_the_cpu(tmp_path, run):
    demo = "demo --worlds 12 --steps 60 --start rooms"
    for command in (demo, "render --worlds 2 --show 1 --steps 5 --size 80x60"):
        for device in ("cpu", "cuda"):
            path = tmp_path / f"{device}.png"
            printed = run([MAIN, *command.split(), "--output", str(path), "--device", device], {})
            assert command != demo or f"12 worlds on {device}" in printed
        assert (tmp_path / "cpu.png").read_bytes() == path.read_bytes()


def test_doctor_reports_every_device_and_takes_the_first_for_auto(run):
    report = json.loads(run([MAIN, "doctor", "--json"], {"devices": 2}))
    findings = {finding["name"]: finding for finding in report["findings"]}
    assert report["works"]
    assert findings["CUDA driver"]["found"].endswith("2 devices")
    for device in ("cuda:0", "cuda:1"):
        assert findings[device]["ok"]
        assert "GiB free" in findings[device]["found"]
    auto = findings['device="auto"']
    assert (auto["found"], auto["ok"], auto["needed"], auto["remedy"]) == ("cuda:0", True, False, "")


THREADS = 2048 * 4  # of the stand-in's device


def test_kernels_say_what_they_reserve_of_the_device():
    taken = {kernel: cuda_kernel(0, 2, kernel) for kernel in Kernel}
    for info in taken.values():
        assert (info.registers, info.threads, info.local_bytes) == (128, THREADS, 640)  # as the stand-in says
        assert info.local_memory == 640 * THREADS
    assert {kernel for kernel, info in taken.items() if info.scratch_memory} == {Kernel.STEP, Kernel.LEVEL_STEP}
    finding = next(finding for finding in doctor.examine() if finding.name == "cuda:0 memory")
    info = taken[Kernel.LEVEL_STEP]
    assert finding.ok
    assert finding.found.startswith("kernels reserve, with 2 agents: steps ")
    stacks, scratch = info.local_memory / 1e6, info.scratch_memory / 1e6
    assert f"; steps of levels {stacks:.0f} MB of stacks and {scratch:.0f} MB of scratch memory; " in finding.found
    for mistake, error, words in (
        ((0, 2, 5), doorstep.ArgumentError, "kernel is 5; it must be 0 to 4"),
        ((0, 9, Kernel.STEP), doorstep.ArgumentError, "num_agents"),
        ((7, 2, Kernel.STEP), doorstep.DeviceError, "device"),
    ):
        with pytest.raises(error, match=words):
            cuda_kernel(*mistake)


def test_simulators_of_many_worlds_allocate_the_scratch_memory_that_is_said():
    for kernel, max_levels in ((Kernel.STEP, 0), (Kernel.LEVEL_STEP, 1)):
        taken = []
        for num_worlds in (2000, 4000):  # more than fit the device at once
            with doorstep.Simulator(num_worlds, device="cuda", max_levels=max_levels) as sim:
                taken.append(sim.allocated_bytes)
        # Beside the worlds and their scratch memory there are tables, and memory shared with the host.
        of_worlds, scratch = taken[1] - taken[0], cuda_kernel(0, 2, kernel).scratch_memory
        assert scratch < taken[0] - of_worlds < scratch + 5 * 2**20
