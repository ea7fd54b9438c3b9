"""Environments by name in gymnasium. It calls `register` when it is imported itself, as the entry point of its plugins."""

from __future__ import annotations

ENVIRONMENT_ID = "doorstep/EscapeRoom-v0"


def register() -> None:
    """Registers `doorstep/EscapeRoom-v0` for `gymnasium.make` and `gymnasium.make_vec`; again has no effect."""
    import gymnasium

    if ENVIRONMENT_ID not in gymnasium.registry:
        gymnasium.register(
            ENVIRONMENT_ID,
            entry_point="doorstep.envs.single:EscapeRoomEnv",
            vector_entry_point="doorstep.envs.vector:EscapeRoomVectorEnv",
            disable_env_checker=False,
        )
