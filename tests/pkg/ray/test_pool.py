"""The pool of actors: what it does when they die, raise or cannot be reached. Needs no Ray, but a stand-in for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.pkg.ray.stand_in import Actor, RayError, RayTaskError, StandIn, played

import doorstep
from doorstep import ClosedError, EpisodeRequest, RolloutConfig, SimulatorConfig
from doorstep.ray import ActorsLostError, RayConfig
from doorstep.ray.pool import Pool
from doorstep.ray.requests import Chunk, Requests

CONFIG = RolloutConfig(SimulatorConfig(2))


def some(count: int) -> list[EpisodeRequest]:
    return [EpisodeRequest(tag=tag) for tag in range(count)]


class Run:
    """A pool that has run until all requests were answered.

    Args:
        count: of requests, two of which are sent together.
        behave: as in `StandIn`.
        before: called before the actors are served.
    """

    def __init__(
        self,
        count: int,
        behave: Callable[[Actor, list[EpisodeRequest]], Any],
        before: Callable[[Run], None] = lambda run: None,
        **settings: Any,
    ) -> None:
        self.ray = StandIn(behave)
        self.requests = Requests(CONFIG, raises=False)
        self.ids = self.requests.submit(some(count), None)
        self.pool = Pool(self.ray, CONFIG, RayConfig(**{"chunk": 2, **settings}), self.requests)
        before(self)
        self.ray.on_kill = self.check_that_all_are_answered_at_the_end
        answer = self.requests.answer

        def answer_and_end(chunk: Chunk, answers: Sequence[doorstep.EpisodeResult | str]) -> None:
            answer(chunk, answers)
            self.pool.ending = self.requests.drain(0.0)

        self.requests.answer = answer_and_end  # type: ignore[method-assign]
        self.pool.run()
        results = self.requests.take_results(1 << 20, 0.0)
        assert sorted(result.id for result in results) == self.ids
        assert self.ray.is_over or all(actor.is_dead for actor in self.ray.actors)
        self.results = {result.request.tag: result for result in results}

    def check_that_all_are_answered_at_the_end(self) -> None:
        if self.requests._end is not None:
            assert not self.requests._submissions.unanswered

    @property
    def failed(self) -> dict[int, str]:
        """Errors of the requests that failed."""
        return {tag: result.error for tag, result in self.results.items() if result.reason == "failed"}

    def end(self) -> ClosedError:
        with pytest.raises(ClosedError) as caught:
            self.requests.take_results(1, 0.0)
        return caught.value


def live(actor: Actor, requests: list[EpisodeRequest]) -> Any:
    return played


def test_actors_share_the_requests() -> None:
    had: dict[int, int] = {}

    def count(actor: Actor, requests: list[EpisodeRequest]) -> Any:
        had[actor.number] = had.get(actor.number, 0) + len(requests)
        return played

    run = Run(60, count, num_actors=3)
    assert run.failed == {}
    assert sum(had.values()) == 60
    assert min(had.values()) >= 10
    assert len(run.ray.actors) == 3
    assert str(run.end()).startswith("this engine was closed")


def test_an_actor_that_dies_is_replaced_and_its_requests_are_played_again() -> None:
    def die_at_first(actor: Actor, requests: list[EpisodeRequest]) -> Any:
        actor.is_dead = actor.number < 2
        return played

    run = Run(40, die_at_first, num_actors=2)
    assert run.failed == {}
    assert len(run.ray.actors) == 4


def test_dead_idle_actors_cost_requests_no_attempts() -> None:
    """As when a machine with all but one of the actors is lost before any requests come."""

    def all_become_ready_and_die(run: Run) -> None:
        for _ in run.ray.actors:
            run.pool._receive()
        for actor in run.ray.actors:
            actor.is_dead = True

    run = Run(2, live, before=all_become_ready_and_die, num_actors=8)
    assert run.failed == {}
    assert len(run.ray.actors) == 16


def test_requests_that_kill_every_actor_fail() -> None:
    def die_of(tag: int) -> Any:
        def behave(actor: Actor, requests: list[EpisodeRequest]) -> Any:
            actor.is_dead = any(request.tag == tag for request in requests)
            return played

        return behave

    run = Run(20, die_of(7), num_actors=2)
    text = "3 actors were lost while they played it, the last by RayError: the actor is dead"
    assert run.failed == {6: text, 7: text}
    assert len(run.ray.actors) == 2 + 3


def test_losses_without_results_end_the_engine() -> None:
    def die(actor: Actor, requests: list[EpisodeRequest]) -> Any:
        actor.is_dead = True
        return played

    run = Run(100, die, num_actors=2, max_losses=5)
    assert len(run.failed) == 100
    error = run.end()
    assert isinstance(error, ActorsLostError)
    assert str(error).startswith("10 actors were lost one after the other, the last by RayError: the actor is dead (")
    assert isinstance(error.__cause__, RayError)


def test_losses_with_results_in_between_do_not_end_it() -> None:
    seen: set[int] = set()

    def die_once_of_each(actor: Actor, requests: list[EpisodeRequest]) -> Any:
        actor.is_dead |= requests[0].tag not in seen
        seen.add(requests[0].tag)
        return played

    run = Run(40, die_once_of_each, max_losses=2)
    assert run.failed == {}
    assert len(run.ray.actors) > 10


def test_what_an_actor_raises_fails_its_requests_alone() -> None:
    def raises(requests: list[EpisodeRequest]) -> Any:
        raise RayTaskError(MemoryError("too many observations"))

    run = Run(20, lambda actor, requests: raises if requests[0].tag == 4 else played)
    assert run.failed == dict.fromkeys((4, 5), "MemoryError: too many observations")
    assert len(run.ray.actors) == 1


def test_an_actor_whose_engine_has_ended_is_lost() -> None:
    def closed(requests: list[EpisodeRequest]) -> Any:
        raise RayTaskError(ClosedError("the replicas of this actor have ended"))

    run = Run(20, lambda actor, requests: played if actor.number else closed)
    assert run.failed == {}
    assert len(run.ray.actors) == 2


def test_requests_that_cannot_be_sent_fail_alone() -> None:
    def send(actor: Actor, requests: list[EpisodeRequest]) -> Any:
        if requests[0].tag == 8:
            raise TypeError("cannot pickle")
        return played

    run = Run(20, send)
    assert run.failed == dict.fromkeys((8, 9), "TypeError: cannot pickle")


def test_a_failure_of_ray_answers_everything() -> None:
    def send(actor: Actor, requests: list[EpisodeRequest]) -> Any:
        if requests[0].tag == 8:
            raise RayError("no connection")
        return played

    run = Run(20, send, num_actors=2)
    assert set(range(8, 20)) <= run.failed.keys()
    assert set(run.failed.values()) == {"the actors cannot be served any more: RayError: no connection"}
    assert isinstance(run.end(), ActorsLostError)


@pytest.mark.parametrize("tag", [0, 8])
def test_the_end_of_ray_answers_everything(tag: int) -> None:
    """Calls of actors that are still awaited then have no end."""

    def end_ray(actor: Actor, requests: list[EpisodeRequest]) -> Any:
        actor.ray.is_over = requests[0].tag == tag
        return played

    run = Run(20, end_ray, num_actors=2)
    text = "ray.shutdown() was called before this engine was closed"
    assert set(range(tag, 20)) <= run.failed.keys()
    assert set(run.failed.values()) == {text}
    assert str(run.end()) == f"{text} (make a new engine)"


def test_other_versions_are_refused() -> None:
    def update_one(run: Run) -> None:
        run.ray.actors[1].version = "99.0"

    run = Run(20, live, before=update_one, num_actors=3)
    text = f"a machine of the cluster has doorstep 99.0, this one {doorstep.__version__}"
    assert set(run.failed.values()) == {text}
    assert str(run.end()) == f"{text} (install the same version on all of them)"


def test_answers_that_make_no_sense_end_the_engine() -> None:
    run = Run(20, lambda actor, requests: lambda requests: played(requests)[1:])
    assert len(run.failed) == 20
    assert "the actors cannot be served any more: ValueError" in str(run.end())


def test_actors_get_the_threads_that_ray_sets_aside() -> None:
    for cpus, num_threads in [(0.5, 1), (3, 3)]:
        pool = Pool(StandIn(live), CONFIG, RayConfig(cpus_per_actor=cpus), Requests(CONFIG, raises=False))
        assert RolloutConfig.from_json(pool._config).simulator.num_threads == num_threads
    config = CONFIG.replace(simulator=doorstep.SimulatorConfig(2, num_threads=7))
    pool = Pool(StandIn(live), config, RayConfig(), Requests(config, raises=False))
    assert RolloutConfig.from_json(pool._config) == config
