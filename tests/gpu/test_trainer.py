"""Training on a real GPU: what a rollout holds is what the CPU's worlds do, recorded in a CUDA graph and not."""

from typing import Any

import pytest
from tests.gpu.frameworks import cuda_torch

import doorstep

torch = cuda_torch()

from tests.pkg.training.runs import WITH_MEMORY, WITHOUT_MEMORY, small  # noqa: E402

from doorstep.training import Trainer  # noqa: E402

STEPS = 32
CHANGES = (
    "simulator.device=cuda",
    "simulator.num_worlds=64",
    f"experience.num_steps={STEPS}",
    "experience.normalize_observations=false",
    "experience.staggered=false",
)


@pytest.fixture(scope="module", autouse=True)
def _kernels_stay() -> None:
    """Loads what stays loaded until the process ends, before objects are counted."""
    Trainer(small(*CHANGES, *WITH_MEMORY)).update()


def assert_holds_what_happens(rollout: Any, sim: doorstep.Simulator) -> None:
    """sim: on the CPU, where the rollout began; it is stepped with the rollout's actions."""
    rows = sim.num_worlds * sim.num_agents
    for step in range(STEPS):
        observed = rollout.observations[step].cpu().numpy()
        assert observed.tobytes() == sim.observations[:].tobytes(), f"step {step}"
        sim.actions = rollout.actions[step].cpu().numpy().reshape(sim.num_worlds, sim.num_agents, -1)
        sim.step()
        assert (rollout.rewards[step].cpu().numpy() == sim.rewards[:].reshape(rows)).all()
        assert (rollout.ended[step].cpu().numpy() == sim.dones[:].reshape(rows)).all()


# The first update runs as it is, the second is recorded, and those after it are replayed.
@pytest.mark.parametrize("graph", ["true", "false"])
@pytest.mark.parametrize("network", [WITHOUT_MEMORY, WITH_MEMORY], ids=["mlp", "lstm"])
def test_rollouts_hold_what_happens_on_the_cpu(network: tuple[str, ...], graph: str) -> None:
    trainer = Trainer(small(*CHANGES, *network, f"experience.cuda_graph={graph}"))
    before = [weight.clone() for weight in trainer.network.parameters()]
    with doorstep.Simulator.from_config(trainer.config.simulator.replace(device="cpu")) as sim:
        for _ in range(4):
            record = trainer.update()
            assert_holds_what_happens(trainer._rollout, sim)
            assert all(torch.tensor(loss).isfinite() for loss in record.losses.values())
    assert any(not torch.equal(old, new) for old, new in zip(before, trainer.network.parameters(), strict=True))


@pytest.mark.parametrize(
    "changes",
    [("levels=curated", "curriculum.type=learnability"), ("simulator.cameras.width=64", "simulator.cameras.height=64")],
    ids=["levels", "cameras"],
)
def test_other_runs_learn(changes: tuple[str, ...]) -> None:
    trainer = Trainer(small(*CHANGES, *changes))
    for _ in range(4):
        assert all(torch.tensor(loss).isfinite() for loss in trainer.update().losses.values())
