"""The pool of actors: what it does when they die, raise or cannot be reached. Needs no Ray, but a stand-in for it."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from tests.refuses import raising

import doorstep
from doorstep import ClosedError, EpisodeRequest, RolloutConfig, SimulatorConfig
from doorstep.ray import ActorsLostError, RayConfig
from doorstep.ray.pool import MOST_CALLS, Pool
from doorstep.ray.requests import Requests
from doorstep.rollouts.result import make_unplayed

# ---- A stand-in for Ray: actors in this thread, which live, die and raise as a test says


class RayError(Exception):
    """Of Ray: an actor is lost."""


class RayTaskError(RayError):
    """Of Ray: an actor has raised."""

    def __init__(self, cause):
        super().__init__("raised in an actor")
        self.cause = cause


def played(requests):
    """What an actor answers that does its work."""
    return [make_unplayed(-1, EpisodeRequest(), 0, "time", 2, "") for _ in requests]


class Actor:
    """An actor, and Ray's handle of it.

    Attributes:
        number: counts the actors from 0.
        is_dead: what it is asked is never answered, but by a RayError.
        version: of doorstep on its machine.
    """

    def __init__(self, ray, number):
        self.ray, self.number = ray, number
        self.is_ready, self.is_dead, self.outstanding, self.version = False, False, 0, doorstep.__version__
        self.ready = SimpleNamespace(remote=self._ready)
        self.play = SimpleNamespace(remote=self._play)

    def _ready(self):
        self.ray.check_runs()
        self.is_ready = False

        def become_ready():
            self.is_ready = True
            return self.version

        return self.ray.promise(self, become_ready)

    def _play(self, requests, continuations):
        self.ray.check_runs()
        assert len(continuations) == len(requests)
        assert self.is_ready, "it has not said that it is ready"
        assert self.outstanding < MOST_CALLS
        answer = self.ray.behave(self, requests)
        self.outstanding += 1

        def answer_once():
            self.outstanding -= 1
            return answer(requests)

        return self.ray.promise(self, answer_once)


class Call(Future):
    """A call of an actor, which answers when it is looked at and is the first one."""

    def __init__(self, ray, actor, answer):
        super().__init__()
        self._ray, self.actor, self._answer = ray, actor, answer

    def done(self):
        if not super().done() and self is self._ray.calls[0] and not self._ray.is_over:
            self._ray.calls.remove(self)
            try:
                if self.actor.is_dead:
                    raise RayError("the actor is dead\nand much more")
                self.set_result(self._answer())
            except Exception as error:
                self.set_exception(error)
        return super().done()


class StandIn:
    """The functions of Ray that a pool calls.

    Args:
        behave: called when an actor is sent requests. May raise, let the actor die, and returns what will answer.

    Attributes:
        is_over: after ray.shutdown(): no call is answered any more, and Ray's functions would begin a new cluster.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, behave):
        self.behave, self.on_kill, self.is_over = behave, lambda: None, False
        self.actors, self.calls = [], []  # calls: in the order in which they are answered

    def get_runtime_context(self):
        self.check_runs()

        def worker_id():
            if self.is_over:
                raise RuntimeError("Ray has not been initialized")
            return "a worker"

        return SimpleNamespace(get_worker_id=worker_id)

    def check_runs(self):
        assert not self.is_over, "Ray would begin a new cluster"

    def remote(self, cls):
        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=self._start))

    def _start(self, config):
        self.check_runs()
        self.actors.append(Actor(self, len(self.actors)))
        return self.actors[-1]

    def promise(self, actor, answer):
        call = Call(self, actor, answer)
        self.calls.append(call)
        return SimpleNamespace(future=lambda: call)

    def kill(self, actor):
        self.check_runs()
        actor.is_dead = True
        self.calls = [call for call in self.calls if call.actor is not actor]
        self.on_kill()


# ---- Pools

CONFIG = RolloutConfig(SimulatorConfig(2))


def some(count):
    return [EpisodeRequest(tag=tag) for tag in range(count)]


class Run:
    """A pool that has run until all requests were answered.

    Args:
        count: of requests, two of which are sent together.
        behave: as in `StandIn`.
        before: called before the actors are served.
    """

    def __init__(self, count, behave, before=lambda run: None, **settings):
        self.ray = StandIn(behave)
        self.requests = Requests(CONFIG, raises=False)
        self.ids = self.requests.submit(some(count), None)
        self.pool = Pool(self.ray, CONFIG, RayConfig(**{"chunk": 2, **settings}), self.requests)
        before(self)
        self.ray.on_kill = self.check_that_all_are_answered_at_the_end
        answer = self.requests.answer

        def answer_and_end(chunk, answers):
            answer(chunk, answers)
            self.pool.ending = self.requests.drain(0.0)

        self.requests.answer = answer_and_end
        self.pool.run()
        results = self.requests.take_results(1 << 20, 0.0)
        assert sorted(result.id for result in results) == self.ids
        assert self.ray.is_over or all(actor.is_dead for actor in self.ray.actors)
        self.results = {result.request.tag: result for result in results}

    def check_that_all_are_answered_at_the_end(self):
        if self.requests._end is not None:
            assert not self.requests._submissions.unanswered

    @property
    def failed(self):
        """Errors of the requests that failed."""
        return {tag: result.error for tag, result in self.results.items() if result.reason == "failed"}

    def end(self):
        with pytest.raises(ClosedError) as caught:
            self.requests.take_results(1, 0.0)
        return caught.value


def live(actor, requests):
    return played


def dying(when):
    """Actors that die where this is true."""

    def behave(actor, requests):
        actor.is_dead |= when(actor, requests)
        return played

    return behave


def unsendable(error):
    """Requests 8 and 9 cannot be sent."""

    def behave(actor, requests):
        if requests[0].tag == 8:
            raise error
        return played

    return behave


def become_ready(run):
    for _ in run.ray.actors:
        run.pool._receive()


def test_requests_go_to_the_actors_that_have_the_fewest():
    had = []

    def note(actor, requests):
        had.append(actor.number)
        return played

    run = Run(60, note, before=become_ready, num_actors=3)
    assert sorted(had[:3]) == sorted(had[3:6]) == [0, 1, 2]
    assert (run.failed, len(had), len(run.ray.actors)) == ({}, 30, 3)
    assert min(map(had.count, range(3))) >= 5
    assert str(run.end()).startswith("this engine was closed")


def test_an_actor_that_dies_is_replaced_and_its_requests_are_played_again():
    run = Run(40, dying(lambda actor, requests: actor.number < 2), num_actors=2)
    assert (run.failed, len(run.ray.actors)) == ({}, 4)


def test_dead_idle_actors_cost_requests_no_attempts():
    """As when a machine with all but one of the actors is lost before any requests come."""

    def all_become_ready_and_die(run):
        become_ready(run)
        for actor in run.ray.actors:
            actor.is_dead = True

    run = Run(2, live, before=all_become_ready_and_die, num_actors=8)
    assert (run.failed, len(run.ray.actors)) == ({}, 16)


def test_requests_that_kill_every_actor_fail():
    run = Run(20, dying(lambda actor, requests: any(request.tag == 7 for request in requests)), num_actors=2)
    text = "3 actors were lost while they played it, the last by RayError: the actor is dead"
    assert (run.failed, len(run.ray.actors)) == ({6: text, 7: text}, 2 + 3)


def test_losses_without_results_end_the_engine():
    run = Run(100, dying(lambda actor, requests: True), num_actors=2, max_losses=5)
    assert len(run.failed) == 100
    error = run.end()
    assert str(error).startswith("10 actors were lost one after the other, the last by RayError: the actor is dead (")
    assert (type(error), type(error.__cause__)) == (ActorsLostError, RayError)


def test_losses_with_results_in_between_do_not_end_it():
    seen = set()

    def die_once_of_each(actor, requests):
        actor.is_dead |= requests[0].tag not in seen
        seen.add(requests[0].tag)
        return played

    run = Run(40, die_once_of_each, max_losses=2)
    assert run.failed == {}
    assert len(run.ray.actors) > 10


def test_what_fails_alone():
    """What an actor raises for its requests, those that cannot be sent, and an actor whose engine has ended."""
    error = MemoryError("too many observations")
    run = Run(20, lambda actor, requests: raising(RayTaskError, error) if requests[0].tag == 4 else played)
    assert run.failed == dict.fromkeys((4, 5), "MemoryError: too many observations")
    assert len(run.ray.actors) == 1
    run = Run(20, unsendable(TypeError("cannot pickle")))
    assert run.failed == dict.fromkeys((8, 9), "TypeError: cannot pickle")
    closed = raising(RayTaskError, ClosedError("the replicas of this actor have ended"))
    run = Run(20, lambda actor, requests: played if actor.number else closed)
    assert (run.failed, len(run.ray.actors)) == ({}, 2)


def test_a_failure_of_ray_answers_everything():
    run = Run(20, unsendable(RayError("no connection")), num_actors=2)
    assert set(range(8, 20)) <= run.failed.keys()
    assert set(run.failed.values()) == {"the actors cannot be served any more: RayError: no connection"}
    assert isinstance(run.end(), ActorsLostError)


def test_the_end_of_ray_answers_everything():
    """Calls of actors that are still awaited then have no end."""
    for tag in (0, 8):

        def end_ray(actor, requests, tag=tag):
            actor.ray.is_over = requests[0].tag == tag
            return played

        run = Run(20, end_ray, num_actors=2)
        text = "ray.shutdown() was called before this engine was closed"
        assert set(range(tag, 20)) <= run.failed.keys()
        assert (set(run.failed.values()), str(run.end())) == ({text}, f"{text} (make a new engine)")


def test_a_cluster_without_room_is_not_waited_for():
    def start_none(run):
        run.ray.calls.insert(0, SimpleNamespace(actor=None))  # which is not answered, and no other before it

    run = Run(5, live, before=start_none, start_timeout=0.05)
    assert set(run.failed.values()) == {"no actor was ready for 0.05 seconds"}
    assert "add machines" in run.end().hint


def test_other_versions_are_refused():
    def update_one(run):
        run.ray.actors[1].version = "99.0"

    run = Run(20, live, before=update_one, num_actors=3)
    text = f"a machine of the cluster has doorstep 99.0, this one {doorstep.__version__}"
    assert set(run.failed.values()) == {text}
    assert str(run.end()) == f"{text} (install the same version on all of them)"


def test_answers_that_make_no_sense_end_the_engine():
    run = Run(20, lambda actor, requests: lambda requests: played(requests)[1:])
    assert len(run.failed) == 20
    assert "the actors cannot be served any more: ValueError" in str(run.end())


def test_actors_get_the_threads_that_ray_sets_aside():
    for num_threads, cpus, expected in ((None, 0.5, 1), (None, 3, 3), (7, 1, 7)):
        config = CONFIG.replace(simulator=SimulatorConfig(2, num_threads=num_threads))
        pool = Pool(StandIn(live), config, RayConfig(cpus_per_actor=cpus), Requests(config, raises=False))
        assert RolloutConfig.from_json(pool._config).simulator.num_threads == expected
