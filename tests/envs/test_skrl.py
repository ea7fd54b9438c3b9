"""EscapeRoomSkrlEnv and EscapeRoomSkrlMultiAgentEnv: against plain simulators, and in skrl's trainers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.envs.histories import PARTS, History, actions_of

import doorstep

torch: Any = pytest.importorskip("torch")
pytest.importorskip("skrl")

from skrl.agents.torch.ppo import PPO, PPO_CFG  # noqa: E402
from skrl.envs.wrappers.torch import wrap_env  # noqa: E402
from skrl.memories.torch import RandomMemory  # noqa: E402
from skrl.models.torch import DeterministicMixin, Model, MultiCategoricalMixin  # noqa: E402
from skrl.multi_agents.torch.ippo import IPPO, IPPO_CFG  # noqa: E402
from skrl.multi_agents.torch.mappo import MAPPO, MAPPO_CFG  # noqa: E402
from skrl.trainers.torch import SequentialTrainer  # noqa: E402
from skrl.utils.spaces.torch import unflatten_tensorized_space  # noqa: E402
from tests.envs.torch_checks import NoWaits, arrays_of_a_gpu, assert_kept, returns_printed_by  # noqa: E402

from doorstep.envs import EscapeRoomSkrlEnv, EscapeRoomSkrlMultiAgentEnv  # noqa: E402

WORLDS, AGENTS, LENGTH = 4, 2, 6
ROWS = WORLDS * AGENTS
NAMES = ["agent_0", "agent_1"]


def make(rows: int = ROWS, **arguments: Any) -> Any:
    return EscapeRoomSkrlEnv(rows, **{"episode_length": LENGTH, "num_threads": 1, "seed": 5, **arguments})


def make_multi(worlds: int = WORLDS, **arguments: Any) -> Any:
    return EscapeRoomSkrlMultiAgentEnv(worlds, **{"episode_length": LENGTH, "num_threads": 1, "seed": 5, **arguments})


def by_row(array: Any, view: str) -> Any:
    """[N, A, ...] or [N] as [rows, features]."""
    rows = ROWS if view == "rows" else WORLDS
    return (np.repeat(array, rows // WORLDS) if array.ndim == 1 else array).reshape(rows, -1)


def actions_for(steps: int, *shape: int) -> Any:
    return torch.from_numpy(actions_of(3, steps, WORLDS, AGENTS).reshape(steps, *shape, -1)).long()


@pytest.mark.parametrize("view", ["rows", "joint"])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_steps_are_what_happened(view: str, on_gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if on_gpu:
        monkeypatch.setattr("doorstep.envs.skrl.torch_arrays", arrays_of_a_gpu)
    env = make(ROWS if view == "rows" else WORLDS, agents=view)
    history = History("same_step", WORLDS, episode_length=LENGTH, seed=5)
    observations, infos = env.reset()
    assert infos == {}
    np.testing.assert_array_equal(observations.numpy(), by_row(history.worlds.observe()["observations"], view))
    ends = 0
    for actions in actions_for(20, env.num_envs):
        observations, rewards, terminated, truncated, infos = env.step(actions)
        told = history.step(actions.numpy().reshape(WORLDS, AGENTS, 4))
        ended = by_row(told.ended, view)
        np.testing.assert_array_equal(observations.numpy(), by_row(told.observations["observations"], view))
        of_rows = told.rewards if view == "rows" else told.rewards.mean(1)
        np.testing.assert_allclose(rewards.numpy(), of_rows.reshape(-1, 1), rtol=1e-6)
        assert not terminated.any()
        np.testing.assert_array_equal(truncated.numpy(), ended)
        assert history.final is not None
        final = np.where(ended, by_row(history.final["observations"], view), 0)
        np.testing.assert_array_equal(infos["final_observations"].numpy(), final)
        if ended.any():
            returns = told.returns if view == "rows" else told.returns.mean(1)
            np.testing.assert_allclose(infos["episode_returns"].numpy(), returns.reshape(-1), rtol=1e-5)
            assert infos["episode_lengths"].tolist() == [LENGTH] * env.num_envs
            ends += 1
    assert ends == 3
    env.close()


def test_the_state_has_what_only_critics_see() -> None:
    critic = ("physics", "agent_index")
    env = EscapeRoomSkrlMultiAgentEnv(3, seed=2, observations=("lidar",), critic_observations=critic)
    observations, _ = env.reset()
    assert env.observation_spaces["agent_0"].shape == (60,)
    assert env.state_spaces["agent_0"].shape == (2 * 66,)
    for _ in range(2):
        lidar = env.simulator.lidar.to_torch().flatten(2)
        whole = env.state()["agent_1"]
        assert whole is not None
        state = whole.reshape(3, 2, 66)
        for index, agent in enumerate(env.possible_agents):
            assert torch.equal(observations[agent], lidar[:, index])
            assert torch.equal(state[:, index, :60], lidar[:, index])
        assert (state[..., 60:65] == 1).all()
        assert torch.equal(state[..., 65], torch.tensor([[0.0, 1.0]] * 3))
        actions = {agent: torch.zeros(3, 4, dtype=torch.int64) for agent in env.agents}
        observations, *_, infos = env.step(actions)
        assert infos["final_observations"].shape == (3, 2, 60)
    env.close()


def test_parts_of_observations_are_flat_in_the_order_of_their_space() -> None:
    env, history = make(observations="by_name"), History("same_step", WORLDS, episode_length=LENGTH, seed=5)
    observations, _ = env.reset()
    assert observations.dtype == torch.float32
    parts = unflatten_tensorized_space(env.observation_space, observations)
    assert set(parts) == set(PARTS)
    for name, expected in history.worlds.observe().items():
        if name in parts:
            np.testing.assert_array_equal(parts[name].numpy(), expected.reshape(ROWS, *expected.shape[2:]))
    env.step(torch.zeros(ROWS, 4, dtype=torch.int64))
    env.close()


def test_agents_by_name_are_the_same_agents() -> None:
    env, rows = make_multi(), make()
    assert (env.num_envs, env.num_agents, env.max_num_agents) == (WORLDS, AGENTS, AGENTS)
    assert env.possible_agents == env.agents == NAMES
    assert all(value is None for value in env.state().values())

    def assert_same(by_name: Any, by_rows: Any) -> None:
        assert list(by_name) == NAMES
        together = torch.stack(list(by_name.values()), 1)
        assert torch.equal(together, by_rows.reshape(together.shape))

    def assert_state(by_rows: Any) -> None:
        for name, state in env.state().items():
            assert torch.equal(state, by_rows.reshape(WORLDS, -1))
            assert env.state_space(name).shape == state.shape[1:]

    observations, expected = env.reset()[0], rows.reset()[0]
    assert_same(observations, expected)
    assert_state(expected)
    for actions in actions_for(2 * LENGTH, WORLDS, AGENTS):
        outcome = env.step({name: actions[:, agent] for agent, name in reversed(list(enumerate(NAMES)))})
        expected = rows.step(actions.reshape(ROWS, 4))
        for found, of_rows in zip(outcome[:4], expected[:4], strict=True):
            assert_same(found, of_rows)
        assert_state(expected[0])
        for name, of_rows in expected[4].items():
            assert torch.equal(outcome[4][name].reshape(of_rows.shape), of_rows)
        for name in NAMES:
            assert env.observation_space(name).contains(outcome[0][name][0].numpy())
            assert env.action_space(name).nvec.tolist() == list(doorstep.ACTIONS)
    env.close()
    rows.close()


def test_a_single_environment_is_reset_by_the_trainer() -> None:
    """So it shows the last observation of an episode, and must not be stepped on."""
    env = make(1, agents="joint")
    history = History("disabled", 1, episode_length=LENGTH, seed=5)
    env.reset()
    for actions in actions_of(3, LENGTH, 1, AGENTS):
        observations, _, _, truncated, infos = env.step(torch.from_numpy(actions).reshape(1, 8))
        told = history.step(actions)
        np.testing.assert_array_equal(observations.numpy(), told.observations["observations"].reshape(1, -1))
        assert truncated.item() == told.ended.item()
        assert torch.equal(infos["final_observations"], observations * truncated)
    assert truncated.item()
    with pytest.raises(doorstep.StateError, match="has ended"):
        env.step(torch.zeros(1, 8, dtype=torch.int64))
    np.testing.assert_array_equal(env.reset()[0].numpy(), history.reset()["observations"].reshape(1, -1))
    env.close()


def test_a_single_world_has_no_agents_once_its_episode_has_ended() -> None:
    env = make_multi(1)
    env.reset()
    for _ in range(LENGTH):
        assert env.agents == NAMES
        env.step({name: torch.zeros(1, 4, dtype=torch.int64) for name in NAMES})
    assert env.agents == []
    env.reset()
    assert env.agents == NAMES
    env.close()


@pytest.mark.parametrize("kind", [make, make_multi])
def test_seeds_choose_the_levels(kind: Any) -> None:
    def observed(env: Any, **arguments: Any) -> Any:
        found = env.reset(**arguments)[0]
        return found if kind is make else torch.stack(list(found.values()))

    env, other = kind(), kind(seed=9)
    first = observed(env)
    assert torch.equal(observed(env, seed=9), observed(other))
    assert not torch.equal(observed(env), observed(env, seed=5))
    assert torch.equal(observed(env, seed=5), first)
    env.close()
    other.close()


def test_what_is_returned_belongs_to_the_caller() -> None:
    env, multi = make(), make_multi()
    env.reset()
    multi.reset()
    actions = iter(actions_for(2 * LENGTH, ROWS))
    assert_kept(lambda: env.step(next(actions)), 2 * LENGTH)
    more = iter(actions_for(2 * LENGTH, WORLDS, AGENTS))
    assert_kept(lambda: multi.step(dict(zip(NAMES, next(more).unbind(1), strict=True))), 2 * LENGTH)
    env.close()
    multi.close()


def test_a_step_does_not_wait_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorstep.envs.skrl.torch_arrays", arrays_of_a_gpu)
    env, multi = make(), make_multi()
    with NoWaits():
        env.reset()
        multi.reset()
        for actions in actions_for(2 * LENGTH, WORLDS, AGENTS):
            env.step(actions.reshape(ROWS, 4))
            multi.step(dict(zip(NAMES, actions.unbind(1), strict=True)))
            multi.state()
    env.close()
    multi.close()


def zeros(*shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.int64)


@pytest.mark.parametrize(
    ("kind", "actions", "argument"),
    [
        (make, zeros(ROWS, 3), "actions"),
        (make, zeros(WORLDS, 4), "actions"),
        (make, zeros(ROWS, 4).bool(), "actions"),
        (make_multi, zeros(ROWS, 4), "actions"),
        (make_multi, {"agent_0": zeros(WORLDS, 4)}, "actions"),
        (make_multi, {name: zeros(WORLDS, 4) for name in (*NAMES, "agent_2")}, "actions"),
        (make_multi, {"agent_0": zeros(WORLDS, 4), "agent_1": zeros(WORLDS, 3)}, "actions['agent_1']"),
        (make_multi, {"agent_0": zeros(WORLDS, 4), "agent_1": 7}, "actions['agent_1']"),
    ],
)
def test_bad_actions_are_refused_and_change_nothing(kind: Any, actions: Any, argument: str) -> None:
    env = kind()
    with pytest.raises(doorstep.DoorstepError):  # of the actions, or that no episode has begun
        env.step(actions)
    env.reset()
    before = env.simulator.hash()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.step(actions)
    assert caught.value.argument == argument
    assert env.simulator.hash() == before
    env.close()


def test_steps_come_after_a_reset() -> None:
    env, multi = make(), make_multi()
    with pytest.raises(doorstep.StateError, match=r"call reset\(\) first"):
        env.step(zeros(ROWS, 4))
    with pytest.raises(doorstep.StateError, match=r"call reset\(\) first"):
        multi.step({name: zeros(WORLDS, 4) for name in NAMES})
    env.close()
    multi.close()


@pytest.mark.parametrize(
    ("kind", "arguments", "argument"),
    [
        (make, {"rows": 3}, "num_envs"),
        (make, {"agents": "all"}, "agents"),
        (make, {"observations": "pixels"}, "observations"),
        (make, {"render_mode": "human"}, "render_mode"),
        (make_multi, {"worlds": 0}, "num_envs"),
        (make_multi, {"num_agents": 9}, "num_agents"),
        (make_multi, {"render_mode": "human"}, "render_mode"),
    ],
)
def test_bad_arguments_are_refused(kind: Any, arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        kind(**arguments)
    assert caught.value.argument == argument


def test_pictures_are_drawn_if_asked_for() -> None:
    for env in (make(), make_multi()):
        env.reset()
        assert env.render() is None
        env.close()
    for env in (make(render_mode="rgb_array"), make_multi(render_mode="rgb_array")):
        env.reset()
        assert env.render().shape == (480, 640, 3)
        env.close()


# ---- skrl's trainers ----


class Policy(MultiCategoricalMixin, Model):  # type: ignore[misc]
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        MultiCategoricalMixin.__init__(self)
        self.net = torch.nn.Linear(self.num_observations, int(self.action_space.nvec.sum()))

    def compute(self, inputs: Any, role: str) -> Any:
        return self.net(inputs["observations"]), {}


class Value(DeterministicMixin, Model):  # type: ignore[misc]
    """Of the state, if there is one, else of the observations."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = torch.nn.Linear(self.num_states or self.num_observations, 1)

    def compute(self, inputs: Any, role: str) -> Any:
        return self.net(inputs["states" if self.num_states else "observations"]), {}


def quiet(config: Any) -> Any:
    config.experiment.write_interval = config.experiment.checkpoint_interval = 0
    return config


def train(env: Any, agent: Any, timesteps: int) -> None:
    options = {"timesteps": timesteps, "disable_progressbar": True, "close_environment_at_exit": False}
    SequentialTrainer(cfg=options, env=env, agents=agent).train()


def weights(modules: list[Any]) -> list[Any]:
    return [parameter.clone() for module in modules for parameter in module.parameters()]


def assert_all_changed(before: list[Any], after: list[Any]) -> None:
    assert not any(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("rows", [ROWS, 1])
def test_ppo_trains(rows: int) -> None:
    torch.manual_seed(0)
    env = make(rows, num_agents=AGENTS if rows > 1 else 1)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": env.device}
    models = {"policy": Policy(**spaces), "value": Value(**spaces)}
    config = quiet(PPO_CFG(rollouts=8, learning_epochs=2, mini_batches=2, time_limit_bootstrap=True))
    memory = RandomMemory(memory_size=8, num_envs=env.num_envs, device=env.device)
    agent = PPO(models=models, memory=memory, cfg=config, **spaces)
    before = weights(list(models.values()))
    train(env, agent, 16)
    assert_all_changed(before, weights(list(models.values())))
    assert env.simulator.step_count == 16
    observations, truncated = (memory.get_tensor_by_name(name) for name in ("observations", "truncated"))
    assert truncated[..., 0].nonzero()[:, 0].unique().tolist() == [3]  # of steps 8 to 15: the 12th, and not the 18th
    steps_left = observations[..., 92 if env.num_envs > 1 else observations.shape[-1] - 2]
    expected = (LENGTH - torch.arange(8, 16) % LENGTH) / LENGTH
    assert torch.allclose(steps_left, expected[:, None].expand_as(steps_left))
    env.close()


@pytest.mark.parametrize("worlds", [WORLDS, 1])
@pytest.mark.parametrize(("algorithm", "config"), [(IPPO, IPPO_CFG), (MAPPO, MAPPO_CFG)])
def test_multi_agent_ppo_trains(algorithm: Any, config: Any, worlds: int) -> None:
    torch.manual_seed(0)
    env = make_multi(worlds)
    models: dict[str, Any] = {}
    for name in env.possible_agents:
        spaces = {"observation_space": env.observation_space(name), "action_space": env.action_space(name)}
        if algorithm is MAPPO:
            spaces["state_space"] = env.state_space(name)
        models[name] = {"policy": Policy(**spaces, device=env.device), "value": Value(**spaces, device=env.device)}
    memories = {name: RandomMemory(memory_size=8, num_envs=worlds, device=env.device) for name in env.possible_agents}
    # skrl 2.1.1 refuses the empty dictionaries that are the defaults of these.
    kinds = ("learning_rate_scheduler", "observation_preprocessor", "state_preprocessor", "value_preprocessor")
    options: dict[str, Any] = {f"{kind}_kwargs": {name: {} for name in env.possible_agents} for kind in kinds}
    agents = algorithm(
        possible_agents=env.possible_agents,
        models=models,
        memories=memories,
        cfg=quiet(config(rollouts=8, learning_epochs=2, mini_batches=2, **options)),
        observation_spaces=env.observation_spaces,
        state_spaces=env.state_spaces,
        action_spaces=env.action_spaces,
        device=env.device,
    )
    modules = [module for by_role in models.values() for module in by_role.values()]
    before = weights(modules)
    train(env, agents, 16)
    assert_all_changed(before, weights(modules))
    assert env.simulator.step_count == 16
    env.close()


@pytest.mark.slow
def test_ppo_learns() -> None:
    returns = returns_printed_by("skrl_ppo.py")
    assert returns[-1] > returns[0] + 0.2


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_skrl_wraps_the_vector_environment_of_gymnasium(render_mode: Any) -> None:
    env = wrap_env(
        doorstep.envs.EscapeRoomVectorEnv(ROWS, agents="rows", render_mode=render_mode, episode_length=LENGTH),
        verbose=False,
    )
    observations, _ = env.reset()
    assert (env.num_envs, tuple(observations.shape)) == (ROWS, (ROWS, 94))
    actions = torch.zeros(ROWS, 4, dtype=torch.int64)
    observations, rewards, terminated, truncated, _ = env.step(actions)
    assert tuple(rewards.shape) == tuple(terminated.shape) == tuple(truncated.shape) == (ROWS, 1)
    pictures = env.render()
    assert len(pictures) == ROWS
    assert all(picture is None if render_mode is None else picture.shape == (480, 640, 3) for picture in pictures)
    env.close()
