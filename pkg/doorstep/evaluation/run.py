"""`evaluate()` and `evaluate_config()`: play policies in levels and count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from doorstep._arguments import check_functions, check_integer, nearest
from doorstep._native import MAX_SEED, MAX_WORLDS, VERSION_STRING
from doorstep.config import SimulatorConfig
from doorstep.errors import ArgumentError
from doorstep.evaluation.arenas import Arena, find_arenas
from doorstep.evaluation.by_engine import Match, play_by_engine
from doorstep.evaluation.by_stepping import play_by_stepping
from doorstep.evaluation.comparison import Floats, aggregates, improvements
from doorstep.evaluation.config import EvaluationConfig
from doorstep.evaluation.contestants import Contestant, find_contestants
from doorstep.evaluation.episodes import MOST_EPISODES, Episodes, episode_seeds
from doorstep.evaluation.evaluation import Evaluation, EvaluationRules
from doorstep.evaluation.scores import score
from doorstep.levels import Rewards
from doorstep.levels.choice import AnyLevels
from doorstep.metrics import MetricsStore
from doorstep.policy import SamplingParams
from doorstep.policy.loading import AnyPolicy
from doorstep.rollouts import RolloutConfig

# Called with the number of episodes that have ended, that of all, and what is played.
OnProgress = Callable[[int, int, str], None]


def evaluate(
    policies: AnyPolicy | Sequence[AnyPolicy] | Mapping[str, AnyPolicy],
    *,
    levels: AnyLevels = "reference",
    reward: Rewards | None = None,
    episodes: int = 100,
    worlds: int = 256,
    seed: int = 0,
    num_agents: int = 2,
    episode_length: int = 200,
    device: str = "cpu",
    num_threads: int | None = None,
    sampling: SamplingParams | None = None,
    on_progress: OnProgress | None = None,
    metrics: MetricsStore | None = None,
    **unknown: NoReturn,
) -> Evaluation:
    """Plays episodes of each policy in each level, and tells how well they did.

    All policies play the same episodes, which follow from the seed. Each is played to its end and counted once. The
    same seed gives the same figures, whatever `worlds` and `num_threads`, if the policies' actions depend on what they
    observe alone.

    >>> import doorstep
    >>> evaluation = doorstep.evaluate(["idle", "scripted"], levels=doorstep.levels.curated()["one door"], episodes=8)
    >>> [score.success.value for score in evaluation.scores]
    [0.0, 1.0]
    >>> evaluation.score("scripted").success.low > 0.6
    True

    Args:
        policies: one or more of what `load_policy()` takes, or a mapping of names to it. "random", "idle" and networks
            are played by a `RolloutEngine`, other policies by stepping a `Simulator`.
        levels: "reference"; "room_types" for a level of each type of the reference's rooms, with that type alone;
            "curated"; the path of a file of `save_levels()`; one or more levels, or a mapping of names to them.
        reward: what returns are sums of, as for `Simulator`; the levels of the result have it.
        episodes: of each policy in each level, 1 to 1,000,000.
        worlds: that are stepped at once, at most.
        seed: of the episodes, 0 to 2**32 - 1. Other seeds give other, independent episodes.
        num_agents: agents in each world, 1 to 8.
        episode_length: steps of an episode, where a level has no length of its own.
        device: "cpu", "cuda", "cuda:K" or "auto".
        num_threads: that step; None: as many as this process may use.
        sampling: how networks choose actions, as in `load_policy()`, by random numbers that follow from each episode's
            seed.
        on_progress: called with the episodes that have ended, with the number of all, and with what is played.
        metrics: a store in which the engine records, see `RolloutEngine.metrics`.

    Raises:
        ArgumentError: an argument is refused, or a policy returned something else than actions. What a callable raises
            comes out unchanged.
        StateError: as in `load_policy()`.
        OSError: a file cannot be read.
    """
    for name in unknown:
        hint = nearest(name, evaluate.__kwdefaults__ or ())
        raise ArgumentError(f"{name!r} is not an argument of evaluate()", argument=name, hint=hint)
    config = SimulatorConfig(
        check_integer("worlds", worlds, 1, MAX_WORLDS),
        num_agents=num_agents,
        episode_length=episode_length,
        device=device,
        num_threads=num_threads,
    )
    episodes = check_integer("episodes", episodes, 1, MOST_EPISODES)
    seed = check_integer("seed", seed, 0, MAX_SEED)
    check_functions(on_progress=on_progress)
    rollout = RolloutConfig(config)
    arenas = find_arenas(levels, num_agents, reward)
    return _evaluate(find_contestants(policies, sampling), arenas, rollout, seed, episodes, on_progress, metrics)


def evaluate_config(
    config: EvaluationConfig, on_progress: OnProgress | None = None, metrics: MetricsStore | None = None
) -> Evaluation:
    """As `evaluate()`, with what a config says.

    Raises:
        ArgumentError, OSError: as `evaluate()`.
    """
    contestants = find_contestants(config.policies, config.sampling)
    arenas = find_arenas(config.levels, config.rollout.simulator.num_agents, config.reward)
    return _evaluate(contestants, arenas, config.rollout, config.seed, config.episodes, on_progress, metrics)


def _evaluate(
    contestants: Sequence[Contestant],
    arenas: Sequence[Arena],
    rollout: RolloutConfig,
    seed: int,
    episodes: int,
    on_progress: OnProgress | None,
    metrics: MetricsStore | None,
) -> Evaluation:
    simulator = rollout.simulator
    matches = [Match(contestant, arena) for arena in arenas for contestant in contestants]
    played = _Players(rollout, seed, episodes, on_progress, metrics).play(matches)
    returns = {contestant.name: _returns_of(contestant, matches, played) for contestant in contestants}
    return Evaluation(
        rules=EvaluationRules(seed, episodes, simulator.num_agents, simulator.episode_length, VERSION_STRING),
        policies=tuple(contestant.name for contestant in contestants),
        levels=tuple(arenas),
        scores=tuple(
            score(contestant.name, arena, episodes_played, seed)
            for (contestant, arena), episodes_played in zip(matches, played, strict=True)
        ),
        aggregates=aggregates(returns, seed),
        improvements=improvements(returns, seed),
    )


def _returns_of(contestant: Contestant, matches: Sequence[Match], played: Sequence[Episodes]) -> list[Floats]:
    """The returns of a policy's episodes, an array for each level."""
    return [
        episodes.returns.mean(axis=1, dtype=np.float64)
        for match, episodes in zip(matches, played, strict=True)
        if match.contestant is contestant
    ]


class _Players:
    """Lets the engine, or a simulator, play each match."""

    def __init__(
        self,
        rollout: RolloutConfig,
        seed: int,
        episodes: int,
        on_progress: OnProgress | None,
        metrics: MetricsStore | None,
    ) -> None:
        self._rollout = rollout
        self._metrics = metrics
        self._seeds = episode_seeds(seed, episodes)
        self._on_progress = on_progress
        self._done = self._total = 0

    def play(self, matches: Sequence[Match]) -> list[Episodes]:
        """The episodes of each match."""
        self._total = len(matches) * len(self._seeds)
        native = [match for match in matches if match.contestant.is_native]
        ended = self._telling("native policies")
        by_engine = iter(play_by_engine(self._rollout, native, self._seeds, ended, self._metrics))
        return [next(by_engine) if match.contestant.is_native else self._step(*match) for match in matches]

    def _step(self, contestant: Contestant, arena: Arena) -> Episodes:
        ended = self._telling(f"{contestant.name} in {arena.name}")
        return play_by_stepping(self._rollout.simulator, contestant, arena, self._seeds, ended)

    def _telling(self, what: str) -> Callable[[int], None]:
        def ended(count: int) -> None:
            self._done += count
            if self._on_progress is not None:
                self._on_progress(self._done, self._total, what)

        return ended
