"""Rollouts hold what happened; advantages follow from them by their definition; records count episodes and doors."""

import json

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.torch.references import generalized_advantages  # noqa: E402
from tests.pkg.training.runs import WITH_MEMORY, WITHOUT_MEMORY, rolled_out, small  # noqa: E402

from doorstep.levels import GeneratedLevel  # noqa: E402
from doorstep.training import Ranks, Trainer, TrainingError, preset, read_log  # noqa: E402
from doorstep.training.logs import JsonLines, Record, summarize_episodes  # noqa: E402
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


@pytest.mark.parametrize("time_limit", ["terminal", "bootstrap"])
@pytest.mark.parametrize("network", [WITHOUT_MEMORY, WITH_MEMORY])
def test_advantages_follow_their_definition(time_limit, network):
    trainer, rollout = rolled_out(f"experience.time_limit={time_limit}", *network)
    trainer.update()
    ppo, evaluate = trainer.config.ppo, trainer._learner.evaluate
    trainer._collect()
    scale = trainer._value_moments.scale()
    if time_limit == "bootstrap":  # one of the ends was a goal, which nothing is worth
        rollout.terminations[tuple(rollout.ended.nonzero()[3])] = True
    rollout.judge(evaluate, trainer._value_moments, is_evaluated=True)

    assert rollout.ended.any()
    terminations = rollout.terminations if time_limit == "bootstrap" else rollout.ended
    truncations = rollout.ended & ~terminations
    with torch.no_grad():
        values = evaluate(rollout.observations[-1:], rollout.memory[-1], rollout.starts[-1:]).values
        next_values = scale.restore(torch.cat((rollout.values[1:], values))).double()
        for step, row in truncations.nonzero().tolist():
            final, remembered = rollout.final_observations[step, row], rollout.memory[step + 1, row]
            value = evaluate(final[None, None], remembered[None], torch.zeros(1, 1, dtype=torch.bool)).values
            next_values[step, row] = scale.restore(value).item()
    values = scale.restore(rollout.values).double()
    inputs = [one.numpy() for one in (rollout.rewards.double(), values, next_values, terminations, truncations)]
    expected = generalized_advantages(*inputs, gamma=ppo.gamma, lam=ppo.gae_lambda)
    np.testing.assert_allclose(rollout.advantages, expected, rtol=1e-4, atol=1e-5)
    targets = trainer._value_moments.scale().restore(rollout.targets)
    np.testing.assert_allclose(targets, expected + values.numpy(), rtol=1e-4, atol=1e-5)


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


# ---- What functions of rewards see


def test_reward_functions_see_what_agents_see_and_may_share_it():
    """PyTorch gives a tensor that it shares other memory."""
    widths, seen, given = [], [], []

    def reward(step):
        widths.append((step.observations.shape[-1], step.final_observations.shape[-1]))
        seen.append([trainer.worlds.sim.steps_remaining.to_numpy().tolist(), step.steps_remaining.tolist()])
        step.steps_remaining.share_memory_()
        given.append(2 * step.rewards + 1)
        return given[-1].clone()

    trainer = Trainer(small("simulator.observations=lidar:2", "critic_observations=physics"), reward_function=reward)
    trainer.update()
    assert set(widths) == {(60, 60)}
    assert seen[0] != seen[-1]
    assert all(real == shown for real, shown in seen)
    assert torch.equal(trainer._rollout.rewards, torch.stack(given).flatten(1))  # agents learn from what it returns


# ---- Records and logs


def record_of(update):
    return Record(update, 10 * update, 0.5 * update, 20.0, 0, None, (), (), {"entropy": 1.0})


def test_episodes_are_counted_once_by_world():
    trainer, rollout = rolled_out()
    rollout.starts[1:] = False
    assert summarize_episodes(rollout, trainer._levels, 2, Ranks()).episodes == 0
    # world 0 ends after steps 2 and 9, world 3 after step 9; the others go on
    for step, world, returns, largest_y in (
        (2, 0, (1.0, 3.0), (14.0, 12.0)),
        (9, 0, (0.0, 0.0), (27.0, 13.4)),
        (9, 3, (5.0, 3.0), (80.0, 40.1)),
    ):
        rows = slice(2 * world, 2 * world + 2)
        rollout.starts[step + 1, rows] = True
        rollout.returns[step, rows] = torch.tensor(returns)
        rollout.largest_y[step, rows] = torch.tensor(largest_y)
    summary = summarize_episodes(rollout, trainer._levels, 2, Ranks())
    assert summary.episodes == 3
    assert summary.mean_return == pytest.approx((2 + 0 + 4) / 3)
    assert summary.rooms_one == pytest.approx((1, 2 / 3, 1 / 3))
    assert summary.rooms_all == pytest.approx((2 / 3, 1 / 3, 1 / 3))


def end_all_worlds(rollout, largest_y):
    rollout.starts[1:] = False
    rollout.starts[5] = True
    rollout.largest_y[4] = largest_y


def test_retries_are_not_counted_and_doors_in_levels_with_the_references_rooms():
    trainer, rollout = rolled_out()
    end_all_worlds(rollout, 14.0)
    rollout.natural[4, 2:] = False
    rollout.largest_y[4, 4:] = 80.0
    summary = summarize_episodes(rollout, trainer._levels, 2, Ranks())
    assert (summary.episodes, summary.rooms_all) == (2, (1.0, 0.0, 0.0))
    mixed = ["room_types", "reference"]
    for levels, rooms in (("room_types", ()), (GeneratedLevel(first_room=2), ()), (mixed, (1.0, 0.5, 0.0))):
        trainer = Trainer(small().changed(levels=levels))
        trainer.update()
        end_all_worlds(trainer._rollout, 14.0)
        if levels is mixed:
            trainer._rollout.levels[4] = torch.tensor([0, 1, 2, 3, 4, 4])
            trainer._rollout.largest_y[4, 10:] = 30.0
        summary = summarize_episodes(trainer._rollout, trainer._levels, 2, Ranks())
        assert (summary.episodes, summary.rooms_all) == (6, rooms)


def test_a_log_has_a_line_of_json_for_each_record_and_a_resumed_one_drops_later_and_broken_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    log = JsonLines(path)
    for update in (1, 2, 3):
        log.write(record_of(update))
        lines = [json.loads(line) for line in path.read_text().splitlines()]  # before it is closed
        assert lines == [json.loads(json.dumps(record_of(one).to_dict())) for one in range(1, update + 1)]
    log.close()
    with open(path, "ab") as file:
        file.write(b'[1]\n"x"\n{"update": "1"}\n' + b"[" * 100_000 + b'\n{"update": 4, "wor')
    JsonLines(path, resumed_at=2).close()
    assert read_log(path) == lines[:2]
    JsonLines(path).close()
    assert path.read_bytes() == b""
