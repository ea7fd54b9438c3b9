"""Random actions: legal, uniform, and the same each time; random numbers by counter: a published answer."""

import numpy as np
import pytest
from numpy.typing import NDArray

import doorstep
from doorstep.cli.random_actions import ActionTable, random_bits, random_uniform

LEGAL = doorstep.ACTIONS


def draw(seed: int, step: int, num_worlds: int, num_agents: int = 2) -> NDArray[np.int32]:
    actions = np.full((num_worlds, num_agents, 4), -1, np.int32)
    ActionTable(seed).copy_into(actions, step)
    return actions


@pytest.mark.parametrize(("component", "choices"), list(enumerate(LEGAL)))
def test_each_component_is_uniform_over_its_legal_values(component: int, choices: int) -> None:
    values = draw(seed=5, step=7, num_worlds=50_000)[:, :, component].ravel()
    counts = np.bincount(values, minlength=choices)
    expected = len(values) / choices
    assert len(counts) == choices
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_components_are_independent() -> None:
    actions = draw(seed=5, step=0, num_worlds=100_000).reshape(-1, 4).astype(np.float64)
    correlations = np.corrcoef(actions.T) - np.eye(4)
    assert np.abs(correlations).max() < 5 / np.sqrt(len(actions))


def test_the_same_seed_and_step_give_the_same_actions() -> None:
    assert (draw(1, 2, 100) == draw(1, 2, 100)).all()


def test_another_seed_or_step_gives_other_actions() -> None:
    assert (draw(1, 2, 100) != draw(2, 2, 100)).any()
    assert (draw(1, 2, 100) != draw(1, 3, 100)).any()


def test_an_agent_meets_other_actions_at_each_step_of_an_episode() -> None:
    table, actions = ActionTable(5), np.empty((4, 2, 4), np.int32)
    episode = []
    for step in range(200):
        table.copy_into(actions, step)
        episode.append(actions[3, 1].copy())
    repeats = (np.array(episode)[1:] == np.array(episode)[:-1]).all(axis=1).mean()
    assert repeats < 0.03  # 1 / 320 is expected


def test_more_agents_than_rows_all_get_legal_actions() -> None:
    actions = draw(seed=5, step=3, num_worlds=600_000)
    assert actions.min() == 0
    assert (actions.reshape(-1, 4).max(axis=0) == np.array(LEGAL) - 1).all()


# ---- Random numbers


def test_zero_gives_the_published_first_output_of_splitmix64() -> None:
    assert random_bits(0) == [0xE220A8397B1DCDAF]


def test_a_number_depends_on_its_counters_alone() -> None:
    together = random_bits(5, np.arange(100), 3)
    apart = [random_bits(5, counter, 3)[0] for counter in range(100)]
    assert together.tolist() == apart


def test_every_counter_and_its_place_matter() -> None:
    numbers = {int(random_bits(*counters)[0]) for counters in [(1, 2, 3), (3, 2, 1), (1, 2), (1, 2, 3, 0), (2, 2, 3)]}
    assert len(numbers) == 5


def test_uniform_numbers_fill_their_interval() -> None:
    numbers = random_uniform(-8.0, 8.0, 1, np.arange(100_000))
    assert numbers.min() >= -8.0
    assert numbers.max() < 8.0
    # five standard errors of the mean and of the variance of a uniform distribution
    assert numbers.mean() == pytest.approx(0.0, abs=5 * 16 / np.sqrt(12 * 100_000))
    assert numbers.var() == pytest.approx(16**2 / 12, rel=5 * np.sqrt(0.8 / 100_000))
