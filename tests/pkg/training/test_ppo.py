"""The update: its loss by an independent formula, its minibatches, its schedules, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.training.runs import WITH_MEMORY, WITHOUT_MEMORY, rolled_out, small  # noqa: E402

from doorstep.training import NonFiniteLossError, PPOConfig, Ranks, Trainer  # noqa: E402
from doorstep.training.networks import Outputs  # noqa: E402
from doorstep.training.ppo import STATISTICS, interpolated, limit_gradients, minibatches, ppo_loss  # noqa: E402


def batch_of(length: int, count: int) -> tuple[Outputs, dict[str, Any]]:
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator)

    sizes = list(doorstep.ACTIONS)
    actions = torch.stack([torch.randint(size, (length, count), generator=generator) for size in sizes], -1)
    batch = {
        "actions": actions.int(),
        "log_probabilities": draw(length, count) * 0.3 - 5,
        "values": draw(length, count),
        "advantages": draw(length, count),
        "targets": draw(length, count),
    }
    return Outputs(draw(length, count, sum(sizes)), draw(length, count), draw(count, 0)), batch


@pytest.mark.parametrize("clip_value_loss", [False, True])
def test_loss_is_that_of_the_paper(clip_value_loss: bool) -> None:
    outputs, batch = batch_of(2, 50)
    config = PPOConfig(clip_range=0.15, value_coefficient=0.7, clip_value_loss=clip_value_loss)
    loss, statistics = ppo_loss(outputs, batch, config, 0.02, 100, Ranks())

    total, entropy_sum, value_sum, clipped = 0.0, 0.0, 0.0, 0
    advantages = batch["advantages"].double()
    advantages = (advantages - advantages.mean()) / advantages.std(correction=0)
    for step in range(2):
        for row in range(50):
            log_probability, entropy = 0.0, 0.0
            for index, part in enumerate(outputs.logits[step, row].double().split(list(doorstep.ACTIONS))):
                logs = part.log_softmax(-1)
                log_probability += logs[batch["actions"][step, row, index]].item()
                entropy -= (logs.exp() * logs).sum().item()
            ratio = torch.tensor(log_probability - batch["log_probabilities"][step, row].item()).exp().item()
            advantage = advantages[step, row].item()
            total += min(ratio * advantage, max(0.85, min(1.15, ratio)) * advantage)
            clipped += abs(ratio - 1) > 0.15
            entropy_sum += entropy
            value, old, target = (x[step, row].item() for x in (outputs.values, batch["values"], batch["targets"]))
            error = (value - target) ** 2
            if clip_value_loss:
                error = max(error, (old + max(-0.15, min(0.15, value - old)) - target) ** 2)
            value_sum += error / 2
    expected = -total / 100 + 0.7 * value_sum / 100 - 0.02 * entropy_sum / 100
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    assert statistics[STATISTICS.index("entropy")].item() == pytest.approx(entropy_sum / 100, rel=1e-4)
    assert statistics[STATISTICS.index("clip_fraction")].item() == pytest.approx(clipped / 100)


def test_every_epoch_uses_every_sequence_once_in_a_new_order() -> None:
    config = small(*WITH_MEMORY, "simulator.num_worlds=1", "simulator.num_agents=2", "experience.num_steps=44",
                   "ppo.num_epochs=3", "ppo.num_minibatches=4")  # fmt: skip
    count = config.num_sequences
    data = {"starts": torch.zeros(4, count, dtype=torch.bool), "index": torch.arange(count).expand(4, count)}
    parts = list(minibatches(data, config, torch.Generator().manual_seed(1), Ranks()))
    batches = [batch for batch, _ in parts]
    assert [batch["index"].shape[1] for batch in batches] == [6, 6, 5, 5] * 3
    assert [num_steps for _, num_steps in parts] == [24, 24, 20, 20] * 3
    epochs = [torch.cat([batch["index"][0] for batch in batches[4 * epoch : 4 * epoch + 4]]) for epoch in range(3)]
    for epoch in epochs:
        assert epoch.sort().values.tolist() == list(range(count))
    assert not torch.equal(epochs[0], epochs[1])


@pytest.mark.parametrize("most", [0.5, 1e3, float("inf")])
def test_gradients_are_limited_as_pytorch_does_it(most: float) -> None:
    generator = torch.Generator().manual_seed(5)
    ours, theirs = ([torch.nn.Parameter(torch.zeros(size)) for size in (3, 50, 400)] for _ in range(2))
    for mine, other in zip(ours, theirs, strict=True):
        mine.grad = torch.randn(mine.shape, generator=generator)
        other.grad = mine.grad.clone()
    norm = limit_gradients(ours, most)
    assert torch.equal(norm, torch.nn.utils.clip_grad_norm_(theirs, most))
    assert 15 < norm < 30
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.equal(mine.grad, other.grad)
    length = torch.cat([parameter.grad for parameter in ours]).norm()
    assert length == pytest.approx(min(most, norm.item()), rel=1e-5)


@pytest.mark.parametrize(("last", "progress", "expected"), [(None, 0.7, 4.0), (2.0, 0.0, 4.0), (2.0, 0.5, 3.0)])
def test_schedules_are_linear(last: float | None, progress: float, expected: float) -> None:
    assert interpolated(4.0, last, progress) == expected


def test_learning_rate_follows_its_schedule() -> None:
    trainer = Trainer(small("ppo.learning_rate=1e-3", "ppo.final_learning_rate=2e-4"))
    rates = []
    for _ in range(6):  # two more than the config has
        trainer.update()
        rates.append(trainer._learner.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([1e-3, 8e-4, 6e-4, 4e-4, 2e-4, 2e-4])


@pytest.mark.parametrize("network", [WITHOUT_MEMORY, WITH_MEMORY])
def test_an_update_makes_better_actions_likelier(network: tuple[str, ...]) -> None:
    trainer, rollout = rolled_out(*network, "ppo.entropy_coefficient=0", "ppo.num_epochs=20")
    trainer._collect()
    rollout.judge(trainer._learner.evaluate, trainer._value_moments, is_evaluated=True)
    data = rollout.sequences()
    advantages = data["advantages"] - data["advantages"].mean()
    before = gain(trainer, data, advantages)
    losses = trainer._learner.update(data, 0.0, trainer._generator)
    assert gain(trainer, data, advantages) > before + 1e-3
    assert losses["approx_kl"] > 0


def gain(trainer: Trainer, data: dict[str, Any], advantages: Any) -> float:
    with torch.no_grad():
        outputs = trainer._learner.evaluate(data["observations"], data["memory"][0], data["starts"])
        logs, _ = doorstep.torch.multi_discrete_evaluate(
            outputs.logits.flatten(0, 1), data["actions"].flatten(0, 1), doorstep.ACTIONS
        )
    ratios = (logs - data["log_probabilities"].flatten()).exp()
    return float((ratios * advantages.flatten()).mean())


def test_a_loss_that_is_not_finite_stops_before_it_changes_weights() -> None:
    trainer, rollout = rolled_out()
    data = rollout.sequences()
    data["advantages"][0, 3] = float("nan")
    before = {name: tensor.clone() for name, tensor in trainer.network.state_dict().items()}
    with pytest.raises(NonFiniteLossError, match=r"the loss is (inf|nan).*ppo.learning_rate") as caught:
        trainer._learner.update({**data, "targets": data["targets"] * float("inf")}, 0.0, trainer._generator)
    assert not caught.value.batch["targets"].isfinite().all()
    for name, tensor in trainer.network.state_dict().items():
        assert torch.equal(tensor, before[name]), name


@pytest.mark.parametrize(
    "changes",
    [
        ("precision=bfloat16",),
        ("precision=bfloat16", *WITH_MEMORY),
        ("network.separate_critic=true",),
        ("network.separate_critic=true", "experience.inference=native"),
        (*WITH_MEMORY, "experience.inference=native", "experience.time_limit=bootstrap"),
        ("network.activation=tanh", "network.layer_norm=false"),
        ("simulator.num_agents=1",),
        ("simulator.num_agents=3",),
        ("experience.normalize_observations=false", "experience.staggered=false"),
    ],
)
def test_every_kind_of_run_trains(changes: tuple[str, ...]) -> None:
    trainer = Trainer(small(*changes))
    before = {name: tensor.clone() for name, tensor in trainer.network.state_dict().items()}
    records = [trainer.update() for _ in range(3)]
    assert all(torch.tensor(list(record.losses.values())).isfinite().all() for record in records)
    assert any(record.episodes for record in records)
    for name, tensor in trainer.network.state_dict().items():
        assert not torch.equal(tensor, before[name]), name


@pytest.mark.slow
def test_pixels_train() -> None:
    from doorstep.training import preset

    config = preset("pixels").changed(
        "simulator.num_worlds=2", "experience.num_steps=8", "ppo.num_minibatches=2", "network.memory=16"
    )
    trainer = Trainer(config)
    before = {name: tensor.clone() for name, tensor in trainer.network.state_dict().items()}
    trainer.update()
    for name, tensor in trainer.network.state_dict().items():
        assert not torch.equal(tensor, before[name]), name


@pytest.mark.slow
def test_agents_learn_to_go_on() -> None:
    """Returns of idle agents are -1; those of agents that walk ahead are more."""
    config = small(
        "simulator.num_worlds=64", "simulator.episode_length=40", "network.widths=[64,64]", "num_updates=30",
        "ppo.num_epochs=4",
    )  # fmt: skip
    trainer = Trainer(config)
    records = [trainer.update() for _ in range(30)]
    returns = [record.mean_return for record in records if record.mean_return is not None]
    assert sum(returns[-5:]) / 5 > sum(returns[:5]) / 5 + 0.1


def test_the_process_keeps_its_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    seen: list[int] = []
    try:
        trainer = Trainer(small("num_threads=2"))
        trainer.worlds.after_step = lambda *_: seen.append(torch.get_num_threads())
        trainer.update()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {2}
