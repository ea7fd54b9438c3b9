"""Episodes that go on from saved states: those of simulators that are restored from the same bytes."""

import dataclasses
import gc
import itertools
import os
import pickle

import numpy as np
import pytest
from tests.pkg.rollouts.playing import Gate, all_outputs, in_order, info_of, walk

import doorstep
from doorstep import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine, Simulator, SimulatorConfig, levels
from doorstep.policy import SamplingParams
from doorstep.rollouts import EpisodeColumns

LEVEL = levels.curated()["two rooms"]


def played(steps=12, **rules):
    """A simulator in the midst of its episodes, which are different ones."""
    sim = Simulator(4, **{"seed": 3, "num_threads": 1, **rules})
    policy = doorstep.load_policy("random", sampling=SamplingParams(seed=1))
    for _ in range(steps):
        sim.actions = policy(np.zeros((sim.num_worlds * sim.num_agents, 1), np.float32)).reshape(sim.actions.shape)
        sim.step()
    return sim


def assert_goes_on(result, **rules):
    """As a simulator that is restored from the state of the result's request, and makes its actions."""
    with Simulator(1, **{"num_threads": 1, **rules}) as sim:
        sim.restore(result.request.state)
        for step, actions in enumerate(result.actions):
            assert (sim.observations.to_numpy()[0] == result.observations[step]).all()
            sim.actions = actions[None]
            sim.step()
            assert (sim.rewards.to_numpy().reshape(-1) == result.rewards[step]).all()
        assert sim.world_hashes()[0] == result.state_hash
        assert (sim.state.agent_max_y.to_numpy()[0] == result.max_y).all()
        assert (sim.observations.to_numpy()[0] == result.last_observations).all()


def test_a_continuation_is_a_restored_simulator_with_the_same_actions():
    """Edits that no step has seen are a part of the state; its level is not that of the engine."""
    for rules, of_state, of_engine, of_restored in (
        ({}, {}, {}, {}),
        ({"num_agents": 1}, {}, {}, {}),
        ({"num_agents": 5}, {"auto_reset": False}, {}, {"auto_reset": False}),
        ({"episode_length": 40}, {}, {}, {}),
        ({}, {"levels": [LEVEL, "reference"]}, {"levels": "curated"}, {"max_levels": 2}),
    ):
        sim = played(**rules, **of_state)
        sim.state.body_positions[2:, 0, 1] += 2.0
        fields = {"max_steps": 20, "record": "observations", "n": 2}
        pairs = list(itertools.product(range(4), ("random", walk)))
        requests = [EpisodeRequest(state=sim.save([one]), policy=policy, seed=one, **fields) for one, policy in pairs]
        with RolloutEngine(num_worlds=3, **rules, **of_engine) as engine:
            results = engine.run(requests)
        assert [result.request.policy for result in results] == ["random", "random", walk, walk] * 4
        for result in results:
            assert (result.reason, result.length, result.request.level) == ("time", 20, None)
            assert_goes_on(result, **rules, **of_restored)
    with pytest.raises(doorstep.StateError, match="level of a saved state"):
        _ = result.passed_rooms


def test_a_continuation_lasts_as_long_as_the_rest_of_its_episode():
    with RolloutEngine(num_worlds=2) as engine:
        (rest, short) = engine.run([EpisodeRequest(state=played(150).save([0]), max_steps=most) for most in (None, 50)])
        assert (rest.length, rest.reason, short.length) == (50, "time", 50)
        assert rest.state_hash == short.state_hash
        sim, before = Simulator(2, num_threads=1), np.zeros((2, 2), np.float32)
        for turn in range(9):
            sim.actions = np.full((2, 2, 4), (3, turn % 8, 2, 0), np.int32)
            sim.step()
            before += sim.rewards.to_numpy().reshape(2, 2)
        (result,) = engine.run([EpisodeRequest(state=sim.save([1]), max_steps=9, record="observations")])
        np.testing.assert_allclose(result.returns, before[1] + result.rewards.sum(0), atol=1e-5)


def test_branches_differ_where_actions_are_drawn_and_are_equal_where_they_are_not():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(94, 8), torch.nn.Tanh(), torch.nn.Linear(8, 19))
    state = played().save([1])
    drawn, greedy = SamplingParams(temperature=1), SamplingParams(temperature=0)
    with RolloutEngine(num_worlds=7) as engine:
        for policy, sampling, ends in (("random", None, 30), (net, drawn, 30), (net, greedy, 1), (walk, None, 1)):
            request = EpisodeRequest(state=state, policy=policy, sampling=sampling, max_steps=25, n=30)
            results = engine.run([request])
            assert [result.continuation for result in results] == list(range(30))
            assert all(result.request is request for result in results)
            assert len({result.state_hash for result in results}) == ends
        few, one = (engine.run([EpisodeRequest(state=state, max_steps=25, n=n)]) for n in (3, 1))
        many = engine.run([EpisodeRequest(state=state, max_steps=25, n=30)])
        assert [result.state_hash for result in [*few, *one]] == [result.state_hash for result in [*many[:3], many[0]]]


def test_groups_of_episodes_begin_with_the_same_level():
    with RolloutEngine(num_worlds=4) as engine:
        results = engine.run([EpisodeRequest(seed=seed, max_steps=5, n=3, record="observations") for seed in (1, 2)])
        told = [(result.request.seed, result.continuation) for result in results]
        assert told == list(itertools.product((1, 2), range(3)))
        first = [result.observations[0] for result in results]
        assert all((first[0] == other).all() for other in first[:3])
        assert (first[0] != first[3]).any()
        assert len({result.state_hash for result in results}) == 6


def test_episodes_of_a_group_have_its_id_and_their_numbers():
    state = played().save([0])
    with RolloutEngine(num_worlds=4) as engine:
        ids = engine.submit([EpisodeRequest(state=state, max_steps=5, n=n, tag=n) for n in (1, 4, 2)])
        assert len(set(ids)) == len(ids) == 3
        assert (engine.outstanding, info_of(engine).submitted) == (7, 3)
        found = [(result.id, result.request.tag, result.continuation) for result in in_order(engine, ids)]
        asked = zip(ids, (1, 4, 2), strict=True)
        assert found == [(one, n, part) for one, n in asked for part in range(n)]
        columns = engine.submit(EpisodeColumns([5, 6], state=state, max_steps=5, n=3))
        found = [(result.request.seed, result.continuation) for result in in_order(engine, columns.tolist())]
        assert found == list(itertools.product((5, 6), range(3)))
        engine.submit([EpisodeRequest(state=state, max_steps=3, record="stream", n=2)])
        outputs = [one for one in all_outputs(engine) if not isinstance(one, EpisodeResult)]
        assert sorted((one.continuation, one.step) for one in outputs) == list(itertools.product((0, 1), (1, 2, 3)))


def test_states_of_other_worlds_are_refused_and_nothing_is_submitted():
    for save, rules, names in (
        (lambda: played(num_agents=3).save([0]), {}, "num_agents is 3 in the saved state and 2 here"),
        (lambda: played(episode_length=50).save([0]), {}, "episode_length is 50 in the saved state and 200 here"),
        (lambda: played(levels=[LEVEL]).save([0]), {}, "max_levels is positive in the saved state and 0 here"),
        (lambda: played().save([0]), {"max_levels": 1}, "max_levels is 0 in the saved state and positive here"),
        (lambda: played().save(), {}, "the save holds 4 worlds; a state is that of one"),
        (lambda: played().save([0])[:-1], {}, "damaged"),
        (lambda: b"DOORSAVE", {}, "too few"),
        (lambda: played(200, auto_reset=False).save([0]), {}, "the episode of the saved world is over"),
    ):
        with RolloutEngine(num_worlds=2, **rules) as engine:
            with pytest.raises(doorstep.StateError, match=names):
                engine.submit([EpisodeRequest(max_steps=2), EpisodeRequest(state=save(), n=5)])
            assert engine.outstanding == 0
            assert len(engine.run([EpisodeRequest(max_steps=2)])) == 1


def test_a_state_may_be_any_bytes_and_pickles_with_results(tmp_path):
    saved = played().save([0])
    request = EpisodeRequest(state=bytearray(saved), max_steps=10, record="actions")
    assert request == EpisodeRequest(state=saved, max_steps=10, record="actions")
    assert "state" not in repr(request)
    with RolloutEngine(num_worlds=1) as engine:
        (result,) = engine.run([request])
        assert result.record(os.path.join(tmp_path, "a.rec"), engine.config).num_steps == 10
    assert (pickle.loads(pickle.dumps(result)).request.state, dataclasses.replace(request, n=2).n) == (saved, 2)


def test_cancelled_expired_and_closed_continuations_have_results_and_free_their_states():
    gc.collect()
    state, config = played().save([0]), RolloutConfig(SimulatorConfig(1, num_threads=1))
    with RolloutEngine(config, on_error="return") as engine:
        engine.run([EpisodeRequest(max_steps=1)])
        before = doorstep.live_counts()["rollout"]
        engine.run([EpisodeRequest(state=played().save([world]), max_steps=2, n=50) for world in range(4)])
        gate = Gate()
        ids = [engine.submit(EpisodeRequest(state=state, policy=gate, max_steps=9, n=n)) for n in (50, 150)]
        assert gate.entered.wait(30)
        assert engine.cancel(ids[1])
        gate.open.set()
        results = in_order(engine, ids + engine.submit([EpisodeRequest(state=state, deadline=1e-6, n=5)]))
        assert [result.reason for result in results] == ["time"] * 50 + ["cancelled"] * 150 + ["expired"] * 5
        assert [result.continuation for result in results] == [*range(50), *range(150), *range(5)]
        assert engine.run(EpisodeRequest(max_steps=1))[0].finished
        assert doorstep.live_counts()["rollout"] == before
        engine.submit([EpisodeRequest(state=state, policy="idle", n=5000)])
        engine.close()
        assert len(list(engine)) == 5000
    del engine
    gc.collect()
    assert doorstep.live_counts()["rollout"] == 0
