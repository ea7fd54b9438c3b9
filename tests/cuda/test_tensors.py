"""Tensors of a GPU: they never pretend to be arrays of the host; they are set and bound in order with the streams of
users, in their memory, for as long as needed."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import all_raise, on_stand_in, refused
from tests.cuda.twins import Twins, step
from tests.cuda.users_memory import UsersArray
from tests.scenes import random_actions

import doorstep
from doorstep import cuda
from doorstep._batches import usable_device
from doorstep._native import DeviceKind

WORLDS = 7
SHAPE = (WORLDS, 2, 4)
BOUND = "lidar", "actions"


def like(tensor, stream):
    return UsersArray(tensor.shape, tensor.dtype, stream)


def addresses(sim):
    return {name: tensor.__cuda_array_interface__["data"][0] for name, tensor in sim.tensors.items()}


USES = [
    lambda tensor: tensor[0], lambda tensor: tensor.__setitem__(0, 1), list, lambda tensor: 1 in tensor, bool,
    lambda tensor: tensor == 1, lambda tensor: np.zeros(4, np.int32) == tensor, lambda tensor: 1 + tensor,
    lambda tensor: tensor.__iadd__(1), np.exp, np.asarray,
]  # fmt: skip


def test_what_works_on_the_cpu_raises_and_names_what_to_use():
    with doorstep.Simulator(3, device="cuda") as sim:
        before = sim.actions.copy_to_host()
        for use in USES:
            with pytest.raises(TypeError, match="copy_to_host") as caught:
                use(sim.actions)
            assert use is np.asarray or "cuda:0, writable) is GPU memory, where" in str(caught.value), use
        assert (sim.actions.copy_to_host() == before).all()
        with pytest.raises(doorstep.ArgumentError):
            sim.rewards.copy_from_host(np.zeros((3, 2, 1), np.float32))
        driver.clear()
        assert (len(sim.actions), sim.actions.ndim, sim.actions.size, sim.actions.nbytes) == (3, 3, 24, 96)
        assert repr(sim.actions) == "Tensor(actions, int32 [3, 2, 4], cuda:0, writable)"
        assert "Tensor(actions" in sim.actions._repr_html_()
        assert "<td>actions</td>" in sim._repr_html_()
        assert not driver.report().calls
        with pytest.raises(AttributeError, match="is GPU memory; it has a __cuda_array_interface__"):
            sim.actions.__array_interface__  # noqa: B018
        with pytest.raises(BufferError, match="is GPU memory, which has no buffer; use copy_to_host"):
            sim.actions.__buffer__(0)


def test_the_cuda_array_interface_describes_the_memory():
    sim, one = (doorstep.Simulator(4, num_agents=agents, device="cuda") for agents in (3, 1))
    with sim, one:
        for tensor in (*sim.tensors.values(), sim.state.body_positions, sim.state.episode_index):
            interface = tensor.__cuda_array_interface__
            assert (np.dtype(interface["typestr"]), interface["version"]) == (tensor.dtype, 3)
            assert (interface["shape"], interface["strides"]) == (tensor.shape, tensor.strides)
            assert (interface["data"][1], interface["stream"]) == (False, sim.stream)
        assert sim.actions.__cuda_array_interface__["data"][0] % 256 == 0
        empty = one.partner_observations.__cuda_array_interface__
        assert (empty["shape"], empty["strides"], empty["data"][0]) == ((4, 1, 0, 3), None, 0)


def test_batches_are_made_where_the_config_says():
    for device, expected in (("cpu", DeviceKind.CPU), ("auto", DeviceKind.CUDA), ("cuda:0", DeviceKind.CUDA)):
        assert usable_device(doorstep.SimulatorConfig(2, device=device)) == (expected, 0)
    with pytest.raises(doorstep.NoDeviceError):
        usable_device(doorstep.SimulatorConfig(2, device="cuda:3"))


# ---- Setting


def test_setting_from_the_device_is_ordered_with_both_streams_and_waits_for_nothing():
    for shape in (SHAPE, (WORLDS * 2, 4)):
        with (
            driver.users_stream() as stream,
            driver.users_stream() as simulators,
            doorstep.Simulator(WORLDS, device="cuda", stream=stream) as source,
            Twins(WORLDS, stream=simulators) as (cpu, sim),
        ):
            chosen = UsersArray(shape, np.int32, stream)
            drawn = random_actions(1, 8, WORLDS)
            source.actions = drawn[5]
            sim.wait()
            driver.clear()
            for actions in drawn:
                chosen.fill(actions.reshape(shape))
                sim.actions = chosen
                sim.step()
            sim.actions = source.actions  # another simulator's
            sim.step()
            source.step()
            assert not {*driver.WAITING, "cuEventQuery"}.intersection(driver.report().calls)
            for actions in (*drawn, drawn[5]):
                step(cpu, actions)
            assert sim.stream == simulators
            assert sim.hash() == cpu.hash()
            driver.synchronize(stream)


@on_stand_in(devices=2)
def test_what_does_not_fit_is_neither_set_nor_bound():
    with driver.users_stream() as stream, doorstep.Simulator(WORLDS, device="cuda:0") as sim:
        good = like(sim.resets, stream)
        good.fill(np.full(good.shape, 7, np.int32))
        elsewhere = UsersArray(SHAPE, np.int32, stream, device=1)
        unmarked = SimpleNamespace(__cuda_array_interface__=elsewhere.__cuda_array_interface__)
        set_values = [
            (UsersArray(SHAPE, np.int64, stream), r"actions is int64 .* must be int32"),
            (UsersArray((WORLDS, 2), np.int32, stream), rf"int32 \[{WORLDS}, 2, 4\]"),
            (elsewhere, "cuda:0"),
            (np.ones(SHAPE), "int32"),
        ]
        bound_values = [
            (elsewhere, "must be on cuda:0"),
            (unmarked, "memory of device 1"),
            (np.ones(SHAPE, np.int32), "must be on cuda:0"),
            (UsersArray(SHAPE, np.float32, stream), "int32"),
            (sim.actions, "overlaps"),
        ]
        before, place = sim.actions.copy_to_host(), sim.resets.__cuda_array_interface__["data"]
        for value, message in set_values:
            with refused("actions", message):
                sim.actions = value
        for value, message in bound_values:
            with pytest.raises(doorstep.ArgumentError, match=message):
                sim.bind(resets=good, actions=value)
        assert (sim.actions.copy_to_host() == before).all()
        assert sim.resets.__cuda_array_interface__["data"] == place
        assert (good.read() == 7).all()
        with doorstep.Simulator(WORLDS) as cpu, pytest.raises(doorstep.ArgumentError, match="must be on cpu"):
            cpu.actions = UsersArray(SHAPE, np.int32, stream)


# ---- Binding


def test_bound_tensors_have_the_bits_of_the_cpu():
    with driver.users_stream() as stream, Twins(WORLDS, stream=stream, episode_length=6) as (cpu, sim):
        own = addresses(sim)
        places = {name: like(tensor, stream) for name, tensor in sim.tensors.items()}
        sim.bind(**places)
        for actions in random_actions(1, 15, WORLDS):
            places["actions"].fill(actions)
            sim.step()
            step(cpu, actions)
            assert addresses(sim) == {name: place.pointer for name, place in places.items()}
            for name, place in places.items():
                assert place.read().tobytes() == cpu.tensors[name].copy_to_host().tobytes(), name
                assert sim.tensors[name].copy_to_host().tobytes() == place.read().tobytes()
        saved = cpu.save()
        assert sim.save() == saved
        sim.reset()
        sim.restore(saved)
        assert sim.save() == saved
        sim.bind(**dict.fromkeys(places))
        assert addresses(sim) == own
        sim.step()
        cpu.step()
        assert sim.lidar.copy_to_host().tobytes() == cpu.lidar.copy_to_host().tobytes()


def test_binding_comes_after_what_the_user_began_on_the_memory():
    with (
        driver.users_stream() as stream,
        driver.users_stream() as simulators,
        doorstep.Simulator(WORLDS, device="cuda", stream=simulators) as sim,
    ):
        sim.actions, place = random_actions(5, 1, WORLDS)[0], like(sim.actions, stream)
        place.fill(np.full(SHAPE, 77, np.int32))
        expected = sim.actions.copy_to_host()
        sim.bind(actions=place)
        np.testing.assert_array_equal(place.read(), expected)


def test_memory_is_given_back_after_the_work_that_uses_it():
    for end in ("unbind", "close", "drop", "rebind"):
        with driver.users_stream() as stream:
            sim = doorstep.Simulator(WORLDS, device="cuda", stream=cuda.Stream())
            sim.bind(**{name: like(sim.tensors[name], stream) for name in BOUND})
            for _ in range(3):
                sim.step()
            gc.collect()
            if end == "close":
                sim.close()
            elif end != "drop":
                sim.bind(**{name: like(sim.tensors[name], stream) if end == "rebind" else None for name in BOUND})
            del sim
            gc.collect()
            driver.finish()
            assert (end, driver.report().live) == (end, {"streams": 1})


def test_memory_goes_after_the_work_and_with_the_last_tensor_of_it():
    for is_bound in (False, True):
        with driver.users_stream() as stream:
            sim = doorstep.Simulator(WORLDS, device="cuda", stream=stream)
            if is_bound:
                sim.bind(lidar=like(sim.lidar, stream))
            lidar, capsule, event = sim.lidar, sim.lidar.__dlpack__(stream=-1, max_version=(1, 0)), sim.step_async()
            assert driver.report().pending > 0
            sim.close()
            sim.close()
            all_raise(doorstep.ClosedError, sim.step, sim.reset, sim.save, sim.hash, sim.wait)
            del sim
            assert event.wait()
            assert lidar.copy_to_host().shape == (WORLDS, 2, 30, 2)
            del lidar
            gc.collect()
            assert driver.report().live["device_memory"] == 1
            del capsule
            gc.collect()
            assert "device_memory" not in driver.report().live


def test_a_graph_keeps_the_memory_it_was_recorded_with_and_a_recording_holds_no_binding():
    with driver.users_stream() as stream, doorstep.Simulator(WORLDS, device="cuda", stream=stream) as sim:
        first, second = like(sim.steps_remaining, stream), like(sim.steps_remaining, stream)
        sim.bind(steps_remaining=first)
        with driver.RecordedGraph(stream) as graph:
            sim.step()
            with refused("stream", "captured"):
                sim.bind(steps_remaining=second)
        sim.bind(steps_remaining=second)
        graph.launch()
        assert (first.read() == 199).all()
        assert (second.read() == 200).all()
        sim.step()
        assert (second.read() == 198).all()


def test_memory_dropped_during_a_recording_is_kept_for_the_graph_and_nothing_else_is():
    with driver.users_stream() as stream, doorstep.Simulator(WORLDS, device="cuda", stream=stream) as sim:
        sim.bind(lidar=like(sim.lidar, stream))
        lidar = sim.lidar
        sim.bind(lidar=like(sim.lidar, stream))
        with driver.RecordedGraph(stream) as graph:
            sim.step()
            del lidar
            gc.collect()
        graph.launch()
        driver.synchronize(stream)
    driver.objects_stay()
    del sim
    gc.collect()
    assert driver.report().live == {"device_memory": 1}
