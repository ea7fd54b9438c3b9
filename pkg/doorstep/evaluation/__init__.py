"""Comparing policies: every one plays the same episodes of the same levels, and each episode is counted once.

`evaluate()`, which is also `doorstep.evaluate()`, plays and returns an `Evaluation`, which
`doorstep.plots.plot_evaluation()` draws.
"""

from __future__ import annotations

from doorstep.evaluation.episodes import episode_seeds
from doorstep.evaluation.evaluation import Evaluation
from doorstep.evaluation.run import evaluate

__all__ = [
    "Evaluation",
    "episode_seeds",
    "evaluate",
]
