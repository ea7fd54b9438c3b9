"""What engines record: the names, descriptions and labels of the library's series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from doorstep._native._generated import (
    MAX_POLICY_SERIES,
    EpisodeReason,
    FailureCause,
    Metric,
    PolicyKind,
    Scheduler,
    SeriesInfo,
    SeriesKind,
)
from doorstep._native.metrics import MetricsHandle
from doorstep.metrics.series import AnySeries, Counter, Sketch, TimeSeries

KINDS: dict[int, type[AnySeries]] = {
    SeriesKind.COUNTER: Counter,
    SeriesKind.SKETCH: Sketch,
    SeriesKind.TIME_SERIES: TimeSeries,
}
DESCRIPTIONS = {
    Metric.REQUESTS_SUBMITTED: "Episodes of requests that were accepted.",
    Metric.REQUESTS_ANSWERED: "Results of episodes, by the reason, and the cause of those that failed.",
    Metric.EPISODES_BEGUN: "Episodes that began; again those whose replica was closed.",
    Metric.STEPS: "Steps of the simulator.",
    Metric.EPISODE_STEPS: "Steps of episodes: the worlds that played one, summed over the steps.",
    Metric.WORLD_STEPS: "Steps of all worlds, summed likewise.",
    Metric.NONFINITE_ACTIONS: "Actions that a network could not choose: of logits that are NaN or infinite.",
    Metric.DROPPED_SERIES: "Series of policies that are not recorded, because there was no room or no memory.",
    Metric.QUEUE_WAIT_SECONDS: "From the submission of a request until its episode begins.",
    Metric.FIRST_STEP_SECONDS: "From the submission of a request until the first step of its episode is done.",
    Metric.LATENCY_SECONDS: "From the submission of a request until its result, by the reason.",
    Metric.BATCH_FILL: "The part of the worlds that play, of each step.",
    Metric.BEGIN_SECONDS: "Time to begin the episodes of a pass.",
    Metric.POLICY_SECONDS: "Time to choose the actions of a policy in a step, by its name and its kind.",
    Metric.STEP_SECONDS: "Time of a step of the simulator.",
    Metric.ACTIVE_WORLDS: "Worlds that play, at each pass.",
    Metric.WAITING_REQUESTS: "Requests that wait in the replica's queue, at each pass.",
}
_BY_REASON = (Metric.REQUESTS_ANSWERED, Metric.LATENCY_SECONDS)
_OTHERS = "others"  # policies that came when there was no number left


class Recorded:
    """A store of the library, whose series have some labels in common.

    Attributes:
        handle: of the store.
        num_seen: how many of its series the caller has, who counts them.
    """

    def __init__(self, handle: MetricsHandle, labels: dict[str, str]) -> None:
        self.handle, self.num_seen = handle, 0
        self._labels = labels
        self._policies: dict[str, int] = {}

    def series_of_policy(self, name: str) -> int:
        """By one thread at a time, as all of this."""
        number = self._policies.get(name, min(len(self._policies), MAX_POLICY_SERIES - 1))
        if number < MAX_POLICY_SERIES - 1:
            self._policies[name] = number
        return number

    def new_series(self) -> Iterator[tuple[int, SeriesInfo]]:
        """Those from `num_seen` on, by their numbers."""
        for index in range(self.num_seen, self.handle.num_series()):
            yield index, self.handle.series(index)

    def tracks(self) -> list[NDArray[Any]]:
        """The events of each queue and each replica."""
        every = [(index, self.handle.series(index)) for index in range(self.handle.num_series())]
        return [self.handle.rows(index, info) for index, info in every if info.kind == SeriesKind.TRACE]

    def labels_of(self, info: SeriesInfo) -> dict[str, str]:
        labels = {**self._labels, "scheduler": Scheduler(info.scheduler).name.lower()}
        if info.replica >= 0:
            labels["replica"] = str(info.replica)
        if info.metric in _BY_REASON:
            labels["reason"] = EpisodeReason(info.detail).name.lower()
            if info.variant:
                labels["cause"] = FailureCause(info.variant).name.lower() if info.variant < 0 else "caller"
        elif info.metric == Metric.POLICY_SECONDS:
            names = [*self._policies, *[_OTHERS] * (info.detail + 1 - len(self._policies))]
            labels |= {"policy": names[info.detail], "kind": PolicyKind(info.variant).name.lower()}
        return labels
