"""Replays: some worlds over time in one HTML file, which any browser plays without a network.

page/ is the page without its recording.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doorstep._files import printable, write_text
from doorstep._native import VERSION_STRING
from doorstep.recording.world_moments import Moment, WorldMoments
from doorstep.render import look
from doorstep.render.camera import overview_box
from doorstep.render.objects import Objects
from doorstep.simulator import Simulator

_PAGE = Path(__file__).parent / "page"
_SCRIPTS = (
    *("geometry.js", "meshes.js", "recording.js", "cameras.js", "marks.js", "renderer.js"),
    *("views.js", "curve.js", "side.js", "input.js", "page.js"),
)
_COLOURS = ("text", "muted", "panel", "ground", "border", "open")
_STYLE = " ".join(f"--{name}: {look.table()[name]};" for name in _COLOURS)
_LARGEST = 32767  # of the integers that poses are written in
_FINEST_UNIT = 0.001  # metres
_ROTATION_STEPS = 2047  # of a quaternion's component, from 0 to 1
_FRAME_HEIGHT = 560  # pixels, in notebooks


class ReplayPage:
    """Worlds of a simulator, moment by moment, as one HTML file.

    The page plays, stops and scrubs, shows all worlds or one from above, from behind an agent or from any place, and
    has curves of the returns and a list of events that lead to their moments.

    Args:
        sim: the simulator; its worlds as they are now are the first moment.
        worlds: distinct slots of its worlds.
        title: the page's heading.
        until_out: each world stops when all of its agents are out, or its episode ends.
    """

    def __init__(self, sim: Simulator, worlds: Sequence[int], title: str, until_out: bool = False) -> None:
        self._sim = sim
        self._slots = list(worlds)
        self._title = title
        self._worlds = [WorldMoments(until_out) for _ in self._slots]
        self.record()

    def __len__(self) -> int:
        """Moments recorded so far, of the world with the most."""
        return max(len(world.moments) for world in self._worlds)

    def record(self) -> None:
        """Records the worlds as they are now; call it after every step."""
        sim = self._sim
        tensors = (sim.rewards, sim.terminations, sim.steps_remaining)
        rewards, terminations, remaining = (tensor.copy_to_host()[:, :, 0] for tensor in tensors)
        length = None if sim.config.max_levels else sim.episode_length
        for slot, world, snapshot in zip(self._slots, self._worlds, sim._snapshots(self._slots), strict=True):
            world.see(snapshot, rewards[slot], bool(terminations[slot].any()), int(remaining[slot, 0]), length)

    def to_html(self) -> str:
        """The HTML file as text."""
        parts = {
            "title": html.escape(f"doorstep: {printable(self._title)}"),
            "style": f":root {{ {_STYLE} }}\n{_read('page.css')}",
            "recording": self._recording(),
            "script": "\n".join(_read(name) for name in _SCRIPTS),
        }
        return re.sub(r"@(\w+)@", lambda match: parts[match[1]], _read("page.html"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the HTML file.

        Raises:
            OSError: the file cannot be written; an older file at `path` is unchanged.
        """
        write_text(path, self.to_html())

    def in_frame(self) -> str:
        """The page as an element of a notebook."""
        page = html.escape(self.to_html())
        return f'<iframe srcdoc="{page}" style="width: 100%; height: {_FRAME_HEIGHT}px; border: 0"></iframe>'

    # ---- The recording, as recording.js reads it

    def _recording(self) -> str:
        """JSON. `data` holds, for each world, the arrays of `_arrays` one after the other, compressed as a whole."""
        unit = self._unit()
        data = b"".join(part for world in self._worlds for part in _arrays(world.moments, unit))
        recording = {
            "version": VERSION_STRING,
            "unit": unit,
            "agents": self._sim.num_agents,
            "colours": look.OBJECTS,
            "look": look.table(),
            "worlds": [
                {
                    "world": self._sim.world_offset + slot,
                    "moments": len(world.moments),
                    "level": printable(world.level) if self._sim.config.max_levels else "",
                    "objects": len(world.moments[0].objects),
                    "bounds": _bounds(world.moments),
                    "box": _box(world.moments),
                    "events": [[event.moment, event.step, event.text] for event in world.events],
                }
                for slot, world in zip(self._slots, self._worlds, strict=True)
            ],
            "data": base64.b64encode(zlib.compress(data, 9)).decode("ascii"),
        }
        return json.dumps(recording).replace("<", "\\u003c")

    def _unit(self) -> float:
        """Metres that a written length of 1 stands for: as fine as the largest length allows."""
        lengths = [
            float(np.abs(np.nan_to_num(moment.objects[name], posinf=0.0, neginf=0.0)).max())
            for world in self._worlds
            for moment in world.moments
            for name in ("centre", "size")
        ]
        return max(_FINEST_UNIT, max(lengths) / _LARGEST)


def _bounds(moments: list[Moment]) -> list[float]:
    """The rectangle around a world's levels and their goals: its low and its high (x, y), metres."""
    low, high = _around([moment.snapshot.level_bounds() for moment in moments])
    return [*low, *high]


def _box(moments: list[Moment]) -> list[list[float]]:
    """What the camera "overview" shows of a world: low and high (x, y, z), metres."""
    with np.errstate(invalid="ignore"):
        return _around([overview_box(moment.snapshot) for moment in moments])


def _around(boxes: Sequence[object]) -> list[list[float]]:
    finite = np.nan_to_num(np.array(boxes, np.float64), posinf=0.0, neginf=0.0)
    return [finite[:, 0].min(axis=0).tolist(), finite[:, 1].max(axis=0).tolist()]


def _arrays(moments: list[Moment], unit: float) -> list[bytes]:
    """Arrays of a world, little-endian, over M moments, A agents, O objects; the last is filled up to 4 bytes.

    rewards and final rewards float32 [M, A] each, episodes int32 [M], episode steps int32 [M],
    held bodies int32 [M, A] (-1: none), leading agent int32 [M], all agents out int32 [M],
    goals float32 [M, 4]: low x and y, high x and y,
    columns of objects int16 [12, O, M] as differences along M: kind, index in `colours`, centre, rotation, size.
    """
    snapshots = [moment.snapshot for moment in moments]
    columns = _columns(np.stack([moment.objects for moment in moments]), unit)
    differences = np.diff(columns, axis=-1, prepend=np.int16(0)).astype("<i2").tobytes()
    return [
        np.stack([moment.rewards for moment in moments]).astype("<f4").tobytes(),
        np.stack([moment.final_rewards for moment in moments]).astype("<f4").tobytes(),
        np.array([snapshot.episode_index for snapshot in snapshots], "<i4").tobytes(),
        np.array([moment.episode_step for moment in moments], "<i4").tobytes(),
        np.stack([snapshot.agent_grabs for snapshot in snapshots]).astype("<i4").tobytes(),
        np.array([snapshot.leading_agent for snapshot in snapshots], "<i4").tobytes(),
        np.array([moment.is_out for moment in moments], "<i4").tobytes(),
        np.stack([np.concatenate(snapshot.goal_bounds()) for snapshot in snapshots]).astype("<f4").tobytes(),
        differences + bytes(-len(differences) % 4),
    ]


def _columns(objects: Objects, unit: float) -> NDArray[np.int16]:
    """int16 [12, O, M] of objects [M, O]; differences between such numbers wrap around."""
    parts = [
        objects["kind"][..., None].astype(np.float64),
        objects["colour"][..., None].astype(np.float64),
        objects["centre"] / unit,
        objects["rotation"] * np.float64(_ROTATION_STEPS),
        objects["size"] / unit,
    ]
    whole = np.rint(np.nan_to_num(np.concatenate(parts, axis=-1), posinf=0.0, neginf=0.0))
    return np.ascontiguousarray(whole.clip(-_LARGEST, _LARGEST).astype(np.int16).transpose(2, 1, 0))


def _read(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")
