"""SimulatorConfig: the rules of a simulator as one value; what observations are made of is one of them."""

import dataclasses
import functools
import inspect
from pathlib import Path

import numpy as np
import pytest
from tests.refuses import assert_refused
from tests.scenes import steps

import doorstep
from doorstep import Cameras, Simulator, SimulatorConfig
from doorstep._native import _generated
from doorstep._observations import flat_size, part_size, shown_parts

CAMERAS = Cameras(width=8, height=4, rotation=(0.6, 0.8, 0.0, 0.0), segmentation=True)
MIXED = ("physics", ("lidar", 0.25), "agent_index")
# A value other than the default for every field.
OTHERS = {
    "num_worlds": 3, "seed": 7, "device": "auto", "num_agents": 4, "episode_length": 9, "auto_reset": False,
    "world_offset": 11, "num_threads": 2, "action_check": "off", "strict": True, "observations": MIXED,
    "max_levels": 5, "cameras": CAMERAS,
}  # fmt: skip


def test_the_fields_and_defaults_are_those_of_a_simulator_and_of_the_c_api():
    simulator = inspect.signature(Simulator).parameters
    config = inspect.signature(SimulatorConfig).parameters
    others = {"stream", "levels", "level_weights", "reward"}
    assert set(simulator) - set(config) == others
    assert others < set(inspect.signature(Simulator.from_config).parameters)
    assert {name: parameter.default for name, parameter in config.items()} == {
        name: parameter.default for name, parameter in simulator.items() if name not in others
    }
    assert set(OTHERS) == set(config)
    names = {name for name, _ in _generated.SimulatorConfig._fields_}
    assert names - set(OTHERS) == {"struct_size", "device_kind", "device_index", "stream"}


def test_configs_are_equal_as_long_as_no_field_differs():
    config = SimulatorConfig(2)
    assert config == SimulatorConfig(2)
    assert hash(config) == hash(SimulatorConfig(2))
    for name, value in OTHERS.items():
        other = config.replace(**{name: value})
        assert other != config
        assert getattr(other, name) == value
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 3
    config = SimulatorConfig(np.int64(4), seed=np.uint8(2), strict=np.True_)  # values of numpy become Python's
    assert (type(config.num_worlds), type(config.seed), type(config.strict)) == (int, int, bool)
    assert config == SimulatorConfig(4, seed=2, strict=True)


def test_a_simulator_says_the_config_it_was_made_from_and_two_do_the_same():
    config = SimulatorConfig(**{**OTHERS, "strict": False})
    with Simulator.from_config(config) as sim, Simulator.from_config(config) as other:
        assert sim.config == config
        assert (sim.num_worlds, sim.num_agents, sim.seed, sim.world_offset) == (3, 4, 7, 11)
        assert (sim.num_threads, sim.episode_length, sim.cameras) == (2, 9, CAMERAS)
        assert (sim.lidar.shape[:2], sim.observations.shape) == ((3, 4), (3, 4, 66))
        sim.actions = other.actions = np.tile([3, 0, 2, 1], (3, 4, 1))
        steps(1, sim, other)
        assert sim.hash() == other.hash()
    with Simulator(**OTHERS) as sim:
        assert sim.config == SimulatorConfig(**OTHERS)


def test_dictionaries_and_json_hold_everything():
    config = SimulatorConfig(**{**OTHERS, "cameras": Cameras(renderer="vulkan", material=Path("a.hlsl"))})
    assert set(config.to_dict()) == set(OTHERS)
    assert "\n" not in config.to_json()
    assert SimulatorConfig.from_json(config.to_json()) == SimulatorConfig.from_dict(config.to_dict()) == config
    assert SimulatorConfig.from_dict({"num_worlds": 2}) == SimulatorConfig(2)
    assert SimulatorConfig.from_json('{"num_worlds": 2, "cameras": {"width": 8}}').cameras == Cameras(width=8)


def test_what_is_no_config_is_refused_by_name():
    rows = [
        ({"num_worlds": 2, "episode_lenght": 3}, "'episode_lenght' is not a field ... (did you mean 'episode_length'?"),
        ({"num_worlds": 2, "cameras": {"widht": 3}}, "'widht' is not a field of Cameras (did you mean 'width'?"),
        ({"seed": 2}, "num_worlds is absent"),
        ({"num_worlds": True}, "num_worlds is True; it must be an integer"),
        ({"num_worlds": 2, "device": "tpu"}, "device is 'tpu'; it must be 'cpu'"),
        (7, "values is 7; it must be a dictionary of the fields of SimulatorConfig"),
    ]
    assert_refused(SimulatorConfig.from_dict, [({"values": values}, says) for values, says in rows])
    assert_refused(SimulatorConfig.from_json, [(text, "text is not JSON") for text in ("", "{", "[" * 100_000, 3)])
    assert_refused(SimulatorConfig(2).replace, [({"sed": 3}, "'sed' is not a field ... did you mean 'seed'")])
    rows = [({"config": given}, "config is ... ; it must be a doorstep.SimulatorConfig") for given in (None, 3, {})]
    assert_refused(Simulator.from_config, rows)


def test_devices_of_pytorch_are_their_names(tmp_path):
    torch = pytest.importorskip("torch")

    def outcome(function, device):
        try:
            with function(device=device) as made:
                return repr(made)
        except doorstep.DeviceError as error:
            return str(error)

    for name in ("cpu", "cuda:7"):
        assert SimulatorConfig(2, device=torch.device(name)) == SimulatorConfig(2, device=name)
        assert doorstep.RolloutConfig(SimulatorConfig(2), devices=(torch.device(name),)).devices == (name,)
        for make in (functools.partial(Simulator, 2), functools.partial(doorstep.record, tmp_path / "a.rec", steps=1)):
            assert outcome(make, name) == outcome(make, torch.device(name))


# ---- Observations


def test_observations_are_written_and_read_in_every_form():
    rule = doorstep._observations.ObservationsRule()
    for observations in (doorstep.OBSERVATIONS, MIXED, "by_name", ("physics",)):
        config = SimulatorConfig(4, observations=observations)
        assert config.observations == observations
        assert SimulatorConfig.from_json(config.to_json()) == config
        assert rule.check("observations", rule.from_text(shown_parts(observations))) == observations
    config = SimulatorConfig(4, observations=[["physics", 1], ["lidar", 0.25], "agent_index"])
    assert config == SimulatorConfig(4, observations=MIXED)
    assert hash(config) == hash(SimulatorConfig(4, observations=MIXED))
    assert SimulatorConfig(4).observations == doorstep.OBSERVATIONS
    assert {*doorstep.OBSERVATIONS, "physics"} == set(doorstep._native.OBSERVATION_PARTS)


def test_a_wrong_part_is_refused_by_its_place():
    rows = [
        ("lidar", "must be a sequence of parts ... (pass ('lidar',))"),
        (("lider",), "observations[0] is 'lider'; it must be one of ... (did you mean 'lidar'?)"),
        ((("lidar", 0),), "scale of observations[0] is 0; it must be a number, more than 0 and at most 1e+06"),
        ((("lidar", float("nan")),), "scale of observations[0] is nan; it must be"),
        ((("lidar", 1, 2),), "observations[0] is ('lidar', 1, 2); it must be one of"),
        (("lidar", "lidar"), "each part at most once ... has 'lidar' twice"),
    ]
    assert_refused(lambda parts: SimulatorConfig(4, observations=parts), rows)
    alone = {"num_agents": 1, "observations": ("partner_observations",)}
    assert_refused(lambda **rules: SimulatorConfig(4, **rules), [(alone, "that have values with num_agents=1")])


def test_observations_are_their_parts_by_name_times_their_scales():
    for num_agents in range(1, 9):
        for part in (*doorstep.OBSERVATIONS, "physics"):
            observations = ("agent_index",) if part == "agent_index" else (part, "agent_index")
            with Simulator(1, num_agents=num_agents, observations=observations, num_threads=1) as sim:
                assert sim.observations.shape[-1] == flat_size(observations, num_agents), part
                assert part_size(part, num_agents) == flat_size((part,), num_agents)
    parts = ("lidar", ("self_observations", 3.0), ("agent_index", 0.5), ("door_observations", 0.25), "steps_remaining")
    with Simulator(5, num_agents=3, observations=parts) as sim:
        steps(7, sim)
        pieces = []
        for part in parts:
            name, scale = (part, 1.0) if isinstance(part, str) else part
            values = sim.tensors[name] if name in sim.tensors else np.broadcast_to(np.arange(3)[:, None] / 2, (5, 3, 1))
            values = np.asarray(values, np.float32).reshape(5, 3, -1)
            pieces.append(values / (200 if name == "steps_remaining" else 1) * np.float32(scale))
        found, at = sim.observations.to_numpy(), 0
        for part, piece in zip(parts, pieces, strict=True):
            np.testing.assert_allclose(found[..., at : at + piece.shape[-1]], piece, rtol=1e-6, err_msg=str(part))
            at += piece.shape[-1]
        assert at == found.shape[-1]


def test_worlds_do_not_depend_on_what_is_observed_and_a_save_fits_all():
    with Simulator(4, seed=2, num_threads=1) as plain, Simulator(4, seed=2, observations=MIXED) as other:
        plain.actions = other.actions = np.full((4, 2, 4), (3, 0, 2, 1))
        steps(20, plain, other)
        assert plain.hash() == other.hash()
        expected = other.observations.copy_to_host()
        other.reset()
        other.restore(plain.save())
        np.testing.assert_array_equal(other.observations, expected)
