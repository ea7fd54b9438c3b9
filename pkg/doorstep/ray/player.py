"""The actor: a process with a `RolloutEngine`, which plays chunks of requests."""

from __future__ import annotations

from dataclasses import replace
from typing import final

from doorstep._native import VERSION_STRING
from doorstep._optional import import_optional
from doorstep.errors import ClosedError
from doorstep.ray.policy import MadePolicies
from doorstep.rollouts.batch import check_recorded
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.engine import RolloutEngine
from doorstep.rollouts.failures import describe
from doorstep.rollouts.request import EpisodeRequest, chosen_sampling
from doorstep.rollouts.result import EpisodeResult

_NO_REQUEST = EpisodeRequest()  # of results on their way: the engine that asked has the requests


@final
class Player:
    """Made by Ray, which calls it in as many threads as it is sent chunks."""

    def __init__(self, config: str) -> None:
        """config: of the engine, in JSON."""
        self._config = RolloutConfig.from_json(config)
        self._engine: RolloutEngine | None = None
        self._policies = MadePolicies(lambda published: import_optional("ray", "actors need Ray", "ray").get(published))

    def ready(self) -> str:
        """Makes the engine, if it is not made yet. Called before all others, and again to see whether this lives.

        Returns:
            The version of doorstep on this machine.

        Raises:
            DoorstepError: the engine cannot be made on this machine.
        """
        if self._engine is None:
            self._engine = RolloutEngine(self._config, on_error="return")
        return VERSION_STRING

    def play(self, requests: list[EpisodeRequest], continuations: list[int]) -> list[EpisodeResult | str]:
        """The results in the order of the requests; of a request that cannot be played, the reason.

        Args:
            continuations: which of its episodes is played of each.

        Raises:
            ClosedError: the replicas of the engine have ended, so that this actor can play nothing any more.
        """
        assert self._engine is not None
        core = self._engine._core
        made = {number: self._with_policy(one) for number, one in {id(one): one for one in requests}.items()}
        playable = [made[id(request)] for request in requests]
        asked = [one for one in playable if not isinstance(one, str)]
        numbers = [number for one, number in zip(playable, continuations, strict=True) if not isinstance(one, str)]
        results = (replace(one.result(), request=_NO_REQUEST) for one in core.submit_futures(asked, None, numbers))
        answers = [one if isinstance(one, str) else next(results) for one in playable]
        if not core.num_playing:
            raise ClosedError("the replicas of this actor have ended")
        return answers

    def _with_policy(self, request: EpisodeRequest) -> EpisodeRequest | str:
        """The request for the engine here, or why there is no policy for it."""
        given = request.policy
        try:
            policies = tuple(map(self._policies, given if isinstance(given, tuple) else (given,)))
            chosen_sampling(request, policies)
            check_recorded(request.record, policies)
            return replace(request, policy=policies if isinstance(given, tuple) else policies[0])
        except Exception as error:  # of what is loaded here, or policies that do not go together, or do not tell this
            return describe(error)
