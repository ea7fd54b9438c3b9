"""Actions: greedy and drawn, repeatable by seed, step and agent.

`act()` by its defaults keeps what a call of the same shape needs, and such calls choose as all others do. Calls with a
step are never prepared: those of steps 0, 1, ... say what the calls without one must choose.
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

pytest.importorskip("torch")

import torch
from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, STARTS, chances, constant, logits_of, mlp, observe

GREEDY = SamplingParams(greedy=True)
NEUTRAL = list(doorstep.NEUTRAL_ACTION)
EXCLUDED, TIES = -np.inf, [0.0] * NUM_LOGITS


def test_greedy_actions_have_the_largest_logits():
    net, observations = mlp(32), observe(50, 2)
    policy, logits = doorstep.load_policy(net), logits_of(net, observations)
    expected = np.stack([part.argmax(-1) for part in np.split(logits, STARTS, axis=-1)], -1)
    for sampling in (GREEDY, SamplingParams(temperature=0), SamplingParams(temperature=0, top_p=0.5)):
        assert (policy.act(observations, sampling=sampling) == expected).all()
    for temperature in (1e-3, 1e-30, 1e-45):  # little temperature is greedy
        near = policy.act(observations, sampling=SamplingParams(temperature=temperature))
        assert (near == expected).mean() > (0.9 if temperature == 1e-3 else 0.999)
    assert (constant(*TIES).act(observations, sampling=GREEDY) == 0).all()  # the first of equal ones


def test_actions_are_drawn_with_their_probabilities_and_components_are_independent():
    """Of softmax at a temperature, of the fewest values that reach top_p; by a chi-square test at 0.1%."""
    generator, count = np.random.default_rng(2), 20000
    drawn = [generator.normal(size=NUM_LOGITS).astype(np.float32) for _ in range(2)]
    drawn[1][[4, 6, 13]] = EXCLUDED
    for logits in (*drawn, np.zeros(NUM_LOGITS, np.float32)):
        policy = constant(*logits.tolist())
        for temperature, top_p in ((0.5, 1), (1, 1), (3, 1), (1, 0.6), (2, 0.39), (1, 1e-6)):
            sampling = SamplingParams(temperature=temperature, top_p=top_p, seed=3)
            actions = policy.act(np.zeros((count, 2, NUM_INPUTS), np.float32), sampling=sampling).reshape(-1, 4)
            expected = 2 * count * chances(logits, sampling)
            counts = [np.bincount(actions[:, k], minlength=size) for k, size in enumerate(doorstep.ACTIONS)]
            found = np.concatenate(counts)
            assert not found[expected == 0].any()
            possible = expected > 0
            squares = ((found - expected)[possible] ** 2 / expected[possible]).sum()
            assert squares < possible.sum() + 4 * np.sqrt(2 * possible.sum()), (temperature, top_p)
        correlations = np.corrcoef(policy.act(np.zeros((count, 2, NUM_INPUTS), np.float32)).reshape(-1, 4).T)
        assert np.abs(correlations - np.eye(4)).max() < 5 / np.sqrt(2 * count)


def test_an_action_depends_on_its_seed_step_and_agent_only():
    policy, observations = doorstep.load_policy(mlp(16)), observe(40, 3).numpy()
    seeds, sampling = np.arange(100, 140), SamplingParams(seed=5)
    whole = policy.act(observations, sampling=sampling, step=7, seeds=seeds)
    order = np.random.default_rng(0).permutation(40)[:13]
    part = policy.act(observations[order], sampling=SamplingParams(), step=np.full(13, 7), seeds=seeds[order])
    assert (part == whole[order]).all()
    assert (policy.act(observations, sampling=sampling, step=8, seeds=seeds) != whole).any()
    assert (policy.act(observations, sampling=sampling, step=7, seeds=seeds + 1) != whole).any()
    same = np.broadcast_to(observations[:1, :1], observations.shape).copy()
    assert len(np.unique(policy.act(same, step=7, seeds=np.zeros(40, int)), axis=0)) == 1
    assert len(np.unique(policy.act(same, step=7, seeds=np.zeros(40, int))[0], axis=0)) > 1
    for step in (7, np.arange(40)):  # shards draw what all worlds would
        whole = policy.act(observations, sampling=sampling, step=step)
        for shard in (slice(0, 11), slice(11, 40)):
            own_step = step if isinstance(step, int) else step[shard]
            found = policy.act(observations[shard], sampling=sampling, step=own_step, first_world=shard.start)
            assert (found == whole[shard]).all()
        assert (policy.act(observations, sampling=sampling, step=step, first_world=1) != whole).any()


def test_a_network_that_gives_no_choice_lets_agents_stand_still():
    observations = np.zeros((3, 2, NUM_INPUTS), np.float32)
    for first, last, wrong in ((12, 17, EXCLUDED), (12, 13, np.nan), (14, 15, np.inf), (0, 1, np.nan)):
        logits = np.zeros(NUM_LOGITS)
        logits[first:last] = wrong
        policy = constant(*logits.tolist())
        for sampling in (GREEDY, SamplingParams(), SamplingParams(top_p=0.5)):
            assert (policy.act(observations, sampling=sampling) == NEUTRAL).all()
        assert policy.nonfinite_rows == 18
    policy, observations = doorstep.load_policy(mlp(16)), observe(70, 2)
    observations[2, 1, 3] = observations[66, 0, 9] = torch.nan
    log_probs = np.zeros((70, 2), np.float32)
    actions = policy._act(observations, None, None, 0, None, 0, log_probs=log_probs)
    assert [place.tolist() for place in np.isnan(log_probs).nonzero()] == [[2, 66], [1, 0]]
    for again in range(3):  # the last of the calls is prepared
        assert (actions[[2, 66], [1, 0]] == NEUTRAL).all()
        assert policy.nonfinite_rows == 2 * (again + 1)
        actions = policy.act(observations)


# ---- Prepared calls ----


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
    """Of one shape after the other, where worlds and agents may be other ones though there are as many rows. Further
    dimensions are more worlds."""
    policy, step = make_policy(), 0
    for shape in [(), (1,), (6,), (3, 2), (2, 3), (6,), (2, 3, 2), (1, 2, 1, 3, 2), (1, 1, 1, 1, 3, 2), (0, 2), (3, 2)]:
        for _ in range(3):
            observations = observe(*shape, seed=step)
            given = [observations.numpy(), observations, observations.clone().requires_grad_()][step % 3]
            actions = policy.act(given)
            assert (actions.dtype, actions.shape) == (np.int32, (*shape, 4))
            as_worlds = (int(np.prod(shape[:-1])), shape[-1]) if len(shape) > 1 else (int(np.prod(shape)), 1)
            expected = policy.act(observations.reshape(*as_worlds, NUM_INPUTS), step=step)
            assert (actions.reshape(expected.shape) == expected).all()
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
    for wrong, message in (
        (np.zeros((3, 2, 93), np.float32), r"is \[3, 2, 93\]; it must be of shape \[..., 94\]"),
        (np.zeros((3, 2, NUM_INPUTS)), "is float64 on cpu; it must be float32, contiguous, in the host's memory"),
        (np.zeros((3, 2, 2 * NUM_INPUTS), np.float32)[..., ::2], "is float32 on cpu, not contiguous"),
        (np.zeros((3, 2, NUM_INPUTS), ">f4"), None),
        (torch.zeros(3, 2, NUM_INPUTS, dtype=torch.bfloat16), "is bfloat16 on cpu"),
        (torch.zeros(3, 2, NUM_INPUTS, device="meta"), None),
        (np.zeros((), np.float32), r"is \[\]"),
        ([[0.0] * NUM_INPUTS], None),
        (None, None),
    ):
        policy = make_policy()
        for step in range(2):
            refuses(message, policy.act, wrong, argument="observations")
            refuses(r"^first_world is ", policy.act, observations, first_world=0.0)
            assert (policy.act(observations) == policy.act(observations, step=step)).all()


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


# ---- Arguments ----


def test_other_parameters_and_arguments_are_refused():
    for arguments, message in (
        ({"temperature": -1}, "temperature is -1; it must be a number, at least 0"),
        ({"temperature": 1e39}, "temperature is 1e\\+39"),
        ({"top_p": 0}, "top_p is 0; it must be a number, more than 0 and at most 1"),
        ({"top_p": 1e-60}, "top_p is 1e-60"),
        ({"greedy": 1}, "greedy is 1; it must be True or False"),
        ({"seed": 2**32}, "seed is 4294967296"),
    ):
        refuses(f"^{message}", SamplingParams, argument=next(iter(arguments)), **arguments)
    policy = doorstep.load_policy(mlp(4))
    wrong = {"step": [-1, 2**32, [1, 2], [1.0, 2.0, 3.0]], "seeds": [3, [1, 2, -3], [1, 2, 2**32], [[1, 2, 3]], "abc"]}
    for name, values in {**wrong, "sampling": [1.0], "first_world": [-1, 2**31 + 1]}.items():
        for value in values:
            refuses(f"^{name} is ", policy.act, observe(3, 2), argument=name, **{name: value})
