"""Presets: configs with names."""

from __future__ import annotations

from typing import Any

from doorstep._arguments import nearest, refuse
from doorstep.cameras import Cameras
from doorstep.config import SimulatorConfig
from doorstep.levels import GeneratedLevel, Goal, Rewards, curated
from doorstep.levels.generated import RoomTypeName
from doorstep.training.config import ExperienceConfig, LSTMNetwork, MLPNetwork, PPOConfig, TrainingConfig


def leading_outside(name: str, *room_types: RoomTypeName, **fields: Any) -> GeneratedLevel:
    """A level of which all agents should leave the last room."""
    return GeneratedLevel(room_types=room_types, goal=Goal.all_out(), name=name, **fields)


REFERENCE_ROOMS: tuple[RoomTypeName, ...] = ("double_button", "cube_blocking", "cube_buttons")

REFERENCE = leading_outside("reference rooms", *REFERENCE_ROOMS)
LAST_ROOM = leading_outside("last room", *REFERENCE_ROOMS, first_room=2, cubes_near_buttons=0.75)

# For a few CPU cores. The task of the last room is practised: where agents failed, in levels that begin in it, with
# cubes nearer to their buttons, and behind two easy rooms.
DEFAULT = TrainingConfig(
    simulator=SimulatorConfig(512),
    levels=(
        REFERENCE,
        LAST_ROOM,
        leading_outside("easy first rooms", "single_button", "single_button", "cube_buttons"),
    ),
    level_weights=(0.6, 0.3, 0.1),
    reward=Rewards(cube_approach=0.4, goal=2),
    experience=ExperienceConfig(retries=0.45),
    ppo=PPOConfig(
        num_minibatches=16,
        learning_rate=1.5e-3,
        final_learning_rate=5e-5,
        entropy_coefficient=0.003,
        final_entropy_coefficient=3e-4,
    ),
    num_updates=3200,
)

PRESETS: dict[str, TrainingConfig] = {
    "default": DEFAULT,
    # The same for rooms of all types and the curated levels, each of which has a hundredth of the episodes.
    "general": DEFAULT.replace(
        levels=(
            REFERENCE,
            LAST_ROOM,
            leading_outside("single_button rooms", "single_button", "single_button", "single_button"),
            leading_outside("double_button rooms", "double_button", "double_button", "double_button"),
            leading_outside("cube_blocking rooms", "cube_blocking", "cube_blocking", "cube_blocking"),
            leading_outside("cube_buttons rooms", "cube_buttons", "cube_buttons", "cube_buttons"),
            *curated().values(),
        ),
        level_weights=(0.25, 0.1, 0.05, 0.15, 0.1, 0.15, *[0.01] * len(curated())),
        experience=ExperienceConfig(retries=0.35),
        num_updates=4000,
    ),
    # The hyperparameters of the reference's own training script, and the numbers of worlds and updates that its authors
    # recommend, for a GPU.
    "reference": TrainingConfig(
        simulator=SimulatorConfig(8192, seed=5),
        network=MLPNetwork(widths=(256, 256, 256), activation="relu", layer_norm=True),
        experience=ExperienceConfig(
            num_steps=40,
            staggered=False,
            time_limit="terminal",
            normalize_observations=False,
        ),
        ppo=PPOConfig(
            gamma=0.998,
            gae_lambda=0.95,
            clip_range=0.2,
            num_epochs=2,
            num_minibatches=1,
            chunk_length=5,
            learning_rate=1e-4,
            final_learning_rate=None,
            entropy_coefficient=0.01,
            final_entropy_coefficient=None,
            value_coefficient=0.5,
            max_gradient_norm=0.5,
            value_decay=0.999,
        ),
        num_updates=5000,
        num_threads=None,
        checkpoint_every=100,
    ),
    # Agents see 64 x 64 pixels of colour and depth, and nothing else; a memory holds what is behind them.
    "pixels": TrainingConfig(
        simulator=SimulatorConfig(128, cameras=Cameras(width=64, height=64)),
        network=LSTMNetwork(widths=(256,), memory=128),
        ppo=PPOConfig(
            learning_rate=3e-4, final_learning_rate=None, entropy_coefficient=0.003, final_entropy_coefficient=None
        ),
        num_updates=1000,
        num_threads=None,
    ),
}


def preset(name: str) -> TrainingConfig:
    """The config of a name: "default", "general", "reference" or "pixels".

    >>> from doorstep.training import preset
    >>> preset("reference").ppo.learning_rate
    0.0001

    Raises:
        ArgumentError: no preset has this name.
    """
    if not isinstance(name, str) or name not in PRESETS:
        refuse("preset", "one of " + ", ".join(map(repr, PRESETS)), name, nearest(name, PRESETS))
    return PRESETS[name]
