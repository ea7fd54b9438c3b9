"""The C API of the library that draws checks what it is given by itself: others than the Python package may call it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep._native import CAMERA_TENSORS, Renderer, check, load
from doorstep._native._generated import LayoutEntry, TensorInfo
from doorstep._native._render_generated import (
    CamerasConfig,
    CamerasInfo,
    PictureConfig,
    PictureObject,
    PictureShape,
    RendererInfo,
)
from doorstep._native.c_api import function_table
from doorstep._native.render import load_render
from doorstep.cameras import MIN_FOV
from doorstep.errors import Status

NAN = float("nan")


@pytest.fixture
def sim() -> Iterator[doorstep.Simulator]:
    with doorstep.Simulator(2, num_threads=1) as simulator:
        yield simulator


def cameras_config(**changed: Any) -> CamerasConfig:
    fields = {
        "renderer": Renderer.RAYCAST,
        "width": 8,
        "height": 6,
        "vertical_fov": 90.0,
        "outputs": 3,
        "position": (0, 0, 1.5),
        "rotation": (1, 0, 0, 0),
    }
    return CamerasConfig(struct_size=ctypes.sizeof(CamerasConfig), **{**fields, **changed})


def create(sim: doorstep.Simulator, config: CamerasConfig) -> int:
    handle = ctypes.c_uint64()
    check(load_render().ds_cameras_create(sim.handle, ctypes.byref(config), ctypes.byref(handle)))
    return handle.value


BAD_CAMERAS: list[tuple[dict[str, Any], str, str]] = [
    ({"renderer": 4}, "renderer", "0 to 3"),
    ({"renderer": -1}, "renderer", "0 to 3"),
    ({"width": 0}, "width", "1 to 4096"),
    ({"width": 4097}, "width", "1 to 4096"),
    ({"height": -5}, "height", "1 to 4096"),
    ({"vertical_fov": 0.0}, "fov", "more than 0 and less than 180"),
    ({"vertical_fov": 180.0}, "fov", "more than 0 and less than 180"),
    ({"vertical_fov": NAN}, "fov", "more than 0 and less than 180"),
    ({"vertical_fov": 0.0999999}, "fov", f"at least {MIN_FOV:g}"),
    ({"outputs": 0}, "outputs", "1 to 15"),
    ({"outputs": 16}, "outputs", "1 to 15"),
    ({"position": (0, NAN, 0)}, "position", "finite"),
    ({"rotation": (0, 0, 0, 0)}, "rotation", "unit quaternion"),
    ({"rotation": (NAN, 0, 0, 0)}, "rotation", "unit quaternion"),
    ({"material": b"nonsense"}, "material", "vulkan"),
    ({"struct_size": 3}, "config", "struct_size is 3"),
]


def test_the_smallest_field_of_view_is_that_of_the_package(sim: doorstep.Simulator) -> None:
    check(load_render().ds_cameras_close(create(sim, cameras_config(vertical_fov=MIN_FOV))))


@pytest.mark.parametrize(("changed", "argument", "requirement"), BAD_CAMERAS, ids=str)
def test_impossible_cameras_are_refused_by_name(
    changed: dict[str, Any], argument: str, requirement: str, sim: doorstep.Simulator
) -> None:
    config = cameras_config()
    for name, value in changed.items():
        setattr(config, name, value)
    with pytest.raises(doorstep.ArgumentError, match=requirement) as raised:
        create(sim, config)
    assert raised.value.argument == argument
    load_render().ds_cameras_close(create(sim, cameras_config()))  # nothing was left behind


def test_a_simulator_has_one_set_of_cameras(sim: doorstep.Simulator) -> None:
    first = create(sim, cameras_config())
    memories, allocated = doorstep.live_counts()["memory"], sim.allocated_bytes
    with pytest.raises(doorstep.ArgumentError, match="attached to this simulator already"):
        create(sim, cameras_config(width=4096, height=4096))
    assert doorstep.live_counts()["memory"] == memories
    assert sim.allocated_bytes == allocated
    sim.step()
    check(load_render().ds_cameras_close(first))


def test_cameras_that_cannot_be_had_leave_the_count_of_bytes(sim: doorstep.Simulator) -> None:
    allocated = sim.allocated_bytes
    with pytest.raises((doorstep.ShaderError, doorstep.RendererError)):
        create(sim, cameras_config(renderer=Renderer.VULKAN, material=b"nonsense"))
    assert sim.allocated_bytes == allocated


def test_handles_that_are_no_longer_cameras_are_closed(sim: doorstep.Simulator) -> None:
    functions = load_render()
    handle, info, memory = create(sim, cameras_config()), TensorInfo(), ctypes.c_uint64()
    info.struct_size = ctypes.sizeof(TensorInfo)

    def read(cameras: int) -> None:
        check(functions.ds_cameras_get_tensor(cameras, 0, ctypes.byref(info), ctypes.byref(memory)))

    read(handle)
    assert list(info.shape[: info.rank]) == [2, 2, 6, 8, 4]
    check(load().ds_memory_release(memory.value))
    sim.close()
    with pytest.raises(doorstep.ClosedError):  # the cameras ended with their simulator
        read(handle)
    check(functions.ds_cameras_close(handle))
    for stale in (handle, 0):
        with pytest.raises(doorstep.ClosedError):
            read(stale)
        with pytest.raises(doorstep.ClosedError):
            check(functions.ds_cameras_close(stale))
    with pytest.raises(doorstep.ClosedError):
        create(sim, cameras_config())


def test_tensors_that_were_not_asked_for_are_refused_by_name(sim: doorstep.Simulator) -> None:
    functions, info, memory = load_render(), TensorInfo(), ctypes.c_uint64()
    info.struct_size = ctypes.sizeof(TensorInfo)
    handle = create(sim, cameras_config(outputs=1 << 1))
    for tensor, row in enumerate(CAMERA_TENSORS):
        status = functions.ds_cameras_get_tensor(handle, tensor, ctypes.byref(info), ctypes.byref(memory))
        if row.name == "depth":
            check(status)
            check(load().ds_memory_release(memory.value))
            continue
        with pytest.raises(doorstep.ArgumentError, match=f"these cameras have no {row.name}"):
            check(status)
    for tensor in (-1, len(CAMERA_TENSORS)):
        with pytest.raises(doorstep.ArgumentError, match="0 to 3"):
            check(functions.ds_cameras_get_tensor(handle, tensor, ctypes.byref(info), ctypes.byref(memory)))
    check(functions.ds_cameras_close(handle))


def test_null_pointers_are_refused(sim: doorstep.Simulator) -> None:
    functions = load_render()
    config, count, handle = cameras_config(), ctypes.c_uint64(), ctypes.c_uint64()
    objects, picture = (PictureObject * 1)(), picture_config()
    calls: list[tuple[str, Any, tuple[Any, ...]]] = [
        ("config", functions.ds_cameras_create, (sim.handle, None, ctypes.byref(handle))),
        ("cameras", functions.ds_cameras_create, (sim.handle, ctypes.byref(config), None)),
        ("info", functions.ds_cameras_get_info, (0, None)),
        ("count", functions.ds_cameras_count, (None,)),
        ("entries", functions.ds_render_layout, (None, ctypes.byref(count))),
        ("count", functions.ds_render_layout, (ctypes.byref(ctypes.POINTER(LayoutEntry)()), None)),
        ("info", functions.ds_renderer_get_info, (Renderer.EMBREE, None)),
        ("objects", functions.ds_picture_draw, (None, 1, ctypes.byref(picture), None, 0)),
        ("config", functions.ds_picture_draw, (objects, 1, None, None, 0)),
        ("rgb", functions.ds_picture_draw, (objects, 1, ctypes.byref(picture), None, 0)),
    ]
    for argument, function, arguments in calls:
        with pytest.raises(doorstep.ArgumentError, match=f"^{argument} is a null pointer"):
            check(function(*arguments))


def test_renderers_describe_themselves() -> None:
    info = RendererInfo(struct_size=ctypes.sizeof(RendererInfo))
    for renderer in (Renderer.RAYCAST, Renderer.EMBREE):
        check(load_render().ds_renderer_get_info(renderer, ctypes.byref(info)))
        assert info.description
    for other in (Renderer.AUTO, len(Renderer)):
        with pytest.raises(doorstep.ArgumentError, match="1 to 3"):
            check(load_render().ds_renderer_get_info(other, ctypes.byref(info)))


def test_cameras_tell_what_draws(sim: doorstep.Simulator) -> None:
    handle = create(sim, cameras_config(renderer=Renderer.AUTO))
    info = CamerasInfo(struct_size=ctypes.sizeof(CamerasInfo))
    check(load_render().ds_cameras_get_info(handle, ctypes.byref(info)))
    assert info.renderer == Renderer.RAYCAST
    assert info.device
    check(load_render().ds_cameras_close(handle))


def test_opening_checks_both_versions() -> None:
    table = function_table()
    check(load_render().ds_render_open(table, doorstep.__version__.encode()))
    with pytest.raises(doorstep.LibraryError, match=r"the caller is version 99\.0\.0"):
        check(load_render().ds_render_open(table, b"99.0.0"))
    other = (ctypes.c_uint32 * 2).from_buffer_copy(ctypes.string_at(table, 8))
    other[0] += 1  # its abi_version
    assert load_render().ds_render_open(ctypes.addressof(other), b"0.1.0") == Status.LIBRARY
    assert load_render().ds_render_open(None, b"0.1.0") == Status.INVALID_ARGUMENT


# ---- Pictures


def picture_config(**changed: Any) -> PictureConfig:
    fields = {
        "width": 4,
        "height": 3,
        "samples": 1,
        "vertical_fov": 60.0,
        "position": (0, 0, 1),
        "rotation": (1, 0, 0, 0),
        "to_sun": (0, 0, 1),
        "sun": 1.0,
        "sky": 0.5,
        "corner_reach": 1.0,
        "num_threads": 1,
    }
    return PictureConfig(struct_size=ctypes.sizeof(PictureConfig), **{**fields, **changed})


def draw(config: PictureConfig, objects: Any = (), nbytes: int = 4 * 3 * 3) -> np.ndarray[Any, Any]:
    rgb = np.zeros((3, 4, 3), np.uint8)
    rows = (PictureObject * len(objects))(*objects)
    check(load_render().ds_picture_draw(rows, len(objects), ctypes.byref(config), rgb.ctypes.data, nbytes))
    return rgb


def cube(**changed: Any) -> PictureObject:
    fields = {
        "shape": PictureShape.BOX,
        "centre": (0, 5, 1),
        "rotation": (1, 0, 0, 0),
        "size": (3, 3, 3),
        "colour": (1, 0.5, 0),
    }
    return PictureObject(**{**fields, **changed})


BAD_PICTURES: list[tuple[dict[str, Any], str, str]] = [
    ({"width": 0}, "width", "1 to 4096"),
    ({"height": 5000}, "height", "1 to 4096"),
    ({"samples": 9}, "samples", "1 to 8"),
    ({"shadows": 2}, "shadows", "0 to 1"),
    ({"orthographic": -1}, "orthographic", "0 to 1"),
    ({"num_threads": 1025}, "num_threads", "0 to 1024"),
    ({"first_row": -1}, "first_row", "0 to 2"),
    ({"first_row": 3}, "first_row", "0 to 2"),
    ({"num_rows": -1}, "num_rows", "0 to 3"),
    ({"first_row": 2, "num_rows": 2}, "num_rows", "0 to 1"),
    ({"vertical_fov": 180.0}, "fov", "less than 180"),
    ({"vertical_fov": 0.0, "orthographic": 1}, "fov", "more than 0"),
    ({"vertical_fov": float("inf"), "orthographic": 1}, "fov", "more than 0"),
    ({"position": (NAN, 0, 0)}, "position", "finite"),
    ({"rotation": (1, 1, 0, 0)}, "rotation", "unit quaternion"),
    ({"ground": (0, 0, 1.5)}, "ground", "0 to 1"),
    ({"background": (0, NAN, 0)}, "background", "0 to 1"),
    ({"eye": (-1, 0, 0)}, "eye", "0 to 1"),
    ({"pupil": (2, 0, 0)}, "pupil", "0 to 1"),
    ({"to_sun": (0, 0, 2)}, "to_sun", "unit vector"),
    ({"sun": -1.0}, "sun", "0 to 10"),
    ({"sun_radius": 2.0}, "sun_radius", "0 to 1"),
    ({"sky": NAN}, "sky", "0 to 10"),
    ({"bounce": 11.0}, "bounce", "0 to 10"),
    ({"corner_reach": 0.0}, "corner_reach", "more than 0"),
]


@pytest.mark.parametrize(("changed", "argument", "requirement"), BAD_PICTURES, ids=str)
def test_impossible_pictures_are_refused_by_name(changed: dict[str, Any], argument: str, requirement: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=requirement) as raised:
        draw(picture_config(**changed))
    assert raised.value.argument == argument


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": 9},
        {"centre": (NAN, 0, 0)},
        {"size": (1, NAN, 1)},
        {"rotation": (0, 0, 0, 0)},
        {"colour": (0, 0, 1.5)},
        {"colour": (0, NAN, 0)},
        {"opacity": -0.5},
        {"shine": 2.0},
        {"bevel": NAN},
        {"line_width": NAN},
        {"line_period": float("inf")},
    ],
    ids=str,
)
def test_impossible_objects_are_named_by_their_number_unless_they_have_no_shape(changed: dict[str, Any]) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"objects\[1\]") as raised:
        draw(picture_config(), [cube(), cube(**changed)])
    assert raised.value.argument == "objects"
    without_shape = cube(**{**changed, "shape": PictureShape.NONE})
    assert (draw(picture_config(), [cube(), without_shape]) == draw(picture_config(), [cube()])).all()


def test_rows_are_those_of_the_whole_picture_and_no_others_are_written() -> None:
    whole = draw(picture_config(samples=2), [cube()])
    middle = draw(picture_config(samples=2, first_row=1, num_rows=1), [cube()])
    assert (middle[1] == whole[1]).all()
    assert not middle[[0, 2]].any()
    assert (draw(picture_config(samples=2, first_row=1), [cube()])[1:] == whole[1:]).all()


def test_a_buffer_of_another_size_is_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="it must be 36"):
        draw(picture_config(), nbytes=35)


def test_what_has_no_shape_is_not_drawn() -> None:
    empty = draw(picture_config())
    assert (draw(picture_config(), [cube(shape=PictureShape.NONE)]) == empty).all()
    assert (draw(picture_config(), [cube()]) != empty).any()
