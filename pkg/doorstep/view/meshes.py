"""The meshes of the view, made in code. Triangles are counter-clockwise seen from outside; +y is forward, +z up."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Mesh:
    """Triangles. Vertices that triangles share are shaded smoothly."""

    vertices: NDArray[np.float32]  # [V, 3]
    faces: NDArray[np.uint32]  # [F, 3]


def box(base: float) -> Mesh:
    """A box of side 1, centred but for its height: `base` is the z of its lower side. Flat sides."""
    vertices: list[NDArray[np.float64]] = []
    faces: list[NDArray[np.int64]] = []
    for axis in range(3):
        for sign in (-1, 1):
            corners = np.zeros((4, 3))
            corners[:, axis] = sign
            corners[:, (axis + 1) % 3] = (-1, 1, 1, -1)
            corners[:, (axis + 2) % 3] = (-1, -1, 1, 1)
            order = np.array([[0, 1, 2], [0, 2, 3]])[:, ::sign]
            faces.append(order + 4 * len(vertices))
            vertices.append(corners / 2)
    return _mesh(np.concatenate(vertices) + np.array([0, 0, base + 0.5]), np.concatenate(faces))


def tiles(low: tuple[float, float], high: tuple[float, float], side: float, odd: bool) -> Mesh:
    """Every other tile of a chessboard on the floor between two corners, seen from above."""
    xs, ys = (np.append(np.arange(begin, end, side), end) for begin, end in zip(low, high, strict=True))
    vertices: list[tuple[float, float, float]] = []
    faces: list[tuple[int, int, int]] = []
    for i, (left, right) in enumerate(itertools.pairwise(xs)):
        for j, (near, far) in enumerate(itertools.pairwise(ys)):
            if (i + j) % 2 == odd:
                first = len(vertices)
                vertices += [(left, near, 0), (right, near, 0), (right, far, 0), (left, far, 0)]
                faces += [(first, first + 1, first + 2), (first, first + 2, first + 3)]
    return _mesh(vertices, faces)


def agent_body() -> Mesh:
    """The body of an agent, in a box of side 1 that stands on the floor: round, with a dome."""
    profile = [(0.41, 0.0), (0.5, 0.09), (0.5, 0.5), (0.47, 0.67), (0.385, 0.82), (0.25, 0.935), (0.0, 1.0)]
    return _turned(profile, segments=20)


def agent_eyes() -> Mesh:
    """Two eyes, where the body of an agent looks ahead."""
    eyes = [_ball(centre=(side * 0.18, 0.37, 0.69), radius=0.12) for side in (-1, 1)]
    faces = [eye.faces + index * len(eye.vertices) for index, eye in enumerate(eyes)]
    return _mesh(np.concatenate([eye.vertices for eye in eyes]), np.concatenate(faces))


def _ball(centre: tuple[float, float, float], radius: float) -> Mesh:
    turns = np.linspace(-np.pi / 2, np.pi / 2, 7)
    ball = _turned([(radius * np.cos(turn), radius * np.sin(turn)) for turn in turns], segments=10)
    return Mesh(ball.vertices + np.asarray(centre, np.float32), ball.faces)


def _turned(profile: list[tuple[float, float]], segments: int) -> Mesh:
    """A body turned around z: rings of (radius, z) from below to above."""
    angles = 2 * np.pi * np.arange(segments) / segments
    rings = [np.stack([r * np.cos(angles), r * np.sin(angles), np.full(segments, z)], axis=1) for r, z in profile]
    faces = []
    for ring in range(len(profile) - 1):
        for segment in range(segments):
            a, b = ring * segments + segment, ring * segments + (segment + 1) % segments
            faces += [(a, b, b + segments), (a, b + segments, a + segments)]
    return _mesh(np.concatenate(rings), faces)


def _mesh(vertices: object, faces: object) -> Mesh:
    return Mesh(np.asarray(vertices, np.float32), np.asarray(faces, np.uint32))
