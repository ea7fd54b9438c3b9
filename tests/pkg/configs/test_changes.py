"""Changes of configs, written KEY=VALUE."""

from random import Random

from tests.pkg.configs.drawn_configs import CLASSES, draw_config, with_cameras
from tests.refuses import assert_refused

import doorstep
from doorstep import RolloutConfig, SimulatorConfig, rollouts
from doorstep._configs.changes import apply_changes, split_changes, to_changes


def changed(base, *changes):
    return apply_changes(base, split_changes(changes))


def test_configs_come_back_from_changes_in_any_order_and_from_the_form_of_files():
    for cls in CLASSES:
        random = Random(cls.__name__)
        for _ in range(30):
            config, other = draw_config(cls, random), draw_config(cls, random)
            changes = [f"{path}={text}" for path, text in to_changes(config).items()]
            random.shuffle(changes)
            assert changed(other, *changes) == config
            assert changed(other) == other
            fields = {name: value for name, value in config.to_dict().items() if name != "type"}  # of the config itself
            assert apply_changes(other, fields) == config
            parts = {name: value for name, value in fields.items() if isinstance(value, dict)}
            assert config.replace(**parts) == config
            assert apply_changes(other, {**fields, **{name: getattr(config, name) for name in parts}}) == config
            if cls is SimulatorConfig:
                seen = with_cameras(config, random)
                assert apply_changes(config, to_changes(seen)) == seen
                assert changed(seen, "cameras=none") == config


def test_changes_concern_the_fields_that_they_name_alone():
    base = RolloutConfig(SimulatorConfig(4, seed=3), scheduler=rollouts.DynamicChunkScheduler(max_chunk=7))
    assert changed(base, "simulator.num_agents=3", "scheduler.begin_fraction=0.5", "max_policies=2") == RolloutConfig(
        SimulatorConfig(4, seed=3, num_agents=3),
        scheduler=rollouts.DynamicChunkScheduler(max_chunk=7, begin_fraction=0.5),
        max_policies=2,
    )
    assert changed(SimulatorConfig(4), "seed=1", "num_worlds=2", "seed=3") == SimulatorConfig(2, seed=3)  # the later
    simple = changed(SimulatorConfig(1), "num_worlds=1_000", "strict=True", "auto_reset=False")
    assert simple == SimulatorConfig(1000, strict=True, auto_reset=False)


def test_another_type_begins_with_its_defaults():
    base = RolloutConfig(SimulatorConfig(4), scheduler=rollouts.DynamicChunkScheduler(max_chunk=7, begin_fraction=0.5))
    assert changed(base, "scheduler.type=fair_share").scheduler == rollouts.FairShareScheduler()
    assert changed(base, "scheduler.type=dynamic_chunk") == base
    chosen = changed(base, "scheduler.type=fair_share", "scheduler.max_chunk=8")
    assert chosen.scheduler == rollouts.FairShareScheduler(max_chunk=8)


def test_of_a_part_some_fields_or_its_type_are_given_and_a_name_that_no_other_has_needs_no_path():
    config = RolloutConfig(SimulatorConfig(4, seed=3))
    assert apply_changes(config, {"simulator": {"num_worlds": 16}, "simulator.strict": True}) == changed(
        config, "num_worlds=16", "strict=true"
    )
    assert apply_changes(config, {"scheduler": "priority"}) == changed(config, "scheduler.type=priority")
    assert apply_changes(config, {"max_chunk": 8}) == apply_changes(config, {"scheduler.max_chunk": "8"}) != config
    assert SimulatorConfig(4, cameras={"width": 40}) == SimulatorConfig(4, cameras=doorstep.Cameras(width=40))


def test_of_a_part_that_is_none_and_its_fields_the_fields_count_in_any_order():
    for changes in (("cameras.width=8", "cameras=none"), ("cameras=none", "cameras.width=8")):
        assert changed(SimulatorConfig(4), *changes).cameras == doorstep.Cameras(width=8)


def test_a_bad_change_is_refused_by_name():
    rows = [
        ("scheduler.type=fair", "scheduler.type is 'fair'; it must be a scheduler: 'fixed_chunk', "),
        ("scheduler.type=fair_shar", "(did you mean 'fair_share'?)"),
        ("scheduler.max_chunk=x", "scheduler.max_chunk is 'x'; it must be an integer, 1 to"),
        ("scheduler.max_chunk=0", "scheduler.max_chunk is 0; it must be an integer, 1 to "),
        ("simulator.strict=maybe", "simulator.strict is 'maybe'; it must be True or False"),
        ("simulator.action_check=clam", "simulator.action_check is 'clam'; it must be one of 'clamp', "),
        ("devices=cpu,gpu", "device is 'gpu'"),
        ("seed", "change is 'seed'; it must be KEY=VALUE"),
        ("=7", "change is '=7'; it must be KEY=VALUE"),
        ("sheduler.max_chunk=8", "'sheduler.max_chunk' is not the name of a single value of RolloutConfig (did you m"),
        ("type=fair_share", "(it may be scheduler.type or controller.type)"),
        ("scheduler=8", "scheduler.type is '8'; it must be a scheduler: 'fixed_chunk', "),
        ("simulator=8", "'simulator' is not the name of a single value of RolloutConfig (it is simulator.num_worlds"),
        ("devices.x=8", "(it is devices)"),
    ]
    config = RolloutConfig(SimulatorConfig(4))
    assert_refused(lambda change: changed(config, change), rows)
    rows = [(["scheduler.type=priority", "scheduler.begin_fraction=1"], "not a field of PriorityScheduler")]
    assert_refused(lambda changes: changed(config, *changes), rows)
    rows = [(None, "simulator: 'num_world' is not a field ... 'num_worlds'")]
    assert_refused(lambda _: apply_changes(config, {"simulator": {"num_world": 16}}), rows)
