"""The text of a shard: the rules under which its episodes were played, and their levels, as recordings have them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from doorstep.config import SimulatorConfig
from doorstep.levels.files import AnyLevel
from doorstep.recording.rules import config_of, config_text, levels_text, parse_config_text, parse_levels_text


def rules_of(config: SimulatorConfig) -> SimulatorConfig:
    """The rules that decide an episode of a request: those of a simulator of one world."""
    return SimulatorConfig(
        1,
        num_agents=config.num_agents,
        episode_length=config.episode_length,
        auto_reset=False,
        action_check=config.action_check,
        max_levels=min(config.max_levels, 1),
    )


def shard_text(rules: SimulatorConfig, levels: Sequence[AnyLevel]) -> bytes:
    document = {**json.loads(config_text(rules)), "levels": json.loads(levels_text(levels))}
    return json.dumps(document).encode()


def parse_shard_text(text: bytes) -> tuple[SimulatorConfig, list[AnyLevel]]:
    """Raises ValueError if it is not such a text, or a rule or a level is unknown or refused."""
    _, rules = parse_config_text(text)
    levels = json.loads(text)["levels"]
    config = config_of(rules)
    if config != rules_of(config):
        raise ValueError("its rules are not those of a world that plays requests")
    return config, parse_levels_text(json.dumps(levels).encode())
