"""Configs are checked, stored and changed by name."""

import json

import pytest
from tests.refuses import refuses

import doorstep

pytest.importorskip("torch")

from doorstep.training import ExperienceConfig, LSTMNetwork, MLPNetwork, PPOConfig, TrainingConfig, preset
from doorstep.training.presets import PRESETS


def test_presets_survive_a_dictionary_and_json_and_have_their_hyperparameters():
    for name in PRESETS:
        config = preset(name)
        assert TrainingConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
        assert TrainingConfig.from_json(config.to_json()) == config
    config = preset("reference")
    assert (config.simulator.num_worlds, config.simulator.seed, config.num_updates) == (8192, 5, 5000)
    assert (config.experience.num_steps, config.experience.time_limit) == (40, "terminal")
    assert config.experience.num_steps / config.ppo.chunk_length == 8
    assert config.network == MLPNetwork(widths=(256, 256, 256), activation="relu", layer_norm=True)
    ppo = config.ppo
    assert (ppo.learning_rate, ppo.gamma, ppo.gae_lambda, ppo.clip_range) == (1e-4, 0.998, 0.95, 0.2)
    assert (ppo.num_epochs, ppo.num_minibatches, ppo.entropy_coefficient, ppo.value_coefficient) == (2, 1, 0.01, 0.5)
    assert (ppo.max_gradient_norm, ppo.value_decay, ppo.clip_value_loss) == (0.5, 0.999, False)
    refuses(r"preset is 'refrence'.*did you mean 'reference'", preset, "refrence")
    for other in (None, [], 10**5000):
        refuses(r"^preset is .*; it must be one of 'default'", preset, other)


CHANGES = {
    "seed=7": 7,
    "ppo.learning_rate=1e-2": 0.01,
    "ppo.final_learning_rate=0": 0.0,
    "network.widths=32,64": [32, 64],
    "network.widths=[32,64]": [32, 64],
    "network.layer_norm=false": False,
    "experience.time_limit=bootstrap": "bootstrap",
    "simulator.num_worlds=12": 12,
    "num_threads=none": None,
}


def test_a_change_sets_one_value():
    before = flattened(TrainingConfig().to_dict())
    for change, value in CHANGES.items():
        name = change.partition("=")[0]
        assert flattened(TrainingConfig().changed(change).to_dict()) == {**before, name: value}


def flattened(values, prefix=""):
    found = {}
    for name, value in values.items():
        found |= flattened(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def test_changes_are_made_all_at_once_and_later_ones_win():
    """Each alone would contradict the others."""
    changes = ["simulator.num_worlds=1", "experience.num_steps=2", "ppo.num_minibatches=4", "ppo.chunk_length=2"]
    for order in (changes, changes[::-1]):
        config = TrainingConfig().changed(*order)
        assert (config.steps_per_update, config.ppo.num_minibatches) == (2, 4)
    assert TrainingConfig().changed("seed=1", "seed=2").seed == 2
    assert TrainingConfig().changed("seed=1", seed=3).seed == 3
    small = TrainingConfig().changed("network.widths=16")  # another type of network begins with its defaults
    assert small.changed("network.type=lstm", "network.memory=8").network == LSTMNetwork(memory=8)
    assert small.changed("network.type=mlp").network == MLPNetwork(widths=(16,))
    config = TrainingConfig().changed(gamma=0.5, widths=(3, 4), **{"network.type": "lstm", "simulator.seed": 7})
    same = ("ppo.gamma=0.5", "network.widths=3,4", "network.type=lstm", "simulator.seed=7")
    assert config == TrainingConfig().changed(*same)
    refuses(r"ppo.gamma is True; it must be a number", TrainingConfig().changed, gamma=True)
    assert preset("pixels").simulator.observations == "by_name"


REFUSED = {  # changes, and what is said
    "ppo.lerning_rate=1": r"'ppo.lerning_rate' is not the name of a single.*did you mean 'ppo.learning_rate'",
    "ent_coef=1": r"did you mean 'ppo.entropy_coefficient'",
    "lambda=1": r"did you mean 'ppo.gae_lambda'",
    "type=lstm": r"it may be curriculum.type or network.type",
    "ppo=1": r"'ppo' is not the name of a single value .*it is ppo.gamma, ppo.gae_lambda",
    "seed.x=1": r"'seed.x' is not the name of a single value .*it is seed",
    "seed": "change is 'seed'; it must be KEY=VALUE",
    "seed=-1": "seed is -1; it must be an integer",
    "ppo.gamma=1.5": "ppo.gamma is 1.5; it must be a number, 0 to 1",
    "ppo.num_epochs=1.5": "ppo.num_epochs is '1.5'; it must be an integer",
    "network.widths=[]": r"network.widths is \[\]; it must be a sequence of one or more integers",
    "network.type=lstn": "network.type is 'lstn'; it must be a network: 'mlp', 'lstm'.*did you mean 'lstm'",
    "network.memory=8": "network: 'memory' is not a field of MLPNetwork",
    "simulator.num_worlds=0": "simulator.num_worlds is 0; it must be an integer, 1 to",
    "precision=float16": "precision is 'float16'",
    "experience.retries=0.6": "experience.retries is 0.6; it must be a number, 0 to 0.5",
    "levels=curated curriculum.type=hardest": "curriculum.type is 'hardest'; it must be a curriculum: 'uniform', 'lea",
    "levels=curated curriculum.type=learnability curriculum.window=1": "curriculum.window is 1; it must be an int",
    "curriculum.type=learnability": "curriculum is .*'uniform' with levels='reference'",
    # parts that contradict each other
    "network.type=lstm ppo.chunk_length=5": "ppo.chunk_length is 5; it must be a divisor of",
    "ppo.num_minibatches=100000": "ppo.num_minibatches is 100000; it must be at most",
    "simulator.auto_reset=false": "simulator.auto_reset is False",
    "simulator.device=cuda experience.inference=native": "experience.inference is 'native'",
    "critic_observations=lidar": r"parts that simulator\.observations does not have .*see 'lidar' too",
    "critic_observations=phisics": r"critic_observations\[0\] is 'phisics'.*did you mean 'physics'",
    "simulator.observations=lidar critic_observations=partner_observations simulator.num_agents=1": (
        r"parts that have values with simulator\.num_agents=1"
    ),
    "simulator.cameras.width=16 critic_observations=physics": "none with cameras",
}


def test_bad_changes_and_dictionaries_are_refused_by_name():
    for changes, message in REFUSED.items():
        refuses(message, TrainingConfig().changed, *changes.split())
    with pytest.raises(doorstep.ArgumentError, match=r"experience.time_limit is 'bootstrap'"):
        preset("pixels").changed("experience.time_limit=bootstrap")  # cameras have no final view
    with pytest.raises(doorstep.ArgumentError, match=r"experience is .*; it must be a doorstep\.training\.Exp"):
        TrainingConfig(experience=doorstep.RolloutConfig(doorstep.SimulatorConfig(4)))
    for values in ({"sed": 1}, {"ppo": {"gama": 1}}, {"ppo": 3}, {"seed": "x"}, [1]):
        refuses(None, TrainingConfig.from_dict, values)
    refuses("text is not JSON", TrainingConfig.from_json, "{")
    for part in (MLPNetwork, LSTMNetwork, ExperienceConfig, PPOConfig, TrainingConfig):
        with pytest.raises(AttributeError):
            part().anything = 1


def test_batches_are_acted_natively_where_that_is_faster():
    for changes, natively in {
        "simulator.num_worlds=512": True,
        "simulator.num_worlds=512 network.type=lstm": True,
        "simulator.num_worlds=32 network.separate_critic=true": True,
        "simulator.num_worlds=33 network.separate_critic=true": False,
        "simulator.num_worlds=33 network.separate_critic=true experience.inference=native": True,
        "simulator.num_worlds=33 precision=bfloat16": False,
        "simulator.num_worlds=16 simulator.num_agents=8 network.separate_critic=true": False,
        "simulator.num_worlds=32 experience.inference=torch": False,
        "simulator.num_worlds=32 simulator.device=cuda": False,
    }.items():
        config = TrainingConfig().changed(*changes.split(), "ppo.num_minibatches=1")
        assert config.infers_natively is natively, changes
    assert not preset("pixels").changed("simulator.num_worlds=2").infers_natively
