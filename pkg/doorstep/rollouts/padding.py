"""Trajectories as dictionaries of arrays, and batches of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doorstep._arguments import refuse
from doorstep.rollouts.results import EpisodeResult

STEPS = ("observations", "actions", "rewards", "log_probs", "versions", "values", "states")  # have a row per step


def trajectory_of(result: EpisodeResult) -> dict[str, Any]:
    """The arrays of a result by name, and numbers of it."""
    names = (*STEPS, "last_observations", "last_states")
    recorded = {name: array for name in names if (array := getattr(result, name)) is not None}
    return {
        **recorded,
        "reached_goal": np.bool_(result.reason == "goal"),
        "seed": np.int64(result.request.seed),
        "tag": np.uint64(result.request.tag),
    }


def pad_trajectories(trajectories: Sequence[EpisodeResult] | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A batch of B trajectories of different lengths, time first.

    >>> import doorstep
    >>> from doorstep.rollouts import EpisodeColumns, pad_trajectories
    >>> with doorstep.RolloutEngine(num_worlds=8) as engine:
    ...     results = engine.run(EpisodeColumns(range(4), max_steps=[5, 9, 7, 2], record="observations"))
    >>> batch = pad_trajectories(results)
    >>> batch["rewards"].shape, batch["lengths"].tolist(), int(batch["mask"].sum())
    ((9, 4, 2), [5, 9, 7, 2], 23)

    Args:
        trajectories: results whose requests record "actions" or "observations"; or what a `TrajectoryDataset` yields,
            as the `collate_fn` of a DataLoader.

    Returns:
        By name, with T, the length of the longest: `observations`, float32 [T, B, A, F]; `actions`, int32
        [T, B, A, 4]; `rewards`, float32 [T, B, A]; `last_observations`, float32 [B, A, F]; what else was recorded,
        likewise; `reached_goal`, bool [B]; `seed` and `tag`, integers [B]; `lengths`, int64 [B]; `mask`, bool [T, B],
        true for steps that were played, behind which all is 0. Arrays of results, and tensors of tensors, with memory
        of their own.

    Raises:
        ArgumentError: there are none, or a result has no recorded steps, or they record different things.
    """
    if not isinstance(trajectories, Sequence) or not all(isinstance(one, _KINDS) for one in trajectories):
        refuse("trajectories", "a sequence of results, or of mappings", trajectories)
    given = [_checked(one) if isinstance(one, EpisodeResult) else one for one in trajectories]
    if not given or "actions" not in given[0] or any(one.keys() != given[0].keys() for one in given):
        refuse("trajectories", "one or more, which record the same", trajectories)
    lengths = np.array([len(one["actions"]) for one in given])
    longest = int(lengths.max())
    batch: dict[str, Any] = {}
    for name in given[0]:
        values = [np.asarray(one[name]) for one in given]
        batch[name] = _padded(values, longest) if name in STEPS else np.stack(values)
    batch["lengths"], batch["mask"] = lengths, np.arange(longest)[:, None] < lengths
    return batch if isinstance(given[0]["actions"], np.ndarray) else _tensors(batch)


_KINDS = (EpisodeResult, Mapping)


def _checked(result: EpisodeResult) -> dict[str, Any]:
    if result.actions is None:
        refuse("trajectories", "results with recorded steps", result, 'pass record="observations" to the requests')
    return trajectory_of(result)


def _padded(values: Sequence[Any], longest: int) -> Any:
    batch = np.zeros((longest, len(values), *values[0].shape[1:]), values[0].dtype)
    for column, value in enumerate(values):
        batch[: len(value), column] = value
    return batch


def _tensors(batch: dict[str, Any]) -> dict[str, Any]:
    import torch

    return {name: torch.from_numpy(array) for name, array in batch.items()}
