"""Retries: episodes that begin in the middle of one that failed."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tests.pkg.training.runs import assert_equal_tensors, rolled_out, small  # noqa: E402

import doorstep  # noqa: E402
from doorstep.training import Ranks, Trainer  # noqa: E402
from doorstep.training.retries import KEPT, Retries  # noqa: E402
from doorstep.training.worlds import Worlds  # noqa: E402

RETRYING = ("experience.retries=0.5", "experience.staggered=false")  # a retry follows each episode with a save


def play(num_steps, succeeded=False):
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
        assert not retries.num_candidates[ended].any()  # those of an episode end with it
    return worlds, retries, seen


def test_a_failed_episode_is_retried_from_a_moment_of_it():
    _, retries, seen = play(21)
    remaining, is_retry, save = seen[20]
    assert is_retry.all()
    assert set(remaining.tolist()) <= {14, 11, 8}
    assert save in [before for _, _, before in seen[:20]]
    assert retries.num_failed.tolist() == [1] * 6


def test_the_next_level_is_the_one_that_was_postponed():
    worlds, _, seen = play(60)
    natural = [save for remaining, is_retry, save in seen if not is_retry[0] and remaining[0] == 20]
    with doorstep.Simulator.from_config(worlds.sim.config) as plain:
        begins = [plain.save([0])]
        for _ in range(20):
            plain.step()
        begins.append(plain.save([0]))
    assert natural[:2] == begins


def test_neither_what_succeeds_nor_a_retry_that_fails_is_retried():
    _, retries, seen = play(60, succeeded=True)
    assert not retries.num_failed.any()
    assert not any(is_retry.any() for _, is_retry, _ in seen)
    _, retries, _ = play(20 * 3 * KEPT)
    assert (retries.num_failed > KEPT).all()
    assert retries.failed.any(dim=2).all()


def test_a_checkpoint_has_the_retries_and_bad_ones_are_refused():
    trainer = Trainer(small(*RETRYING))
    retries = trainer._retries
    retries.num_failed[:] = 1
    retries.failed[:, 0] = torch.stack([retries._save(world) for world in range(6)])
    trainer.update()
    trainer.update()
    assert retries.is_retry.any()
    assert torch.equal(trainer._rollout.natural[-1], ~retries.is_retry)
    before, resumed = trainer.checkpoint(), Trainer(trainer.config)
    resumed.restore(before)
    assert_equal_tensors(resumed.checkpoint(), before)
    trainer, _ = rolled_out(*RETRYING)
    before = trainer.checkpoint()
    for name, value in (("num_failed", 1), ("num_failed", -1), ("num_candidates", 1), ("is_retry", 1)):
        tensors = {**before.tensors, f"retries.{name}": torch.full_like(before.tensors[f"retries.{name}"], value)}
        with pytest.raises(doorstep.StateError, match="does not fit: retries cannot go on from it"):
            trainer.restore(replace(before, tensors=tensors))
        assert_equal_tensors(trainer.checkpoint(), before)
