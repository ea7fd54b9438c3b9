"""`SamplingParams`: how actions are chosen by the logits of a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

from doorstep._arguments import refuse
from doorstep._configs import Integer, NativeConfig, Number, PolymorphicConfig, Registry, registered
from doorstep._native._generated import ConfigKind


@dataclass(frozen=True)
class SamplerConfig(PolymorphicConfig, NativeConfig):
    """How actions are chosen. Use one of its subclasses."""

    registry = Registry("sampler")
    kind = ConfigKind.SAMPLING


@registered
@final
@dataclass(frozen=True)
class SamplingParams(SamplerConfig):
    """How actions are chosen by logits. The components of an action are chosen independently of each other.

    >>> from doorstep.policy import SamplingParams
    >>> SamplingParams(temperature=0.5, top_p=0.9)
    SamplingParams(temperature=0.5, greedy=False, top_p=0.9, seed=None)

    Without a `seed`, that of a policy is drawn when it is made, and that of a request is its episode's.

    Raises:
        ArgumentError: a value is out of range.
    """

    type: ClassVar[str] = "categorical"
    # generated: ds_sampling_config
    temperature: Annotated[
        float,
        Number(low=0),
        "Logits are divided by it. The smaller, the likelier the most likely values become; 0 is as greedy.",
    ] = 1.0
    greedy: Annotated[bool, "Choose the value with the largest logit, the first of equal ones."] = False
    top_p: Annotated[
        float,
        Number(above=0, high=1),
        "Draw only from the fewest most likely values whose probabilities reach this sum, per component; 1: all.",
    ] = 1.0
    seed: Annotated[
        int | None,
        Integer(0, 4294967295),
        "Of the random numbers. Without one, a request uses its episode's seed, and a policy draws one.",
    ] = None
    # end

    def native_row(self) -> tuple[float, float]:
        """Temperature and top_p of a ds_sampling, for which greedy is temperature 0."""
        return (0.0 if self.greedy else self.temperature, self.top_p)


def check_sampling(sampling: SamplingParams | None) -> SamplingParams | None:
    """Refuses what is neither.

    Raises:
        ArgumentError: it is of another kind.
    """
    if sampling is not None and not isinstance(sampling, SamplingParams):
        refuse("sampling", "a doorstep.policy.SamplingParams or None", sampling)
    return sampling
