"""`write_minari()`: a dataset has the steps of the episodes, an episode for each agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import doorstep
from doorstep.levels import Goal, Level, Spawn
from doorstep.rollouts import EpisodeResult, write_minari

minari = pytest.importorskip("minari")

GOAL_AT_START = Level(spawns=[Spawn(0, 3), Spawn(2, 3)], goal=Goal(-15, 15, 0, 30, "any"))
REQUESTS = [
    doorstep.EpisodeRequest(seed=3, max_steps=20, tag=2**63, record="observations"),
    doorstep.EpisodeRequest(seed=4, level=GOAL_AT_START, record="observations"),
]


@pytest.fixture(autouse=True)
def _datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


@pytest.fixture
def results() -> Iterator[list[EpisodeResult]]:
    with doorstep.RolloutEngine(doorstep.SimulatorConfig(4, num_threads=1, max_levels=1)) as engine:
        yield [engine.future(request).result() for request in REQUESTS]


def test_a_dataset_has_the_steps_of_every_agent(results: list[EpisodeResult]) -> None:
    assert [result.reason for result in results] == ["time", "goal"]
    write_minari("doorstep/two-v0", results, author="a test")
    dataset = minari.load_dataset("doorstep/two-v0")
    assert dataset.storage.metadata["author"] == {"a test"}
    assert (dataset.total_episodes, dataset.total_steps) == (4, 2 * sum(result.length for result in results))
    found = list(dataset.iterate_episodes())
    about = list(dataset.storage.get_episode_metadata(range(4)))
    for result, agent, episode, attributes in zip(
        np.repeat(np.array(results, object), 2), (0, 1, 0, 1), found, about, strict=True
    ):
        observed = np.concatenate([result.observations[:, agent], result.last_observations[None, agent]])
        np.testing.assert_array_equal(episode.observations, observed, strict=True)
        np.testing.assert_array_equal(episode.actions, result.actions[:, agent], strict=True)
        np.testing.assert_array_equal(episode.rewards, result.rewards[:, agent], strict=True)
        ends = episode.terminations if result.reason == "goal" else episode.truncations
        assert np.flatnonzero(episode.terminations | episode.truncations).tolist() == [result.length - 1]
        assert ends[-1]
        assert attributes["seed"] == result.request.seed
        assert attributes["options"] == {"agent": agent, "tag": result.request.tag}
    assert dataset.action_space.contains(found[0].actions[0])
    assert dataset.observation_space.contains(found[0].observations[0])


def test_what_cannot_be_written_is_refused_before_anything_is(results: list[EpisodeResult], tmp_path: Path) -> None:
    narrow = replace(results[0], observations=np.zeros((20, 2, 5), np.float32))
    for wrong in (
        [], [3], [*results, replace(results[0], reason="failed")], [replace(results[0], observations=None)],
        [results[0], narrow],
    ):  # fmt: skip
        with pytest.raises(doorstep.ArgumentError, match="results is"):
            write_minari("doorstep/none-v0", wrong)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_dataset_is_not_replaced(results: list[EpisodeResult]) -> None:
    write_minari("doorstep/once-v0", results)
    with pytest.raises(ValueError, match="already exists"):
        write_minari("doorstep/once-v0", results[:1])
    assert minari.load_dataset("doorstep/once-v0").total_episodes == 4
