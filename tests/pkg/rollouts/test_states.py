"""Episodes that go on from saved states: those of simulators that are restored from the same bytes."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pkg.rollouts.playing import Gate, walk

import doorstep
from doorstep import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine, Simulator, SimulatorConfig, levels
from doorstep.policy import SamplingParams

LEVEL = levels.curated()["two rooms"]


def played(steps: int = 12, **rules: Any) -> Simulator:
    """A simulator in the midst of its episodes, which are different ones."""
    sim = Simulator(4, **{"seed": 3, "num_threads": 1, **rules})
    policy = doorstep.load_policy("random", sampling=SamplingParams(seed=1))
    for _ in range(steps):
        sim.actions = policy(np.zeros((sim.num_worlds * sim.num_agents, 1), np.float32)).reshape(sim.actions.shape)
        sim.step()
    return sim


def go_on(result: EpisodeResult, **rules: Any) -> Simulator:
    """A simulator that is restored from the state of the result's request, and makes its actions."""
    sim = Simulator(1, **{"num_threads": 1, **rules})
    assert result.request.state is not None
    assert result.actions is not None
    sim.restore(result.request.state)
    for step, actions in enumerate(result.actions):
        if result.observations is not None:
            assert (sim.observations.to_numpy()[0] == result.observations[step]).all()
        sim.actions = actions[None]
        sim.step()
        if result.rewards is not None:
            assert (sim.rewards.to_numpy().reshape(-1) == result.rewards[step]).all()
    return sim


@pytest.mark.parametrize(
    ("rules", "engine_rules"),
    [
        ({}, {}),
        ({"num_agents": 1}, {"num_agents": 1}),
        ({"num_agents": 5, "auto_reset": False}, {"num_agents": 5}),
        ({"levels": [LEVEL, "reference"]}, {"max_levels": 1}),
        ({"episode_length": 40}, {"episode_length": 40}),
    ],
)
def test_a_continuation_is_a_restored_simulator_with_the_same_actions(
    rules: dict[str, Any], engine_rules: dict[str, Any]
) -> None:
    sim = played(**rules)
    requests = [
        EpisodeRequest(state=sim.save([world]), policy=policy, seed=world, max_steps=20, record="observations", n=2)
        for world, policy in itertools.product(range(4), ("random", walk))
    ]
    with RolloutEngine(num_worlds=3, **engine_rules) as engine:
        results = engine.run(requests)
    assert [result.request.policy for result in results] == ["random", "random", walk, walk] * 4
    rules = {name: value for name, value in rules.items() if name != "levels"}
    for result in results:
        with go_on(result, **rules, **({"max_levels": 2} if "max_levels" in engine_rules else {})) as other:
            assert (result.reason, result.length) == ("time", 20)
            assert other.world_hashes()[0] == result.state_hash
            assert (other.state.agent_max_y.to_numpy()[0] == result.max_y).all()
            assert (other.observations.to_numpy()[0] == result.last_observations).all()


def test_a_continuation_lasts_as_long_as_the_rest_of_its_episode() -> None:
    with RolloutEngine(num_worlds=2) as engine:
        (rest, short) = engine.run([EpisodeRequest(state=played(150).save([0]), max_steps=most) for most in (None, 50)])
        assert (rest.length, rest.reason, short.length) == (50, "time", 50)
        assert rest.state_hash == short.state_hash


def test_branches_differ_where_actions_are_drawn_and_are_equal_where_they_are_not() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(94, 8), torch.nn.Tanh(), torch.nn.Linear(8, 19))
    state = played().save([1])
    drawn, greedy = SamplingParams(temperature=1), SamplingParams(temperature=0)
    with RolloutEngine(num_worlds=7) as engine:
        for policy, sampling, ends in (
            ("random", None, 30),
            (net, drawn, 30),
            (net, greedy, 1),
            ("idle", None, 1),
            (walk, None, 1),
        ):
            request = EpisodeRequest(state=state, policy=policy, sampling=sampling, max_steps=25, n=30)
            results = engine.run([request])
            assert [result.continuation for result in results] == list(range(30))
            assert all(result.request is request for result in results)
            assert len({result.state_hash for result in results}) == ends


def test_the_first_continuations_of_many_are_those_of_few() -> None:
    state = played().save([2])
    with RolloutEngine(num_worlds=5) as engine:
        few, many = (engine.run([EpisodeRequest(state=state, max_steps=9, n=n)]) for n in (3, 11))
        assert [result.state_hash for result in few] == [result.state_hash for result in many[:3]]
        (one,) = engine.run([EpisodeRequest(state=state, max_steps=9)])
        assert one.state_hash == few[0].state_hash


def test_groups_of_episodes_begin_with_the_same_level() -> None:
    with RolloutEngine(num_worlds=4) as engine:
        results = engine.run([EpisodeRequest(seed=seed, max_steps=5, n=3, record="observations") for seed in (1, 2)])
        assert [(result.request.seed, result.continuation) for result in results] == [
            (seed, number) for seed in (1, 2) for number in range(3)
        ]
        first = [np.asarray(result.observations)[0] for result in results]
        assert all((first[0] == other).all() for other in first[:3])
        assert (first[0] != first[3]).any()
        assert len({result.state_hash for result in results}) == 6


def test_each_episode_of_a_group_has_an_id_and_a_record() -> None:
    state = played().save([0])
    with RolloutEngine(num_worlds=4) as engine:
        requests = [EpisodeRequest(state=state, max_steps=5, n=n, tag=n) for n in (1, 4, 2)]
        ids = engine.submit(requests)
        assert len(set(ids)) == len(ids) == 7
        records = np.concatenate([engine.get_records() for _ in iter(lambda: engine.outstanding, 0)])
        order = np.argsort(records["id"])[np.argsort(np.argsort(ids))]
        assert records["tag"][order].tolist() == [1, 4, 4, 4, 4, 2, 2]
        assert records["continuation"][order].tolist() == [0, 0, 1, 2, 3, 0, 1]
        batch = engine.submit_batch([5, 6], state=state, max_steps=5, n=3)
        found = {result.id: (result.request.seed, result.continuation) for result in engine}
        assert [found[one] for one in batch.tolist()] == [(seed, number) for seed in (5, 6) for number in range(3)]


def test_steps_of_continuations_are_streamed() -> None:
    with RolloutEngine(num_worlds=2) as engine:
        engine.submit([EpisodeRequest(state=played().save([0]), max_steps=3, record="stream", n=2)])
        outputs = []
        while some := engine.get_outputs():
            outputs += some
        steps = [(one.continuation, one.step) for one in outputs if not isinstance(one, EpisodeResult)]
        assert sorted(steps) == [(number, step) for number in (0, 1) for step in (1, 2, 3)]


@pytest.mark.parametrize(
    ("save", "rules", "names"),
    [
        (lambda: played(num_agents=3).save([0]), {}, "num_agents is 3 in the saved state and 2 here"),
        (lambda: played(episode_length=50).save([0]), {}, "episode_length is 50 in the saved state and 200 here"),
        (lambda: played(levels=[LEVEL]).save([0]), {}, "max_levels is positive in the saved state and 0 here"),
        (lambda: played().save([0]), {"max_levels": 1}, "max_levels is 0 in the saved state and positive here"),
        (lambda: played().save(), {}, "the save holds 4 worlds; a state is that of one"),
        (lambda: played().save([0])[:-1], {}, "damaged"),
        (lambda: b"DOORSAVE", {}, "too few"),
        (lambda: played(200, auto_reset=False).save([0]), {}, "the episode of the saved world is over"),
    ],
)
def test_states_of_other_worlds_are_refused_and_nothing_is_submitted(save: Any, rules: Any, names: str) -> None:
    with RolloutEngine(num_worlds=2, **rules) as engine:
        with pytest.raises(doorstep.StateError, match=names):
            engine.submit([EpisodeRequest(max_steps=2), EpisodeRequest(state=save(), n=5)])
        assert engine.outstanding == 0
        assert len(engine.run([EpisodeRequest(max_steps=2)])) == 1


@pytest.mark.parametrize(
    ("fields", "argument"),
    [({"state": "x"}, "state"), ({"state": b"", "level": LEVEL}, "level"), ({"n": 0}, "n"), ({"n": 2**24 + 1}, "n")],
)
def test_requests_check_states_and_numbers_of_episodes(fields: dict[str, Any], argument: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        EpisodeRequest(**fields)
    assert caught.value.argument == argument


def test_calls_with_one_result_refuse_several_episodes() -> None:
    with RolloutEngine(num_worlds=2) as engine:
        for call in (engine.submit, engine.future):
            with pytest.raises(doorstep.ArgumentError, match="n is 2; it must be 1 here"):
                call(EpisodeRequest(n=2))
        with pytest.raises(doorstep.ArgumentError, match="at most 16777216 episodes"):
            engine.submit([EpisodeRequest(n=2**24), EpisodeRequest()])
        assert engine.outstanding == 0


def test_a_state_may_be_any_bytes_and_pickles_with_results() -> None:
    saved = played().save([0])
    of_another_type: Any = bytearray(saved)
    request = EpisodeRequest(state=of_another_type, max_steps=1)
    assert request == EpisodeRequest(state=saved, max_steps=1)
    assert "state" not in repr(request)
    with RolloutEngine(num_worlds=1) as engine:
        (result,) = engine.run([request])
    assert pickle.loads(pickle.dumps(result)).request.state == saved


def test_engines_with_levels_go_on_with_that_of_the_state() -> None:
    state = played(levels=[LEVEL]).save([0])
    with RolloutEngine(num_worlds=2, levels="curated") as engine:
        (result,) = engine.run([EpisodeRequest(state=state, max_steps=8, record="observations")])
    assert result.request.level is None
    with go_on(result, max_levels=1) as sim:
        assert sim.world_hashes()[0] == result.state_hash
    with pytest.raises(doorstep.StateError, match="level of a saved state"):
        _ = result.passed_rooms


def test_edits_that_no_step_has_seen_are_a_part_of_the_state() -> None:
    sim = played()
    sim.state.body_positions[0, 0, 1] += 2.0
    with RolloutEngine(num_worlds=2) as engine:
        (result,) = engine.run([EpisodeRequest(state=sim.save([0]), max_steps=8, record="observations")])
    with go_on(result) as other:
        assert other.world_hashes()[0] == result.state_hash


def test_cancelled_and_expired_continuations_have_results() -> None:
    state = played().save([0])
    with RolloutEngine(num_worlds=1) as engine:
        gate = Gate()
        ids = engine.submit([EpisodeRequest(state=state, policy=gate, n=400)])
        for one in ids[100:]:
            engine.cancel(one)
        gate.open.set()
        expired = engine.submit([EpisodeRequest(state=state, deadline=1e-6, n=5)])
        results = {result.id: result for result in engine}
    assert len(results) == 405
    assert all(results[one].finished for one in ids[:100])
    assert {results[one].reason for one in ids[100:]} == {"cancelled"}
    assert {results[one].reason for one in expired} == {"expired"}
    assert sorted(results[one].continuation for one in expired) == list(range(5))


def test_closing_ends_continuations_and_frees_their_states() -> None:
    gc.collect()
    before = doorstep.live_counts()["rollout"]
    state = played().save([0])
    engine = RolloutEngine(num_worlds=2, on_error="return")
    engine.submit([EpisodeRequest(state=state, policy="idle", n=5000)])
    engine.close()
    assert len(list(engine)) == 5000
    del engine
    gc.collect()
    assert doorstep.live_counts()["rollout"] == before


def test_a_state_is_freed_with_the_last_of_its_episodes() -> None:
    with RolloutEngine(num_worlds=2) as engine:
        engine.run([EpisodeRequest(max_steps=1)])
        before = doorstep.live_counts()["rollout"]
        engine.run([EpisodeRequest(state=played().save([world]), max_steps=2, n=50) for world in range(4)])
        engine.drain()
        assert doorstep.live_counts()["rollout"] == before


def test_a_fork_while_continuations_are_played_disturbs_neither_side(run_python: Callable[..., str]) -> None:
    code = """
import doorstep, os
from doorstep import EpisodeRequest, RolloutEngine
state = doorstep.Simulator(1).save()
engine = RolloutEngine(num_worlds=2)
engine.submit([EpisodeRequest(state=state, max_steps=50, n=100)])
child = os.fork()
if child == 0:
    with RolloutEngine(num_worlds=2) as own:
        os._exit(len(own.run([EpisodeRequest(state=state, max_steps=5, n=3)])))
print(len(list(engine)), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(code) == "100 3\n"


def test_replicas_share_continuations_and_give_the_same_results() -> None:
    requests = [EpisodeRequest(state=played().save([0]), max_steps=15, n=40, record="actions")]
    config = RolloutConfig(SimulatorConfig(3, num_threads=1), devices=("cpu", "cpu"))
    controller = doorstep.rollouts.RoundRobinController(depth=2)
    with RolloutEngine(num_worlds=1) as one, RolloutEngine(config.replace(controller=controller)) as two:
        expected, results = one.run(requests), two.run(requests)
    assert {result.replica for result in results} == {0, 1}
    for result, other in zip(results, expected, strict=True):
        assert (result.state_hash, result.continuation) == (other.state_hash, other.continuation)
        assert np.array_equal(np.asarray(result.actions), np.asarray(other.actions))


def test_a_continuation_can_be_recorded(tmp_path: Path) -> None:
    request = EpisodeRequest(state=played().save([3]), max_steps=10, record="actions")
    with RolloutEngine(num_worlds=2) as engine:
        (result,) = engine.run([request])
        recording = result.record(os.path.join(tmp_path, "a.rec"), engine.config)
    assert recording.num_steps == 10
    assert dataclasses.replace(request, n=2).n == 2
