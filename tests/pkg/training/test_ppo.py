"""The update: its loss by an independent formula, its minibatches, its schedules, and what it refuses."""

import itertools

import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.torch.test_multi_discrete import reference  # noqa: E402
from tests.pkg.training.runs import WITH_MEMORY, WITHOUT_MEMORY, rolled_out, small  # noqa: E402

from doorstep.training import NonFiniteLossError, PPOConfig, Ranks, Trainer, preset  # noqa: E402
from doorstep.training.networks import Outputs  # noqa: E402
from doorstep.training.ppo import STATISTICS, limit_gradients, minibatches, ppo_loss  # noqa: E402


def batch_of(length, count):
    generator = torch.Generator().manual_seed(3)

    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    actions = [torch.randint(size, (length, count), generator=generator) for size in doorstep.ACTIONS]
    batch = {name: draw(length, count) for name in ("values", "advantages", "targets")}
    batch |= {"actions": torch.stack(actions, -1).int(), "log_probabilities": draw(length, count) * 0.3 - 5}
    return Outputs(draw(length, count, sum(doorstep.ACTIONS)), draw(length, count), draw(count, 0)), batch


@pytest.mark.parametrize("clip_value_loss", [False, True])
def test_loss_is_that_of_the_paper(clip_value_loss):
    outputs, batch = batch_of(2, 50)
    config = PPOConfig(clip_range=0.15, value_coefficient=0.7, clip_value_loss=clip_value_loss)
    loss, statistics = ppo_loss(outputs, batch, config, 0.02, 100, Ranks())

    logits, data = outputs.logits.flatten(0, 1), {name: tensor.flatten(0, 1).double() for name, tensor in batch.items()}
    logs, entropies = reference(logits, data["actions"])
    advantages = (data["advantages"] - data["advantages"].mean()) / data["advantages"].std(correction=0)
    changes = logs - data["log_probabilities"]
    ratios = changes.exp()
    gains = torch.minimum(ratios * advantages, ratios.clamp(0.85, 1.15) * advantages)
    values, old, targets = outputs.values.flatten().double(), data["values"], data["targets"]
    errors = (values - targets).square()
    if clip_value_loss:
        errors = torch.maximum(errors, (old + (values - old).clamp(-0.15, 0.15) - targets).square())
    clipped = ((ratios - 1).abs() > 0.15).double()
    parts = [one.mean().item() for one in (-gains, errors / 2, entropies, ratios - 1 - changes, clipped)]
    assert loss.item() == pytest.approx(parts[0] + 0.7 * parts[1] - 0.02 * parts[2], rel=1e-4)
    assert [one.item() for one in statistics] == pytest.approx(parts, rel=1e-4)
    assert STATISTICS[:5] == ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")


def test_every_epoch_uses_every_sequence_once_in_a_new_order():
    sizes = ("simulator.num_worlds=1", "experience.num_steps=44", "ppo.num_epochs=3", "ppo.num_minibatches=4")
    config = small(*WITH_MEMORY, *sizes)
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


def test_gradients_are_limited_as_pytorch_does_it():
    for most in (0.5, 1e3, float("inf")):
        generator = torch.Generator().manual_seed(5)
        ours, theirs = ([torch.nn.Parameter(torch.zeros(size)) for size in (3, 50, 400)] for _ in range(2))
        for mine, other in zip(ours, theirs, strict=True):
            mine.grad = torch.randn(mine.shape, generator=generator)
            other.grad = mine.grad.clone()
        norm = limit_gradients(ours, most)
        assert torch.equal(norm, torch.nn.utils.clip_grad_norm_(theirs, most))
        assert 15 < norm < 30
        assert all(torch.equal(mine.grad, other.grad) for mine, other in zip(ours, theirs, strict=True))
        length = torch.cat([parameter.grad for parameter in ours]).norm()
        assert length == pytest.approx(min(most, norm.item()), rel=1e-5)


def test_schedules_are_linear(monkeypatch):
    rates, coefficients = [], []

    def loss_with(outputs, batch, config, coefficient, *others):
        coefficients.append(coefficient)
        return ppo_loss(outputs, batch, config, coefficient, *others)

    monkeypatch.setattr("doorstep.training.ppo.ppo_loss", loss_with)
    of_entropy = ("ppo.entropy_coefficient=0.5", "ppo.final_entropy_coefficient=0.1")
    trainer = Trainer(small("ppo.learning_rate=1e-3", "ppo.final_learning_rate=2e-4", *of_entropy))
    for _ in range(6):  # two more than the config has
        trainer.update()
        rates.append(trainer._learner.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([1e-3, 8e-4, 6e-4, 4e-4, 2e-4, 2e-4])
    assert coefficients[:: len(coefficients) // 6] == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1, 0.1])
    constant = Trainer(small("ppo.learning_rate=1e-3", "ppo.final_learning_rate=none"))
    constant.update()
    constant.update()
    assert constant._learner.optimizer.param_groups[0]["lr"] == 1e-3


@pytest.mark.parametrize("network", [WITHOUT_MEMORY, WITH_MEMORY])
def test_an_update_makes_better_actions_likelier(network):
    trainer, rollout = rolled_out(*network, "ppo.entropy_coefficient=0", "ppo.num_epochs=20")
    trainer._collect()
    rollout.judge(trainer._learner.evaluate, trainer._value_moments, is_evaluated=True)
    data = rollout.sequences()
    advantages = data["advantages"] - data["advantages"].mean()
    before = gain(trainer, data, advantages)
    losses = trainer._learner.update(data, 0.0, trainer._generator)
    assert gain(trainer, data, advantages) > before + 1e-3
    assert losses["approx_kl"] > 0


def gain(trainer, data, advantages):
    with torch.no_grad():
        outputs = trainer._learner.evaluate(data["observations"], data["memory"][0], data["starts"])
        logits, actions = outputs.logits.flatten(0, 1), data["actions"].flatten(0, 1)
        logs, _ = doorstep.torch.multi_discrete_evaluate(logits, actions, doorstep.ACTIONS)
    return float(((logs - data["log_probabilities"].flatten()).exp() * advantages.flatten()).mean())


def weights_of(trainer):
    return {name: tensor.clone() for name, tensor in trainer.network.state_dict().items()}


def test_a_loss_or_gradient_that_is_not_finite_stops_before_it_changes_weights():
    for poisoned in ("advantages", "targets", "gradient"):
        trainer, rollout = rolled_out()
        data, before = rollout.sequences(), weights_of(trainer)
        moments = [part.clone() for state in trainer._learner.optimizer.state.values() for part in state.values()]
        if poisoned == "gradient":
            trainer.network.actor.weight.register_hook(lambda gradient: gradient * float("nan"))
            message = r"the loss is -?\d.* and the norm of its gradient nan.*ppo\.learning_rate"
        else:
            data[poisoned] = data[poisoned].clone()
            data[poisoned][0, 3] = float("nan" if poisoned == "advantages" else "inf")
            message = r"the loss is (inf|nan).*ppo\.learning_rate"
        with pytest.raises(NonFiniteLossError, match=message) as caught:
            trainer._learner.update(data, 0.0, trainer._generator)
        assert poisoned == "gradient" or not caught.value.batch[poisoned].isfinite().all()
        assert all(torch.equal(tensor, before[name]) for name, tensor in trainer.network.state_dict().items())
        states = trainer._learner.optimizer.state.values()
        assert all(map(torch.equal, moments, (part for state in states for part in state.values())))


def assert_every_weight_changes(trainer, updates):
    before = weights_of(trainer)
    records = [trainer.update() for _ in range(updates)]
    assert all(torch.tensor(list(record.losses.values())).isfinite().all() for record in records)
    steps = trainer.config.steps_per_update
    for one, other in itertools.pairwise(records):
        assert (one.world_steps, other.world_steps) == (one.update * steps, one.update * steps + steps)
        assert other.world_steps_per_second * (other.seconds - one.seconds) == pytest.approx(steps)
    for name, tensor in trainer.network.state_dict().items():
        assert not torch.equal(tensor, before[name]), name
    return records


KINDS = [
    ("precision=bfloat16", *WITH_MEMORY),
    ("network.separate_critic=true",),
    ("network.separate_critic=true", "experience.inference=native"),
    (*WITH_MEMORY, "experience.inference=native", "experience.time_limit=bootstrap"),
    ("network.activation=tanh", "network.layer_norm=false", "simulator.num_agents=1"),
    ("simulator.num_agents=3", "experience.normalize_observations=false", "experience.staggered=false"),
]


def test_every_kind_of_run_trains():
    for changes in KINDS:
        assert any(record.episodes for record in assert_every_weight_changes(Trainer(small(*changes)), 3)), changes


@pytest.mark.nightly
def test_pixels_train():
    changes = ("simulator.num_worlds=2", "experience.num_steps=8", "ppo.num_minibatches=2", "network.memory=16")
    assert_every_weight_changes(Trainer(preset("pixels").changed(*changes)), 1)


@pytest.mark.nightly
def test_agents_learn_to_go_on():
    """Returns of idle agents are -1; those of agents that walk ahead are more."""
    sizes = ("simulator.num_worlds=64", "simulator.episode_length=40", "network.widths=[64,64]", "num_updates=30")
    trainer = Trainer(small(*sizes, "ppo.num_epochs=4"))
    records = [trainer.update() for _ in range(30)]
    returns = [record.mean_return for record in records if record.mean_return is not None]
    assert sum(returns[-5:]) / 5 > sum(returns[:5]) / 5 + 0.1


def test_the_process_keeps_its_threads_and_generators(monkeypatch):
    before, seen, seeds_of_gpus = torch.get_num_threads(), [], []
    torch.manual_seed(5)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds_of_gpus.append)
    state = torch.get_rng_state()
    torch.set_num_threads(3)
    try:
        trainer = Trainer(small("num_threads=2"))
        trainer.worlds.after_step = lambda *_: seen.append(torch.get_num_threads())
        trainer.update()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {2}
    assert torch.equal(torch.get_rng_state(), state)
    assert seeds_of_gpus == []
