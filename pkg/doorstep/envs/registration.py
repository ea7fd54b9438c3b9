"""Environments by name in gymnasium: importing this module registers them.

    gymnasium.make_vec("doorstep.envs.registration:doorstep/EscapeRoom-v0", num_envs=1024)

imports it. Gymnasium reads no entry points of installed packages, so a name needs an import before it.
"""

from __future__ import annotations

import gymnasium

ENVIRONMENT_ID = "doorstep/EscapeRoom-v0"


def register() -> None:
    """Registers `doorstep/EscapeRoom-v0` for `gymnasium.make` and `gymnasium.make_vec`; again has no effect."""
    if ENVIRONMENT_ID not in gymnasium.registry:
        gymnasium.register(
            ENVIRONMENT_ID,
            entry_point="doorstep.envs.single:EscapeRoomEnv",
            vector_entry_point="doorstep.envs.vector:EscapeRoomVectorEnv",
        )


register()
