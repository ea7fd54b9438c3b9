"""A run that goes on has the bits of one that never stopped; bad checkpoints are refused and change nothing."""

from __future__ import annotations

import errno
import importlib
import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep._configs.changes import split_changes

torch = pytest.importorskip("torch")

from tests.forks import server  # noqa: E402
from tests.pkg.sealed_files import assert_flipped_bits_are_refused, change_metadata  # noqa: E402
from tests.pkg.training.runs import WITH_MEMORY, equal_bits, small  # noqa: E402

from doorstep._run_log import CONFIG, LOG  # noqa: E402
from doorstep._safetensors import read_arrays, split  # noqa: E402
from doorstep.training import (  # noqa: E402
    Checkpoint,
    NonFiniteLossError,
    Trainer,
    load_checkpoint,
    read_log,
    resume,
    save_checkpoint,
    train,
)
from doorstep.training.checkpoint import METADATA_KEY  # noqa: E402
from doorstep.training.logs import JsonLines  # noqa: E402
from doorstep.training.run import CHECKPOINT, NONFINITE_BATCH, TENSORBOARD  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
KINDS = [
    (),
    (*WITH_MEMORY, "experience.time_limit=bootstrap"),
    ("network.separate_critic=true",),
    (*WITH_MEMORY, "experience.inference=native"),
    ("ppo.final_learning_rate=0", "experience.normalize_observations=false"),
]


def assert_equal_tensors(one: Checkpoint, other: Checkpoint) -> None:
    assert one.tensors.keys() == other.tensors.keys()
    for name, tensor in one.tensors.items():
        assert equal_bits(tensor, other.tensors[name]), name


def assert_equal(one: Trainer, other: Trainer) -> None:
    first, second = one.checkpoint(), other.checkpoint()
    assert_equal_tensors(first, second)
    assert (first.update, first.world_steps) == (second.update, second.world_steps)


@pytest.mark.parametrize("changes", KINDS)
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(changes: tuple[str, ...], tmp_path: Path) -> None:
    config = small(*changes, "num_updates=7")
    whole = train(tmp_path / "whole", config=config)
    stops = iter([False, False, True])
    train(tmp_path / "parts", config=config, should_stop=lambda: next(stops))
    assert load_checkpoint(tmp_path / "parts" / CHECKPOINT).update == 3
    parts = resume(tmp_path / "parts")
    assert_equal(whole, parts)
    expected, found = (read_log(tmp_path / name / LOG) for name in ("whole", "parts"))
    assert [record["update"] for record in found] == [1, 2, 3, 4, 5, 6, 7]
    for one, other in zip(expected, found, strict=True):
        for key in ("world_steps", "episodes", "mean_return", "rooms_one", "rooms_all", "losses"):
            assert one[key] == other[key], key


def test_a_run_that_died_between_checkpoints_goes_on_from_the_last(tmp_path: Path) -> None:
    config = small("num_updates=6", "checkpoint_every=2")

    def die(record: Any) -> None:
        if record.update == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "dead", config=config, on_update=die)
    with open(tmp_path / "dead" / LOG, "ab") as log:
        log.write(b'{"update": 6, "world_st')  # a line that was cut off
    assert [record["update"] for record in read_log(tmp_path / "dead" / LOG)] == [1, 2, 3, 4, 5]
    resumed = resume(tmp_path / "dead")
    assert_equal(train(tmp_path / "whole", config=config), resumed)
    assert [record["update"] for record in read_log(tmp_path / "dead" / LOG)] == [1, 2, 3, 4, 5, 6]


def test_a_finished_run_can_be_extended(tmp_path: Path) -> None:
    train(tmp_path, config=small("num_updates=2"))
    trainer = resume(tmp_path, num_updates=4)
    assert trainer.updates == 4
    assert json.loads((tmp_path / CONFIG).read_text())["num_updates"] == 4
    with pytest.raises(doorstep.ArgumentError, match=r"has made 4 updates, and num_updates is 4 \(give more"):
        resume(tmp_path)
    with pytest.raises(doorstep.ArgumentError, match="num_updates is 3"):
        resume(tmp_path, num_updates=3)


def test_a_run_ends_when_its_minutes_are_over(tmp_path: Path) -> None:
    records: list[Any] = []
    trainer = train(tmp_path, config=small("num_updates=100000"), minutes=0.002, on_update=records.append)
    assert 1 <= trainer.updates == len(records) < 1000
    assert load_checkpoint(tmp_path / CHECKPOINT).update == trainer.updates
    assert resume(tmp_path, minutes=1e-6).updates == trainer.updates + 1
    refused: list[Any] = [0, -1, float("nan"), True, "2"]
    for minutes in refused:
        with pytest.raises(doorstep.ArgumentError, match=r"minutes is .*; it must be a number of minutes"):
            resume(tmp_path, minutes=minutes)


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    train(tmp_path, config=small("num_updates=1"))
    before = (tmp_path / CHECKPOINT).read_bytes()
    with pytest.raises(doorstep.ArgumentError, match="has a run already"):
        train(tmp_path, config=small("num_updates=1"))
    assert (tmp_path / CHECKPOINT).read_bytes() == before


KILLED = """
import os, signal, sys
from pathlib import Path
from doorstep.training import train
from tests.pkg.training.runs import small

def die(record):
    if record.update == 2:
        os.kill(os.getpid(), signal.SIGKILL)

train(Path(sys.argv[1]), config=small(), on_update=die, tensorboard=sys.argv[2] == "True")
"""


@pytest.mark.parametrize("tensorboard", [False, True])
def test_a_run_killed_before_its_first_checkpoint_begins_anew_when_asked(tensorboard: bool, tmp_path: Path) -> None:
    if tensorboard:
        pytest.importorskip("tensorboard")
    killed = server("torch").run(KILLED, str(tmp_path), str(tensorboard), folder=ROOT, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    for path in tmp_path.glob(f"{TENSORBOARD}/events*"):  # TensorBoard orders files by the second in their names
        path.rename(path.with_name(path.name.replace("tfevents.1", "tfevents.0", 1)))
    left = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert [record["update"] for record in read_log(tmp_path / LOG)] == [1, 2]
    with pytest.raises(doorstep.ArgumentError, match=r"has the log of a run that ended before .*auto_resume=True"):
        train(tmp_path, config=small(), tensorboard=tensorboard)
    with pytest.raises(doorstep.ArgumentError, match=r"has no checkpoint.safetensors to resume"):
        resume(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == left
    train(tmp_path, config=small(), tensorboard=tensorboard, auto_resume=True)
    assert [record["update"] for record in read_log(tmp_path / LOG)] == [1, 2, 3, 4]
    if tensorboard:
        accumulator: Any = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
        curves = accumulator.EventAccumulator(str(tmp_path / TENSORBOARD))
        curves.Reload()
        assert [point.step for point in curves.Scalars("loss/entropy")] == [1, 2, 3, 4]


SECOND_RUNS: dict[str, Callable[[Path], object]] = {
    "train": lambda folder: train(folder, config=small()),
    "auto_resume": lambda folder: train(folder, config=small(), auto_resume=True),
    "resume": lambda folder: resume(folder, num_updates=9),
}


@pytest.mark.parametrize("second", SECOND_RUNS)
def test_a_folder_is_of_one_run_at_a_time(second: str, tmp_path: Path) -> None:
    refused = []

    def begin_another(record: Any) -> None:
        if record.update == 2:
            with pytest.raises(doorstep.StateError, match=r"another run goes on in .*wait until") as caught:
                SECOND_RUNS[second](tmp_path)
            refused.append(caught.value.argument)

    train(tmp_path, config=small("checkpoint_every=1"), on_update=begin_another)
    assert refused == ["folder"]
    assert [record["update"] for record in read_log(tmp_path / LOG)] == [1, 2, 3, 4]
    assert resume(tmp_path, num_updates=5).updates == 5


def test_there_must_be_a_run_to_resume(tmp_path: Path) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"has no checkpoint.safetensors to resume"):
        resume(tmp_path)
    assert not list(tmp_path.iterdir())


def test_generators_of_other_programs_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    seeds_of_gpus: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds_of_gpus.append)
    Trainer(small()).update()
    assert torch.equal(torch.get_rng_state(), before)
    assert seeds_of_gpus == []


# ---- Files


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    trainer = Trainer(small())
    trainer.update()
    path = tmp_path / CHECKPOINT
    save_checkpoint(path, trainer.checkpoint())
    return path


def test_a_checkpoint_survives_its_file(saved: Path) -> None:
    trainer = Trainer(small())
    trainer.update()
    expected, found = trainer.checkpoint(), load_checkpoint(saved)
    assert found.config == expected.config
    assert_equal_tensors(found, expected)


def test_a_file_with_a_flipped_bit_is_refused(saved: Path) -> None:
    assert_flipped_bits_are_refused(saved, load_checkpoint, r"checkpoint\.safetensors", most=300)


@pytest.mark.parametrize("size", [0, 7, 100, 5000, -1])
def test_a_truncated_file_is_refused(saved: Path, size: int) -> None:
    saved.write_bytes(saved.read_bytes()[:size])
    with pytest.raises(doorstep.StateError, match=r"checkpoint\.safetensors"):
        load_checkpoint(saved)


@pytest.mark.parametrize(
    "data", [b"", b"\x80\x04.", b"\xff" * 64, b"\x02" + b"\0" * 7 + b"{}", b"\x04" + b"\0" * 7 + b"null"]
)
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(data)
    with pytest.raises(doorstep.StateError, match="is no checkpoint"):
        load_checkpoint(path)


def test_another_version_is_refused_by_number(saved: Path) -> None:
    change_metadata(saved, METADATA_KEY, format=2, version="9.1.0")
    with pytest.raises(doorstep.StateError, match=r"has format 2, written by doorstep 9.1.0; this one reads 1"):
        load_checkpoint(saved)


@pytest.mark.parametrize("config", [{"unknown": 1}, {"seed": -1}, [], None])
def test_a_config_that_is_refused_is_a_bad_file(saved: Path, config: Any) -> None:
    change_metadata(saved, METADATA_KEY, config=config)
    with pytest.raises(doorstep.StateError, match="has a config that this version refuses"):
        load_checkpoint(saved)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("update", "x"), ("update", -1), ("world_steps", 1.5), ("reward_function", 3)),
        *(("seconds", None), ("seconds", float("nan")), ("seconds", 10**400)),
    ],
)
def test_counters_that_are_none_are_refused_by_name(saved: Path, name: str, value: Any) -> None:
    change_metadata(saved, METADATA_KEY, **{name: value})
    with pytest.raises(doorstep.StateError, match=f"this version refuses: {name} is"):
        load_checkpoint(saved)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (["network.widths=[16,8]"], "network.encoder.3.weight"),
        ([*WITH_MEMORY], "network.memory.weight_ih"),
        (["simulator.num_worlds=4"], "simulator.num_worlds"),
        (["simulator.num_agents=3"], "simulator.num_agents"),
    ],
)
def test_a_checkpoint_of_another_shape_is_refused_by_name(saved: Path, changes: list[str], name: str) -> None:
    trainer = Trainer(small(*changes))
    before = trainer.checkpoint()
    with pytest.raises(doorstep.StateError, match=f"does not fit: {name} (has shape|is [34] here, and)"):
        trainer.restore(load_checkpoint(saved))
    assert_equal_tensors(trainer.checkpoint(), before)
    fields: dict[str, Any] = split_changes(changes)
    with pytest.raises(doorstep.StateError, match="does not fit"):
        resume(saved.parent, num_updates=9, **fields)


TENSORS_THAT_DO_NOT_FIT: dict[str, Any] = {  # None: absent
    "network.encoder.0.weight": (None, torch.zeros(94), torch.zeros(()), torch.zeros(16, 94).double()),
    "network.actor.weight": (None, torch.zeros(19, 7), torch.zeros(19)),
    "network.critic_encoder.0.weight": (torch.zeros(16, 94),),
    "observation_moments.mean": (None, torch.zeros(93), torch.zeros(94)),
    "optimizer.0.exp_avg": (None, torch.zeros(5)),
    "optimizer.1.step": (None, torch.zeros(2)),
    "rollout.starts": (None, torch.zeros(16)),
    "run.generator": (None, torch.zeros(5056), torch.full((5056,), 255, dtype=torch.uint8)),
    "run.worlds": (None, torch.zeros((), dtype=torch.uint8), torch.zeros((0, 5), dtype=torch.uint8)),
    "value_moments.weight": (None, torch.zeros(3).double(), torch.tensor(torch.nan).double()),
}


@pytest.mark.parametrize("name", TENSORS_THAT_DO_NOT_FIT)
def test_tensors_that_do_not_fit_are_refused(name: str, tmp_path: Path) -> None:
    trainer = Trainer(small())
    trainer.update()
    checkpoint, path = trainer.checkpoint(), tmp_path / CHECKPOINT
    for tensor in TENSORS_THAT_DO_NOT_FIT[name]:
        tensors = {**checkpoint.tensors, name: tensor}
        bad = replace(checkpoint, tensors={key: value for key, value in tensors.items() if value is not None})
        with pytest.raises(doorstep.StateError):
            trainer.restore(bad)
        assert_equal_tensors(trainer.checkpoint(), checkpoint)
        if name.startswith(("network.encoder", "network.actor", "observation_moments")):
            with pytest.raises(doorstep.StateError, match=f"does not fit: {name} "):
                save_checkpoint(path, bad)


@pytest.mark.parametrize("changes", [(), WITH_MEMORY, ("critic_observations=physics", "network.separate_critic=true")])
def test_a_trainer_has_the_policy_of_its_checkpoint_and_the_records_of_its_updates(
    changes: tuple[str, ...], tmp_path: Path
) -> None:
    trainer = train(tmp_path, config=small(*changes, "num_updates=2"))
    assert json.loads(json.dumps([record.to_dict() for record in trainer.log])) == read_log(tmp_path / LOG)
    seen = np.linspace(-1, 1, 6 * 2 * 94, dtype=np.float32).reshape(6, 2, 94)
    policy = trainer.policy
    expected = doorstep.load_policy(tmp_path).forward(seen)
    assert np.array_equal(policy.forward(seen), expected)
    trainer.update()
    assert np.array_equal(policy.forward(seen), expected)
    assert not np.array_equal(trainer.policy.forward(seen), expected)


def test_worlds_of_other_rules_are_refused(saved: Path) -> None:
    trainer = Trainer(small("simulator.episode_length=30"))
    before = trainer.checkpoint()
    with pytest.raises(doorstep.StateError):
        trainer.restore(load_checkpoint(saved))
    assert_equal_tensors(trainer.checkpoint(), before)


def test_a_full_disk_leaves_the_older_checkpoint(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(saved, Trainer(small()).checkpoint())
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    log = JsonLines(tmp_path / LOG)
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), log._file.fileno())
    with pytest.raises(OSError, match=r"No space left.*log.jsonl"):
        log.write(Trainer(small()).update())
    log.close()


def test_a_batch_that_is_not_finite_is_kept(tmp_path: Path) -> None:
    config = small("num_updates=9", "checkpoint_every=1")

    def poison(record: Any) -> None:
        if record.update == 3:
            with torch.no_grad():
                runs[0].network.critic.weight.fill_(float("nan"))

    runs: list[Trainer] = []
    with pytest.raises(NonFiniteLossError, match=r"its data is in .*nonfinite_batch.safetensors"):
        train(tmp_path, config=config, on_begin=runs.append, on_update=poison)
    batch = read_arrays(*split((tmp_path / NONFINITE_BATCH).read_bytes()))
    assert not np.isfinite(batch["targets"]).all()
    assert np.isfinite(batch["observations"]).all()
    assert read_log(tmp_path / LOG)[-1]["update"] == 3


def test_a_run_begins_with_what_another_one_learned() -> None:
    first = Trainer(small())
    first.update()
    second = Trainer(small("simulator.num_worlds=3", "ppo.num_minibatches=1", "seed=5"))
    second.begin_with(first.checkpoint())
    checkpoint = second.checkpoint()
    assert (checkpoint.update, checkpoint.world_steps) == (0, 0)
    for part in ("network", "value_moments", "observation_moments"):
        learned = checkpoint.part(part)
        assert learned
        assert all(torch.equal(tensor, first.checkpoint().part(part)[name]) for name, tensor in learned.items())
    second.update()
    with pytest.raises(doorstep.StateError, match=r"the checkpoint does not fit: network\."):
        Trainer(small("network.widths=[4]")).begin_with(first.checkpoint())


def test_a_function_of_a_step_gives_the_rewards_and_is_needed_again(tmp_path: Path) -> None:
    def double(step: Any) -> Any:
        return 2 * step.rewards + step.terminations

    config = small("num_updates=1")
    rewards = []
    for reward, folder in ((None, "plain"), (double, "doubled")):
        trainer = train(tmp_path / folder, config=config, reward=reward)
        rewards.append(trainer._rollout.rewards.clone())
    assert rewards[0].any()
    assert torch.equal(rewards[1], 2 * rewards[0])
    with pytest.raises(doorstep.StateError, match=r"is rewarded by the function .*double, which it does not contain"):
        resume(tmp_path / "doubled", num_updates=2)
    assert resume(tmp_path / "doubled", reward=double, num_updates=2).updates == 2
    terms = doorstep.Rewards(goal=3)
    assert resume(tmp_path / "doubled", reward=terms, num_updates=3).config.reward == terms
    number: Any = 3
    with pytest.raises(doorstep.ArgumentError, match=r"reward is 3; it must be doorstep.levels.Rewards"):
        train(tmp_path / "bad", config=config, reward=number)
