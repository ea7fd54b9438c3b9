"""Actions: greedy and drawn, repeatable by seed, step and agent."""

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep
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
        actions = policy.act(observations, sampling=sampling)
        assert actions.dtype == np.int32
        assert (actions == expected).all()
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


def test_without_seeds_and_steps_every_world_and_call_draws_anew():
    policy, observations = constant(*TIES), np.zeros((64, 2, NUM_INPUTS), np.float32)
    first, second = policy.act(observations), policy.act(observations)
    assert (first != second).any()
    assert len(np.unique(first.reshape(-1, 4), axis=0)) > 60
    seeded = [constant(*TIES) for _ in range(2)]
    for _ in range(3):
        one, other = (policy.act(observations, sampling=SamplingParams(seed=9)) for policy in seeded)
        assert (one == other).all()


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
    assert (actions[[2, 66], [1, 0]] == NEUTRAL).all()
    assert policy.nonfinite_rows == 2


def test_observations_have_any_number_of_dimensions_which_are_more_worlds():
    net, rows = mlp(16), observe(24).numpy()
    for shape, as_worlds in (((), (1, 1)), ((7,), (7, 1)), ((3, 2), (3, 2)), ((4, 3, 2), (12, 2))):
        one, other = (doorstep.load_policy(net, sampling=SamplingParams(seed=3)) for _ in range(2))
        observations = rows[: int(np.prod(shape))]
        actions = one(observations.reshape(*shape, 94))
        assert actions.shape == (*shape, 4)
        assert (actions.reshape(*as_worlds, 4) == other.act(observations.reshape(*as_worlds, 94))).all()


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


def test_parameters_are_values():
    assert SamplingParams() == SamplingParams(temperature=1, greedy=False, top_p=1.0, seed=None)
    assert hash(SamplingParams(seed=3)) == hash(SamplingParams(seed=np.int64(3)))
    with pytest.raises(AttributeError):
        SamplingParams().seed = 3
