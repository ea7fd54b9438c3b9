"""What an agent's observation is made of: parts side by side in an order, each with a scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias, final

from doorstep._arguments import nearest, refuse
from doorstep._configs import Number, Rule
from doorstep._native import MAX_OBSERVATION_SCALE, OBSERVATION_PARTS, Observations

BY_NAME = "by_name"
PHYSICS = "physics"  # which agents do not observe by default

OBSERVATIONS = tuple(name for name in OBSERVATION_PARTS if name != PHYSICS)
"""The default parts of the flat observation, in order."""

# Names, and (name, scale) where the scale is not 1.
Parts: TypeAlias = Sequence[str | tuple[str, float]]
AnyObservations: TypeAlias = Parts | Literal["by_name"]

_SCALE = Number(above=0, high=MAX_OBSERVATION_SCALE)
_REQUIREMENT = "a sequence of parts, each a name or (name, scale)"


class PartsRule(Rule):
    """A tuple of at least one part, each at most once: a name, or (name, scale) if the scale is not 1. As text
    "lidar,door_observations:0.5"."""

    @property
    def requirement(self) -> str:
        return _REQUIREMENT

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value in OBSERVATION_PARTS:
            refuse(name, self.requirement, value, f"pass ({value!r},)")
        if isinstance(value, str) or not isinstance(value, Sequence) or not value:
            refuse(name, self.requirement, value)
        parts = tuple(_checked(f"{name}[{index}]", item) for index, item in enumerate(value))
        names = part_names(parts)
        for part in names:
            if names.count(part) > 1:
                refuse(name, "a sequence with each part at most once", value, f"it has {part!r} twice")
        return parts

    def to_plain(self, value: Any) -> Any:
        return [part if isinstance(part, str) else list(part) for part in value]

    def to_text(self, plain: Any) -> str:
        return ",".join(part if isinstance(part, str) else f"{part[0]}:{part[1]!r}" for part in plain)

    def from_text(self, text: str) -> Any:
        return tuple(_read(part.strip()) for part in text.split(","))


@final
class ObservationsRule(PartsRule):
    """Likewise, or "by_name" for no flat observation."""

    @property
    def requirement(self) -> str:
        return f'{_REQUIREMENT}, or "{BY_NAME}"'

    def check(self, name: str, value: Any) -> Any:
        return BY_NAME if isinstance(value, str) and value == BY_NAME else super().check(name, value)

    def to_plain(self, value: Any) -> Any:
        return value if value == BY_NAME else super().to_plain(value)

    def to_text(self, plain: Any) -> str:
        return BY_NAME if plain == BY_NAME else super().to_text(plain)

    def from_text(self, text: str) -> Any:
        return BY_NAME if text == BY_NAME else super().from_text(text)


def parts_of(observations: AnyObservations) -> Iterator[tuple[str, float]]:
    """Name and scale of each part of checked observations; "by_name" has none."""
    for part in () if observations == BY_NAME else observations:
        yield (part, 1.0) if isinstance(part, str) else part


def or_default(observations: AnyObservations) -> Parts:
    """The parts, or the default ones where there are none."""
    return OBSERVATIONS if observations == BY_NAME else observations


def part_names(observations: AnyObservations) -> list[str]:
    """The names of the parts of checked observations."""
    return [name for name, _ in parts_of(observations)]


def part_size(name: str, num_agents: int) -> int:
    """The values that a part of an agent's observation has."""
    size = 1
    for length in OBSERVATION_PARTS[name]:
        size *= num_agents - 1 if length == "A-1" else int(length)
    return size


def flat_size(observations: AnyObservations, num_agents: int) -> int:
    """The values of an agent's flat observation."""
    return sum(part_size(name, num_agents) for name in part_names(observations))


def shown_parts(observations: AnyObservations) -> str:
    """As options and messages have them."""
    rule = ObservationsRule()
    return rule.to_text(rule.to_plain(observations))


def to_native(observations: AnyObservations) -> Observations:
    """The ds_observations of checked observations."""
    made = Observations()
    numbers = list(OBSERVATION_PARTS)
    for index, (name, scale) in enumerate(parts_of(observations)):
        made.num_parts = index + 1
        made.parts[index] = numbers.index(name)
        made.scales[index] = scale
    return made


def _checked(name: str, item: Any) -> str | tuple[str, float]:
    part, scale = item if isinstance(item, (tuple, list)) and len(item) == 2 else (item, 1.0)
    if not isinstance(part, str) or part not in OBSERVATION_PARTS:
        allowed = f"one of {', '.join(OBSERVATION_PARTS)}, or (name, scale)"
        refuse(name, allowed, item, nearest(part, OBSERVATION_PARTS))
    scale = _SCALE.check(f"scale of {name}", scale)
    return part if scale == 1 else (part, scale)


def _read(text: str) -> Any:
    name, colon, scale = text.partition(":")
    return (name, _SCALE.from_text(scale)) if colon else name
