"""SimManager used from Python: tensors, resets, dones, and what it refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep.compat.madrona_escape_room import SimManager, madrona
from doorstep.compat.madrona_escape_room.action_dump import read_action_dump
from doorstep.compat.madrona_escape_room.madrona import ExecMode, Tensor

torch = pytest.importorskip("torch")

WORLDS = 7

TENSORS = {
    "reset_tensor": ((WORLDS, 1), torch.int32),
    "action_tensor": ((WORLDS, 2, 4), torch.int32),
    "reward_tensor": ((WORLDS, 2, 1), torch.float32),
    "done_tensor": ((WORLDS, 2, 1), torch.int32),
    "self_observation_tensor": ((WORLDS, 2, 8), torch.float32),
    "partner_observations_tensor": ((WORLDS, 2, 1, 3), torch.float32),
    "room_entity_observations_tensor": ((WORLDS, 2, 6, 3), torch.float32),
    "door_observation_tensor": ((WORLDS, 2, 3), torch.float32),
    "lidar_tensor": ((WORLDS, 2, 30, 2), torch.float32),
    "steps_remaining_tensor": ((WORLDS, 2, 1), torch.int32),
}


def make(auto_reset: bool = True, num_worlds: int = WORLDS, seed: int = 5) -> SimManager:
    return SimManager(ExecMode.CPU, 0, num_worlds, seed, auto_reset)


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_have_the_shapes_and_dtypes_of_the_interface(name: str) -> None:
    sim = make()
    tensor = getattr(sim, name)().to_torch()
    assert (tuple(tensor.shape), tensor.dtype) == TENSORS[name]
    assert tensor.is_contiguous()


def test_arguments_may_be_given_by_name() -> None:
    sim = SimManager(
        exec_mode=ExecMode.CPU, gpu_id=0, num_worlds=3, rand_seed=5, auto_reset=True, enable_batch_renderer=False
    )
    assert sim.reset_tensor().to_torch().shape == (3, 1)


def test_the_first_visible_episode_is_that_of_the_core() -> None:
    sim = make(seed=9)
    with doorstep.Simulator(WORLDS, seed=9) as core:
        assert (sim.lidar_tensor().to_torch().numpy() == core.lidar.to_numpy()).all()
    assert (sim.steps_remaining_tensor().to_torch() == 200).all()
    assert (sim.done_tensor().to_torch() == 0).all()


def test_actions_are_written_in_place() -> None:
    sim = make()
    sim.action_tensor().to_torch()[:, 1, 0] = 3
    assert (sim.action_tensor().to_torch()[:, 1, 0] == 3).all()
    before = sim.self_observation_tensor().to_torch().clone()
    sim.step()
    metres = 40 * (sim.self_observation_tensor().to_torch() - before)[:, :, 2:4].norm(dim=2)
    assert (metres[:, 1] > 0.9).all()
    assert (metres[:, 0] < 0.3).all()  # those that start in touch with the wall behind are pushed out of it


def test_actions_out_of_range_are_applied_as_they_are() -> None:
    """Move amount 4 pushes with 4/3 of the largest legal force."""
    sim = make()
    position = sim.self_observation_tensor().to_torch()[:, 0, 2:4]
    distances = []
    for amount in (3, 4):
        before = position.clone()
        sim.action_tensor().to_torch()[:, 0] = torch.tensor([amount, 4, 2, 0], dtype=torch.int32)  # backwards
        sim.step()
        distances.append((position - before).norm(dim=1).max().item())
        sim.action_tensor().to_torch()[:, 0] = torch.tensor([amount, 0, 2, 0], dtype=torch.int32)  # and forth
        sim.step()
    assert distances[1] == pytest.approx(distances[0] * 4 / 3, rel=0.01)


def test_with_auto_reset_the_counter_goes_from_one_to_two_hundred() -> None:
    sim = make()
    remaining, done = sim.steps_remaining_tensor().to_torch(), sim.done_tensor().to_torch()
    seen, dones = [], []
    for _ in range(402):
        sim.step()
        seen.append(remaining.clone())
        dones.append(done.clone())
    expected = [*range(199, 0, -1), 200] * 2 + [199, 198]
    assert (torch.stack(seen) == torch.tensor(expected, dtype=torch.int32).view(-1, 1, 1, 1)).all()
    ended = torch.zeros(402, dtype=torch.int32)
    ended[[199, 399]] = 1
    assert (torch.stack(dones) == ended.view(-1, 1, 1, 1)).all()


def test_auto_reset_shows_a_new_level_and_takes_the_actions_back() -> None:
    sim = make()
    door = sim.door_observation_tensor().to_torch()
    before = door.clone()
    for _ in range(200):
        sim.action_tensor().to_torch()[:] = torch.tensor([0, 0, 2, 1], dtype=torch.int32)
        sim.step()
    assert (door != before).any(dim=2).all()
    assert (sim.action_tensor().to_torch() == torch.tensor([0, 0, 2, 0], dtype=torch.int32)).all()


def test_without_auto_reset_the_episode_stays_over_until_a_reset() -> None:
    sim = make(auto_reset=False)
    remaining, done = sim.steps_remaining_tensor().to_torch(), sim.done_tensor().to_torch()
    for _ in range(200):
        sim.step()
    assert (remaining == 0).all()
    assert (done == 1).all()
    for _ in range(3):
        sim.step()
    assert (remaining == 0).all()
    assert (done == 1).all()
    sim.reset_tensor().to_torch()[2] = 1
    sim.step()
    assert (remaining[2] == 200).all()
    sim.step()
    assert (remaining[2] == 199).all()
    assert done[2].tolist() == [[0], [0]]
    assert (done[[0, 1, 3]] == 1).all()


def test_a_manual_reset_regenerates_that_world_at_the_end_of_the_step() -> None:
    sim = make()
    reset, remaining = sim.reset_tensor().to_torch(), sim.steps_remaining_tensor().to_torch()
    lidar = sim.lidar_tensor().to_torch()
    for _ in range(5):
        sim.step()
    before = lidar.clone()
    reset[3] = 1
    sim.step()
    assert (reset == 0).all()
    assert remaining[:, 0, 0].tolist() == [194, 194, 194, 200, 194, 194, 194]
    assert (sim.done_tensor().to_torch() == 0).all()
    assert (lidar[3] != before[3]).any()
    assert (lidar[[0, 1, 2, 4, 5, 6]] == before[[0, 1, 2, 4, 5, 6]]).all()  # idle agents


def test_tensors_outlive_their_manager() -> None:
    lidar = make().lidar_tensor().to_torch()
    assert lidar.shape == (WORLDS, 2, 30, 2)
    assert lidar.max() > 0


def test_many_managers_can_be_made_one_after_the_other() -> None:
    first = make()
    for _ in range(5):
        make(num_worlds=100).step()
    first.step()
    assert (first.steps_remaining_tensor().to_torch() == 199).all()


def test_a_dump_of_actions_replays_to_the_same_observations(tmp_path: Path) -> None:
    sim = make(seed=3)
    actions = sim.action_tensor().to_torch()
    generator = torch.Generator().manual_seed(7)
    with (tmp_path / "dump").open("wb") as dump:
        for _ in range(210):
            for component, choices in enumerate((4, 8, 5, 2)):
                actions[..., component] = torch.randint(0, choices, (WORLDS, 2), generator=generator, dtype=torch.int32)
            actions.numpy().tofile(dump)
            sim.step()
    with doorstep.Simulator(WORLDS, seed=3, action_check="off") as core:
        for step in read_action_dump(tmp_path / "dump", WORLDS):
            core.actions.to_numpy()[:] = step
            core.step()
        assert (sim.lidar_tensor().to_torch().numpy() == core.lidar.to_numpy()).all()
        assert (sim.reward_tensor().to_torch().numpy() == core.rewards.to_numpy()).all()


# ---- What is refused


def test_cuda_is_refused_with_a_device_error() -> None:
    with pytest.raises(doorstep.DeviceError, match="device"):
        SimManager(ExecMode.CUDA, 0, WORLDS, 5, True)


@pytest.mark.parametrize("mode", [0, "CPU", None])
def test_other_execution_modes_are_refused(mode: object) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"exec_mode is .*madrona\.ExecMode\.CPU or") as raised:
        SimManager(mode, 0, WORLDS, 5, True)  # type: ignore[arg-type]
    assert raised.value.argument == "exec_mode"


@pytest.mark.parametrize(
    ("worlds", "seed", "argument"), [(0, 5, "num_worlds"), (WORLDS, -1, "seed"), (WORLDS, 2**32, "seed")]
)
def test_impossible_numbers_are_refused(worlds: int, seed: int, argument: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as raised:
        SimManager(ExecMode.CPU, 0, worlds, seed, True)
    assert raised.value.argument == argument


def test_the_batch_renderer_draws_what_cameras_draw() -> None:
    sim = SimManager(ExecMode.CPU, 0, WORLDS, 5, True, enable_batch_renderer=True)
    rgb, depth = sim.rgb_tensor().to_torch(), sim.depth_tensor().to_torch()
    assert (tuple(rgb.shape), rgb.dtype) == ((WORLDS, 2, 64, 64, 4), torch.uint8)
    assert (tuple(depth.shape), depth.dtype) == ((WORLDS, 2, 64, 64, 1), torch.float32)
    with doorstep.Simulator(WORLDS, seed=5, action_check="off", cameras=doorstep.Cameras()) as core:
        for _ in range(3):
            sim.step()
            core.step()
            assert (rgb.numpy() == core.rgb.to_numpy()).all()
            assert (depth.numpy() == core.depth.to_numpy()).all()


def test_without_the_batch_renderer_there_are_no_images() -> None:
    sim = make()
    for name in ("rgb_tensor", "depth_tensor"):
        with pytest.raises(doorstep.ArgumentError, match=rf"{name}\(\) needs the batch renderer") as raised:
            getattr(sim, name)()
        assert raised.value.argument == "enable_batch_renderer"


# ---- The submodule


def test_a_tensor_wraps_any_array_without_a_copy() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    shared = Tensor(array).to_torch()
    array[1, 1] = 100
    assert shared[1, 1] == 100
    shared[0, 0] = -1
    assert array[0, 0] == -1


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "float32"])
def test_a_tensor_keeps_the_dtype(dtype: str) -> None:
    assert Tensor(np.zeros(3, dtype)).to_torch().dtype == getattr(torch, dtype)


def test_a_tensor_wraps_torch_and_other_tensors() -> None:
    source = torch.arange(5)
    assert Tensor(Tensor(source)).to_torch().data_ptr() == source.data_ptr()


def test_a_tensor_needs_an_array_with_few_dimensions() -> None:
    with pytest.raises(doorstep.ArgumentError, match="array must support DLPack, but is a list"):
        Tensor([1, 2, 3])  # type: ignore[arg-type]
    with pytest.raises(doorstep.ArgumentError, match="at most 16 dimensions, but has 17"):
        Tensor(np.zeros((1,) * 17))
    assert Tensor(np.zeros((1,) * 16)).to_torch().dim() == 16


def test_there_is_no_cuda_work_to_wait_for() -> None:
    with pytest.raises(doorstep.DeviceError, match="stream 3"):
        madrona.CudaSync().wait(3)


@pytest.mark.filterwarnings("default")  # jax itself warns
def test_a_jax_array_shares_the_memory() -> None:
    pytest.importorskip("jax")
    sim = make()
    remaining = sim.steps_remaining_tensor().to_jax()
    assert remaining.shape == (WORLDS, 2, 1)
    assert remaining.dtype == np.int32
    assert (np.asarray(remaining) == 200).all()


@pytest.mark.filterwarnings("default")
def test_the_train_interface_tells_shapes_and_dtypes_to_jax() -> None:
    pytest.importorskip("jax")
    sim = make()
    interface = madrona.TrainInterface(
        {"actions": sim.action_tensor(), "resets": sim.reset_tensor()},
        {"obs": {"lidar": sim.lidar_tensor()}, "rewards": sim.reward_tensor()},
    )
    outputs: dict[str, Any] = interface.step_outputs()
    assert {name: described(shape) for name, shape in interface.step_inputs().items()} == {
        "actions": ((WORLDS, 2, 4), np.int32),
        "resets": ((WORLDS, 1), np.int32),
    }
    assert described(outputs["obs"]["lidar"]) == ((WORLDS, 2, 30, 2), np.float32)
    assert described(outputs["rewards"]) == ((WORLDS, 2, 1), np.float32)


def described(shape: Any) -> tuple[tuple[int, ...], Any]:
    import jax

    assert isinstance(shape, jax.ShapeDtypeStruct)
    return shape.shape, shape.dtype
