"""`write_minari()`: a dataset has the steps of the episodes, an episode for each agent."""

from dataclasses import replace

import numpy as np
import pytest
from tests.pkg.rollouts.playing import GOAL_AT_START, divides, play_all
from tests.refuses import assert_refused

import doorstep
from doorstep.rollouts import write_minari

minari = pytest.importorskip("minari")

PARTS = ("self_observations", "lidar")
REQUESTS = [
    doorstep.EpisodeRequest(seed=3, max_steps=20, tag=2**63, record="observations"),
    doorstep.EpisodeRequest(seed=4, level=GOAL_AT_START, record="observations"),
]


@pytest.fixture(autouse=True)
def _datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


@pytest.fixture
def results():
    with doorstep.RolloutEngine(doorstep.SimulatorConfig(4, num_threads=1, max_levels=1)) as engine:
        yield [engine.future(request).result() for request in REQUESTS]


def components_of(actions):
    """int [T, 4] of any form."""
    if isinstance(actions, tuple):
        return np.stack(actions, -1)
    return np.stack(np.unravel_index(actions, doorstep.ACTIONS), -1) if actions.ndim == 1 else actions


@pytest.mark.parametrize("form", ["multi_discrete", "discrete", "tuple"])
def test_a_dataset_has_the_steps_of_every_agent(form, results):
    assert [result.reason for result in results] == ["time", "goal"]
    write_minari("doorstep/inner/two-v0", results, actions=form, author="a test")
    dataset = minari.load_dataset("doorstep/inner/two-v0")
    assert minari.namespace.list_local_namespaces() == ["doorstep", "doorstep/inner"]
    assert dataset.storage.metadata["author"] == {"a test"}
    assert dataset.env_spec is None
    assert (dataset.total_episodes, dataset.total_steps) == (4, 2 * sum(result.length for result in results))
    found = list(dataset.iterate_episodes())
    about = list(dataset.storage.get_episode_metadata(range(4)))
    of_agents = [(result, agent) for result in results for agent in range(2)]
    for (result, agent), episode, attributes in zip(of_agents, found, about, strict=True):
        observed = np.concatenate([result.observations[:, agent], result.last_observations[None, agent]])
        np.testing.assert_array_equal(episode.observations, observed, strict=True)
        np.testing.assert_array_equal(components_of(episode.actions), result.actions[:, agent])
        np.testing.assert_array_equal(episode.rewards, result.rewards[:, agent], strict=True)
        ends = episode.terminations, episode.truncations
        is_end, other = ends if result.reason == "goal" else ends[::-1]
        assert np.flatnonzero(is_end).tolist() == [result.length - 1]
        assert not other.any()
        assert attributes["seed"] == result.request.seed
        assert attributes["options"] == {"agent": agent, "tag": result.request.tag}
        first = tuple(each[0] for each in episode.actions) if form == "tuple" else episode.actions[0]
        assert dataset.action_space.contains(first)
    assert dataset.observation_space.contains(found[0].observations[0])


@pytest.mark.parametrize("form", ["multi_discrete", "discrete"])
def test_one_agents_dataset_makes_the_environment_in_which_it_played(form):
    rules = {"num_agents": 1, "num_threads": 1, "episode_length": 30, "observations": PARTS}
    with doorstep.RolloutEngine(doorstep.SimulatorConfig(1, **rules)) as engine:
        asked = {"record": "observations", "policy": lambda rows: np.full((len(rows), 4), (99, 3, -5, 1))}  # clamped
        engine.submit([doorstep.EpisodeRequest(seed=steps, max_steps=steps, **asked) for steps in (12, 9)])
        dataset = write_minari("one-v0", engine, actions=form)
    assert (components_of(dataset[0].actions) == (3, 3, 0, 1)).all()
    assert (dataset.env_spec.kwargs["episode_length"], dataset.total_episodes, dataset.total_steps) == (12, 2, 21)
    env = dataset.recover_environment()
    assert env.observation_space.shape == dataset.observation_space.shape
    assert env.action_space.contains(dataset[0].actions[0])
    about = dataset.storage.get_episode_metadata(range(2))
    for attributes, episode in zip(about, dataset.iterate_episodes(), strict=True):
        steps = [env.reset(seed=attributes["seed"])[0]]
        for action, reward, truncated in zip(episode.actions, episode.rewards, episode.truncations, strict=True):
            step = env.step(action)
            assert (step[1], step[3]) == (reward, truncated and len(episode.actions) == 12)
            steps.append(step[0])
        np.testing.assert_array_equal(steps, episode.observations)
    env.close()


def test_what_was_not_played_to_its_end_does_not_cost_the_rest():
    request = doorstep.EpisodeRequest(seed=1, max_steps=5, record="observations")
    with doorstep.RolloutEngine(doorstep.SimulatorConfig(2, num_threads=1)) as engine:
        others = [replace(request, policy=divides), replace(request, record=()), replace(request, seed=2)]
        engine.submit([request, *others])
        play_all(engine)
        told = r"left out: (?=.*1 without observations).*1 failed ZeroDivisionError: by the policy"
        with pytest.warns(UserWarning, match=told) as caught:
            dataset = write_minari("rest-v0", engine)
    assert caught[0].filename == __file__
    assert [each["seed"] for each in dataset.storage.get_episode_metadata(range(4))] == [1, 1, 2, 2]


def test_bad_arguments_take_no_result_and_write_nothing(results, tmp_path):
    write_minari("taken-v0", results[:1])
    narrow = replace(results[0], observations=np.zeros((20, 2, 5), np.float32))
    wrong = [{"results": one} for one in ([], [3], [replace(results[0], reason="failed")], [results[0], narrow])]
    with doorstep.RolloutEngine(doorstep.SimulatorConfig(2, num_threads=1)) as engine:
        engine.submit([doorstep.EpisodeRequest(seed=1, max_steps=5, record="observations")])
        rows = [
            *((one, "results is") for one in wrong),
            ({"dataset_id": "taken-v0"}, "already exists"),
            ({"dataset_id": "no-version"}, "dataset_id is 'no-version'"),
            ({"dataset_id": "../out-v0"}, "dataset_id is"),
            ({"actions": "one"}, "actions is 'one'"),
            ({"authors": "me"}, "about is 'authors'"),
            ({"author": 3}, "author is 3"),
        ]
        assert_refused(lambda **given: write_minari(**{"dataset_id": "new-v0", "results": engine, **given}), rows)
        assert len(list(engine)) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["taken-v0"]
    assert minari.load_dataset("taken-v0").total_episodes == 2


FULL_DISK = """
import errno, os, resource, signal
import doorstep, minari
from doorstep.rollouts import write_minari
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with doorstep.RolloutEngine(doorstep.SimulatorConfig(2, num_threads=1)) as engine:
    requests = [doorstep.EpisodeRequest(seed=seed, max_steps=50, record="observations") for seed in range(2)]
    results = [future.result() for future in engine.future(requests)]
older = write_minari("older-v0", results)
whole = os.path.getsize(os.path.join(older.spec.data_path, "main_data.hdf5"))
for size in (1, 2000, whole - 1):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        write_minari("new-v0", results)
        print("written")
    except OSError as error:
        assert error.errno == errno.EFBIG, error
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert os.listdir(minari.storage.get_dataset_path()) == ["older-v0"], size
assert minari.load_dataset("older-v0").total_episodes == 4
"""


def test_a_full_disk_leaves_nothing_of_a_dataset(run_python, tmp_path):
    assert run_python(FULL_DISK, MINARI_DATASETS_PATH=str(tmp_path)) == ""
