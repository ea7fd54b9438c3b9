"""The commands on a GPU: the same hashes and pictures as on the CPU, and a report of the devices."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cuda.on_stand_in import on_stand_in, run

import doorstep
from doorstep import _golden, cuda
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
