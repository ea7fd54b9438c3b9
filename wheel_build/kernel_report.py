"""The resource usage of kernels, parsed from the log of ptxas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry function|\Z)", re.DOTALL)
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class KernelReport:
    """One kernel of one image, with the functions it calls."""

    module: int
    architecture: int
    image_sha256: str
    kernel: str
    registers: int
    stack_bytes: int  # of the deepest chain of calls
    spill_bytes: int  # of all stores and loads in the code
    static_shared_bytes: int


def parse_log(module: int, architecture: int, image_sha256: str, log: str) -> Iterator[KernelReport]:
    """The kernels in the output of `ptxas -v`, which lists the functions that a kernel calls after it."""
    for kernel, text in _ENTRY.findall(log):
        frames = [[int(number) for number in match] for match in _FRAME.findall(text)]
        yield KernelReport(
            module,
            architecture,
            image_sha256,
            kernel,
            registers=_number(_REGISTERS, text),
            stack_bytes=max(frames[0][0], _number(_STACK, text)),
            spill_bytes=sum(stores + loads for _, stores, loads in frames),
            static_shared_bytes=_number(_SHARED, text),
        )


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0
