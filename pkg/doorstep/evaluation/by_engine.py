"""Plays episodes of native policies with a `RolloutEngine`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doorstep._native._generated import MAX_QUEUE_CAPACITY
from doorstep._observations import Parts
from doorstep.config import SimulatorConfig
from doorstep.errors import StateError
from doorstep.evaluation.arenas import Arena
from doorstep.evaluation.contestants import Contestant
from doorstep.evaluation.episodes import Ended, Episodes
from doorstep.metrics import MetricsStore
from doorstep.policy import Policy
from doorstep.policy.playing import check_inputs
from doorstep.rollouts import EpisodeColumns, EpisodeResult, RolloutConfig, RolloutEngine


class Match(NamedTuple):
    """A policy and the level that it plays."""

    contestant: Contestant
    arena: Arena


def play_by_engine(
    rollout: RolloutConfig,
    matches: Sequence[Match],
    seeds: NDArray[np.int64],
    ended: Ended,
    metrics: MetricsStore | None = None,
) -> list[Episodes]:
    """An episode of each seed for each match. Those of policies that observe the same are requested at once: no world
    waits for the last of a match. The engines record in `metrics`.

    Raises:
        ArgumentError: a policy's network reads another observation.
        StateError: an episode failed.
    """
    _check_inputs(rollout.simulator, matches)
    played = [Episodes.room_for(len(seeds), rollout.simulator.num_agents) for _ in matches]
    by_observations: dict[Parts, list[int]] = {}
    for index, match in enumerate(matches):
        by_observations.setdefault(match.contestant.observations_in(rollout.simulator), []).append(index)
    for observations, indices in by_observations.items():
        rules = rollout.replace(simulator=rollout.simulator.replace(observations=observations))
        _play(rules, [matches[index] for index in indices], seeds, [played[index] for index in indices], ended, metrics)
    return played


def _play(
    rollout: RolloutConfig,
    matches: Sequence[Match],
    seeds: NDArray[np.int64],
    played: Sequence[Episodes],
    ended: Ended,
    metrics: MetricsStore | None,
) -> None:
    """Matches of policies that observe what the simulator has; writes to `played`."""
    rules = _rules(rollout, matches, len(matches) * len(seeds))
    with RolloutEngine(rules, metrics=metrics, on_error="return") as engine:
        places = _submit(engine, matches, seeds)
        for result in engine:
            match, episode = places.pop(result.id)
            _check_finished(matches[match], result)
            _note(result, played[match], episode)
            ended(1)


def _rules(rollout: RolloutConfig, matches: Sequence[Match], requests: int) -> RolloutConfig:
    has_levels = any(match.arena.level is not None for match in matches)
    num_policies = len({id(match.contestant.policy) for match in matches}) + 2
    num_worlds = min(rollout.simulator.num_worlds, requests)
    simulator = rollout.simulator.replace(num_worlds=num_worlds, world_offset=0, max_levels=int(has_levels))
    outputs = max(rollout.output_capacity, min(requests, MAX_QUEUE_CAPACITY))  # read once all are submitted
    return rollout.replace(simulator=simulator, max_policies=num_policies, output_capacity=outputs)


def _submit(
    engine: RolloutEngine, matches: Sequence[Match], seeds: NDArray[np.int64]
) -> dict[int, tuple[int, int]]:
    """Requests all episodes; returns the match and the number of each by the id of its request."""
    places = {}
    for index, (contestant, arena) in enumerate(matches):
        policy = contestant.policy
        ids = engine.submit(EpisodeColumns(seeds, level=arena.level, policy=policy, **_sampling(policy)))
        places.update({request: (index, episode) for episode, request in enumerate(ids.tolist())})
    return places


def _sampling(policy: Any) -> dict[str, Any]:
    """How a network chooses is a part of its policy; what it draws follows from the seed of each episode."""
    return {"sampling": replace(policy.sampling, seed=None)} if isinstance(policy, Policy) else {}


def _note(result: EpisodeResult, played: Episodes, episode: int) -> None:
    played.returns[episode] = result.returns
    played.max_y[episode] = result.max_y
    played.lengths[episode] = result.length
    played.reached_goal[episode] = result.reason == "goal"


def _check_finished(match: Match, result: EpisodeResult) -> None:
    if not result.finished:
        what = f"policy {match.contestant.name!r} in level {match.arena.name!r}"
        raise StateError(f"an episode of {what} ended as {result.reason!r}: {result.error}", argument="policies")


def _check_inputs(config: SimulatorConfig, matches: Sequence[Match]) -> None:
    """A network must read what agents observe; in an engine it would fail episode by episode."""
    for contestant, _ in matches:
        check_inputs(contestant.policy, contestant.observations_in(config), config.num_agents, contestant.name)
