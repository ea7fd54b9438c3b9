"""Configs as dictionaries, JSON, YAML, files and changes (KEY=VALUE); what their annotations say is checked."""

import contextlib
import json
import pickle
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
from doorstep import RolloutConfig, SimulatorConfig
from doorstep._configs import Anything, Config, Integer, Number
from doorstep._configs.changes import apply_changes, split_changes, to_changes
from doorstep.rollouts import ControllerConfig, SchedulerConfig

SIMULATOR = {"num_worlds": 4}


def changed(base, *changes):
    return apply_changes(base, split_changes(changes))


def test_configs_come_back_from_every_form_and_from_changes_in_any_order():
    pytest.importorskip("yaml")
    for cls in CLASSES:
        random = Random(cls.__name__)
        for number in range(30):
            config, other = draw_config(cls, random), draw_config(cls, random)
            if cls is SimulatorConfig and number % 3 == 0:
                config = with_cameras(config, random)
                assert changed(config, "cameras=none") == config.replace(cameras=None) != config
            assert cls.from_dict(config.to_dict()) == config
            assert cls.from_json(config.to_json()) == config
            assert json.loads(config.to_json()) == json.loads(config.to_json(indent=2)) == config.to_dict()
            assert copy(config) == deepcopy(config) == pickle.loads(pickle.dumps(config)) == config
            if number % 3 == 0:
                assert cls.from_yaml(config.to_yaml()) == config
            changes = [f"{path}={text}" for path, text in to_changes(config).items()]
            random.shuffle(changes)
            assert changed(other, *changes) == config
            assert changed(other) == other
            fields = {name: value for name, value in config.to_dict().items() if name != "type"}  # of the config itself
            assert apply_changes(other, fields) == config
            parts = {name: value for name, value in fields.items() if isinstance(value, dict)}
            assert config.replace(**parts) == config
            assert apply_changes(other, {**fields, **{name: getattr(config, name) for name in parts}}) == config
            with contextlib.suppress(doorstep.ArgumentError):  # a damaged one is a config or refused
                cls.from_dict(damaged(config.to_dict(), random)).to_json()


def test_a_type_tag_chooses_the_class():
    config = RolloutConfig.from_dict(
        {"simulator": SIMULATOR, "scheduler": {"type": "fixed_chunk", "max_chunk": 3}, "controller": "round_robin"}
    )
    assert config.scheduler == SchedulerConfig.of("fixed_chunk", max_chunk=3)
    assert config.controller == ControllerConfig.of("round_robin")
    priority = SchedulerConfig.of("priority")
    assert SchedulerConfig.from_dict({"type": "priority"}) == priority
    assert type(priority).from_dict({"max_chunk": 2}) == SchedulerConfig.of("priority", max_chunk=2)


def test_errors_have_the_path_and_the_nearest_name():
    of_type = {"type": "priority"}
    rows = [
        ({"simulator": {"num_world": 4}}, "simulator.num_world", "simulator: 'num_world' is not a field of Simulator"),
        ({"simulator": {"num_worlds": 0}}, "simulator.num_worlds", "simulator.num_worlds is 0; it must be an integer"),
        ({}, "simulator", "simulator is absent"),
        ({"schedular": {}}, "schedular", "(did you mean 'scheduler'?)"),
        ({"scheduler": {}}, "scheduler.type", "scheduler.type is absent; it must be given"),
        ({"scheduler": {"type": "fair_shar"}}, "scheduler.type", "did you mean 'fair_share'?"),
        ({"scheduler": {**of_type, "max_chunk": 0}}, "scheduler.max_chunk", "scheduler.max_chunk is 0; it must be an"),
        ({"scheduler": {**of_type, "begin_fraction": 0.5}}, "scheduler.begin_fraction", "not a field of PrioritySched"),
        ({"simulator": {**SIMULATOR, "cameras": {"widht": 3}}}, "simulator.cameras.widht", "did you mean 'width'?"),
        ({"devices": ["cpu", "gpu"]}, "device", "device is 'gpu'"),
    ]
    for values, argument, says in rows:
        values = {"simulator": SIMULATOR, **values} if values else values
        assert_refused(RolloutConfig.from_dict, [({"values": values}, says)], argument=argument)


def test_files_are_loaded_or_refused(tmp_path):
    pytest.importorskip("yaml")
    config = RolloutConfig(SimulatorConfig(4), scheduler=SchedulerConfig.of("fair_share", max_chunk=5))
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


# ---- Changes


def test_changes_concern_the_fields_that_they_name_alone():
    base = RolloutConfig(SimulatorConfig(4, seed=3), scheduler=SchedulerConfig.of("dynamic_chunk", max_chunk=7))
    assert changed(base, "simulator.num_agents=3", "scheduler.begin_fraction=0.5", "max_policies=2") == RolloutConfig(
        SimulatorConfig(4, seed=3, num_agents=3),
        scheduler=SchedulerConfig.of("dynamic_chunk", max_chunk=7, begin_fraction=0.5),
        max_policies=2,
    )
    assert changed(SimulatorConfig(4), "seed=1", "num_worlds=2", "seed=3") == SimulatorConfig(2, seed=3)  # the later
    simple = changed(SimulatorConfig(1), "num_worlds=1_000", "strict=True", "auto_reset=False")
    assert simple == SimulatorConfig(1000, strict=True, auto_reset=False)


def test_another_type_begins_with_its_defaults():
    base = RolloutConfig(
        SimulatorConfig(4), scheduler=SchedulerConfig.of("dynamic_chunk", max_chunk=7, begin_fraction=0.5)
    )
    assert changed(base, "scheduler.type=fair_share").scheduler == SchedulerConfig.of("fair_share")
    assert changed(base, "scheduler.type=dynamic_chunk") == base
    chosen = changed(base, "scheduler.type=fair_share", "scheduler.max_chunk=8")
    assert chosen.scheduler == SchedulerConfig.of("fair_share", max_chunk=8)


def test_of_a_part_some_fields_or_its_type_are_given_and_a_name_that_no_other_has_needs_no_path():
    config = RolloutConfig(SimulatorConfig(4, seed=3))
    assert apply_changes(config, {"simulator": {"num_worlds": 16}, "simulator.strict": True}) == changed(
        config, "num_worlds=16", "strict=true"
    )
    assert apply_changes(config, {"scheduler": "priority"}) == changed(config, "scheduler.type=priority")
    assert apply_changes(config, {"max_chunk": 8}) == apply_changes(config, {"scheduler.max_chunk": "8"}) != config
    assert SimulatorConfig(4, cameras={"width": 40}) == SimulatorConfig(4, cameras=doorstep.Cameras(width=40))


def test_of_a_part_that_is_none_and_its_fields_the_fields_count_in_any_order():
    for changes in (("cameras.width=8", "cameras=none"), ("cameras=none", "cameras.width=8")):
        assert changed(SimulatorConfig(4), *changes).cameras == doorstep.Cameras(width=8)


def test_a_bad_change_is_refused_by_name():
    rows = [
        ("scheduler.type=fair", "scheduler.type is 'fair'; it must be a scheduler: 'fixed_chunk', "),
        ("scheduler.max_chunk=x", "scheduler.max_chunk is 'x'; it must be an integer, 1 to"),
        ("simulator.strict=maybe", "simulator.strict is 'maybe'; it must be True or False"),
        ("simulator.action_check=clam", "simulator.action_check is 'clam'; it must be one of 'clamp', "),
        ("seed", "change is 'seed'; it must be KEY=VALUE"),
        ("sheduler.max_chunk=8", "'sheduler.max_chunk' is not the name of a single value of RolloutConfig (did you m"),
        ("type=fair_share", "(it may be scheduler.type or controller.type)"),
        ("scheduler=8", "scheduler.type is '8'; it must be a scheduler: 'fixed_chunk', "),
        ("simulator=8", "'simulator' is not the name of a single value of RolloutConfig (it is simulator.num_worlds"),
        ("devices.x=8", "(it is devices)"),
    ]
    config = RolloutConfig(SimulatorConfig(4))
    assert_refused(lambda change: changed(config, change), rows)
    rows = [(["scheduler.type=priority", "scheduler.begin_fraction=1"], "not a field of PriorityScheduler")]
    assert_refused(lambda changes: changed(config, *changes), rows)
    rows = [(None, "simulator: 'num_world' is not a field ... 'num_worlds'")]
    assert_refused(lambda _: apply_changes(config, {"simulator": {"num_world": 16}}), rows)


# ---- A config without a native twin


@dataclass(frozen=True)
class MyConfig(Config):
    learning_rate: Annotated[float, Number(above=0, high=1), "Of the optimiser."] = 3e-4
    layers: Annotated[tuple[int, ...], Integer(1, 99), "Widths."] = (64, 64)
    activation: Literal["tanh", "relu"] = "tanh"
    name: str = "run"
    folder: Annotated[Path | None, Anything()] = None
    resume: bool = False
    scheduler: SchedulerConfig = field(default_factory=lambda: SchedulerConfig.of("priority"))
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
        ({"layers": (1, 0)}, "layers[1] is 0; it must be an integer, 1 to 99"),
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
