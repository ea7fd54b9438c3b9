"""Recordings: the rules and the actions of a run in one file, from which the same worlds result on every device.

`doorstep.record()` plays worlds and records them, `RecordingWriter` records while you step a simulator, and `Recording`
reads a file, replays it and draws it. `Replay` steps a simulator through it. docs/reference/recording_format.md
describes the file.
"""

from __future__ import annotations

from doorstep.recording.record import record
from doorstep.recording.recording import Recording
from doorstep.recording.replaying import Replay
from doorstep.recording.writer import RecordingWriter

__all__ = ["Recording", "RecordingWriter", "Replay", "record"]
