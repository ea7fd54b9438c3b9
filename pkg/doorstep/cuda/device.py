"""A GPU."""

from __future__ import annotations

from typing import Literal, final
from uuid import UUID

from doorstep._arguments import check_integer, is_integer, refuse
from doorstep._copies import Owner
from doorstep._native import KernelSource, cuda_device, cuda_driver, resources
from doorstep._streams import current_device_index

MAX_INDEX = 2**31 - 1


@final
class Device(Owner, remedy="send its index"):
    """An NVIDIA GPU, by its number; numbers are the driver's, after CUDA_VISIBLE_DEVICES.

    Args:
        index: the number, 0 to `Device.count()` - 1.

    Raises:
        NoDeviceError: there is no device of that number.
        DeviceError: the driver or the device cannot be used; every reason has its own subclass.
    """

    __slots__ = ("_index", "_info")

    def __init__(self, index: int = 0) -> None:
        self._index = check_integer("index", index, 0, MAX_INDEX)
        self._info = cuda_device(self._index)

    @staticmethod
    def count() -> int:
        """Number of GPUs that this process sees."""
        return cuda_driver().device_count

    @property
    def index(self) -> int:
        """Its number: K of "cuda:K"."""
        return self._index

    @property
    def name(self) -> str:
        """The name that the driver reports."""
        return self._info.name.decode(errors="replace")

    @property
    def uuid(self) -> UUID:
        """16 bytes that identify the GPU in every API; Vulkan calls them `deviceUUID`."""
        return UUID(bytes=bytes(self._info.uuid))

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor number: (9, 0) is sm_90."""
        return divmod(self._info.compute_capability, 10)

    @property
    def multiprocessors(self) -> int:
        """Number of streaming multiprocessors."""
        return self._info.multiprocessors

    @property
    def total_bytes(self) -> int:
        """Bytes of memory of the device."""
        return self._info.total_bytes

    @property
    def free_bytes(self) -> int:
        """Bytes of memory that are free now."""
        return cuda_device(self._index).free_bytes

    @property
    def kernel_source(self) -> Literal["embedded", "compiler", "driver"]:
        """The source of this device's machine code.

        "embedded": in the library. "compiler": the library compiles it once and caches it on disk. "driver": the driver
        compiles it when the first simulator is created.
        """
        return _KERNEL_SOURCES[KernelSource(self._info.kernel_source)]

    def synchronize(self) -> None:
        """Waits until all work that this process began on the device has ended."""
        resources.synchronize_context(resources.context(self._index))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other._index == self._index

    def __hash__(self) -> int:
        return hash((Device, self._index))

    def __repr__(self) -> str:
        return f"cuda.Device({self._index}, {self.name!r})"


_KERNEL_SOURCES: dict[KernelSource, Literal["embedded", "compiler", "driver"]] = {
    KernelSource.EMBEDDED: "embedded",
    KernelSource.COMPILER: "compiler",
    KernelSource.DRIVER: "driver",
}


def check_device_index(device: object) -> int:
    """The number of a Device or an integer; None: that of PyTorch's current device, or 0."""
    if device is None:
        return current_device_index()
    if isinstance(device, Device):
        return device.index
    if not is_integer(device):
        refuse("device", f"a cuda.Device, an integer, 0 to {MAX_INDEX}, or None", device)
    return check_integer("device", device, 0, MAX_INDEX)
