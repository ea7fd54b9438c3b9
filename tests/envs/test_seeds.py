"""Seeds of environments: drawn where none is given, and kept with the simulator in every reset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.envs.every import ENVIRONMENTS, begin, make, simulators, step, tensors

import doorstep

gymnasium: Any = pytest.importorskip("gymnasium")

LEVELS = [doorstep.levels.reference(), *[*doorstep.levels.curated().values()][:2]]


def same(found: list[Any], expected: list[Any]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_without_a_seed_one_is_drawn_told_and_reproduced(name: str) -> None:
    drawn = [make(name) for _ in range(3)]
    seeds = [env.np_random_seed for env in drawn]
    assert len(set(seeds)) == 3
    again = make(name, seed=seeds[0])
    for env in (*drawn, again):
        begin(env)
    assert [simulator.seed for simulator in simulators(drawn[0])] == [seeds[0]] * len(simulators(again))
    assert same(tensors(again), tensors(drawn[0]))
    assert not same(tensors(drawn[1]), tensors(drawn[0]))
    for env in (*drawn, again):
        env.close()


@pytest.mark.parametrize("mode", ["vector_entry_point", "sync"])
def test_no_two_environments_that_nobody_seeded_are_alike(mode: str) -> None:
    env = gymnasium.make_vec("doorstep/EscapeRoom-v0", num_envs=6, vectorization_mode=mode)
    for _ in range(2):
        observations, _ = env.reset()
        assert len(np.unique(observations.reshape(6, -1), axis=0)) == 6
    env.close()


@pytest.mark.parametrize("rules", [{}, {"levels": LEVELS, "level_weights": (1, 2, 3)}])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_seeded_reset_is_a_new_environment_in_the_same_simulator(name: str, rules: dict[str, Any]) -> None:
    env, new = make(name, **rules), make(name, seed=7, **rules)
    begin(env)
    step(env)
    kept, actions = simulators(env), [simulator.actions for simulator in simulators(env)]
    begin(env, 7)
    if name != "EscapeRoomRslRlEnv":  # which begins its first episodes when it is made
        begin(new)
    assert simulators(env) == kept
    assert [simulator.actions for simulator in kept] == actions
    assert env.np_random_seed == 7
    for act in (step, step, begin, step):
        assert same(tensors(env), tensors(new))
        for each in (env, new):
            act(each)
    env.close()
    new.close()


def test_tensors_of_before_a_seeded_reset_are_the_simulators() -> None:
    env = make("EscapeRoomVectorEnv", levels=LEVELS)
    weights = env.simulator.level_weights
    env.reset(seed=1)
    weights[:] = (0, 0, 1)
    env.reset()
    assert env.simulator.level_indices[:, 0].tolist() == [2, 2]
    env.close()
