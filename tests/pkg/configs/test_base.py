"""Configs without a native twin: what annotations say is checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

import doorstep
from doorstep._configs import Anything, Config, Integer, Number
from doorstep.rollouts import PriorityScheduler
from doorstep.rollouts.config import SchedulerConfig


@dataclass(frozen=True)
class TrainingConfig(Config):
    learning_rate: Annotated[float, Number(above=0, high=1), "Of the optimiser."] = 3e-4
    layers: Annotated[tuple[int, ...], Integer(1, 99), "Widths."] = (64, 64)
    activation: Literal["tanh", "relu"] = "tanh"
    name: str = "run"
    folder: Annotated[Path | None, Anything()] = None
    resume: bool = False
    scheduler: SchedulerConfig = field(default_factory=PriorityScheduler)
    warm_up: int | None = None

    def _check(self) -> None:
        if self.warm_up is not None and self.resume:
            raise doorstep.ArgumentError("warm_up is given with resume", argument="warm_up")


def test_it_is_a_dataclass_like_others() -> None:
    config = TrainingConfig(learning_rate=0.5, layers=(3,), folder=Path("a b"))
    assert config == TrainingConfig.from_json(config.to_json())
    assert config.to_dict()["folder"] == {"file": "a b"}
    assert not hasattr(config, "native_handle")
    with pytest.raises(AttributeError):
        config.name = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"learning_rate": 0}, "learning_rate is 0; it must be a number, more than 0 and at most 1"),
        ({"learning_rate": 1e-50}, "learning_rate is 1e-50"),  # 0 in single precision
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"learning_rate": True}, "learning_rate is True"),
        ({"layers": (1, 0)}, "layers[1] is 0; it must be an integer, 1 to 99"),
        ({"layers": ()}, "layers is ()"),
        ({"layers": 3}, "layers is 3; it must be a sequence of one or more integers"),
        ({"activation": "tan"}, "activation is 'tan'; it must be one of 'tanh', 'relu'"),
        ({"name": 3}, "name is 3; it must be a text"),
        ({"resume": 1}, "resume is 1; it must be True or False"),
        ({"scheduler": SchedulerConfig()}, "scheduler is SchedulerConfig"),
        ({"warm_up": 3, "resume": True}, "warm_up is given with resume"),
    ],
)
def test_values_are_checked(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        TrainingConfig(**fields)
    assert says in str(caught.value)
