"""Pictures for people: `Simulator.render` draws them, these functions write them as PNG files."""

from __future__ import annotations

from doorstep.render.png import encode_png, write_png

__all__ = ["encode_png", "write_png"]
