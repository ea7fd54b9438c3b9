"""Networks: shapes, memory, and what the library makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.sealed_files import change_metadata  # noqa: E402
from tests.pkg.training.runs import WITH_MEMORY, small  # noqa: E402

from doorstep.policy import load_policy  # noqa: E402
from doorstep.training import LSTMNetwork, MLPNetwork, Ranks, Trainer, preset, save_checkpoint  # noqa: E402
from doorstep.training.config import NetworkConfig  # noqa: E402
from doorstep.training.networks import ActorCritic  # noqa: E402
from doorstep.training.normalization import RunningMoments  # noqa: E402
from doorstep.training.trained import restored_network  # noqa: E402


@pytest.mark.parametrize("shape", [(94,), (64, 64, 4), (48, 40, 4)])
@pytest.mark.parametrize("config", [MLPNetwork(widths=(24,)), LSTMNetwork(widths=(24,), memory=12)])
def test_outputs_have_their_shapes(shape: tuple[int, ...], config: NetworkConfig) -> None:
    network = ActorCritic(config, shape)
    seen = torch.zeros(3, 5, *shape, dtype=torch.uint8 if len(shape) == 3 else torch.float32)
    outputs = network(seen, torch.zeros(5, network.memory_size), torch.zeros(3, 5, dtype=torch.bool))
    assert outputs.logits.shape == (3, 5, 19)
    assert outputs.values.shape == (3, 5)
    assert outputs.memory.shape == (5, 24 if config.type == "lstm" else 0)


def test_memory_lasts_for_an_episode() -> None:
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


def test_first_policies_are_nearly_uniform() -> None:
    network = ActorCritic(MLPNetwork(), (94,))
    outputs = network(torch.randn(1, 100, 94), torch.zeros(100, 0), torch.zeros(1, 100, dtype=torch.bool))
    assert outputs.logits.abs().max() < 0.2
    assert outputs.values.abs().max() < 2


def test_running_moments_are_those_of_weighted_batches() -> None:
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
    normalized = numbers.clone()
    scale.normalize(normalized, normalized)
    torch.testing.assert_close(scale.restore(normalized), numbers, rtol=1e-4, atol=1e-4)


# ---- Playing what was trained


@pytest.fixture(params=[(), WITH_MEMORY, ("network.separate_critic=true",)])
def trained(request: Any) -> Trainer:
    trainer = Trainer(small("simulator.num_worlds=16", *request.param))
    for _ in range(3):
        trainer.update()
    return trainer


def test_a_restored_network_takes_observations_as_they_are(trained: Trainer) -> None:
    network = restored_network(trained.checkpoint())
    raw = trained.worlds.sim.observations.to_torch().flatten(0, 1)[None]
    scaled = raw.clone()
    assert trained._observation_moments is not None
    trained._observation_moments.scale().normalize(scaled, scaled)
    memory, starts = torch.randn(32, network.memory_size), torch.zeros(1, 32, dtype=torch.bool)
    with torch.no_grad():
        expected, found = trained.network(scaled, memory, starts), network(raw, memory, starts)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(found.values, expected.values, rtol=1e-3, atol=1e-4)


def test_the_policy_of_a_checkpoint_plays(trained: Trainer, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "x.safetensors", trained.checkpoint())
    policy = load_policy(tmp_path / "x.safetensors")
    network = restored_network(trained.checkpoint())
    with doorstep.Simulator(5, seed=3) as sim:
        raw = sim.observations.to_torch().flatten(0, 1)[None]
        with torch.no_grad():
            outputs = network(raw, torch.zeros(10, network.memory_size), torch.zeros(1, 10, dtype=torch.bool))
        expected = outputs.logits[0].reshape(5, 2, 19)
        torch.testing.assert_close(torch.from_numpy(policy.forward(sim.observations)), expected, rtol=1e-4, atol=1e-5)


def test_the_policy_of_a_file_is_one_for_commands(trained: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_checkpoint(path, trained.checkpoint())
    policy = load_policy(path)
    assert isinstance(policy, doorstep.Policy)


def test_a_policy_needs_no_class_of_its_config(trained: Trainer, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_checkpoint(path, trained.checkpoint())
    expected = load_policy(path)
    config = {**trained.config.to_dict(), "curriculum": {"type": "of_the_user"}}
    change_metadata(path, "doorstep", config=config)
    rows = trained.worlds.sim.observations
    assert (load_policy(path).forward(rows) == expected.forward(rows)).all()


def test_a_policy_of_pixels_is_refused(tmp_path: Path) -> None:
    config = preset("pixels").changed("simulator.num_worlds=1", "network.widths=[8]")
    save_checkpoint(tmp_path / "x.safetensors", Trainer(config).checkpoint())
    with pytest.raises(doorstep.StateError, match="it holds no policy, as checkpoints of networks that see pixels"):
        load_policy(tmp_path / "x.safetensors")
