"""A handle carries its kind: every function of the headers that takes one refuses those of all other kinds."""

import ctypes
import re

import pytest

import doorstep
from doorstep._native import _generated as native
from doorstep._native import _render_generated as render
from doorstep._native import stage_names
from doorstep._native.calls import check
from doorstep._native.handle import new_handle
from doorstep._native.library import load
from doorstep._native.render import load_render
from doorstep.errors import Status
from header_parser import RENDER_HEADER_PATH, parse_header

# What handles refer to, by their types in the headers.
NAMES = {
    "ds_simulator": "a simulator", "ds_memory": "a memory", "ds_event": "an event", "ds_resource": "a CUDA resource",
    "ds_layer": "a layer", "ds_policy": "a policy", "ds_metrics": "a metrics store", "ds_series": "a series",
    "ds_config": "a configuration", "ds_shared_level": "a level", "ds_saved_state": "a saved state",
    "ds_engine": "an engine", "ds_cameras": "cameras",
}  # fmt: skip
# Of which the fixture has handles of its own.
RELEASED = ("ds_memory", "ds_metrics", "ds_series", "ds_shared_level", "ds_saved_state", "ds_engine")
HEADERS = (parse_header(), parse_header(RENDER_HEADER_PATH))
STRUCTS = dict(native.STRUCTURES + render.STRUCTURES)
# What is checked before the handle: numbers where 1 is out of range, and fields that may not be 0.
NUMBERS = {
    ("ds_request_queue_answer", "reason"): native.EpisodeReason.CANCELLED,
    ("ds_simulator_get_profile", "count"): len(stage_names()),
    ("ds_replica_set_policy", "kind"): native.PolicyKind.NATIVE,
}
FIELDS = {
    "ds_attachment": {"update": 1},
    "ds_row_copy": {"destination": 1, "source": 1},
    "ds_cameras_config": {"width": 1, "height": 1, "vertical_fov": 90, "outputs": 1, "rotation": (1, 0, 0, 0)},
}


def handle_type(parameter):
    """The type of the handle that a parameter takes, by value or in an array; "" if it takes none."""
    name = re.sub(r"^const (\w+)\*$", r"\1", parameter.type)
    return name if name in NAMES else ""


@pytest.fixture(scope="module")
def handles():
    """An open handle of each kind that exists without a GPU, by its type."""
    functions, policy = load(), doorstep.load_policy("general")
    config = doorstep.RolloutConfig(simulator=doorstep.SimulatorConfig(num_worlds=1))
    level = native.Level(struct_size=ctypes.sizeof(native.Level))
    check(functions.ds_level_default(ctypes.byref(level)))
    with doorstep.Simulator(1) as sim:
        saved = sim.save()
        made = {
            "ds_simulator": sim.handle,
            "ds_memory": new_handle(functions.ds_simulator_get_memory, sim.handle),
            "ds_event": new_handle(functions.ds_simulator_get_end, sim.handle),
            "ds_policy": policy.native_handle,
            "ds_layer": policy.layers[0].native_handle,
            "ds_config": config.native_handle,
            "ds_config simulator": config.simulator.native_handle,  # for the parameter of this name
            "ds_metrics": new_handle(functions.ds_metrics_create, 0),
            "ds_shared_level": new_handle(functions.ds_shared_level_create, ctypes.byref(level), 2),
            "ds_saved_state": new_handle(functions.ds_saved_state_create, saved, len(saved)),
            "ds_engine": new_handle(functions.ds_engine_create, config.native_handle, None, 0),
        }
        series = (made["ds_metrics"], native.SeriesKind.SKETCH, b"waits", b"", b"")
        made["ds_series"] = new_handle(functions.ds_metrics_open_series, *series)
        yield made
        for name in RELEASED:
            check(getattr(functions, f"{name}_release")(made[name]))
        check(functions.ds_event_close(made["ds_event"]))


def argument(function, parameter):
    """Something that the checks before that of the handle accept."""
    if parameter.type == "const char*":
        return b"views" if parameter.name == "name" else b"text"
    if not parameter.type.endswith("*"):
        return NUMBERS.get((function.name, parameter.name), 1)
    name = parameter.type.removeprefix("const ").rstrip("*")
    pointee = STRUCTS.get(name, ctypes.c_char * 65536)(**FIELDS.get(name, {}))
    if hasattr(pointee, "struct_size"):
        pointee.struct_size = ctypes.sizeof(pointee)
    return ctypes.byref(pointee)


def call(function, tested, handle, handles):
    """The message with which a function refuses a handle as one of its parameters; the others are of their kinds."""

    def value(parameter):
        kind = handle_type(parameter)
        if not kind:
            return argument(function, parameter)
        # No resources exist without a GPU: the first of several is refused.
        is_tested = parameter is tested or kind == "ds_resource"
        own = handle if is_tested else handles.get(f"{kind} {parameter.name}", handles[kind])
        return ctypes.byref(ctypes.c_uint64(own)) if parameter.type.endswith("*") else own

    library = load_render() if function.name.startswith(("ds_cameras", "ds_picture")) else load()
    status = getattr(library, function.name)(*(value(parameter) for parameter in function.parameters))
    assert status == Status.INVALID_ARGUMENT, function.name
    error = native.Error(struct_size=ctypes.sizeof(native.Error))
    check(load().ds_last_error(ctypes.byref(error)))
    return (error.message or b"").decode()


def test_a_handle_of_another_kind_is_refused_and_both_kinds_are_named(handles):
    assert {name for header in HEADERS for name in header.handles} == NAMES.keys()
    tested = 0
    for function in (function for header in HEADERS for function in header.functions):
        for parameter in filter(handle_type, function.parameters):
            expected = handle_type(parameter)
            for kind in (handles.keys() & NAMES.keys()) - {expected}:
                message = call(function, parameter, handles[kind], handles)
                refused = f" is the handle of {NAMES[kind]}; it must be that of {NAMES[expected]}"
                assert message.endswith(refused), (function.name, parameter.name)
            tested += 1
    assert tested > 130
    with pytest.raises(doorstep.ArgumentError, match="simulator is the handle of a policy; it must be that of a simu"):
        check(load().ds_simulator_step(handles["ds_policy"]))
