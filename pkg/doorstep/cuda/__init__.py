"""NVIDIA GPUs for those who want more than `Simulator(..., device="cuda")`: devices, streams, events, memory.

Importing this module does not open the CUDA driver; making the first object does. Every object keeps what it needs
alive (a buffer its stream, a stream its device's context), may be used from any thread, and leaves the caller's
current CUDA context as it was. Without a driver or a GPU the first use raises `NoDriverError`, `DriverVersionError`,
`DriverFunctionError` or `NoDeviceError`, which say what to do.

Other libraries' objects fit in: a stream may be given as an integer, as a `torch.cuda.Stream`, or as any object with
`__cuda_stream__()`.
"""

from __future__ import annotations

from doorstep._native import resource_counts
from doorstep.cuda.buffer import Buffer
from doorstep.cuda.device import Device
from doorstep.cuda.event import Event
from doorstep.cuda.interop_buffer import InteropBuffer
from doorstep.cuda.semaphore import Semaphore
from doorstep.cuda.stream import Stream

__all__ = ["Buffer", "Device", "Event", "InteropBuffer", "Semaphore", "Stream", "resource_counts"]
