"""Networks: memory, moments, and what the library makes of what was trained."""

import numpy as np
import pytest

import doorstep

pytest.importorskip("torch")

import torch
from tests.pkg.policy.networks import exact
from tests.pkg.sealed_files import change_metadata
from tests.pkg.training.runs import WITH_MEMORY, rolled_out, small

from doorstep.policy import SamplingParams, load_policy
from doorstep.training import LSTMNetwork, MLPNetwork, Ranks, Trainer, export_policy, preset, save_checkpoint
from doorstep.training.networks import ActorCritic
from doorstep.training.normalization import RunningMoments
from doorstep.training.trained import restored_network


def outputs_of(network, seen, memory=None, starts=None):
    """Of one step of rows."""
    rows = len(seen)
    memory = torch.zeros(rows, network.memory_size) if memory is None else memory
    with torch.no_grad():
        return network(seen[None], memory, torch.zeros(1, rows, dtype=torch.bool) if starts is None else starts)


def test_memory_lasts_for_an_episode():
    network = ActorCritic(LSTMNetwork(widths=(24,), memory=12), (94,))
    seen = torch.randn(6, 4, 94)
    starts = torch.zeros(6, 4, dtype=torch.bool)
    starts[3, 1] = True
    first = torch.randn(4, 24)
    whole = network(seen, first, starts)
    early = network(seen[:2], first, starts[:2])
    late = network(seen[2:], early.memory, starts[2:])
    torch.testing.assert_close(torch.cat((early.logits, late.logits)), whole.logits)
    torch.testing.assert_close(late.memory, whole.memory)
    fresh = network(seen[3:, 1:2], torch.zeros(1, 24), starts[3:, 1:2] * False)
    torch.testing.assert_close(fresh.logits[:, 0], whole.logits[3:, 1])
    unforgotten = network(seen, first, torch.zeros_like(starts))
    assert not torch.allclose(unforgotten.logits[3:, 1], whole.logits[3:, 1])
    assert torch.equal(unforgotten.logits[:, 0], whole.logits[:, 0])


def test_first_policies_are_nearly_uniform_whatever_they_see():
    for shape in ((94,), (64, 64, 4), (48, 40, 4)):
        for config in (MLPNetwork(widths=(24,)), LSTMNetwork(widths=(24,), memory=12)):
            network = ActorCritic(config, shape)
            seen = torch.randn(50, *shape) if len(shape) == 1 else torch.randint(256, (50, *shape), dtype=torch.uint8)
            outputs = outputs_of(network, seen)
            assert outputs.logits.shape == (1, 50, 19)
            assert outputs.logits.abs().max() < 0.2
            assert outputs.values.abs().max() < 2
            assert outputs.memory.shape == (50, 24 if config.type == "lstm" else 0)


def test_running_moments_are_those_of_weighted_batches():
    moments = RunningMoments((3,), decay=0.9, least=1e-3)
    assert torch.equal(moments.scale().mean, torch.zeros(3))
    assert torch.equal(moments.scale().deviation, torch.ones(3))
    generator = np.random.default_rng(1)
    batches = [generator.normal((1.0, -2.0, 5.0), (1.0, 0.1, 0.0), (50, 3)) for _ in range(6)]
    for batch in batches:
        moments.update(torch.tensor(batch, dtype=torch.float32), Ranks())
    weights = np.repeat([0.9 ** (5 - index) for index in range(6)], 50)
    rows = np.concatenate(batches)
    mean = np.average(rows, axis=0, weights=weights)
    deviation = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=weights))
    scale = moments.scale()
    np.testing.assert_allclose(scale.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(scale.deviation, np.maximum(deviation, 1e-3), rtol=1e-3)
    numbers = torch.tensor(rows, dtype=torch.float32)
    normalized = (numbers - scale.mean) / scale.deviation
    torch.testing.assert_close(scale.restore(normalized), numbers, rtol=1e-4, atol=1e-4)


# ---- Playing what was trained

OBSERVED = "simulator.observations=lidar,door_observations:2,self_observations,steps_remaining"  # 60 + 3 + 8 + 1
PRIVILEGED = (OBSERVED, "critic_observations=physics,agent_index:0.5", "levels=room_types")  # 5 + 1
KINDS = {
    "mlp": ("simulator.num_agents=3",),
    "lstm": WITH_MEMORY,
    "separate critic": ("network.separate_critic=true", "network.activation=tanh", "network.layer_norm=false"),
    "privileged": PRIVILEGED,
    "privileged, lstm": (*PRIVILEGED, *WITH_MEMORY),
    "privileged, native": (*PRIVILEGED, "experience.inference=native"),
    "as seen": ("experience.normalize_observations=false", "experience.inference=native", *WITH_MEMORY),
}


@pytest.mark.parametrize("kind", KINDS)
def test_policies_of_a_run_are_its_network_of_observations_as_they_are(kind, tmp_path):
    """By the trainer, its checkpoint's file, what is exported of it, and PyTorch: over steps, with memory."""
    trainer = Trainer(small(*KINDS[kind]))
    for _ in range(3):
        trainer.update()
    path, exported = tmp_path / "x.safetensors", tmp_path / "y.safetensors"
    save_checkpoint(path, trainer.checkpoint())
    export_policy(path, exported)
    policies = [trainer.policy, load_policy(path), load_policy(exported)]
    export_policy(path, tmp_path / "greedy.safetensors", sampling=SamplingParams(greedy=True))
    assert load_policy(tmp_path / "greedy.safetensors").sampling == SamplingParams(greedy=True)
    assert policies[2].sampling == SamplingParams()
    config = {**trainer.config.to_dict(), "curriculum": {"type": "of_the_user"}}
    change_metadata(path, "doorstep", config=config)
    policies.append(load_policy(path))  # needs no class of its config
    network, num_agents = restored_network(trainer.checkpoint()), trainer.config.simulator.num_agents
    moments = trainer._observation_moments
    states = [policy.initial_state(6, num_agents) if policy.state_size else None for policy in policies]
    memory, own = torch.randn(6 * num_agents, network.memory_size) * 0, {}
    for _ in range(3):
        raw = trainer.worlds.sim.observations.to_torch().flatten(0, 1).clone()
        scaled = raw.clone()
        if moments is not None:
            moments.scale().normalize(scaled, scaled)
        expected, found = outputs_of(trainer.network, scaled, memory), outputs_of(network, raw, memory)
        torch.testing.assert_close(found.logits, expected.logits, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(found.values, expected.values, rtol=1e-3, atol=1e-4)
        seen = raw[:, : policies[0].num_inputs].reshape(6, num_agents, -1).contiguous()
        logits = [policy.forward(seen, state) for policy, state in zip(policies, states, strict=True)]
        np.testing.assert_allclose(logits[0], exact(network.actor_modules(), seen, own), rtol=1e-4, atol=1e-4)
        assert all((other == logits[0]).all() for other in logits[1:])
        memory = found.memory
        trainer.worlds.sim.step()


def test_only_the_critic_sees_the_last_numbers_and_its_policy_knows_what_agents_saw(tmp_path):
    trainer, _ = rolled_out(*PRIVILEGED)
    assert (trainer.worlds.shape, trainer.config.num_critic_inputs) == ((78,), 6)
    assert trainer.network.encoder[0].in_features == 72
    seen = torch.randn(9, 78, generator=torch.Generator().manual_seed(0))
    other = seen.clone()
    other[:, 72:] += 1
    one, two = outputs_of(trainer.network, seen), outputs_of(trainer.network, other)
    assert torch.equal(one.logits, two.logits)
    assert not torch.isclose(one.values, two.values).any()
    save_checkpoint(tmp_path / "x.safetensors", trainer.checkpoint())
    export_policy(tmp_path / "x.safetensors", tmp_path / "y.safetensors")
    shown = ("lidar", ("door_observations", 2.0), "self_observations", "steps_remaining")
    for name in ("x", "y"):
        policy = load_policy(tmp_path / f"{name}.safetensors")
        assert (policy.num_inputs, policy.observations) == (72, shown)
        assert policy.freeze().observations == policy.seeded(1).observations == shown
    policies = {"idle": "idle", "mine": tmp_path / "x.safetensors", "random": "random"}  # each is given its own
    how = {"episodes": 3, "worlds": 2, "episode_length": 10, "num_threads": 1}
    together = doorstep.evaluate(policies, **how)
    for name, one in policies.items():
        assert doorstep.evaluate({name: one}, **how).score(name) == together.score(name)


def test_a_policy_of_pixels_is_refused(tmp_path):
    config = preset("pixels").changed("simulator.num_worlds=1", "network.widths=[8]")
    save_checkpoint(tmp_path / "x.safetensors", Trainer(config).checkpoint())
    with pytest.raises(doorstep.StateError, match="it holds no policy, as checkpoints of networks that see pixels"):
        load_policy(tmp_path / "x.safetensors")
