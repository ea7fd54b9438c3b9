"""SimulatorConfig: the rules of a simulator as one value."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep import Cameras, Simulator, SimulatorConfig
from doorstep._native import _generated

CAMERAS = Cameras(width=8, height=4, rotation=(0.6, 0.8, 0.0, 0.0), segmentation=True)
# A value other than the default for every field.
OTHERS: dict[str, Any] = {
    "num_worlds": 3,
    "seed": 7,
    "device": "auto",
    "num_agents": 4,
    "episode_length": 9,
    "auto_reset": False,
    "world_offset": 11,
    "num_threads": 2,
    "action_check": "off",
    "strict": True,
    "observations": ("physics", ("lidar", 0.25), "agent_index"),
    "max_levels": 5,
    "cameras": CAMERAS,
}


def test_the_fields_and_defaults_are_those_of_a_simulator_without_its_stream_and_levels() -> None:
    simulator = inspect.signature(Simulator).parameters
    config = inspect.signature(SimulatorConfig).parameters
    others = {"stream", "levels", "level_weights", "reward"}
    assert set(simulator) - set(config) == others
    assert others < set(inspect.signature(Simulator.from_config).parameters)
    assert {name: parameter.default for name, parameter in config.items()} == {
        name: parameter.default for name, parameter in simulator.items() if name not in others
    }
    assert set(OTHERS) == set(config)


def test_every_rule_of_the_c_api_is_a_field() -> None:
    names = {name for name, _ in _generated.SimulatorConfig._fields_}
    assert names - set(OTHERS) == {"struct_size", "device_kind", "device_index", "stream"}


LARGEST = {
    "seed": _generated.MAX_SEED,
    "num_agents": _generated.MAX_AGENTS,
    "episode_length": _generated.MAX_EPISODE_LENGTH,
    "num_threads": _generated.MAX_THREADS,
}


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_values_are_those_of_the_c_api(name: str) -> None:
    config = SimulatorConfig(1)
    assert getattr(config.replace(**{name: LARGEST[name]}), name) == LARGEST[name]
    with pytest.raises(doorstep.ArgumentError, match=f"^{name} is {LARGEST[name] + 1}; it must be an integer, "):
        config.replace(**{name: LARGEST[name] + 1})


@pytest.mark.parametrize("name", OTHERS)
def test_configs_are_equal_as_long_as_no_field_differs(name: str) -> None:
    config = SimulatorConfig(2)
    other = config.replace(**{name: OTHERS[name]})
    assert config == SimulatorConfig(2)
    assert hash(config) == hash(SimulatorConfig(2))
    assert other != config
    assert getattr(other, name) == OTHERS[name]


def test_a_simulator_says_the_config_it_was_made_from() -> None:
    config = SimulatorConfig(**{**OTHERS, "strict": False})
    with Simulator.from_config(config) as sim:
        assert sim.config == config
        assert (sim.num_worlds, sim.num_agents, sim.seed, sim.world_offset) == (3, 4, 7, 11)
        assert (sim.num_threads, sim.episode_length, sim.cameras) == (2, 9, CAMERAS)
        assert sim.lidar.shape[:2] == (3, 4)
        assert sim.observations.shape == (3, 4, 66)
    with Simulator(**OTHERS) as sim:
        assert sim.config == SimulatorConfig(**OTHERS)


def test_two_simulators_of_a_config_do_the_same() -> None:
    config = SimulatorConfig(5, seed=3, num_agents=1)
    with Simulator.from_config(config) as one, Simulator.from_config(config) as two:
        for sim in (one, two):
            sim.actions = np.tile([3, 0, 2, 1], (5, 1, 1))
            sim.step()
        assert one.hash() == two.hash()


def test_values_of_numpy_become_pythons() -> None:
    config = SimulatorConfig(np.int64(4), seed=np.uint8(2), strict=np.True_)  # type: ignore[arg-type]
    assert (type(config.num_worlds), type(config.seed), type(config.strict)) == (int, int, bool)
    assert config == SimulatorConfig(4, seed=2, strict=True)


@pytest.mark.parametrize("cameras", [None, CAMERAS, Cameras(renderer="vulkan", material=Path("a.hlsl"))])
def test_dictionaries_and_json_hold_everything(cameras: Cameras | None) -> None:
    config = SimulatorConfig(**{**OTHERS, "cameras": cameras})
    assert set(config.to_dict()) == set(OTHERS)
    assert SimulatorConfig.from_dict(config.to_dict()) == config
    assert "\n" not in config.to_json()
    assert json.loads(config.to_json()) == config.to_dict()
    assert SimulatorConfig.from_json(config.to_json()) == config


def test_absent_fields_of_a_dictionary_have_their_defaults() -> None:
    assert SimulatorConfig.from_dict({"num_worlds": 2}) == SimulatorConfig(2)
    assert SimulatorConfig.from_json('{"num_worlds": 2, "cameras": {"width": 8}}').cameras == Cameras(width=8)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"num_worlds": 2, "episode_lenght": 3},
            r"'episode_lenght' is not a field .* \(did you mean 'episode_length'\?",
        ),
        ({"num_worlds": 2, "zzz": 3}, r"'zzz' is not a field of SimulatorConfig \(the fields are num_worlds, "),
        ({"num_worlds": 2, "cameras": {"widht": 3}}, r"'widht' is not a field of Cameras \(did you mean 'width'\?"),
        ({"num_worlds": 2, "cameras": 3}, "cameras is 3; it must be a doorstep.Cameras or None"),
        ({"seed": 2}, "num_worlds is absent"),
        ({"num_worlds": True}, "num_worlds is True; it must be an integer"),
        ({"num_worlds": 2, "device": "tpu"}, "device is 'tpu'; it must be 'cpu'"),
        (7, "values is 7; it must be a dictionary of the fields of SimulatorConfig"),
    ],
)
def test_dictionaries_that_are_no_config_are_refused_by_name(values: Any, says: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=says):
        SimulatorConfig.from_dict(values)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, b"\xff", 3])
def test_text_that_is_not_json_is_refused(text: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match="text is not JSON"):
        SimulatorConfig.from_json(text)


def test_a_config_cannot_be_changed() -> None:
    config = SimulatorConfig(2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 3  # type: ignore[misc]
    with pytest.raises(doorstep.ArgumentError, match=r"'sed' is not a field .*did you mean 'seed'"):
        config.replace(sed=3)


@pytest.mark.parametrize("config", [None, 3, {"num_worlds": 3}])
def test_a_simulator_is_made_from_a_config_only(config: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"config is .*; it must be a doorstep.SimulatorConfig"):
        Simulator.from_config(config)


def test_sizes_of_actions_are_public_and_those_of_the_environment() -> None:
    assert doorstep.ACTIONS == (4, 8, 5, 2)  # the environment's description, section 1.2
    assert doorstep.ACTIONS._fields == ("move_amount", "move_angle", "turn", "grab")
    with Simulator(3) as sim:
        assert (sim.actions == doorstep.NEUTRAL_ACTION).all()
        sim.actions = np.zeros((3, 2, 4), int) + doorstep.ACTIONS - 1
        sim.step()
        assert sim.health.clamped_actions == 0
        for component in range(4):
            action = np.array(doorstep.NEUTRAL_ACTION)
            action[component] = doorstep.ACTIONS[component]
            sim.actions = np.tile(action, (3, 2, 1))
            sim.step()
            assert sim.health.clamped_actions == 6 * (component + 1)


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:7"])
def test_devices_of_pytorch_are_their_names(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    assert SimulatorConfig(2, device=torch.device(name)) == SimulatorConfig(2, device=name)
    devices = doorstep.RolloutConfig(SimulatorConfig(2), devices=(torch.device(name),)).devices
    assert devices == (name,)
    for make in (functools.partial(Simulator, 2), functools.partial(doorstep.record, tmp_path / "a.rec", steps=1)):
        assert _outcome(make, device=name) == _outcome(make, device=torch.device(name))


def _outcome(function: Callable[..., Any], device: Any) -> str:
    try:
        with function(device=device) as made:
            return repr(made)
    except doorstep.DeviceError as error:
        return str(error)
