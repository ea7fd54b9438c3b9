"""The sweep of the documentation: a trial whose worker is killed has the bits of one that was never interrupted."""

import os
import runpy
import signal
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

from ray import tune
from tests.pkg.ray.clusters import two_nodes
from tests.pkg.training.runs import SMALL, equal_bits

from doorstep.training import Trainer, load_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of much

EXAMPLE = Path(__file__).resolve().parents[3] / "docs/examples/tune_sweep.py"
SETTINGS = dict(setting.split("=") for setting in (*SMALL, "num_updates=7", "checkpoint_every=3"))


@pytest.fixture(scope="module", autouse=True)
def _cluster(tmp_path_factory):
    with two_nodes(tmp_path_factory.mktemp("home")):
        yield


@pytest.fixture
def example():
    """What the program defines: its functions belong to no module that workers could import, and travel whole."""
    return runpy.run_path(str(EXAMPLE))


class KillOnce(tune.Callback):
    """Kills a trial's worker when it has reported this update, and keeps all updates that were reported."""

    def __init__(self, update):
        self.update, self.killed, self.updates = update, 0, list[int]()

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.updates.append(result["update"])
        if result["update"] == self.update and not self.killed:
            self.killed = result["pid"]
            os.kill(self.killed, signal.SIGKILL)


def uninterrupted(config):
    """The end of such a trial, trained here."""
    trainer = Trainer(config.changed(*(f"{name}={value}" for name, value in SETTINGS.items())))
    while trainer.updates < trainer.config.num_updates:
        trainer.update()
    return trainer.checkpoint()


@pytest.mark.slow
def test_a_trial_with_a_killed_worker_goes_on_from_its_checkpoint(example, tmp_path):
    kill, fails = KillOnce(5), tune.FailureConfig(max_failures=1)
    run = tune.RunConfig(storage_path=str(tmp_path), failure_config=fails, callbacks=[kill], verbose=0, name="sweep")
    (result,) = tune.Tuner(example["train"], param_space=SETTINGS, run_config=run).fit()
    assert result.error is None
    assert kill.killed
    assert kill.updates == [1, 2, 3, 4, 5, 4, 5, 6, 7]
    expected = uninterrupted(example["CONFIG"])
    found = load_checkpoint(Path(result.checkpoint.path) / example["FILE"])
    assert (found.config, found.update, found.tensors.keys()) == (expected.config, 7, expected.tensors.keys())
    for name, tensor in expected.tensors.items():
        assert equal_bits(found.tensors[name], tensor), name


@pytest.mark.slow
def test_a_sweep_goes_on_where_it_ended(example, tmp_path):
    space = {**SETTINGS, "seed": tune.grid_search([1, 2])}
    first = example["sweep"](space, tmp_path / "sweep")
    assert sorted(result.config["seed"] for result in first) == [1, 2]
    assert {result.metrics["update"] for result in first} == {7}
    again = example["sweep"](space, tmp_path / "sweep")
    ends = [{one.metrics["trial_id"]: one.checkpoint.path for one in results} for results in (first, again)]
    assert ends[0] == ends[1]
