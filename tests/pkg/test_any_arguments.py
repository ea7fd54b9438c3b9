"""Whatever is passed for one argument of a public function is accepted, or refused with a typed error."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import pytest

import doorstep
from doorstep import envs, evaluation, interop, levels, metrics, planner, policy, recording, render, rollouts
from doorstep._configs import Checked
from doorstep._native._generated import LayerKind

Call: TypeAlias = tuple[Callable[..., Any], dict[str, Any]]  # a function, and arguments that it accepts


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("code of a user")


VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 7, 2**63, 2**200, -(2**63), 1.5, float("nan"), float("inf"), 1e308, 1j, np.float32("nan")),
    *("", "x", "\ud800", "a\0b", "/no/such/file.json", b"x", [], [1], [[1]], ["x"], {}, {"x": 1}, (), (1, 2, 3), {1}),
    *(np.arange(4), np.ones((2, 2)), np.array([None, "x"], object), np.array(["a"]), np.array(3)),
    *("x" * 10**6, "x" * 10**6 + ".json", {"x" * 10**6: 1}, ["x" * 10**6], "x:" + "x" * 10**6),
    *(object(), Unprintable(), int, lambda *_, **__: None),
)
REQUEST = {"seed": 0, "level": None, "state": None, "n": 1, "policy": "random", "sampling": None, "max_steps": 2,
           "priority": 0, "deadline": None, "record": (), "tag": 0}  # fmt: skip
CLASSES = (
    *(levels.Button, levels.Cube, levels.Door, levels.Goal, levels.Room, levels.Spawn, levels.Wall, levels.Physics),
    *(levels.GeneratedLevel, levels.Level, doorstep.Rewards, doorstep.SimulatorConfig, doorstep.RolloutConfig),
    *(rollouts.PullController, rollouts.FixedChunkScheduler, rollouts.DynamicChunkScheduler, metrics.MetricsConfig),
    *(policy.SamplingParams, doorstep.EpisodeRequest, doorstep.CameraPose, doorstep.Cameras, planner.ScriptedPolicy),
)


def _checked_classes(base: Any = Checked) -> Iterator[Any]:
    for cls in base.__subclasses__():
        if dataclasses.fields(cls) and cls.__module__.startswith("doorstep"):
            yield cls
        yield from _checked_classes(cls)


# What takes fields of configurations, or arguments of the same names.
NAMED: dict[str, Callable[..., Any]] = {
    **{cls.__qualname__: cls for cls in _checked_classes()},
    **{name: getattr(doorstep, name) for name in ("Simulator", "EpisodeRequest", "evaluate", "record", "view")},
    "load_policy": doorstep.load_policy,
    "from_ascii": doorstep.Level.from_ascii,
}


@pytest.mark.parametrize("function", NAMED)
def test_every_misspelt_keyword_is_answered_with_the_one_that_was_meant(function: str) -> None:
    keywords = list(inspect.signature(NAMED[function]).parameters)
    assert keywords
    for keyword in keywords:
        wrong = keyword[0] + keyword[2] + keyword[1] + keyword[3:] if len(keyword) > 4 else keyword
        if wrong != keyword:
            with pytest.raises(TypeError, match=rf"got an unexpected keyword .*{wrong}'; did you mean '{keyword}'\?$"):
                NAMED[function](**{wrong: 1})
    with pytest.raises(TypeError, match=f"unexpected keyword argument 'frobnicate'; it takes {', '.join(keywords)}"):
        NAMED[function](frobnicate=1)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        *((name, "num_worlds") for name in ("num_envs", "n_envs", "num_environments", "num_world", "n_worlds")),
        *(("n_agents", "num_agents"), ("ep_length", "episode_length"), ("obs", "observations"), ("level", "levels")),
    ],
)
def test_names_of_other_libraries_are_understood(wrong: str, right: str) -> None:
    with pytest.raises(TypeError, match=f"'{wrong}'; did you mean '{right}'"):
        cast("Any", doorstep.Simulator)(**{wrong: 8})


@pytest.mark.parametrize(("wrong", "right"), [("obs", "observations"), ("num_envs", "num_worlds"), ("lidr", "lidar")])
def test_attributes_of_simulators_are_answered_with_the_one_that_was_meant(wrong: str, right: str) -> None:
    sim = doorstep.Simulator(1, num_threads=1)
    with pytest.raises(AttributeError, match=f"^a Simulator has no '{wrong}'; did you mean '{right}'"):
        getattr(sim, wrong)
    assert not any(hasattr(sim, name) for name in ("frobnicate", "rgb", "__frobnicate__"))


def _of_simulators(folder: Path) -> Iterator[Call]:
    sim = doorstep.Simulator(4, num_threads=1)
    level = levels.curated()["one door"]
    yield sim.hash, {"worlds": None}
    yield sim.reset, {"worlds": None, "seed": None}
    yield sim.save, {"worlds": None}
    yield sim.restore, {"data": sim.save(), "worlds": None}
    yield sim.bind, {"actions": None}
    picture = {"world": 0, "camera": "top", "agent": None, "width": 16, "height": 16, "samples": 1, "shadows": False}
    yield sim.render, picture
    played = doorstep.Simulator(2, max_levels=1, num_threads=1)
    yield played.set_levels, {"levels": [level], "weights": None}
    yield levels.save_levels, {"path": folder / "levels.json", "levels": [level]}
    yield levels.load_levels, {"path": folder / "levels.json"}
    yield levels.Level.from_ascii, {"text": "#A#"}
    yield planner.ScriptedPolicy(), {"sim": sim}
    pixels = np.zeros((4, 4, 3), np.uint8)
    yield lambda picture: render.encode_png(picture), {"picture": pixels}
    yield lambda path, picture: render.write_png(path, picture), {"path": folder / "a.png", "picture": pixels}


def _of_policies(folder: Path) -> Iterator[Call]:
    layers = np.random.default_rng(0).normal(size=(19, 94)).astype(np.float32)
    stored = policy.files.StoredLayer(
        LayerKind.LINEAR, 94, 19, arrays={"weights": layers, "biases": layers[:, 0].copy()}
    )
    path = folder / "policy.safetensors"
    sampling = doorstep.policy.SamplingParams()
    policy.files.write_policy(path, policy.files.StoredPolicy([stored], sampling, doorstep.OBSERVATIONS, {}))
    network, seen = doorstep.load_policy(path), np.zeros((4, 2, 94), np.float32)
    yield doorstep.load_policy, {"policy": path, "sampling": None, "precision": None}
    yield network.act, {"observations": seen, "state": None, "sampling": None, "step": None, "first_world": 0}
    yield network.act, {"observations": seen, "seeds": None, "step": 0}
    yield network.forward, {"observations": seen, "state": None}
    yield network.initial_state, {"num_worlds": 2, "num_agents": 2}
    yield network.seeded, {"seed": 1}
    yield network.with_precision, {"precision": "float32"}
    yield network.with_sampling, {"sampling": sampling}
    played = doorstep.evaluate(["idle"], levels=levels.curated()["one door"], episodes=1, episode_length=5)
    yield played.score, {"policy": "idle", "level": None}
    yield evaluation.episode_seeds, {"seed": 0, "count": 2}


def _of_recordings(folder: Path) -> Iterator[Call]:
    recorded = doorstep.record(folder / "run.rec", steps=5, num_worlds=2)
    yield recorded.actions, {"step": 0}
    yield recorded.resets, {"step": 0}
    yield recorded.hashes, {"step": 0}
    yield recorded.replay, {"sim": None, "device": None, "num_threads": 1}
    yield recording.Recording, {"path": folder / "run.rec", "incomplete": False}
    sim = doorstep.Simulator(2, num_threads=1)
    yield recording.RecordingWriter, {"path": folder / "other.rec", "sim": sim, "hash_interval": 4}


def _of_metrics(folder: Path) -> Iterator[Call]:
    store = metrics.MetricsStore()
    yield lambda name, description: store.counter(name, description), {"name": "a", "description": ""}
    yield lambda name: store.total(name), {"name": "a"}
    yield store.merge, {"other": metrics.MetricsStore(), "without": ()}
    yield store.to_csv, {"path": folder / "series.csv"}
    yield store.write_trace, {"path": folder / "trace.json"}
    yield metrics.MetricsStore, {"trace": 0}


def _of_engines(folder: Path) -> Iterator[Call]:
    with doorstep.RolloutEngine(num_worlds=4, num_threads=1, episode_length=10) as engine:
        yield lambda **fields: engine.run([doorstep.EpisodeRequest(**fields)]), dict(REQUEST)
        one = doorstep.EpisodeRequest(max_steps=1)
        yield engine.submit, {"request": one, "timeout": None}
        yield engine.cancel, {"request_id": 1}
        yield engine.get_outputs, {"block": False, "timeout": None, "most": 10}
        yield engine.get_records, {"timeout": 0.0, "most": 10}
        yield engine.submit_batch, {"seeds": [1, 2], "max_steps": 1, "priority": 0, "policy": "random", "tag": 0}
        yield engine.future, {"request": one}
        yield engine.future_batch, {"seeds": [1, 2], "max_steps": 1}
        yield engine.run, {"requests": [one]}
        yield engine.remove_replica, {"number": 99}
        recorded = engine.run([doorstep.EpisodeRequest(max_steps=1, record="actions")])
        yield rollouts.pad_trajectories, {"trajectories": recorded}
        if "TrajectoryDataset" in rollouts.__all__:  # PyTorch is installed
            yield rollouts.TrajectoryDataset, {"engine": engine, "requests": [one]}
    yield interop.describe, {"tensor": np.zeros(3)}
    yield interop.empty_like, {"tensor": np.zeros(3)}
    yield interop.current_stream, {"tensor": np.zeros(3), "device_index": None}


def _of_environments(folder: Path) -> Iterator[Call]:
    pytest.importorskip("gymnasium")
    rooms = envs.EscapeRoomVectorEnv(2, num_threads=1)
    yield rooms.reset, {"seed": 0, "options": None}
    yield rooms.step, {"actions": rooms.action_space.sample()}
    room = envs.EscapeRoomEnv(num_threads=1)
    yield room.reset, {"seed": 0, "options": None}
    yield room.step, {"action": room.action_space.sample()}
    yield envs.AsyncEscapeRooms, {"num_envs": 4, "num_groups": 2, "agents": "joint", "observations": "by_name"}
    yield envs.EscapeRoomVectorEnv, {
        "num_envs": 2, "agents": "joint", "autoreset_mode": "next_step", "render_mode": None, "render_options": None,
        "copy": True, "max_episode_steps": None, "num_threads": 1,
    }  # fmt: skip


def _of_training(folder: Path) -> Iterator[Call]:
    torch = pytest.importorskip("torch")
    from tests.pkg.training.runs import small

    from doorstep import training
    from doorstep.torch import multi_discrete_evaluate, multi_discrete_sample

    trainer = training.Trainer(small())
    yield training.Trainer, {"config": small(), "ranks": None, "reward_function": None}
    yield trainer.restore, {"checkpoint": trainer.checkpoint()}
    yield trainer.begin_with, {"checkpoint": trainer.checkpoint()}
    yield training.save_checkpoint, {"path": folder / "checkpoint.safetensors", "checkpoint": trainer.checkpoint()}
    yield training.load_checkpoint, {"path": folder / "checkpoint.safetensors"}
    yield training.export_policy, {
        "path": folder / "checkpoint.safetensors", "output": folder / "policy.safetensors", "sampling": None,
    }  # fmt: skip
    yield training.preset, {"name": "default"}
    logits, actions = torch.zeros(5, 19), torch.zeros(5, 4, dtype=torch.int32)
    yield multi_discrete_evaluate, {"logits": logits, "actions": actions, "sizes": (4, 8, 5, 2)}
    yield multi_discrete_sample, {"logits": logits, "sizes": (4, 8, 5, 2), "generator": None}
    yield envs.MultiDiscrete, {"logits": logits, "sizes": None}
    linear = torch.nn.Linear(4, 19)
    yield policy.Heads, {"heads": [linear], "value": None}
    yield policy.Branch, {"num_features": 94, "part": slice(0, 4), "module": linear}
    changes = {"on_begin": None, "on_update": None, "should_stop": None, "tensorboard": False, "minutes": None}
    yield training.resume, {"folder": folder / "none", **changes}


def _of_classes(folder: Path) -> Iterator[Call]:
    for cls in CLASSES:
        yield cls, {
            name: 1 if parameter.default is parameter.empty else parameter.default
            for name, parameter in inspect.signature(cls).parameters.items()
            if parameter.kind != parameter.VAR_KEYWORD
        }


@pytest.mark.parametrize(
    "calls",
    [
        *(_of_simulators, _of_policies, _of_recordings, _of_metrics, _of_engines, _of_environments, _of_training),
        _of_classes,
    ],
)
def test_every_value_is_accepted_or_refused(
    calls: Callable[[Path], Iterator[Call]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some values are paths
    wrong = [
        f"{function}: {name} of {type(value)}: {error!r}"[:2000]
        for function, arguments in calls(tmp_path)
        for name in arguments
        for value in VALUES
        if (error := _wrong_error_of(function, {**arguments, name: value}))
    ]
    assert not wrong


def _wrong_error_of(function: Callable[..., Any], arguments: dict[str, Any]) -> Exception | None:
    """What a call raises, unless that is a typed error that does not repeat a long value."""
    try:
        made = function(*arguments.values()) if inspect.isbuiltin(function) else function(**arguments)
        if hasattr(made, "close"):
            made.close()
    except Exception as error:
        is_typed = isinstance(error, (doorstep.DoorstepError, OSError)) and type(error) is not doorstep.DoorstepError
        return None if is_typed and len(str(error)) < 3000 else error
    return None
