"""Writes episodes that engines have played as a dataset of Minari, the format of offline reinforcement learning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from doorstep._arguments import listed, refuse
from doorstep._native import ACTIONS
from doorstep._optional import import_optional
from doorstep.rollouts.result import EpisodeResult


def write_minari(dataset_id: str, results: Iterable[EpisodeResult], **about: str) -> Any:
    """Writes episodes as a dataset of [Minari](https://minari.farama.org), in its folder of datasets.

    Minari's episodes have one agent, so an episode of A agents becomes A, one after the other. Each has the seed of the
    request, `options` with "agent" and the request's "tag", `observations` float32 [T + 1, F], `actions` int32 [T, 4],
    `rewards` float32 [T], and `terminations` and `truncations` bool [T]: the goal terminates, time truncates.

    >>> import doorstep, os, tempfile
    >>> from doorstep.rollouts import write_minari
    >>> os.environ["MINARI_DATASETS_PATH"] = tempfile.mkdtemp()
    >>> requests = [doorstep.EpisodeRequest(seed=seed, max_steps=20, record="observations") for seed in range(8)]
    >>> with doorstep.RolloutEngine(doorstep.SimulatorConfig(8)) as engine:
    ...     ids = engine.submit(requests)
    ...     dataset = write_minari("doorstep/random-v0", engine)
    >>> dataset.total_episodes, dataset.total_steps
    (16, 320)

    Args:
        dataset_id: "namespace/name-v0", as Minari wants it; there must be no such dataset yet.
        results: episodes that were played to their end and record "observations", all of as many numbers; an engine
            gives what it has not answered yet.
        about: what the dataset says about itself, as `minari.create_dataset_from_buffers()` takes it: author,
            author_email, code_permalink, algorithm_name, description.

    Returns:
        The `minari.MinariDataset`.

    Raises:
        ArgumentError: there are no results, or one was not played to its end, has no observations or another number of
            them. Nothing was written.
        LibraryError: Minari is missing: pip install "doorstep[minari]".
        ValueError: Minari refuses `dataset_id`.
    """
    minari, buffers, spaces, *_ = (
        import_optional(name, "datasets need Minari", "minari")
        for name in ("minari", "minari.data_collector.episode_buffer", "gymnasium.spaces", "h5py", "PIL")
    )
    episodes = _checked(results)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what `about` does not say
        return minari.create_dataset_from_buffers(
            dataset_id,
            [buffers.EpisodeBuffer(**fields) for result in episodes for fields in _buffers(result)],
            observation_space=spaces.Box(-np.inf, np.inf, (_num_inputs(episodes[0]),), np.float32),
            action_space=spaces.MultiDiscrete(ACTIONS, dtype=np.int32),
            **about,
        )


def _checked(results: Iterable[EpisodeResult]) -> list[EpisodeResult]:
    episodes = listed(results)
    if not episodes:
        refuse("results", "at least one doorstep.EpisodeResult", episodes)
    for result in episodes:
        if not isinstance(result, EpisodeResult) or not result.finished:
            refuse("results", "episodes that were played to their end", result, "choose those that are `finished`")
        if result.observations is None:
            refuse("results", "episodes with observations", result, 'request them with record="observations"')
        if _num_inputs(result) != _num_inputs(episodes[0]):
            refuse("results", "episodes with equal numbers of observations", result, "write a dataset for each")
    return episodes


def _num_inputs(result: EpisodeResult) -> int:
    assert result.observations is not None
    return int(result.observations.shape[2])


def _buffers(result: EpisodeResult) -> Iterator[dict[str, Any]]:
    """The fields of an EpisodeBuffer for each agent."""
    assert result.observations is not None
    assert result.last_observations is not None
    assert result.actions is not None
    assert result.rewards is not None
    observations = np.concatenate([result.observations, result.last_observations[None]])
    is_last = np.arange(result.length) == result.length - 1
    is_goal = result.reason == "goal"
    for agent in range(observations.shape[1]):
        yield {
            "seed": result.request.seed,
            "options": {"agent": agent, "tag": result.request.tag},
            "observations": observations[:, agent],
            "actions": result.actions[:, agent],
            "rewards": result.rewards[:, agent],
            "terminations": is_last & is_goal,
            "truncations": is_last & (not is_goal),
        }
