"""What the kernels take, as ptxas tells in its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ENTRY = re.compile(
    r"Compiling entry function '(?P<kernel>\w+)'.*?"
    r"Function properties for (?P=kernel)\n"
    r"[^\n]*?(?P<stack>\d+) bytes stack frame, (?P<spill_stores>\d+) bytes spill stores, "
    r"(?P<spill_loads>\d+) bytes spill loads\n"
    r"[^\n]*?Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class KernelReport:
    """One kernel of one image."""

    num_agents: int
    architecture: int
    image_sha256: str
    kernel: str
    registers: int
    stack_bytes: int
    spill_bytes: int  # stored and loaded
    static_shared_bytes: int


def parse_log(num_agents: int, architecture: int, image_sha256: str, log: str) -> Iterator[KernelReport]:
    """The kernels of `ptxas -v`."""
    for match in _ENTRY.finditer(log):
        shared = _SHARED.search(match["rest"])
        yield KernelReport(
            num_agents,
            architecture,
            image_sha256,
            match["kernel"],
            registers=int(match["registers"]),
            stack_bytes=int(match["stack"]),
            spill_bytes=int(match["spill_stores"]) + int(match["spill_loads"]),
            static_shared_bytes=int(shared[1]) if shared else 0,
        )
