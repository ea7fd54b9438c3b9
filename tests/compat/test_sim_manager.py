"""SimManager used from Python: its tensors are a simulator's in every step; what it refuses."""

import numpy as np
import pytest
from tests.refuses import refuses
from tests.scenes import random_actions

import doorstep
from doorstep.compat.madrona_escape_room import SimManager, madrona
from doorstep.compat.madrona_escape_room.madrona import ExecMode, Tensor

torch = pytest.importorskip("torch")

WORLDS = 5
# method: the tensor of a simulator, and its shape behind [worlds]
TENSORS = {
    "reset_tensor": ("resets", (1,), torch.int32),
    "action_tensor": ("actions", (2, 4), torch.int32),
    "reward_tensor": ("rewards", (2, 1), torch.float32),
    "done_tensor": ("dones", (2, 1), torch.int32),
    "self_observation_tensor": ("self_observations", (2, 8), torch.float32),
    "partner_observations_tensor": ("partner_observations", (2, 1, 3), torch.float32),
    "room_entity_observations_tensor": ("room_entity_observations", (2, 6, 3), torch.float32),
    "door_observation_tensor": ("door_observations", (2, 3), torch.float32),
    "lidar_tensor": ("lidar", (2, 30, 2), torch.float32),
    "steps_remaining_tensor": ("steps_remaining", (2, 1), torch.int32),
}


def make(auto_reset=True, num_worlds=WORLDS, seed=5):
    return SimManager(exec_mode=ExecMode.CPU, gpu_id=0, num_worlds=num_worlds, rand_seed=seed, auto_reset=auto_reset)


@pytest.mark.parametrize("auto_reset", [True, False])
def test_every_tensor_is_that_of_a_simulator_in_every_step(auto_reset):
    """The first visible episode included; actions also out of range, worlds reset in between, over two ends of
    episodes. With `auto_reset`, a step that ends an episode shows the next one with 200 steps remaining and takes the
    actions back; without, remaining steps stay at 0 and done at 1 until a reset, which does not raise done."""
    manager = make(auto_reset, seed=9)
    tensors = {name: getattr(manager, name)().to_torch() for name in TENSORS}
    for name, (_, shape, dtype) in TENSORS.items():
        assert (tuple(tensors[name].shape), tensors[name].dtype) == ((WORLDS, *shape), dtype)
        assert tensors[name].is_contiguous()
        assert getattr(manager, name)().to_torch().data_ptr() == tensors[name].data_ptr()
    reset, remaining, done = (tensors[f"{name}_tensor"] for name in ("reset", "steps_remaining", "done"))
    actions, draw = random_actions(3, 410, WORLDS), np.random.default_rng(1)
    actions[draw.random(actions.shape) < 0.02] = 9
    left, over = np.full(WORLDS, 200), np.zeros(WORLDS, bool)
    with doorstep.Simulator(WORLDS, seed=9, auto_reset=auto_reset, action_check="off") as core:
        for step, given in enumerate(actions):
            for name, (of_core, _, _) in TENSORS.items():
                assert (tensors[name].numpy() == core.tensors[of_core].to_numpy()).all(), (name, step)
            resets = (np.arange(WORLDS) == 3) & (step in (50, 230, 231))
            tensors["action_tensor"].copy_(torch.from_numpy(given))
            reset[:, 0] = torch.from_numpy(resets)
            core.actions[:], core.resets[:, 0] = given, resets
            manager.step()
            core.step()
            assert not reset.any()
            left = np.maximum(left - 1, 0)
            over = left == 0
            left[resets | (over & auto_reset)] = 200
            assert (remaining[:, :, 0].numpy() == left[:, None]).all(), step
            assert (done[:, :, 0].numpy() == over[:, None]).all(), step
            if auto_reset and over[0]:
                assert (tensors["action_tensor"][0] == torch.tensor([0, 0, 2, 0])).all()


def test_the_batch_renderer_draws_what_cameras_draw():
    sim = SimManager(ExecMode.CPU, 0, num_worlds=WORLDS, rand_seed=5, auto_reset=True, enable_batch_renderer=True)
    rgb, depth = sim.rgb_tensor().to_torch(), sim.depth_tensor().to_torch()
    assert (tuple(rgb.shape), rgb.dtype) == ((WORLDS, 2, 64, 64, 4), torch.uint8)
    assert (tuple(depth.shape), depth.dtype) == ((WORLDS, 2, 64, 64, 1), torch.float32)
    with doorstep.Simulator(WORLDS, seed=5, action_check="off", cameras=doorstep.Cameras()) as core:
        for _ in range(3):
            sim.step()
            core.step()
            assert (rgb.numpy() == core.rgb.to_numpy()).all()
            assert (depth.numpy() == core.depth.to_numpy()).all()
    for name in ("rgb_tensor", "depth_tensor"):
        with pytest.raises(doorstep.ArgumentError, match=rf"{name}\(\) needs the batch renderer") as raised:
            getattr(make(), name)()
        assert raised.value.argument == "enable_batch_renderer"


def test_what_cannot_be_is_refused():
    refuses("device", SimManager, ExecMode.CUDA, 0, WORLDS, 5, True, error=doorstep.DeviceError)
    refuses("stream 3", madrona.CudaSync().wait, 3, error=doorstep.DeviceError)
    for mode in (0, "CPU", None):
        refuses(r"exec_mode is .*madrona\.ExecMode\.CPU or", SimManager, mode, 0, WORLDS, 5, True, argument="exec_mode")
    for worlds, seed, argument in ((0, 5, "num_worlds"), (WORLDS, -1, "seed"), (WORLDS, 2**32, "seed")):
        refuses(None, SimManager, ExecMode.CPU, 0, worlds, seed, True, argument=argument)


# ---- The submodule


def test_a_tensor_wraps_any_array_without_a_copy():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    shared = Tensor(array).to_torch()
    array[1, 1] = 100
    assert shared[1, 1] == 100
    shared[0, 0] = -1
    assert array[0, 0] == -1
    for dtype in ("uint8", "int8", "int16", "int32", "int64", "float16", "float32"):
        assert Tensor(np.zeros(3, dtype)).to_torch().dtype == getattr(torch, dtype)
    source = torch.arange(5)
    assert Tensor(Tensor(source)).to_torch().data_ptr() == source.data_ptr()
    refuses("array must support DLPack, but is a list", Tensor, [1, 2, 3])
    refuses("at most 16 dimensions, but has 17", Tensor, np.zeros((1,) * 17))
    assert Tensor(np.zeros((1,) * 16)).to_torch().dim() == 16


@pytest.mark.filterwarnings("default")  # jax itself warns
def test_jax_shares_the_memory_and_is_told_shapes_and_dtypes():
    jax = pytest.importorskip("jax")
    sim = make()
    remaining = sim.steps_remaining_tensor().to_jax()
    assert (remaining.shape, remaining.dtype) == ((WORLDS, 2, 1), np.int32)
    assert (np.asarray(remaining) == 200).all()
    outputs = {"obs": {"lidar": sim.lidar_tensor()}, "rewards": sim.reward_tensor()}
    interface = madrona.TrainInterface({"actions": sim.action_tensor(), "resets": sim.reset_tensor()}, outputs)
    shapes = ((WORLDS, 2, 4), np.int32), ((WORLDS, 1), np.int32), ((WORLDS, 2, 30, 2), np.float32)
    actions, resets, lidar = (jax.ShapeDtypeStruct(*one) for one in shapes)
    rewards = jax.ShapeDtypeStruct((WORLDS, 2, 1), np.float32)
    assert interface.step_inputs() == {"actions": actions, "resets": resets}
    assert interface.step_outputs() == {"obs": {"lidar": lidar}, "rewards": rewards}
