"""`Player`: what a policy is called with in a simulator, and what is made of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.pkg.dlpack_only import OnlyDlpack

import doorstep
from doorstep import load_policy
from doorstep.policy import SamplingParams
from doorstep.policy.playing import Player

SHAPE = (2, 2, 4)


@pytest.fixture
def sim() -> Iterator[doorstep.Simulator]:
    with doorstep.Simulator(2, seed=3) as one:
        yield one


class Seeing:
    """Keeps what it is called with; its actions count the calls."""

    def __init__(self, observes: str) -> None:
        self.observes = observes
        self.seen: list[Any] = []

    def __call__(self, observations: Any) -> Any:
        self.seen.append(observations)
        actions = np.zeros(SHAPE, np.uint8)
        actions[..., 0], actions[..., 2] = len(self.seen), 2
        return actions


@pytest.mark.parametrize(("num_agents", "width"), [(1, 91), (3, 97)])
def test_a_network_for_another_number_of_agents_is_refused_before_the_first_step(num_agents: int, width: int) -> None:
    with doorstep.Simulator(1, num_agents=num_agents) as others, pytest.raises(doorstep.ArgumentError) as caught:
        Player(load_policy("trained"), others, "trained")
    assert str(caught.value) == (
        f"policy 'trained' reads 94 numbers; agents observe {width} (it was made for worlds with num_agents=2)"
    )


# ---- What a policy observes


def test_a_policy_is_called_before_each_step_and_its_actions_are_set(sim: doorstep.Simulator) -> None:
    policy = Seeing("flat")
    player = Player(policy, sim)
    for step in range(1, 4):
        player.act()
        assert sim.actions.to_numpy().tolist() == np.full(SHAPE, (step, 0, 2, 0)).tolist()
        sim.step()
    assert len(policy.seen) == 3


def test_flat_observations_are_copies_that_a_policy_may_keep_and_change(sim: doorstep.Simulator) -> None:
    policy = Seeing("flat")
    player = Player(policy, sim)
    before = sim.observations.copy_to_host()
    player.act()
    sim.actions[:] = (3, 0, 2, 0)
    sim.step()
    assert np.array_equal(policy.seen[0], before)
    after = sim.observations.copy_to_host()
    assert not np.array_equal(after, before)
    policy.seen[0][:] = -1
    assert np.array_equal(sim.observations.to_numpy(), after)


def test_tensors_are_all_of_the_simulators_by_name_as_copies(sim: doorstep.Simulator) -> None:
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


def test_a_simulator_is_given_to_a_policy_that_asks_for_it(sim: doorstep.Simulator) -> None:
    policy = Seeing("simulator")
    Player(policy, sim).act()
    assert policy.seen == [sim]


def test_a_policy_that_observes_flat_needs_a_simulator_that_writes_it() -> None:
    with (
        doorstep.Simulator(2, observations="by_name") as sim,
        pytest.raises(doorstep.ArgumentError, match="observations is 'by_name'"),
    ):
        Player(load_policy("trained"), sim).act()


# ---- Memory


def test_a_state_comes_back_with_zeros_where_an_episode_has_begun() -> None:
    states: list[Any] = []

    def policy(observations: Any, state: Any = None) -> Any:
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
    assert states == [None, [[1, 1]] * 2, [[2, 2]] * 2, [[0, 0]] * 2, [[1, 1], [0, 0]], [[2, 2], [1, 1]]]


def test_a_network_with_memory_is_played_as_by_hand() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    greedy = SamplingParams(greedy=True)
    policy = load_policy([torch.nn.LSTM(94, 8), torch.nn.Linear(8, 19)], sampling=greedy)
    with doorstep.Simulator(4, episode_length=3, seed=1) as sim:
        player, state = Player(policy, sim), policy.initial_state(4, 2)
        for _ in range(8):
            state[sim.dones.to_numpy()[..., 0] != 0] = 0
            expected = policy.act(sim.observations, state)
            player.act()
            assert (sim.actions == expected).all()
            sim.step()


# ---- Random numbers


@pytest.mark.parametrize("name", ["random", "trained"])
def test_random_numbers_follow_from_the_simulators_seed_unless_the_policy_has_one(name: str) -> None:
    def actions_of(sim_seed: int, sampling: SamplingParams | None) -> list[int]:
        with doorstep.Simulator(64, seed=1) as sim, doorstep.Simulator(64, seed=sim_seed) as other:
            sim.actions[:] = 0
            player = Player(load_policy(name, sampling=sampling), other)
            player.act()
            return other.actions.to_numpy()[..., 1].reshape(-1).tolist()  # type: ignore[no-any-return]

    assert actions_of(1, None) == actions_of(1, None)
    assert actions_of(1, None) != actions_of(2, None)
    assert actions_of(1, SamplingParams(seed=5)) != actions_of(1, None)
    if name == "random":
        assert actions_of(1, SamplingParams(seed=5)) == actions_of(2, SamplingParams(seed=5))


# ---- What a policy returns


class OnGpu:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("cannot convert a tensor on cuda:0")


@pytest.mark.parametrize(
    "returned",
    [
        np.full(SHAPE, 1).tolist(),
        np.full(SHAPE, 1),
        np.full(SHAPE, 1, np.uint8),
        OnlyDlpack(np.full(SHAPE, 1, np.int16)),
    ],
    ids=type,
)
def test_actions_may_be_of_any_library_and_integer_type(sim: doorstep.Simulator, returned: Any) -> None:
    Player(lambda _: returned, sim).act()
    assert (sim.actions == 1).all()


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (np.full(SHAPE, 1.0), "policy 'mine' returned float64 [2, 2, 4]; it must return integers [2, 2, 4]"),
        (np.full(SHAPE, True), "policy 'mine' returned bool [2, 2, 4]; it must return integers [2, 2, 4]"),
        (np.full((4, 4), 1), "policy 'mine' returned int64 [4, 4]; it must return integers [2, 2, 4]"),
        (None, "policy 'mine' returned NoneType; it must return integers [2, 2, 4]"),
        ([[1], [1, 2]], "policy 'mine' returned list; it must return integers [2, 2, 4]"),
        ((1, 2, 3), "policy 'mine' returned 3 values; it must return actions, or actions and a state"),
        (
            OnGpu(),
            "it must return integers [2, 2, 4] in the host's memory (TypeError: cannot convert a tensor on cuda:0)",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_actions_that_do_not_fit_are_an_error_and_change_nothing(
    sim: doorstep.Simulator, returned: Any, says: str
) -> None:
    sim.actions[:] = 1
    player = Player(lambda _: returned, sim, "mine")
    with pytest.raises(doorstep.ArgumentError) as caught:
        player.act()
    assert says in str(caught.value)
    assert caught.value.argument == "policy"
    assert (sim.actions == 1).all()


def test_an_exception_of_a_policy_comes_out_as_it_is(sim: doorstep.Simulator) -> None:
    def fail(_: object) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Player(fail, sim).act()


def test_values_out_of_range_are_the_simulators_matter(sim: doorstep.Simulator) -> None:
    Player(lambda _: np.full(SHAPE, 2**31), sim).act()
    sim.step()
    assert sim.health.clamped_actions > 0
