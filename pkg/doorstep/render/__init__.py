"""Pictures for people: `Simulator.render` draws them, these functions make PNG files of them."""

from __future__ import annotations

from doorstep.render.png import encode_png, write_png

__all__ = ["encode_png", "write_png"]
