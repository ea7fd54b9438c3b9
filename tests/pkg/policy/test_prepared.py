"""`act()` by its defaults keeps what a call of the same shape needs, and such calls choose as all others do.

Calls with a step are never prepared: those of steps 0, 1, ... say what the calls without one must choose.
"""

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep
from doorstep._native import fast_calls
from doorstep.policy import SamplingParams

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_INPUTS, mlp, observe  # noqa: E402


def make_policy(*widths):
    return doorstep.load_policy(mlp(*widths or (16,)), sampling=SamplingParams(seed=3))


def functions_called(run):
    """Of Python."""
    names = set()
    sys.setprofile(lambda frame, event, argument: names.add(frame.f_code.co_name) if event == "call" else None)
    run()
    sys.setprofile(None)
    return names


def test_a_call_like_the_one_before_is_prepared():
    policy, observations = make_policy(), observe(4, 2).numpy()
    assert "_rows" in functions_called(lambda: policy.act(observations))
    called = functions_called(lambda: policy.act(observations))
    assert "act" in called
    assert ("_rows" in called) == (fast_calls() is None)


def test_prepared_calls_choose_what_others_do():
    """Of one shape after the other, where worlds and agents may be other ones though there are as many rows."""
    policy, step = make_policy(), 0
    for shape in [(), (1,), (6,), (3, 2), (2, 3), (6,), (2, 3, 2), (1, 2, 1, 3, 2), (1, 1, 1, 1, 3, 2), (0, 2), (3, 2)]:
        for _ in range(3):
            observations = observe(*shape, seed=step)
            given = [observations.numpy(), observations, observations.clone().requires_grad_()][step % 3]
            actions = policy.act(given)
            assert (actions.dtype, actions.shape) == (np.int32, (*shape, 4))
            assert (actions == policy.act(observations, step=step)).all()
            step += 1


def test_other_arguments_between_two_calls_change_nothing():
    policy, observations = make_policy(), observe(3, 2).numpy()
    policy.act(observations)
    for first_world in range(1, 40):  # more than a policy keeps arrays for
        policy.act(observations, sampling=SamplingParams(seed=first_world), step=0, first_world=first_world)
    gc.collect()
    assert (policy.act(observations) == policy.act(observations, step=1)).all()
    assert (policy.with_sampling(SamplingParams(greedy=True)).act(observations) != policy.act(observations)).any()


def test_what_is_refused_is_refused_with_the_same_words_and_takes_no_step():
    observations = observe(3, 2).numpy()
    for wrong in (
        np.zeros((3, 2, 93), np.float32),
        np.zeros((3, 2, NUM_INPUTS)),
        np.zeros((3, 2, 2 * NUM_INPUTS), np.float32)[..., ::2],
        np.zeros((3, 2, NUM_INPUTS), ">f4"),
        torch.zeros(3, 2, NUM_INPUTS, dtype=torch.bfloat16),
        torch.zeros(3, 2, NUM_INPUTS, device="meta"),
        [[0.0] * NUM_INPUTS],
        None,
    ):
        policy, refusals = make_policy(), []
        for step in range(2):
            with pytest.raises(doorstep.ArgumentError) as raised:
                policy.act(wrong)
            refusals.append(str(raised.value))
            refuses(r"^first_world is ", policy.act, observations, first_world=0.0)
            assert (policy.act(observations) == policy.act(observations, step=step)).all()
        assert refusals[0] == refusals[1]


def test_memory_that_was_freed_or_moved_is_not_read():
    policy, tensor = make_policy(), observe(3, 2)
    policy.act(tensor)
    tensor.resize_(2, 2, NUM_INPUTS)
    assert (policy.act(tensor) == policy.act(tensor, step=1)).all()
    tensor.set_(observe(2, 2, seed=1))
    assert (policy.act(tensor) == policy.act(observe(2, 2, seed=1), step=2)).all()
    tensor.untyped_storage().resize_(0)
    refuses(None, policy.act, tensor)
    array = observe(2, 2).numpy().copy()
    freed = weakref.ref(array)
    policy.act(array)
    del array
    assert freed() is None
    assert (policy.act(observe(2, 2)) == policy.act(observe(2, 2), step=4)).all()


def test_rows_that_are_not_finite_are_counted():
    policy, observations = make_policy(), observe(3, 2)
    policy.act(observations)
    observations[1, 1, 5] = torch.nan
    assert policy.act(observations)[1, 1].tolist() == list(doorstep.NEUTRAL_ACTION)
    assert policy.nonfinite_rows == 1


def test_threads_call_at_the_same_time():
    """Every call has a step of its own, whatever the order, and other threads may have other shapes."""
    policy, count = make_policy(64, 64), 60
    rows = observe(12).numpy()
    forms = [rows, rows.reshape(6, 2, NUM_INPUTS)]
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda number: policy.act(forms[number % 4 == 0]).tobytes(), range(count)))
    of_steps = [{policy.act(form, step=step).tobytes() for form in forms} for step in range(count)]
    assert len(set().union(*of_steps)) == 2 * count
    assert all(len(possible & found) == 1 for possible in of_steps)


def test_a_policy_ends_with_its_last_reference_in_whatever_call():
    observations = observe(512, 2).numpy()

    def act_and_drop(_):
        policy = make_policy(64)
        policy.act(observations)
        act = policy.act
        del policy
        return act(observations).shape

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(act_and_drop, range(16))) == {(512, 2, 4)}
    gc.collect()
    assert doorstep.live_counts()["policy"] == 0
