"""`MetricsConfig`: what an engine measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

from doorstep._arguments import refuse
from doorstep._configs import Integer, NativeConfig
from doorstep._native._generated import ConfigKind


@final
@dataclass(frozen=True)
class MetricsConfig(NativeConfig):
    """What an engine measures. `MetricsStore.write_trace()` writes the events of a trace; a step makes about four.

    Raises:
        ArgumentError: a value is out of range, or a trace is asked for with `enabled=False`.
    """

    kind = ConfigKind.METRICS

    # generated: ds_metrics_config
    enabled: Annotated[bool, "Whether it measures at all."] = True
    trace: Annotated[
        int,
        Integer(0, 16777216),
        "Events that the queue and each replica keep for a trace, the latest ones; one takes 48 bytes.",
    ] = 0
    # end

    def _check(self) -> None:
        if self.trace and not self.enabled:
            refuse("trace", "0 where enabled is False", self.trace)
