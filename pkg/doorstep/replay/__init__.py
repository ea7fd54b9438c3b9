"""Replays: some worlds over time in one HTML file, which opens in any browser and needs nothing from elsewhere."""

from __future__ import annotations

from doorstep.replay.replay import Replay

__all__ = ["Replay"]
