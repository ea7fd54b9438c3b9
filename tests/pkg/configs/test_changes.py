"""Changes of configs, written KEY=VALUE."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.pkg.configs.drawn_configs import CLASSES, draw_config, with_cameras

import doorstep
from doorstep import RolloutConfig, SimulatorConfig, rollouts
from doorstep._configs import Config
from doorstep._configs.changes import apply_changes, split_changes, to_changes


def changed(base: Any, *changes: str) -> Any:
    return apply_changes(base, split_changes(changes))


@pytest.mark.parametrize("cls", CLASSES)
def test_configs_come_back_from_changes_in_any_order(cls: type[Config]) -> None:
    random = Random(cls.__name__)
    for _ in range(50):
        config, other = draw_config(cls, random), draw_config(cls, random)
        changes = [f"{path}={text}" for path, text in to_changes(config).items()]
        random.shuffle(changes)
        assert changed(other, *changes) == config
        assert changed(other) == other


def test_cameras_come_back_and_are_taken_away() -> None:
    random = Random(3)
    for _ in range(20):
        plain = draw_config(SimulatorConfig, random)
        config = with_cameras(plain, random)
        assert apply_changes(plain, to_changes(config)) == config
        assert changed(config, "cameras=none") == plain


def test_changes_concern_the_fields_that_they_name_alone() -> None:
    base = RolloutConfig(SimulatorConfig(4, seed=3), scheduler=rollouts.DynamicChunkScheduler(max_chunk=7))
    assert changed(base, "simulator.num_agents=3", "scheduler.begin_fraction=0.5", "max_policies=2") == RolloutConfig(
        SimulatorConfig(4, seed=3, num_agents=3),
        scheduler=rollouts.DynamicChunkScheduler(max_chunk=7, begin_fraction=0.5),
        max_policies=2,
    )


def test_another_type_begins_with_its_defaults() -> None:
    base = RolloutConfig(SimulatorConfig(4), scheduler=rollouts.DynamicChunkScheduler(max_chunk=7, begin_fraction=0.5))
    assert changed(base, "scheduler.type=fair_share").scheduler == rollouts.FairShareScheduler()
    assert changed(base, "scheduler.type=dynamic_chunk") == base
    chosen = changed(base, "scheduler.type=fair_share", "scheduler.max_chunk=8")
    assert chosen.scheduler == rollouts.FairShareScheduler(max_chunk=8)


def test_numbers_and_flags_are_written_as_people_write_them() -> None:
    base = SimulatorConfig(1)
    assert changed(base, "num_worlds=1_000", "strict=True") == SimulatorConfig(1000, strict=True)
    assert not changed(base, "auto_reset=False").auto_reset


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["scheduler.type=fair"], "scheduler.type is 'fair'; it must be a scheduler: 'fixed_chunk', "),
        (["scheduler.max_chunk=x"], "scheduler.max_chunk is 'x'; it must be an integer, 1 to"),
        (["scheduler.type=priority", "scheduler.begin_fraction=1"], "not a field of PriorityScheduler"),
        (["simulator.strict=maybe"], "simulator.strict is 'maybe'; it must be True or False"),
        (["simulator.action_check=clam"], "simulator.action_check is 'clam'; it must be one of 'clamp', "),
        (["devices=cpu,gpu"], "device is 'gpu'"),
    ],
)
def test_values_that_are_not_understood_are_refused(changes: list[str], says: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        changed(RolloutConfig(SimulatorConfig(4)), *changes)
    assert says in str(caught.value)


@pytest.mark.parametrize("cls", CLASSES)
def test_calls_take_the_form_of_files(cls: type[Config]) -> None:
    random = Random(cls.__name__)
    for _ in range(20):
        config, other = draw_config(cls, random), draw_config(cls, random)
        fields = {name: value for name, value in config.to_dict().items() if name != "type"}  # of the config itself
        assert apply_changes(other, fields) == config
        parts = {name: value for name, value in fields.items() if isinstance(value, dict)}
        assert config.replace(**parts) == config
        assert apply_changes(other, {**fields, **{name: getattr(config, name) for name in parts}}) == config


def test_of_a_part_some_fields_or_its_type_are_given() -> None:
    config = RolloutConfig(SimulatorConfig(4, seed=3))
    assert apply_changes(config, {"simulator": {"num_worlds": 16}, "simulator.strict": True}) == changed(
        config, "num_worlds=16", "strict=true"
    )
    assert apply_changes(config, {"scheduler": "priority"}) == changed(config, "scheduler.type=priority")
    with pytest.raises(doorstep.ArgumentError, match=r"simulator: 'num_world' is not a field .*'num_worlds'"):
        apply_changes(config, {"simulator": {"num_world": 16}})
    assert SimulatorConfig(4, cameras={"width": 40}) == SimulatorConfig(4, cameras=doorstep.Cameras(width=40))  # type: ignore[arg-type]


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
        ("scheduler=8", "scheduler.type is '8'; it must be a scheduler: 'fixed_chunk', "),
        ("simulator=8", "'simulator' is not the name of a single value of RolloutConfig (it is simulator.num_worlds"),
        ("devices.x=8", "(it is devices)"),
        ("scheduler.max_chunk=0", "scheduler.max_chunk is 0; it must be an integer, 1 to "),
        ("scheduler.type=fair_shar", "(did you mean 'fair_share'?)"),
    ],
)
def test_a_bad_change_is_refused_by_name(change: str, says: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        apply_changes(RolloutConfig(SimulatorConfig(4)), split_changes([change]))
    assert says in str(caught.value)
