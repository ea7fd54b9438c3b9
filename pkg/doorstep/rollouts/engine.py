"""`RolloutEngine`: plays episodes that are requested from any thread."""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal, NoReturn, final, overload

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_choice, check_flag, check_integer, check_timeout, refuse, showing
from doorstep._copies import ClosingOwner
from doorstep._level_table import REFERENCE
from doorstep._native import rollouts as native
from doorstep._native._generated import MAX_REPLICAS
from doorstep._native.finalizer import Finalizer
from doorstep.config import SimulatorConfig
from doorstep.errors import ClosedError, StateError
from doorstep.levels.choice import AnyLevels, table_levels
from doorstep.levels.files import AnyLevel
from doorstep.levels.native import check_spawns, to_native_rewards
from doorstep.levels.rules import Rewards
from doorstep.metrics.store import MetricsStore
from doorstep.policy.loading import AnyPolicy
from doorstep.rollouts.callers import Callers, RowStates
from doorstep.rollouts.config import RolloutConfig, with_reward
from doorstep.rollouts.delivery import Futures, Submission, Submissions
from doorstep.rollouts.failures import FailureTexts, ReplicaLog, describe, failure_of_replicas
from doorstep.rollouts.native_policies import NativePolicies
from doorstep.rollouts.policies import NamedPolicies, NamedPolicy, PolicyTable, is_callable
from doorstep.rollouts.registry import make_controller, make_scheduler
from doorstep.rollouts.request import (
    AnyRequests,
    EpisodeColumns,
    EpisodeRequest,
    check_policy,
    kinds_of,
    num_episodes,
    requests_of,
    with_levels,
)
from doorstep.rollouts.results import EpisodeResult, EpisodeResults
from doorstep.rollouts.writing import RequestWriter
from doorstep.simulator import resolve_device

_MOST_OUTPUTS = 4096  # taken at a time
_MOST_OF_LOOP = 256  # likewise, by iteration
_PAUSE_SECONDS = 0.002  # between two attempts of a coroutine to submit
_EXIT_SECONDS = 5.0  # to wait for all threads: policies may never return


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
    infinity. Reading its result then raises a StateError, in `run()`, `future().result()`, iteration and
    `get_outputs()`: after the results before it were read, and once. The exception's `result` is the `EpisodeResult`,
    and its `__cause__` shows where the policy raised. The next call reads what follows.

    A replica that fails is restarted, as often as the config's `max_restarts` allows; its episodes begin again, there
    or in other replicas. Calls that wait log a line about it, as "doorstep.rollouts". Episodes that the last replica
    leaves fail.

    A policy, which the engine waits for, cannot wait for the engine: a call that would have to raises a StateError at
    once. A future that it waits for waits for ever.

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
        self._raises = check_choice("on_error", on_error, ("raise", "return")) == "raise"
        self._levels, simulator = table, self._config.simulator
        key = make_scheduler(self._config.scheduler)
        resolved = self._config.replace(devices=tuple(map(resolve_device, self._config.replica_devices)))
        rewards = None if self._config.reward is None else to_native_rewards(self._config.reward)
        given = 0 if metrics is None else metrics.native_handle
        self._engine = handle = native.EngineHandle(resolved.native_handle, rewards, given)
        self._finalizer = Finalizer(self, handle.close)
        made = handle.metrics() if metrics is None else None
        self._metrics = metrics if made is None else MetricsStore._of(made, self._config.metrics.trace)
        # No part refers to the engine, and no thread that waits does: it ends when nobody else refers to it
        failures, states = FailureTexts(handle), RowStates()
        self._natives = NativePolicies(handle, failures, self._metrics)
        tell = functools.partial(_tell, self._natives, states)
        self._policies = PolicyTable(self._config.max_policies, simulator, tell)
        log = ReplicaLog(handle, self._config.max_restarts)
        about = handle, self._policies, self._natives, failures, log, simulator.num_agents
        self._submissions = Submissions(*about)
        find_policy, tend = self._policies.__getitem__, self._submissions.tend
        self._callers = Callers(handle, failures, tend, simulator, find_policy, states)
        num_replicas, num_now = len(self._config.replica_devices), lambda: int(handle.info().num_replicas)
        replica = make_controller(self._config.controller, num_replicas, num_now)
        self._writer = RequestWriter(simulator.num_agents, self._policies, replica=replica, key=key)
        self._outputs = native.OutputsHandle(handle, limited=True)
        outputs = native.OutputsHandle(handle, limited=False)
        self._futures = Futures(outputs, self._submissions, raises=self._raises)
        self._here = threading.local()
        self._removed: set[int] = set()  # replicas
        self._is_ending = self._is_copy = False  # in a forked child
        _engines[:] = [*map(weakref.ref, _living()), weakref.ref(self)]

    def _check_process(self) -> None:
        if self._is_copy:
            raise ClosedError("this engine belongs to the process that was forked", hint="make one after the fork")

    def _check_open(self, ids: Sequence[int] = ()) -> None:
        """ids: of the requests that have found room before, which the error tells."""
        self._check_process()
        if self._is_ending:
            raise _with_ids(ClosedError("this engine was closed", hint="make a new one"), ids)
        if not self._engine.info().num_playing and (failure := failure_of_replicas(self._engine)) is not None:
            told = f"the replicas of this engine have ended: {describe(failure)}"
            raise _with_ids(ClosedError(told, hint="make a new one"), ids) from failure

    # ---- What it is ----

    @property
    def config(self) -> RolloutConfig:
        return self._config

    @property
    def native_handle(self) -> int:
        """The ds_engine. Its config has the devices of its first replicas."""
        self._check_process()
        return self._engine.value

    @property
    def outstanding(self) -> int:
        """Episodes of `submit()` whose result has not been read."""
        outstanding = self._delivery.settle()
        if not outstanding:
            self._submissions.tidy()
        return outstanding

    @property
    def metrics(self) -> MetricsStore | None:
        """What the engine has measured; None: it does not measure. A result that you have is in it."""
        return self._metrics

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
        self._check_process()
        return NamedPolicies(self._policies, self._submissions.lock, self._name_policy)

    def _name_policy(self, name: str, policy: AnyPolicy) -> None:
        check_policy(policy)
        named = NamedPolicy(name, policy, self._policies.load(policy))
        self._check_open()
        with self._submissions.lock:
            if is_callable(named.loaded):
                self._callers.start()
            self._policies.set_name(named, self._submissions.policies_in_use, self._replace_policy)

    def _replace_policy(self, number: int, by: int) -> None:
        self._submissions.use_too(number, by)
        self._engine.replace_policy(number, by)

    # ---- Replicas ----

    @property
    def replicas(self) -> tuple[int, ...]:
        """The numbers of the replicas that play, as in `EpisodeResult.replica`."""
        self._check_process()
        numbers = range(self._engine.info().num_replicas)
        return tuple(one for one in numbers if one not in self._removed and not self._engine.replica(one).has_ended)

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
        simulator = self._config.simulator.replace(**rules)
        self._check_open()
        self._config.replace(simulator=simulator)  # which checks it
        resolved = simulator.replace(device=resolve_device(simulator.device))  # which owns its handle
        return self._engine.add_replica(resolved.native_handle)

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
        check_integer("number", number, 0, MAX_REPLICAS - 1)
        self._check_open()
        with self._submissions.lock:
            others = set(self.replicas) - {number}
            if len(others) == len(self.replicas):
                refuse("number", f"that of a replica, {', '.join(map(str, others))}", number)
            if not others:
                raise StateError("the last replica cannot be removed", hint="add another one, or close the engine")
            self._removed.add(number)
            self._engine.end_replica(number)

    # ---- Requests ----

    def run(self, requests: EpisodeRequest | Iterable[EpisodeRequest]) -> EpisodeResults:
        """Plays requests and waits for them; the results are in their order, `n` for each. What else was submitted does
        not matter.

        >>> import doorstep
        >>> with doorstep.RolloutEngine(num_worlds=16) as engine:
        ...     results = engine.run(doorstep.EpisodeRequest(seed=seed, max_steps=20) for seed in range(40))
        >>> results[7].request.seed, results.length.sum()
        (7, np.int64(800))

        Args:
            requests: one, any number of them, or `EpisodeColumns`.

        Returns:
            A sequence of `EpisodeResult`, with columns, arrays of what all have: `length`, `reason`, `returns`, ...;
            and all of them as one array of `records`. See `EpisodeResults`.

        Raises:
            ArgumentError, ClosedError: as `submit()`.
            StateError: an episode failed, as above; or a policy calls. The other requests are cancelled.
        """
        given = self._without_steps(requests)
        self._check_open()
        outputs = native.OutputsHandle(self._engine, limited=False)
        call, delivery = native.SubmitCall(self._engine, outputs), native.Delivery(outputs)
        parts: list[EpisodeResults] = []
        try:
            self._submit(call, Submission(given), None)
            left = num_episodes(given)
            while left:
                most = min(left, _MOST_OUTPUTS)
                part = self._submissions.take(delivery, most, None, alone=self._raises, least=most)
                if self._raises and part.failed:
                    raise part.error(0)
                delivery.state.received = len(part)
                parts.append(part)
                left -= len(part)
        except BaseException:
            for request_id in call.ids.tolist():
                self._engine.cancel(request_id)
            raise
        finally:
            delivery.settle()
            outputs.release()
            self._submissions.tidy()
        return EpisodeResults.join(parts, self._config.simulator.num_agents)

    @overload
    def submit(self, requests: EpisodeRequest, *, timeout: float | None = None) -> int: ...
    @overload
    def submit(  # type: ignore[overload-overlap]
        self, requests: EpisodeColumns, *, timeout: float | None = None
    ) -> NDArray[np.uint64]: ...
    @overload
    def submit(self, requests: Sequence[EpisodeRequest], *, timeout: float | None = None) -> list[int]: ...
    def submit(self, requests: EpisodeRequest | Sequence[EpisodeRequest], *, timeout: float | None = None) -> Any:
        """Submits a request, or several at once, and returns its id, or a list of their ids; of `EpisodeColumns` an
        array, uint64 [n]. Waits while the queue is full. A request has one id, whatever its `n` is.

        Args:
            requests: one, a sequence of them, or `EpisodeColumns`.
            timeout: seconds to wait for room; None: without limit.

        Raises:
            ArgumentError: a request has more policies than the engine can take, or a level that does not suit it; then
                none was submitted.
            StateError: the module of a policy has other tensors, or its memory was moved or freed; likewise. Or the
                queue is full, and there will be no room: a policy calls, or outputs have no room and for 5 seconds no
                other thread reads them; `ids` as below.
            ClosedError: the engine was closed; `ids` as below, of requests that get their results all the same.
            TimeoutError: there was no room for all; its `ids` are those of the requests that were submitted.
        """
        call = native.SubmitCall(self._engine, self._outputs)
        given = with_levels(requests_of(requests), self._levels)
        self._submit(call, Submission(given), check_timeout(timeout))
        ids = call.ids
        if isinstance(requests, EpisodeColumns):
            return ids
        return int(ids[0]) if isinstance(requests, EpisodeRequest) else ids.tolist()

    @overload
    def future(self, requests: EpisodeRequest) -> Future[EpisodeResult]: ...
    @overload
    def future(self, requests: Sequence[EpisodeRequest]) -> list[Future[EpisodeResult]]: ...
    def future(
        self, requests: EpisodeRequest | Sequence[EpisodeRequest]
    ) -> Future[EpisodeResult] | list[Future[EpisodeResult]]:
        """Submits a request, or several at once, whose results go to futures instead of `get_outputs()`. Waits while
        the queue is full. Cancelling a future cancels its request. Callbacks of futures run in one thread, and cannot
        wait for other futures.

        >>> import doorstep
        >>> from doorstep.rollouts import EpisodeColumns
        >>> with doorstep.RolloutEngine(num_worlds=64) as engine:
        ...     futures = engine.future(EpisodeColumns(range(100), max_steps=5))
        ...     sum(future.result().length for future in futures)
        500

        Raises:
            ArgumentError, StateError, ClosedError: as `submit()`; futures have one result each, and no steps.
        """
        futures = self._submit_futures(requests, None)
        return futures[0] if isinstance(requests, EpisodeRequest) else futures

    def _submit_futures(self, requests: Any, timeout: float | None) -> list[Future[EpisodeResult]]:
        given = self._without_steps(requests)
        for request in kinds_of(given):
            if request.n > 1:
                refuse("n", "1 for a future, which has one result", request.n, "run() returns all")
        call, submission = native.SubmitCall(self._engine, self._futures.outputs), Submission(given)
        futures = self._futures.make(call, len(given))
        tagged = dict(enumerate(futures, submission.first_tag))
        try:
            self._submit(call, submission, timeout, lambda: self._futures.begin(submission, tagged))
        finally:
            self._futures.forget(list(tagged)[len(call.ids) :])
        return futures

    async def play(self, request: EpisodeRequest) -> EpisodeResult:
        """Submits a request and awaits its result, in any event loop of asyncio. Cancelling the task cancels the
        request. Raises as `run()`."""
        if not isinstance(request, EpisodeRequest):
            refuse("request", "a doorstep.EpisodeRequest", request)
        while True:
            try:
                (future,) = self._submit_futures(request, 0.0)
                break
            except TimeoutError:  # no room yet
                await asyncio.sleep(_PAUSE_SECONDS)
        return await asyncio.wrap_future(future)

    def cancel(self, request_id: int) -> bool:
        """Cancels a request that waits or is being played; its results follow, "cancelled" unless they were known.

        Returns:
            False if it has ended, or was never submitted.
        """
        self._check_process()
        return self._engine.cancel(check_integer("request_id", request_id, 0, 2**64 - 1))

    def _without_steps(self, requests: Any) -> AnyRequests:
        """Those of a call whose results alone are returned."""
        given = requests_of(requests)
        for request in kinds_of(given):
            if "stream" in request.record:
                refuse("request", "one that records no 'stream'", request, "get_outputs() gives steps")
        return with_levels(given, self._levels)

    def _submit(
        self,
        call: native.SubmitCall,
        submission: Submission,
        timeout: float | None,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        """begin: called when outputs may come.

        Raises:
            TimeoutError: not all requests have found room in time.
        """
        requests = submission.requests
        if not requests:
            return
        self._check_open()
        try:
            with self._submissions.lock:
                written = self._writer.write(requests, self._submissions.policies_in_use)
                self._natives.renew(written.policies)
                if any(is_callable(self._policies[number]) for number in written.policies):
                    self._callers.start()
                submission.policies = written.policies
                self._submissions.open(submission)  # before they are submitted: outputs may come at once
            begin()
            if len(requests) > native.MOST_REQUESTS:  # else this is done where they are submitted
                for start in range(0, len(requests), native.MOST_REQUESTS):
                    part = written.part(start, min(start + native.MOST_REQUESTS, len(requests)))
                    native.check_requests(self._config.native_handle, part)
            call.run(functools.partial(written.part, first_tag=submission.first_tag), len(requests), timeout)
        except (ClosedError, StateError) as error:
            if isinstance(error, ClosedError):
                self._check_open(call.ids.tolist())
            error.ids = call.ids.tolist()  # type: ignore[union-attr]
            raise
        finally:
            submission.is_over = True  # first of all: a second Ctrl-C may end what follows
        if len(call.ids) < len(requests):
            told = f"{len(call.ids)} of {len(requests)} requests found room in the queue"
            raise _with_ids(TimeoutError(told), call.ids.tolist())

    # ---- Results ----

    def get_outputs(
        self, block: bool = True, timeout: float | None = None, most: int = _MOST_OUTPUTS
    ) -> EpisodeResults:
        """The outputs that have come, at least one if `block`, unless nothing is outstanding: a sequence as that of
        `run()`, with an `EpisodeStep` for each step of requests that record "stream".

        Args:
            block: whether to wait for the first.
            timeout: seconds to wait; None: without limit. After it there may be none.
            most: outputs to return.

        Raises:
            StateError: the next output is the result of an episode that failed; or a policy would wait.
            ClosedError: the engine was closed, and all outputs have been taken.
        """
        limit = check_timeout(timeout) if check_flag("block", block) else 0.0
        delivery = self._delivery
        outputs = self._submissions.take(
            delivery, check_integer("most", most, 1, 1 << 20), limit, alone=self._raises
        )
        if self._raises and outputs.failed:
            _raise_alone(outputs, delivery)
        state, count = delivery.state, len(outputs)
        state.received = count
        return outputs

    def __iter__(self) -> Iterator[EpisodeResult]:
        """Results until nothing is outstanding; steps are left out. Raises StateError for an episode that failed;
        another loop then goes on. What a loop has not come to when it ends goes to the next one."""
        delivery, number = self._delivery, 0
        try:
            while outputs := self._submissions.take(delivery, _MOST_OF_LOOP, None, alone=self._raises):
                state, number = delivery.state, delivery.state.number
                if self._raises and outputs.failed:
                    number = 0
                    _raise_alone(outputs, delivery)
                for place in range(len(outputs)):
                    if state.number != number or self._delivery is not delivery:  # another call has taken, or thread
                        break
                    if outputs.is_result(place):
                        result = outputs[place]
                        state.received = place + 1
                        yield result
                else:
                    if state.number == number:
                        state.received = len(outputs)
                if self._delivery is not delivery:
                    if state.number == number:
                        delivery.settle()
                    delivery = self._delivery
        except ClosedError:  # nothing comes any more
            if self._is_copy:
                raise
        finally:
            if number and delivery.state.number == number:
                delivery.settle()

    @property
    def _delivery(self) -> native.Delivery:
        """That of the current thread."""
        self._check_process()
        try:
            return self._here.delivery  # type: ignore[no-any-return]
        except AttributeError:
            made = self._here.delivery = native.Delivery(self._outputs)
            return made

    # ---- The end ----

    def close(self, timeout: float | None = None) -> None:
        """Ends the engine: requests without a result get one, "failed". Results can still be taken.

        Args:
            timeout: seconds to wait for all policies that are being called; None: without limit. After it they are left
                to end by themselves.
        """
        left = _time_left(check_timeout(timeout))
        if not self._is_copy:
            self._end()
            self._join(left)
            self._finalizer.detach()

    def _end(self) -> None:
        """Ends soon. Takes no lock and does not wait."""
        self._is_ending = True
        self._engine.close()

    def _join(self, left: Callable[[], float]) -> None:
        """Waits for the end, so many seconds, unless one of its own threads calls."""
        if not self._callers.calls_here and not self._futures.calls_here:
            self._engine.join(left())
            self._callers.join(left)
            self._futures.join(left)


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


def _with_room(config: RolloutConfig, levels: Sequence[AnyLevel]) -> RolloutConfig:
    """For levels: each request brings its own, so that room for one is enough."""
    if not levels or config.simulator.max_levels:
        return config
    return config.replace(simulator=config.simulator.replace(max_levels=1))


def _tell(natives: NativePolicies, states: RowStates, number: int, policy: Any, name: str) -> None:
    """The policy, which metrics call so, gets a number; None: that of the number has it no longer."""
    if policy is None:
        natives.take_back(number)
        states.forget(number)
    else:
        natives.give(number, policy, name)


def _with_ids(error: Any, ids: Sequence[int]) -> Any:
    error.ids = list(ids)
    return error


def _raise_alone(outputs: EpisodeResults, delivery: native.Delivery) -> NoReturn:
    """Raises the error of the only output, which is received so."""
    error, state = outputs.error(0), delivery.state
    try:
        state.received = 1
        raise error
    finally:
        del error  # whose traceback refers to this frame


def _time_left(timeout: float | None) -> Callable[[], float]:
    """Tells the seconds of a timeout that are left; None: without limit."""
    end = time.monotonic() + (threading.TIMEOUT_MAX / 2 if timeout is None else timeout)
    return lambda: max(end - time.monotonic(), 0.0)


# ---- Exit and fork

_engines: list[weakref.ref[RolloutEngine]] = []  # of this process; a WeakSet's callbacks would lose Ctrl-C


def _living() -> list[RolloutEngine]:
    return [engine for reference in _engines if (engine := reference()) is not None]


def _end_all() -> None:
    """When the interpreter exits."""
    left, engines = _time_left(_EXIT_SECONDS), _living()
    for engine in engines:
        engine._end()
    for engine in engines:
        engine._join(left)


def _forget_all() -> None:
    """In a forked child, which has no threads of the engines."""
    for engine in _living():
        engine._is_copy = True
    _engines.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget_all)
