"""Every request is answered once, whatever stops it and however it is read; failed episodes raise there."""

import asyncio
import functools
import itertools
import threading
import traceback
import weakref
from types import SimpleNamespace

import pytest
from tests.pkg.rollouts.playing import Gate, acting, divides, end_replica, is_soon, play_all

import doorstep
from doorstep import ClosedError, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, StateError

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


def a_cause(reasons=(), config=(), third=(), act=lambda engine, ids: None):
    """What may stop requests: fields of all configs and of every third request, and a call while the first plays."""
    return SimpleNamespace(reasons={*reasons}, config=dict(config), third=dict(third), act=act)


SMALL = {"output_capacity": 2, "queue_capacity": 4}
CAUSES = {
    "nothing": a_cause(),
    "failed episodes": a_cause({"failed"}, third={"policy": divides}),
    "full queues": a_cause(config=SMALL),
    "full queues and failures": a_cause({"failed"}, SMALL, {"policy": divides}),
    "cancel": a_cause({"cancelled"}, act=lambda engine, ids: [engine.cancel(one) for one in ids[::2]]),
    "deadline": a_cause({"expired"}, third={"deadline": 1e-6}),
    "close": a_cause({"failed"}, act=lambda engine, ids: engine.close()),
    "a lost replica": a_cause(
        config={"devices": ("cpu", "cpu"), "controller": "round_robin"}, act=lambda engine, ids: end_replica(engine, 0)
    ),
}


def fact(result):
    return result.request.tag, result.reason, result.length, result.state_hash


def raised(error):
    """The result of an episode that failed; one that was left when the engine was closed is none."""
    assert error.result.error == "ZeroDivisionError: by the policy"
    return error.result


TAKERS = {
    "iteration": iter,
    "iteration that breaks": lambda engine: itertools.islice(engine, 2),
    "outputs": lambda engine: engine.get_outputs(),
    "outputs without waiting": lambda engine: engine.get_outputs(block=False),
    "some outputs": lambda engine: engine.get_outputs(timeout=0.01, most=3),
}


def answers_by(taker, engine, submitter):
    """The facts of all results, in the order in which they were read, also of those that were raised."""
    found = []
    while submitter.is_alive() or engine.outstanding:
        try:
            found.extend(map(fact, TAKERS[taker](engine)))  # those before a failure, too
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
                found = list(map(fact, engine.run(requests)))
            elif way == "futures":
                ended = [(future, future.exception(PATIENCE)) for future in engine.future(requests)]
                found = [fact(raised(failure) if failure else future.result()) for future, failure in ended]
            else:
                submitter = threading.Thread(target=submit)
                submitter.start()
                found = answers_by(way, engine, submitter)
                submitter.join(PATIENCE)
            assert engine.outstanding == 0
        tags = [tag for tag, *_ in found]
        assert sorted(tags) == list(range(COUNT)), way
        if name != "a lost replica" and (way in ("run", "futures") or cause.reasons <= {"failed"} != name == "close"):
            assert tags == list(range(COUNT)), way
        reasons = [reason for _, reason, *_ in found]
        assert cause.reasons <= set(reasons) <= {"time"} | cause.reasons, way
        for tag, reason, length, state_hash in found:
            if reason == "time":
                assert (length, state_hash) == (9 - tag % 8, expected[tag]), way
        total = engine.metrics.total
        assert total("requests_submitted").value == total("requests_answered").value == COUNT
        for reason in set(reasons):
            assert total("requests_answered", reason=reason).value == reasons.count(reason), way


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
    play_all(engine)
    return ids


@pytest.fixture
def engine():
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as made:
        yield made


def test_a_policy_that_raises_raises_where_results_are_read(engine):
    reads = {
        "outputs": lambda: engine.get_outputs(),
        "iteration": lambda: next(iter(engine)),
        "future": lambda: engine.future(BAD).result(PATIENCE),
        "play": lambda: asyncio.run(engine.play(BAD)),
        "run": lambda: engine.run([GOOD, BAD]),
    }
    for name, read in reads.items():
        ids = submit(engine, BAD) if name in ("outputs", "iteration") else []
        with pytest.raises(StateError, match="with seed 5, failed: ZeroDivisionError: by the policy") as caught:
            read()
        result = caught.value.result
        assert (result.request, result.reason) == (BAD, "failed")
        assert ids in ([], [result.id])
        told = "".join(traceback.format_exception(caught.value))
        assert 'raise ZeroDivisionError("by the policy")' in told  # the line of the policy
        assert "on_error" in caught.value.hint
        assert (engine.outstanding, len(engine.get_outputs())) == (0, 0)


@pytest.mark.parametrize("most", [1, 3, 4096])
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
            assert engine.outstanding == len(ids) - len(read)
        assert (read, raised) == (ids, [ids[2], ids[3], ids[5]])


def test_errors_that_cannot_be_read_raise_too(engine):
    submit(engine, EpisodeRequest(policy=unreadable), GOOD)
    with pytest.raises(StateError, match="failed: UnreadableError, whose message cannot be read"):
        engine.get_outputs()
    assert [result.finished for result in engine] == [True]


def test_failures_are_results_where_they_were_asked_for():
    with RolloutEngine(SimulatorConfig(1), on_error="return") as engine:
        submit(engine, GOOD, BAD)
        assert engine.get_outputs().reason.tolist() == ["time", "failed"]
        results = [engine.future(BAD).result(PATIENCE), *engine.run([BAD]), asyncio.run(engine.play(BAD))]
    assert {result.error for result in results} == {"ZeroDivisionError: by the policy"}
    with pytest.raises(doorstep.ArgumentError, match="on_error is 'ignore'; it must be one of 'raise', 'return'"):
        RolloutEngine(SimulatorConfig(1), on_error="ignore")


def test_a_run_with_a_failure_cancels_the_others():
    gate = Gate()
    with RolloutEngine(num_worlds=1) as engine:
        with pytest.raises(StateError, match="ZeroDivisionError"):
            engine.run([EpisodeRequest(policy=divides), EpisodeRequest(policy=gate, n=20)])
        gate.open.set()
        play_all(engine)
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
