"""Training agents with proximal policy optimisation (PPO); needs PyTorch: pip install "doorstep[train]".

`train()` trains in a folder, from a `TrainingConfig` or a `preset()`; `resume()` goes on; `doorstep.load_policy()`
plays the result. `doorstep train` is the command.
"""

from __future__ import annotations

from doorstep._optional import missing

try:
    import torch  # noqa: F401  what follows imports it
except ImportError as error:
    raise missing("doorstep.training needs PyTorch", "train", error) from error

from doorstep.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from doorstep.training.config import (
    CurriculumConfig,
    ExperienceConfig,
    LearnabilityCurriculum,
    LSTMNetwork,
    MLPNetwork,
    PPOConfig,
    TrainingConfig,
    UniformCurriculum,
)
from doorstep.training.curriculum import Curriculum, register_curriculum
from doorstep.training.distributed import Ranks
from doorstep.training.errors import LostRankError, NonFiniteLossError, TrainingError
from doorstep.training.logs import read_log
from doorstep.training.presets import preset
from doorstep.training.run import resume, train
from doorstep.training.trained import export_policy
from doorstep.training.trainer import Trainer

__all__ = [
    "Checkpoint",
    "Curriculum",
    "CurriculumConfig",
    "ExperienceConfig",
    "LSTMNetwork",
    "LearnabilityCurriculum",
    "LostRankError",
    "MLPNetwork",
    "NonFiniteLossError",
    "PPOConfig",
    "Ranks",
    "Trainer",
    "TrainingConfig",
    "TrainingError",
    "UniformCurriculum",
    "export_policy",
    "load_checkpoint",
    "preset",
    "read_log",
    "register_curriculum",
    "resume",
    "save_checkpoint",
    "train",
]
