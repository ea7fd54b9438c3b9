"""Threads that use an engine, rightly and wrongly, until it is closed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from tests.pkg.rollouts.playing import end_replica
from tests.soak_rollouts.ledger import Ledger
from tests.soak_rollouts.players import broken_policies, sound_policies

from doorstep import ArgumentError, ClosedError, EpisodeRequest, EpisodeResult, RolloutEngine, StateError
from doorstep.levels import curated
from doorstep.policy import SamplingParams
from doorstep.rollouts import EpisodeColumns

SEEDS, MOST_STEPS = 48, 40
RECORDS: list[Any] = [(), (), (), (), ("actions",), ("observations",), ("stream", "actions"), ("stream",)]


class Users:
    """The users of one engine."""

    def __init__(self, engine: RolloutEngine, ledger: Ledger, seed: int, *, levels: bool) -> None:
        self.engine, self.ledger = engine, ledger
        self.stopping = threading.Event()  # no further requests
        self._is_over, self._leaves_the_rest = threading.Event(), False
        self._levels = list(curated().values())[:3] if levels else []
        self._sound, self._broken = sound_policies(), broken_policies()
        self._recent: list[int] = []  # ids, some of which are cancelled
        draw = random.Random(seed)
        users = (self._submit_lists, self._submit_columns, self._submit_one_by_one, self._cancel)
        self._submitters = self._threads(draw, (*users, self._run, self._make_futures, self._run_tasks))
        self._takers = self._threads(draw, (self._take, self._iterate, self._take_columns)[: draw.randrange(1, 4)])

    def _threads(self, draw: random.Random, behaviours: Any) -> list[threading.Thread]:
        return [
            threading.Thread(target=self._act, args=(behaviour, random.Random(draw.random())), name=behaviour.__name__)
            for behaviour in behaviours
        ]

    def start(self) -> None:
        for thread in self._takers + self._submitters:  # submissions wait for those that take
            thread.start()

    def join(self, *, all_is_read: bool = True) -> None:
        """Once they are to stop."""
        for thread in self._submitters:
            thread.join()
        self._is_over.set()
        self._leaves_the_rest = not all_is_read
        for thread in self._takers:
            thread.join()

    def _act(self, behaviour: Callable[[random.Random], None], draw: random.Random) -> None:
        try:
            behaviour(draw)
        except ClosedError:
            pass
        except BaseException as error:
            self.ledger.trouble.append(f"{behaviour.__name__} raised {type(error).__name__}: {error}")

    # ---- Requests

    def _request(self, draw: random.Random) -> EpisodeRequest:
        return EpisodeRequest(
            seed=draw.randrange(SEEDS),
            level=draw.choice(self._levels) if self._levels and draw.random() < 0.3 else None,
            policy=draw.choice(self._broken if draw.random() < 0.05 else self._sound),
            sampling=SamplingParams(seed=7),
            max_steps=draw.choice((1, 2, 5, 11, MOST_STEPS)),
            priority=draw.randrange(4),
            deadline=draw.choice((1e-6, 0.002, 0.05)) if draw.random() < 0.1 else None,
            record=draw.choice(RECORDS),
        )

    def _submit_lists(self, draw: random.Random) -> None:
        while not self.stopping.is_set():
            requests, timeout = [self._request(draw) for _ in range(draw.randrange(40))], draw.choice((None, 0.0, 0.01))
            self._submit(functools.partial(self.engine.submit, requests, timeout=timeout))

    def _submit_columns(self, draw: random.Random) -> None:
        while not self.stopping.is_set():
            seeds = [draw.randrange(SEEDS) for _ in range(draw.randrange(300))]
            columns = EpisodeColumns(
                seeds,
                max_steps=[draw.choice((1, 2, 5, 11, MOST_STEPS)) for _ in seeds],
                policy=[draw.choice(self._sound[:3]) for _ in seeds],
                sampling=SamplingParams(seed=7),
            )
            self._submit(functools.partial(self.engine.submit, columns))

    def _submit_one_by_one(self, draw: random.Random) -> None:
        while not self.stopping.is_set():
            self._submit(functools.partial(self.engine.submit, [self._request(draw)]))
            time.sleep(draw.random() * 0.004)

    def _submit(self, call: Callable[[], Any]) -> None:
        try:
            ids = [int(one) for one in call()]
        except (TimeoutError, ClosedError) as error:
            self.ledger.accept(int(one) for one in error.ids)  # type: ignore[union-attr]
            if isinstance(error, ClosedError):
                raise
            return
        self.ledger.accept(ids)
        self._recent = ids[:20] or self._recent

    def _cancel(self, draw: random.Random) -> None:
        while not self.stopping.is_set():
            for request_id in self._recent[: draw.randrange(8)]:
                self.ledger.cancel(request_id)
                self.engine.cancel(request_id)
            with contextlib.suppress(ArgumentError):  # the id of another engine
                self.engine.cancel(draw.randrange(2**63))
            time.sleep(0.003)

    # ---- Results

    def _take(self, draw: random.Random) -> None:
        for _ in self._until_all_is_read():
            most, timeout = draw.choice((1, 50, 4096)), draw.choice((None, 0.01))
            self._answer(lambda: self.engine.get_outputs(timeout=timeout, most=most))  # noqa: B023

    def _iterate(self, draw: random.Random) -> None:
        for _ in self._until_all_is_read():
            self._answer(lambda: itertools.islice(self.engine, draw.choice((1, 9, None))))

    def _take_columns(self, draw: random.Random) -> None:
        for _ in self._until_all_is_read():
            try:
                self.ledger.answer_columns(self.engine.get_outputs(timeout=0.01, most=draw.choice((1, 50, 500))))
            except StateError as error:  # noqa: PERF203
                self.ledger.answer(error.result)  # type: ignore[attr-defined]

    def _answer(self, take: Callable[[], Iterable[Any]]) -> None:
        try:
            for output in take():
                if isinstance(output, EpisodeResult):
                    self.ledger.answer(output)
        except StateError as error:
            self.ledger.answer(error.result)  # type: ignore[attr-defined]

    def _until_all_is_read(self) -> Iterator[None]:
        while not self._is_over.is_set() or (self.engine.outstanding and not self._leaves_the_rest):
            yield
            time.sleep(0.001)

    def _run(self, draw: random.Random) -> None:
        while not self.stopping.is_set():
            drawn = [self._request(draw) for _ in range(5)]
            requests = [replace(one, n=1 + draw.randrange(3), policy="idle", record=()) for one in drawn]
            asked = sum(one.n for one in requests)
            try:
                self.ledger.run(self.engine.run(requests).reason.tolist(), asked)
            except ClosedError:
                self.ledger.run(["unknown"] * asked, asked)
                raise

    # ---- Futures and tasks

    def _make_futures(self, draw: random.Random) -> None:
        while not self.stopping.is_set():
            request = self._request(draw)
            if "stream" in request.record:
                continue
            future = self.engine.future(request)
            self.ledger.make_future(future)
            if draw.random() < 0.2:
                future.cancel()
            elif draw.random() < 0.1:
                future.exception(60)
            time.sleep(draw.random() * 0.002)

    def _run_tasks(self, draw: random.Random) -> None:
        asyncio.run(self._tasks(draw))

    async def _tasks(self, draw: random.Random) -> None:
        while not self.stopping.is_set():
            tasks = [asyncio.create_task(self._task(draw)) for _ in range(draw.randrange(20))]
            await asyncio.sleep(draw.random() * 0.02)
            for task in tasks:
                if draw.random() < 0.3:
                    task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            for error in done:
                if isinstance(error, ClosedError):
                    raise error
                if isinstance(error, Exception):
                    self.ledger.trouble.append(f"a task raised {error!r}")

    async def _task(self, draw: random.Random) -> None:
        request = EpisodeRequest(seed=draw.randrange(SEEDS), policy=draw.choice(self._sound), max_steps=5)
        self.ledger.await_one()
        reason = "refused"
        try:
            reason = (await self.engine.play(request)).reason
        except asyncio.CancelledError:
            reason = "cancelled"
            raise
        except StateError as error:
            reason = error.result.reason  # type: ignore[attr-defined]
        finally:
            self.ledger.awaited(reason)


# ---- Faults that are no requests


def kill_replica(engine: RolloutEngine, number: int) -> None:
    """Ends a replica in the middle of whatever it does."""
    with contextlib.suppress(ClosedError):
        end_replica(engine, number)


def fork_and_look(engine: RolloutEngine) -> str | None:
    """A child of the process, in which no lock of the engine may block; it ends at once."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            engine.submit(EpisodeRequest())
        except ClosedError:
            engine.close()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    return None if status == 0 else f"a forked child ended with status {status}"
