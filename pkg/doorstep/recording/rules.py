"""The rules, reward and levels of a simulator as they stand in a recording."""

from __future__ import annotations

import json
from collections.abc import Sequence

from doorstep._arguments import shown
from doorstep._configs import Part
from doorstep._native import VERSION_STRING
from doorstep.config import SimulatorConfig
from doorstep.errors import ArgumentError
from doorstep.levels import Rewards
from doorstep.levels.files import AnyLevel, level_from

# The fields of a configuration that change results; the others do not, and are not recorded.
RULES = (
    *("num_worlds", "seed", "num_agents", "episode_length", "auto_reset", "world_offset", "action_check", "max_levels"),
)
_REWARD = "reward"  # only where there is one


def config_text(config: SimulatorConfig, reward: Rewards | None) -> bytes:
    """The payload of CONF."""
    rules = {name: getattr(config, name) for name in RULES}
    if reward is not None:
        rules[_REWARD] = vars(reward)
    return json.dumps({"doorstep": VERSION_STRING, "config": rules}).encode()


def parse_config_text(payload: bytes) -> tuple[str, dict[str, object]]:
    """The version of doorstep that wrote a payload of CONF, and its rules, which are not checked.

    Raises:
        ValueError: it is not such a payload.
    """
    try:
        content = json.loads(payload.decode())
        return str(content["doorstep"]), dict(content["config"])
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(str(error)) from error


def config_of(rules: dict[str, object]) -> tuple[SimulatorConfig, Rewards | None]:
    """All rules must be there and no others: one that is unknown would change the results.

    A rule that is added to RULES needs the value that files without it had.

    Raises:
        ArgumentError: a rule is absent, unknown or out of range, or a term of the reward is unknown or out of range.
    """
    reward = Part(Rewards).from_plain(_REWARD, rules[_REWARD]) if _REWARD in rules else None
    rules = {name: value for name, value in rules.items() if name != _REWARD}
    for name in (*RULES, *rules):
        if name not in rules or name not in RULES:
            raise ArgumentError(f"{shown(name)} is {'unknown' if name in rules else 'absent'}", argument=name)
    return SimulatorConfig.from_dict(rules), reward


def levels_text(levels: Sequence[AnyLevel]) -> bytes:
    """The levels of a chunk LEVL."""
    return json.dumps([level.to_dict() for level in levels]).encode()


def parse_levels_text(text: bytes) -> list[AnyLevel]:
    """The levels of a chunk LEVL.

    Raises:
        ArgumentError: a level is of a later version, or refused.
        ValueError: it is not such a text.
    """
    try:
        documents = [dict(document) for document in json.loads(text.decode())]
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return [level_from(f"levels[{index}]", document) for index, document in enumerate(documents)]
