"""NVIDIA GPUs beyond `Simulator(..., device="cuda")`: devices, streams, events, memory and semaphores.

Importing this module does not open the CUDA driver; creating the first object does. Every object keeps what it needs
alive (a buffer its stream, a stream its device's context), may be used from any thread, and does not change the
caller's current CUDA context. Without a driver or a GPU the first use raises `NoDriverError`, `DriverVersionError`,
`DriverFunctionError` or `NoDeviceError`, which say what to do.

Objects of other libraries are accepted: a stream may be an integer, as a `torch.cuda.Stream`, or as any object with
`__cuda_stream__()`.
"""

from __future__ import annotations

from doorstep._native import resource_counts
from doorstep.cuda.buffer import Buffer
from doorstep.cuda.device import Device
from doorstep.cuda.interop_buffer import InteropBuffer
from doorstep.cuda.semaphore import Semaphore
from doorstep.cuda.stream import Event, Stream

__all__ = ["Buffer", "Device", "Event", "InteropBuffer", "Semaphore", "Stream", "resource_counts"]
