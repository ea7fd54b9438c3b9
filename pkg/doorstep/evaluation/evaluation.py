"""`Evaluation`: the figures of policies in levels, and the rules that they follow from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from doorstep._arguments import refuse
from doorstep.evaluation import document
from doorstep.evaluation.arenas import Arena
from doorstep.evaluation.comparison import Aggregate, Improvement
from doorstep.evaluation.scores import Score
from doorstep.evaluation.table import table_of


@final
@dataclass(frozen=True)
class EvaluationRules:
    """What the figures depend on, beside policies and levels.

    Attributes:
        seed: of the episodes, see `episode_seeds()`.
        episodes: of each policy in each level.
        num_agents: in each world.
        episode_length: steps of an episode, where its level has no length of its own.
        doorstep: the version that played.
    """

    seed: int
    episodes: int
    num_agents: int
    episode_length: int
    doorstep: str


@final
@dataclass(frozen=True)
class Evaluation:
    """The result of `doorstep.evaluate()`.

    Attributes:
        rules: what the figures depend on.
        policies: their names, in the order of the argument.
        levels: their names and themselves, likewise; None is the reference's.
        scores: of each policy in each level: all policies in the first level, then in the second, ...
        aggregates: of each policy over all levels.
        improvements: how likely each policy is to do better than those named before it.
    """

    rules: EvaluationRules
    policies: tuple[str, ...]
    levels: tuple[Arena, ...]
    scores: tuple[Score, ...]
    aggregates: tuple[Aggregate, ...]
    improvements: tuple[Improvement, ...]

    def score(self, policy: str, level: str | None = None) -> Score:
        """The score of a policy.

        Args:
            policy: its name.
            level: its name; None: the only one.

        Raises:
            ArgumentError: there is no such policy or level, or several levels and none was named.
        """
        names = tuple(arena.name for arena in self.levels)
        if level is None and len(names) == 1:
            level = names[0]
        if level not in names:
            refuse("level", f"one of {', '.join(map(repr, names))}", level)
        if policy not in self.policies:
            refuse("policy", f"one of {', '.join(map(repr, self.policies))}", policy)
        return next(score for score in self.scores if (score.policy, score.level) == (policy, level))

    def __str__(self) -> str:
        """A table for people: a row for each policy in each level, levels with a goal first; then the policies over all
        levels, and compared with each other."""
        return table_of(self.scores, self.aggregates, self.improvements).removesuffix("\n")

    def to_dict(self) -> dict[str, Any]:
        """All figures, rules and levels, in values that JSON can hold."""
        return document.to_dict(
            self.rules, self.policies, self.levels, self.scores, self.aggregates, self.improvements
        )

    def to_json(self) -> str:
        """`to_dict()` as JSON."""
        return document.written(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Evaluation:
        """The evaluation of a JSON text as `to_json()` makes it.

        Raises:
            ArgumentError: the text is not JSON, another document, of a later version, or a field is unknown, absent or
                refused.
        """
        values = document.parsed(text)
        return cls(
            rules=document.read_as(EvaluationRules, "rules", values["rules"]),
            policies=document.read_as(tuple[str, ...], "policies", values["policies"]),
            levels=document.arenas_of(values["levels"]),
            scores=document.scores_of(values["scores"]),
            aggregates=document.read_as(tuple[Aggregate, ...], "aggregates", values["aggregates"]),
            improvements=document.read_as(tuple[Improvement, ...], "improvements", values["improvements"]),
        )
