"""The example that trains agents with PPO: it learns, and its policy plays."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from tests.forks import SCRIPT, server

import doorstep

torch = pytest.importorskip("torch")

PATH = Path(__file__).resolve().parents[2] / "examples" / "ppo.py"


@pytest.fixture(scope="module")
def ppo():
    spec = importlib.util.spec_from_file_location("ppo", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_writes_a_checkpoint_that_its_policy_plays(ppo, tmp_path, monkeypatch):
    options = ["--updates", "20", "--worlds", "2", "--seed", "3"]
    run = server("torch").run(SCRIPT, str(PATH), *options, folder=tmp_path, timeout=120)
    assert run.returncode == 0, run.stderr
    assert re.fullmatch(r" *\d+ s +1,280 steps  return [+-]\d\.\d\d  past the doors \d+%, \d+%, \d+%\n", run.stdout)
    monkeypatch.chdir(tmp_path)
    with doorstep.Simulator(5) as sim:
        actions = ppo.trained_policy(sim.observations.copy_to_host()).numpy()
    assert actions.shape == (5, 2, 4)
    assert (actions >= 0).all()
    assert (actions < np.array(doorstep.ACTIONS)).all()


@pytest.mark.nightly
def test_returns_rise(ppo):
    _, returns = ppo.train(num_updates=80, num_worlds=64, seed=0)
    assert len(returns) == 4
    assert returns[-1] > returns[0] + 0.1


def test_a_rollout_holds_what_happened(ppo):
    torch.manual_seed(0)
    network = ppo.ActorCritic()
    with doorstep.Simulator(3, seed=1, episode_length=20) as sim:
        data = ppo.roll_out(sim, network)
        again = doorstep.Simulator(3, seed=1, episode_length=20)
        for step in range(ppo.NUM_STEPS):
            assert (data["observations"][step].numpy() == again.observations[:].reshape(6, 94)).all()
            again.actions = data["actions"][step]
            again.step()
            assert (data["rewards"][step].numpy() == again.rewards[:].reshape(6, 1)).all()
        with torch.no_grad():
            logits, values = network(data["observations"][5])
            last = torch.from_numpy(again.final_observations.copy_to_host()).flatten(0, 1)
            assert torch.allclose(data["next_values"][19], network(last)[1], atol=1e-6)
        assert torch.allclose(data["values"][5], values, atol=1e-6)
        assert data["truncations"].any(dim=1).squeeze().nonzero().tolist() == [[19]]
        log_probabilities = torch.log_softmax(logits[:, :4], -1).gather(1, data["actions"][5, :, :1].long())
        assert (data["log_probabilities"][5] <= log_probabilities.squeeze() + 1e-6).all()
