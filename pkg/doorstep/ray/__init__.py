"""Episodes on request, played by actors of Ray on all machines of a cluster; needs Ray: pip install "doorstep[ray]".

ray.init()
with RayRolloutEngine(doorstep.SimulatorConfig(1024), RayConfig(num_actors=8)) as engine:
    engine.submit([doorstep.EpisodeRequest(seed=seed) for seed in range(10_000)])
    for result in engine:
        print(result.request.seed, result.returns)
"""

from __future__ import annotations

from doorstep.ray.config import RayConfig
from doorstep.ray.engine import RayRolloutEngine

__all__ = ["RayConfig", "RayRolloutEngine"]
