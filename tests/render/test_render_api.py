"""The C API of the library that draws checks what it is given by itself: others than the Python package may call it."""

import ctypes
import functools

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep
from doorstep._native import CAMERA_TENSORS, Renderer, check, load
from doorstep._native import _render_generated as generated
from doorstep._native._generated import LayoutEntry, TensorInfo
from doorstep._native._render_generated import CamerasConfig, PictureConfig, PictureObject, PictureShape
from doorstep._native.c_api import function_table
from doorstep._native.render import load_render
from doorstep.cameras import MIN_FOV
from doorstep.errors import Status

NAN = float("nan")
CAMERAS = {
    "renderer": Renderer.RAYCAST, "width": 8, "height": 6, "vertical_fov": 90.0, "outputs": 3,
    "position": (0, 0, 1.5), "rotation": (1, 0, 0, 0),
}  # fmt: skip
# Wrong values of fields; the fields whose arguments have other names.
BAD_CAMERAS = {
    "renderer": ((4, -1), "0 to 3"), "width": ((0, 4097), "1 to 4096"), "height": ((-5,), "1 to 4096"),
    "vertical_fov": ((0.0, 180.0, NAN), "more than 0 and less than 180"), "outputs": ((0, 16), "1 to 15"),
    "position": (((0, NAN, 0),), "finite"), "rotation": (((0, 0, 0, 0), (NAN, 0, 0, 0)), "unit quaternion"),
    "material": ((b"nonsense",), "vulkan"), "struct_size": ((3,), "struct_size is 3"),
}  # fmt: skip
ARGUMENTS = {"vertical_fov": "fov", "struct_size": "config"}


@pytest.fixture
def sim():
    with doorstep.Simulator(2, num_threads=1) as simulator:
        yield simulator


def create(sim, **changed):
    config = CamerasConfig(**{"struct_size": ctypes.sizeof(CamerasConfig), **CAMERAS, **changed})
    handle = ctypes.c_uint64()
    check(load_render().ds_cameras_create(sim.handle, ctypes.byref(config), ctypes.byref(handle)))
    return handle.value


def close(cameras):
    check(load_render().ds_cameras_close(cameras))


def read(cameras, tensor=0):
    """The shape of a tensor, whose memory is released."""
    info, memory = TensorInfo(struct_size=ctypes.sizeof(TensorInfo)), ctypes.c_uint64()
    check(load_render().ds_cameras_get_tensor(cameras, tensor, ctypes.byref(info), ctypes.byref(memory)))
    check(load().ds_memory_release(memory.value))
    return list(info.shape[: info.rank])


def check_refused(name, values, requirement, call):
    for value in values:
        refuses(requirement, call, argument=ARGUMENTS.get(name, name), **{name: value})


def test_impossible_cameras_are_refused_by_name_and_nothing_is_left_behind(sim):
    allocated, live = sim.allocated_bytes, doorstep.live_counts()
    for name, (values, requirement) in (*BAD_CAMERAS.items(), ("vertical_fov", ([0.0999999], f"at least {MIN_FOV:g}"))):
        check_refused(name, values, requirement, functools.partial(create, sim))
    missing = doorstep.ShaderError, doorstep.RendererError
    refuses(None, create, sim, renderer=Renderer.VULKAN, material=b"nonsense", error=missing)
    assert (sim.allocated_bytes, doorstep.live_counts()) == (allocated, live)
    close(create(sim, vertical_fov=MIN_FOV))


def test_a_simulator_has_one_set_of_cameras_with_the_outputs_asked_for_which_ends_with_it(sim):
    depth = next(number for number, row in enumerate(CAMERA_TENSORS) if row.name == "depth")
    handle = create(sim, renderer=Renderer.AUTO, outputs=1 << depth)
    info = generated.CamerasInfo(struct_size=ctypes.sizeof(generated.CamerasInfo))
    check(load_render().ds_cameras_get_info(handle, ctypes.byref(info)))
    assert (info.renderer, bool(info.device)) == (Renderer.RAYCAST, True)
    memories, allocated = doorstep.live_counts()["memory"], sim.allocated_bytes
    refuses("attached to this simulator already", create, sim, width=4096, height=4096)
    assert (doorstep.live_counts()["memory"], sim.allocated_bytes) == (memories, allocated)
    sim.step()
    assert read(handle, depth) == [2, 2, 6, 8, 1]
    for number, row in enumerate(CAMERA_TENSORS):
        if number != depth:
            refuses(f"these cameras have no {row.name}", read, handle, number)
    for number in (-1, len(CAMERA_TENSORS)):
        refuses("0 to 3", read, handle, number)
    sim.close()
    refuses(None, read, handle, depth, error=doorstep.ClosedError)
    close(handle)
    for use, stale in ((read, handle), (close, handle), (read, 0), (close, 0), (create, sim)):
        refuses(None, use, stale, error=doorstep.ClosedError)


def test_null_pointers_are_refused(sim):
    functions = load_render()
    config = CamerasConfig(struct_size=ctypes.sizeof(CamerasConfig), **CAMERAS)
    count, handle = ctypes.c_uint64(), ctypes.c_uint64()
    objects, picture = (PictureObject * 1)(), picture_config()
    draw_picture, layout = functions.ds_picture_draw, functions.ds_render_layout
    for argument, function, *arguments in (
        ("config", functions.ds_cameras_create, sim.handle, None, ctypes.byref(handle)),
        ("cameras", functions.ds_cameras_create, sim.handle, ctypes.byref(config), None),
        ("info", functions.ds_cameras_get_info, 0, None), ("count", functions.ds_cameras_count, None),
        ("info", functions.ds_renderer_get_info, Renderer.EMBREE, None), ("entries", layout, None, ctypes.byref(count)),
        ("count", layout, ctypes.byref(ctypes.POINTER(LayoutEntry)()), None),
        ("objects", draw_picture, None, 1, ctypes.byref(picture), None, 0),
        ("config", draw_picture, objects, 1, None, None, 0),
        ("rgb", draw_picture, objects, 1, ctypes.byref(picture), None, 0),
    ):  # fmt: skip
        refuses(f"^{argument} is a null pointer", lambda call, given: check(call(*given)), function, arguments)


def test_renderers_describe_themselves_and_opening_checks_both_versions():
    info, descriptions = generated.RendererInfo(struct_size=ctypes.sizeof(generated.RendererInfo)), set()
    for renderer in (Renderer.RAYCAST, Renderer.EMBREE):
        check(load_render().ds_renderer_get_info(renderer, ctypes.byref(info)))
        descriptions.add(bytes(info.description))
    assert len(descriptions - {b""}) == 2
    for other in (Renderer.AUTO, len(Renderer)):
        refuses("1 to 3", lambda one: check(load_render().ds_renderer_get_info(one, ctypes.byref(info))), other)
    table = function_table()
    check(load_render().ds_render_open(table, doorstep.__version__.encode()))
    with pytest.raises(doorstep.LibraryError, match=r"the caller is version 99\.0\.0"):
        check(load_render().ds_render_open(table, b"99.0.0"))
    other = (ctypes.c_uint32 * 2).from_buffer_copy(ctypes.string_at(table, 8))
    other[0] += 1  # its abi_version
    assert load_render().ds_render_open(ctypes.addressof(other), b"0.1.0") == Status.LIBRARY
    assert load_render().ds_render_open(None, b"0.1.0") == Status.INVALID_ARGUMENT


# ---- Pictures

PICTURE = {
    "width": 4, "height": 3, "samples": 1, "vertical_fov": 60.0, "position": (0, 0, 1), "rotation": (1, 0, 0, 0),
    "to_sun": (0, 0, 1), "sun": 1.0, "sky": 0.5, "corner_reach": 1.0, "num_threads": 1,
}  # fmt: skip
CUBE = {
    "shape": PictureShape.BOX, "centre": (0, 5, 1), "rotation": (1, 0, 0, 0), "size": (3, 3, 3),
    "colour": (1, 0.5, 0),
}  # fmt: skip
BAD_PICTURES = {
    "width": ((0,), "1 to 4096"), "height": ((5000,), "1 to 4096"), "samples": ((9,), "1 to 8"),
    "num_threads": ((1025,), "0 to 1024"), "first_row": ((-1, 3), "0 to 2"), "num_rows": ((-1,), "0 to 3"),
    "vertical_fov": ((180.0,), "less than 180"), "position": (((NAN, 0, 0),), "finite"),
    "rotation": (((1, 1, 0, 0),), "unit quaternion"), "to_sun": (((0, 0, 2),), "unit vector"),
    "corner_reach": ((0.0,), "more than 0"), "sun_radius": ((2.0,), "0 to 1"),
    **dict.fromkeys(("shadows", "orthographic"), ((-1, 2), "0 to 1")),
    **dict.fromkeys(("ground", "background", "eye", "pupil"), (((0, 0, 1.5), (0, NAN, 0), (-1, 0, 0)), "0 to 1")),
    **dict.fromkeys(("sun", "sky", "bounce"), ((-1.0, 11.0, NAN), "0 to 10")),
}  # fmt: skip
BAD_OBJECTS = {
    "shape": (9,), "centre": ((NAN, 0, 0),), "size": ((1, NAN, 1),), "rotation": ((0, 0, 0, 0),),
    "colour": ((0, 0, 1.5), (0, NAN, 0)), "opacity": (-0.5,), "shine": (2.0,), "bevel": (NAN,), "line_width": (NAN,),
    "line_period": (float("inf"),),
}  # fmt: skip


def picture_config(**changed):
    return PictureConfig(struct_size=ctypes.sizeof(PictureConfig), **{**PICTURE, **changed})


def draw(*objects, nbytes=4 * 3 * 3, **changed):
    rgb, config = np.zeros((3, 4, 3), np.uint8), picture_config(**changed)
    rows = (PictureObject * len(objects))(*(PictureObject(**one) for one in objects))
    check(load_render().ds_picture_draw(rows, len(objects), ctypes.byref(config), rgb.ctypes.data, nbytes))
    return rgb


def test_impossible_pictures_are_refused_by_name():
    for name, (values, requirement) in BAD_PICTURES.items():
        check_refused(name, values, requirement, draw)
    check_refused("vertical_fov", (0.0, float("inf")), "more than 0", functools.partial(draw, orthographic=1))
    check_refused("num_rows", [2], "0 to 1", functools.partial(draw, first_row=2))
    refuses("it must be 36", draw, nbytes=35)


def test_impossible_objects_are_named_by_their_number_unless_they_have_no_shape_and_so_are_not_drawn():
    alone = draw(CUBE)
    assert (alone != draw()).any()
    for changed in [{name: value} for name, values in BAD_OBJECTS.items() for value in values]:
        refuses(r"objects\[1\]", draw, CUBE, {**CUBE, **changed}, argument="objects")
        assert (draw(CUBE, {**CUBE, **changed, "shape": PictureShape.NONE}) == alone).all()
    assert (draw({**CUBE, "shape": PictureShape.NONE}) == draw()).all()
