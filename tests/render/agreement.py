"""What a view shows in double precision, and whether two renderers agree: on every pixel but those on silhouettes,
where rounding decides what is seen."""

import itertools
from types import SimpleNamespace

import numpy as np

import doorstep

Views = dict[str, np.ndarray]

# How far renderers may differ: in grey levels; in metres up to 1 m, and relatively beyond.
ALLOWED = {"rgb": 1, "depth": 1e-3, "segmentation": 0, "normals": 1e-3}
OUTPUTS = dict.fromkeys(ALLOWED, True)
# Within one thing a jump of the normal is an edge, and one of an agent's colour the rim of an eye.
EDGE_NORMAL = 0.3
EDGE_GREY_LEVELS = 40
NEIGHBOURS = list(itertools.product((-1, 0, 1), repeat=2))  # rows and columns


def views_of(sim):
    """Copies of what cameras with all outputs show, as arrays [views, H, W, ...]."""
    views = {name: sim.tensors[name].copy_to_host() for name in OUTPUTS}
    return {name: view.reshape(-1, *view.shape[2:]) for name, view in views.items()}


def compare(left, right):
    """Compares the views of two renderers of the same worlds.

    Returns how many pixels there are; silhouettes: on how many of them something ends in either picture, those are not
    compared; differing: by output, how many of the others differ by more than the renderers may, and by how much at
    most; stray: how many silhouette pixels show a thing that neither picture has there or next to it.
    """
    edges = silhouettes(left) | silhouettes(right)
    scale = {"depth": np.maximum(1, np.minimum(left["depth"], right["depth"]))}
    far = {name: _distance(left[name] / scale.get(name, 1), right[name] / scale.get(name, 1)) for name in ALLOWED}
    differing = {name: int(((far[name] > most) & ~edges).sum()) for name, most in ALLOWED.items()}
    largest = {name: float(np.where(edges, 0, far[name]).max()) for name in ALLOWED}
    stray = int((~_is_near(left, right) | ~_is_near(right, left)).sum())
    counts = {"pixels": edges.size, "silhouettes": int(edges.sum()), "stray": stray}
    return SimpleNamespace(**counts, differing=differing, largest=largest)


def check_agreement(left, right, most_silhouettes=0.2):
    """Asserts that two renderers agree, and that nearly all pixels were compared."""
    found = compare(left, right)
    assert not any(found.differing.values()), found
    assert found.stray <= 2e-4 * found.pixels, found  # what is smaller than a pixel may be seen by one alone
    assert found.silhouettes < most_silhouettes * found.pixels, found


def silhouettes(views):
    """Pixels [views, H, W] whose neighbourhood of 3 x 3 shows more than one thing, or an edge of one."""
    things, normals, colours = _things(views), views["normals"], views["rgb"].astype(np.int32)
    is_agent = views["segmentation"][..., 0] == doorstep.EntityKind.AGENT
    edges = np.zeros(things.shape, np.bool_)
    for offset in NEIGHBOURS:
        edges |= things != _shifted(things, offset)
        edges |= _distance(normals, _shifted(normals, offset)) > EDGE_NORMAL
        edges |= is_agent & (_distance(colours, _shifted(colours, offset)) > EDGE_GREY_LEVELS)
    return edges


def _is_near(left, right):
    """Where the left picture shows something that the right one shows there or next to it."""
    return np.any([_things(left) == _shifted(_things(right), offset) for offset in NEIGHBOURS], axis=0)


def _things(views):
    segmentation = views["segmentation"].astype(np.int32)
    return segmentation[..., 0] + 256 * segmentation[..., 1]


def _shifted(image, offset):
    """Every pixel's neighbour at (rows, columns); at the border the nearest one there is."""
    height, width = image.shape[1:3]
    rows = np.clip(np.arange(height) + offset[0], 0, height - 1)
    columns = np.clip(np.arange(width) + offset[1], 0, width - 1)
    return image[:, rows][:, :, columns]


def _distance(left, right):
    return np.abs(left.astype(np.float64) - right).max(axis=-1)


# ---- In double precision

FLOOR = 6
BUTTON_SIDE, BUTTON_HEIGHT, PRESSED_BUTTON_HEIGHT = 1.3, 0.12, 0.03


def rays_of(sim, world, agent, cameras):
    """Origin and directions [H, W, 3] of a view's rays; along forward a direction has length 1."""
    assert cameras.rotation == (1, 0, 0, 0)
    w, _, _, z = sim.state.body_rotations.to_numpy()[world, agent].astype(float)
    yaw = 2 * np.arctan2(z, w)
    right, forward = np.array([np.cos(yaw), np.sin(yaw), 0]), np.array([-np.sin(yaw), np.cos(yaw), 0])
    tangent = np.tan(np.radians(cameras.fov) / 2)
    columns = tangent * cameras.width / cameras.height * ((np.arange(cameras.width) + 0.5) * 2 / cameras.width - 1)
    rows = tangent * (1 - (np.arange(cameras.height) + 0.5) * 2 / cameras.height)
    directions = forward + columns[None, :, None] * right + rows[:, None, None] * np.array([0, 0, 1.0])
    return sim.state.body_positions.to_numpy()[world, agent].astype(float) + np.array([0, 0, 1.5]), directions


def boxes_of(sim, world):
    """Kind, slot, centre, axes (rows) and half extents of everything but agents."""
    fields = {name: getattr(sim.state, name).to_numpy()[world] for name in dir(sim.state) if name[:4] in BOXES}
    boxes = []
    for slot in range(sim.num_agents, len(fields["body_kinds"])):
        w, x, y, z = fields["body_rotations"][slot].astype(float)
        axes = [
            [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
            [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
            [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
        ]
        half = fields["body_sizes"][slot].astype(float) / 2
        centre = fields["body_positions"][slot].astype(float)
        boxes.append((fields["body_kinds"][slot], slot, centre, np.array(axes), half))
    for slot, kind in enumerate(fields["static_kinds"]):
        half = fields["static_sizes"][slot].astype(float) / 2
        boxes.append((kind, slot, fields["static_positions"][slot] + np.array([0, 0, half[2]]), np.eye(3), half))
    for slot, pressed in enumerate(fields["button_pressed"]):
        half = np.array([BUTTON_SIDE, BUTTON_SIDE, PRESSED_BUTTON_HEIGHT if pressed else BUTTON_HEIGHT]) / 2
        centre = fields["button_positions"][slot] + np.array([0, 0, half[2]])
        boxes.append((doorstep.EntityKind.BUTTON, slot, centre, np.eye(3), half))
    return [box for box in boxes if box[0] != doorstep.EntityKind.NONE]


BOXES = ("body", "stat", "butt")  # how the names of their fields begin


def cast(origin, directions, boxes):
    """Depth and (kind, slot) that the rays meet, by slabs, floor included."""
    depth = np.where(directions[..., 2] < 0, -origin[2] / np.minimum(directions[..., 2], -1e-30), np.inf)
    seen = np.zeros((*directions.shape[:2], 2))
    seen[np.isfinite(depth)] = (FLOOR, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        for kind, slot, centre, axes, half in boxes:
            start, along = axes @ (origin - centre), directions @ axes.T
            first, second = (-half - start) / along, (half - start) / along
            enter, leave = np.minimum(first, second).max(-1), np.maximum(first, second).min(-1)
            hit = (enter < leave) & (enter > 0) & (enter < depth)
            depth[hit] = enter[hit]
            seen[hit] = (kind, slot)
    return np.where(np.isfinite(depth), depth, 0), seen
