"""Cameras: what agents see is in tensors of the simulator; tests/render/test_renderers.py looks at every pixel."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.live_objects import alive
from tests.refuses import assert_refused, refuses
from tests.scenes import steps

import doorstep
from doorstep import Cameras, EntityKind
from doorstep._native import camera_count

ALL = {"rgb": True, "depth": True, "segmentation": True, "normals": True}
BEHIND = (0.0, 0.0, 0.0, 1.0)  # half a turn about the vertical axis

on_the_cpu = pytest.mark.parametrize("renderer", ["raycast", "embree"])


@pytest.fixture(autouse=True)
def _no_cameras_are_left():
    before = camera_count()
    yield
    assert camera_count() == before


def make(num_worlds=3, *, cameras=None, **settings):
    chosen = Cameras(**{"width": 33, "height": 21, **ALL, **(cameras or {})})
    return doorstep.Simulator(num_worlds, **{"num_threads": 1, "cameras": chosen, **settings})


def place(sim, agent_y, cube_y, yaw=0.0):
    """Agent 0 in the middle of the first room, and before it the first cube, 3 metres wide; and looks."""
    positions, rotations = sim.state.body_positions.to_numpy(), sim.state.body_rotations.to_numpy()
    positions[0, 0] = (0, agent_y, 0)
    rotations[0, 0] = (math.cos(yaw / 2), 0, 0, math.sin(yaw / 2))
    positions[0, 1] = (-8, 1, 0)
    positions[0, 2] = (0, cube_y, 1.5)
    rotations[0, 2] = (1, 0, 0, 0)
    sim.refresh()


# ---- Tensors


def test_the_tensors_asked_for_come_after_all_others_and_can_be_neither_set_nor_bound():
    sizes = {"rgb": 4, "depth": 1, "segmentation": 2, "normals": 3}
    with doorstep.Simulator(1) as plain, make(cameras={"rgb": False, "normals": False}) as some, make() as sim:
        assert (plain.cameras, plain.renderer) == (None, None)
        assert list(some.tensors) == [*plain.tensors, "depth", "segmentation"]
        assert list(sim.tensors) == [*plain.tensors, *sizes]
        assert sim.cameras == Cameras(width=33, height=21, segmentation=True, normals=True)
        for name, size in sizes.items():
            tensor, before = getattr(sim, name), getattr(sim, name).copy_to_host()
            assert tensor.shape == (3, 2, 21, 33, size)
            assert tensor.dtype == (np.float32 if name in ("depth", "normals") else np.uint8)
            assert tensor is sim.tensors[name]
            assert tensor.readonly
            assert tensor.__array_interface__["data"][0] % 256 == 0
            assert np.shares_memory(np.from_dlpack(tensor), tensor.to_numpy())
            refuses("only the simulator writes", setattr, sim, name, np.zeros_like(before))
            refuses("only the simulator writes", tensor.copy_from_host, np.zeros_like(before))
            refuses("cannot be bound", sim.bind, argument=name, **{name: np.zeros_like(before)})
            assert (tensor.to_numpy() == before).all()


# ---- Pictures


@on_the_cpu
def test_the_pose_is_in_the_agent_s_frame(renderer):
    """Half a turn of the camera sees what half a turn of the agent sees; a camera moved forward is nearer."""
    with make(1, cameras={"renderer": renderer}) as sim:
        place(sim, agent_y=4, cube_y=9, yaw=math.pi / 2)
        assert sim.segmentation.to_numpy()[0, 0, 10, 16, 0] == EntityKind.WALL
        assert sim.depth.to_numpy()[0, 0, 10, 16, 0] == pytest.approx(10, rel=1e-4)  # the wall at x = -10
    for pose, expected in (
        ({"rotation": BEHIND}, 4.0),  # the wall at y = 0
        ({"position": (0.0, 2.0, 1.5)}, 1.5),
        ({"position": (1.4, 1.0, 1.5)}, 2.5),
        ({"position": (1.6, 1.0, 1.5)}, 7.333333),  # past the cube, to the door at y = 12.33
    ):
        with make(1, seed=5, cameras={"renderer": renderer, **pose}) as sim:
            place(sim, agent_y=4, cube_y=9)
            assert sim.depth.to_numpy()[0, 0, 10, 16, 0] == pytest.approx(expected, rel=1e-4), pose


@on_the_cpu
def test_agents_see_each_other_but_not_themselves(renderer):
    with make(1, cameras={"renderer": renderer, "position": (0, 0, 1)}) as sim:
        place(sim, agent_y=4, cube_y=50)
        sim.state.body_positions.to_numpy()[0, 1] = (0, 8, 0)
        sim.refresh()
        kinds = sim.segmentation.to_numpy()[0]
        assert tuple(kinds[0, 10, 16]) == (EntityKind.AGENT, 1)
        for agent, seen in enumerate(kinds):
            assert set(seen[seen[..., 0] == EntityKind.AGENT][:, 1].tolist()) <= {1 - agent}


# ---- Threads, processes, ends


@on_the_cpu
def test_threads_share_a_simulator_with_cameras_whose_worlds_are_those_of_one_without(renderer):
    cameras = {"renderer": renderer, "width": 8, "height": 8}
    with make(70, cameras=cameras, num_threads=2) as sim, doorstep.Simulator(70, num_threads=1) as plain:
        assert sim.allocated_bytes - plain.allocated_bytes >= 70 * 2 * 8 * 8 * (4 + 4 + 2 + 12)
        sim.actions = plain.actions = np.full((70, 2, 4), (3, 0, 2, 1))
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda _: sim.step(), range(30)))
        steps(30, plain)
        assert (sim.world_hashes() == plain.world_hashes()).all()
        with make(70, cameras=cameras) as twin:
            twin.restore(plain.save())
            assert all((sim.tensors[name].to_numpy() == twin.tensors[name].to_numpy()).all() for name in ALL)


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


# ---- Cameras as values


def test_cameras_are_values_also_of_arrays():
    cameras = Cameras(width=np.int64(8), position=np.array([0, 1, 2], np.float32), rotation=[0, 1, 0, 0])
    assert cameras == Cameras(width=8, position=(0.0, 1.0, 2.0), rotation=(0.0, 1.0, 0.0, 0.0))
    assert (type(cameras.width), cameras.position) == (int, (0.0, 1.0, 2.0))
    assert hash(cameras) == hash(pickle.loads(pickle.dumps(cameras)))
    assert cameras.outputs == ("rgb", "depth")
    with pytest.raises(AttributeError):
        cameras.width = 9


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


def test_views_beyond_memory_are_refused_with_the_number_of_bytes():
    with pytest.raises(doorstep.OutOfMemoryError) as raised:
        doorstep.Simulator(65536, num_threads=1, cameras=Cameras(width=4096, height=4096))
    assert raised.value.argument == "cameras"
    assert f"{65536 * 2} views of 4096 x 4096 pixels take {65536 * 2 * 4096 * 4096 * 8} bytes" in str(raised.value)
    assert not alive()


def test_a_material_file_is_text_that_can_be_read(tmp_path):
    def look(name):
        return doorstep.Simulator(1, cameras=Cameras(renderer="vulkan", material=tmp_path / name))

    (tmp_path / "zero.hlsl").write_bytes(b"float3 \0")
    rows = [("zero.hlsl", "it has a byte 0"), ("a\0b", "null byte"), ("no.hlsl", "no.hlsl' cannot be read: No such")]
    assert_refused(look, rows)
    assert not alive()
