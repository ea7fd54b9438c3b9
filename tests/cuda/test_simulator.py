"""Every method of a simulator on the GPU does what it does on the CPU."""

import pickle
import re
from typing import Any

import numpy as np
import pytest
from tests.cuda import stand_in_driver
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.twins import Twins
from tests.scenes import random_actions

import doorstep
from doorstep import cuda


@on_stand_in(devices=2)
def test_device_and_repr_name_the_gpu() -> None:
    with doorstep.Simulator(2, device="cuda") as first, doorstep.Simulator(2, device="cuda:1") as second:
        assert (first.device, second.device) == ("cuda:0", "cuda:1")
        assert repr(second) == "Simulator(2 worlds, 2 agents, seed 0, cuda:1)"
        assert repr(second.rewards) == "Tensor(rewards, float32 [2, 2, 1], cuda:1, read-only)"
        assert second.rewards.device == "cuda:1"


@on_stand_in()
def test_auto_takes_the_gpu() -> None:
    with doorstep.Simulator(2, device="auto") as sim:
        sim.step()
        assert sim.device == "cuda:0"


@on_stand_in()
def test_allocated_bytes_are_what_the_device_gave() -> None:
    before = cuda.Device().free_bytes
    with doorstep.Simulator(3000, device="cuda") as sim:
        taken = before - cuda.Device().free_bytes
        assert 0 < taken <= sim.allocated_bytes <= 3000 * 3072 + 64 * 2**20


@pytest.mark.parametrize("worlds", [None, [1, 30], [], "mask", "no mask"])
@on_stand_in()
def test_reset_regenerates_the_chosen_worlds(worlds: list[int] | str | None) -> None:
    masks = {"mask": np.arange(40) % 3 == 1, "no mask": np.zeros(40, bool)}
    with Twins(40) as twins:
        twins.step_randomly(3)
        for sim in twins.both():
            sim.reset(masks[worlds] if isinstance(worlds, str) else worlds)
        twins.assert_same()
        twins.step_randomly(2)
        twins.assert_same()


@on_stand_in()
def test_resets_written_into_the_tensor_happen_within_the_step() -> None:
    with Twins(5) as twins:
        resets = np.array([[0], [1], [0], [7], [0]], np.int32)
        twins.cpu.resets.to_numpy()[:] = resets
        twins.gpu.resets.copy_from_host(resets)
        twins.step_randomly(1)
        twins.assert_same()
        assert (twins.gpu.state.episode_index.copy_to_host() == [1, 2, 1, 2, 1]).all()


@on_stand_in()
def test_every_state_field_reads_as_on_the_cpu() -> None:
    with Twins(9, num_agents=3) as twins:
        twins.step_randomly(10)
        for name in dir(type(twins.cpu.state)):
            if not name.startswith("_"):
                expected = getattr(twins.cpu.state, name).to_numpy()
                assert getattr(twins.gpu.state, name).copy_to_host().tobytes() == expected.tobytes(), name


@on_stand_in()
def test_edits_of_the_state_reach_observations_and_the_next_step() -> None:
    with Twins(6) as twins:
        twins.step_randomly(2)
        moved = twins.cpu.state.body_positions.to_numpy().copy()
        moved[:, :, 0] *= np.float32(0.5)
        moved[:, 0, 1] += np.float32(1.0)
        twins.cpu.state.body_positions.to_numpy()[:] = moved
        twins.gpu.state.body_positions.copy_from_host(moved)
        for sim in twins.both():
            sim.refresh()
        twins.assert_same()
        twins.step_randomly(5)
        twins.assert_same()


@on_stand_in()
def test_index_edited_to_an_impossible_value_is_set_back_and_counted() -> None:
    with Twins(4) as twins:
        grabs = np.full((4, 2), 99, np.int32)
        twins.cpu.state.agent_grabs.to_numpy()[:] = grabs
        twins.gpu.state.agent_grabs.copy_from_host(grabs)
        twins.step_randomly(1)
        twins.assert_same()
        assert twins.gpu.health.repaired_indices > 0


@on_stand_in()
def test_save_of_either_continues_on_the_other() -> None:
    with Twins(12, seed=4) as twins, doorstep.Simulator(12, device="cuda") as there:
        twins.step_randomly(20)
        assert twins.gpu.save() == twins.cpu.save()
        assert twins.gpu.save([3, 7]) == twins.cpu.save([3, 7])
        there.restore(twins.cpu.save())
        assert there.hash() == twins.cpu.hash()
        with doorstep.Simulator(12) as back:
            back.restore(there.save())
            assert (back.world_hashes() == twins.cpu.world_hashes()).all()
        for name in ("self_observations", "lidar", "steps_remaining", "actions"):
            assert (there.tensors[name].copy_to_host() == twins.cpu.tensors[name].to_numpy()).all(), name
        actions = random_actions(3, 1, 12)[0]
        there.actions.copy_from_host(actions)
        there.step()
        twins.step(actions)
        assert there.hash() == twins.cpu.hash()


@on_stand_in()
def test_restore_into_some_slots_leaves_the_others_alone() -> None:
    with Twins(6) as twins:
        twins.step_randomly(3)
        saved = twins.cpu.save([0, 1])
        twins.step_randomly(3, seed=7)
        for sim in twins.both():
            sim.restore(saved, [5, 2])
        twins.assert_same_worlds()
        twins.step_randomly(3, seed=8)
        twins.assert_same_worlds()


@on_stand_in()
def test_damaged_save_changes_nothing() -> None:
    with doorstep.Simulator(4, device="cuda") as sim:
        saved, before = bytearray(sim.save()), sim.world_hashes()
        saved[200] ^= 1
        with pytest.raises(doorstep.StateError):
            sim.restore(saved)
        assert (sim.world_hashes() == before).all()


@on_stand_in()
def test_hash_of_worlds_is_the_sum_of_their_hashes() -> None:
    with doorstep.Simulator(40, device="cuda") as sim:
        hashes = sim.world_hashes()
        assert sim.hash() == sum(map(int, hashes)) % 2**64
        assert sim.hash([39, 3]) == (int(hashes[3]) + int(hashes[39])) % 2**64


@on_stand_in()
def test_checked_actions_out_of_range_are_refused_and_nothing_is_stepped() -> None:
    with doorstep.Simulator(40, device="cuda", action_check="raise") as sim:
        sim.step()
        before, count = sim.hash(), sim.step_count
        actions = sim.actions.copy_to_host()
        actions[37, 1, 2] = 5
        sim.actions.copy_from_host(actions)
        with pytest.raises(doorstep.ArgumentError, match=re.compile(r"(?s)(?=.*37)(?=.*5)")) as caught:
            sim.step()
        assert caught.value.argument == "actions"
        assert (sim.hash(), sim.step_count) == (before, count)
        actions[37, 1, 2] = 4
        sim.actions.copy_from_host(actions)
        sim.step()
        assert sim.hash() != before


@on_stand_in()
def test_strict_simulator_refuses_the_call_after_trouble() -> None:
    with doorstep.Simulator(40, device="cuda", strict=True) as sim:
        sim.step()
        positions = sim.state.body_positions.copy_to_host()
        positions[33, 0, 0] = np.nan
        sim.state.body_positions.copy_from_host(positions)
        sim.step()
        sim.wait()
        with pytest.raises(doorstep.SimulationError, match="33"):
            sim.step()
        assert sim.health.nonfinite_values > 0
        assert sim.health.culprit_world == 33


@on_stand_in()
def test_health_counts_and_names_the_world() -> None:
    with Twins(50) as twins:
        actions = random_actions(0, 1, 50)[0]
        actions[41, 0, 0] = 9
        twins.step(actions)
        assert twins.gpu.health == twins.cpu.health
        assert twins.gpu.health.clamped_actions == 1


@on_stand_in()
def test_event_of_a_step_happens_when_the_step_has_run() -> None:
    with Twins(8) as twins:
        event = twins.gpu.step_async()
        assert not event.done
        assert event.wait()
        assert event.done
        twins.cpu.step()
        twins.assert_same()
        later = twins.gpu.step_async()
        twins.gpu.wait()
        assert later.done
        assert event.done


@on_stand_in()
def test_wait_with_a_timeout_ends_by_itself() -> None:
    with doorstep.Simulator(4, device="cuda") as sim:
        event = sim.step_async()
        assert not event.wait(0.0)
        assert event.wait(5.0)


@on_stand_in()
def test_profile_is_for_the_cpu_and_says_so() -> None:
    with doorstep.Simulator(2, device="cuda") as sim, pytest.raises(doorstep.DeviceError, match="CPU"):
        sim.start_profile()


@on_stand_in()
def test_numpy_is_sent_to_the_copies() -> None:
    with doorstep.Simulator(2, device="cuda") as sim:
        for attempt in (sim.rewards.to_numpy, lambda: np.asarray(sim.rewards)):
            with pytest.raises(TypeError, match="copy_to_host"):
                attempt()
        with pytest.raises(doorstep.ArgumentError):
            sim.rewards.copy_from_host(np.zeros((2, 2, 1), np.float32))
        with pytest.raises(doorstep.ArgumentError):
            sim.actions.copy_from_host(np.zeros((2, 2, 4), np.int64))
        with pytest.raises(TypeError):
            pickle.dumps(sim.rewards)


@on_stand_in()
def test_a_seed_begins_anew_in_the_same_memory() -> None:
    rules: dict[str, Any] = {"levels": "curated", "level_weights": range(1, 21)}
    with doorstep.Simulator(3, seed=1, device="cuda", **rules) as sim, doorstep.Simulator(3, seed=4, **rules) as new:
        before = sim.lidar.__cuda_array_interface__["data"]
        sim.step()
        sim.reset(seed=4)
        assert (sim.seed, sim.hash()) == (4, new.hash())
        assert sim.lidar.__cuda_array_interface__["data"] == before
        with pytest.raises(TypeError, match="restore its save"):
            pickle.dumps(sim)


@on_stand_in()
def test_closed_simulator_says_so_and_its_tensors_stay() -> None:
    sim = doorstep.Simulator(3, device="cuda")
    lidar, event = sim.lidar, sim.step_async()
    sim.close()
    sim.close()
    assert event.wait()
    assert lidar.copy_to_host().shape == (3, 2, 30, 2)
    for call in (sim.step, sim.reset, sim.save, sim.hash, sim.wait):
        with pytest.raises(doorstep.ClosedError):
            call()


@on_stand_in()
def test_memory_of_the_gpu_is_never_read_by_the_host() -> None:
    # The stand-in closes it to the process; this is what tells that it does.
    with doorstep.Simulator(3, device="cuda") as sim:
        sim.step()
        sim.wait()
        assert stand_in_driver.peek(sim.steps_remaining).ravel().tolist() == [199] * 6
