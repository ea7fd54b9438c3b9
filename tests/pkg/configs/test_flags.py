"""Configs as options of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from tests.pkg.configs.drawn_configs import CLASSES, draw_config, with_cameras

import doorstep
from doorstep import RolloutConfig, SimulatorConfig, rollouts
from doorstep._configs import Config
from doorstep._configs.flags import add_options, apply_changes, read_options, split_changes, to_options


def read(cls: type[Config], options: Sequence[str], base: Config | None = None) -> Any:
    parser = argparse.ArgumentParser()
    add_options(parser, cls)
    return cls.from_dict(read_options(parser.parse_args(options), cls, base.to_dict() if base else None))


@pytest.mark.parametrize("cls", CLASSES)
def test_configs_come_back_from_their_options(cls: type[Config]) -> None:
    random = Random(cls.__name__)
    for _ in range(50):
        config, other = draw_config(cls, random), draw_config(cls, random)
        assert read(cls, to_options(config)) == config
        assert read(cls, to_options(config), other) == config  # whatever the options change


def test_cameras_come_back_and_are_taken_away() -> None:
    random = Random(3)
    for _ in range(20):
        plain = draw_config(SimulatorConfig, random)
        config = with_cameras(plain, random)
        assert read(SimulatorConfig, to_options(config)) == config
        assert read(SimulatorConfig, ["--cameras", "none"], config) == plain


def test_options_change_the_fields_that_they_name_alone() -> None:
    base = RolloutConfig(SimulatorConfig(4, seed=3), scheduler=rollouts.DynamicChunkScheduler(max_chunk=7))
    changed = read(
        RolloutConfig, ["--simulator.num-agents", "3", "--scheduler.begin-fraction", "0.5", "--max-policies=2"], base
    )
    assert changed == RolloutConfig(
        SimulatorConfig(4, seed=3, num_agents=3),
        scheduler=rollouts.DynamicChunkScheduler(max_chunk=7, begin_fraction=0.5),
        max_policies=2,
    )
    assert read(RolloutConfig, [], base) == base


def test_another_type_begins_with_its_defaults() -> None:
    base = RolloutConfig(SimulatorConfig(4), scheduler=rollouts.DynamicChunkScheduler(max_chunk=7, begin_fraction=0.5))
    changed = read(RolloutConfig, ["--scheduler.type", "fair_share"], base)
    assert changed.scheduler == rollouts.FairShareScheduler()
    assert read(RolloutConfig, ["--scheduler.type", "dynamic_chunk"], base) == base
    chosen = ["--scheduler.type", "fair_share", "--scheduler.max-chunk", "8", "--simulator.num-worlds", "2"]
    assert read(RolloutConfig, chosen).scheduler == rollouts.FairShareScheduler(max_chunk=8)


def test_a_field_of_the_default_type_needs_no_type() -> None:
    options = ["--simulator.num-worlds", "2", "--scheduler.begin-fraction", "0.25"]
    assert read(RolloutConfig, options).scheduler == rollouts.DynamicChunkScheduler(begin_fraction=0.25)


def test_flags_are_true_without_a_value() -> None:
    assert read(SimulatorConfig, ["--num-worlds", "1_000", "--strict"]) == SimulatorConfig(1000, strict=True)
    assert not read(SimulatorConfig, ["--num-worlds", "1", "--auto-reset", "False"]).auto_reset


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--scheduler.type", "fair"], "scheduler.type is 'fair'; it must be a scheduler: 'fixed_chunk', "),
        (["--scheduler.max-chunk", "x"], "scheduler.max_chunk is 'x'; it must be an integer, 1 to"),
        (["--scheduler.max-chunk", "0"], "scheduler.max_chunk is 0; it must be an integer, 1 to"),
        (["--scheduler.type", "priority", "--scheduler.begin-fraction", "1"], "not a field of PriorityScheduler"),
        (["--simulator.strict", "maybe"], "simulator.strict is 'maybe'; it must be True or False"),
        (["--simulator.action-check", "clam"], "simulator.action_check is 'clam'; it must be one of 'clamp', "),
        (["--devices", "cpu,gpu"], "device is 'gpu'"),
    ],
)
def test_values_that_are_not_understood_are_refused(options: list[str], says: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        read(RolloutConfig, options, RolloutConfig(SimulatorConfig(4)))
    assert says in str(caught.value)


def test_help_has_the_sentence_of_every_field() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, RolloutConfig)
    text = " ".join(parser.format_help().split())
    assert "--scheduler.type fixed_chunk|dynamic_chunk|" in text
    assert "--scheduler.max-chunk N|none Most episodes that a replica begins between two steps" in text


# ---- Changes written KEY=VALUE


@pytest.mark.parametrize("cls", CLASSES)
def test_configs_come_back_from_changes_in_any_order(cls: type[Config]) -> None:
    random = Random(cls.__name__)
    for _ in range(50):
        config, other = draw_config(cls, random), draw_config(cls, random)
        changes = [change_of(option) for option in to_options(config)]
        random.shuffle(changes)
        assert apply_changes(other, split_changes(changes)) == config
        assert apply_changes(other, {}) == other


def change_of(option: str) -> str:
    """`--scheduler.max-chunk=8` as `scheduler.max_chunk=8`."""
    name, _, text = option.removeprefix("--").partition("=")
    return f"{name.replace('-', '_')}={text}"


def test_of_two_changes_of_a_field_the_later_counts() -> None:
    assert apply_changes(SimulatorConfig(4), split_changes(["seed=1", "num_worlds=2", "seed=3"])) == SimulatorConfig(
        2, seed=3
    )


def test_a_field_that_no_other_has_is_named_without_its_path() -> None:
    config = RolloutConfig(SimulatorConfig(4))
    assert apply_changes(config, {"max_chunk": 8}) == apply_changes(config, {"scheduler.max_chunk": "8"}) != config


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("seed", "change is 'seed'; it must be KEY=VALUE"),
        ("=7", "change is '=7'; it must be KEY=VALUE"),
        ("sheduler.max_chunk=8", "'sheduler.max_chunk' is not the name of a single value of RolloutConfig (did you m"),
        ("type=fair_share", "(it may be scheduler.type or controller.type)"),
        ("scheduler=8", "'scheduler' is not the name of a single value of RolloutConfig (it is scheduler.type, sched"),
        ("devices.x=8", "(it is devices)"),
        ("scheduler.max_chunk=0", "scheduler.max_chunk is 0; it must be an integer, 1 to "),
        ("scheduler.type=fair_shar", "(did you mean 'fair_share'?)"),
    ],
)
def test_a_bad_change_is_refused_by_name(change: str, says: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        apply_changes(RolloutConfig(SimulatorConfig(4)), split_changes([change]))
    assert says in str(caught.value)
