"""Rollouts hold what happened; advantages follow from them by their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.training.runs import WITH_MEMORY, WITHOUT_MEMORY, rolled_out, small  # noqa: E402

from doorstep.training import Ranks, Trainer, TrainingError  # noqa: E402
from doorstep.training.rollout import explained_variance  # noqa: E402
from doorstep.training.worlds import Worlds  # noqa: E402

UNSCALED = ("experience.normalize_observations=false", "experience.staggered=false")


def test_a_rollout_holds_what_happened() -> None:
    changes = ("experience.time_limit=bootstrap", "experience.num_steps=32")
    trainer, rollout = rolled_out(*UNSCALED, *changes)
    with doorstep.Simulator.from_config(trainer.config.simulator) as again:
        for step in range(rollout.num_steps):
            assert (rollout.observations[step].numpy() == again.observations[:].reshape(12, 94)).all()
            again.actions = rollout.actions[step]
            again.step()
            assert (rollout.rewards[step].numpy() == again.rewards[:].reshape(12)).all()
            assert (rollout.ended[step].numpy() == again.dones[:].reshape(12)).all()
            if again.dones[0, 0, 0]:
                assert (rollout.final_observations[step].numpy() == again.final_observations[:].reshape(12, 94)).all()
                assert (rollout.returns[step].numpy() == again.episode_returns[:].reshape(12)).all()
        assert (rollout.observations[-1].numpy() == again.observations[:].reshape(12, 94)).all()
    assert rollout.ended.any(dim=1).nonzero().ravel().tolist() == [19]


def test_a_function_adds_rewards_and_restores_worlds() -> None:
    trainer = Trainer(small(*UNSCALED, "experience.num_steps=32"))
    sim = trainer.worlds.sim
    begin = sim.save([2])
    yielded = []

    def after_step(rewards: Any, dones: Any, terminations: Any) -> None:
        yielded.append((rewards.clone(), dones.clone(), terminations.clone()))
        rewards += torch.arange(12)
        if dones[0]:
            sim.restore(begin, [0])

    trainer.worlds.after_step = after_step
    trainer.update()
    rollout = trainer._rollout
    assert len(yielded) == 32
    for step, (rewards, dones, terminations) in enumerate(yielded):
        assert torch.equal(rollout.rewards[step], rewards + torch.arange(12))
        assert torch.equal(rollout.ended[step], dones)
        assert torch.equal(rollout.terminations[step], terminations)
    (end,) = rollout.ended.all(dim=1).nonzero().ravel().tolist()
    assert torch.equal(rollout.observations[end + 1, :2], rollout.observations[0, 4:6])
    assert not torch.equal(rollout.observations[end + 1, 4:6], rollout.observations[0, 4:6])


def test_a_function_is_not_recorded_into_a_cuda_graph() -> None:
    trainer = Trainer(small())
    trainer.worlds.after_step = lambda rewards, dones, terminations: None
    trainer.worlds.device = torch.device("cuda")
    with pytest.raises(TrainingError, match=r"experience\.cuda_graph=false"):
        trainer.update()
    assert trainer.updates == 0


def test_the_next_rollout_goes_on() -> None:
    trainer, rollout = rolled_out(*UNSCALED)
    last, started = rollout.observations[-1].clone(), rollout.starts[-1].clone()
    trainer.update()
    assert torch.equal(rollout.observations[0], last)
    assert torch.equal(rollout.starts[0], started)


def test_observations_are_normalised_by_what_was_seen() -> None:
    trainer = Trainer(small("simulator.num_worlds=64"))
    trainer.update()
    seen, moments = trainer._rollout.observations[0], trainer._observation_moments
    assert moments is not None
    varying = moments.scale().deviation > moments.least
    assert varying.sum() > 40
    assert seen.mean(0).abs().max() < 1e-3
    assert (seen.std(0, correction=0)[varying] - 1).abs().max() < 1e-3
    assert seen.abs().max() < 25


def reference_advantages(rollout: Any, scale: Any, next_values: Any, ends: Any, gamma: float, gae_lambda: float) -> Any:
    """The recursion of generalised advantage estimation, written out in double precision; ends: 0 is worth nothing."""
    values = scale.restore(rollout.values).double()
    advantages = torch.zeros_like(values)
    following = torch.zeros(values.shape[1], dtype=torch.float64)
    for step in reversed(range(len(values))):
        error = rollout.rewards[step] + gamma * next_values[step] * ends[step] - values[step]
        following = error + gamma * gae_lambda * following * ~rollout.ended[step]
        advantages[step] = following
    return advantages


@pytest.mark.parametrize("time_limit", ["terminal", "bootstrap"])
@pytest.mark.parametrize("network", [WITHOUT_MEMORY, WITH_MEMORY])
def test_advantages_follow_their_definition(time_limit: str, network: tuple[str, ...]) -> None:
    config = small(f"experience.time_limit={time_limit}", *network)
    trainer = Trainer(config)
    for _ in range(2):
        trainer.update()
    rollout, evaluate = trainer._rollout, trainer._learner.evaluate
    trainer._collect()
    scale = trainer._value_moments.scale()
    rollout.judge(evaluate, trainer._value_moments, is_evaluated=True)

    assert rollout.ended.any()
    with torch.no_grad():
        values = evaluate(rollout.observations[-1:], rollout.memory[-1], rollout.starts[-1:]).values
        next_values = scale.restore(torch.cat((rollout.values[1:], values))).double()
        ends = ~rollout.ended
        if time_limit == "bootstrap":
            ends = torch.ones_like(rollout.ended)
            for step, row in rollout.ended.nonzero().tolist():
                final, remembered = rollout.final_observations[step, row], rollout.memory[step + 1, row]
                value = evaluate(final[None, None], remembered[None], torch.zeros(1, 1, dtype=torch.bool)).values
                next_values[step, row] = scale.restore(value).item()
    expected = reference_advantages(rollout, scale, next_values, ends, config.ppo.gamma, config.ppo.gae_lambda)
    torch.testing.assert_close(rollout.advantages.double(), expected, rtol=1e-4, atol=1e-5)

    targets = expected + scale.restore(rollout.values)
    now = trainer._value_moments.scale()
    torch.testing.assert_close(now.restore(rollout.targets).double(), targets, rtol=1e-4, atol=1e-5)


SEPARATE = (*WITHOUT_MEMORY, "network.separate_critic=true")


@pytest.mark.parametrize(("network", "evaluates"), [(WITHOUT_MEMORY, True), (WITH_MEMORY, True), (SEPARATE, False)])
def test_native_and_torch_inference_judge_the_same_steps_alike(network: tuple[str, ...], evaluates: bool) -> None:
    """What PyTorch computes step by step is what is computed in a rollout that is acted natively, or after it where the
    policy has no head that is the critic."""
    trainer, rollout = rolled_out("experience.inference=native", *network)
    assert trainer._actor.evaluates == evaluates
    trainer._collect()
    rollout.judge(trainer._learner.evaluate, trainer._value_moments, is_evaluated=evaluates)
    with torch.no_grad():
        for step in range(rollout.num_steps):
            present = slice(step, step + 1)
            outputs = trainer.network(rollout.observations[present], rollout.memory[step], rollout.starts[present])
            torch.testing.assert_close(outputs.values[0], rollout.values[step], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(outputs.memory, rollout.memory[step + 1], rtol=1e-4, atol=1e-5)
            expected = sum(
                part.log_softmax(-1).gather(1, rollout.actions[step, :, index : index + 1].long())[:, 0]
                for index, part in enumerate(outputs.logits[0].split(list(doorstep.ACTIONS), -1))
            )
            torch.testing.assert_close(rollout.log_probabilities[step], expected, rtol=1e-4, atol=1e-4)


def test_sequences_are_steps_of_one_agent_in_order() -> None:
    _, rollout = rolled_out(*WITH_MEMORY)
    data = rollout.sequences()
    length, steps, rows = 4, rollout.num_steps, 12
    assert data["advantages"].shape == (length, steps // length * rows)
    for sequence in (0, 5, rows, 3 * rows + 7):
        chunk, row = divmod(sequence, rows)
        span = slice(chunk * length, (chunk + 1) * length)
        for name in ("observations", "actions", "starts", "advantages", "targets", "log_probabilities"):
            assert torch.equal(data[name][:, sequence], getattr(rollout, name)[span, row]), name
        assert torch.equal(data["memory"][0, sequence], rollout.memory[chunk * length, row])


def test_staggered_worlds_end_their_episodes_at_different_steps() -> None:
    worlds = Worlds(small("simulator.num_worlds=20").simulator, Ranks())
    worlds.stagger()
    remaining = worlds.sim.steps_remaining.to_numpy()[:, 0, 0]
    assert np.unique(remaining).size == 20
    assert (worlds.sim.steps_remaining.to_numpy() > 0).all()


def test_pixels_are_colours_and_depth() -> None:
    from doorstep.training import preset

    worlds = Worlds(preset("pixels").simulator.replace(num_worlds=2), Ranks())
    seen = torch.zeros(4, 64, 64, 4, dtype=torch.uint8)
    worlds.observe(seen)
    sim = worlds.sim
    assert (seen[..., :3].numpy() == sim.rgb.to_numpy()[..., :3].reshape(4, 64, 64, 3)).all()
    depth = np.minimum(sim.depth.to_numpy().reshape(4, 64, 64), 40) * 255 / 40
    assert np.abs(seen[..., 3].numpy() - depth).max() <= 1.001
    assert len(np.unique(seen[..., 3].numpy())) > 20


def test_explained_variance_is_the_share_of_the_variance_of_targets() -> None:
    targets = torch.tensor([[1.0, 5.0], [3.0, 7.0]])
    assert explained_variance(torch.zeros(2, 2), targets, Ranks()) == 1
    assert explained_variance(torch.full((2, 2), 9.0), targets, Ranks()) == 1  # equal errors: a shift
    assert explained_variance(targets / 2, targets, Ranks()) == pytest.approx(0.75)
    assert explained_variance(2 * targets, targets, Ranks()) == pytest.approx(-3)
    assert explained_variance(targets, torch.ones(2, 2), Ranks()) == 0
