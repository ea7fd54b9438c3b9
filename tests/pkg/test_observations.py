"""What observations are made of is a value that is checked and written in every form; worlds do not depend on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep import SimulatorConfig
from doorstep._observations import flat_size, part_size, shown_parts

MIXED = ("physics", ("lidar", 0.25), "agent_index")


@pytest.mark.parametrize(
    "observations", [doorstep.OBSERVATIONS, MIXED, "by_name", ("physics",)], ids=["default", "mixed", "by name", "one"]
)
def test_a_config_is_written_and_read_with_them(observations: Any) -> None:
    config = SimulatorConfig(4, observations=observations)
    assert config.observations == observations
    assert SimulatorConfig.from_json(config.to_json()) == config
    rule = doorstep._observations.ObservationsRule()
    assert rule.check("observations", rule.from_text(shown_parts(observations))) == observations


def test_lists_and_scales_of_1_are_the_same_value() -> None:
    config = SimulatorConfig(4, observations=[["physics", 1], ["lidar", 0.25], "agent_index"])  # type: ignore[list-item]
    assert config == SimulatorConfig(4, observations=MIXED)
    assert hash(config) == hash(SimulatorConfig(4, observations=MIXED))


def test_the_default_is_every_part_but_physics() -> None:
    assert SimulatorConfig(4).observations == doorstep.OBSERVATIONS
    assert {*doorstep.OBSERVATIONS, "physics"} == set(doorstep._native.OBSERVATION_PARTS)


@pytest.mark.parametrize("num_agents", range(1, 9))
def test_sizes_are_those_of_the_library(num_agents: int) -> None:
    for part in (*doorstep.OBSERVATIONS, "physics"):
        observations = ("agent_index",) if part == "agent_index" else (part, "agent_index")
        with doorstep.Simulator(1, num_agents=num_agents, observations=observations, num_threads=1) as sim:
            assert sim.observations.shape[-1] == flat_size(observations, num_agents), part
            assert part_size(part, num_agents) == flat_size((part,), num_agents)


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        ("lidar", r"must be a sequence of parts.* \(pass \('lidar',\)\)"),
        (("lider",), r"observations\[0\] is 'lider'; it must be one of .* \(did you mean 'lidar'\?\)"),
        ((("lidar", 0),), r"scale of observations\[0\] is 0; it must be a number, more than 0 and at most 1e\+06"),
        ((("lidar", float("nan")),), r"scale of observations\[0\] is nan; it must be"),
        ((("lidar", 1, 2),), r"observations\[0\] is \('lidar', 1, 2\); it must be one of"),
        (("lidar", "lidar"), r"each part at most once .*has 'lidar' twice"),
    ],
)
def test_a_wrong_part_is_refused_by_its_place(observations: Any, message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=message):
        SimulatorConfig(4, observations=observations)


def test_a_lone_agent_cannot_observe_partners_alone() -> None:
    with pytest.raises(doorstep.ArgumentError, match="parts that have values with num_agents=1"):
        SimulatorConfig(4, num_agents=1, observations=("partner_observations",))


def test_worlds_do_not_depend_on_what_is_observed_and_a_save_fits_all() -> None:
    with doorstep.Simulator(4, seed=2, num_threads=1) as plain, doorstep.Simulator(
        4, seed=2, num_threads=1, observations=MIXED
    ) as other:
        for sim in (plain, other):
            for _ in range(20):
                sim.actions = np.full((4, 2, 4), (3, 0, 2, 1))
                sim.step()
        assert plain.hash() == other.hash()
        expected = other.observations.copy_to_host()
        other.reset()
        other.restore(plain.save())
        np.testing.assert_array_equal(other.observations, expected)
