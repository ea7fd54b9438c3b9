"""Pictures for people: what a world looks like, from where, and PNG files of it."""

from __future__ import annotations

from doorstep.render.camera import CameraPose
from doorstep.render.png import encode_png, write_png

__all__ = ["CameraPose", "encode_png", "write_png"]
