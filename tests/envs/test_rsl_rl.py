"""EscapeRoomRslRlEnv and MultiDiscreteDistribution: against plain simulators, and in rsl_rl's runner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import PARTS, History, actions_of

import doorstep

torch: Any = pytest.importorskip("torch")
pytest.importorskip("rsl_rl")

from rsl_rl.runners import OnPolicyRunner  # noqa: E402
from tests.envs.torch_checks import NoWaits, arrays_of_a_gpu, assert_kept, returns_printed_by  # noqa: E402

from doorstep.envs import EscapeRoomRslRlEnv, MultiDiscreteDistribution  # noqa: E402

WORLDS, AGENTS, LENGTH = 4, 2, 6
ROWS = WORLDS * AGENTS
SIZES = list(doorstep.ACTIONS)


def make(rows: int = ROWS, **arguments: Any) -> Any:
    return EscapeRoomRslRlEnv(rows, **{"episode_length": LENGTH, "num_threads": 1, "seed": 5, **arguments})


def by_row(array: Any, view: str) -> Any:
    """[N, A, ...] or [N] as [rows, features] or [rows]."""
    if array.ndim == 1:
        return np.repeat(array, AGENTS) if view == "rows" else array
    return array.reshape(ROWS if view == "rows" else WORLDS, -1)


def actions_for(view: str, steps: int) -> Any:
    return torch.from_numpy(actions_of(3, steps, WORLDS, AGENTS).reshape(steps, ROWS if view == "rows" else WORLDS, -1))


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("view", ["rows", "joint"])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_steps_are_what_happened(view: str, kind: str, on_gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if on_gpu:
        monkeypatch.setattr("doorstep.envs.rsl_rl.torch_arrays", arrays_of_a_gpu)
    env = make(ROWS if view == "rows" else WORLDS, agents=view, observations=kind)
    history = History("same_step", WORLDS, episode_length=LENGTH, seed=5)
    names = {"policy": "observations"} if kind != "by_name" else {name: name for name in PARTS}

    def assert_tells(found: Any, expected: Any, shown: Any) -> None:
        assert set(found.keys()) == set(names)
        for group, name in names.items():
            values = np.where(shown[:, None], by_row(expected[name], view), 0)
            assert found[group].dtype == torch.float32
            np.testing.assert_array_equal(found[group].numpy(), values)

    everywhere = np.ones(env.num_envs, bool)
    assert_tells(env.get_observations(), history.worlds.observe(), everywhere)
    finished = 0
    for number, actions in enumerate(actions_for(view, 3 * LENGTH)):
        observations, rewards, dones, extras = env.step(actions.float() if number % 2 else actions)
        told = history.step(actions.numpy().reshape(WORLDS, AGENTS, 4))
        ended = by_row(told.ended, view)
        assert_tells(observations, told.observations, everywhere)
        assert_tells(extras["final_observations"], history.final, ended)
        assert env.get_observations() is observations
        of_rows = told.rewards if view == "rows" else told.rewards.mean(1)
        np.testing.assert_allclose(rewards.numpy(), of_rows.reshape(-1), rtol=1e-6)
        np.testing.assert_array_equal(dones.numpy(), ended)
        np.testing.assert_array_equal(extras["time_outs"].numpy(), ended)
        np.testing.assert_array_equal(env.episode_length_buf.numpy(), by_row(history.worlds.lengths, view))
        if ended.any():
            finished += 1
            assert extras["log"]["Episode/return"] == pytest.approx(told.returns.mean(), rel=1e-5)
            assert extras["log"]["Episode/length"] == LENGTH
        elif not finished:
            assert extras["log"] == {"Episode/return": 0, "Episode/length": 0}
    assert finished == 3
    env.close()


def test_episodes_that_are_moved_ahead_end_early() -> None:
    """By the attribute that `init_at_random_ep_len` sets; levels, rewards and final observations stay right."""
    env, history = make(), History("same_step", WORLDS, episode_length=LENGTH, seed=5)
    env.episode_length_buf = torch.tensor([0, 0, 5, 5, 2, 2, 3, 3])
    assert env.episode_length_buf.tolist() == [0, 0, 5, 5, 2, 2, 3, 3]
    left = np.array([6, 1, 4, 3])  # steps until the end of each world's episode
    returns, lengths = np.zeros((WORLDS, AGENTS)), np.zeros(WORLDS)  # of the latest episodes
    for actions in actions_for("rows", 2 * LENGTH):
        observations, rewards, dones, extras = env.step(actions)
        told = history.worlds.step(actions.numpy().reshape(WORLDS, AGENTS, 4))
        left -= 1
        ended = left == 0
        left[ended] = LENGTH
        returns[ended], lengths[ended] = told.returns[ended], told.lengths[ended]
        assert extras["log"]["Episode/return"] == pytest.approx(returns[lengths > 0].mean(), rel=1e-5)
        assert extras["log"]["Episode/length"] == pytest.approx(lengths[lengths > 0].mean())
        np.testing.assert_array_equal(dones.numpy(), by_row(ended, "rows"))
        np.testing.assert_array_equal(extras["time_outs"].numpy(), by_row(ended, "rows"))
        final = np.where(by_row(ended, "rows")[:, None], by_row(told.observations["observations"], "rows"), 0)
        np.testing.assert_array_equal(
            np.delete(extras["final_observations"]["policy"].numpy(), STEPS_LEFT, 1), np.delete(final, STEPS_LEFT, 1)
        )
        history.worlds.reset(ended)
        np.testing.assert_array_equal(
            observations["policy"].numpy(), by_row(history.worlds.observe()["observations"], "rows")
        )
        np.testing.assert_array_equal(rewards.numpy(), told.rewards.reshape(-1))
        assert (env.episode_length_buf.numpy() == by_row(LENGTH - left, "rows")).all()
    env.reset()
    assert env.episode_length_buf.tolist() == [0] * ROWS
    env.close()


def test_the_group_of_critics_has_more() -> None:
    env = EscapeRoomRslRlEnv(6, seed=2, observations=("lidar",), critic_observations=("physics", "agent_index"))
    for _ in range(2):
        groups = env.get_observations()
        assert {name: tuple(group.shape) for name, group in groups.items()} == {"policy": (6, 60), "critic": (6, 66)}
        assert torch.equal(groups["critic"][:, :60], groups["policy"])
        assert torch.equal(groups["policy"], env.simulator.lidar.to_torch().reshape(6, 60))
        assert torch.equal(groups["critic"][:, 60:], torch.tensor([[1.0] * 5 + [0], [1.0] * 6] * 3))
        env.step(torch.zeros(6, 4))
    env.close()
    with pytest.raises(doorstep.ArgumentError, match="None where observations are by name"):
        EscapeRoomRslRlEnv(6, observations="by_name", critic_observations=("physics",))
    with pytest.raises(doorstep.ArgumentError, match="with each part at most once"):
        EscapeRoomRslRlEnv(6, critic_observations=("lidar",))


STEPS_LEFT = 92  # of a flat observation, the element with the steps that remain


def test_seeds_choose_the_levels() -> None:
    env, other = make(), make(seed=9)
    first = env.get_observations()["policy"]
    again, extras = env.reset(seed=9)
    assert extras == {}
    assert torch.equal(again["policy"], other.get_observations()["policy"])
    assert not torch.equal(again["policy"], first)
    env.step(torch.zeros(ROWS, 4))
    assert env.episode_length_buf.tolist() == [1] * ROWS
    env.close()
    other.close()


def test_what_is_returned_belongs_to_the_caller() -> None:
    env, actions = make(), iter(actions_for("rows", 3 * LENGTH))
    assert_kept(lambda: env.step(next(actions)), 3 * LENGTH)
    env.close()


def test_a_step_does_not_wait_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorstep.envs.rsl_rl.torch_arrays", arrays_of_a_gpu)
    env = make()
    with NoWaits():
        env.episode_length_buf = torch.arange(ROWS) % LENGTH
        for actions in actions_for("rows", 2 * LENGTH):
            env.step(actions)
    env.close()


@pytest.mark.parametrize(
    "actions",
    [torch.zeros(ROWS, 3), torch.zeros(ROWS - 1, 4), torch.zeros(WORLDS, AGENTS, 4), torch.zeros(ROWS, 4).bool(), 3],
    ids=["components", "rows", "worlds", "booleans", "number"],
)
def test_bad_actions_are_refused_and_change_nothing(actions: Any) -> None:
    env = make()
    env.episode_length_buf = torch.full((ROWS,), LENGTH - 1)
    before = env.simulator.hash()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.step(actions)
    assert caught.value.argument == "actions"
    assert env.simulator.hash() == before
    assert not np.asarray(env.simulator.resets).any()
    env.close()


@pytest.mark.parametrize("lengths", [torch.zeros(3), [0] * ROWS, 0])
def test_bad_lengths_of_episodes_are_refused(lengths: Any) -> None:
    env = make()
    with pytest.raises(doorstep.ArgumentError, match=r"it must be a tensor of the shape \[8\]"):
        env.episode_length_buf = lengths
    env.close()


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": 3}, "num_envs"),
        ({"agents": "all"}, "agents"),
        ({"observations": "pixels"}, "observations"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        EscapeRoomRslRlEnv(**arguments)
    assert caught.value.argument == argument


# ---- The distribution ----


def of_components(logits: Any, sizes: list[int]) -> list[Any]:
    return [torch.distributions.Categorical(logits=part) for part in logits.split(sizes, -1)]


@pytest.mark.parametrize("shape", [(5,), (3, 5)], ids=["rows", "sequences"])
@pytest.mark.parametrize("agents", [1, 2])
def test_the_distribution_is_that_of_pytorchs_categoricals(agents: int, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    sizes = SIZES * agents
    distribution = MultiDiscreteDistribution(len(sizes))
    assert distribution.input_dim == sum(sizes)
    logits, others = torch.randn(2, *shape, sum(sizes)).unbind()
    logits.requires_grad_()
    distribution.update(logits)
    expected = of_components(logits, sizes)
    actions = torch.stack([component.sample() for component in expected], -1)
    log_probabilities = sum(part.log_prob(actions[..., i]) for i, part in enumerate(expected))
    entropies = sum(part.entropy() for part in expected)
    close = {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(distribution.log_prob(actions.float()), log_probabilities, **close)
    torch.testing.assert_close(distribution.entropy, entropies, **close)
    for found, sums in ((distribution.log_prob(actions), log_probabilities), (distribution.entropy, entropies)):
        gradients = [torch.autograd.grad(value.sum(), logits, retain_graph=True)[0] for value in (found, sums)]
        torch.testing.assert_close(*gradients, **close)
    kl = sum(map(torch.distributions.kl_divergence, expected, of_components(others, sizes)))
    torch.testing.assert_close(distribution.kl_divergence(distribution.params, (others,)), kl, **close)
    likeliest = torch.stack([part.probs.argmax(-1) for part in expected], -1)
    assert torch.equal(distribution.deterministic_output(logits), likeliest)
    assert torch.equal(distribution.as_deterministic_output_module()(logits), likeliest)
    numbers = [torch.arange(size, dtype=torch.float32) for size in sizes]
    means = torch.stack([(part.probs * values).sum(-1) for part, values in zip(expected, numbers, strict=True)], -1)
    torch.testing.assert_close(distribution.mean, means, **close)
    assert distribution.std.shape == actions.shape


def test_samples_have_the_distributions_frequencies() -> None:
    torch.manual_seed(0)
    logits = torch.randn(sum(SIZES))
    distribution = MultiDiscreteDistribution(4, SIZES)
    distribution.update(logits.expand(20_000, -1))
    with torch.inference_mode():
        actions = distribution.sample()
    assert actions.shape == (20_000, 4)
    for component, expected in enumerate(of_components(logits, SIZES)):
        counts = torch.bincount(actions[:, component], minlength=SIZES[component])
        assert (counts / 20_000 - expected.probs).abs().max() < 4 * 0.5 / 20_000**0.5  # four standard errors
    values = actions.float()
    torch.testing.assert_close(values.mean(0), distribution.mean[0], rtol=0, atol=0.07)
    torch.testing.assert_close(values.std(0), distribution.std[0], rtol=0, atol=0.07)


def test_excluded_choices_are_not_drawn_and_add_nothing() -> None:
    distribution = MultiDiscreteDistribution(1, [3])
    logits = torch.tensor([[0.0, 0.0, -float("inf")]]).expand(500, -1)
    distribution.update(logits)
    assert set(distribution.sample().flatten().tolist()) == {0, 1}
    assert torch.equal(distribution.kl_divergence((logits,), (logits,)), torch.zeros(500))


def test_the_distribution_does_not_wait_for_a_gpu() -> None:
    distribution = MultiDiscreteDistribution(4)
    with NoWaits():
        distribution.update(torch.zeros(3, 19, dtype=torch.bfloat16))
        actions = distribution.sample()
        assert distribution.log_prob(actions).shape == distribution.entropy.shape == (3,)
        assert distribution.mean.shape == distribution.std.shape == actions.shape
        distribution.deterministic_output(distribution.params[0])
        assert distribution.kl_divergence(distribution.params, distribution.params).shape == (3,)
    torch.testing.assert_close(distribution.entropy, torch.full((3,), 320.0).log())


def test_sizes_that_do_not_fit_are_refused() -> None:
    for output_dim, sizes in ((3, None), (4, [2, 3])):
        with pytest.raises(doorstep.ArgumentError, match="sizes"):
            MultiDiscreteDistribution(output_dim, sizes)
    with pytest.raises(doorstep.ArgumentError, match="of a last dimension of 19"):
        MultiDiscreteDistribution(4).update(torch.zeros(3, 18))


# ---- The runner ----


def config_of(model: str) -> dict[str, Any]:
    network: dict[str, Any] = {"class_name": model, "hidden_dims": [16]}
    if model == "RNNModel":
        network = {**network, "rnn_type": "lstm", "rnn_hidden_dim": 8}
    actor = {**network, "distribution_cfg": {"class_name": "doorstep.envs:MultiDiscreteDistribution"}}
    return {
        "num_steps_per_env": 8,
        "save_interval": 1,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": actor,
        "critic": dict(network),
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2},
    }


@pytest.mark.parametrize("view", ["rows", "joint"])
@pytest.mark.parametrize("model", ["MLPModel", "RNNModel"])
def test_the_runner_trains_and_its_policy_acts(model: str, view: str) -> None:
    torch.manual_seed(0)
    env = make(ROWS if view == "rows" else WORLDS, agents=view)
    runner = OnPolicyRunner(env, config_of(model))
    before = [parameter.clone() for parameter in runner.alg.actor.parameters()]
    runner.learn(2, init_at_random_ep_len=True)
    assert any(not torch.equal(a, b) for a, b in zip(before, runner.alg.actor.parameters(), strict=True))
    with torch.inference_mode():
        actions = runner.get_inference_policy()(env.get_observations())
    assert actions.shape == (env.num_envs, env.num_actions)
    assert (actions >= 0).all()
    assert (actions < torch.tensor(SIZES * (env.num_actions // 4))).all()
    env.step(actions)
    env.close()


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_the_runner_logs_and_exports(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    env = make()
    runner = OnPolicyRunner(env, config_of("MLPModel"), log_dir=str(tmp_path))
    runner.learn(2)
    assert (tmp_path / "model_1.pt").exists()
    runner.export_policy_to_jit(str(tmp_path))
    policy = torch.jit.load(tmp_path / "policy.pt")
    observations = env.get_observations()
    with torch.inference_mode():
        assert torch.equal(policy(observations["policy"]), runner.get_inference_policy()(observations))
    env.close()


@pytest.mark.slow
def test_ppo_learns() -> None:
    returns = returns_printed_by("rsl_rl_ppo.py")
    assert returns[-1] > returns[0] + 0.2
