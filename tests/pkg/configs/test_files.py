"""Configs as dictionaries, JSON, YAML and files; what their annotations say is checked."""

import contextlib
import json
import pickle
import sys
from copy import copy, deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Annotated, Literal

import pytest
from tests.pkg.configs.drawn_configs import CLASSES, draw_config, with_cameras
from tests.pkg.damaged import damaged
from tests.refuses import assert_refused, refuses

import doorstep
from doorstep import RolloutConfig, SimulatorConfig, rollouts
from doorstep._configs import Anything, Config, Integer, Number
from doorstep.evaluation.config import EvaluationConfig
from doorstep.rollouts.config import SchedulerConfig

SIMULATOR = {"num_worlds": 4}


def test_configs_come_back_from_every_form():
    pytest.importorskip("yaml")
    for cls in CLASSES:
        random = Random(cls.__name__)
        for number in range(30):
            config = draw_config(cls, random)
            if cls is SimulatorConfig and number % 3 == 0:
                config = with_cameras(config, random)
                assert config.cameras is not None
            assert cls.from_dict(config.to_dict()) == config
            assert cls.from_json(config.to_json()) == config
            assert json.loads(config.to_json()) == json.loads(config.to_json(indent=2)) == config.to_dict()
            for other in (copy(config), deepcopy(config), pickle.loads(pickle.dumps(config))):
                assert other == config
            if number % 3 == 0:
                assert cls.from_yaml(config.to_yaml()) == config
            with contextlib.suppress(doorstep.ArgumentError):  # a damaged one is a config or refused
                cls.from_dict(damaged(config.to_dict(), random)).to_json()


def test_a_type_tag_chooses_the_class():
    config = RolloutConfig.from_dict(
        {"simulator": SIMULATOR, "scheduler": {"type": "fixed_chunk", "max_chunk": 3}, "controller": "round_robin"}
    )
    assert config.scheduler == rollouts.FixedChunkScheduler(max_chunk=3)
    assert config.controller == rollouts.RoundRobinController()
    assert SchedulerConfig.from_dict({"type": "priority"}) == rollouts.PriorityScheduler()
    assert rollouts.PriorityScheduler.from_dict({"max_chunk": 2}) == rollouts.PriorityScheduler(2)


def test_errors_have_the_path_and_the_nearest_name():
    of_type, too_deep = {"type": "priority"}, {"controller": {"type": "round_robin", "depth": 9}, "queue_capacity": 8}
    rows = [
        ({"simulator": {"num_world": 4}}, "simulator.num_world", "simulator: 'num_world' is not a field of Simulator"),
        ({"simulator": {"num_worlds": 0}}, "simulator.num_worlds", "simulator.num_worlds is 0; it must be an integer"),
        ({"simulator": {}}, "simulator.num_worlds", "simulator.num_worlds is absent"),
        ({}, "simulator", "simulator is absent"),
        ({"schedular": {}}, "schedular", "(did you mean 'scheduler'?)"),
        ({"scheduler": {}}, "scheduler.type", "scheduler.type is absent; it must be given"),
        ({"scheduler": {"type": "fair_shar"}}, "scheduler.type", "did you mean 'fair_share'?"),
        ({"scheduler": {"type": None}}, "scheduler.type", "scheduler.type is None; it must be"),
        ({"scheduler": {**of_type, "max_chunk": 0}}, "scheduler.max_chunk", "scheduler.max_chunk is 0; it must be an"),
        ({"scheduler": {**of_type, "begin_fraction": 0.5}}, "scheduler.begin_fraction", "not a field of PrioritySched"),
        ({"simulator": {**SIMULATOR, "cameras": {"widht": 3}}}, "simulator.cameras.widht", "did you mean 'width'?"),
        ({"devices": ["cpu", "gpu"]}, "device", "device is 'gpu'"),
        (too_deep, "controller.depth", "controller.depth is 9; it must be at most queue_capacity, 8"),
    ]
    for values, argument, says in rows:
        values = {"simulator": SIMULATOR, **values} if values else values
        assert_refused(RolloutConfig.from_dict, [({"values": values}, says)], argument=argument)
    config = EvaluationConfig.from_dict({"policies": ["random", "a.py:f", "runs/mine"]})
    assert config.policies == ("random", "a.py:f", "runs/mine")
    rows = [(["random", 3], "policies[1] is 3; it must be a text"), ((), "policies is")]
    assert_refused(lambda policies: EvaluationConfig(policies=policies), rows)


def test_files_are_loaded_or_refused(tmp_path):
    pytest.importorskip("yaml")
    config = RolloutConfig(SimulatorConfig(4), scheduler=rollouts.FairShareScheduler(max_chunk=5))
    for name in ("a.json", "b.yaml", "c.yml", "d.YAML"):
        text = config.to_json() if name.endswith("json") else config.to_yaml()
        (tmp_path / name).write_text(text, "utf-8")
        assert RolloutConfig.load(tmp_path / name) == config
    rows = [
        ("a.toml", "", "a.toml'; it must be a file whose name ends in .json, .yaml, .yml"),
        ("a.yaml", "a: [", "{path}: text is not YAML"),
        ("a.yaml", "simulator: {num_worlds: 0}", "{path}: simulator.num_worlds is 0; it must be an integer"),
        ("a.yaml", "", "{path}: values is None; it must be a dictionary of the fields of RolloutConfig"),
        ("a.json", '["x"]', "{path}: values is ['x']; it must be a dictionary"),
    ]
    for name, text, says in rows:
        (tmp_path / name).write_text(text)
        with pytest.raises(doorstep.ArgumentError) as caught:
            RolloutConfig.load(tmp_path / name)
        assert says.format(path=tmp_path / name) in str(caught.value)
    assert_refused(SimulatorConfig.load, [(path, "path is ") for path in (None, 3, b"a.json", "a\0.json")])
    refuses(None, RolloutConfig.load, tmp_path / "absent.json", error=FileNotFoundError)


def test_without_pyyaml_the_error_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    for call in (SimulatorConfig(1).to_yaml, lambda: SimulatorConfig.from_yaml("num_worlds: 1")):
        refuses(r'pip install "doorstep\[yaml\]"', call, error=doorstep.LibraryError)


# ---- A config without a native twin


@dataclass(frozen=True)
class MyConfig(Config):
    learning_rate: Annotated[float, Number(above=0, high=1), "Of the optimiser."] = 3e-4
    layers: Annotated[tuple[int, ...], Integer(1, 99), "Widths."] = (64, 64)
    activation: Literal["tanh", "relu"] = "tanh"
    name: str = "run"
    folder: Annotated[Path | None, Anything()] = None
    resume: bool = False
    scheduler: SchedulerConfig = field(default_factory=rollouts.PriorityScheduler)
    warm_up: int | None = None

    def _check(self):
        if self.warm_up is not None and self.resume:
            raise doorstep.ArgumentError("warm_up is given with resume", argument="warm_up")


def test_values_are_checked_as_their_annotations_say():
    config = MyConfig(learning_rate=0.5, layers=(3,), folder=Path("a b"))
    assert config == MyConfig.from_json(config.to_json())
    assert config.to_dict()["folder"] == {"file": "a b"}
    assert not hasattr(config, "native_handle")
    with pytest.raises(AttributeError):
        config.name = "x"
    rows = [
        ({"learning_rate": 0}, "learning_rate is 0; it must be a number, more than 0 and at most 1"),
        ({"learning_rate": 1e-50}, "learning_rate is 1e-50"),  # 0 in single precision
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"learning_rate": True}, "learning_rate is True"),
        ({"layers": (1, 0)}, "layers[1] is 0; it must be an integer, 1 to 99"),
        ({"layers": (1, 100)}, "layers[1] is 100"),
        ({"layers": ()}, "layers is ()"),
        ({"layers": 3}, "layers is 3; it must be a sequence of one or more integers"),
        ({"activation": "tan"}, "activation is 'tan'; it must be one of 'tanh', 'relu'"),
        ({"name": 3}, "name is 3; it must be a text"),
        ({"resume": 1}, "resume is 1; it must be True or False"),
        ({"scheduler": SchedulerConfig()}, "scheduler is SchedulerConfig"),
        ({"warm_up": 3, "resume": True}, "warm_up is given with resume"),
    ]
    assert_refused(MyConfig, rows)
    assert (MyConfig(learning_rate=1, layers=(1, 99)).layers, MyConfig(warm_up=0).warm_up) == ((1, 99), 0)
