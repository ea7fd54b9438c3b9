"""Random configurations: every field of every class gets values that its rule allows, its limits among them."""

import importlib.util
import math

from doorstep import OBSERVATIONS, Cameras, RolloutConfig, SimulatorConfig
from doorstep._configs import Integer, Number
from doorstep._configs.annotations import field_rules
from doorstep._configs.polymorphic import PolymorphicPart
from doorstep._configs.rules import Choice, Device, Flag, Items, Optional, Text
from doorstep._observations import ObservationsRule, PartsRule
from doorstep.errors import ArgumentError
from doorstep.evaluation.config import EvaluationConfig
from doorstep.levels import Rewards, reference
from doorstep.levels.field import PlayedLevels
from doorstep.levels.reward_terms import RewardTerms
from doorstep.policy import SamplingParams

CLASSES = (SimulatorConfig, SamplingParams, RolloutConfig, EvaluationConfig)
if importlib.util.find_spec("torch"):  # which doorstep.training needs
    from doorstep.training import TrainingConfig

    CLASSES += (TrainingConfig,)


NOT_DRAWN = ("cameras", "level_weights", "type")


def draw_config(cls, random):
    """A config without cameras, which engines refuse, and weights, whose number must be that of levels."""
    while True:
        fields = {name: draw(rule, random) for name, (rule, _) in field_rules(cls).items() if name not in NOT_DRAWN}
        try:
            return cls(**fields)
        except ArgumentError:  # of a rule about several fields; they are few
            continue


def draw(rule, random):
    match rule:
        case Optional():
            return None if random.random() < 0.3 else draw(rule.rule, random)
        case Items():
            return tuple(draw(rule.item, random) for _ in range(random.randint(1, 3)))
        case PolymorphicPart():
            return draw_config(random.choice(rule.cls.registry.classes()), random)
        case Integer():
            return random.choice([rule.low, rule.high, random.randint(rule.low, min(rule.high, rule.low + 9))])
        case Number():
            least = rule.low if rule.low is not None else rule.above or 0
            most = rule.high or 9
            return random.choice([most, least + (most - least) * (1 - random.random()), 1.5e-30])
        case Flag():
            return random.random() < 0.5
        case Choice():
            return random.choice(rule.names)
        case Device():
            return random.choice(["cpu", "cuda", "cuda:3", "auto"])
        case ObservationsRule():
            return random.choice([OBSERVATIONS, "by_name", draw_parts(random)])
        case PartsRule():
            return draw_parts(random)
        case PlayedLevels():
            return random.choice(["reference", "curated", "room_types", (reference(),)])
        case RewardTerms():
            return Rewards(goal=random.random(), progress=random.choice([-1e6, 0.0, 1e-30]))
        case Text():
            return random.choice(["none", "NONE", "", '"', "[", "a b", "a,b", "path/to/file.py:function", "é%=-- "])
    return draw_config(rule.cls, random)  # type: ignore[attr-defined]


def draw_parts(random):
    """Parts in any order, some with scales."""
    names = random.sample([*OBSERVATIONS, "physics"], random.randint(1, 4))
    return tuple(random.choice([name, (name, random.choice([1e-30, 0.1, 3.0, 1e6]))]) for name in names)


def with_cameras(config, random):
    position = tuple(random.choice([0.0, -1.5, 1e-7, 3.0]) for _ in range(3))
    cameras = Cameras(width=random.randint(1, 99), fov=random.uniform(1, 179), position=position, depth=False)
    return config.replace(cameras=cameras)


def is_close(value, other):
    """Equal as single precision sees it."""
    return value == other or math.isclose(value, other, rel_tol=1e-7)
