"""Cameras: what agents see is in tensors of the simulator, current after everything that changes the worlds."""

import copy
import math
import os
import pickle
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.live_objects import alive
from tests.scenes import random_actions

import doorstep
from doorstep import Cameras, EntityKind
from doorstep._native import camera_count

Array = npt.NDArray[Any]
RunPython = Callable[..., str]

ALL = {"rgb": True, "depth": True, "segmentation": True, "normals": True}
BEHIND = (0.0, 0.0, 0.0, 1.0)  # half a turn about the vertical axis
EYE = (0.0, 0.0, 1.5)

on_the_cpu = pytest.mark.parametrize("renderer", ["raycast", "embree"])


@pytest.fixture(autouse=True)
def _no_cameras_are_left() -> Iterator[None]:
    before = camera_count()
    yield
    assert camera_count() == before


def make(num_worlds: int = 3, *, cameras: dict[str, Any] | None = None, **settings: Any) -> doorstep.Simulator:
    chosen = Cameras(**{"width": 33, "height": 21, **ALL, **(cameras or {})})
    return doorstep.Simulator(num_worlds, **{"num_threads": 1, "cameras": chosen, **settings})


def views(sim: doorstep.Simulator) -> dict[str, Array]:
    """Copies of what the cameras show."""
    assert sim.cameras is not None
    return {name: sim.tensors[name].copy_to_host() for name in sim.cameras.outputs}


def same(left: dict[str, Array], right: dict[str, Array]) -> bool:
    return left.keys() == right.keys() and all((left[name] == right[name]).all() for name in left)


def place(sim: doorstep.Simulator, world: int, agent_y: float, cube_y: float, yaw: float = 0.0) -> None:
    """Agent 0 in the middle of a world's first room, and before it the first cube, 3 metres wide."""
    positions, rotations = sim.state.body_positions.to_numpy(), sim.state.body_rotations.to_numpy()
    positions[world, 0] = (0, agent_y, 0)
    rotations[world, 0] = (math.cos(yaw / 2), 0, 0, math.sin(yaw / 2))
    positions[world, 1] = (-8, 1, 0)
    positions[world, 2] = (0, cube_y, 1.5)
    rotations[world, 2] = (1, 0, 0, 0)


# ---- Tensors


def test_the_tensors_asked_for_come_after_all_others() -> None:
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


def test_every_library_reads_them_in_place() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    with make() as sim:
        array = sim.rgb.to_numpy()
        assert sim.rgb.to_torch().data_ptr() == array.ctypes.data
        assert tuple(torch.from_dlpack(sim.depth).shape) == (3, 2, 21, 33, 1)
        assert (sim.rgb.to_torch().numpy() == array).all()
        assert jax.numpy.asarray(sim.normals.to_jax(copy=True)).shape == (3, 2, 21, 33, 3)
        assert np.shares_memory(np.from_dlpack(sim.rgb), array)
        assert (sim.rgb.copy_to_host() == array).all()


def test_a_simulator_without_cameras_says_how_to_get_them() -> None:
    with doorstep.Simulator(1) as plain, make(cameras={"depth": False}) as sim:
        assert plain.cameras is None
        assert plain.renderer is None
        assert "rgb" not in plain.tensors
        with pytest.raises(doorstep.ArgumentError, match=r"Cameras\(rgb=True\)") as raised:
            _ = plain.rgb
        assert raised.value.argument == "cameras"
        with pytest.raises(doorstep.ArgumentError, match=r"Cameras\(depth=True\)"):
            _ = sim.depth


def test_they_can_be_neither_set_nor_bound() -> None:
    with make() as sim:
        before = views(sim)
        with pytest.raises(doorstep.ArgumentError, match="only the simulator writes"):
            sim.rgb = np.zeros((3, 2, 21, 33, 4), np.uint8)  # type: ignore[assignment]
        with pytest.raises(doorstep.ArgumentError, match="cannot be bound") as raised:
            sim.bind(depth=np.zeros((3, 2, 21, 33, 1), np.float32))
        assert raised.value.argument == "depth"
        with pytest.raises(doorstep.ArgumentError, match="only the simulator writes"):
            sim.depth.copy_from_host(np.zeros((3, 2, 21, 33, 1), np.float32))
        assert same(views(sim), before)


def test_tensors_outlive_the_simulator() -> None:
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


def test_their_memory_is_counted() -> None:
    pixels = 3 * 2 * 21 * 33
    with make() as sim, doorstep.Simulator(3, num_threads=1) as plain:
        assert sim.allocated_bytes - plain.allocated_bytes >= pixels * (4 + 4 + 2 + 12)


# ---- Pictures


@on_the_cpu
def test_depth_is_along_the_axis_and_kinds_and_slots_are_those_of_the_state(renderer: str) -> None:
    with make(cameras={"renderer": renderer}) as sim:
        place(sim, world=1, agent_y=4, cube_y=9)
        sim.refresh()
        depth, kinds = sim.depth.to_numpy()[1, 0, ..., 0], sim.segmentation.to_numpy()[1, 0]
        assert depth[10, 16] == pytest.approx(9 - 1.5 - 4, rel=1e-5)
        assert tuple(kinds[10, 16]) == (EntityKind.CUBE, 2)
        cube = (kinds[..., 0] == EntityKind.CUBE) & (kinds[..., 1] == 2)
        assert np.allclose(depth[cube & (depth < 4)], 3.5, rtol=1e-5)  # its near face is at one depth everywhere
        assert np.allclose(sim.normals.to_numpy()[1, 0, 10, 16], (0, -1, 0), atol=1e-6)
        # Straight down from 1.5 metres at 50 degrees: the last row's centre is at tan(50 degrees) * 20 / 21.
        floor = kinds[20, 16]
        assert tuple(floor) == (6, 0)
        assert depth[20, 16] == pytest.approx(1.5 / (math.tan(math.radians(50)) * 20 / 21), rel=1e-5)


@on_the_cpu
def test_sky_is_zero_in_everything_but_colour(renderer: str) -> None:
    with make(cameras={"renderer": renderer}) as sim:
        kinds = sim.segmentation.to_numpy()
        sky = kinds[..., 0] == 0
        assert 0 < sky.sum() < sky.size
        assert (sim.depth.to_numpy()[sky] == 0).all()
        assert (sim.depth.to_numpy()[~sky] > 0).all()
        assert (sim.normals.to_numpy()[sky] == 0).all()
        assert np.allclose(np.linalg.norm(sim.normals.to_numpy()[~sky], axis=-1), 1, atol=1e-5)
        assert (kinds[sky] == 0).all()
        assert (sim.rgb.to_numpy()[sky] == sim.rgb.to_numpy()[sky][0]).all()
        assert (sim.rgb.to_numpy()[..., 3] == 255).all()


@on_the_cpu
def test_the_field_of_view_is_vertical_and_pixels_are_square(renderer: str) -> None:
    """A face 3 metres wide and high, 3.5 metres away, takes 3 / 3.5 / (2 tan(fov / 2)) of the rows."""
    eye = {"position": (0.0, 0.0, 1.5), "fov": 60.0, "renderer": renderer}
    for width, height in ((101, 101), (201, 101), (51, 101)):
        with make(1, cameras={**eye, "width": width, "height": height}) as sim:
            place(sim, world=0, agent_y=4, cube_y=9)
            sim.refresh()
            is_face = (sim.segmentation.to_numpy()[0, 0, ..., 0] == EntityKind.CUBE) & (
                np.abs(sim.depth.to_numpy()[0, 0, ..., 0] - 3.5) < 0.01
            )
            expected = 3 / 3.5 / (2 * math.tan(math.radians(30))) * height
            rows, columns = is_face.any(axis=1).sum(), is_face.any(axis=0).sum()
            assert abs(rows - min(expected, height)) <= 1
            assert abs(columns - min(expected, width)) <= 1


@on_the_cpu
def test_the_pose_is_in_the_agent_s_frame(renderer: str) -> None:
    """Half a turn of the camera sees what half a turn of the agent sees; a camera moved forward is nearer."""
    with make(1, cameras={"renderer": renderer}) as sim:
        place(sim, world=0, agent_y=4, cube_y=9, yaw=math.pi / 2)
        sim.refresh()
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
            sim.refresh()
            assert sim.depth.to_numpy()[0, 0, 10, 16, 0] == pytest.approx(expected, rel=1e-4), pose


@on_the_cpu
def test_agents_see_each_other_but_not_themselves(renderer: str) -> None:
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


def restored_twin(sim: doorstep.Simulator) -> dict[str, Array]:
    """What cameras of another simulator show of the same worlds."""
    rules = {"num_agents": sim.num_agents, "episode_length": sim.episode_length, "cameras": sim.cameras}
    with doorstep.Simulator(sim.num_worlds, num_threads=1, **rules) as twin:  # type: ignore[arg-type]
        twin.restore(sim.save())
        return views(twin)


@on_the_cpu
def test_they_follow_everything_that_changes_worlds(renderer: str) -> None:
    actions = random_actions(seed=3, steps=16, num_worlds=5)
    with make(5, cameras={"renderer": renderer}, episode_length=12) as sim:
        saved, first = sim.save(), views(sim)
        assert same(first, restored_twin(sim))
        seen = [first]

        def check(what: str) -> None:
            assert same(views(sim), restored_twin(sim)), what
            assert not same(views(sim), seen[-1]), what
            seen.append(views(sim))

        for step in range(15):  # beyond the end of an episode
            sim.actions.to_numpy()[:] = actions[step]
            sim.step()
            check("step")
        sim.actions.to_numpy()[:] = actions[15]
        event = sim.step_async()
        event.wait()
        check("step_async")
        before = views(sim)
        sim.reset([1, 3])
        check("reset")
        changed = [world for world in range(5) if (views(sim)["rgb"][world] != before["rgb"][world]).any()]
        assert changed == [1, 3]
        sim.reset(np.array([True, False, False, False, False]))
        check("reset by a mask")
        sim.state.body_positions.to_numpy()[2, 0] = (1, 5, 0)
        sim.refresh()
        check("refresh")
        sim.restore(saved)
        assert same(views(sim), first)


@on_the_cpu
def test_worlds_are_those_of_a_simulator_without_cameras(renderer: str) -> None:
    with (
        make(70, cameras={"renderer": renderer, "width": 8, "height": 8}, seed=3) as sim,
        doorstep.Simulator(70, seed=3, num_threads=2) as plain,
    ):
        for actions in random_actions(seed=4, steps=30, num_worlds=70):
            for each in (sim, plain):
                each.actions.to_numpy()[:] = actions
                each.step()
        assert (sim.world_hashes() == plain.world_hashes()).all()
        saved = sim.save()
        plain.restore(saved)
        sim.restore(plain.save())
        assert sim.hash() == plain.hash()


@on_the_cpu
def test_they_do_not_depend_on_the_number_of_threads(renderer: str) -> None:
    seen = []
    for num_threads in (1, 2, 5):
        with make(67, cameras={"renderer": renderer, "width": 16, "height": 9}, num_threads=num_threads, seed=8) as sim:
            for _ in range(3):
                sim.step()
            seen.append(views(sim))
    assert same(seen[0], seen[1])
    assert same(seen[0], seen[2])


@pytest.mark.parametrize("num_agents", [1, 8])
@on_the_cpu
def test_every_number_of_agents_has_a_view_each(renderer: str, num_agents: int) -> None:
    with make(2, cameras={"renderer": renderer}, num_agents=num_agents) as sim:
        sim.step()
        assert sim.rgb.shape == (2, num_agents, 21, 33, 4)
        assert same(views(sim), restored_twin(sim))


@on_the_cpu
def test_outputs_do_not_depend_on_which_are_asked_for(renderer: str) -> None:
    with make(cameras={"renderer": renderer}) as sim:
        everything = views(sim)
    for name in ALL:
        with make(cameras={"renderer": renderer, **dict.fromkeys(ALL, False), name: True}) as sim:
            assert list(sim.tensors)[-1] == name
            assert (views(sim)[name] == everything[name]).all()


def test_worlds_with_values_that_are_not_finite_are_drawn_too() -> None:
    for renderer in ("raycast", "embree"):
        with make(cameras={"renderer": renderer}) as sim:
            before = views(sim)
            for field in (sim.state.body_positions, sim.state.body_rotations, sim.state.static_positions):
                field.to_numpy()[1, 0] = np.nan
            sim.refresh()
            after = views(sim)
            assert (after["rgb"][[0, 2]] == before["rgb"][[0, 2]]).all()


# ---- Threads, processes, ends


@on_the_cpu
def test_threads_share_a_simulator_with_cameras(renderer: str) -> None:
    def step(sim: doorstep.Simulator) -> None:
        for _ in range(10):
            sim.step()

    with make(8, cameras={"renderer": renderer}, num_threads=2) as sim, make(8, num_threads=1) as alone:
        threads = [threading.Thread(target=step, args=(sim,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _ in range(3):
            step(alone)
        assert sim.hash() == alone.hash()
        assert same(views(sim), restored_twin(sim))


@on_the_cpu
def test_simulators_with_cameras_are_made_and_closed_again_and_again(renderer: str) -> None:
    for _ in range(20):
        with make(2, cameras={"renderer": renderer, "width": 4, "height": 4}) as sim:
            sim.step()
    assert not alive()


@on_the_cpu
def test_a_forked_child_sees_on(renderer: str, run_python: RunPython) -> None:
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


AT_EXIT = {
    "an open simulator": "sim = make(); sim.step()",
    "a live array": "array = make().rgb.to_numpy()",
    "a running step": "sim = make(); event = sim.step_async()",
    "things hidden in a module": "import sys; sys.s = make(); sys.c = sys.s.rgb.__dlpack__()",
}


@on_the_cpu
@pytest.mark.parametrize("code", AT_EXIT.values(), ids=AT_EXIT)
def test_interpreter_exits_cleanly_with(code: str, renderer: str, run_python: RunPython) -> None:
    make_one = f"""
import doorstep
def make():
    return doorstep.Simulator(64, num_threads=2, cameras=doorstep.Cameras(width=8, height=8, renderer="{renderer}"))
"""
    assert run_python(make_one + code) == ""


def test_import_and_simulators_without_cameras_load_nothing_that_draws(run_new_python: RunPython) -> None:
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


def test_a_missing_library_leaves_the_simulation_alone(tmp_path: Path, run_new_python: RunPython) -> None:
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


def test_cameras_are_values() -> None:
    cameras = Cameras(width=np.int64(8), position=np.array([0, 1, 2]), rotation=[1, 0, 0, 0])
    assert cameras == Cameras(width=8, position=(0.0, 1.0, 2.0))
    assert hash(cameras) == hash(copy.copy(cameras))
    assert pickle.loads(pickle.dumps(cameras)) == cameras
    assert cameras.outputs == ("rgb", "depth")
    assert Cameras().position == EYE
    with pytest.raises(AttributeError):
        cameras.width = 9  # type: ignore[misc]


def test_the_simulator_tells_what_it_was_given_and_what_draws() -> None:
    with make(cameras={"renderer": "auto"}) as sim:
        assert sim.cameras == Cameras(width=33, height=21, segmentation=True, normals=True)
        assert sim.renderer is not None
        assert sim.renderer.startswith("raycast (")
    with make(cameras={"renderer": "embree"}) as sim:
        assert sim.renderer is not None
        assert sim.renderer.startswith("embree (Embree 4.")


IMPOSSIBLE: list[tuple[dict[str, Any], str, str]] = [
    ({"width": 0}, "width", "1 to 4096"),
    ({"width": 4097}, "width", "1 to 4096"),
    ({"height": -1}, "height", "1 to 4096"),
    ({"height": 2.5}, "height", "1 to 4096"),
    ({"width": True}, "width", "1 to 4096"),
    ({"fov": 0}, "fov", "less than 180"),
    ({"fov": 0.001}, "fov", "at least 0.1 and less than 180"),
    ({"fov": 0.0999999}, "fov", "at least 0.1 and less than 180"),
    ({"fov": 180}, "fov", "less than 180"),
    ({"fov": 179.999999999}, "fov", "less than 180"),  # is 180 in single precision
    ({"fov": math.nan}, "fov", "less than 180"),
    ({"fov": "wide"}, "fov", "less than 180"),
    ({"rgb": 1}, "rgb", "True or False"),
    ({"rgb": False, "depth": False}, "rgb", "at least one tensor"),
    ({"position": (0, 0)}, "position", "finite numbers"),
    ({"position": (0, 0, math.inf)}, "position", "finite numbers"),
    ({"position": (0, 0, 1e39)}, "position", "finite numbers"),
    ({"position": 3}, "position", "finite numbers"),
    ({"position": (10**400, 0, 0)}, "position", "finite numbers"),
    ({"position": "123"}, "position", "finite numbers"),
    ({"position": b"123"}, "position", "finite numbers"),
    ({"position": ("1", "2", "3")}, "position", "finite numbers"),
    ({"position": {1, 2, 3}}, "position", "finite numbers"),
    ({"position": (True, 0, 0)}, "position", "finite numbers"),
    ({"position": np.zeros(3, bool)}, "position", "finite numbers"),
    ({"position": np.zeros((3, 1))}, "position", "finite numbers"),
    ({"rotation": (0, 0, 0, 0)}, "rotation", "unit quaternion (w, x, y, z) ((1, 0, 0, 0) is no rotation)"),
    ({"rotation": (2, 0, 0, 0)}, "rotation", "unit quaternion (w, x, y, z) (divide it by its length)"),
    ({"rotation": (1, 0, 0)}, "rotation", "unit quaternion"),
    ({"renderer": "opengl"}, "renderer", "'vulkan'"),
    ({"renderer": None}, "renderer", "'vulkan'"),
    ({"material": 7}, "material", "HLSL source"),
    ({"material": "float3 colour();"}, "material", "only 'vulkan' has materials"),
    ({"material": "a\ud800", "renderer": "vulkan"}, "material", "written as UTF-8"),
    ({"material": "a\0", "renderer": "vulkan"}, "material", "without the character 0"),
    ({"material": "looks/bricks.hlsl", "renderer": "vulkan"}, "material", "a file is given as pathlib.Path(...)"),
]


@pytest.mark.parametrize(("values", "argument", "requirement"), IMPOSSIBLE, ids=str)
def test_impossible_values_are_refused_by_name(values: dict[str, Any], argument: str, requirement: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as raised:
        Cameras(**values)
    assert raised.value.argument == argument
    assert requirement in str(raised.value)


def test_other_things_are_no_cameras() -> None:
    for value in (64, [64], Cameras, "raycast"):
        with pytest.raises(doorstep.ArgumentError, match=r"doorstep\.Cameras or None"):
            doorstep.Simulator(1, cameras=value)  # type: ignore[arg-type]


def test_views_beyond_memory_are_refused_with_the_number_of_bytes() -> None:
    with pytest.raises(doorstep.OutOfMemoryError) as raised:
        doorstep.Simulator(65536, num_threads=1, cameras=Cameras(width=4096, height=4096))
    assert raised.value.argument == "cameras"
    assert f"{65536 * 2} views of 4096 x 4096 pixels take {65536 * 2 * 4096 * 4096 * 8} bytes" in str(raised.value)
    assert not alive()


def test_where_a_camera_is_may_be_an_array() -> None:
    cameras = Cameras(position=np.array([1, 2, 3], np.float32), rotation=np.array([0.0, 1, 0, 0]))
    assert (cameras.position, cameras.rotation) == ((1.0, 2.0, 3.0), (0.0, 1.0, 0.0, 0.0))


@pytest.mark.parametrize(("name", "reason"), [("zero.hlsl", "is not text: it has a byte 0"), ("a\0b", "null byte")])
def test_a_material_file_is_text(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "zero.hlsl").write_bytes(b"float3 \0")
    with pytest.raises(doorstep.ArgumentError, match=reason) as raised:
        doorstep.Simulator(1, cameras=Cameras(renderer="vulkan", material=tmp_path / name))
    assert raised.value.argument == "material"


def test_a_material_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    cameras = Cameras(renderer="vulkan", material=tmp_path / "nowhere.hlsl")
    with pytest.raises(doorstep.ArgumentError, match=r"nowhere\.hlsl' cannot be read: No such file") as raised:
        doorstep.Simulator(1, cameras=cameras)
    assert raised.value.argument == "material"
    assert not alive()
