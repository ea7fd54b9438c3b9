"""`Player`: what a policy is called with in a simulator, and what is made of its answers."""

import re

import numpy as np
import pytest
from tests.pkg.dlpack_only import OnlyDlpack
from tests.refuses import raising, refuses

import doorstep
from doorstep import load_policy
from doorstep.policy import SamplingParams
from doorstep.policy.playing import Player

SHAPE = (2, 2, 4)


@pytest.fixture
def sim():
    with doorstep.Simulator(2, seed=3) as one:
        yield one


class Seeing:
    """Keeps what it is called with; its actions count the calls."""

    def __init__(self, observes):
        self.observes = observes
        self.seen = []

    def __call__(self, observations):
        self.seen.append(observations)
        actions = np.zeros(SHAPE, np.uint8)
        actions[..., 0], actions[..., 2] = len(self.seen), 2
        return actions


def test_a_network_for_other_observations_is_refused_before_the_first_step():
    for num_agents, width in ((1, 91), (3, 97)):
        with doorstep.Simulator(1, num_agents=num_agents) as others, pytest.raises(doorstep.ArgumentError) as caught:
            Player(load_policy("trained"), others, "trained")
        told = f"policy 'trained' reads 94 numbers; agents observe {width} (it was made for worlds with num_agents=2)"
        assert str(caught.value) == told
    by_name = pytest.raises(doorstep.ArgumentError, match="observations is 'by_name'")
    with doorstep.Simulator(2, observations="by_name") as sim, by_name:
        Player(load_policy("trained"), sim).act()


# ---- What a policy observes


def test_flat_observations_are_copies_of_each_step_that_a_policy_may_keep_and_change(sim):
    policy, shown = Seeing("flat"), []
    player = Player(policy, sim)
    for step in range(1, 4):
        shown.append(sim.observations.copy_to_host())
        player.act()
        assert sim.actions.to_numpy().tolist() == np.full(SHAPE, (step, 0, 2, 0)).tolist()
        sim.step()
    assert np.array_equal(policy.seen, shown)
    assert not np.array_equal(shown[0], shown[2])
    after = sim.observations.copy_to_host()
    player.act()
    policy.seen[3][:] = -1
    assert np.array_equal(sim.observations.to_numpy(), after)


def test_tensors_are_all_of_the_simulators_by_name_as_copies_and_a_simulator_is_given_as_it_is(sim):
    policy = Seeing("tensors")
    sim.step()
    Player(policy, sim).act()
    (tensors,) = policy.seen
    assert list(tensors) == list(sim.tensors)
    assert len(tensors) == len(sim.tensors)
    for name, tensor in sim.tensors.items():
        assert tensors[name].dtype == tensor.dtype
        assert tensors[name] is not tensors[name]
        if name != "actions":
            assert np.array_equal(tensors[name], tensor.to_numpy())
    with pytest.raises(KeyError, match=r"'lidars' is not a tensor of the simulator; did you mean 'lidar'\?"):
        tensors["lidars"]
    policy = Seeing("simulator")
    Player(policy, sim).act()
    assert policy.seen == [sim]


def test_a_policy_plays_one_simulator_after_the_other():
    policy = load_policy("scripted")
    for seed in (1, 2, 1):
        with doorstep.Simulator(2, seed=seed) as sim, doorstep.Simulator(2, seed=seed) as same:
            player, alone = Player(policy, sim), Player(load_policy("scripted"), same)
            for _ in range(20):
                player.act()
                alone.act()
                assert (sim.actions == same.actions).all()
                sim.step()
                same.step()


# ---- Memory


def test_a_state_comes_back_with_zeros_where_an_episode_has_begun():
    states = []

    def policy(observations, state=None):
        states.append(None if state is None else state[..., 0].tolist())
        state = np.zeros((*observations.shape[:2], 3)) if state is None else state
        return np.zeros((*observations.shape[:2], 4), int), state + 1

    with doorstep.Simulator(2, episode_length=3) as sim:
        player = Player(policy, sim)
        for step in range(6):
            player.act()
            sim.step()
            if step == 3:
                sim.reset([1])
            if step == 4:
                player.forget(np.array([0]))
    assert states == [None, [[1, 1]] * 2, [[2, 2]] * 2, [[0, 0]] * 2, [[1, 1], [0, 0]], [[0, 0], [1, 1]]]


# ---- Random numbers


def test_random_numbers_follow_from_the_simulators_seed_unless_the_policy_has_one():
    for name in ("random", "trained"):
        for sim_seed, given, seed in ((1, None, 1), (2, None, 2), (2, SamplingParams(seed=5), 5)):
            with doorstep.Simulator(64, seed=sim_seed) as sim:
                player, same = Player(load_policy(name, sampling=given), sim), SamplingParams(seed=seed)
                expected = load_policy(name, sampling=same)
                for _ in range(2):
                    actions = expected(sim.observations)
                    player.act()
                    assert (sim.actions == actions).all()
                    sim.step()


# ---- What a policy returns


class OnGpu:
    def __array__(self, dtype=None, copy=None):
        raise TypeError("cannot convert a tensor on cuda:0")


def test_actions_may_be_of_any_library_and_integer_type(sim):
    ones = np.full(SHAPE, 1)
    for returned in (ones.tolist(), ones, ones.astype(np.uint8), OnlyDlpack(ones.astype(np.int16))):
        sim.actions[:] = 0
        Player(lambda _, returned=returned: returned, sim).act()
        assert (sim.actions == 1).all()


INTEGERS = "it must return integers [2, 2, 4]"
WRONG = [
    (np.full(SHAPE, 1.0), f"policy 'mine' returned float64 [2, 2, 4]; {INTEGERS}"),
    (np.full(SHAPE, True), f"policy 'mine' returned bool [2, 2, 4]; {INTEGERS}"),
    (np.full((4, 4), 1), f"policy 'mine' returned int64 [4, 4]; {INTEGERS}"),
    (None, f"policy 'mine' returned NoneType; {INTEGERS}"),
    ([[1], [1, 2]], f"policy 'mine' returned list; {INTEGERS}"),
    ((1, 2, 3), "policy 'mine' returned 3 values; it must return actions, or actions and a state"),
    (OnGpu(), f"{INTEGERS} in the host's memory (TypeError: cannot convert a tensor on cuda:0)"),
]


def test_actions_that_do_not_fit_are_an_error_and_change_nothing(sim):
    sim.actions[:] = 1
    for returned, says in WRONG:
        player = Player(lambda _, returned=returned: returned, sim, "mine")
        refuses(re.escape(says), player.act, argument="policy")

    refuses("mine", Player(raising(ZeroDivisionError, "mine"), sim).act, error=ZeroDivisionError)
    assert (sim.actions == 1).all()
    Player(lambda _: np.full(SHAPE, 2**31), sim).act()  # values out of range are the simulator's matter
    sim.step()
    assert sim.health.clamped_actions > 0
