"""EscapeRoomSkrlEnv and EscapeRoomSkrlMultiAgentEnv, beside what all environments do: in skrl's trainers."""

import pytest
from tests.refuses import refuses

torch = pytest.importorskip("torch")
pytest.importorskip("skrl")

from skrl.agents.torch.ppo import PPO, PPO_CFG  # noqa: E402
from skrl.memories.torch import RandomMemory  # noqa: E402
from skrl.models.torch import DeterministicMixin, Model, MultiCategoricalMixin  # noqa: E402
from skrl.multi_agents.torch.mappo import MAPPO, MAPPO_CFG  # noqa: E402
from skrl.trainers.torch import SequentialTrainer  # noqa: E402
from tests.envs.histories import assert_example_learns  # noqa: E402

from doorstep.envs import EscapeRoomSkrlEnv, EscapeRoomSkrlMultiAgentEnv  # noqa: E402

WORLDS, AGENTS, LENGTH = 4, 2, 6
ROWS = WORLDS * AGENTS
RULES = {"episode_length": LENGTH, "num_threads": 1, "seed": 5}


def make(rows=ROWS, **arguments):
    return EscapeRoomSkrlEnv(rows, **RULES, **arguments)


def make_multi(worlds=WORLDS, **arguments):
    return EscapeRoomSkrlMultiAgentEnv(worlds, **RULES, **arguments)


def zeros(*shape):
    return torch.zeros(shape, dtype=torch.int64)


def test_the_state_has_what_only_critics_see():
    env = make_multi(3, observations=("lidar",), critic_observations=("physics", "agent_index"))
    assert all(value is None for value in env.state().values())
    observations, _ = env.reset()
    assert env.observation_spaces["agent_0"].shape == (60,)
    assert env.state_space("agent_0").shape == (2 * 66,)
    for _ in range(2):
        lidar = env.simulator.lidar.to_torch().flatten(2)
        state = env.state()["agent_1"].reshape(3, 2, 66)
        for index, agent in enumerate(env.possible_agents):
            assert torch.equal(observations[agent], lidar[:, index])
            assert torch.equal(state[:, index, :60], lidar[:, index])
        assert (state[..., 60:65] == 1).all()
        assert torch.equal(state[..., 65], torch.tensor([[0.0, 1.0]] * 3))
        observations, *_, infos = env.step({agent: zeros(3, 4) for agent in env.agents})
        assert infos["final_observations"].shape == (3, 2, 60)


BAD_ACTIONS = [
    (make, zeros(ROWS, 3), "actions"),
    (make, zeros(ROWS, 4).bool(), "actions"),
    (make_multi, zeros(ROWS, 4), "actions"),
    (make_multi, {"agent_0": zeros(WORLDS, 4)}, "actions"),
    (make_multi, {name: zeros(WORLDS, 4) for name in ("agent_0", "agent_1", "agent_2")}, "actions"),
    (make_multi, {"agent_0": zeros(WORLDS, 4), "agent_1": zeros(WORLDS, 3)}, "actions['agent_1']"),
    (make_multi, {"agent_0": zeros(WORLDS, 4), "agent_1": 7}, "actions['agent_1']"),
]


def test_bad_arguments_are_refused_and_change_nothing():
    envs = {make: make(), make_multi: make_multi()}
    for env in envs.values():
        env.reset()
    before = [env.simulator.hash() for env in envs.values()]
    for kind, actions, argument in BAD_ACTIONS:
        refuses(None, envs[kind].step, actions, argument=argument)
    assert [env.simulator.hash() for env in envs.values()] == before
    human = {"render_mode": "human"}
    wrong = ((make, {"observations": "pixels"}), (make, human), (make_multi, {"num_agents": 9}), (make_multi, human))
    for kind, arguments in wrong:
        refuses(None, kind, argument=next(iter(arguments)), **arguments)


# ---- skrl's trainers ----


class Policy(MultiCategoricalMixin, Model):
    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        MultiCategoricalMixin.__init__(self)
        self.net = torch.nn.Linear(self.num_observations, int(self.action_space.nvec.sum()))

    def compute(self, inputs, role):
        return self.net(inputs["observations"]), {}


class Value(DeterministicMixin, Model):
    """Of the state, if there is one, else of the observations."""

    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = torch.nn.Linear(self.num_states or self.num_observations, 1)

    def compute(self, inputs, role):
        return self.net(inputs["states" if self.num_states else "observations"]), {}


def assert_trains(env, agent, modules):
    before = [parameter.clone() for module in modules for parameter in module.parameters()]
    options = {"timesteps": 16, "disable_progressbar": True, "close_environment_at_exit": False}
    SequentialTrainer(cfg=options, env=env, agents=agent).train()
    after = [parameter for module in modules for parameter in module.parameters()]
    assert not any(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert env.simulator.step_count == 16


@pytest.mark.parametrize("rows", [ROWS, 1])
def test_ppo_trains(rows):
    torch.manual_seed(0)
    env = make(rows, num_agents=AGENTS if rows > 1 else 1)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": env.device}
    models = {"policy": Policy(**spaces), "value": Value(**spaces)}
    config = PPO_CFG(rollouts=8, learning_epochs=2, mini_batches=2, time_limit_bootstrap=True)
    config.experiment.write_interval = config.experiment.checkpoint_interval = 0
    memory = RandomMemory(memory_size=8, num_envs=env.num_envs, device=env.device)
    assert_trains(env, PPO(models=models, memory=memory, cfg=config, **spaces), list(models.values()))
    observations, truncated = (memory.get_tensor_by_name(name) for name in ("observations", "truncated"))
    assert truncated[..., 0].nonzero()[:, 0].unique().tolist() == [3]  # of steps 8 to 15: the 12th, and not the 18th
    steps_left = observations[..., 92 if env.num_envs > 1 else observations.shape[-1] - 2]
    expected = (LENGTH - torch.arange(8, 16) % LENGTH) / LENGTH
    assert torch.allclose(steps_left, expected[:, None].expand_as(steps_left))


def test_multi_agent_ppo_trains():
    torch.manual_seed(0)
    env, models = make_multi(), {}
    for name in env.possible_agents:
        spaces = {kind: getattr(env, kind)(name) for kind in ("observation_space", "action_space", "state_space")}
        models[name] = {"policy": Policy(**spaces, device=env.device), "value": Value(**spaces, device=env.device)}
    # skrl 2.1.1 refuses the empty dictionaries that are the defaults of these.
    kinds = ("learning_rate_scheduler", "observation_preprocessor", "state_preprocessor", "value_preprocessor")
    options = {f"{kind}_kwargs": {name: {} for name in env.possible_agents} for kind in kinds}
    config = MAPPO_CFG(rollouts=8, learning_epochs=2, mini_batches=2, **options)
    config.experiment.write_interval = config.experiment.checkpoint_interval = 0
    memories = {name: RandomMemory(memory_size=8, num_envs=WORLDS, device=env.device) for name in env.possible_agents}
    names = ("possible_agents", "observation_spaces", "state_spaces", "action_spaces", "device")
    of_env = {name: getattr(env, name) for name in names}
    agents = MAPPO(models=models, memories=memories, cfg=config, **of_env)
    assert_trains(env, agents, [module for by_role in models.values() for module in by_role.values()])


@pytest.mark.nightly
def test_ppo_learns():
    assert_example_learns("skrl_ppo.py", warns=True)
