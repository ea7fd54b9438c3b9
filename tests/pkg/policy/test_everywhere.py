"""Whatever plays worlds takes every kind of policy, and lets it act in the same way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and a program with policies. All choose ACTION, if networks are greedy."""
    folder = tmp_path_factory.mktemp("policies")
    (folder / "run").mkdir()
    arrays = {"weights": np.zeros((19, 94), np.float32), "biases": BIASES.astype(np.float32)}
    layers = [StoredLayer(LayerKind.LINEAR, 94, 19, 0.0, arrays)]
    policy = StoredPolicy(layers, SamplingParams(greedy=True), None, {})
    write_policy(folder / "run" / "checkpoint.safetensors", policy)
    (folder / "mine.py").write_text(f"""
import numpy
def act(observations):
    return numpy.full((*observations.shape[:-1], 4), {ACTION})
def remember(observations, state=None):
    return act(observations), numpy.ones((*observations.shape[:-1], 3))
""")
    return folder


def module(folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(94, 19)
    with torch.no_grad():
        net.weight.zero_()
        net.bias.copy_(torch.from_numpy(BIASES))
    return net


def function(observations: Any) -> Any:
    return np.full((*observations.shape[:-1], 4), ACTION)


TEXTS: dict[str, Callable[[Path], str]] = {
    "a run": lambda folder: str(folder / "run"),
    "a file": lambda folder: str(folder / "run" / "checkpoint.safetensors"),
    "a function of a file": lambda folder: f"{folder / 'mine.py'}:act",
    "a function with a memory": lambda folder: f"{folder / 'mine.py'}:remember",
}
KINDS: dict[str, Callable[[Path], Any]] = {
    **TEXTS,
    "a path": lambda folder: folder / "run",
    "a policy": lambda folder: load_policy(folder / "run"),
    "a function": lambda folder: function,
    "a module": module,
    "modules": lambda folder: [module(folder)],
}
GREEDY = SamplingParams(greedy=True)


def in_a_loop(policy: Any) -> Any:
    loaded = load_policy(policy, sampling=GREEDY)
    with doorstep.Simulator(2) as sim:
        returned = loaded(sim.observations)
        sim.actions = returned[0] if isinstance(returned, tuple) else returned
        return sim.actions.copy_to_host()


def by_an_engine(policy: Any) -> Any:
    with RolloutEngine(SimulatorConfig(2)) as engine:
        engine.submit(EpisodeRequest(policy=policy, sampling=GREEDY, max_steps=STEPS, record="actions"))
        (result,) = engine
    assert result.finished, result.error
    return result.actions


def by_the_viewer(policy: Any) -> Any:
    pytest.importorskip("viser")
    from doorstep.viewer.server import Settings, opened

    with opened(Settings(policy=policy, sampling=GREEDY, port=0)) as (viewer, _):
        viewer._play._act()  # type: ignore[attr-defined]
        return viewer._sim.actions.copy_to_host()


@pytest.mark.parametrize("play", [in_a_loop, by_an_engine, by_the_viewer], ids=lambda play: play.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_policy_acts(kind: str, play: Callable[[Any], Any], folder: Path) -> None:
    actions = play(KINDS[kind](folder))
    assert (actions == ACTION).all()


def test_an_evaluation_takes_all_of_them(folder: Path) -> None:
    policies = {kind: make(folder) for kind, make in KINDS.items()}
    evaluation = doorstep.evaluate(policies, episodes=3, episode_length=20, worlds=2, sampling=GREEDY)
    returns = {score.mean_return.value for score in evaluation.scores}
    assert len(evaluation.scores) == len(KINDS)
    assert max(returns) - min(returns) < 1e-6


@pytest.mark.parametrize("kind", TEXTS)
def test_commands_take_those_that_a_text_names(kind: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.rec"
    options = ("--policy", TEXTS[kind](folder), "--worlds", "2", "--steps", str(STEPS), "--output", str(path))
    assert main(["record", *options]) == 0
    with Recording(path) as recording:
        for step in range(STEPS):
            assert (recording.actions(step) == ACTION).all()


@pytest.fixture
def of_lidar(tmp_path: Path) -> Path:
    """A policy that was trained with other observations, and chooses ACTION."""
    arrays = {"weights": np.zeros((19, 61), np.float32), "biases": BIASES.astype(np.float32)}
    layers = [StoredLayer(LayerKind.LINEAR, 61, 19, 0.0, arrays)]
    policy = StoredPolicy(layers, SamplingParams(greedy=True), (("lidar", 0.5), "agent_index"), {})
    write_policy(tmp_path / "lidar.safetensors", policy)
    return tmp_path / "lidar.safetensors"


def test_what_makes_simulators_makes_the_observations_that_a_policy_was_trained_with(
    of_lidar: Path, folder: Path, tmp_path: Path
) -> None:
    assert (by_the_viewer(of_lidar) == ACTION).all()
    with doorstep.record(tmp_path / "run.rec", policy=of_lidar, steps=2) as recording:
        assert (recording.actions(0) == ACTION).all()
    options = ("--policy", str(of_lidar), "--worlds", "2", "--steps", "2", "--output", str(tmp_path / "run.rec"))
    assert main(["record", *options]) == 0
    evaluation = doorstep.evaluate([of_lidar, folder / "run"], episodes=2, episode_length=10, worlds=2)
    one, other = (score.mean_return.value for score in evaluation.scores)
    assert one == other


def test_other_observations_are_refused_by_name(of_lidar: Path) -> None:
    policy = load_policy(of_lidar)
    message = r"was trained with observations lidar:0\.5,agent_index; here they are self_observations,"
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError, match=message):
        Player(policy, sim)
    with RolloutEngine(SimulatorConfig(2)) as engine, pytest.raises(doorstep.ArgumentError, match=message):
        engine.submit(EpisodeRequest(policy=of_lidar))
    with doorstep.Simulator(2, observations=policy.observations) as sim:
        Player(policy, sim).act()
        assert (sim.actions.to_numpy() == ACTION).all()
    with RolloutEngine(SimulatorConfig(2, observations=policy.observations)) as engine:
        engine.submit(EpisodeRequest(policy=of_lidar, max_steps=3))
        assert next(iter(engine)).finished


def test_commands_have_options_for_how_networks_choose(folder: Path, tmp_path: Path) -> None:
    def actions(*options: str) -> Any:
        path = tmp_path / "run.rec"
        arguments = ("--worlds", "64", "--steps", "1", "--output", str(path), "--policy", str(folder / "run"))
        assert main(["record", *arguments, *options]) == 0
        with Recording(path) as recording:
            return recording.actions(0)

    assert (actions("--temperature", "0") == ACTION).all()
    drawn = actions("--temperature", "1", "--seed", "5")
    assert (drawn != ACTION).any()
    assert (drawn == actions("--temperature", "1", "--seed", "5")).all()
    assert (drawn != actions("--temperature", "1", "--seed", "6")).any()
    assert main(["record", "--temperature", "-1", "--output", str(tmp_path / "run.rec")]) == 2
