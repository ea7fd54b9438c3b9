"""Every request is answered once, in order, whatever stops it and however it is read; failed episodes raise there."""

import asyncio
import functools
import threading
import traceback
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from tests.pkg.rollouts.playing import Gate, acting, divides, is_soon

import doorstep
from doorstep import ClosedError, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, StateError
from doorstep.rollouts import PriorityScheduler, RoundRobinController
from doorstep.rollouts.result import REASONS

COUNT, PATIENCE = 40, 30


class Trigger:
    """An idle policy that does something when it acts for the third time."""

    def __init__(self, act):
        self.act, self.calls = act, 0

    def __call__(self, observations):
        self.calls += 1
        if self.calls == 3:
            self.act()
        return acting(0, 0, 2, 0)(observations)


def a_cause(reasons=(), config=(), third=(), act=lambda engine, ids: None, is_ordered=False):
    """What may stop requests: fields of all configs and of every third request, and a call while the first is played.
    Where nothing is left unplayed, results come in the order of the requests."""
    return SimpleNamespace(reasons={*reasons}, config=dict(config), third=dict(third), act=act, is_ordered=is_ordered)


CAUSES = {
    "nothing": a_cause(is_ordered=True),
    "failed episodes": a_cause({"failed"}, third={"policy": divides}, is_ordered=True),
    "full queues": a_cause(config={"output_capacity": 1, "queue_capacity": 4}, is_ordered=True),
    "full queues and failures": a_cause({"failed"}, {"output_capacity": 2, "queue_capacity": 4}, {"policy": divides}),
    "cancel": a_cause({"cancelled"}, act=lambda engine, ids: [engine.cancel(one) for one in ids[::2]]),
    "deadline": a_cause({"expired"}, third={"deadline": 1e-6}),
    "preemption": a_cause(config={"scheduler": PriorityScheduler(preempts=True)}, third={"priority": 1}),
    "close": a_cause({"failed"}, act=lambda engine, ids: engine.close()),
    "a lost replica": a_cause(
        config={"devices": ("cpu", "cpu"), "controller": RoundRobinController(depth=9)},
        act=lambda engine, ids: engine._core.handle.end_replica(0),
    ),
}


def fact(result):
    return result.request.tag, result.reason, result.length, result.state_hash


def facts_of(taken):
    """Of outputs, or of records."""
    if isinstance(taken, np.ndarray):
        columns = [taken[name].tolist() for name in ("tag", "reason", "length", "state_hash")]
        return [(tag, REASONS[reason], *others) for tag, reason, *others in zip(*columns, strict=True)]
    return list(map(fact, taken))


def raised(error):
    """The result of an episode that failed; one that was left when the engine was closed is none."""
    assert error.result.error == "ZeroDivisionError: by the policy"
    return error.result


TAKERS = {
    "iteration": iter,
    "outputs": lambda engine: engine.get_outputs(),
    "outputs without waiting": lambda engine: engine.get_outputs(block=False),
    "outputs one by one": lambda engine: engine.get_outputs(most=1),
    "some outputs": lambda engine: engine.get_outputs(timeout=0.01, most=3),
    "two records": lambda engine: engine.get_records(most=2),
}


def answers_by(taker, engine, submitter):
    """The facts of all results, in the order in which they were read, also of those that were raised."""
    found = []
    while submitter.is_alive() or engine.outstanding:
        try:
            taken = TAKERS[taker](engine)
            found.extend(map(fact, taken) if taker == "iteration" else facts_of(taken))  # those before a failure, too
        except StateError as error:  # noqa: PERF203
            found.append(fact(raised(error)))
        except ClosedError:
            break
    return found


def request_of(tag, **fields):
    return EpisodeRequest(**{"tag": tag, "seed": tag, "max_steps": 9 - tag % 8, "policy": "idle", **fields})


@pytest.fixture(scope="module")
def expected():
    with RolloutEngine(SimulatorConfig(3, num_threads=1)) as engine:
        return [result.state_hash for result in engine.run(map(request_of, range(COUNT)))]


@pytest.mark.parametrize("name", CAUSES)
def test_every_request_is_answered_once(name, expected):
    cause = CAUSES[name]
    config = RolloutConfig(SimulatorConfig(1, num_threads=1), **cause.config)
    for way in ("run", "futures", *TAKERS):
        if way in ("run", "futures") and name == "cancel":
            continue  # they know no ids
        ids, is_submitted = [], threading.Event()

        def act(ids=ids, is_submitted=is_submitted):
            assert name != "cancel" or is_submitted.wait(PATIENCE)
            cause.act(engine, ids)

        requests = [request_of(tag, **(cause.third if tag % 3 == 1 else {})) for tag in range(COUNT)]
        requests[0] = EpisodeRequest(tag=0, max_steps=9, policy=Trigger(act))

        def submit(ids=ids, requests=requests, is_submitted=is_submitted):
            try:
                ids += engine.submit(requests)
            except ClosedError as error:
                ids += error.ids
            is_submitted.set()

        with RolloutEngine(config, on_error="return" if way == "run" else "raise") as engine:
            if way == "run":
                found = facts_of(engine.run(requests))
            elif way == "futures":
                ended = [(future, future.exception(PATIENCE)) for future in engine.future(requests)]
                found = [fact(raised(failure) if failure else future.result()) for future, failure in ended]
            else:
                submitter = threading.Thread(target=submit)
                submitter.start()
                found = answers_by(way, engine, submitter)
                submitter.join(PATIENCE)
            assert engine.drain(PATIENCE)
            assert engine.outstanding == engine.num_outputs == 0
        tags = [tag for tag, *_ in found]
        assert sorted(tags) == list(range(COUNT)), way
        if cause.is_ordered or way in ("run", "futures"):
            assert tags == list(range(COUNT)), way
        reasons = [reason for _, reason, *_ in found]
        assert cause.reasons <= set(reasons) <= {"time"} | cause.reasons, way
        for tag, reason, length, state_hash in found:
            if reason == "time":
                assert (length, state_hash) == (9 - tag % 8, expected[tag]), way
        total = engine.metrics.total
        assert total("requests_submitted").count == total("requests_answered").count == COUNT
        for reason in set(reasons):
            assert total("requests_answered", reason=reason).count == reasons.count(reason), way


# ---- Failures


class UnreadableError(Exception):
    def __str__(self):
        raise SystemExit


def unreadable(observations):
    raise UnreadableError


BAD = EpisodeRequest(seed=5, policy=divides, max_steps=3)
GOOD = EpisodeRequest(seed=6, max_steps=3)


def submit(engine, *requests):
    """Requests of an engine with one world, which plays them in their order, once all have ended."""
    ids = engine.submit(list(requests))
    assert engine.drain(PATIENCE)
    return ids


@pytest.fixture(params=[False, True], ids=["", "with futures"])
def engine(request):
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as made:
        if request.param:
            made.future(GOOD).result(PATIENCE)
        yield made


def test_a_policy_that_raises_raises_where_results_are_read(engine):
    for read in (RolloutEngine.get_outputs, RolloutEngine.get_records, lambda engine: next(iter(engine))):
        (request_id,) = submit(engine, BAD)
        with pytest.raises(StateError, match="with seed 5, failed: ZeroDivisionError: by the policy") as caught:
            read(engine)
        result = caught.value.result
        assert (result.id, result.request, result.reason) == (request_id, BAD, "failed")
        told = "".join(traceback.format_exception(caught.value))
        assert 'raise ZeroDivisionError("by the policy")' in told  # the line of the policy
        assert "on_error" in caught.value.hint
        assert engine.outstanding == 0
        assert engine.get_outputs() == []


@pytest.mark.parametrize("most", [1, 2, 3, 4096])
def test_results_before_and_behind_a_failure_are_returned_in_order(most, engine):
    for _ in range(2):
        ids = submit(engine, GOOD, GOOD, BAD, BAD, GOOD, BAD, GOOD, GOOD)
        read, raised = [], []
        while engine.outstanding:
            try:
                read += [output.id for output in engine.get_outputs(most=most)]
            except StateError as error:
                raised.append(error.result.id)
                read.append(raised[-1])
            assert engine.outstanding == engine.num_outputs == len(ids) - len(read)
        assert (read, raised) == (ids, [ids[2], ids[3], ids[5]])


def test_errors_that_cannot_be_read_raise_too():
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as engine:
        submit(engine, EpisodeRequest(policy=unreadable), GOOD)
        with pytest.raises(StateError, match="failed: UnreadableError, whose message cannot be read"):
            engine.get_outputs()
        assert [result.finished for result in engine] == [True]


def test_futures_and_tasks_raise(engine):
    good, bad = engine.future(GOOD), engine.future(BAD)
    with pytest.raises(StateError, match="by the policy") as caught:
        bad.result(PATIENCE)
    assert caught.value.result.request == BAD
    assert isinstance(bad.exception(), StateError)
    assert good.result(PATIENCE).finished
    for play in (lambda: asyncio.run(engine.play(BAD)), lambda: engine.run([GOOD, BAD])):
        with pytest.raises(StateError, match="by the policy"):
            play()


def test_failures_are_results_where_they_were_asked_for():
    with RolloutEngine(SimulatorConfig(1), on_error="return") as engine:
        submit(engine, GOOD, BAD)
        assert [result.reason for result in engine.get_outputs()] == ["time", "failed"]
        submit(engine, GOOD, BAD)
        assert engine.get_records()["length"].tolist() == [3, 0]
        results = [engine.future(BAD).result(PATIENCE), *engine.run([BAD]), asyncio.run(engine.play(BAD))]
    assert {result.error for result in results} == {"ZeroDivisionError: by the policy"}
    with pytest.raises(doorstep.ArgumentError, match="on_error is 'ignore'; it must be one of 'raise', 'return'"):
        RolloutEngine(SimulatorConfig(1), on_error="ignore")


def test_a_run_with_a_failure_raises_and_cancels_the_others():
    gate = Gate()
    with RolloutEngine(num_worlds=1) as engine:
        with pytest.raises(StateError, match="ZeroDivisionError"):
            engine.run([EpisodeRequest(policy=divides), *[EpisodeRequest(policy=gate)] * 20])
        gate.open.set()
        assert engine.drain(20)
        assert (engine.metrics.total("requests_answered", reason="cancelled").value, engine.outstanding) == (20, 0)


def test_a_failure_keeps_no_policy_alive():
    """Its exception would, by the frames of its traceback."""

    policy = functools.partial(divides)
    alive = weakref.ref(policy)
    with RolloutEngine(SimulatorConfig(1)) as engine:
        with pytest.raises(StateError):
            engine.run([EpisodeRequest(policy=policy)])
        del policy
        assert is_soon(lambda: alive() is None)
