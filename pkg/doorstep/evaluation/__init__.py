"""Comparing policies: every one plays the same episodes of the same levels, and each episode is counted once.

`evaluate()`, which is also `doorstep.evaluate()`, plays and returns an `Evaluation`. `evaluate_config()` plays what an
`EvaluationConfig` says, which files and options of the command line can describe. `doorstep.plots.plot_evaluation()`
draws an evaluation.
"""

from __future__ import annotations

from doorstep.evaluation.arenas import Arena
from doorstep.evaluation.comparison import Aggregate, Improvement
from doorstep.evaluation.config import EvaluationConfig
from doorstep.evaluation.episodes import episode_seeds
from doorstep.evaluation.evaluation import Evaluation, EvaluationRules
from doorstep.evaluation.run import evaluate, evaluate_config
from doorstep.evaluation.scores import RoomScore, Score
from doorstep.evaluation.statistics import Estimate

__all__ = [
    "Aggregate",
    "Arena",
    "Estimate",
    "Evaluation",
    "EvaluationConfig",
    "EvaluationRules",
    "Improvement",
    "RoomScore",
    "Score",
    "episode_seeds",
    "evaluate",
    "evaluate_config",
]
