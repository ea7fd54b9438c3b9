"""Materials in HLSL: what they are told, what they may do, and what is said of broken ones."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.forks import PROJECT
from tests.render.on_vulkan import on_vulkan
from tests.render.test_vulkan import rays_of
from tests.scenes import random_actions

import doorstep
from doorstep import Cameras, EntityKind, ShaderError, Simulator

FLOOR = 6
SKY = (158, 194, 230)  # 0.62, 0.76, 0.90


def simulator(material: Any, **settings: Any) -> Simulator:
    num_worlds, num_agents = settings.pop("num_worlds", 3), settings.pop("num_agents", 2)
    cameras = Cameras(renderer="vulkan", material=material, segmentation=True, normals=True, **settings)
    return Simulator(num_worlds, num_agents=num_agents, seed=7, cameras=cameras)


def play(sim: Simulator, steps: int = 30) -> None:
    for actions in random_actions(7, steps, sim.num_worlds, sim.num_agents):
        sim.actions.to_numpy()[:] = actions
        sim.step()


def colours_of(material: str, **settings: Any) -> tuple[Any, Any, Any]:
    """rgb / 255, segmentation and depth after some steps."""
    with simulator(material, **settings) as sim:
        play(sim)
        return (
            sim.rgb.to_numpy()[..., :3] / 255,
            sim.segmentation.copy_to_host().astype(int),
            sim.depth.copy_to_host()[..., 0].astype(float),
        )


# ---- What a material decides


@on_vulkan()
def test_a_material_colours_surfaces_and_leaves_the_sky() -> None:
    colours, segmentation, depth = colours_of("float3 surface_colour(Surface surface) { return float3(1, 0, 0.5); }")
    is_sky = segmentation[..., 0] == 0
    assert 0.05 < is_sky.mean() < 0.9
    assert np.array_equal(np.unique(np.rint(colours[~is_sky] * 255), axis=0), [[255, 0, 128]])
    assert np.array_equal(np.unique(np.rint(colours[is_sky] * 255), axis=0), [SKY])
    assert (depth[is_sky] == 0).all()
    assert (depth[~is_sky] > 0).all()


@on_vulkan()
def test_a_material_changes_nothing_but_colours() -> None:
    with simulator("float3 surface_colour(Surface s) { return s.position; }") as sim, simulator(None) as plain:
        play(sim)
        play(plain)
        for name in ("depth", "segmentation", "normals"):
            assert np.array_equal(sim.tensors[name].to_numpy(), plain.tensors[name].to_numpy())
        assert not np.array_equal(sim.rgb.to_numpy(), plain.rgb.to_numpy())


@on_vulkan()
def test_the_look_that_all_share_can_be_written_as_a_material() -> None:
    with (
        simulator("float3 surface_colour(Surface s) { return lit(s.base_colour, s); }") as sim,
        simulator(None) as plain,
    ):
        play(sim)
        play(plain)
        assert np.array_equal(sim.rgb.to_numpy(), plain.rgb.to_numpy())


@on_vulkan()
def test_colours_are_clamped() -> None:
    colours, segmentation, _ = colours_of("float3 surface_colour(Surface s) { return float3(7, -3, 1e30); }")
    assert np.array_equal(np.unique(colours[segmentation[..., 0] != 0], axis=0), [[1, 0, 1]])


@on_vulkan()
def test_the_material_of_the_documentation_does_what_it_says() -> None:
    text = (PROJECT / "docs" / "developers" / "materials.md").read_text(encoding="utf-8")
    (material,) = re.findall(r"```hlsl\n(.*?)```", text, re.DOTALL)
    with simulator(material, num_agents=4) as sim, simulator(None, num_agents=4) as plain:
        play(sim)
        play(plain)
        kinds, depth = sim.segmentation.to_numpy()[..., 0], sim.depth.to_numpy()[..., 0]
        rgb, plain_rgb = sim.rgb.to_numpy()[..., :3].astype(float), plain.rgb.to_numpy()[..., :3].astype(float)
        # Buttons, cubes, doors and agents keep their colour but for the fog; walls turn from grey to red.
        kept = np.isin(kinds, [EntityKind.BUTTON, EntityKind.CUBE, EntityKind.DOOR, EntityKind.AGENT])
        fog = np.clip(depth / 60, 0, 1)[..., None]
        assert np.abs(rgb - (plain_rgb * (1 - fog) + np.array(SKY) * fog))[kept].max() < 2
        walls = (kinds == EntityKind.WALL) & (depth < 6)
        assert (rgb[walls][:, 0] > 1.3 * rgb[walls][:, 2]).mean() > 0.7
        floor = np.unique(rgb[(kinds == FLOOR) & (depth < 5)], axis=0)
        assert np.ptp(floor[:, 0]) > 80


# ---- What a material is told


@on_vulkan()
def test_kind_slot_world_and_agent_are_those_of_the_pixel() -> None:
    coded = "float3 surface_colour(Surface s) { return float3(s.kind, s.slot, s.world * 4 + s.agent) / 255; }"
    colours, segmentation, _ = colours_of(coded)
    codes = np.rint(colours * 255).astype(int)
    seen = segmentation[..., 0] != 0
    assert np.array_equal(codes[seen][:, :2], segmentation[seen])
    worlds, agents = np.indices(segmentation.shape[:2])
    views = np.broadcast_to((worlds * 4 + agents)[..., None, None], seen.shape)
    assert np.array_equal(codes[seen][:, 2], views[seen])


@on_vulkan()
def test_position_is_where_the_ray_ends() -> None:
    # Thousandths of a metre modulo 100 m, by axis.
    material = "float3 surface_colour(Surface s) { return frac((s.position + 50) / 100); }"
    with simulator(material, width=40, height=30) as sim:
        play(sim)
        for world in range(3):
            for agent in range(2):
                assert sim.cameras is not None
                origin, directions = rays_of(sim, world, agent, sim.cameras)
                depth = sim.depth.to_numpy()[world, agent].astype(float)
                is_seen = sim.segmentation.to_numpy()[world, agent, ..., 0] != 0
                expected = ((origin + directions * depth + 50) / 100) % 1
                far = np.abs(sim.rgb.to_numpy()[world, agent, ..., :3] / 255 - expected)
                assert np.minimum(far, 1 - far)[is_seen].max() < 0.51 / 255


@on_vulkan()
def test_own_position_lies_on_the_surface_of_the_object() -> None:
    # Red: the largest coordinate by half extents, which is 1 on a box. Blue: the normal fits to that side.
    material = """
    float3 surface_colour(Surface s) {
        float3 sides = abs(s.own_position) / (0.5 * s.size);
        float largest = max(sides.x, max(sides.y, sides.z));
        float3 side = sign(s.own_position) * step(largest - 1e-3, sides);
        return float3(largest / 2, 0, dot(side, s.own_normal));
    }
    """
    colours, segmentation, _ = colours_of(material)
    is_box = np.isin(segmentation[..., 0], [EntityKind.BUTTON, EntityKind.CUBE, EntityKind.WALL, EntityKind.DOOR])
    assert is_box.sum() > 1000
    assert np.abs(colours[is_box][:, 0] - 0.5).max() <= 1 / 255
    assert (colours[is_box][:, 2] == 1).mean() > 0.999


@on_vulkan()
def test_parts_are_the_eyes_of_agents() -> None:
    material = "float3 surface_colour(Surface s) { return float3(s.part, s.own_normal.y > 0, s.kind == 4); }"
    colours, _, _ = colours_of(material, num_agents=6, num_worlds=8)
    eyes = colours[(colours[..., 0] == 1)]
    assert len(eyes) > 10
    assert (eyes[:, 2] == 1).all()
    assert (eyes[:, 1] == 1).mean() > 0.5  # in front


# ---- Broken ones

BROKEN = {
    "float3 surface_colour(Surface surface)\n{\n    retrun 1;\n}": ("material:3:5:", "undeclared identifier 'retrun'"),
    "float3 surface_colour(Surface surface) { return surface.color; }": ("material:1:57:", "no member named 'color'"),
    "float3 other(Surface surface) { return 1; }": ("undeclared identifier 'surface_colour'",),
    "": ("undeclared identifier 'surface_colour'",),
    "void surface_colour(Surface surface) {}": ("cannot convert from 'void' to 'float3'",),
    '#include "other.hlsl"\nfloat3 surface_colour(Surface s) { return 1; }': (
        "material:1:10:",
        "'other.hlsl' file not found",
    ),
    "#include </etc/passwd>\nfloat3 surface_colour(Surface s) { return 1; }": ("file not found",),
    "Texture2D<float4> t; float3 surface_colour(Surface s) { return t[uint2(0, 0)].rgb; }": ("material:", "resources"),
    "float k; float3 surface_colour(Surface s) { return k; }": ("material:", "non-static"),
    "RWStructuredBuffer<uint> b : register(u0); float3 surface_colour(Surface s) { return b[0]++; }": ("resources",),
    "groupshared float g; float3 surface_colour(Surface s) { g = s.slot; return g; }": ("groupshared",),
    "float3 surface_colour(Surface s) { double d = s.depth; return float(d * d); }": ("capability 10",),
    "float3 surface_colour(Surface s) { return WaveActiveSum(s.depth); }": ("capability",),
    "float3 surface_colour(Surface s) { if (s.slot) GroupMemoryBarrierWithGroupSync(); return 1; }": ("barriers",),
    "float3 surface_colour(Surface s) { doorstep::depth[0] = 1; return 1; }": ("material:1:46:", "no member named"),
}


@on_vulkan()
def test_broken_materials_are_errors_with_the_compilers_message() -> None:
    with Simulator(2, cameras=Cameras(width=16, height=16, renderer="vulkan")) as bystander:
        for material, messages in BROKEN.items():
            with pytest.raises(ShaderError) as caught:
                simulator(material)
            assert all(message in str(caught.value) for message in messages), (material, str(caught.value))
            assert caught.value.argument == "material"
            assert "warning" not in str(caught.value)
            assert caught.value.hint
            bystander.step()
        live = doorstep.live_counts()
        assert live["simulator"] == 1


@on_vulkan()
def test_messages_name_the_file(tmp_path: Path) -> None:
    path = Path(tmp_path) / 'a "strange" name.hlsl'
    path.write_text("// first line\nfloat3 surface_colour(Surface s) { return nothing; }\n", encoding="utf-8")
    with pytest.raises(ShaderError, match="undeclared identifier 'nothing'") as caught:
        simulator(path)
    assert f"{path}:2:" in str(caught.value).replace("\\", "")
    path.write_text("float3 surface_colour(Surface s) { return float3(0, 1, 0); }", encoding="utf-8")
    with simulator(path) as sim:
        assert (sim.rgb.to_numpy()[sim.segmentation.to_numpy()[..., 0] == FLOOR][:, :3] == (0, 255, 0)).all()
