"""Runs whose agents see other parts, and whose critics see more than their agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.training.runs import WITH_MEMORY, small  # noqa: E402

from doorstep.policy import load_policy  # noqa: E402
from doorstep.training import Trainer, TrainingConfig, export_policy, load_checkpoint, save_checkpoint  # noqa: E402
from doorstep.training.trained import restored_network  # noqa: E402

SEEN = ("lidar", ("door_observations", 2.0), "self_observations", "steps_remaining")  # 60 + 3 + 8 + 1
OBSERVED = "simulator.observations=lidar,door_observations:2,self_observations,steps_remaining"
PRIVILEGED = (OBSERVED, "critic_observations=physics,agent_index:0.5")  # 5 + 1
WITH_LEVELS = ("levels=room_types",)


@pytest.fixture(params=[(), WITH_MEMORY, ("experience.inference=native",)], ids=["mlp", "lstm", "native"])
def trained(request: Any) -> Trainer:
    trainer = Trainer(small(*PRIVILEGED, *WITH_LEVELS, *request.param))
    for _ in range(2):
        trainer.update()
    return trainer


def outputs_of(network: Any, seen: Any) -> Any:
    rows = seen.shape[0]
    with torch.no_grad():
        return network(seen[None], torch.zeros(rows, network.memory_size), torch.zeros(1, rows, dtype=torch.bool))


def test_only_the_critic_sees_the_last_numbers(trained: Trainer) -> None:
    assert (trained.worlds.shape, trained.config.num_critic_inputs) == ((78,), 6)
    assert trained.network.encoder[0].in_features == 72
    seen = torch.randn(9, 78)
    other = seen.clone()
    other[:, 72:] += 1
    one, two = outputs_of(trained.network, seen), outputs_of(trained.network, other)
    assert torch.equal(one.logits, two.logits)
    assert not torch.isclose(one.values, two.values).any()


def test_a_run_goes_on_from_its_checkpoint(trained: Trainer, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "x.safetensors", trained.checkpoint())
    checkpoint = load_checkpoint(tmp_path / "x.safetensors")
    assert checkpoint.config == trained.config
    later = Trainer(checkpoint.config)
    later.restore(checkpoint)
    assert later.update().losses == trained.update().losses


def test_a_restored_network_takes_observations_as_they_are(trained: Trainer) -> None:
    raw = trained.worlds.sim.observations.to_torch().flatten(0, 1)
    scaled = raw.clone()
    assert trained._observation_moments is not None
    trained._observation_moments.scale().normalize(scaled, scaled)
    expected, found = outputs_of(trained.network, scaled), outputs_of(restored_network(trained.checkpoint()), raw)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(found.values, expected.values, rtol=1e-3, atol=1e-4)


def test_its_policy_knows_what_agents_saw(trained: Trainer, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "x.safetensors", trained.checkpoint())
    export_policy(tmp_path / "x.safetensors", tmp_path / "y.safetensors")
    for name in ("x", "y"):
        policy = load_policy(tmp_path / f"{name}.safetensors")
        assert (policy.num_inputs, policy.observations) == (72, SEEN)
        assert policy.freeze().observations == policy.seeded(1).observations == SEEN


def test_an_evaluation_gives_each_policy_its_observations(trained: Trainer, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "x.safetensors", trained.checkpoint())
    evaluation = doorstep.evaluate(
        {"mine": tmp_path / "x.safetensors", "idle": "idle"}, episodes=3, worlds=2, episode_length=10, num_threads=1
    )
    assert [score.policy for score in evaluation.scores] == ["mine", "idle"]


def test_reward_functions_see_what_agents_see() -> None:
    widths = []

    def reward(step: Any) -> Any:
        widths.append((step.observations.shape[-1], step.final_observations.shape[-1]))
        return step.rewards

    Trainer(small(*PRIVILEGED), reward_function=reward).update()
    assert set(widths) == {(72, 72)}


def test_reward_functions_may_share_what_they_see() -> None:
    """PyTorch gives a tensor that it shares other memory."""

    def reward(step: Any) -> Any:
        seen.append([trainer.worlds.sim.steps_remaining.to_numpy().tolist(), step.steps_remaining.tolist()])
        step.steps_remaining.share_memory_()
        return step.rewards

    seen: list[Any] = []
    trainer = Trainer(small(), reward_function=reward)
    trainer.update()
    assert seen[0] != seen[-1]
    assert all(real == shown for real, shown in seen)


def test_what_critics_know_is_drawn_for_each_episode() -> None:
    """Physics of levels that draw them differ between worlds, and are those of the state."""
    level = doorstep.levels.GeneratedLevel(physics=doorstep.levels.Physics(cube_mass=(5, 50)))
    trainer = Trainer(small("critic_observations=physics").replace(levels=(level,)))
    seen = trainer.worlds.sim.observations.to_numpy()[:, 0, -5:]
    drawn = trainer.worlds.sim.state.physics.to_numpy()
    np.testing.assert_allclose(seen[:, 0] * (1 / 0.075), drawn[:, 0], rtol=1e-5)
    assert len(set(seen[:, 0].tolist())) == len(seen)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("critic_observations=lidar",), r"parts that simulator\.observations does not have .*see 'lidar' too"),
        (("critic_observations=phisics",), r"critic_observations\[0\] is 'phisics'.*did you mean 'physics'"),
        (
            ("simulator.observations=lidar", "critic_observations=partner_observations", "simulator.num_agents=1"),
            r"parts that have values with simulator\.num_agents=1",
        ),
        (("simulator.cameras.width=16", "critic_observations=physics"), "none with cameras"),
    ],
)
def test_parts_that_critics_cannot_see_are_refused(changes: tuple[str, ...], message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=message):
        TrainingConfig().changed(*changes)
