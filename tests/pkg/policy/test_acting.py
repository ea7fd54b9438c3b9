"""Actions: greedy and drawn, repeatable by seed, step and agent, and in the commands' form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep.policy import SamplingParams, load_policy
from doorstep.policy.imported import module_name
from doorstep.policy.playing import Player

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, logits_of, mlp, observe  # noqa: E402
from torch import nn  # noqa: E402

GREEDY = SamplingParams(greedy=True)
NEUTRAL = list(doorstep.NEUTRAL_ACTION)


def constant(*logits: float) -> doorstep.Policy:
    """A policy with the same logits for every observation."""
    net = nn.Linear(NUM_INPUTS, NUM_LOGITS)
    with torch.no_grad():
        net.weight.zero_()
        net.bias.copy_(torch.tensor(logits))
    policy: doorstep.Policy = doorstep.load_policy(net)
    return policy


def test_greedy_actions_have_the_largest_logits() -> None:
    net, observations = mlp(32), observe(50, 2)
    actions = doorstep.load_policy(net).act(observations, sampling=GREEDY)
    parts = np.split(logits_of(net, observations), np.cumsum(doorstep.ACTIONS)[:-1], axis=-1)
    assert actions.dtype == np.int32
    assert (actions == np.stack([part.argmax(-1) for part in parts], -1)).all()
    assert (doorstep.load_policy(net).act(observations, sampling=SamplingParams(temperature=0)) == actions).all()


def test_drawn_actions_have_the_probabilities_of_the_softmax() -> None:
    logits = torch.randn(NUM_LOGITS, generator=torch.Generator().manual_seed(2))
    policy, count = constant(*logits.tolist()), 20000
    zeros = np.zeros((count, 1, NUM_INPUTS), np.float32)
    for temperature in (0.5, 1.0, 2.0):
        actions = policy.act(zeros, sampling=SamplingParams(temperature=temperature, seed=3))
        for k, part in enumerate((logits / temperature).split(tuple(doorstep.ACTIONS))):
            frequencies = np.bincount(actions[:, 0, k], minlength=len(part)) / count
            np.testing.assert_allclose(frequencies, part.softmax(0), atol=0.015)  # 4 standard deviations


def test_an_action_depends_on_its_seed_step_and_agent_only() -> None:
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


@pytest.mark.parametrize("step", [7, np.arange(40)])
def test_shards_draw_what_all_worlds_would(step: Any) -> None:
    policy, observations = doorstep.load_policy(mlp(16)), observe(40, 3).numpy()
    sampling = SamplingParams(seed=5)
    whole = policy.act(observations, sampling=sampling, step=step)
    for shard in (slice(0, 11), slice(11, 40)):
        own_step = step if isinstance(step, int) else step[shard]
        found = policy.act(observations[shard], sampling=sampling, step=own_step, first_world=shard.start)
        assert (found == whole[shard]).all()
    assert (policy.act(observations, sampling=sampling, step=step, first_world=1) != whole).any()


def test_without_seeds_and_steps_every_world_and_call_draws_anew() -> None:
    policy, observations = constant(*[0.0] * NUM_LOGITS), np.zeros((64, 2, NUM_INPUTS), np.float32)
    first, second = policy.act(observations), policy.act(observations)
    assert (first != second).any()
    assert len(np.unique(first.reshape(-1, 4), axis=0)) > 60
    seeded = [constant(*[0.0] * NUM_LOGITS) for _ in range(2)]
    for _ in range(3):
        one, other = (policy.act(observations, sampling=SamplingParams(seed=9)) for policy in seeded)
        assert (one == other).all()


def test_top_p_keeps_the_likeliest() -> None:
    logits = np.zeros(NUM_LOGITS)
    logits[4:12] = np.log([0.4, 0.05, 0.3, 0.05, 0.05, 0.05, 0.05, 0.05])
    policy, zeros = constant(*logits), np.zeros((2000, 1, NUM_INPUTS), np.float32)
    for top_p, kept in ((0.3, {0}), (0.6, {0, 2}), (1.0, set(range(8)))):
        drawn = policy.act(zeros, sampling=SamplingParams(top_p=top_p, seed=1))[..., 1]
        assert set(drawn.ravel().tolist()) == kept


def test_a_network_that_gives_nan_lets_agents_stand_still() -> None:
    policy, observations = doorstep.load_policy(mlp(16)), observe(6, 2)
    observations[2, 1, 3] = torch.nan
    actions = policy.act(observations)
    assert actions[2, 1].tolist() == NEUTRAL
    assert policy.nonfinite_rows == 1
    assert (policy.act(torch.full_like(observations, torch.nan), sampling=GREEDY) == NEUTRAL).all()
    assert policy.nonfinite_rows == 13


# ---- In the commands ----


def test_a_policy_is_one_of_the_commands(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "import doorstep, torch\n"
        "torch.manual_seed(0)\n"
        "net = [torch.nn.LSTM(94, 8), torch.nn.Linear(8, 19)]\n"
        "policy = doorstep.load_policy(net, sampling=doorstep.policy.SamplingParams(greedy=True))\n"
    )
    sim = doorstep.Simulator(4, episode_length=3, seed=1)
    act = Player(load_policy(f"{path}:policy"), sim).act
    del sys.modules[module_name(path)]  # it would keep the policy
    torch.manual_seed(0)
    policy = doorstep.load_policy([nn.LSTM(94, 8), nn.Linear(8, 19)])
    state = policy.initial_state(4, 2)
    for _ in range(8):
        state[sim.dones.to_numpy()[..., 0] != 0] = 0
        expected = policy.act(sim.observations, state, sampling=GREEDY)
        act()
        assert (sim.actions == expected).all()
        sim.step()
    sim.close()


def test_a_policy_with_memory_returns_the_next_state_and_changes_none() -> None:
    policy = doorstep.load_policy([nn.GRU(94, 8), nn.Linear(8, 19)], sampling=GREEDY)
    state = policy.initial_state(5, 2)
    given = None
    for _ in range(3):
        observations = observe(5, 2).numpy()
        kept = None if given is None else given.copy()
        actions, following = policy(observations, given)
        assert (actions == policy.act(observations, state)).all()
        assert (following == state).all()
        assert given is None or (given == kept).all()
        given = following


@pytest.mark.parametrize("shape", [(), (7,), (3, 2), (4, 3, 2)])
def test_observations_have_any_number_of_dimensions(shape: tuple[int, ...]) -> None:
    policy = doorstep.load_policy(mlp(16), sampling=GREEDY)
    observations = observe(24).numpy()[: int(np.prod(shape))]
    actions = policy(observations.reshape(*shape, 94))
    assert actions.shape == (*shape, 4)
    assert (actions.reshape(-1, 4) == policy.act(observations.reshape(-1, 1, 94))[:, 0]).all()


def test_further_dimensions_are_more_worlds() -> None:
    observations = observe(6, 2).numpy()
    net = mlp(16)
    expected, found = (doorstep.load_policy(net, sampling=SamplingParams(seed=3)) for _ in range(2))
    actions = expected.act(observations)
    assert (found(observations.reshape(2, 3, 2, 94)) == actions.reshape(2, 3, 2, 4)).all()


# ---- Arguments ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": -1}, "temperature is -1; it must be a number, at least 0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"temperature": 1e39}, "temperature is 1e\\+39"),
        ({"temperature": True}, "temperature is True"),
        ({"temperature": "1"}, "temperature is '1'"),
        ({"top_p": 0}, "top_p is 0; it must be a number, more than 0 and at most 1"),
        ({"top_p": 1.01}, "top_p is 1.01"),
        ({"top_p": 1e-60}, "top_p is 1e-60"),
        ({"greedy": 1}, "greedy is 1; it must be True or False"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**32}, "seed is 4294967296"),
        ({"seed": 1.5}, "seed is 1.5"),
    ],
)
def test_other_parameters_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"^{message}") as raised:
        SamplingParams(**arguments)
    assert raised.value.argument == next(iter(arguments))


def test_parameters_are_values() -> None:
    assert SamplingParams() == SamplingParams(temperature=1, greedy=False, top_p=1.0, seed=None)
    assert hash(SamplingParams(seed=3)) == hash(SamplingParams(seed=np.int64(3)))
    with pytest.raises(AttributeError):
        SamplingParams().seed = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"sampling": 1.0}, "sampling"),
        ({"step": -1}, "step"),
        ({"step": 2**32}, "step"),
        ({"step": [1, 2]}, "step"),
        ({"step": [1.0, 2.0, 3.0]}, "step"),
        ({"seeds": 3}, "seeds"),
        ({"seeds": [1, 2, -3]}, "seeds"),
        ({"seeds": [1, 2, 2**32]}, "seeds"),
        ({"seeds": [[1, 2, 3]]}, "seeds"),
        ({"seeds": "abc"}, "seeds"),
        ({"first_world": -1}, "first_world"),
        ({"first_world": 2**31 + 1}, "first_world"),
    ],
)
def test_other_arguments_are_refused(arguments: dict[str, Any], name: str) -> None:
    policy = doorstep.load_policy(mlp(4))
    with pytest.raises(doorstep.ArgumentError, match=f"^{name} is ") as raised:
        policy.act(observe(3, 2), **arguments)
    assert raised.value.argument == name
