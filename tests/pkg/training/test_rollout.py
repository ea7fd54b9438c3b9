"""Rollouts hold what happened; advantages follow from them by their definition."""

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.training.runs import WITH_MEMORY, WITHOUT_MEMORY, rolled_out, small  # noqa: E402

from doorstep.training import Ranks, Trainer, TrainingError, preset  # noqa: E402
from doorstep.training.rollout import explained_variance  # noqa: E402
from doorstep.training.worlds import Worlds  # noqa: E402

UNSCALED = ("experience.normalize_observations=false", "experience.staggered=false")


@pytest.mark.parametrize("num_agents", [1, 3])
def test_a_rollout_holds_what_happened_and_the_next_one_goes_on(num_agents):
    changes = ("experience.time_limit=bootstrap", f"simulator.num_agents={num_agents}")
    trainer, rollout = rolled_out(*UNSCALED, *changes)
    rows = 6 * num_agents
    with doorstep.Simulator.from_config(trainer.config.simulator) as again:
        for update in range(3):
            if update:
                trainer.update()
            for step in range(rollout.num_steps):
                assert (rollout.observations[step].numpy() == again.observations[:].reshape(rows, -1)).all()
                again.actions = rollout.actions[step]
                again.step()
                assert (rollout.rewards[step].numpy() == again.rewards[:].reshape(rows)).all()
                assert (rollout.ended[step].numpy() == again.dones[:].reshape(rows)).all()
                assert (rollout.starts[step + 1].numpy() == again.dones[:].reshape(rows)).all()
                if again.dones[0, 0, 0]:
                    final = again.final_observations[:].reshape(rows, -1)
                    assert (rollout.final_observations[step].numpy() == final).all()
                    assert (rollout.returns[step].numpy() == again.episode_returns[:].reshape(rows)).all()
            assert (rollout.observations[-1].numpy() == again.observations[:].reshape(rows, -1)).all()
            assert rollout.ended.any(dim=1).nonzero().ravel().tolist() == [[], [3], [7]][update]  # 20, 40 of 16, 32, 48


def test_a_function_adds_rewards_and_restores_worlds():
    trainer = Trainer(small(*UNSCALED, "experience.num_steps=32"))
    sim = trainer.worlds.sim
    begin = sim.save([2])
    yielded = []

    def after_step(rewards, dones, terminations):
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
    trainer.worlds.device = torch.device("cuda")  # it is not recorded into a CUDA graph
    refuses(r"experience\.cuda_graph=false", trainer.update, error=TrainingError)
    assert trainer.updates == 1


def test_observations_are_normalised_by_what_was_seen():
    trainer, rollout = rolled_out("simulator.num_worlds=64")
    seen, moments = rollout.observations[0], trainer._observation_moments
    varying = moments.scale().deviation > moments.least
    assert varying.sum() > 40
    assert seen.mean(0).abs().max() < 1e-3
    assert (seen.std(0, correction=0)[varying] - 1).abs().max() < 1e-3
    assert seen.abs().max() < 25


def reference_advantages(rollout, scale, next_values, ends, gamma, gae_lambda):
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
def test_advantages_follow_their_definition(time_limit, network):
    trainer, rollout = rolled_out(f"experience.time_limit={time_limit}", *network)
    trainer.update()
    config, evaluate = trainer.config, trainer._learner.evaluate
    trainer._collect()
    scale = trainer._value_moments.scale()
    if time_limit == "bootstrap":  # one of the ends was a goal, which nothing is worth
        rollout.terminations[tuple(rollout.ended.nonzero()[3])] = True
    rollout.judge(evaluate, trainer._value_moments, is_evaluated=True)

    assert rollout.ended.any()
    with torch.no_grad():
        values = evaluate(rollout.observations[-1:], rollout.memory[-1], rollout.starts[-1:]).values
        next_values = scale.restore(torch.cat((rollout.values[1:], values))).double()
        ends = ~rollout.ended
        if time_limit == "bootstrap":
            ends = ~rollout.terminations
            for step, row in (rollout.ended & ends).nonzero().tolist():
                final, remembered = rollout.final_observations[step, row], rollout.memory[step + 1, row]
                value = evaluate(final[None, None], remembered[None], torch.zeros(1, 1, dtype=torch.bool)).values
                next_values[step, row] = scale.restore(value).item()
    expected = reference_advantages(rollout, scale, next_values, ends, config.ppo.gamma, config.ppo.gae_lambda)
    torch.testing.assert_close(rollout.advantages.double(), expected, rtol=1e-4, atol=1e-5)

    targets = expected + scale.restore(rollout.values)
    now = trainer._value_moments.scale()
    torch.testing.assert_close(now.restore(rollout.targets).double(), targets, rtol=1e-4, atol=1e-5)


SEPARATE = (*WITHOUT_MEMORY, "network.separate_critic=true")
PRIVILEGED = (*WITH_MEMORY, "critic_observations=physics")
NETWORKS = [(WITHOUT_MEMORY, True), (WITH_MEMORY, True), (SEPARATE, False), (PRIVILEGED, False)]


@pytest.mark.parametrize(("network", "evaluates"), NETWORKS)
@pytest.mark.parametrize("inference", ["native", "torch"])
def test_what_is_remembered_of_acting_is_what_the_network_computes(network, evaluates, inference, monkeypatch):
    """Natively or by PyTorch; values after it, some agents at a time, where a native policy has no head that is the
    critic."""
    monkeypatch.setattr("doorstep.training.rollout.EVALUATED_STEPS", 5 * 16)
    trainer, rollout = rolled_out(f"experience.inference={inference}", *network)
    evaluates = evaluates or inference == "torch"
    assert trainer._actor.evaluates == evaluates
    last = [part[-1].clone() for part in (rollout.memory, rollout.starts)]
    trainer._collect()
    assert torch.equal(rollout.memory[0], last[0])  # it goes on
    assert torch.equal(rollout.starts[0], last[1])
    assert last[0].numel() == 0 or last[0].abs().min() > 0
    rollout.judge(trainer._learner.evaluate, trainer._value_moments, is_evaluated=evaluates)
    assert rollout.starts[1:].any()
    with torch.no_grad():
        for step in range(rollout.num_steps):
            present = slice(step, step + 1)
            outputs = trainer.network(rollout.observations[present], rollout.memory[step], rollout.starts[present])
            torch.testing.assert_close(outputs.values[0], rollout.values[step], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(outputs.memory, rollout.memory[step + 1], rtol=1e-4, atol=1e-5)
            parts, actions = outputs.logits[0].split(list(doorstep.ACTIONS), -1), rollout.actions[step].long()
            logs = [part.log_softmax(-1).gather(1, actions[:, [index]])[:, 0] for index, part in enumerate(parts)]
            torch.testing.assert_close(rollout.log_probabilities[step], sum(logs), rtol=1e-4, atol=1e-4)
            if inference == "native":  # of each step of the run the random numbers are others
                memory = rollout.memory[step].masked_fill(rollout.starts[step][:, None], 0).unflatten(0, (6, 2))
                policy = trainer._actor._policy
                seen = rollout.observations[step, :, : policy.num_inputs].contiguous().unflatten(0, (6, 2))
                actions = policy.act(seen, memory if memory.numel() else None, step=16 + step)
                assert (actions.reshape(12, 4) == rollout.actions[step].numpy()).all()


def test_sequences_are_steps_of_one_agent_in_order():
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


def test_staggered_worlds_end_their_episodes_at_different_steps():
    worlds = Worlds(small("simulator.num_worlds=20").simulator, Ranks())
    worlds.stagger()
    assert np.unique(worlds.sim.steps_remaining.to_numpy()[:, 0, 0]).size == 20
    assert (worlds.sim.steps_remaining.to_numpy() > 0).all()


def test_pixels_are_colours_and_depth():
    worlds = Worlds(preset("pixels").simulator.replace(num_worlds=2), Ranks())
    seen = torch.zeros(4, 64, 64, 4, dtype=torch.uint8)
    worlds.observe(seen)
    sim = worlds.sim
    assert (seen[..., :3].numpy() == sim.rgb.to_numpy()[..., :3].reshape(4, 64, 64, 3)).all()
    depth = np.minimum(sim.depth.to_numpy().reshape(4, 64, 64), 40) * 255 / 40
    assert np.abs(seen[..., 3].numpy() - depth).max() <= 1.001
    assert len(np.unique(seen[..., 3].numpy())) > 20


def test_explained_variance_is_the_share_of_the_variance_of_targets():
    targets = torch.tensor([[1.0, 5.0], [3.0, 7.0]])
    for errors, share in ((torch.zeros(2, 2), 1), (torch.full((2, 2), 9.0), 1), (targets / 2, 0.75), (2 * targets, -3)):
        assert explained_variance(errors, targets, Ranks()) == pytest.approx(share)  # equal errors: a shift
    assert explained_variance(targets, torch.ones(2, 2), Ranks()) == 0


# ---- What functions of rewards and critics see


def test_reward_functions_see_what_agents_see_and_may_share_it():
    """PyTorch gives a tensor that it shares other memory."""
    widths, seen = [], []

    def reward(step):
        widths.append((step.observations.shape[-1], step.final_observations.shape[-1]))
        seen.append([trainer.worlds.sim.steps_remaining.to_numpy().tolist(), step.steps_remaining.tolist()])
        step.steps_remaining.share_memory_()
        return step.rewards

    trainer = Trainer(small("simulator.observations=lidar:2", "critic_observations=physics"), reward_function=reward)
    trainer.update()
    assert set(widths) == {(60, 60)}
    assert seen[0] != seen[-1]
    assert all(real == shown for real, shown in seen)


def test_what_critics_know_is_drawn_for_each_episode():
    """Physics of levels that draw them differ between worlds, and are those of the state."""
    level = doorstep.levels.GeneratedLevel(physics=doorstep.levels.Physics(cube_mass=(5, 50)))
    trainer = Trainer(small("critic_observations=physics").replace(levels=(level,)))
    seen = trainer.worlds.sim.observations.to_numpy()[:, 0, -5:]
    drawn = trainer.worlds.sim.state.physics.to_numpy()
    np.testing.assert_allclose(seen[:, 0] * (1 / 0.075), drawn[:, 0], rtol=1e-5)
    assert len(set(seen[:, 0].tolist())) == len(seen)
