"""`act()` by its defaults keeps what a call of the same shape needs, and such calls choose as all others do.

Calls with a step are never prepared: those of steps 0, 1, ... say what the calls without one must choose.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep._native import fast_calls
from doorstep.policy import SamplingParams

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_INPUTS, mlp, observe  # noqa: E402
from torch import nn  # noqa: E402


def make_policy(*widths: int) -> doorstep.Policy:
    policy: doorstep.Policy = doorstep.load_policy(mlp(*widths or (16,)), sampling=SamplingParams(seed=3))
    return policy


def functions_called(run: Callable[[], object]) -> set[str]:
    """Of Python."""
    names = set()
    sys.setprofile(lambda frame, event, argument: names.add(frame.f_code.co_name) if event == "call" else None)
    run()
    sys.setprofile(None)
    return names


def test_a_call_like_the_one_before_is_prepared() -> None:
    policy, observations = make_policy(), observe(4, 2).numpy()
    assert "_rows" in functions_called(lambda: policy.act(observations))
    called = functions_called(lambda: policy.act(observations))
    assert "act" in called
    assert ("_rows" in called) == (fast_calls() is None)


SHAPES = [(), (1,), (6,), (3, 2), (2, 3, 2), (1, 2, 1, 3, 2), (1, 1, 1, 1, 3, 2), (0, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_prepared_calls_choose_what_others_do(shape: tuple[int, ...]) -> None:
    policy = make_policy()
    for step in range(6):
        observations = observe(*shape, seed=step)
        given = [observations.numpy(), observations, observations.clone().requires_grad_()][step % 3]
        actions = policy.act(given)
        assert (actions.dtype, actions.shape) == (np.int32, (*shape, 4))
        assert (actions == policy.act(observations, step=step)).all()


def test_tensors_of_a_simulator_are_read_where_they_are() -> None:
    policy = make_policy()
    with doorstep.Simulator(8, seed=1) as sim:
        for step in range(4):
            actions = policy(sim.observations)
            assert (actions == policy.act(sim.observations.to_numpy(), step=step)).all()
            sim.actions = actions
            sim.step()


def test_shapes_may_alternate() -> None:
    """Worlds and agents are other ones, also where there are as many rows."""
    policy, rows = make_policy(), observe(6).numpy()
    for step, shape in enumerate([(3, 2), (6,), (3, 2), (3, 2), (2, 3), (1, 6), (6, 1), (6, 1)]):
        observations = rows.reshape(*shape, NUM_INPUTS)
        actions = policy.act(observations)
        assert actions.shape == (*shape, 4)
        assert (actions == policy.act(observations, step=step)).all()


def test_other_arguments_between_two_calls_change_nothing() -> None:
    policy, observations = make_policy(), observe(3, 2).numpy()
    policy.act(observations)
    for first_world in range(1, 40):  # more than a policy keeps arrays for
        policy.act(observations, sampling=SamplingParams(seed=first_world), step=0, first_world=first_world)
    gc.collect()
    assert (policy.act(observations) == policy.act(observations, step=1)).all()
    assert (policy.with_sampling(SamplingParams(greedy=True)).act(observations) != policy.act(observations)).any()


REFUSED = [
    np.zeros((3, 2, 93), np.float32),
    np.zeros((3, 2, NUM_INPUTS)),
    np.zeros((3, 2, 2 * NUM_INPUTS), np.float32)[..., ::2],
    np.zeros((3, 2, NUM_INPUTS), ">f4"),
    torch.zeros(3, 2, NUM_INPUTS, dtype=torch.bfloat16),
    torch.zeros(3, 2, NUM_INPUTS, device="meta"),
    [[0.0] * NUM_INPUTS],
    "text",
    None,
]


@pytest.mark.parametrize("wrong", REFUSED, ids=lambda wrong: f"{type(wrong).__name__} {getattr(wrong, 'dtype', '')}")
def test_what_is_refused_is_refused_with_the_same_words_and_takes_no_step(wrong: Any) -> None:
    policy, observations = make_policy(), observe(3, 2).numpy()

    def refusal() -> str:
        with pytest.raises(doorstep.ArgumentError) as raised:
            policy.act(wrong)
        return str(raised.value)

    unprepared = refusal()
    policy.act(observations)
    assert refusal() == unprepared
    assert (policy.act(observations) == policy.act(observations, step=1)).all()


def test_a_first_world_that_is_no_integer_is_refused() -> None:
    policy, observations = make_policy(), observe(3, 2).numpy()
    for _ in range(2):
        with pytest.raises(doorstep.ArgumentError, match=r"^first_world is "):
            policy.act(observations, first_world=0.0)  # type: ignore[arg-type]
        policy.act(observations)


def test_memory_that_was_freed_or_moved_is_not_read() -> None:
    policy, tensor = make_policy(), observe(3, 2)
    policy.act(tensor)
    tensor.resize_(2, 2, NUM_INPUTS)
    assert (policy.act(tensor) == policy.act(tensor, step=1)).all()
    tensor.set_(observe(2, 2, seed=1))
    assert (policy.act(tensor) == policy.act(observe(2, 2, seed=1), step=2)).all()
    tensor.untyped_storage().resize_(0)
    with pytest.raises(doorstep.ArgumentError):
        policy.act(tensor)
    array = observe(2, 2).numpy().copy()
    freed = weakref.ref(array)
    policy.act(array)
    del array
    assert freed() is None
    assert (policy.act(observe(2, 2)) == policy.act(observe(2, 2), step=4)).all()


def test_rows_that_are_not_finite_are_counted() -> None:
    policy, observations = make_policy(), observe(3, 2)
    policy.act(observations)
    observations[1, 1, 5] = torch.nan
    assert policy.act(observations)[1, 1].tolist() == list(doorstep.NEUTRAL_ACTION)
    assert policy.nonfinite_rows == 1


def test_policies_with_memory_get_a_state_in_every_call() -> None:
    policy = doorstep.load_policy([nn.GRU(NUM_INPUTS, 8), nn.Linear(8, 19)], sampling=SamplingParams(seed=3))
    observations, state = observe(3, 2), policy.initial_state(3, 2)
    for step in range(3):
        assert (policy.act(observations) == policy.act(observations, step=step)).all()
    policy.act(observations, state)
    assert state.any()


def test_threads_call_at_the_same_time() -> None:
    """Every call has a step of its own, whatever the order, and other threads may have other shapes."""
    policy, count = make_policy(64, 64), 60
    rows = observe(12).numpy()
    forms = [rows, rows.reshape(6, 2, NUM_INPUTS)]

    def act(number: int) -> bytes:
        made: bytes = policy.act(forms[number % 4 == 0]).tobytes()
        return made

    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(act, range(count)))
    of_steps = [{policy.act(form, step=step).tobytes() for form in forms} for step in range(count)]
    assert len(set().union(*of_steps)) == 2 * count
    assert all(len(possible & found) == 1 for possible in of_steps)


def test_a_policy_ends_with_its_last_reference_in_whatever_call() -> None:
    gc.collect()
    before = doorstep.live_counts()["policy"]
    observations = observe(512, 2).numpy()
    expected = make_policy(64).act(observations, step=1).shape

    def act_and_drop() -> tuple[int, ...]:
        policy = make_policy(64)
        policy.act(observations)
        act = policy.act
        del policy
        shape: tuple[int, ...] = act(observations).shape
        return shape

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: act_and_drop(), range(16))) == {expected}
    gc.collect()
    assert doorstep.live_counts()["policy"] == before
