"""The GPU gives the CPU's bits: worlds, tensors, health, whatever the numbers of worlds, agents and blocks."""

import numpy as np
import pytest
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.twins import Twins, play_levels

import doorstep


@pytest.mark.parametrize("num_agents", [1, 2, 3, 4, 5, 8])
@on_stand_in()
def test_worlds_and_tensors_are_the_cpus(num_agents: int) -> None:
    with Twins(35, num_agents=num_agents, seed=5, episode_length=40) as twins:
        twins.assert_same()
        twins.step_randomly(1)
        twins.assert_same()
        twins.step_randomly(90, seed=2)
        twins.assert_same()


@pytest.mark.parametrize("num_agents", [1, 2, 8])
@on_stand_in()
def test_levels_are_played_as_on_the_cpu(num_agents: int) -> None:
    play_levels(35, num_agents=num_agents, seed=5, observations=("physics", *reversed(doorstep.OBSERVATIONS)))


@pytest.mark.slow
@pytest.mark.parametrize("num_worlds", [1, 31, 64])
@on_stand_in()
def test_hash_is_the_cpus_after_1_200_and_2000_steps(num_worlds: int) -> None:
    with Twins(num_worlds, seed=num_worlds) as twins:
        for first, last in ((0, 1), (1, 200), (200, 2000 if num_worlds < 64 else 400)):
            twins.step_randomly(last - first, seed=last)
            twins.assert_same_worlds()


@pytest.mark.parametrize("num_worlds", [1, 32, 33, 300])
@on_stand_in(multiprocessors=1)
def test_blocks_that_take_several_tiles_give_the_same_bits(num_worlds: int) -> None:
    with Twins(num_worlds, seed=9, episode_length=3) as twins:
        twins.step_randomly(5)
        twins.assert_same()


@pytest.mark.parametrize("action_check", ["clamp", "off"])
@on_stand_in()
def test_actions_out_of_range_are_treated_alike(action_check: str) -> None:
    with Twins(20, action_check=action_check) as twins:
        for seed in range(5):
            twins.step(np.random.default_rng(seed).integers(-9, 9, (20, 2, 4), dtype=np.int32))
        twins.assert_same()


@on_stand_in()
def test_episodes_without_auto_reset_stay_at_their_end() -> None:
    with Twins(10, auto_reset=False, episode_length=4) as twins:
        twins.step_randomly(7)
        twins.assert_same()
        assert not twins.gpu.steps_remaining.copy_to_host().any()


@on_stand_in()
def test_shards_on_the_gpu_are_parts_of_the_whole() -> None:
    with (
        doorstep.Simulator(50, seed=3, num_threads=1) as whole,
        doorstep.Simulator(33, seed=3, device="cuda") as left,
        doorstep.Simulator(17, seed=3, device="cuda", world_offset=33) as right,
    ):
        for sim in (whole, left, right):
            sim.step()
        assert (left.hash() + right.hash()) % 2**64 == whole.hash()
