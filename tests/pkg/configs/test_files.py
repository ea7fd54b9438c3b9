"""Configs as dictionaries, JSON, YAML and files."""

from __future__ import annotations

import contextlib
import json
import pickle
import sys
from copy import copy, deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.pkg.configs.drawn_configs import CLASSES, draw_config, with_cameras
from tests.pkg.damaged import damaged

import doorstep
from doorstep import RolloutConfig, SimulatorConfig, rollouts
from doorstep._configs import Config
from doorstep.evaluation.config import EvaluationConfig
from doorstep.rollouts.config import SchedulerConfig

SIMULATOR = {"num_worlds": 4}


@pytest.mark.parametrize("cls", CLASSES)
def test_configs_come_back_from_every_form(cls: type[Config]) -> None:
    random = Random(cls.__name__)
    for _ in range(50):
        config = draw_config(cls, random)
        assert cls.from_dict(config.to_dict()) == config
        assert cls.from_json(config.to_json()) == config
        assert json.loads(config.to_json()) == json.loads(config.to_json(indent=2)) == config.to_dict()
        for other in (copy(config), deepcopy(config), pickle.loads(pickle.dumps(config))):
            assert other == config


@pytest.mark.parametrize("cls", CLASSES)
def test_configs_come_back_from_yaml(cls: type[Config]) -> None:
    pytest.importorskip("yaml")
    random = Random(cls.__name__)
    for _ in range(20):
        config = draw_config(cls, random)
        assert cls.from_yaml(config.to_yaml()) == config


def test_cameras_come_back() -> None:
    random = Random(3)
    for _ in range(20):
        config = with_cameras(draw_config(SimulatorConfig, random), random)
        assert config.cameras is not None
        assert SimulatorConfig.from_json(config.to_json()) == config


def test_a_type_tag_chooses_the_class() -> None:
    config = RolloutConfig.from_dict(
        {"simulator": SIMULATOR, "scheduler": {"type": "fixed_chunk", "max_chunk": 3}, "controller": "round_robin"}
    )
    assert config.scheduler == rollouts.FixedChunkScheduler(max_chunk=3)
    assert config.controller == rollouts.RoundRobinController()
    assert SchedulerConfig.from_dict({"type": "priority"}) == rollouts.PriorityScheduler()
    assert rollouts.PriorityScheduler.from_dict({"max_chunk": 2}) == rollouts.PriorityScheduler(2)


@pytest.mark.parametrize(
    ("values", "argument", "says"),
    [
        ({"simulator": {"num_world": 4}}, "simulator.num_world", "simulator: 'num_world' is not a field of Simulator"),
        ({"simulator": {"num_worlds": 0}}, "simulator.num_worlds", "simulator.num_worlds is 0; it must be an integer"),
        ({"simulator": {}}, "simulator.num_worlds", "simulator.num_worlds is absent"),
        ({}, "simulator", "simulator is absent"),
        ({"simulator": SIMULATOR, "schedular": {}}, "schedular", "(did you mean 'scheduler'?)"),
        ({"simulator": SIMULATOR, "scheduler": {}}, "scheduler.type", "scheduler.type is absent; it must be given"),
        ({"simulator": SIMULATOR, "scheduler": {"type": "fair_shar"}}, "scheduler.type", "did you mean 'fair_share'?"),
        ({"simulator": SIMULATOR, "scheduler": {"type": None}}, "scheduler.type", "scheduler.type is None; it must be"),
        ({"simulator": SIMULATOR, "scheduler": {"type": 3}}, "scheduler.type", "scheduler.type is 3; it must be a sch"),
        (
            {"simulator": SIMULATOR, "scheduler": {"type": "priority", "max_chunk": 0}},
            "scheduler.max_chunk",
            "scheduler.max_chunk is 0; it must be an integer, 1 to 1073741824",
        ),
        (
            {"simulator": SIMULATOR, "scheduler": {"type": "priority", "begin_fraction": 0.5}},
            "scheduler.begin_fraction",
            "scheduler: 'begin_fraction' is not a field of PriorityScheduler",
        ),
        ({"simulator": {**SIMULATOR, "cameras": {"widht": 3}}}, "simulator.cameras.widht", "did you mean 'width'?"),
        ({"simulator": SIMULATOR, "devices": ["cpu", "gpu"]}, "device", "device is 'gpu'"),
        (
            {"simulator": SIMULATOR, "controller": {"type": "round_robin", "depth": 9}, "queue_capacity": 8},
            "controller.depth",
            "controller.depth is 9; it must be at most queue_capacity, 8",
        ),
    ],
)
def test_errors_have_the_path_and_the_nearest_name(values: Any, argument: str, says: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        RolloutConfig.from_dict(values)
    assert caught.value.argument == argument
    assert says in str(caught.value)


def test_policies_are_texts() -> None:
    config = EvaluationConfig.from_dict({"policies": ["random", "a.py:f", "runs/mine"]})
    assert config.policies == ("random", "a.py:f", "runs/mine")
    with pytest.raises(doorstep.ArgumentError, match=r"policies\[1\] is 3; it must be a text"):
        EvaluationConfig.from_dict({"policies": ["random", 3]})
    with pytest.raises(doorstep.ArgumentError, match="policies is"):
        EvaluationConfig(policies=())


@pytest.mark.parametrize("name", ["a.json", "b.yaml", "c.yml", "d.YAML"])
def test_files_are_loaded(tmp_path: Path, name: str) -> None:
    pytest.importorskip("yaml")
    config = RolloutConfig(SimulatorConfig(4), scheduler=rollouts.FairShareScheduler(max_chunk=5))
    text = config.to_json() if name.endswith("json") else config.to_yaml()
    (tmp_path / name).write_text(text, "utf-8")
    assert RolloutConfig.load(tmp_path / name) == config


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.toml", "", "a.toml'; it must be a file whose name ends in .json, .yaml, .yml"),
        ("a.yaml", "a: [", "{path}: text is not YAML"),
        ("a.yaml", "simulator: {num_worlds: 0}", "{path}: simulator.num_worlds is 0; it must be an integer"),
        ("a.yaml", "", "{path}: values is None; it must be a dictionary of the fields of RolloutConfig"),
        ("a.json", '["x"]', "{path}: values is ['x']; it must be a dictionary"),
    ],
)
def test_files_that_are_no_config_are_refused(tmp_path: Path, name: str, text: str, says: str) -> None:
    pytest.importorskip("yaml")
    (tmp_path / name).write_text(text)
    with pytest.raises(doorstep.ArgumentError) as caught:
        RolloutConfig.load(tmp_path / name)
    assert says.format(path=tmp_path / name) in str(caught.value)


@pytest.mark.parametrize("cls", CLASSES)
def test_damaged_dictionaries_are_configs_or_refused(cls: type[Config]) -> None:
    random = Random(cls.__name__)
    for _ in range(50):
        with contextlib.suppress(doorstep.ArgumentError):
            cls.from_dict(damaged(draw_config(cls, random).to_dict(), random)).to_json()


@pytest.mark.parametrize("path", [None, 3, b"a.json", "a\0.json", "\ud800.json"])
def test_a_path_is_one_that_a_file_can_have(path: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"^path is "):
        SimulatorConfig.load(path)


def test_a_missing_file_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RolloutConfig.load(tmp_path / "absent.json")


def test_without_pyyaml_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    for call in (SimulatorConfig(1).to_yaml, lambda: SimulatorConfig.from_yaml("num_worlds: 1")):
        with pytest.raises(doorstep.LibraryError, match=r'pip install "doorstep\[yaml\]"'):
            call()
