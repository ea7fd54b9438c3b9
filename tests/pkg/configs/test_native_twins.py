"""The native twins of configs: what Python says reaches them, and they live as long as they are used."""

import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from tests.pkg.configs.drawn_configs import draw_config, is_close

import doorstep
from doorstep import RolloutConfig, SimulatorConfig
from doorstep._native import _generated as native
from doorstep._native.configs import ConfigHandle
from doorstep.policy import SamplingParams
from doorstep.rollouts import ControllerConfig, SchedulerConfig

NATIVE = (
    SimulatorConfig, SamplingParams, RolloutConfig, *SchedulerConfig.registry.classes(),
    *ControllerConfig.registry.classes(),
)  # fmt: skip

PARTS = ("simulator", "scheduler", "controller", "metrics")


def live_configs():
    gc.collect()
    return doorstep.live_counts()["config"]


def native_device(device):
    """Kind and index; the GPU that is current has -1."""
    return {"cpu": (0, 0), "cuda": (1, -1), "cuda:3": (1, 3), "auto": (2, 0)}[device]


def assert_same(config, struct):
    """Each field of a struct is what the config says; written out for each kind of field."""
    for name, *_ in struct._fields_:
        value = getattr(struct, name)
        if name in ("struct_size", "padding", *PARTS, "devices", "device_index"):
            continue  # the parts and devices are compared elsewhere
        if name == "device_kind":
            assert (value, struct.device_index) == native_device(config.device)
        elif name == "stream":
            assert value == native.STREAM_OWN
        elif name == "num_devices":
            assert value == len(config.devices or ())
        elif name == "type":
            enumeration = native.Scheduler if isinstance(config, SchedulerConfig) else native.Controller
            assert enumeration(value).name.lower() == config.type
        elif name == "action_check":
            assert native.ActionCheck(value).name.lower() == config.action_check
        elif name == "observations":
            parts = [] if config.observations == "by_name" else config.observations
            numbers = list(native.OBSERVATION_PARTS)
            pairs = [(one, 1) if isinstance(one, str) else one for one in parts]
            assert value.parts[: value.num_parts] == [numbers.index(part) for part, _ in pairs]
            assert all(is_close(scale, found) for (_, scale), found in zip(pairs, value.scales, strict=False))
        elif getattr(config, name, ...) is None:
            assert value == {"num_threads": 0, "max_chunk": 0, "seed": -1}[name]
        elif hasattr(config, name):
            assert is_close(getattr(config, name), value), name


def test_every_field_reaches_the_twin():
    for cls in NATIVE:
        random = Random(cls.__name__)
        for _ in range(30):
            config = draw_config(cls, random)
            assert_same(config, config._handle().struct())


def test_a_composite_is_made_of_its_parts():
    random = Random(5)
    for _ in range(50):
        config = draw_config(RolloutConfig, random)
        handle = config._handle()
        for part in PARTS:
            assert_same(getattr(config, part), handle.part(native.ConfigKind[part.upper()]).struct())
        struct = handle.struct()
        told = [(device.kind, device.index) for device in struct.devices[: struct.num_devices]]
        assert told == list(map(native_device, config.devices or ()))


def test_parts_and_the_config_of_an_engine_live_as_long_as_they_are_used():
    before, config = live_configs(), RolloutConfig(SimulatorConfig(7), queue_capacity=77)
    part = ConfigHandle.create(config.kind, config.native_fields()).part(native.ConfigKind.SIMULATOR)
    del config
    assert (live_configs(), part.struct().num_worlds) == (before + 1, 7)
    with doorstep.RolloutEngine(RolloutConfig(SimulatorConfig(3), queue_capacity=77)) as engine:
        of_engine = engine._engine.config()
    del engine
    assert (live_configs() > before + 1, of_engine.struct().queue_capacity) == (True, 77)
    del part, of_engine
    assert live_configs() == before


def test_a_config_has_one_twin_and_a_copy_its_own():
    before, config = live_configs(), SimulatorConfig(3)
    barrier = threading.Barrier(8)

    def handle_of(of):
        barrier.wait()
        return of.native_handle

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(handle_of, [config] * 8))) == 1
    assert live_configs() == before + 1
    other = pickle.loads(pickle.dumps(config))
    assert other == config
    assert other.native_handle != config.native_handle
    assert config.replace(seed=1).native_handle != config.native_handle
    assert (hash(config), repr(config)) == (hash(SimulatorConfig(3)), repr(SimulatorConfig(3)))
    del config, other
    assert live_configs() == before


def test_the_library_refuses_with_the_same_class():
    rows = [
        (native.ConfigKind.SIMULATOR, {"num_worlds": 0}), (native.ConfigKind.SIMULATOR, {"num_agents": 9}),
        (native.ConfigKind.SCHEDULER, {"max_chunk": -1}), (native.ConfigKind.SAMPLING, {"top_p": 0.0}),
    ]  # fmt: skip
    for kind, values in rows:
        (name,) = values
        with pytest.raises(doorstep.ArgumentError, match=f"^{name} is ") as caught:
            ConfigHandle.create(kind, values)
        assert caught.value.argument == name
