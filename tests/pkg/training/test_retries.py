"""Retries: episodes that begin in the middle of one that failed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.pkg.training.runs import equal_bits, small  # noqa: E402

import doorstep  # noqa: E402
from doorstep.training import Ranks, Trainer  # noqa: E402
from doorstep.training.retries import KEPT, Retries  # noqa: E402
from doorstep.training.worlds import Worlds  # noqa: E402

RETRYING = ("experience.retries=0.5", "experience.staggered=false")  # a retry follows each episode with a save


def play(num_steps: int, succeeded: bool = False) -> tuple[Any, Any, list[tuple[Any, Any, Any]]]:
    """Worlds whose agents are in the last room from the beginning: what they are before each step."""
    config = small(*RETRYING)
    worlds = Worlds(config.simulator, Ranks())
    retries = Retries(config, worlds, Ranks())
    sim, everywhere, generator = worlds.sim, torch.ones(6, dtype=torch.bool), torch.Generator()
    seen = []
    for _ in range(num_steps):
        seen.append((sim.steps_remaining[:, 0, 0].copy(), retries.is_retry.clone(), sim.save([0])))
        sim.step()
        ended = torch.from_numpy(sim.dones[:, 0, 0].astype(bool))
        retries.step(ended, everywhere & succeeded, everywhere, generator)
    return worlds, retries, seen


def test_a_failed_episode_is_retried_from_a_moment_of_it() -> None:
    _, retries, seen = play(21)
    remaining, is_retry, save = seen[20]
    assert is_retry.all()
    assert set(remaining.tolist()) <= {14, 11, 8}
    assert save in [before for _, _, before in seen[:20]]
    assert retries.num_failed.tolist() == [1] * 6


def test_the_next_level_is_the_one_that_was_postponed() -> None:
    worlds, _, seen = play(60)
    natural = [save for remaining, is_retry, save in seen if not is_retry[0] and remaining[0] == 20]
    with doorstep.Simulator.from_config(worlds.sim.config) as plain:
        begins = [plain.save([0])]
        for _ in range(20):
            plain.step()
        begins.append(plain.save([0]))
    assert natural[:2] == begins


def test_what_succeeds_is_not_retried() -> None:
    _, retries, seen = play(60, succeeded=True)
    assert not retries.num_failed.any()
    assert not any(is_retry.any() for _, is_retry, _ in seen)


def test_a_retry_that_fails_is_not_kept() -> None:
    _, retries, _ = play(20 * 3 * KEPT)
    assert (retries.num_failed > KEPT).all()
    assert retries.failed.any(dim=2).all()


def test_a_checkpoint_has_the_retries() -> None:
    trainer = Trainer(small(*RETRYING))
    retries: Any = trainer._retries
    retries.num_failed[:] = 1
    retries.failed[:, 0] = torch.stack([retries._save(world) for world in range(6)])
    trainer.update()
    trainer.update()
    assert retries.is_retry.any()
    resumed = Trainer(trainer.config)
    resumed.restore(trainer.checkpoint())
    for _ in range(3):
        trainer.update()
        resumed.update()
    one, other = trainer.checkpoint().tensors, resumed.checkpoint().tensors
    assert one.keys() == other.keys()
    assert all(equal_bits(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.parametrize(
    ("name", "value"), [("num_failed", 1), ("num_failed", -1), ("num_candidates", 1), ("is_retry", 1)]
)
def test_a_checkpoint_with_saves_that_cannot_be_restored_is_refused(name: str, value: int) -> None:
    trainer = Trainer(small(*RETRYING))
    trainer.update()
    before = trainer.checkpoint()
    tensors = {**before.tensors, f"retries.{name}": torch.full_like(before.tensors[f"retries.{name}"], value)}
    with pytest.raises(doorstep.StateError, match="does not fit: retries cannot go on from it"):
        trainer.restore(replace(before, tensors=tensors))
    assert all(equal_bits(tensor, before.tensors[name]) for name, tensor in trainer.checkpoint().tensors.items())


@pytest.mark.parametrize("share", [-0.1, 0.6])
def test_shares_out_of_range_are_refused(share: float) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"experience.retries is .*a number, 0 to 0.5"):
        small().changed(retries=share)
