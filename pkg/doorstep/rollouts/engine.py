"""`RolloutEngine`: plays episodes that are requested from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal, final, overload

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_choice, check_flag, check_integer, check_timeout, refuse, showing
from doorstep._copies import ClosingOwner
from doorstep._level_table import REFERENCE
from doorstep._native._generated import MAX_REPLICAS
from doorstep._native.finalizer import Finalizer
from doorstep.config import SimulatorConfig
from doorstep.errors import ClosedError
from doorstep.levels.choice import AnyLevels, table_levels
from doorstep.levels.files import AnyLevel
from doorstep.levels.native import check_spawns
from doorstep.levels.rules import Rewards
from doorstep.metrics.store import MetricsStore
from doorstep.policy.loading import AnyPolicy
from doorstep.rollouts.batch import RequestBatch, make_batch
from doorstep.rollouts.changes import TimeLimit
from doorstep.rollouts.checks import as_list, check_all_submitted, check_single
from doorstep.rollouts.config import RolloutConfig, with_reward
from doorstep.rollouts.core import Core, end, watch_process
from doorstep.rollouts.named_policies import NamedPolicies
from doorstep.rollouts.outputs import columns_of
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import EpisodeResult, EpisodeStep

_MOST_OUTPUTS = 4096  # taken at a time
_ONE_RESULT = "a future has one result; run() returns all"
_PAUSE_SECONDS = 0.002  # between two attempts of a coroutine to submit


@final
class RolloutEngine(ClosingOwner, remedy="make another one of its `config`"):
    """Plays requested episodes on one or more replicas, each a simulator with a thread of its own.

    >>> import doorstep
    >>> with doorstep.RolloutEngine(doorstep.SimulatorConfig(64)) as engine:
    ...     ids = engine.submit([doorstep.EpisodeRequest(seed=seed, max_steps=20) for seed in range(100)])
    ...     results = {result.id: result for result in engine}
    >>> len(results), results[ids[0]].length
    (100, 20)

    Any thread may call anything. Results come in the order in which episodes end; each depends on its request alone.

    An episode fails if its policy raises, or returns something that is not actions, or if a network gives NaN or
    infinity. Reading its result then raises a StateError, in `run()`, `future().result()`, iteration, `get_outputs()`
    and `get_records()`: after the results before it were read, and once. The exception's `result` is the
    `EpisodeResult`, and its `__cause__` shows where the policy raised. The next call reads what follows.

    A replica that fails is restarted, as often as the config's `max_restarts` allows, and a line about it is logged as
    "doorstep.rollouts"; its episodes begin again, there or in other replicas. Episodes that the last replica leaves
    fail.

    A policy, which the engine waits for, cannot wait for the engine: a call that would have to raises a StateError at
    once; so does one in a callback of a future.

    Args:
        config: a `RolloutConfig`, or a `SimulatorConfig` for one replica with the defaults.
        levels: as for `Simulator`. A request without a level plays the one of number `seed % len(levels)`, which is
            then its level: `result.request.level`. Several do not need a larger `max_levels`.
        reward: what agents are rewarded for, as for `Simulator`; None: as the config says.
        metrics: a store to record in, which other engines may have too; None: one of its own, as `config.metrics` says.
        on_error: "raise"; or "return": failed episodes are results like others, whose `reason` is "failed".
        rules: fields of a `SimulatorConfig` in place of `config`: `RolloutEngine(num_worlds=256)`.

    Raises:
        ArgumentError, OSError, OutOfMemoryError, DeviceError: as `Simulator`.
    """

    __repr__ = showing("_config.simulator.num_worlds", "_config.replica_devices")

    def __init__(
        self,
        config: RolloutConfig | SimulatorConfig | None = None,
        *,
        levels: AnyLevels = REFERENCE,
        reward: Rewards | None = None,
        metrics: MetricsStore | None = None,
        on_error: Literal["raise", "return"] = "raise",
        **rules: Any,
    ) -> None:
        table = table_levels(levels)
        self._config = with_reward(_with_room(_config_of(config, rules), table), reward)
        check_spawns(table, self._config.simulator.num_agents)
        if metrics is not None and not isinstance(metrics, MetricsStore):
            refuse("metrics", "a doorstep.metrics.MetricsStore", metrics)
        raises = check_choice("on_error", on_error, ("raise", "return")) == "raise"
        self._parts = Core(self._config, metrics, table, raises=raises)
        try:
            self._finalizer = Finalizer(self, end, self._parts.handle, self._parts.promises.signals)
            watch_process(self._parts)
            self._parts.start()
        except BaseException:
            self._parts.end()
            raise

    @property
    def _core(self) -> Core:
        if self._parts.is_copy:
            raise ClosedError("this engine belongs to the process that was forked", hint="make one after the fork")
        return self._parts

    # ---- What it is ----

    @property
    def config(self) -> RolloutConfig:
        return self._config

    @property
    def native_handle(self) -> int:
        """The ds_engine. Its config has the devices of its first replicas."""
        return self._core.handle.value

    @property
    def num_waiting(self) -> int:
        """Requests that no replica has taken."""
        return int(self._core.handle.info().waiting)

    @property
    def num_outputs(self) -> int:
        """Outputs that have come, and that no call has returned."""
        return self._core.answers.num_outputs

    @property
    def outstanding(self) -> int:
        """Requests whose result has not been taken."""
        return self._core.answers.outstanding

    @property
    def metrics(self) -> MetricsStore | None:
        """What the engine has measured; None: it does not measure. A result that you have is in it."""
        return self._parts.metrics

    @property
    def policies(self) -> MutableMapping[str, AnyPolicy]:
        """Policies that requests name: set, replace and delete them by their names, each what `load_policy()` takes.

        >>> import doorstep
        >>> with doorstep.RolloutEngine(num_worlds=16) as engine:
        ...     engine.policies["opponent"] = "random"
        ...     first = engine.run([doorstep.EpisodeRequest(policy=("trained", "opponent"), max_steps=20)])
        ...     engine.policies["opponent"] = "idle"
        ...     second = engine.run([doorstep.EpisodeRequest(policy=("trained", "opponent"), max_steps=20)])
        >>> first[0].state_hash == second[0].state_hash
        False

        A policy that takes the place of another one plays the episodes that begin later, also those of requests that
        wait, with the sampling that they were submitted with; episodes that are being played go on with the one before.
        Requests that wait keep a policy whose name is deleted. A name goes before a text that `load_policy()` takes.
        Metrics call a policy by its name.

        Raises:
            ArgumentError: on assignment: as `load_policy()` and `submit()`. A request with a name that is not there is
                refused by `submit()`, which lists the names.
            KeyError: there is no such name.
            ClosedError: on assignment: the engine was closed.
        """
        return NamedPolicies(self._core)

    # ---- Replicas ----

    @property
    def replicas(self) -> tuple[int, ...]:
        """The numbers of the replicas that play, as in `EpisodeResult.replica`."""
        return self._core.replicas

    def add_replica(self, **rules: Any) -> int:
        """Adds a replica while the others play, and returns its number.

        >>> import doorstep
        >>> with doorstep.RolloutEngine(num_worlds=16) as engine:
        ...     number = engine.add_replica(num_worlds=4, num_threads=1)
        ...     engine.replicas
        (0, 1)

        Args:
            rules: fields of a `SimulatorConfig` in place of the engine's: `device`, `num_worlds` and `num_threads`.
                Results do not depend on them.

        Raises:
            ArgumentError: a value is out of range; or results would depend on a field. The message names it.
            ClosedError: the engine was closed.
            StateError: the engine has had 256 replicas.
            OutOfMemoryError, DeviceError: as `Simulator`.
        """
        return self._core.add_replica(self._config.simulator.replace(**rules))

    def remove_replica(self, number: int) -> None:
        """Ends a replica after the step that it makes. Its episodes wait again, and others play them from their
        beginnings, with the same results.

        Args:
            number: one of `replicas`. It is not used again.

        Raises:
            ArgumentError: there is no such replica.
            StateError: it is the last one.
            ClosedError: the engine was closed.
        """
        self._core.remove_replica(check_integer("number", number, 0, MAX_REPLICAS - 1))

    # ---- Requests ----

    @overload
    def submit(self, request: EpisodeRequest, *, timeout: float | None = None) -> int: ...
    @overload
    def submit(self, request: Sequence[EpisodeRequest], *, timeout: float | None = None) -> list[int]: ...
    def submit(
        self, request: EpisodeRequest | Sequence[EpisodeRequest], *, timeout: float | None = None
    ) -> int | list[int]:
        """Submits a request, or several at once, and returns the ids of their episodes: of a sequence with a larger `n`
        so many for each, in order. Waits while the queue is full.

        Args:
            request: one, with `n` 1, or a sequence of them.
            timeout: seconds to wait for room; None: without limit.

        Raises:
            ArgumentError: a request has more policies than the engine can take, or a level that does not suit it; then
                none was submitted.
            StateError: the module of a policy has other tensors, or its memory was moved or freed; likewise. Or the
                queue is full, and there will be no room: a policy calls, or outputs have no room and no other thread
                reads them; `ids` as below.
            ClosedError: the engine was closed; `ids` as below, of requests that get their results all the same.
            TimeoutError: there was no room for all; its `ids` are those of the requests that were submitted.
        """
        requests = as_list(request)
        if isinstance(request, EpisodeRequest):
            check_single(requests, "submit([request]) returns the ids of all")
        ids: list[int] = self._core.submit(requests, check_timeout(timeout)).tolist()
        check_all_submitted(ids, sum(one.n for one in requests))
        return ids[0] if isinstance(request, EpisodeRequest) else ids

    def submit_batch(
        self,
        seeds: Sequence[int] | NDArray[Any],
        *,
        max_steps: int | Sequence[int] | NDArray[Any] | None = None,
        timeout: float | None = None,
        **fields: Any,
    ) -> NDArray[np.uint64]:
        """Submits a request for each seed; many times faster than a sequence of requests.

        Args:
            seeds: integers [n].
            max_steps: of all, or one for each seed.
            timeout: as in `submit()`.
            fields: others of `EpisodeRequest`, for all, but no `seed`.

        Returns:
            uint64 [n], the ids of the episodes; with a larger `EpisodeRequest.n` so many for each seed.

        Raises:
            ArgumentError, StateError, ClosedError, TimeoutError: as `submit()`.
        """
        batch = _batch_of(seeds, max_steps, fields)
        ids = self._core.submit(batch, check_timeout(timeout))
        check_all_submitted(ids, len(batch) * batch.template.n)
        return ids

    def cancel(self, request_id: int) -> bool:
        """Cancels a request that waits or is being played; its result, "cancelled", follows.

        Returns:
            False if it has ended, which is so a moment after its result can be taken, or was never submitted.
        """
        check_integer("request_id", request_id, 0, 2**64 - 1)
        return self._core.handle.cancel(request_id)

    # ---- Results ----

    def get_outputs(
        self, block: bool = True, timeout: float | None = None, most: int = _MOST_OUTPUTS
    ) -> list[EpisodeResult | EpisodeStep]:
        """The outputs that have come, at least one if `block`, unless nothing is outstanding.

        Args:
            block: whether to wait for the first.
            timeout: seconds to wait; None: without limit. After it the list is empty.
            most: outputs to return.

        Raises:
            StateError: the next output is the result of an episode that failed; or a policy would wait.
            ClosedError: the engine was closed, and all outputs have been taken.
        """
        limit = check_timeout(timeout) if check_flag("block", block) else 0.0
        return self._core.answers.outputs(check_integer("most", most, 1, 1 << 20), limit)

    def get_records(self, timeout: float | None = None, most: int = _MOST_OUTPUTS) -> NDArray[Any]:
        """The results that have come, as records: the fields of `EpisodeResult` that are numbers, with `returns_0`,
        `max_y_0`, ... by agent, and times on `time.monotonic_ns()`; `reason` is the place in `EpisodeResult`'s list.
        Many times faster than `get_outputs()`, and otherwise as this; what requests record is dropped.

        >>> import doorstep
        >>> with doorstep.RolloutEngine(num_worlds=64) as engine:
        ...     ids = engine.submit_batch(range(100), max_steps=20)
        ...     assert engine.drain()
        ...     records = engine.get_records()   # pandas.DataFrame(records) is a table of them
        >>> records["length"].mean(), records["returns_1"].shape
        (np.float64(20.0), (100,))
        """
        columns, most = columns_of(self._config.simulator.num_agents), check_integer("most", most, 1, 1 << 20)
        return self._core.answers.records(columns, most, check_timeout(timeout))

    def __iter__(self) -> Iterator[EpisodeResult]:
        """Results until nothing is outstanding; steps are left out. Raises StateError for an episode that failed;
        another loop then goes on."""
        try:
            while True:
                result = self._core.answers.result()
                if result is None:
                    return
                yield result  # on its way here Python does not look for signals, as it does at a jump back
        except ClosedError:  # nothing comes any more
            if self._parts.is_copy:
                raise

    @overload
    def future(self, request: EpisodeRequest) -> Future[EpisodeResult]: ...
    @overload
    def future(self, request: Sequence[EpisodeRequest]) -> list[Future[EpisodeResult]]: ...
    def future(
        self, request: EpisodeRequest | Sequence[EpisodeRequest]
    ) -> Future[EpisodeResult] | list[Future[EpisodeResult]]:
        """Submits a request, or several at once, whose results go to futures instead of `get_outputs()`. Waits while
        the queue is full. Cancelling a future cancels its request. Callbacks of futures run in one thread, and cannot
        wait for other futures. In them and in policies `concurrent.futures.wait()` is refused, whatever its timeout,
        unless all have ended.

        Raises:
            ArgumentError, StateError, ClosedError: as `submit()`; steps of futures cannot be streamed.
        """
        requests = as_list(request)
        check_single(requests, _ONE_RESULT)
        futures = self._core.submit_futures(requests, None)
        return futures[0] if isinstance(request, EpisodeRequest) else futures

    def future_batch(
        self,
        seeds: Sequence[int] | NDArray[Any],
        *,
        max_steps: int | Sequence[int] | NDArray[Any] | None = None,
        **fields: Any,
    ) -> list[Future[EpisodeResult]]:
        """A future for each seed; as `future()` of the requests of `submit_batch()`.

        >>> import doorstep
        >>> with doorstep.RolloutEngine(num_worlds=64) as engine:
        ...     futures = engine.future_batch(range(100), max_steps=5)
        ...     sum(future.result().length for future in futures)
        500
        """
        batch = _batch_of(seeds, max_steps, fields)
        check_single([batch.template], _ONE_RESULT)
        return self._core.submit_futures(batch, None)

    def run(self, requests: Iterable[EpisodeRequest]) -> list[EpisodeResult]:
        """Plays requests and waits for them; the results are in their order, `n` for each. What else was submitted does
        not matter.

        >>> import doorstep
        >>> with doorstep.RolloutEngine(num_worlds=16) as engine:
        ...     results = engine.run(doorstep.EpisodeRequest(seed=seed, max_steps=20) for seed in range(40))
        >>> [result.request.seed for result in results] == list(range(40))
        True

        Raises:
            ArgumentError, ClosedError: as `submit()`.
            StateError: an episode failed, as above; or a policy calls. The other requests are cancelled.
        """
        self._core.threads.check_wait(None)
        return self._core.run(as_list(requests))

    async def play(self, request: EpisodeRequest) -> EpisodeResult:
        """Submits a request and awaits its result, in any event loop of asyncio. Cancelling the task cancels the
        request. Raises as `run()`."""
        self._core.threads.check_wait(None)
        check_single([request], _ONE_RESULT)
        while not (futures := self._core.submit_futures([request], 0.0)):
            await asyncio.sleep(_PAUSE_SECONDS)
        return await asyncio.wrap_future(futures[0])

    def drain(self, timeout: float | None = None) -> bool:
        """Waits until every request has its result; takes none.

        Returns:
            False if the timeout, in seconds, has passed before.

        Raises:
            StateError: a policy calls, whose own request has no result; or outputs have no room, see
                `RolloutConfig.output_capacity`, and no other thread reads them.
        """
        return self._core.drain(check_timeout(timeout))

    # ---- The end ----

    def close(self, timeout: float | None = None) -> None:
        """Ends the engine: requests without a result get one, "failed". Results can still be taken.

        Args:
            timeout: seconds to wait for all policies that are being called; None: without limit. After it they are left
                to end by themselves.
        """
        limit = TimeLimit(check_timeout(timeout))
        if self._parts.is_copy:
            return
        self._parts.end()
        self._parts.join(limit)
        self._finalizer.detach()


def _config_of(config: RolloutConfig | SimulatorConfig | None, rules: dict[str, Any]) -> RolloutConfig:
    if config is None:
        config = SimulatorConfig(**rules)
    elif rules:
        refuse("config", "None where rules of the simulator are given", config, "replace() its fields")
    if isinstance(config, SimulatorConfig):
        config = RolloutConfig(config)
    if not isinstance(config, RolloutConfig):
        refuse("config", "a doorstep.RolloutConfig or SimulatorConfig", config)
    return config


def _batch_of(seeds: Any, max_steps: Any, fields: dict[str, Any]) -> RequestBatch:
    if "seed" in fields:
        refuse("seed", "left out: `seeds` has that of each request", fields["seed"])
    return make_batch(EpisodeRequest(**fields), seeds, max_steps)


def _with_room(config: RolloutConfig, levels: Sequence[AnyLevel]) -> RolloutConfig:
    """For levels: each request brings its own, so that room for one is enough."""
    if not levels or config.simulator.max_levels:
        return config
    return config.replace(simulator=config.simulator.replace(max_levels=1))
