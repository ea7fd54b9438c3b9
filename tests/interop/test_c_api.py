"""Handles of the C API carry their kind. Programs that use it are those of the documentation (tests/docs)."""

import pytest

import doorstep
from doorstep._native.calls import check
from doorstep._native.library import load
from doorstep._native.render import load_render

# What ends an object, and what its handle refers to: each kind has a table of its own, which all functions look into.
ENDS = {
    "simulator_close": "a simulator", "memory_release": "a memory", "event_close": "an event",
    "resource_release": "a CUDA resource", "layer_release": "a layer", "policy_release": "a policy",
    "metrics_release": "a metrics store", "config_release": "a configuration",
    "shared_level_release": "a level", "saved_state_release": "a saved state", "engine_release": "an engine",
    "cameras_close": "cameras",
}  # fmt: skip


def test_a_handle_of_another_kind_is_refused_and_both_kinds_are_named():
    policy, config = doorstep.load_policy("general"), doorstep.SimulatorConfig(1)
    with doorstep.Simulator(1) as sim:
        handles = {
            "a simulator": sim.handle, "a policy": policy.native_handle, "a configuration": config.native_handle,
            "a layer": policy.layers[0].native_handle,
        }  # fmt: skip
        for name, expected in ENDS.items():
            end = getattr(load_render() if name == "cameras_close" else load(), f"ds_{name}")
            for kind in handles.keys() - {expected}:
                with pytest.raises(doorstep.ArgumentError, match=f"handle of {kind}; it must be that of {expected}"):
                    check(end(handles[kind]))
        sim.step()
