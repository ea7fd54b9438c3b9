"""An array of a library that offers DLPack alone, which numpy does not read by itself."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


class OnlyDlpack:
    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()
