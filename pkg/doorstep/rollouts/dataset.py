"""Trajectories of episodes as a dataset of PyTorch, which an engine plays."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeAlias, final

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from doorstep._arguments import check_integer, refuse, showing
from doorstep.config import SimulatorConfig
from doorstep.errors import StateError
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.engine import RolloutEngine
from doorstep.rollouts.padding import STEPS, trajectory_of
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.results import EpisodeResult

# Tensors of T steps by name, see `TrajectoryDataset`.
Trajectory: TypeAlias = "dict[str, torch.Tensor]"

_MOST_AHEAD = 1 << 20


@final
class TrajectoryDataset(IterableDataset):  # type: ignore[misc]
    """Plays the requested episodes and yields their trajectories, in the order of the requests.

    While one is used, the engine plays the next ones. Each iteration plays all requests anew.

    A trajectory of T steps is a dictionary of tensors on the CPU:

    - `observations`, float32 [T, A, F]: what the agents observed before each step
    - `actions`, int32 [T, A, 4]: what they did then
    - `rewards`, float32 [T, A]: what they got for it
    - `last_observations`, float32 [A, F]: what they observed after the last step
    - `reached_goal`, bool []: whether the goal ended the episode
    - `seed`, `tag`, int64 []: of the request
    - what else the request records: `log_probs` and `versions`, `values`, `states` and `last_states`, as in an
      `EpisodeResult`

    >>> import doorstep
    >>> from doorstep.rollouts import TrajectoryDataset, pad_trajectories
    >>> from torch.utils.data import DataLoader
    >>> requests = [doorstep.EpisodeRequest(seed=seed, max_steps=20 + seed) for seed in range(8)]
    >>> with doorstep.RolloutEngine(doorstep.SimulatorConfig(8)) as engine:
    ...     loader = DataLoader(TrajectoryDataset(engine, requests), batch_size=4, collate_fn=pad_trajectories)
    ...     [batch["observations"].shape for batch in loader]
    [torch.Size([23, 4, 2, 94]), torch.Size([27, 4, 2, 94])]

    Args:
        engine: plays, as with `engine.future()`. Or the config of one that is made for each iteration: in the worker
            processes of a DataLoader, each of which plays its part of the requests.
        requests: are iterated over anew for each iteration over the dataset; "observations" are recorded of all.
        ahead: episodes that are requested before they are used, at most; None: twice as many as the engine has worlds.
        shuffle_seed: the order of the requests, a sequence, is drawn from it and the epoch; None: as they are.

    Raises:
        ArgumentError: an argument is of another kind.
    """

    __repr__ = showing("_engine", "_ahead", "_shuffle_seed")

    def __init__(
        self,
        engine: RolloutEngine | RolloutConfig | SimulatorConfig,
        requests: Iterable[EpisodeRequest],
        *,
        ahead: int | None = None,
        shuffle_seed: int | None = None,
    ) -> None:
        if not isinstance(engine, (RolloutEngine, RolloutConfig, SimulatorConfig)):
            refuse("engine", "a doorstep.RolloutEngine, or the config of one", engine)
        if not isinstance(requests, Iterable if shuffle_seed is None else Sequence):
            kind = "an iterable" if shuffle_seed is None else "a sequence, which can be shuffled,"
            refuse("requests", f"{kind} of doorstep.EpisodeRequest", requests)
        self._engine, self._requests = engine, requests
        self._ahead = None if ahead is None else check_integer("ahead", ahead, 1, _MOST_AHEAD)
        self._shuffle_seed = None if shuffle_seed is None else check_integer("shuffle_seed", shuffle_seed, 0, 2**63 - 1)
        with torch.inference_mode(False):  # which it would not outlive
            epoch = torch.zeros((), dtype=torch.int64, device="cpu")
        self._epoch = epoch.share_memory_()  # workers that persist see it too

    def set_epoch(self, epoch: int) -> None:
        """The next iterations have the order of this epoch; without it each has that of epoch 0.

        Raises:
            ArgumentError: `epoch` is no integer, or negative.
        """
        self._epoch.fill_(check_integer("epoch", epoch, 0, 2**63 - 1))

    def __iter__(self) -> Iterator[Trajectory]:
        """Raises StateError if an episode was not played to its end."""
        if not isinstance(self._engine, RolloutEngine):
            with RolloutEngine(self._engine) as engine:
                yield from self._play(engine)
            return
        if get_worker_info() is not None:
            raise StateError(
                "an engine cannot be used in the worker processes of a DataLoader",
                argument="num_workers",
                hint="pass num_workers=0: the engine has threads of its own; or give the dataset a config",
            )
        yield from self._play(self._engine)

    def _play(self, engine: RolloutEngine) -> Iterator[Trajectory]:
        worlds = engine.config.simulator.num_worlds * len(engine.config.replica_devices)
        ahead = self._ahead or min(2 * worlds, _MOST_AHEAD)
        pending: collections.deque[Future[EpisodeResult]] = collections.deque()
        try:
            for request in self._own_requests():
                pending.append(engine.future(_recorded(request)))
                if len(pending) > ahead:
                    yield _trajectory(pending.popleft().result())
            while pending:
                yield _trajectory(pending.popleft().result())
        finally:
            for future in pending:
                future.cancel()

    def _own_requests(self) -> Iterator[EpisodeRequest]:
        """This worker's part of the requests of the epoch: every n-th of n workers."""
        requests: Iterable[EpisodeRequest] = self._requests
        if self._shuffle_seed is not None:
            assert isinstance(self._requests, Sequence)
            order = np.random.default_rng([self._shuffle_seed, int(self._epoch)]).permutation(len(self._requests))
            requests = map(self._requests.__getitem__, order.tolist())
        worker = get_worker_info()
        return itertools.islice(requests, worker.id, None, worker.num_workers) if worker else iter(requests)


def _recorded(request: Any) -> EpisodeRequest:
    if not isinstance(request, EpisodeRequest):
        refuse("requests", "an iterable of doorstep.EpisodeRequest", request)
    also: Any = (name for name in request.record if name in STEPS)
    return replace(request, record=("observations", *also))


def _trajectory(result: EpisodeResult) -> Trajectory:
    if not result.finished:
        reason = f"{result.reason}: {result.error}" if result.error else result.reason
        raise StateError(f"the episode of seed {result.request.seed} was not played to its end: {reason}")
    found = trajectory_of(result)
    found["tag"] = found["tag"].astype(np.int64)  # PyTorch computes with these
    return {name: torch.from_numpy(np.asarray(value)) for name, value in found.items()}
