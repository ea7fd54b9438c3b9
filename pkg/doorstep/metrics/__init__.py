"""What engines measure: counters, time series and quantiles by name and labels, and traces.

with doorstep.RolloutEngine(doorstep.SimulatorConfig(1024)) as engine:
    engine.run(doorstep.rollouts.EpisodeColumns(range(10_000)))
    print(engine.metrics.total("latency_seconds").quantile(0.99))
    print(engine.metrics.to_prometheus())
"""

from __future__ import annotations

from doorstep.metrics.config import MetricsConfig
from doorstep.metrics.store import MetricsStore

__all__ = ["MetricsConfig", "MetricsStore"]
