"""Compiles one CUDA C++ file to PTX with the NVRTC library.

    python wheel_build/nvrtc.py LIBRARY SOURCE OUTPUT [OPTIONS...]

A separate process, so that several compile at once and a crash of the compiler is an exit status.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path


class Nvrtc:
    """The functions of NVRTC that a compilation needs."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def compile(self, name: str, source: str, options: list[str]) -> tuple[bytes, str]:
        """The PTX, empty if the source has errors, and the compiler's log."""
        program = ctypes.c_void_p()
        text = source.encode()
        self._call("nvrtcCreateProgram", ctypes.byref(program), text, name.encode(), 0, None, None)
        arguments = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        failed = self._library.nvrtcCompileProgram(program, len(options), arguments) != 0
        log = self._text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog", program).decode(errors="replace")
        return b"" if failed else self._text("nvrtcGetPTXSize", "nvrtcGetPTX", program), log

    def _text(self, size_function: str, function: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(size_function, program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(function, program, text)
        return text.value

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != 0:
            sys.exit(f"{function}: {self._library.nvrtcGetErrorString(status).decode()}")


def main() -> None:
    """Write the PTX, or print the compiler's errors and exit with status 1."""
    library, source, output, *options = sys.argv[1:]
    path = Path(source)
    ptx, log = Nvrtc(Path(library)).compile(path.name, path.read_text(encoding="utf-8"), options)
    sys.stderr.write(log)
    if not ptx:
        sys.exit(1)
    Path(output).write_bytes(ptx)


if __name__ == "__main__":
    main()
