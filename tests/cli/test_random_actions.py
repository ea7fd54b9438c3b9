"""Random actions: legal, uniform, and the same each time; random numbers by counter: a published answer."""

import numpy as np
import pytest

import doorstep
from doorstep.cli.random_actions import ActionTable, random_bits, random_uniform


def draw(seed, step, num_worlds):
    actions = np.full((num_worlds, 2, 4), -1, np.int32)
    ActionTable(seed).copy_into(actions, step)
    return actions


def test_components_are_uniform_over_their_legal_values_and_independent():
    actions = draw(5, 7, 600_000).reshape(-1, 4)  # more agents than rows
    for values, choices in zip(actions.T, doorstep.ACTIONS, strict=True):
        counts, expected = np.bincount(values), len(actions) / choices
        assert len(counts) == choices
        assert np.abs(counts - expected).max() < 0.02 * expected
    assert np.abs(np.corrcoef(actions[:200_000].T) - np.eye(4)).max() < 5 / np.sqrt(200_000)


def test_actions_follow_from_seed_and_step_and_an_agent_meets_others_at_each_step():
    assert (draw(1, 2, 100) == draw(1, 2, 100)).all()
    assert (draw(1, 2, 100) != draw(2, 2, 100)).any()
    table, actions, episode = ActionTable(5), np.empty((4, 2, 4), np.int32), np.zeros((200, 4))
    for step in range(200):
        table.copy_into(actions, step)
        episode[step] = actions[3, 1]
    assert (episode[1:] == episode[:-1]).all(axis=1).mean() < 0.03  # 1 / 320 is expected


def test_numbers_are_those_of_splitmix64_and_depend_on_their_counters_alone():
    assert random_bits(0) == [0xE220A8397B1DCDAF]  # the published first output
    together = random_bits(5, np.arange(100), 3)
    assert together.tolist() == [random_bits(5, counter, 3)[0] for counter in range(100)]
    numbers = {int(random_bits(*counters)[0]) for counters in [(1, 2, 3), (3, 2, 1), (1, 2), (1, 2, 3, 0), (2, 2, 3)]}
    assert len(numbers) == 5
    uniform = random_uniform(-8.0, 8.0, 1, np.arange(100_000))
    assert uniform.min() >= -8.0
    assert uniform.max() < 8.0
    # five standard errors of the mean and of the variance of a uniform distribution
    assert uniform.mean() == pytest.approx(0.0, abs=5 * 16 / np.sqrt(12 * 100_000))
    assert uniform.var() == pytest.approx(16**2 / 12, rel=5 * np.sqrt(0.8 / 100_000))
