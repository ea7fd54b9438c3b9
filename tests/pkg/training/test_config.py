"""Presets, and what a config of a run refuses beside what every config does."""

import pytest
from tests.refuses import refuses

import doorstep

pytest.importorskip("torch")

from doorstep.training import MLPNetwork, TrainingConfig, preset
from doorstep.training.presets import PRESETS


def test_presets_have_their_hyperparameters():
    assert all(TrainingConfig.from_json(preset(name).to_json()) == preset(name) for name in PRESETS)
    config, ppo = preset("reference"), preset("reference").ppo
    assert (config.simulator.num_worlds, config.simulator.seed, config.num_updates) == (8192, 5, 5000)
    assert (config.experience.num_steps, config.experience.time_limit, ppo.chunk_length) == (40, "terminal", 5)
    assert config.network == MLPNetwork(widths=(256, 256, 256), activation="relu", layer_norm=True)
    assert (ppo.learning_rate, ppo.gamma, ppo.gae_lambda, ppo.clip_range) == (1e-4, 0.998, 0.95, 0.2)
    assert (ppo.num_epochs, ppo.num_minibatches, ppo.entropy_coefficient, ppo.value_coefficient) == (2, 1, 0.01, 0.5)
    assert (ppo.max_gradient_norm, ppo.value_decay, ppo.clip_value_loss) == (0.5, 0.999, False)
    assert preset("pixels").simulator.observations == "by_name"
    refuses(r"preset is 'refrence'.*did you mean 'reference'", preset, "refrence")
    for other in (None, [], 10**5000):
        refuses(r"^preset is .*; it must be one of 'default'", preset, other)


def test_changes_are_made_all_at_once():
    """Each alone would contradict the others."""
    changes = ["simulator.num_worlds=1", "experience.num_steps=2", "ppo.num_minibatches=4", "ppo.chunk_length=2"]
    for order in (changes, changes[::-1]):
        config = TrainingConfig().changed(*order)
        assert (config.steps_per_update, config.ppo.num_minibatches) == (2, 4)


REFUSED = {  # changes, and what is said; tests/pkg/configs has what is said of every config
    "ent_coef=1": r"did you mean 'ppo.entropy_coefficient'",
    "lambda=1": r"did you mean 'ppo.gae_lambda'",
    "network.type=lstn": "network.type is 'lstn'; it must be a network: 'mlp', 'lstm'.*did you mean 'lstm'",
    "experience.retries=0.6": "experience.retries is 0.6; it must be a number, 0 to 0.5",
    "levels=curated curriculum.type=hardest": "curriculum.type is 'hardest'; it must be a curriculum: 'uniform', 'lea",
    "curriculum.type=learnability": "curriculum is .*'uniform' with levels='reference'",
    # parts that contradict each other
    "network.type=lstm ppo.chunk_length=5": "ppo.chunk_length is 5; it must be a divisor of",
    "ppo.num_minibatches=100000": "ppo.num_minibatches is 100000; it must be at most",
    "simulator.auto_reset=false": "simulator.auto_reset is False",
    "simulator.device=cuda experience.inference=native": "experience.inference is 'native'",
    "critic_observations=lidar": r"parts that simulator\.observations does not have .*see 'lidar' too",
    "simulator.observations=lidar critic_observations=partner_observations simulator.num_agents=1": (
        r"parts that have values with simulator\.num_agents=1"
    ),
    "simulator.cameras.width=16 critic_observations=physics": "none with cameras",
}


def test_what_contradicts_itself_is_refused_by_name():
    for changes, message in REFUSED.items():
        refuses(message, TrainingConfig().changed, *changes.split())
    bootstrap = "experience.time_limit=bootstrap"  # cameras have no final view
    refuses(r"experience.time_limit is 'bootstrap'", preset("pixels").changed, bootstrap)
    experience = doorstep.RolloutConfig(doorstep.SimulatorConfig(4))
    refuses(r"it must be a doorstep\.training\.Exp", TrainingConfig, experience=experience, argument="experience")


def test_batches_are_acted_natively_where_that_is_faster():
    for changes, natively in {
        "simulator.num_worlds=512 network.type=lstm": True,
        "simulator.num_worlds=32 network.separate_critic=true": True,
        "simulator.num_worlds=33 network.separate_critic=true": False,
        "simulator.num_worlds=33 network.separate_critic=true experience.inference=native": True,
        "simulator.num_worlds=32 simulator.device=cuda": False,
    }.items():
        config = TrainingConfig().changed(*changes.split(), "ppo.num_minibatches=1")
        assert config.infers_natively is natively, changes
    assert not preset("pixels").changed("simulator.num_worlds=2").infers_natively
