"""A run that goes on has the bits of one that never stopped; bad checkpoints are refused and change nothing."""

import functools
import importlib
import json
import os
from dataclasses import replace

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep
from doorstep._configs.changes import split_changes

pytest.importorskip("torch")

import torch
from tests.pkg.sealed_files import assert_flipped_bits_are_refused, change_metadata
from tests.pkg.training.runs import RETRYING, WITH_MEMORY, assert_equal_tensors, rolled_out, small

from doorstep._run_log import CONFIG, LOG
from doorstep.errors import StateError
from doorstep.levels import curated, reference, save_levels
from doorstep.training import NonFiniteLossError, Trainer, load_checkpoint, read_log, resume, save_checkpoint, train
from doorstep.training.checkpoint import METADATA_KEY
from doorstep.training.logs import JsonLines
from doorstep.training.run import CHECKPOINT, TENSORBOARD

KINDS = {
    "mlp": ("critic_observations=physics",),
    "lstm": (*WITH_MEMORY, "experience.time_limit=bootstrap"),
    "critic": ("network.separate_critic=true", "simulator.num_agents=3"),
    "native": (*WITH_MEMORY, "experience.inference=native"),
    "schedules": ("ppo.final_learning_rate=0", "ppo.final_entropy_coefficient=0", "precision=bfloat16"),
    "levels": ("levels=levels.json", "curriculum.type=learnability"),
    "retries": ("levels=levels.json", "experience.retries=0.5", "experience.normalize_observations=false"),
}


def updates_of(folder):
    return [record["update"] for record in read_log(folder / LOG)]


def assert_equal(one, other):
    first, second = one.checkpoint(), other.checkpoint()
    assert_equal_tensors(first, second)
    assert (first.update, first.world_steps) == (second.update, second.world_steps)


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    levels = [*(level.replace(episode_length=12) for level in curated().values()), reference()]
    save_levels("levels.json", levels)
    config = small(*KINDS[kind], "num_updates=7")
    whole = train(tmp_path / "whole", config=config)
    stops = iter([False, False, True])
    train(tmp_path / "parts", config=config, should_stop=lambda: next(stops))
    assert load_checkpoint(tmp_path / "parts" / CHECKPOINT).update == 3
    assert_equal(whole, resume(tmp_path / "parts"))
    expected, found = (read_log(tmp_path / name / LOG) for name in ("whole", "parts"))
    assert [record["update"] for record in found] == [1, 2, 3, 4, 5, 6, 7]
    seconds = [record["seconds"] for record in found]
    assert seconds == sorted(seconds)
    times = dict.fromkeys(("seconds", "world_steps_per_second"), 0)
    assert [{**record, **times} for record in found] == [{**record, **times} for record in expected]
    if kind == "retries":
        assert whole._retries.num_failed.any()


def die_at(update):
    """A run that ends without a checkpoint."""

    def die(record):
        if record.update == update:
            raise KeyboardInterrupt

    return {"error": KeyboardInterrupt, "on_update": die}


def test_a_run_that_died_between_checkpoints_goes_on_from_the_last(tmp_path):
    config = small("num_updates=6", "checkpoint_every=2")
    refuses(None, train, tmp_path / "dead", config=config, **die_at(5))
    with open(tmp_path / "dead" / LOG, "ab") as log:
        log.write(b'{"update": 6, "world_st')  # a line that was cut off
    assert updates_of(tmp_path / "dead") == [1, 2, 3, 4, 5]
    resumed = resume(tmp_path / "dead")
    assert_equal(train(tmp_path / "whole", config=config), resumed)
    assert updates_of(tmp_path / "dead") == [1, 2, 3, 4, 5, 6]


def test_a_finished_run_can_be_extended_and_ends_when_its_minutes_are_over(tmp_path):
    before = train(tmp_path, config=small("num_updates=2")).checkpoint()
    refuses("has a run already", train, tmp_path, config=small("num_updates=1"))
    assert_equal_tensors(load_checkpoint(tmp_path / CHECKPOINT), before)
    assert resume(tmp_path, num_updates=4).updates == 4
    assert json.loads((tmp_path / CONFIG).read_text())["num_updates"] == 4
    refuses(r"has made 4 updates, and num_updates is 4 \(give more", resume, tmp_path)
    records = []
    trainer = train(tmp_path / "2", config=small("num_updates=100000"), minutes=0.002, on_update=records.append)
    assert 1 <= trainer.updates == len(records) < 1000
    assert load_checkpoint(tmp_path / "2" / CHECKPOINT).update == trainer.updates
    assert resume(tmp_path / "2", minutes=1e-6).updates == trainer.updates + 1
    for minutes in (0, -1, float("nan"), True, "2"):
        refuses(r"minutes is .*; it must be a number of minutes", resume, tmp_path, minutes=minutes)


def test_a_run_that_died_before_its_first_checkpoint_begins_anew_when_asked(tmp_path):
    pytest.importorskip("tensorboard")
    refuses(None, train, tmp_path, config=small(), tensorboard=True, **die_at(2))
    for path in tmp_path.glob(f"{TENSORBOARD}/events*"):  # TensorBoard orders files by the second in their names
        path.rename(path.with_name(path.name.replace("tfevents.1", "tfevents.0", 1)))
    left = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert updates_of(tmp_path) == [1, 2]
    refuses(r"has the log of a run that ended before .*auto_resume=True", train, tmp_path, config=small())
    refuses(r"has no checkpoint.safetensors to resume", resume, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == left
    trainer = train(tmp_path, config=small(), tensorboard=True, auto_resume=True)
    assert updates_of(tmp_path) == [1, 2, 3, 4]
    accumulator = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    curves = accumulator.EventAccumulator(str(tmp_path / TENSORBOARD))
    curves.Reload()
    records = {record.update: record for record in trainer.log}
    ended = {update: record for update, record in records.items() if record.episodes}
    for curve, expected in {
        "loss/entropy": {update: record.losses["entropy"] for update, record in records.items()},
        "episode/return": {update: record.mean_return for update, record in ended.items()},
        "door_1/one": {update: record.rooms_one[0] for update, record in ended.items()},
        "door_3/all": {update: record.rooms_all[2] for update, record in ended.items()},
    }.items():
        assert {point.step: point.value for point in curves.Scalars(curve)} == pytest.approx(expected), curve


def test_a_call_that_begins_a_run_goes_on_with_it_by_its_config(tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff")  # which is not UTF-8
    train(folder, config=small(), auto_resume=True)
    longer = small("num_updates=6", "ppo.learning_rate=1e-4")
    assert train(folder, config=longer, auto_resume=True).updates == 6
    assert load_checkpoint(folder / CHECKPOINT).config == longer
    refuses("does not fit: network", train, folder, error=StateError, config=small(*WITH_MEMORY), auto_resume=True)
    assert doorstep.load_policy(folder).num_inputs == 94


def test_an_update_that_is_not_finite_leaves_the_older_checkpoint(tmp_path):
    def poison(record):
        if record.update == 3:
            torch.nn.init.constant_(runs[0].network.critic.weight, torch.nan)

    runs, how = [], {"config": small("num_updates=9", "checkpoint_every=2"), "on_update": poison}
    says = r"its data is in .*nonfinite_batch.safetensors"
    refuses(says, train, tmp_path, error=NonFiniteLossError, on_begin=runs.append, **how)
    assert (updates_of(tmp_path), load_checkpoint(tmp_path / CHECKPOINT).update) == ([1, 2, 3], 2)
    assert resume(tmp_path, num_updates=4).updates == 4


def test_a_folder_is_of_one_run_at_a_time_and_must_have_one_to_resume(tmp_path):
    refuses(r"has no checkpoint.safetensors to resume", resume, tmp_path)
    assert not list(tmp_path.iterdir())
    refused, again = [], functools.partial(train, auto_resume=True)

    def begin_others(record):
        if record.update == 2:
            begin = {train: {"config": small()}, resume: {"num_updates": 9}, again: {"config": small()}}
            of_folder = {"error": StateError, "argument": "folder"}
            for call, given in begin.items():
                refuses(r"another run goes on in .*wait until", call, tmp_path, **of_folder, **given)
                refused.append(call)

    train(tmp_path, config=small("checkpoint_every=1"), on_update=begin_others)
    assert len(refused) == 3
    assert updates_of(tmp_path) == [1, 2, 3, 4]
    assert resume(tmp_path, num_updates=5).updates == 5


# ---- Files


@pytest.fixture
def saved(tmp_path):
    (trainer, _), path = rolled_out(), tmp_path / CHECKPOINT
    save_checkpoint(path, trainer.checkpoint())
    assert load_checkpoint(path).config == trainer.config
    assert_equal_tensors(load_checkpoint(path), trainer.checkpoint())
    return path


def test_damaged_and_other_files_are_refused(saved):
    whole = saved.read_bytes()
    assert_flipped_bits_are_refused(saved, load_checkpoint, r"checkpoint\.safetensors", most=200)
    others = [b"\x80\x04.", b"\xff" * 64, b"\x02" + b"\0" * 7 + b"{}", b"\x04" + b"\0" * 7 + b"null"]
    for data in (*(whole[:size] for size in (0, 7, 100, 5000, -1)), *others):
        saved.write_bytes(data)
        refuses(r"checkpoint\.safetensors is (no checkpoint|damaged)", load_checkpoint, saved, error=StateError)
    configs = [{"config": config} for config in ({"unknown": 1}, {"seed": -1}, [], None)]
    counters = [("update", "x"), ("update", -1), ("world_steps", 1.5), ("reward_function", 3), ("seconds", None)]
    counters += [("seconds", float("nan")), ("seconds", 10**400)]
    for change, message in (
        ({"format": 2, "version": "9.1.0"}, "has format 2, written by doorstep 9.1.0; this one reads 1"),
        *((change, "has a config that this version refuses") for change in configs),
        *(({name: value}, f"this version refuses: {name} is") for name, value in counters),
    ):
        saved.write_bytes(whole)
        change_metadata(saved, METADATA_KEY, **change)
        refuses(message, load_checkpoint, saved, error=StateError)


def test_a_checkpoint_of_another_shape_or_other_rules_is_refused_by_name_and_changes_nothing(saved):
    for changes, name in (
        (["network.widths=[16,8]"], "network.encoder.3.weight has shape"),
        ([*WITH_MEMORY], "network.memory.weight_ih has shape"),
        (["simulator.num_worlds=4"], "simulator.num_worlds is 4 here, and"),
        (["simulator.num_agents=3"], "simulator.num_agents is 3 here, and"),
        (["simulator.episode_length=30"], ""),
    ):
        trainer = Trainer(small(*changes))
        before = trainer.checkpoint()
        with pytest.raises(StateError, match=f"does not fit: {name}" if name else "episode_length is 20"):
            trainer.restore(load_checkpoint(saved))
        assert_equal_tensors(trainer.checkpoint(), before)
        refuses(None, resume, saved.parent, error=StateError, num_updates=9, **split_changes(changes))


TENSORS_THAT_DO_NOT_FIT = {  # None: absent; numbers: all of them
    "network.encoder.0.weight": (None, torch.zeros(94), torch.zeros(()), torch.zeros(16, 94).double()),
    "network.actor.weight": (None, torch.zeros(19, 7), torch.zeros(19)),
    "network.critic_encoder.0.weight": (torch.zeros(16, 94),),
    "observation_moments.mean": (None, torch.zeros(93), torch.zeros(94)),
    "optimizer.0.exp_avg": (None, torch.zeros(5)),
    "optimizer.1.step": (None, torch.zeros(2)),
    "rollout.starts": (None, torch.zeros(16)),
    "run.generator": (None, torch.zeros(5056), torch.full((5056,), 255, dtype=torch.uint8)),
    "run.worlds": (None, *(torch.zeros(shape, dtype=torch.uint8) for shape in ((), (0, 5), (3, 9), (6, 9)))),
    "value_moments.weight": (None, torch.zeros(3).double(), torch.tensor(torch.nan).double()),
    "levels.weights": (None, 0, -1),
    "levels.rates.episodes": (None, -1),
    "retries.num_failed": (None, 1, -1),  # of saves that are none
    "retries.num_candidates": (None, 1),
    "retries.is_retry": (None, 1),
}
SAYS = {"levels": "levels have weights or rates there that are negative", "retries": "retries cannot go on from it"}


def test_tensors_that_do_not_fit_are_refused(tmp_path):
    trainer, _ = rolled_out(*RETRYING, "levels=curated", "curriculum.type=learnability")
    checkpoint, path = trainer.checkpoint(), tmp_path / CHECKPOINT
    for name, wrong in TENSORS_THAT_DO_NOT_FIT.items():
        for given in wrong:
            is_number = isinstance(given, int)
            tensor = torch.full_like(checkpoint.tensors[name], given) if is_number else given
            tensors = {**checkpoint.tensors, name: tensor}
            bad = replace(checkpoint, tensors={key: value for key, value in tensors.items() if value is not None})
            refuses(SAYS[name.partition(".")[0]] if is_number else None, trainer.restore, bad, error=StateError)
            assert_equal_tensors(trainer.checkpoint(), checkpoint)
            if name.startswith(("network.encoder", "network.actor", "observation_moments")):
                refuses(f"does not fit: {name} ", save_checkpoint, path, bad, error=StateError)


def test_a_trainers_policy_keeps_its_weights_and_its_log_is_that_of_the_file(tmp_path):
    trainer = train(tmp_path, config=small("num_updates=2"))
    assert json.loads(json.dumps([record.to_dict() for record in trainer.log])) == read_log(tmp_path / LOG)
    policy, seen = trainer.policy, np.linspace(-1, 1, 94, dtype=np.float32)
    before = policy.forward(seen)
    trainer.update()
    assert np.array_equal(policy.forward(seen), before)
    assert not np.array_equal(trainer.policy.forward(seen), before)


def test_a_full_disk_names_a_log(tmp_path):
    log = JsonLines(tmp_path / LOG)
    with open("/dev/full", "wb") as device:
        os.dup2(device.fileno(), log._file.fileno())
    refuses(r"No space left.*log.jsonl", log.write, Trainer(small()).update(), error=OSError)
    log.close()


def test_a_run_begins_with_what_another_one_learned_also_in_other_levels():
    first, _ = rolled_out()
    for changes in (("simulator.num_worlds=3", "ppo.num_minibatches=1", "seed=5"), ("levels=curated",)):
        second = Trainer(small(*changes))
        second.begin_with(first.checkpoint())
        checkpoint = second.checkpoint()
        assert (checkpoint.update, checkpoint.world_steps) == (0, 0)
        for part in ("network", "value_moments", "observation_moments"):
            learned = checkpoint.part(part)
            assert learned
            assert all(torch.equal(tensor, first.checkpoint().part(part)[name]) for name, tensor in learned.items())
        second.update()
    with pytest.raises(StateError, match=r"the checkpoint does not fit: network\."):
        Trainer(small("network.widths=[4]")).begin_with(first.checkpoint())


def test_a_function_that_rewards_a_run_is_needed_again(tmp_path):
    def double(step):
        return 2 * step.rewards

    train(tmp_path, config=small("num_updates=1"), reward=double)
    with pytest.raises(StateError, match=r"is rewarded by the function .*double, which it does not contain"):
        resume(tmp_path, num_updates=2)
    assert resume(tmp_path, reward=double, num_updates=2).updates == 2
    terms = doorstep.Rewards(goal=3)
    assert resume(tmp_path, reward=terms, num_updates=3).config.reward == terms
    refuses(r"reward is 3; it must be doorstep.levels.Rewards", train, tmp_path / "bad", config=small(), reward=3)
