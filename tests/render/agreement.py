"""What a view shows in double precision, and whether two renderers agree: on every pixel but those on silhouettes,
where rounding decides what is seen."""

import itertools

import numpy as np
from tests.reference.lidar import Boxes, entry_distances

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


def check_agreement(left, right, most_silhouettes=0.2):
    """Asserts that two renderers agree, and that nearly all pixels were compared: those on which nothing ends."""
    edges = silhouettes(left) | silhouettes(right)
    scale = {"depth": np.maximum(1, np.minimum(left["depth"], right["depth"]))}
    far = {name: _distance(left[name] / scale.get(name, 1), right[name] / scale.get(name, 1)) for name in ALLOWED}
    for name, most in ALLOWED.items():
        differing = (far[name] > most) & ~edges
        assert not differing.any(), f"{differing.sum()} pixels of {name} differ, by up to {far[name][differing].max()}"
    stray = int((~_is_near(left, right) | ~_is_near(right, left)).sum())  # shows a thing that is nowhere near
    assert stray <= 2e-4 * edges.size, stray  # what is smaller than a pixel may be seen by one alone
    assert edges.mean() < most_silhouettes, edges.mean()


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
    """Everything solid but agents, and the buttons: boxes of one world, and their slots."""
    names = (name for name in dir(sim.state) if name.startswith(("body", "static", "button")))
    state = {name: getattr(sim.state, name).to_numpy()[[world]].astype(float) for name in names}
    bodies, statics = state["body_kinds"].shape[1], state["static_kinds"].shape[1]
    heights = np.where(state["button_pressed"], PRESSED_BUTTON_HEIGHT, BUTTON_HEIGHT)
    plates = np.stack([np.full_like(heights, BUTTON_SIDE)] * 2 + [heights], axis=-1)
    standing = np.concatenate([state["static_positions"], state["button_positions"]], axis=1)
    sizes, buttons = np.concatenate([state["static_sizes"], plates], axis=1), heights.shape[1]
    standing[..., 2] += sizes[..., 2] / 2
    upright = np.broadcast_to((1.0, 0, 0, 0), (1, statics + buttons, 4))
    kinds = state["body_kinds"], state["static_kinds"], np.full_like(heights, doorstep.EntityKind.BUTTON)
    boxes = Boxes(
        centres=np.concatenate([state["body_positions"], standing], axis=1),
        rotations=np.concatenate([state["body_rotations"], upright], axis=1),
        sizes=np.concatenate([state["body_sizes"], sizes], axis=1),
        kinds=np.concatenate(kinds, axis=1) * (np.arange(bodies + statics + buttons) >= sim.num_agents),
    )
    return boxes, np.concatenate([np.arange(bodies), np.arange(statics), np.arange(buttons)])


def cast(origin, directions, boxes, slots):
    """Depth and (kind, slot) that the rays meet, by slabs, floor included."""
    entry = entry_distances(origin[None], directions.reshape(1, -1, 3), boxes)[0].reshape(*directions.shape[:2], -1)
    floor = np.where(directions[..., 2] < 0, -origin[2] / np.minimum(directions[..., 2], -1e-30), np.inf)
    nearest, depth = entry.argmin(axis=-1), np.minimum(entry.min(axis=-1), floor)
    seen = np.stack([boxes.kinds[0, nearest], slots[nearest]], axis=-1)
    seen[depth == floor] = (FLOOR, 0)
    seen[np.isinf(depth)] = 0
    return np.where(np.isfinite(depth), depth, 0), seen
