"""`Evaluation`: the figures of policies in levels, and the rules that they follow from."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias, final

from doorstep._arguments import check_choice, refuse
from doorstep._configs import Checked, Document, Integer, Items, Part
from doorstep.evaluation.arenas import Arena
from doorstep.evaluation.comparison import METHOD, Aggregate, Improvement
from doorstep.evaluation.scores import Score
from doorstep.evaluation.statistics import CONFIDENCE, MEAN_METHOD, SHARE_METHOD
from doorstep.evaluation.table import table_of

Count: TypeAlias = Annotated[int, Integer(low=0)]

INTERVALS = {"confidence": CONFIDENCE, "means": MEAN_METHOD, "shares": SHARE_METHOD, "comparisons": METHOD}


@final
@dataclass(frozen=True)
class EvaluationRules(Checked):
    """What the figures depend on, apart from policies and levels.

    Attributes:
        seed: of the episodes, see `episode_seeds()`.
        episodes: of each policy in each level.
        num_agents: in each world.
        episode_length: steps of an episode, where its level has no length of its own.
        doorstep: the version that played.
    """

    seed: Count
    episodes: Count
    num_agents: Count
    episode_length: Count
    doorstep: str


@final
@dataclass(frozen=True)
class Evaluation(Document):
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
    levels: Annotated[tuple[Arena, ...], Items(Part(Arena), "levels")]
    scores: Annotated[tuple[Score, ...], Items(Part(Score), "scores")]
    aggregates: Annotated[tuple[Aggregate, ...], Items(Part(Aggregate), "aggregates")]
    improvements: Annotated[tuple[Improvement, ...], Items(Part(Improvement), "improvements")]

    kind: ClassVar[str] = "evaluation"

    def _check(self) -> None:
        levels = tuple(arena.name for arena in self.levels)
        for name, names in (("policies", self.policies), ("levels", levels)):
            if not names or len(set(names)) < len(names):
                refuse(name, "at least one, with different names", names)
        figures = [(score.policy, score.level, bool(score.rooms), score.success is not None) for score in self.scores]
        matches = itertools.product(self.levels, self.policies)
        if figures != [(policy, arena.name, arena.has_three_rooms, arena.has_goal) for arena, policy in matches]:
            refuse("scores", "of each policy in each level, with what the level has: rooms, a goal", figures)
        if (policies := tuple(one.policy for one in self.aggregates)) != self.policies:
            refuse("aggregates", "of each policy", policies)
        pairs = [(one.over, one.policy) for one in self.improvements]
        if pairs != list(itertools.combinations(self.policies, 2)):
            refuse("improvements", "of each policy over those named before it", pairs)

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
        check_choice("level", level, names)
        check_choice("policy", policy, self.policies)
        return next(score for score in self.scores if (score.policy, score.level) == (policy, level))

    def __str__(self) -> str:
        """A table for people: a row for each policy in each level, levels with a goal first; then the policies over all
        levels, and compared with each other."""
        return table_of(self.scores, self.aggregates, self.improvements).removesuffix("\n")

    def to_dict(self) -> dict[str, Any]:
        """All figures, rules and levels, and how the intervals were made, in values that JSON can hold."""
        return {**super().to_dict(), "intervals": dict(INTERVALS)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Evaluation:
        """The evaluation of a dictionary as `to_dict()` makes it.

        Raises:
            ArgumentError: it is another document, of a later version, or a field is unknown, absent or refused.
        """
        if isinstance(values, Mapping):
            values = {name: value for name, value in values.items() if name != "intervals"}
        return super().from_dict(values)
