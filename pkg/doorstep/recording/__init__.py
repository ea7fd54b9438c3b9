"""Recordings: the rules and the actions of a run in one file, from which the same worlds result on every device.

`RecordingWriter` records while a simulator is stepped, `Recording` reads the file, `Replay` steps another simulator
through it, and `replay` does so to the end. docs/reference/recording_format.md describes the file.
"""

from __future__ import annotations

from doorstep.recording.reader import Recording
from doorstep.recording.replaying import Replay, replay
from doorstep.recording.writer import RecordingWriter

__all__ = ["Recording", "RecordingWriter", "Replay", "replay"]
