"""Pictures, videos and replays of worlds on a GPU: the same as of worlds on the CPU."""

from pathlib import Path

import numpy as np
from tests.cuda.on_stand_in import on_stand_in, run

import doorstep
from doorstep.recording.replay_page import ReplayPage

MAIN = "import io, sys; sys.stderr = io.StringIO(); from doorstep.cli import main; sys.exit(main(sys.argv[1:]))"


@on_stand_in()
def test_a_world_on_a_gpu_looks_as_on_the_cpu() -> None:
    with doorstep.Simulator(6, seed=3, device="cuda") as gpu, doorstep.Simulator(6, seed=3) as cpu:
        recorders = [ReplayPage(sim, [5, 2], "") for sim in (gpu, cpu)]
        for _ in range(3):
            for sim, recorder in zip((gpu, cpu), recorders, strict=True):
                sim.actions.copy_from_host(np.full((6, 2, 4), (3, 0, 3, 1), np.int32))
                sim.step()
                recorder.record()
        assert np.array_equal(gpu.render(4, width=80, height=60), cpu.render(4, width=80, height=60))
        assert recorders[0].to_html() == recorders[1].to_html()


@on_stand_in()
def test_snapshots_show_the_end_of_what_was_begun() -> None:
    with doorstep.Simulator(3, seed=3, device="cuda") as sim:
        sim.actions.copy_from_host(np.full((3, 2, 4), (3, 0, 2, 0), np.int32))
        sim.step_async()
        (snapshot,) = sim._snapshots([1])
        for name in ("body_positions", "body_rotations", "body_sizes", "static_positions", "button_pressed"):
            assert np.array_equal(getattr(snapshot, name), getattr(sim.state, name).copy_to_host()[1])
        assert snapshot.episode_index == 1


def test_the_command_draws_worlds_of_a_gpu(tmp_path: Path) -> None:
    pictures = []
    for device in ("cpu", "cuda"):
        path = tmp_path / f"{device}.png"
        options = ("--worlds", "2", "--show", "1", "--steps", "5", "--size", "80x60", "--device", device)
        run([MAIN, "render", "--output", str(path), *options], {})
        pictures.append(path.read_bytes())
    assert pictures[0] == pictures[1]
