"""The GPU gives the CPU's bits: every public object does on either device what it does on the other."""

import contextlib
import ctypes
import itertools
import tempfile

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda import training_calls as calls
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.twins import Twins, play_levels
from tests.render.agreement import OUTPUTS
from tests.render.level_worlds import full_level, playing
from tests.scenes import random_actions

import doorstep
from doorstep import cuda, levels
from doorstep._native import check, load
from doorstep.compat.madrona_escape_room import SimManager
from doorstep.compat.madrona_escape_room.madrona import ExecMode
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.recording import Recording, RecordingWriter
from doorstep.recording.replay_page import ReplayPage


def cameras(width=24, height=20, **outputs):
    return doorstep.Cameras(width=width, height=height, **OUTPUTS | outputs)


TILTED = cameras(16, 12, fov=60, position=(0.2, -0.3, 1.1), rotation=(0.96, 0.28, 0.0, 0.0))
REWARDS = doorstep.Rewards(0.1, -0.01, bonus_factor=2, room=0.5, exit=3, cube_approach=0.2, max_y=30)
SHUFFLED = ("physics", *reversed(doorstep.OBSERVATIONS))
# Worlds, steps, options of simulators.
SIMULATORS = [
    *((35, 60, {"num_agents": agents, "seed": 5, "episode_length": 40}) for agents in (1, 2, 3, 4, 5, 8)),
    (10, 7, {"auto_reset": False, "episode_length": 4, "reward": REWARDS}),
    (20, 12, {"observations": SHUFFLED, "reward": REWARDS, "episode_length": 5, "world_offset": 7, "strict": True}),
    *((5, 30, {"num_agents": n, "seed": 4, "episode_length": 20, "cameras": cameras()}) for n in (1, 2, 3, 8)),
    *((3, 5, {"seed": 6, "cameras": chosen}) for chosen in (cameras(1, 1), cameras(7, 5), cameras(33, 70), TILTED)),
    *((3, 1, {"cameras": cameras(**{name: False})}) for name in OUTPUTS),
]


def test_simulators_have_the_same_worlds_tensors_and_health():
    for num_worlds, steps, options in SIMULATORS:
        with Twins(num_worlds, **options) as twins:
            twins.assert_same()
            for number, count in enumerate((1, steps - 1)):
                twins.play(count, seed=1 + number)


def test_levels_are_played_and_seen_alike():
    for num_agents in (1, 2, 8):
        play_levels(35, num_agents=num_agents, seed=5, observations=SHUFFLED, reward=REWARDS)
        play_levels(5, num_agents=num_agents, seed=4, cameras=cameras())
        # 70 tiles: more than a block draws at a time
        settings = {"num_agents": num_agents, "cameras": cameras(77, 52)}
        full = [full_level(num_agents)]
        with playing(full, **settings) as cpu, playing(full, device="cuda", **settings) as gpu:
            for name in OUTPUTS:
                assert gpu.tensors[name].copy_to_host().tobytes() == cpu.tensors[name].to_numpy().tobytes()


@on_stand_in(multiprocessors=1)
def test_blocks_that_take_several_tiles_give_the_same_bits():
    for num_worlds in (1, 32, 33, 300):
        with Twins(num_worlds, seed=9, episode_length=3) as twins:
            twins.play(5)


# ---- What uses simulators. A program yields what is to be the same on both devices.


def same(one, other, where=""):
    """Whether two things have the same numbers, to the bit."""
    if hasattr(one, "tobytes"):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes()), where
    elif isinstance(one, dict):
        same(list(one.items()), list(other.items()), where)
    elif isinstance(one, list | tuple):
        for number, (mine, its) in enumerate(zip(one, other, strict=True)):
            same(mine, its, f"{where}[{number}]")
    else:
        assert one == other, where


def viewer(device):
    pytest.importorskip("viser", reason="the viewer needs viser")
    from doorstep.viewer import agent_panel, world_arrays
    from doorstep.viewer.page import place_behind
    from doorstep.viewer.play import LivePlay

    looks = world_arrays.walls, world_arrays.doors, world_arrays.buttons, world_arrays.cubes, world_arrays.agents
    with doorstep.Simulator(5, seed=3, device=device) as sim:
        play = LivePlay(sim, Player(load_policy("random"), sim).act)
        for _ in range(3):
            play.step()
        layout = world_arrays.Layout.of(sim, 4)
        yield [vars(look(sim, range(1, 5), layout)) for look in looks]
        offset = layout.offsets[1]
        yield [list(draw(sim, 2, offset)) for draw in (world_arrays.lidar_rays, world_arrays.grab_rays)]
        yield list(world_arrays.lidar_readings(sim, 2)), place_behind(sim, 2, 1, offset, turning=True)
        yield agent_panel.observations(sim, 2, 1), agent_panel.table(sim, 2, 1, None)


def pictures(device):
    with doorstep.Simulator(6, seed=3, device=device) as sim:
        page = ReplayPage(sim, [5, 2], "")
        for _ in range(3):
            sim.actions.copy_from_host(np.full((6, 2, 4), (3, 0, 3, 1), np.int32))
            sim.step()
            page.record()
        sim.step_async()
        (snapshot,) = sim._snapshots([1])  # of the end of what was begun
        names = "body_positions", "body_rotations", "body_sizes", "static_positions", "button_pressed", "episode_index"
        yield [getattr(snapshot, name) for name in names]
        yield sim.render(4, width=80, height=60), page.to_html()


def manager_of_another_library(device):
    mode, index = (ExecMode.CPU, 0) if device == "cpu" else (ExecMode.CUDA, 1)
    driver.finish()
    manager = SimManager(mode, index, 5, 7, True)
    assert manager.lidar_tensor().__dlpack_device__() == ((1, 0) if device == "cpu" else (2, 1))
    for left in (199, 198, 197):
        manager.step()
        steps_remaining = manager._simulator.steps_remaining
        if device == "cuda":  # a step has ended when it returns
            assert driver.report().pending == 0
            assert (driver.peek(steps_remaining) == left).all()
        yield steps_remaining.copy_to_host(), manager._simulator.hash()


def edited_views(device):
    """Bodies that were placed anywhere are seen after a refresh."""
    with doorstep.Simulator(4, seed=8, device=device, cameras=cameras()) as sim:
        edited = sim.state.body_positions.copy_to_host()
        edited[..., :2] = np.random.default_rng(0).uniform((-9.5, 0.0), (9.5, 45.0), edited[..., :2].shape)
        sim.state.body_positions.copy_from_host(edited)
        sim.refresh()
        yield [sim.tensors[name].copy_to_host() for name in OUTPUTS]


PROGRAMS = [viewer, pictures, manager_of_another_library, edited_views]


@on_stand_in(devices=2)
def test_programs_see_the_same():
    for program in PROGRAMS:
        with contextlib.closing(program("cpu")) as here, contextlib.closing(program("cuda")) as there:
            for number, (mine, its) in enumerate(zip(here, there, strict=True)):
                same(mine, its, f"{program.__name__}: {number}")


# ---- Recordings


def test_a_recording_of_one_device_replays_on_another():
    table, devices = list(levels.curated().values()), (("cpu", "cuda"), ("cuda", "cpu"))
    for (recorded_on, replayed_on), max_levels in itertools.product(devices, (0, len(table))):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/run.rec"
            options = {"seed": 5, "device": recorded_on, "episode_length": 20, "max_levels": max_levels}
            with doorstep.Simulator(35, **options) as sim, RecordingWriter(path, sim, hash_interval=10) as writer:
                if max_levels:
                    sim.set_levels(table)
                    writer.reset()
                for step, actions in enumerate(random_actions(1, 45, 35)):
                    if step == 15 and max_levels:
                        weights = np.eye(max_levels, dtype=np.float32)[np.arange(35) % max_levels]
                        sim.level_weights.copy_from_host(weights)
                    sim.actions = actions
                    sim.resets = (np.arange(35).reshape(35, 1) == step).astype(np.int32)
                    writer.step()
                    if step == 25:
                        writer.reset([3, 30])
                    if step == 35:
                        sim.restore(sim.save([4]), [9])
                        writer.checkpoint()
            with Recording(path) as recording:
                recording.replay(device=replayed_on)  # which compares the hashes


def test_a_step_of_a_graph_is_not_taken_for_a_recorded_one():
    with tempfile.TemporaryDirectory() as folder, doorstep.Simulator(3, device="cuda") as sim:
        writer = RecordingWriter(f"{folder}/run.rec", sim)
        writer.append()
        with pytest.raises(doorstep.StateError, match="steps of CUDA graphs do not count"):
            writer.append()
        writer.close()


# ---- The kernels of training


def test_advantages_and_actions_of_training_are_the_cpus_once_prepared():
    call = calls.advantages("float64", 3, 5)
    with pytest.raises(doorstep.ArgumentError, match="not prepared on device 0"):
        calls.run_on_gpu("v_trace", *call)
    with pytest.raises(doorstep.ArgumentError, match="not prepared"):
        check(load().ds_training_release(0))
    with calls.prepared():
        with calls.prepared():  # kernels are kept until they are released as often
            pass
        for dtype in calls.DTYPES:
            for size in (1, 64, 1000):
                for name in ("generalized_advantages", "v_trace"):
                    calls.assert_same(name, calls.advantages(dtype, 9, size))
                for name in ("sample", "evaluate", "backward"):
                    *made, results = calls.multi_discrete(dtype, size, draws=name == "sample")
                    chosen = {field for field in results if (field == "logit_gradients") == (name == "backward")}
                    calls.assert_same(f"multi_discrete_{name}", (*made, {field: results[field] for field in chosen}))
    with pytest.raises(doorstep.ArgumentError, match="not prepared"):
        calls.run_on_gpu("v_trace", *call)


def test_a_launch_of_training_may_be_recorded():
    call, inputs, results = calls.advantages("float32", 4, 70)
    expected = calls.run_on_cpu("generalized_advantages", call, inputs, results)
    with calls.prepared(), driver.users_stream() as stream:
        buffers = calls.on_gpu(call, inputs, results, cuda.Stream.from_handle(stream))
        with driver.RecordedGraph(stream) as graph:
            check(load().ds_generalized_advantages(ctypes.byref(call)))
        graph.launch()
        assert buffers["targets"].copy_to_host("float32").tobytes() == expected["targets"].tobytes()
        buffers.clear()
