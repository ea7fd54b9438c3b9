"""A `RolloutEngine` and its metrics over HTTP.

with doorstep.RolloutEngine(num_worlds=64) as engine:
    engine.policies["random"] = "random"
    serve(engine, port=8000)  # until Ctrl-C
"""

from __future__ import annotations

from doorstep.serve.server import serve

__all__ = ["serve"]
