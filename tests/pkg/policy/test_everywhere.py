"""Whatever plays worlds takes every kind of policy, and lets it act in the same way."""

import numpy as np
import pytest

import doorstep
from doorstep import EpisodeRequest, RolloutEngine, SimulatorConfig, load_policy
from doorstep._native._generated import LayerKind
from doorstep.cli import main
from doorstep.policy import SamplingParams
from doorstep.policy.files import StoredLayer, StoredPolicy, write_policy
from doorstep.policy.playing import Player
from doorstep.recording import Recording

ACTION = [2, 7, 3, 1]
BIASES = np.concatenate([np.arange(size) == value for size, value in zip(doorstep.ACTIONS, ACTION, strict=True)])
STEPS = 5
GREEDY = SamplingParams(greedy=True)


def write(path, num_inputs, observations):
    """A policy that chooses ACTION, if it is greedy."""
    arrays = {"weights": np.zeros((19, num_inputs), np.float32), "biases": BIASES.astype(np.float32)}
    layers = [StoredLayer(LayerKind.LINEAR, num_inputs, 19, 0.0, arrays)]
    write_policy(path, StoredPolicy(layers, GREEDY, observations, {}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, a policy that was trained with other observations, and a program with policies. All choose ACTION."""
    folder = tmp_path_factory.mktemp("policies")
    (folder / "run").mkdir()
    write(folder / "run" / "checkpoint.safetensors", 94, None)
    write(folder / "lidar.safetensors", 61, (("lidar", 0.5), "agent_index"))
    (folder / "mine.py").write_text(f"""
import numpy
def act(observations):
    return numpy.full((*observations.shape[:-1], 4), {ACTION})
def remember(observations, state=None):
    return act(observations), numpy.ones((*observations.shape[:-1], 3))
""")
    return folder


def module(folder):
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(94, 19)
    with torch.no_grad():
        net.weight.zero_()
        net.bias.copy_(torch.from_numpy(BIASES))
    return net


TEXTS = {
    "a run": lambda folder: str(folder / "run"),
    "a file": lambda folder: str(folder / "run" / "checkpoint.safetensors"),
    "a function of a file": lambda folder: f"{folder / 'mine.py'}:act",
    "a function with a memory": lambda folder: f"{folder / 'mine.py'}:remember",
}
KINDS = {
    **TEXTS,
    "a path": lambda folder: folder / "run",
    "a policy": lambda folder: load_policy(folder / "run"),
    "a function": lambda folder: lambda observations: np.full((*observations.shape[:-1], 4), ACTION),
    "a module": module,
    "modules": lambda folder: [module(folder)],
}


def in_a_loop(policy):
    loaded = load_policy(policy, sampling=GREEDY)
    with doorstep.Simulator(2) as sim:
        returned = loaded(sim.observations)
        sim.actions = returned[0] if isinstance(returned, tuple) else returned
        return sim.actions.copy_to_host()


def by_an_engine(policy):
    with RolloutEngine(SimulatorConfig(2)) as engine:
        engine.submit(EpisodeRequest(policy=policy, sampling=GREEDY, max_steps=STEPS, record="actions"))
        (result,) = engine
    assert result.finished, result.error
    return result.actions


def by_the_viewer(policy):
    pytest.importorskip("viser")
    from doorstep.viewer.server import Settings, opened

    with opened(Settings(policy=policy, sampling=GREEDY, port=0)) as (viewer, _):
        viewer._play._act()
        return viewer._sim.actions.copy_to_host()


def recorded(path, *options):
    """By the command: the actions of each step."""
    assert main(["record", "--worlds", "2", "--steps", str(STEPS), "--output", str(path), *options]) == 0
    with Recording(path) as recording:
        return np.stack([recording.actions(step) for step in range(STEPS)])


def test_every_kind_of_policy_acts_everywhere(folder, tmp_path):
    for kind, make in KINDS.items():
        for play in (in_a_loop, by_an_engine, by_the_viewer):
            assert (play(make(folder)) == ACTION).all(), (kind, play)
        if kind in TEXTS:
            assert (recorded(tmp_path / "run.rec", "--policy", make(folder)) == ACTION).all(), kind
    policies = {kind: make(folder) for kind, make in KINDS.items()}
    evaluation = doorstep.evaluate(policies, episodes=3, episode_length=20, worlds=2, sampling=GREEDY)
    returns = [score.mean_return.value for score in evaluation.scores]
    assert len(returns) == len(KINDS)
    assert max(returns) - min(returns) < 1e-6


def test_what_makes_simulators_makes_the_observations_that_a_policy_was_trained_with(folder, tmp_path):
    of_lidar = folder / "lidar.safetensors"
    assert (by_the_viewer(of_lidar) == ACTION).all()
    with doorstep.record(tmp_path / "a.rec", policy=of_lidar, steps=2) as recording:
        assert (recording.actions(0) == ACTION).all()
    assert (recorded(tmp_path / "run.rec", "--policy", str(of_lidar)) == ACTION).all()
    evaluation = doorstep.evaluate([of_lidar, folder / "run"], episodes=2, episode_length=10, worlds=2)
    one, other = (score.mean_return.value for score in evaluation.scores)
    assert one == other


def test_other_observations_are_refused_by_name(folder):
    policy = load_policy(folder / "lidar.safetensors")
    message = r"was trained with observations lidar:0\.5,agent_index; here they are self_observations,"
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError, match=message):
        Player(policy, sim)
    with RolloutEngine(SimulatorConfig(2)) as engine, pytest.raises(doorstep.ArgumentError, match=message):
        engine.submit(EpisodeRequest(policy=policy))
    with doorstep.Simulator(2, observations=policy.observations) as sim:
        Player(policy, sim).act()
        assert (sim.actions.to_numpy() == ACTION).all()
    with RolloutEngine(SimulatorConfig(2, observations=policy.observations)) as engine:
        engine.submit(EpisodeRequest(policy=policy, max_steps=3))
        assert next(iter(engine)).finished


def test_commands_have_options_for_how_networks_choose(folder, tmp_path):
    def actions(*options):
        return recorded(tmp_path / "run.rec", "--policy", str(folder / "run"), *options)

    assert (actions("--temperature", "0") == ACTION).all()
    assert (actions("--temperature", "1", "--top-p", "0.01") == ACTION).all()
    drawn = actions("--temperature", "1", "--seed", "5")
    assert (drawn != ACTION).any()
    assert (drawn == actions("--temperature", "1", "--seed", "5")).all()
    assert (drawn != actions("--temperature", "1", "--seed", "6")).any()
    assert main(["record", "--temperature", "-1", "--output", str(tmp_path / "run.rec")]) == 2
