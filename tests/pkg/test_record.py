"""`doorstep.record()` plays worlds and records them, `EpisodeResult.record()` an episode of an engine; a `Recording` is
drawn as a picture, a video or a page."""

import numpy as np
import pytest
from tests.pkg.recording_files import REWARD
from tests.refuses import assert_refused, raising, refuses

import doorstep
from doorstep.cli import main
from doorstep.errors import ReplayError
from doorstep.levels import GeneratedLevel, Goal, Level, Spawn, curated, save_levels
from doorstep.rollouts import EpisodeColumns

SHORT = Level(spawns=[Spawn(0, 3), Spawn(2, 3)], episode_length=4, name="short")
GOAL_AT_START = Level(spawns=[Spawn(0, 3), Spawn(2, 3)], goal=Goal(-15, 15, 0, 30, "any"))


def test_one_episode_of_each_world_is_recorded_unless_steps_are_given(tmp_path):
    save_levels(tmp_path / "short.json", [SHORT])
    rows = [  # what is recorded, its steps, the episode at the end, and whether that is over
        ({"num_worlds": 3, "episode_length": 9, "seed": 7, "num_agents": 3}, 9, 1, True),
        ({"levels": [SHORT], "num_worlds": 8, "policy": "idle"}, 4, 2, True),
        ({"levels": GOAL_AT_START, "num_worlds": 8, "policy": "idle"}, 1, 2, True),
        ({"levels": [SHORT, GOAL_AT_START], "num_worlds": 8, "policy": "idle"}, 4, None, None),
        ({"levels": tmp_path / "short.json", "steps": 10}, 10, 4, False),  # several episodes
        ({"steps": 5, "reward": REWARD}, 5, 1, False),
    ]
    for arguments, num_steps, episode, is_over in rows:
        with doorstep.record(tmp_path / "a.rec", **arguments) as recording:
            assert recording.num_steps == num_steps
            for name, default in (("num_worlds", 1), ("seed", 0), ("num_agents", 2), ("episode_length", 200)):
                assert getattr(recording.config, name) == arguments.get(name, default)
            assert recording.reward == arguments.get("reward")
            assert not recording.same_version_only
            with doorstep.Simulator.from_config(recording.config, reward=recording.reward) as sim:
                recording.replay(sim)
                assert episode is None or (sim.state.episode_index.to_numpy() == episode).all()
                assert is_over is None or (sim.dones.to_numpy() == is_over).all()


def test_a_seed_fixes_what_is_recorded(tmp_path):
    files = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        with doorstep.record(tmp_path / name, seed=seed, steps=5):
            files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1] != files[2]


def test_what_fails_leaves_the_older_file(tmp_path):
    path = tmp_path / "a.rec"
    doorstep.record(path, steps=2).close()
    older = path.read_bytes()
    refuses("mine", doorstep.record, path, policy=raising(ZeroDivisionError, "mine"), error=ZeroDivisionError)
    rows = [
        ({"steps": 0}, "steps is 0"), ({"policy": "scirpted"}, "scripted"),
        ({"levels": "curatde"}, "levels is 'curatde'"), ({"num_worlds": 0}, "num_worlds"),
    ]  # fmt: skip
    assert_refused(lambda **arguments: doorstep.record(path, **arguments), rows)
    assert [each.name for each in tmp_path.iterdir()] == ["a.rec"]
    assert path.read_bytes() == older


# ---- Pictures


@pytest.fixture
def recording(tmp_path):
    return doorstep.record(tmp_path / "a.rec", seed=3, num_worlds=2, steps=3)


def test_a_picture_shows_the_last_moment_and_a_page_or_video_all(recording, tmp_path):
    recording.render(tmp_path / "a.png", width=40, height=30)
    with doorstep.Simulator.from_config(recording.config) as sim:
        recording.replay(sim)
        doorstep.render.write_png(tmp_path / "b.png", sim.render(0, width=40, height=30))
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    recording.render(tmp_path / "c.png", camera="follow", width=40, height=30)
    assert (tmp_path / "c.png").read_bytes()[16:24] == np.array([40, 30], ">u4").tobytes()
    recording.render(tmp_path / "a.html", worlds=[1])
    assert '"moments": 4' in (tmp_path / "a.html").read_text()
    assert "&quot;moments&quot;: 4" in recording._repr_html_()
    av = pytest.importorskip("av")
    recording.render(tmp_path / "a.mp4", worlds=[0, 1], width=64, height=48)
    with av.open(tmp_path / "a.mp4") as video:
        assert sum(1 for _ in video.decode(video=0)) == 4


def test_pictures_that_cannot_be_are_refused(recording, tmp_path):
    rows = [
        ({"path": tmp_path / "a.bmp"}, "path is"), ({"worlds": [2]}, "worlds is 2"), ({"worlds": []}, "worlds is"),
        ({"worlds": [0, 0]}, "worlds is"), ({"worlds": [True, False]}, "worlds is"),
        ({"camera": "sideways"}, "camera is"), ({"agent": 2}, "agent is"),
    ]  # fmt: skip
    assert_refused(lambda **given: recording.render(**{"path": tmp_path / "a.png", **given}), rows)
    assert [path.name for path in tmp_path.iterdir()] == ["a.rec"]


# ---- Episodes of an engine

CONFIG = doorstep.SimulatorConfig(8, num_threads=1, max_levels=1, episode_length=120)
GENERATED = GeneratedLevel(room_types=("any", "any", "any"), episode_length=(30, 90))


def played(config=CONFIG, **fields):
    with doorstep.RolloutEngine(config) as engine:
        engine.submit(EpisodeColumns(range(6), policy="random", max_steps=10))  # other worlds play beside it
        engine.submit(doorstep.EpisodeRequest(**{"record": ("actions",), "tag": 1, **fields}))
        return next(result for result in engine if result.request.tag == 1)


def test_an_episode_replays_to_the_same_world(tmp_path, capsys):
    rows = [
        ({"seed": 4, "config": doorstep.SimulatorConfig(3, num_threads=1)}, False),
        ({"seed": 4, "max_steps": 7, "config": doorstep.SimulatorConfig(3, num_agents=3)}, False),
        ({"seed": 7, "level": curated()["slalom"]}, True),
        ({"seed": 9, "level": GENERATED, "max_steps": 20}, True),
        ({"seed": 10, "record": ("observations",)}, False),
    ]
    for fields, same_version_only in rows:
        config = fields.get("config", CONFIG)
        result, path = played(**fields), tmp_path / "episode.rec"
        with result.record(path, config) as recording:
            assert (recording.config.num_worlds, recording.config.seed) == (1, result.request.seed)
            assert (recording.num_steps, recording.same_version_only) == (result.length, same_version_only)
            for step in range(result.length):
                assert np.array_equal(recording.actions(step)[0], result.actions[step])
            with doorstep.Simulator.from_config(recording.config) as sim:
                recording.replay(sim)
                assert int(sim.world_hashes()[0]) == result.state_hash
    assert main(["replay", str(path)]) == 0
    assert f"{result.length} steps of 1 world replayed" in capsys.readouterr().out


def test_an_episode_of_other_rules_or_without_actions_is_refused_and_leaves_no_file(tmp_path):
    path, result = tmp_path / "episode.rec", played(seed=1, level=curated()["slalom"])
    changed = type(result)(**{**vars(result), "state_hash": result.state_hash ^ 1})
    with pytest.raises(ReplayError, match="the episode of seed 1 comes out differently") as caught:
        changed.record(path, CONFIG)
    assert caught.value.worlds == (0,)
    refuses("config is 3; it must be a doorstep.RolloutConfig or SimulatorConfig", result.record, path, 3)
    refuses(r"record is EpisodeRequest\(seed=2", played(seed=2, record=()).record, path, CONFIG)
    assert not list(tmp_path.iterdir())
