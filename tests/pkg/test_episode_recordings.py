"""`EpisodeResult.record()`: an episode of an engine becomes a recording that replays to the same world."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep.cli import main
from doorstep.errors import ArgumentError, ReplayError
from doorstep.levels import GeneratedLevel, curated

CONFIG = doorstep.SimulatorConfig(8, num_threads=1, max_levels=1, episode_length=120)
GENERATED = GeneratedLevel(room_types=("any", "any", "any"), episode_length=(30, 90))


def play(config: doorstep.SimulatorConfig = CONFIG, **fields: Any) -> doorstep.EpisodeResult:
    with doorstep.RolloutEngine(config) as engine:
        engine.submit_batch(range(6), policy="random", max_steps=10)  # other worlds play beside it
        engine.submit(doorstep.EpisodeRequest(**{"record": ("actions",), "tag": 1, **fields}))
        return next(result for result in engine if result.request.tag == 1)


@pytest.mark.parametrize(
    ("fields", "same_version_only"),
    [
        ({"seed": 4, "config": doorstep.SimulatorConfig(3, num_threads=1)}, False),
        ({"seed": 4, "max_steps": 7, "config": doorstep.SimulatorConfig(3, num_agents=3)}, False),
        ({"seed": 5}, False),
        ({"seed": 6, "max_steps": 33}, False),
        ({"seed": 7, "level": curated()["slalom"]}, True),
        ({"seed": 8, "level": GENERATED}, True),
        ({"seed": 9, "level": GENERATED, "max_steps": 20}, True),
        ({"seed": 10, "record": ("observations",)}, False),
    ],
)
def test_an_episode_replays(
    fields: dict[str, Any], same_version_only: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = fields.get("config", CONFIG)
    result = play(**fields)
    path = tmp_path / "episode.rec"
    with result.record(path, config) as recording:
        assert recording.config.num_worlds == 1
        assert recording.config.seed == result.request.seed
        assert recording.num_steps == result.length
        assert recording.same_version_only == same_version_only
        assert result.actions is not None
        for step in range(result.length):
            assert np.array_equal(recording.actions(step)[0], result.actions[step])
        with doorstep.Simulator.from_config(recording.config) as sim:
            recording.replay(sim)
            assert int(sim.world_hashes()[0]) == result.state_hash
    assert main(["replay", str(path)]) == 0
    assert f"{result.length} steps of 1 world replayed" in capsys.readouterr().out


def test_an_episode_of_other_rules_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    result = play(seed=1, level=curated()["slalom"])
    changed = type(result)(**{**vars(result), "state_hash": result.state_hash ^ 1})
    with pytest.raises(ReplayError, match="the episode of seed 1 comes out differently") as caught:
        changed.record(tmp_path / "episode.rec", CONFIG)
    assert caught.value.worlds == (0,)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("record", "config", "says"),
    [
        ((), CONFIG, "record is EpisodeRequest(seed=2"),
        (("actions",), 3, "config is 3; it must be a doorstep.RolloutConfig or SimulatorConfig"),
    ],
    ids=["no actions", "config"],
)
def test_arguments_of_other_kinds_are_named(record: Any, config: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as caught:
        play(seed=2, record=record).record(tmp_path / "episode.rec", config)
    assert str(caught.value).startswith(says)
    assert not list(tmp_path.iterdir())
