"""Materials in HLSL: what they are told, what they may do, and what is said of broken ones."""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.forks import PROJECT
from tests.render.agreement import FLOOR, rays_of
from tests.render.on_vulkan import on_vulkan
from tests.scenes import random_actions

import doorstep
from doorstep import Cameras, EntityKind, ShaderError, Simulator

SKY = (158, 194, 230)  # 0.62, 0.76, 0.90


def simulator(material, num_worlds=3, num_agents=2, **settings):
    cameras = Cameras(renderer="vulkan", material=material, segmentation=True, normals=True, **settings)
    return Simulator(num_worlds, num_agents=num_agents, seed=7, cameras=cameras)


class Seen:
    """All that cameras with a material show after some steps."""

    def __init__(self, material, **settings):
        with simulator(material, **settings) as sim:
            for actions in random_actions(7, 12, sim.num_worlds, sim.num_agents):
                sim.actions.to_numpy()[:] = actions
                sim.step()
            self.rgb = sim.rgb.copy_to_host()[..., :3].astype(float)
            self.things = sim.segmentation.copy_to_host().astype(int)
            self.kinds = self.things[..., 0]
            self.depth, self.normals = sim.depth.copy_to_host()[..., 0].astype(float), sim.normals.copy_to_host()
            views = np.ndindex(sim.num_worlds, sim.num_agents)
            self.rays = [rays_of(sim, *view, sim.cameras) for view in views]


@on_vulkan()
def test_a_material_colours_surfaces_and_changes_nothing_else():
    plain, constant = Seen(None), Seen("float3 surface_colour(Surface surface) { return float3(1, 0, 0.5); }")
    is_sky = constant.kinds == 0
    assert 0.05 < is_sky.mean() < 0.9
    assert np.array_equal(np.unique(constant.rgb[~is_sky], axis=0), [[255, 0, 128]])
    assert np.array_equal(np.unique(constant.rgb[is_sky], axis=0), [SKY])
    assert ((constant.depth > 0) == ~is_sky).all()
    for name in ("depth", "things", "normals"):
        assert np.array_equal(getattr(constant, name), getattr(plain, name))
    clamped = Seen("float3 surface_colour(Surface surface) { return float3(7, -3, 1e30); }")
    assert np.array_equal(np.unique(clamped.rgb[~is_sky], axis=0), [[255, 0, 255]])
    # The look that all share can be written as a material.
    assert np.array_equal(Seen("float3 surface_colour(Surface s) { return lit(s.base_colour, s); }").rgb, plain.rgb)


@on_vulkan()
def test_the_material_of_the_documentation_does_what_it_says():
    text = (PROJECT / "docs" / "developers" / "materials.md").read_text(encoding="utf-8")
    (material,) = re.findall(r"```hlsl\n(.*?)```", text, re.DOTALL)
    seen, plain = Seen(material, num_agents=4), Seen(None, num_agents=4)
    # Buttons, cubes, doors and agents keep their colour but for the fog; walls turn from grey to red.
    kept = np.isin(seen.kinds, [EntityKind.BUTTON, EntityKind.CUBE, EntityKind.DOOR, EntityKind.AGENT])
    fog = np.clip(seen.depth / 60, 0, 1)[..., None]
    assert np.abs(seen.rgb - (plain.rgb * (1 - fog) + np.array(SKY) * fog))[kept].max() < 2
    walls = (seen.kinds == EntityKind.WALL) & (seen.depth < 6)
    assert (seen.rgb[walls][:, 0] > 1.3 * seen.rgb[walls][:, 2]).mean() > 0.7
    assert np.ptp(np.unique(seen.rgb[(seen.kinds == FLOOR) & (seen.depth < 5)], axis=0)[:, 0]) > 80


@on_vulkan()
def test_kind_slot_world_agent_and_position_are_those_of_the_pixel():
    codes = Seen("float3 surface_colour(Surface s) { return float3(s.kind, s.slot, s.world * 4 + s.agent) / 255; }")
    is_seen = codes.kinds != 0
    assert np.array_equal(codes.rgb[is_seen][:, :2], codes.things[is_seen])
    worlds, agents = np.indices(codes.kinds.shape[:2])
    views = np.broadcast_to((worlds * 4 + agents)[..., None, None], is_seen.shape)
    assert np.array_equal(codes.rgb[is_seen][:, 2], views[is_seen])
    # Thousandths of a metre modulo 100 m, by axis.
    seen = Seen("float3 surface_colour(Surface s) { return frac((s.position + 50) / 100); }", width=40, height=30)
    for (world, agent), (origin, directions) in zip(np.ndindex(3, 2), seen.rays, strict=True):
        expected = ((origin + directions * seen.depth[world, agent][..., None] + 50) / 100) % 1
        far = np.abs(seen.rgb[world, agent] / 255 - expected)
        assert np.minimum(far, 1 - far)[seen.kinds[world, agent] != 0].max() < 0.51 / 255


@on_vulkan()
def test_own_position_lies_on_the_surface_of_the_object_and_parts_are_eyes():
    # Red: the largest coordinate by half extents, which is 1 on a box. Blue: the normal fits to that side.
    seen = Seen("""
    float3 surface_colour(Surface s) {
        float3 sides = abs(s.own_position) / (0.5 * s.size);
        float largest = max(sides.x, max(sides.y, sides.z));
        float3 side = sign(s.own_position) * step(largest - 1e-3, sides);
        return float3(largest / 2, 0, dot(side, s.own_normal));
    }
    """)
    boxes = seen.rgb[np.isin(seen.kinds, [EntityKind.BUTTON, EntityKind.CUBE, EntityKind.WALL, EntityKind.DOOR])] / 255
    assert len(boxes) > 1000
    assert np.abs(boxes[:, 0] - 0.5).max() <= 1 / 255
    assert (boxes[:, 2] == 1).mean() > 0.999
    parts = "float3 surface_colour(Surface s) { return float3(s.part, s.own_normal.y > 0, s.kind == 4); }"
    parts = Seen(parts, num_agents=6, num_worlds=8, width=48, height=48).rgb
    eyes = parts[parts[..., 0] == 255]
    assert len(eyes) > 10
    assert (eyes[:, 2] == 255).all()
    assert (eyes[:, 1] == 255).mean() > 0.5  # in front


BROKEN = {
    "float3 surface_colour(Surface surface)\n{\n    retrun 1;\n}": ("material:3:5:", "undeclared identifier 'retrun'"),
    "float3 surface_colour(Surface surface) { return surface.color; }": ("material:1:57:", "no member named 'color'"),
    "": ("undeclared identifier 'surface_colour'",),
    "void surface_colour(Surface surface) {}": ("cannot convert from 'void' to 'float3'",),
    "#include </etc/passwd>\nfloat3 surface_colour(Surface s) { return 1; }": ("material:1:10:", "file not found"),
    "Texture2D<float4> t; float3 surface_colour(Surface s) { return t[uint2(0, 0)].rgb; }": ("material:", "resources"),
    "float k; float3 surface_colour(Surface s) { return k; }": ("material:", "non-static"),
    "groupshared float g; float3 surface_colour(Surface s) { g = s.slot; return g; }": ("groupshared",),
    "float3 surface_colour(Surface s) { double d = s.depth; return float(d * d); }": ("capability 10",),
    "float3 surface_colour(Surface s) { return WaveActiveSum(s.depth); }": ("capability",),
    "float3 surface_colour(Surface s) { if (s.slot) GroupMemoryBarrierWithGroupSync(); return 1; }": ("barriers",),
    "float3 surface_colour(Surface s) { doorstep::depth[0] = 1; return 1; }": ("material:1:46:", "no member named"),
}


@on_vulkan()
def test_broken_materials_are_errors_with_the_compilers_message():
    with Simulator(2, cameras=Cameras(width=16, height=16, renderer="vulkan")) as bystander:
        for material, messages in BROKEN.items():
            with pytest.raises(ShaderError) as caught:
                simulator(material)
            assert all(message in str(caught.value) for message in messages), (material, str(caught.value))
            said = ("warning" in str(caught.value), caught.value.argument, bool(caught.value.hint))
            assert said == (False, "material", True)
            bystander.step()
        assert doorstep.live_counts()["simulator"] == 1


@on_vulkan()
def test_messages_name_the_file(tmp_path):
    path = Path(tmp_path) / 'a "strange" name.hlsl'
    path.write_text("// first line\nfloat3 surface_colour(Surface s) { return nothing; }\n", encoding="utf-8")
    with pytest.raises(ShaderError, match="undeclared identifier 'nothing'") as caught:
        simulator(path)
    assert f"{path}:2:" in str(caught.value).replace("\\", "")
    path.write_text("float3 surface_colour(Surface s) { return float3(0, 1, 0); }", encoding="utf-8")
    with simulator(path) as sim:
        assert (sim.rgb.to_numpy()[sim.segmentation.to_numpy()[..., 0] == FLOOR][:, :3] == (0, 255, 0)).all()
