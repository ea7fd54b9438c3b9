"""CUDA graphs: a function's work on the GPU, recorded once and then launched as one."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch


def recorded(
    function: Callable[[], None], device: torch.device, generator: torch.Generator, enabled: bool
) -> Callable[[], None]:
    """`function` itself on the CPU, or if not enabled. On a GPU the first call runs it as it is, which makes everything
    that it makes once; the second records it; that and all later calls replay the recording.

    The function's work is the same in every call, and waits for nothing. generator: draws its random numbers.
    """
    if device.type != "cuda" or not enabled:
        return function
    graph: torch.cuda.CUDAGraph | None = None
    is_warm = False

    def run() -> None:
        nonlocal graph, is_warm
        if not is_warm:
            is_warm = True
            function()
            return
        if graph is None:
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(generator)
            gc.collect()  # an older graph that garbage holds would end this capture by ending within it
            with torch.cuda.graph(graph):
                function()
        graph.replay()

    return run
