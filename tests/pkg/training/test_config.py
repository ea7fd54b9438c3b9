"""Configs are checked, stored and changed by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

import doorstep

pytest.importorskip("torch")

from doorstep.training import ExperienceConfig, LSTMNetwork, MLPNetwork, PPOConfig, TrainingConfig, preset
from doorstep.training.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_a_config_survives_a_dictionary_and_json(name: str) -> None:
    config = preset(name)
    assert TrainingConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert TrainingConfig.from_json(config.to_json()) == config


def test_the_reference_preset_has_the_references_hyperparameters() -> None:
    config = preset("reference")
    assert (config.simulator.num_worlds, config.simulator.seed, config.num_updates) == (8192, 5, 5000)
    assert (config.experience.num_steps, config.experience.time_limit) == (40, "terminal")
    assert config.experience.num_steps / config.ppo.chunk_length == 8
    assert config.network == MLPNetwork(widths=(256, 256, 256), activation="relu", layer_norm=True)
    ppo = config.ppo
    assert (ppo.learning_rate, ppo.gamma, ppo.gae_lambda, ppo.clip_range) == (1e-4, 0.998, 0.95, 0.2)
    assert (ppo.num_epochs, ppo.num_minibatches, ppo.entropy_coefficient, ppo.value_coefficient) == (2, 1, 0.01, 0.5)
    assert (ppo.max_gradient_norm, ppo.value_decay, ppo.clip_value_loss) == (0.5, 0.999, False)


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"preset is 'refrence'.*did you mean 'reference'"):
        preset("refrence")
    other: Any
    for other in (None, [], 10**5000):
        with pytest.raises(doorstep.ArgumentError, match=r"^preset is .*; it must be one of 'default'"):
            preset(other)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("seed=7", lambda config: config.seed == 7),
        ("ppo.learning_rate=1e-2", lambda config: config.ppo.learning_rate == 0.01),
        ("ppo.final_learning_rate=0", lambda config: config.ppo.final_learning_rate == 0.0),
        ("network.widths=32,64", lambda config: config.network.widths == (32, 64)),
        ("network.widths=[32,64]", lambda config: config.network.widths == (32, 64)),
        ("network.layer_norm=false", lambda config: config.network.layer_norm is False),
        ("experience.time_limit=bootstrap", lambda config: config.experience.time_limit == "bootstrap"),
        ("simulator.num_worlds=12", lambda config: config.simulator.num_worlds == 12),
        ("num_threads=none", lambda config: config.num_threads is None),
    ],
)
def test_a_change_sets_one_value(change: str, expected: Any) -> None:
    changed = TrainingConfig().changed(change)
    assert expected(changed)
    name = change.partition("=")[0]
    before, after = flattened(TrainingConfig().to_dict()), flattened(changed.to_dict())
    assert {key for key in after if after[key] != before[key]} <= {name}


def flattened(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flattened(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def test_changes_are_made_all_at_once() -> None:
    """Each alone would contradict the others."""
    changes = ["simulator.num_worlds=1", "experience.num_steps=2", "ppo.num_minibatches=4", "ppo.chunk_length=2"]
    for order in (changes, changes[::-1]):
        config = TrainingConfig().changed(*order)
        assert (config.steps_per_update, config.ppo.num_minibatches) == (2, 4)


def test_another_type_of_network_begins_with_its_defaults() -> None:
    small = TrainingConfig().changed("network.widths=16")
    assert small.changed("network.type=lstm", "network.memory=8").network == LSTMNetwork(memory=8)
    assert small.changed("network.type=mlp").network == MLPNetwork(widths=(16,))


def test_without_cameras_observations_are_flat() -> None:
    assert TrainingConfig(simulator=doorstep.SimulatorConfig(4), ppo=PPOConfig(num_minibatches=1)).simulator == (
        doorstep.SimulatorConfig(4)
    )
    assert preset("pixels").simulator.observations == "by_name"


def test_later_changes_win() -> None:
    assert TrainingConfig().changed("seed=1", "seed=2").seed == 2
    assert TrainingConfig().changed("seed=1", seed=3).seed == 3


def test_keywords_are_values_of_fields() -> None:
    config = TrainingConfig().changed(gamma=0.5, widths=(3, 4), **{"network.type": "lstm", "simulator.seed": 7})
    assert config == TrainingConfig().changed(
        "ppo.gamma=0.5", "network.widths=3,4", "network.type=lstm", "simulator.seed=7"
    )
    with pytest.raises(doorstep.ArgumentError, match=r"ppo.gamma is True; it must be a number"):
        TrainingConfig().changed(gamma=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ppo.lerning_rate=1", r"'ppo.lerning_rate' is not the name of a single.*did you mean 'ppo.learning_rate'"),
        ("ppo.lr=1", r"'ppo.lr' is not the name of a single value.*did you mean 'ppo.learning_rate'"),
        ("ent_coef=1", r"did you mean 'ppo.entropy_coefficient'"),
        ("max_grad_norm=1", r"did you mean 'ppo.max_gradient_norm'"),
        ("clip=1", r"did you mean 'ppo.clip_range'"),
        ("lambda=1", r"did you mean 'ppo.gae_lambda'"),
        ("type=lstm", r"it may be curriculum.type or network.type"),
        ("seeed=1", r"'seeed' is not the name of a single value.*did you mean 'seed'"),
        ("ppo=1", r"'ppo' is not the name of a single value .*it is ppo.gamma, ppo.gae_lambda"),
        ("seed.x=1", r"'seed.x' is not the name of a single value .*it is seed"),
        ("seed", "change is 'seed'; it must be KEY=VALUE"),
        ("=3", "it must be KEY=VALUE"),
        ("seed=-1", "seed is -1; it must be an integer"),
        ("ppo.gamma=1.5", "ppo.gamma is 1.5; it must be a number, 0 to 1"),
        ("ppo.gamma=NaN", "ppo.gamma is nan"),
        ("ppo.clip_range=true", "ppo.clip_range is 'true'; it must be a number"),
        ("ppo.num_epochs=1.5", "ppo.num_epochs is '1.5'; it must be an integer"),
        ("ppo.learning_rate=none", "ppo.learning_rate is 'none'; it must be a number"),
        ("network.widths=[]", r"network.widths is \[\]; it must be a sequence of one or more integers"),
        ("network.widths=wide", r"network.widths\[0\] is 'wide'; it must be an integer, 1 to 65536"),
        ("network.widths=[0]", r"network.widths\[0\] is 0; it must be an integer, 1 to 65536"),
        ("network.type=lstn", "network.type is 'lstn'; it must be a network: 'mlp', 'lstm'.*did you mean 'lstm'"),
        ("network.memory=8", "network: 'memory' is not a field of MLPNetwork"),
        ("network.activation=gelu", "network.activation is 'gelu'; it must be one of 'relu', 'tanh', 'silu'"),
        ("experience.time_limit=1", "experience.time_limit is '1'; it must be one of"),
        ("simulator.num_worlds=0", "simulator.num_worlds is 0; it must be an integer, 1 to"),
        ("simulator.num_wolds=4", "'simulator.num_wolds' is not .*did you mean 'simulator.num_worlds'"),
        ("precision=float16", "precision is 'float16'"),
    ],
)
def test_a_bad_change_is_refused_by_name(change: str, message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=message):
        TrainingConfig().changed(change)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["network.type=lstm", "ppo.chunk_length=5"], "ppo.chunk_length is 5; it must be a divisor of"),
        (["ppo.num_minibatches=100000"], "ppo.num_minibatches is 100000; it must be at most"),
        (["network.type=lstm", "network.separate_critic=true"], "'separate_critic' is not a field of LSTMNetwork"),
        (["simulator.auto_reset=false"], "simulator.auto_reset is False"),
        (["simulator.device=cuda", "experience.inference=native"], "experience.inference is 'native'"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(changes: list[str], message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=message):
        TrainingConfig().changed(*changes)


def test_parts_of_other_packages_are_refused() -> None:
    engine = doorstep.RolloutConfig(doorstep.SimulatorConfig(4))
    message = r"experience is .*; it must be a doorstep\.training\.ExperienceConfig"
    with pytest.raises(doorstep.ArgumentError, match=message):
        TrainingConfig(experience=engine)  # type: ignore[arg-type]


def test_cameras_have_no_final_view_to_bootstrap_from() -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"experience.time_limit is 'bootstrap'"):
        preset("pixels").changed("experience.time_limit=bootstrap")


@pytest.mark.parametrize("values", [{"sed": 1}, {"ppo": {"gama": 1}}, {"ppo": 3}, {"seed": "x"}, [1]])
def test_bad_dictionaries_are_refused(values: Any) -> None:
    with pytest.raises(doorstep.ArgumentError):
        TrainingConfig.from_dict(values)


def test_text_that_is_not_json_is_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="text is not JSON"):
        TrainingConfig.from_json("{")


@pytest.mark.parametrize("part", [MLPNetwork, LSTMNetwork, ExperienceConfig, PPOConfig, TrainingConfig])
def test_configs_are_frozen(part: Any) -> None:
    with pytest.raises(AttributeError):
        part().anything = 1


@pytest.mark.parametrize(
    ("changes", "natively"),
    [
        (["simulator.num_worlds=32"], True),
        (["simulator.num_worlds=512"], True),
        (["simulator.num_worlds=512", "network.type=lstm"], True),
        (["simulator.num_worlds=32", "network.separate_critic=true"], True),
        (["simulator.num_worlds=33", "network.separate_critic=true"], False),
        (["simulator.num_worlds=33", "network.separate_critic=true", "experience.inference=native"], True),
        (["simulator.num_worlds=33", "precision=bfloat16"], False),
        (["simulator.num_worlds=16", "simulator.num_agents=8", "network.separate_critic=true"], False),
        (["simulator.num_worlds=32", "experience.inference=torch"], False),
        (["simulator.num_worlds=32", "simulator.device=cuda"], False),
    ],
)
def test_batches_are_acted_natively_where_that_is_faster(changes: list[str], natively: bool) -> None:
    assert TrainingConfig().changed(*changes, "ppo.num_minibatches=1").infers_natively is natively


def test_pixels_are_acted_by_torch() -> None:
    assert not preset("pixels").changed("simulator.num_worlds=2").infers_natively
