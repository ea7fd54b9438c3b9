"""`AsyncEpisodes`: environments over an engine, received and sent in parts; in the way of EnvPool."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_choice, check_integer, check_timeout, refuse, showing
from doorstep._copies import ClosingOwner
from doorstep._native import ACTIONS, MAX_SEED, MAX_WORLDS
from doorstep._native.finalizer import Finalizer
from doorstep._observations import flat_size, or_default
from doorstep.config import SimulatorConfig
from doorstep.errors import ClosedError, StateError
from doorstep.rollouts.changes import SLICE_SECONDS, TimeLimit
from doorstep.rollouts.checks import check_single
from doorstep.rollouts.config import PullController, RolloutConfig
from doorstep.rollouts.engine import RolloutEngine
from doorstep.rollouts.exchange import Exchange, Row
from doorstep.rollouts.failures import error_of
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import EpisodeResult

# Observations, rewards, terminated, truncated, info.
Batch: TypeAlias = tuple[
    NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
]


@final
class AsyncEpisodes(ClosingOwner):
    """Environments that play one requested episode after the other, with actions that are sent.

    `recv()` returns some environments that need actions, and `send()` gives them; the others are simulated meanwhile.
    What an environment returns depends on its requests and the actions that it is sent, and on nothing else.

    The worlds of a replica step together, when all of them have been sent: with one replica all environments pass
    through `recv()` before the next step, and with several they overlap.

    As with gymnasium's "next_step" autoreset, the environments whose episode has ended are returned once more, with
    their last observations; what is then sent begins the next episode, and the actions have no effect.

    >>> import doorstep, numpy as np
    >>> from doorstep.rollouts import AsyncEpisodes
    >>> config = doorstep.RolloutConfig(doorstep.SimulatorConfig(8, num_threads=1), devices=("cpu", "cpu"))
    >>> with AsyncEpisodes(config, batch_size=4) as env:   # 16 environments, which are received 4 at a time
    ...     for _ in range(100):
    ...         observations, rewards, terminated, truncated, info = env.recv()
    ...         actions = np.zeros((len(observations), 2, 4), np.int32)
    ...         env.send(actions, info["env_id"])
    >>> observations.shape, rewards.shape
    ((4, 2, 94), (4, 2))

    Args:
        config: of the engine that plays; its controller is "pull".
        num_envs: N; None: as many as all replicas have worlds, which is the most.
        batch_size: environments that `recv()` returns at most; None: as many as a replica has worlds.
        request: request(env, episode) is what environment `env` plays as its `episode`th; None: the reference's levels,
            of seed `env + episode * N`. Its tag and what it records are not used.
        agents: whose actions are sent, ascending; None: all. The request's policy plays the others.
        on_error: "raise": `recv()` raises for an episode that failed; "return": it returns its result as others.

    Raises:
        ArgumentError: an argument is out of range.
    """

    __repr__ = showing("num_envs", "batch_size")

    def __init__(
        self,
        config: RolloutConfig | SimulatorConfig,
        *,
        num_envs: int | None = None,
        batch_size: int | None = None,
        request: Callable[[int, int], EpisodeRequest] | None = None,
        agents: Sequence[int] | None = None,
        on_error: Literal["raise", "return"] = "raise",
    ) -> None:
        config = RolloutConfig(config) if isinstance(config, SimulatorConfig) else config
        if not isinstance(config, RolloutConfig) or not isinstance(config.controller, PullController):
            refuse("config", "a doorstep.RolloutConfig with a PullController, or a SimulatorConfig", config)
        worlds = config.simulator.num_worlds
        most = min(worlds * len(config.replica_devices), config.queue_capacity)
        self.num_envs = most if num_envs is None else check_integer("num_envs", num_envs, 1, most)
        self.batch_size = (
            min(worlds, self.num_envs) if batch_size is None else check_integer("batch_size", batch_size, 1, MAX_WORLDS)
        )
        self._agents = _check_agents(agents, config.simulator.num_agents)
        if request is not None and not callable(request):
            refuse("request", "None, or a callable: number of the environment, of the episode -> request", request)
        rules = config.simulator
        self._num_inputs = flat_size(or_default(rules.observations), rules.num_agents)
        self._request = request or functools.partial(_request_of_seed, self.num_envs)
        self._exchange = Exchange(len(self._agents))
        self._raises = check_choice("on_error", on_error, ("raise", "return")) == "raise"
        self._engine = RolloutEngine(config, on_error="return")
        core = weakref.proxy(self._engine._core)  # the finaliser of these refers to the exchange
        self._exchange.envs_of = lambda tags: [request and request.tag for request in core.awaited_requests(tags)]
        self._exchange.is_ending = lambda: core.has_ended
        self._finalizer = Finalizer(self, setattr, self._exchange, "closed", True, at_exit=True)  # takes no lock
        self._episodes = [0] * self.num_envs  # that have begun
        self._received: dict[int, Row] = {}  # and not sent
        try:
            self._begin(self._next_requests(range(self.num_envs)))  # together: a replica takes them for one step
        except BaseException:
            self.close()
            raise

    @property
    def engine(self) -> RolloutEngine:
        """The engine that plays. Its requests are those of the environments."""
        return self._engine

    def recv(self, timeout: float | None = None) -> Batch:
        """Waits for `batch_size` environments that need actions, and returns those that have waited longest; fewer if
        no others can follow before these are sent.

        Args:
            timeout: seconds to wait; None: without limit.

        Returns:
            Of B environments and K agents: observations float32 [B, K, F]; rewards float32 [B, K] of the step before;
            terminated, truncated: bool [B], whether the episode has ended by its goal, or otherwise; info: "env_id",
            int32 [B]; "elapsed_step", int32 [B], the steps of their episodes; "result", [B], the `EpisodeResult` of
            those that have ended, with the trajectory of all agents, else None. None of it is overwritten later.

        Raises:
            StateError: all environments wait to be sent; a policy calls, which cannot wait; or an episode failed, whose
                `EpisodeResult` is the exception's `result`. Its environment, `result.request.tag`, counts as received:
                what is sent to it begins its next episode. The others are returned later.
            ClosedError: they were closed.
            TimeoutError: too few were ready in time. They are returned later.
        """
        changed = self._exchange.changed
        limit = TimeLimit(check_timeout(timeout))
        self._engine._core.threads.check_wait(timeout)
        with changed:
            self._check_open()
            if len(self._received) == self.num_envs:
                raise StateError("all environments have been received", hint="send() actions for some of them first")
            while not self._is_batch_ready():
                if (left := limit.left(SLICE_SECONDS)) == 0:
                    raise TimeoutError(f"{len(self._ready())} environments are ready")
                changed.wait(left)
            rows = self._ready()[: self.batch_size]
            failed = [row for row in rows if self._raises and row.ended is not None and row.ended.reason == "failed"]
            for row in failed[:1] or rows:
                self._received[row.env] = self._exchange.ready.pop(row.env)
        if failed:
            raise error_of(failed[0].ended)
        return self._batch(rows)

    def _ready(self) -> list[Row]:
        """Rows that can be received. An environment that was received and not sent has none, even if its episode has
        ended since."""
        return [row for row in self._exchange.ready.values() if row.env not in self._received]

    def _is_batch_ready(self) -> bool:
        """With the lock held."""
        exchange = self._exchange
        self._check_open()
        ready = len(self._ready())
        if ready >= self.batch_size:
            return True
        rows = (*exchange.ready.values(), *self._received.values())
        ended = {row.env for row in rows if row.ended is not None}
        moving = self.num_envs - len(ended) - exchange.num_settled  # being simulated, or about to be
        if ready == 0 or moving == 0:
            return ready > 0
        info = self._engine._core.handle.info()  # moving ones may wait for those that were not sent
        return exchange.num_blocked >= info.num_playing or moving * len(self._agents) <= info.unasked_rows

    def _check_open(self) -> None:
        if self._exchange.closed or self._engine._core.has_ended:
            raise ClosedError("these environments were closed", hint="make new ones")

    def _batch(self, rows: list[Row]) -> Batch:
        reasons = [row.ended.reason if row.ended else "" for row in rows]
        results = np.empty(len(rows), object)
        results[:] = [row.ended for row in rows]
        info = {
            "env_id": np.array([row.env for row in rows], np.int32),
            "elapsed_step": np.array([row.step for row in rows], np.int32),
            "result": results,
        }
        return (
            np.stack([row.observations for row in rows]),
            np.stack([row.rewards for row in rows]),
            np.array([reason == "goal" for reason in reasons]),
            np.array([reason not in ("", "goal") for reason in reasons]),
            info,
        )

    def send(self, actions: Any, env_id: Any) -> None:
        """Gives actions to environments that were received, in any order and any part of them.

        Args:
            actions: integers [B, K, 4]; copied.
            env_id: integers [B].

        Raises:
            ArgumentError: the actions are of another kind or, with the simulator's action_check "raise", out of range;
                or an environment was not received since it was sent; or `request` returned no request that the engine
                can play. Nothing was sent; the same holds for what `request` raises.
            ClosedError: they were closed.
        """
        ids, given = self._check_sent(actions, env_id)
        with self._exchange.changed:
            self._check_open()
            self._check_received(ids)
            ended = {env for env in ids if self._received[env].ended is not None}
        requests = self._next_requests(sorted(ended))  # without the lock: it calls the user's function
        with self._exchange.changed:
            self._check_open()
            self._check_received(ids)  # another thread may have sent them meanwhile
            rows = {env: self._received.pop(env) for env in ids}
            try:
                self._begin(requests)
            except BaseException:
                self._received.update(rows)
                raise
            for env, one in zip(ids, given, strict=True):
                if env not in ended:
                    self._exchange.give(env, one)

    def _check_sent(self, actions: Any, env_id: Any) -> tuple[list[int], NDArray[np.int32]]:
        ids, given = np.asarray(env_id), np.asarray(actions)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            refuse("env_id", "integers [B]", env_id)
        shape = (len(ids), len(self._agents), len(ACTIONS))
        if given.shape != shape or given.dtype.kind not in "iu":
            refuse("actions", f"integers {list(shape)}", f"{given.dtype} {list(given.shape)}")
        if self._engine.config.simulator.action_check == "raise":
            outside = np.argwhere((given < 0) | (given >= np.array(ACTIONS)))
            if len(outside):
                place = outside[0].tolist()
                limit = f"0 to {ACTIONS[place[-1]] - 1}"
                refuse(f"actions{place}", limit, int(given[tuple(outside[0])]))
        return ids.tolist(), given.clip(-(2**31), 2**31 - 1).astype(np.int32)

    def _check_received(self, ids: list[int]) -> None:
        unknown = [env for env in ids if env not in self._received]
        if unknown or len(set(ids)) < len(ids):
            wrong = unknown or sorted(ids)
            refuse("env_id", "different environments that recv() returned and that were not sent since", wrong)

    def step(self, actions: Any, env_id: Any) -> Batch:
        """`send(actions, env_id)`, then `recv()`, which may return others."""
        self.send(actions, env_id)
        return self.recv()

    def close(self) -> None:
        """Ends all episodes, and the engine. A `recv()` that waits raises ClosedError."""
        self._exchange.close()
        self._engine.close()
        self._finalizer.detach()  # it refers to results, whose policies may refer to this

    # ---- Episodes

    def _begin(self, requests: list[EpisodeRequest]) -> None:
        futures = self._engine._core.submit_futures(requests, None)
        for request, future in zip(requests, futures, strict=True):
            self._episodes[request.tag] += 1
            future.add_done_callback(functools.partial(_end, self._exchange, self._agents, self._num_inputs))

    def _next_requests(self, envs: Iterable[int]) -> list[EpisodeRequest]:
        """The next episode of each."""
        return [self._next_request(env) for env in envs]

    def _next_request(self, env: int) -> EpisodeRequest:
        request = self._request(env, self._episodes[env])
        if not isinstance(request, EpisodeRequest):
            refuse("request", "a callable that returns a doorstep.EpisodeRequest", request)
        check_single([request], "each environment plays one episode after the other")
        num_agents = self._engine.config.simulator.num_agents
        others = request.policy if isinstance(request.policy, tuple) else (request.policy,) * num_agents
        policies = [self._exchange if agent in self._agents else others[agent] for agent in range(num_agents)]
        return replace(request, policy=tuple(policies), record=("observations",), tag=env)


def _check_agents(agents: Sequence[int] | None, num_agents: int) -> list[int]:
    chosen = list(range(num_agents) if agents is None else agents)
    for agent in chosen:
        check_integer("agents", agent, 0, num_agents - 1)
    if not chosen or chosen != sorted(set(chosen)):
        refuse("agents", "different agents, ascending", agents)
    return chosen


def _request_of_seed(num_envs: int, env: int, episode: int) -> EpisodeRequest:
    return EpisodeRequest(seed=(env + episode * num_envs) % (MAX_SEED + 1))


def _end(exchange: Exchange, agents: list[int], num_inputs: int, future: Future[EpisodeResult]) -> None:
    """The last row of an episode."""
    try:
        result = future.result()
    except CancelledError:
        return
    env = result.request.tag
    if result.rewards is None or result.last_observations is None:  # no step was made
        nothing = np.zeros((len(agents), num_inputs), np.float32), np.zeros(len(agents), np.float32)
        exchange.end(Row(env, 0, *nothing, result))
    else:
        last = result.last_observations[agents], result.rewards[-1][agents]
        exchange.end(Row(env, result.length, *last, result))
