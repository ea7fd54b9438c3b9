"""EscapeRoomRslRlEnv, beside what all environments do (test_contract.py), its distribution, and rsl_rl's runner."""

import numpy as np
import pytest
from tests.envs.histories import History, actions_of, assert_example_learns
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")
pytest.importorskip("rsl_rl")

from rsl_rl.runners import OnPolicyRunner  # noqa: E402
from tests.envs.torch_checks import NoWaits, arrays_of_a_gpu  # noqa: E402

from doorstep.envs import EscapeRoomRslRlEnv, MultiDiscreteDistribution  # noqa: E402

WORLDS, AGENTS, LENGTH = 4, 2, 6
ROWS = WORLDS * AGENTS
SIZES = list(doorstep.ACTIONS)
STEPS_LEFT = 92  # of a flat observation, the element with the steps that remain


def make(rows=ROWS, **arguments):
    return EscapeRoomRslRlEnv(rows, **{"episode_length": LENGTH, "num_threads": 1, "seed": 5, **arguments})


def test_episodes_that_are_moved_ahead_end_early(monkeypatch):
    """By the attribute that `init_at_random_ep_len` sets; levels, rewards, final observations and the log stay right.
    With the functions of a GPU, which is not waited for."""
    monkeypatch.setattr("doorstep.envs.rsl_rl.torch_arrays", arrays_of_a_gpu)
    env, history = make(), History("same_step", WORLDS, episode_length=LENGTH, seed=5)
    env.episode_length_buf = torch.tensor([0, 0, 5, 5, 2, 2, 3, 3])
    assert env.episode_length_buf.tolist() == [0, 0, 5, 5, 2, 2, 3, 3]
    left = np.array([6, 1, 4, 3])  # steps until the end of each world's episode
    returns, lengths = np.zeros((WORLDS, AGENTS)), np.zeros(WORLDS)  # of the latest episodes
    for actions in actions_of(3, 2 * LENGTH, WORLDS, AGENTS):
        with NoWaits():
            observations, rewards, dones, extras = env.step(torch.from_numpy(actions.reshape(ROWS, 4)))
        told = history.worlds.step(actions)
        left -= 1
        ended = left == 0
        left[ended] = LENGTH
        returns[ended], lengths[ended] = told.returns[ended], told.lengths[ended]
        assert extras["log"]["Episode/return"] == pytest.approx(returns[lengths > 0].mean(), rel=1e-5)
        assert extras["log"]["Episode/length"] == pytest.approx(lengths[lengths > 0].mean())
        of_rows = ended.repeat(AGENTS)
        np.testing.assert_array_equal(dones.numpy(), of_rows)
        np.testing.assert_array_equal(extras["time_outs"].numpy(), of_rows)
        final = np.where(of_rows[:, None], told.observations["observations"].reshape(ROWS, -1), 0)
        found = extras["final_observations"]["policy"].numpy()
        np.testing.assert_array_equal(np.delete(found, STEPS_LEFT, 1), np.delete(final, STEPS_LEFT, 1))
        history.worlds.reset(ended)
        expected = history.worlds.observe()["observations"].reshape(ROWS, -1)
        np.testing.assert_array_equal(observations["policy"].numpy(), expected)
        np.testing.assert_array_equal(rewards.numpy(), told.rewards.reshape(-1))
        assert (env.episode_length_buf.numpy() == (LENGTH - left).repeat(AGENTS)).all()
    env.reset()
    assert env.episode_length_buf.tolist() == [0] * ROWS
    assert env.step(torch.zeros(ROWS, 4))[3]["log"] == {"Episode/return": 0, "Episode/length": 0}


def test_the_group_of_critics_has_more():
    env = EscapeRoomRslRlEnv(6, seed=2, observations=("lidar",), critic_observations=("physics", "agent_index"))
    for _ in range(2):
        groups = env.get_observations()
        assert {name: tuple(group.shape) for name, group in groups.items()} == {"policy": (6, 60), "critic": (6, 66)}
        assert torch.equal(groups["critic"][:, :60], groups["policy"])
        assert torch.equal(groups["policy"], env.simulator.lidar.to_torch().reshape(6, 60))
        assert torch.equal(groups["critic"][:, 60:], torch.tensor([[1.0] * 5 + [0], [1.0] * 6] * 3))
        env.step(torch.zeros(6, 4))
    with pytest.raises(doorstep.ArgumentError, match="None where observations are by name"):
        EscapeRoomRslRlEnv(6, observations="by_name", critic_observations=("physics",))
    refuses("with each part at most once", EscapeRoomRslRlEnv, 6, critic_observations=("lidar",))


def test_bad_arguments_are_refused_and_change_nothing():
    env = make()
    env.episode_length_buf = torch.full((ROWS,), LENGTH - 1)
    before = env.simulator.hash()
    for actions in (torch.zeros(ROWS, 3), torch.zeros(WORLDS, AGENTS, 4), torch.zeros(ROWS, 4).bool(), 3):
        refuses(None, env.step, actions, argument="actions")
    assert env.simulator.hash() == before
    assert not np.asarray(env.simulator.resets).any()
    for lengths in (torch.zeros(3), [0] * ROWS, 0):
        with pytest.raises(doorstep.ArgumentError, match=r"it must be a tensor of the shape \[8\]"):
            env.episode_length_buf = lengths
    refuses("observations is 'pixels'", make, observations="pixels")


# ---- The distribution


def of_components(logits, sizes):
    return [torch.distributions.Categorical(logits=part) for part in logits.split(sizes, -1)]


@pytest.mark.parametrize(("agents", "shape"), [(1, (3, 5)), (2, (5,))], ids=["sequences", "rows"])
def test_the_distribution_is_that_of_pytorchs_categoricals(agents, shape):
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
    for found, sums in ((distribution.log_prob(actions), log_probabilities), (distribution.entropy, entropies)):
        torch.testing.assert_close(found, sums, **close)
        gradients = [torch.autograd.grad(value.sum(), logits, retain_graph=True)[0] for value in (found, sums)]
        torch.testing.assert_close(*gradients, **close)
    kl = sum(map(torch.distributions.kl_divergence, expected, of_components(others, sizes)))
    torch.testing.assert_close(distribution.kl_divergence(distribution.params, (others,)), kl, **close)
    likeliest = torch.stack([part.probs.argmax(-1) for part in expected], -1)
    assert torch.equal(distribution.deterministic_output(logits), likeliest)
    assert torch.equal(distribution.as_deterministic_output_module()(logits), likeliest)
    numbers = [torch.arange(size, dtype=torch.float32) for size in sizes]
    means = torch.stack([(part.probs * values).sum(-1) for part, values in zip(expected, numbers, strict=True)], -1)
    squares = torch.stack([(part.probs * one**2).sum(-1) for part, one in zip(expected, numbers, strict=True)], -1)
    torch.testing.assert_close(distribution.mean, means, **close)
    torch.testing.assert_close(distribution.std, (squares - means**2).sqrt(), rtol=1e-3, atol=1e-4)


def test_sizes_and_logits_that_do_not_fit_are_refused_and_others_become_floats():
    for output_dim, sizes in ((3, None), (4, [2, 3])):
        refuses("sizes", MultiDiscreteDistribution, output_dim, sizes)
    distribution = MultiDiscreteDistribution(4)
    refuses("of a last dimension of 19", distribution.update, torch.zeros(3, 18))
    distribution.update(torch.zeros(3, 19, dtype=torch.bfloat16))
    torch.testing.assert_close(distribution.entropy, torch.full((3,), 320.0).log())
    with NoWaits():
        assert distribution.sample().shape == (3, 4)
    excluded = torch.where(torch.arange(19) == 5, -torch.inf, torch.zeros(1, 19))
    assert torch.equal(distribution.kl_divergence((excluded,), (excluded,)), torch.zeros(1))


# ---- The runner


def config_of_training():
    network = {"class_name": "MLPModel", "hidden_dims": [16]}
    actor = {**network, "distribution_cfg": {"class_name": "doorstep.envs:MultiDiscreteDistribution"}}
    algorithm = {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2}
    groups = {"actor": ["policy"], "critic": ["policy"]}
    parts = {"obs_groups": groups, "actor": actor, "critic": network, "algorithm": algorithm}
    return {"num_steps_per_env": 8, "save_interval": 1, **parts}


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("view", ["rows", "joint"])
def test_the_runner_trains_logs_and_exports_and_its_policy_acts(view, tmp_path):
    pytest.importorskip("tensorboard")
    torch.manual_seed(0)
    env = make(ROWS if view == "rows" else WORLDS, agents=view)
    runner = OnPolicyRunner(env, config_of_training(), log_dir=str(tmp_path))
    before = [parameter.clone() for parameter in runner.alg.actor.parameters()]
    runner.learn(2, init_at_random_ep_len=True)
    assert any(not torch.equal(a, b) for a, b in zip(before, runner.alg.actor.parameters(), strict=True))
    assert (tmp_path / "model_1.pt").exists()
    observations = env.get_observations()
    with torch.inference_mode():
        actions = runner.get_inference_policy()(observations)
    assert actions.shape == (env.num_envs, env.num_actions)
    assert ((actions >= 0) & (actions < torch.tensor(SIZES * (env.num_actions // 4)))).all()
    env.step(actions)
    runner.export_policy_to_jit(str(tmp_path))
    exported = torch.jit.load(tmp_path / "policy.pt")
    with torch.inference_mode():
        assert torch.equal(exported(observations["policy"]), actions)


@pytest.mark.nightly
def test_ppo_learns():
    assert_example_learns("rsl_rl_ppo.py", warns=True)
