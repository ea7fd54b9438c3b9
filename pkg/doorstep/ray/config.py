"""`RayConfig`: how many actors an engine has, and what each needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

from doorstep._arguments import refuse
from doorstep._configs import Config, Integer, Number


@final
@dataclass(frozen=True, kw_only=True)
class RayConfig(Config):
    """The actors of a `RayRolloutEngine`.

    >>> from doorstep.ray import RayConfig
    >>> RayConfig(num_actors=4).cpus_per_actor
    1.0

    Raises:
        ArgumentError: a value is out of range; the message names the field, its value and the range.
    """

    num_actors: Annotated[int, Integer(1, 4096), "Actors; each is a process with a RolloutEngine of its own."] = 1
    cpus_per_actor: Annotated[
        float,
        Number(low=0),
        "Processor cores that Ray sets aside for each; also its threads, where simulator.num_threads is none.",
    ] = 1.0
    gpus_per_actor: Annotated[float, Number(low=0), "GPUs that Ray sets aside for each."] = 0.0
    chunk: Annotated[
        int,
        Integer(1, 65536),
        "Episodes that an actor is sent together, in whole requests; it has two such chunks at most.",
    ] = 256
    max_task_retries: Annotated[
        int, Integer(0, 65536), "Times that Ray plays a chunk again whose actor was lost; then its requests fail."
    ] = 2
    start_timeout: Annotated[
        float,
        Number(above=0),
        "Seconds after which an actor that does not answer gets no requests; the engine ends where none answers.",
    ] = 300.0

    def _check(self) -> None:
        for name, count in (("cpus_per_actor", self.cpus_per_actor), ("gpus_per_actor", self.gpus_per_actor)):
            if count > 1 and count != int(count):
                refuse(name, "a part of one, or a whole number, as Ray demands", count)
