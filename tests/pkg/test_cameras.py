"""Cameras: what agents see is in tensors of the simulator; tests/render/test_renderers.py looks at every pixel."""

import copy
import math
import os
import pickle
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.live_objects import alive
from tests.refuses import assert_refused
from tests.scenes import play, random_actions, steps

import doorstep
from doorstep import Cameras, EntityKind
from doorstep._native import camera_count

ALL = {"rgb": True, "depth": True, "segmentation": True, "normals": True}
BEHIND = (0.0, 0.0, 0.0, 1.0)  # half a turn about the vertical axis
EYE = (0.0, 0.0, 1.5)

on_the_cpu = pytest.mark.parametrize("renderer", ["raycast", "embree"])


@pytest.fixture(autouse=True)
def _no_cameras_are_left():
    before = camera_count()
    yield
    assert camera_count() == before


def make(num_worlds=3, *, cameras=None, **settings):
    chosen = Cameras(**{"width": 33, "height": 21, **ALL, **(cameras or {})})
    return doorstep.Simulator(num_worlds, **{"num_threads": 1, "cameras": chosen, **settings})


def views(sim):
    """Copies of what the cameras show."""
    assert sim.cameras is not None
    return {name: sim.tensors[name].copy_to_host() for name in sim.cameras.outputs}


def same(left, right):
    return left.keys() == right.keys() and all((left[name] == right[name]).all() for name in left)


def place(sim, world, agent_y, cube_y, yaw=0.0):
    """Agent 0 in the middle of a world's first room, and before it the first cube, 3 metres wide; and looks."""
    positions, rotations = sim.state.body_positions.to_numpy(), sim.state.body_rotations.to_numpy()
    positions[world, 0] = (0, agent_y, 0)
    rotations[world, 0] = (math.cos(yaw / 2), 0, 0, math.sin(yaw / 2))
    positions[world, 1] = (-8, 1, 0)
    positions[world, 2] = (0, cube_y, 1.5)
    rotations[world, 2] = (1, 0, 0, 0)
    sim.refresh()


# ---- Tensors


def test_the_tensors_asked_for_come_after_all_others():
    with make(cameras={"rgb": False, "normals": False}) as sim, doorstep.Simulator(1) as plain:
        assert list(sim.tensors) == [*plain.tensors, "depth", "segmentation"]
    with make() as sim:
        assert {name: (str(sim.tensors[name].dtype), sim.tensors[name].shape) for name in list(sim.tensors)[-4:]} == {
            "rgb": ("uint8", (3, 2, 21, 33, 4)),
            "depth": ("float32", (3, 2, 21, 33, 1)),
            "segmentation": ("uint8", (3, 2, 21, 33, 2)),
            "normals": ("float32", (3, 2, 21, 33, 3)),
        }
        for name in ("rgb", "depth", "segmentation", "normals"):
            tensor = sim.tensors[name]
            assert getattr(sim, name) is tensor
            assert tensor.readonly
            assert tensor.__array_interface__["data"][0] % 256 == 0
            assert tensor.to_numpy().flags.c_contiguous
            assert np.shares_memory(np.from_dlpack(tensor), tensor.to_numpy())
            assert (tensor.copy_to_host() == tensor.to_numpy()).all()


def test_they_are_there_if_asked_for_and_can_be_neither_set_nor_bound():
    with doorstep.Simulator(1) as plain, make(cameras={"depth": False}) as sim:
        assert (plain.cameras, plain.renderer) == (None, None)
        assert "rgb" not in plain.tensors
        assert_refused(lambda _: plain.rgb, [(None, "Cameras(rgb=True)")], argument="cameras")
        assert_refused(lambda _: sim.depth, [(None, "Cameras(depth=True)")], argument="cameras")
    with make() as sim:
        before, depth = views(sim), np.zeros((3, 2, 21, 33, 1), np.float32)
        with pytest.raises(doorstep.ArgumentError, match="only the simulator writes"):
            sim.rgb = np.zeros((3, 2, 21, 33, 4), np.uint8)
        assert_refused(sim.bind, [({"depth": depth}, "cannot be bound")], argument="depth")
        with pytest.raises(doorstep.ArgumentError, match="only the simulator writes"):
            sim.depth.copy_from_host(depth)
        assert same(views(sim), before)


def test_tensors_outlive_the_simulator():
    sim = make()
    array, tensor = sim.rgb.to_numpy(), sim.depth
    before = array.copy()
    sim.close()
    assert (array == before).all()
    assert tensor.to_numpy().shape == (3, 2, 21, 33, 1)
    with pytest.raises(doorstep.ClosedError):
        _ = sim.rgb
    with pytest.raises(doorstep.ClosedError):
        _ = sim.tensors
    del tensor
    assert doorstep.live_counts()["memory"] == 1
    del array
    assert not alive()


# ---- Pictures


@on_the_cpu
def test_depth_is_along_the_axis_and_kinds_and_slots_are_those_of_the_state(renderer):
    with make(cameras={"renderer": renderer}) as sim:
        place(sim, world=1, agent_y=4, cube_y=9)
        depth, kinds = sim.depth.to_numpy()[1, 0, ..., 0], sim.segmentation.to_numpy()[1, 0]
        assert depth[10, 16] == pytest.approx(9 - 1.5 - 4, rel=1e-5)
        assert tuple(kinds[10, 16]) == (EntityKind.CUBE, 2)
        cube = (kinds[..., 0] == EntityKind.CUBE) & (kinds[..., 1] == 2)
        assert np.allclose(depth[cube & (depth < 4)], 3.5, rtol=1e-5)  # its near face is at one depth everywhere
        assert np.allclose(sim.normals.to_numpy()[1, 0, 10, 16], (0, -1, 0), atol=1e-6)
        # Straight down from 1.5 metres at 50 degrees: the last row's centre is at tan(50 degrees) * 20 / 21.
        assert tuple(kinds[20, 16]) == (6, 0)
        assert depth[20, 16] == pytest.approx(1.5 / (math.tan(math.radians(50)) * 20 / 21), rel=1e-5)


@on_the_cpu
def test_the_field_of_view_is_vertical_and_pixels_are_square(renderer):
    """A face 3 metres wide and high, 3.5 metres away, takes 3 / 3.5 / (2 tan(fov / 2)) of the rows."""
    eye = {"position": (0.0, 0.0, 1.5), "fov": 60.0, "renderer": renderer}
    for width, height in ((101, 101), (201, 101), (51, 101)):
        with make(1, cameras={**eye, "width": width, "height": height}) as sim:
            place(sim, world=0, agent_y=4, cube_y=9)
            is_face = (sim.segmentation.to_numpy()[0, 0, ..., 0] == EntityKind.CUBE) & (
                np.abs(sim.depth.to_numpy()[0, 0, ..., 0] - 3.5) < 0.01
            )
            expected = 3 / 3.5 / (2 * math.tan(math.radians(30))) * height
            rows, columns = is_face.any(axis=1).sum(), is_face.any(axis=0).sum()
            assert abs(rows - min(expected, height)) <= 1
            assert abs(columns - min(expected, width)) <= 1


@on_the_cpu
def test_the_pose_is_in_the_agent_s_frame(renderer):
    """Half a turn of the camera sees what half a turn of the agent sees; a camera moved forward is nearer."""
    with make(1, cameras={"renderer": renderer}) as sim:
        place(sim, world=0, agent_y=4, cube_y=9, yaw=math.pi / 2)
        assert sim.segmentation.to_numpy()[0, 0, 10, 16, 0] == EntityKind.WALL
        assert sim.depth.to_numpy()[0, 0, 10, 16, 0] == pytest.approx(10, rel=1e-4)  # the wall at x = -10
    for pose, expected in (
        ({"rotation": BEHIND}, 4.0),  # the wall at y = 0
        ({"position": (0.0, 2.0, 1.5)}, 1.5),
        ({"position": (1.4, 1.0, 1.5)}, 2.5),
        ({"position": (1.6, 1.0, 1.5)}, 7.333333),  # past the cube, to the door at y = 12.33
    ):
        with make(1, seed=5, cameras={"renderer": renderer, **pose}) as sim:
            place(sim, world=0, agent_y=4, cube_y=9)
            assert sim.depth.to_numpy()[0, 0, 10, 16, 0] == pytest.approx(expected, rel=1e-4), pose


@on_the_cpu
def test_agents_see_each_other_but_not_themselves(renderer):
    with make(1, cameras={"renderer": renderer, "position": (0, 0, 1)}) as sim:
        place(sim, world=0, agent_y=4, cube_y=50)
        sim.state.body_positions.to_numpy()[0, 1] = (0, 8, 0)
        sim.refresh()
        kinds = sim.segmentation.to_numpy()[0]
        assert tuple(kinds[0, 10, 16]) == (EntityKind.AGENT, 1)
        agents = kinds[..., 0] == EntityKind.AGENT
        assert (kinds[0][agents[0]][:, 1] == 1).all()
        assert (kinds[1][agents[1]][:, 1] == 0).all()


# ---- They follow the worlds


def restored_twin(sim):
    """What cameras of another simulator show of the same worlds."""
    rules = {"num_agents": sim.num_agents, "episode_length": sim.episode_length, "cameras": sim.cameras}
    with doorstep.Simulator(sim.num_worlds, num_threads=1, **rules) as twin:
        twin.restore(sim.save())
        return views(twin)


@on_the_cpu
def test_worlds_are_those_of_a_simulator_without_cameras(renderer):
    with (
        make(70, cameras={"renderer": renderer, "width": 8, "height": 8}, seed=3) as sim,
        doorstep.Simulator(70, seed=3, num_threads=2) as plain,
    ):
        play(random_actions(4, 30, 70), sim, plain)
        assert (sim.world_hashes() == plain.world_hashes()).all()
        assert sim.allocated_bytes - plain.allocated_bytes >= 70 * 2 * 8 * 8 * (4 + 4 + 2 + 12)
        plain.restore(sim.save())
        sim.restore(plain.save())
        assert sim.hash() == plain.hash()


# ---- Threads, processes, ends


@on_the_cpu
def test_threads_share_a_simulator_with_cameras(renderer):
    def step(sim):
        steps(10, sim)

    with make(8, cameras={"renderer": renderer}, num_threads=2) as sim, make(8, num_threads=1) as alone:
        threads = [threading.Thread(target=step, args=(sim,)) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
            step(alone)
        assert sim.hash() == alone.hash()
        assert same(views(sim), restored_twin(sim))


@on_the_cpu
def test_a_forked_child_sees_on(renderer, run_python):
    code = f"""
import os, sys, warnings
warnings.simplefilter("ignore")
import doorstep
sim = doorstep.Simulator(5, num_threads=2, cameras=doorstep.Cameras(width=8, height=8, renderer="{renderer}"))
sim.step()
child = os.fork()
sim.step()
event = sim.step_async()
event.wait()
with doorstep.Simulator(5, num_threads=1, cameras=sim.cameras) as twin:
    twin.restore(sim.save())
    same = (twin.rgb.to_numpy() == sim.rgb.to_numpy()).all()
if child == 0:
    sys.stdout.flush()
    sim.close()
    os._exit(0 if same else 1)
_, status = os.waitpid(child, 0)
print(status, bool(same))
"""
    assert run_python(code) == "0 True\n"


def test_import_and_simulators_without_cameras_load_nothing_that_draws(run_new_python):
    code = """
import doorstep
doorstep.Cameras()
with doorstep.Simulator(2) as sim:
    sim.step()
with open("/proc/self/maps") as maps:
    text = maps.read()
print(*(name in text for name in ("libdoorstep_render", "libembree4", "libdxcompiler", "libvulkan")))
"""
    assert run_new_python(code) == "False False False False\n"


def test_a_missing_library_leaves_the_simulation_alone(tmp_path, run_new_python):
    folder = tmp_path / "site" / "doorstep"
    shutil.copytree(Path(doorstep.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "_native" / "libdoorstep_render.so").unlink()
    code = f"""
import sys
sys.path.insert(0, {str(folder.parent)!r})
import doorstep
try:
    doorstep.Simulator(2, cameras=doorstep.Cameras())
except doorstep.LibraryError as error:
    print(error)
print(doorstep.live_counts()["simulator"])
doorstep.Simulator(2).step()
"""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    message, count = run_new_python(code, **environment).splitlines()
    assert str(folder / "_native" / "libdoorstep_render.so") in message
    assert "pip install --force-reinstall" in message
    assert count == "0"


# ---- Cameras as values


def test_cameras_are_values():
    cameras = Cameras(width=np.int64(8), position=np.array([0, 1, 2]), rotation=[1, 0, 0, 0])
    assert cameras == Cameras(width=8, position=(0.0, 1.0, 2.0))
    turned = Cameras(position=np.array([1, 2, 3], np.float32), rotation=np.array([0.0, 1, 0, 0]))
    assert (turned.position, turned.rotation) == ((1.0, 2.0, 3.0), (0.0, 1.0, 0.0, 0.0))
    assert hash(cameras) == hash(copy.copy(cameras))
    assert pickle.loads(pickle.dumps(cameras)) == cameras
    assert cameras.outputs == ("rgb", "depth")
    assert Cameras().position == EYE
    with pytest.raises(AttributeError):
        cameras.width = 9


def test_the_simulator_tells_what_it_was_given_and_what_draws():
    with make(cameras={"renderer": "auto"}) as sim:
        assert sim.cameras == Cameras(width=33, height=21, segmentation=True, normals=True)
        assert sim.renderer is not None
        assert sim.renderer.startswith("raycast (")
    with make(cameras={"renderer": "embree"}) as sim:
        assert sim.renderer is not None
        assert sim.renderer.startswith("embree (Embree 4.")


def test_impossible_values_are_refused_by_name():
    vulkan, no_positions = {"renderer": "vulkan"}, [(0, 0), (0, 0, math.inf), (0, 0, 1e39), 3, (10**400, 0, 0), "123"]
    no_positions += [b"123", ("1", "2", "3"), {1, 2, 3}, (True, 0, 0), np.zeros(3, bool), np.zeros((3, 1))]
    rows = [
        ({"width": 0}, "width is 0; ... 1 to 4096"),
        ({"width": 4097}, "width is 4097; ... 1 to 4096"),
        ({"height": 2.5}, "height is 2.5; ... 1 to 4096"),
        ({"fov": 0.0999999}, "fov is 0.0999999; ... at least 0.1 and less than 180"),
        ({"fov": 179.999999999}, "fov is 179.999999999; ... less than 180"),  # is 180 in single precision
        ({"rgb": 1}, "rgb is 1; ... True or False"),
        ({"rgb": False, "depth": False}, "at least one tensor"),
        *(({"position": position}, "position is ... finite numbers") for position in no_positions),
        ({"rotation": (0, 0, 0, 0)}, "unit quaternion (w, x, y, z) ((1, 0, 0, 0) is no rotation)"),
        ({"rotation": (2, 0, 0, 0)}, "unit quaternion (w, x, y, z) (divide it by its length)"),
        ({"rotation": (1, 0, 0)}, "rotation is ... unit quaternion"),
        ({"renderer": "opengl"}, "renderer is 'opengl'; ... 'vulkan'"),
        ({"material": 7}, "material is 7; ... HLSL source"),
        ({"material": "float3 colour();"}, "only 'vulkan' has materials"),
        ({"material": "a\ud800", **vulkan}, "written as UTF-8"),
        ({"material": "a\0", **vulkan}, "without the character 0"),
        ({"material": "looks/bricks.hlsl", **vulkan}, "a file is given as pathlib.Path(...)"),
    ]
    assert_refused(Cameras, rows)


def test_other_things_are_no_cameras():
    rows = [(value, "doorstep.Cameras or None") for value in (64, [64], Cameras, "raycast")]
    assert_refused(lambda value: doorstep.Simulator(1, cameras=value), rows)


def test_views_beyond_memory_are_refused_with_the_number_of_bytes():
    with pytest.raises(doorstep.OutOfMemoryError) as raised:
        doorstep.Simulator(65536, num_threads=1, cameras=Cameras(width=4096, height=4096))
    assert raised.value.argument == "cameras"
    assert f"{65536 * 2} views of 4096 x 4096 pixels take {65536 * 2 * 4096 * 4096 * 8} bytes" in str(raised.value)
    assert not alive()


def test_a_material_file_is_text_that_can_be_read(tmp_path):
    (tmp_path / "zero.hlsl").write_bytes(b"float3 \0")
    rows = [
        ("zero.hlsl", "is not text: it has a byte 0"),
        ("a\0b", "null byte"),
        ("nowhere.hlsl", "nowhere.hlsl' cannot be read: No such file"),
    ]
    assert_refused(
        lambda name: doorstep.Simulator(1, cameras=Cameras(renderer="vulkan", material=tmp_path / name)), rows
    )
    assert not alive()
