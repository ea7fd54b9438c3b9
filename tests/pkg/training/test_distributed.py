"""Runs of several processes learn what one process learns, and end together.

Processes are connected by gloo over the loopback interface; what they do is in `rank_scenarios.py`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.training import rank_scenarios  # noqa: E402
from tests.pkg.training.runs import WITH_MEMORY, equal_bits, small  # noqa: E402

from doorstep._run_log import CONFIG, LOG  # noqa: E402
from doorstep._safetensors import read_arrays, split  # noqa: E402
from doorstep.levels import curated  # noqa: E402
from doorstep.training import Ranks, Trainer, TrainingError, load_checkpoint, read_log, train  # noqa: E402
from doorstep.training.distributed import ConnectedRanks, described, device_of_rank, error_of  # noqa: E402
from doorstep.training.ppo import own_sequences  # noqa: E402
from doorstep.training.run import CHECKPOINT, LOCK, NONFINITE_BATCH, NONFINITE_BATCH_OF_RANK  # noqa: E402
from doorstep.training.worlds import Worlds  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 120  # that processes may take on a busy machine; they take a few


@contextlib.contextmanager
def processes(scenario: str, folder: Path, count: int = 2) -> Iterator[list[subprocess.Popen[str]]]:
    """The ranks of a scenario. At the end all are gone."""
    folder.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [sys.executable, "-m", rank_scenarios.__name__, scenario, str(folder)]
    started = []
    try:
        for rank in range(count):
            own = {name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()}
            started.append(
                subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env={**os.environ, **own},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def outcomes(scenario: str, folder: Path, count: int = 2) -> list[Any]:
    """What each rank of a scenario found."""
    with processes(scenario, folder, count) as started:
        ended = [(*process.communicate(timeout=SECONDS), process.returncode) for process in started]
    assert [code for _, _, code in ended] == [0] * count, ended
    return [json.loads(output) for output, _, _ in ended]


def rank_of(rank: int, count: int) -> ConnectedRanks:
    """A rank that reaches no others."""
    ranks = ConnectedRanks.__new__(ConnectedRanks)
    ranks.rank, ranks.count = rank, count
    return ranks


# ---- What they learn


def numbers_of(record: dict[str, Any]) -> list[float]:
    return [record["mean_return"] or 0.0, *record["rooms_one"], *record["rooms_all"], *record["losses"].values()]


def test_two_processes_learn_what_one_learns(tmp_path: Path) -> None:
    found = outcomes("curves", tmp_path)
    threads = [thread for one in found for thread in one["threads"]]
    assert not any("gloo" in thread for thread in threads)  # they would abort processes that end
    for kind in rank_scenarios.KINDS:
        config = rank_scenarios.config_of(kind)
        trainer, expected = rank_scenarios.learn(config, Ranks())
        assert [one[kind]["worlds"] for one in found] == [4, 4]
        assert [one[kind]["offset"] - config.simulator.world_offset for one in found] == [0, 4]
        assert any(record["episodes"] for record in expected)
        for rank in (0, 1):
            for record, other in zip(expected, found[rank][kind]["records"], strict=True):
                assert (record["world_steps"], record["episodes"]) == (other["world_steps"], other["episodes"])
                assert numbers_of(other) == pytest.approx(numbers_of(record), rel=1e-3, abs=1e-5), (kind, rank)

        one, two = trainer.checkpoint().tensors, load_checkpoint(tmp_path / f"{kind}.safetensors").tensors
        assert one.keys() == two.keys()
        assert equal_bits(one["run.generator"], two["run.generator"])
        for name in one:
            if name.partition(".")[0] in ("network", "value_moments", "observation_moments", "rollout"):
                torch.testing.assert_close(two[name], one[name], rtol=1e-3, atol=1e-4, msg=f"{kind}: {name}")


@pytest.mark.slow
def test_an_interrupted_run_of_two_processes_goes_on_with_its_bits(tmp_path: Path) -> None:
    """Also where only the last process was asked to stop; and with another number of processes."""
    assert outcomes("interruptions", tmp_path) == [[3, 6], [3, 6]]
    whole, parts = (load_checkpoint(tmp_path / name / CHECKPOINT).tensors for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    for name in whole:
        assert equal_bits(whole[name], parts[name]), name
    assert [record["update"] for record in read_log(tmp_path / "parts" / LOG)] == [1, 2, 3, 4, 5, 6]

    checkpoint = load_checkpoint(tmp_path / "third.safetensors")
    alone = Trainer(checkpoint.config)
    alone.restore(checkpoint)
    for _ in range(3):
        alone.update()
    for name, tensor in alone.checkpoint().part("network").items():
        torch.testing.assert_close(tensor, whole[f"network.{name}"], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3), (3, 2), (6, 1), (2, 6)])
def test_worlds_are_restored_by_any_number_of_ranks(before: int, after: int) -> None:
    config = small("simulator.world_offset=3").simulator
    whole = doorstep.Simulator.from_config(config)
    saves = []
    for rank in range(before):
        ranks = rank_of(rank, before)
        shard = doorstep.Simulator.from_config(ranks.shard(config))
        for sim in (whole, shard) if rank == 0 else (shard,):
            for _ in range(25):  # episodes have 20 steps
                sim.step()
        saves.append(torch.frombuffer(bytearray(shard.save()), dtype=torch.uint8))
    for _ in range(10):
        whole.step()
    hashes = []
    for rank in range(after):
        worlds = Worlds(config, rank_of(rank, after))
        worlds.restore(torch.stack(saves))
        for _ in range(10):
            worlds.sim.step()
        hashes.append(worlds.sim.world_hashes())
    assert np.concatenate(hashes).tolist() == whole.world_hashes().tolist()


@pytest.mark.parametrize(("before", "after"), [(1, 2), (3, 2)])
def test_worlds_with_levels_are_restored_by_any_number_of_ranks(before: int, after: int) -> None:
    config = small().simulator
    levels = tuple(curated().values())[:3]

    def played(count: int, saves: Any, steps: int) -> list[Worlds]:
        shards = [Worlds(config, rank_of(rank, count), levels) for rank in range(count)]
        for shard in shards:
            if saves is not None:
                shard.restore(saves)
            for _ in range(steps):
                shard.sim.step()
        return shards

    saved = [torch.frombuffer(bytearray(shard.sim.save()), dtype=torch.uint8) for shard in played(before, None, 25)]
    (whole,) = played(1, None, 35)
    hashes = [shard.sim.world_hashes() for shard in played(after, torch.stack(saved), 10)]
    assert np.concatenate(hashes).tolist() == whole.sim.world_hashes().tolist()


def test_saves_that_no_run_makes_are_refused() -> None:
    config = small().simulator
    worlds = Worlds(config, Ranks())
    before = worlds.sim.hash()
    save = worlds.save()
    for saves in (save.expand(4, -1), save.expand(2, -1), save[:, :-1], torch.zeros(3, 9, dtype=torch.uint8)):
        with pytest.raises(doorstep.StateError):
            worlds.restore(saves)
        assert worlds.sim.hash() == before


@pytest.mark.parametrize("count", [1, 2, 3])
def test_ranks_divide_every_minibatch_among_themselves(count: int) -> None:
    rows, chunks = 6, 4
    whole = torch.arange(chunks * rows).reshape(chunks, rows)
    chosen = torch.randperm(chunks * rows, generator=torch.Generator().manual_seed(1))[:11]
    found = []
    for rank in range(count):
        ranks = rank_of(rank, count)
        own = whole[:, ranks.rows(rows)].flatten()  # the numbers of this rank's sequences in the whole
        found += own[own_sequences(chosen, rows, ranks)].tolist()
    assert sorted(found) == sorted(chosen.tolist())


def test_staggered_shards_are_those_of_the_whole() -> None:
    config = small().simulator
    whole = Worlds(config, Ranks())
    whole.stagger()
    hashes = []
    for rank in range(3):
        shard = Worlds(config, rank_of(rank, 3))
        shard.stagger()
        hashes += shard.sim.world_hashes().tolist()
    assert hashes == whole.sim.world_hashes().tolist()


# ---- How they end


def test_what_one_rank_raises_is_raised_on_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[int, bytes] = {}
    failing, other = rank_of(1, 2), rank_of(0, 2)
    monkeypatch.setattr(failing, "_largest", lambda number: number)
    monkeypatch.setattr(failing, "_broadcast_from", told.setdefault)
    with pytest.raises(LookupError, match="no such thing"), failing.together():
        raise LookupError("no such thing")
    monkeypatch.setattr(other, "_largest", lambda number: 2)
    monkeypatch.setattr(other, "_broadcast_from", lambda rank, data: told[rank])
    with pytest.raises(TrainingError, match="rank 1 of the run failed: LookupError: no such thing"), other.together():
        pass


@pytest.mark.slow
def test_what_fails_on_one_process_fails_on_all(tmp_path: Path) -> None:
    """Also where the disk is full when the first one writes a checkpoint, and where the loss of one is not finite."""
    first, second = outcomes("failures", tmp_path)
    expected = {
        "indivisible": "ArgumentError: simulator.num_worlds is 7; it must be a multiple of the number of processes",
        "device": "ArgumentError: simulator.device is 'cuda:1'; it must be 'cpu' or 'cuda' with several processes",
        "begun": "",
        "again": "ArgumentError: .* has a run already",
        "shape": "StateError: the checkpoint does not fit: network.encoder.3.weight",
        "rules": "StateError: episode_length is 20 in the save and 30",
        "full": "OSError: .*No space left on device: 'checkpoint'",
    }
    for name, message in expected.items():
        assert re.match(message or "$", first[name]), first[name]
        assert second[name] == first[name]
    assert first["callback"] == "LookupError: no such thing"
    assert second["callback"].startswith("TrainingError: rank 0 of the run failed: LookupError: no such thing")

    assert load_checkpoint(tmp_path / "full" / CHECKPOINT).update == 2
    assert sorted(os.listdir(tmp_path / "full")) == [LOCK, CHECKPOINT, CONFIG, LOG]

    for found, name in ((first, NONFINITE_BATCH), (second, NONFINITE_BATCH_OF_RANK.format(1))):
        assert found["nan"].startswith("NonFiniteLossError: the loss is nan")
        assert name in found["nan"]
    batches = [
        read_arrays(*split((tmp_path / "poisoned" / name).read_bytes()))
        for name in (NONFINITE_BATCH, NONFINITE_BATCH_OF_RANK.format(1))
    ]
    assert [bool(np.isfinite(batch["advantages"]).all()) for batch in batches] == [True, False]


@pytest.mark.parametrize("how", ["killed", pytest.param("stopped", marks=pytest.mark.slow)])
def test_a_lost_process_ends_the_others(tmp_path: Path, how: str) -> None:
    with processes("loss", tmp_path / how) as (first, _):
        output, errors = first.communicate(timeout=SECONDS)
    assert first.returncode == 0, errors
    assert json.loads(output).startswith("LostRankError: another process of the run has ended, or did not answer")


@pytest.mark.slow
def test_torchrun_restarts_a_run_that_lost_a_process(tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    with subprocess.Popen(
        [*torchrun, "-m", rank_scenarios.__name__, "restarted", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},  # or new processes find old ones' addresses
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as agent:
        try:
            _, errors = agent.communicate(timeout=SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                agent.send_signal(signal.SIGTERM)  # torchrun ends its processes
    assert agent.returncode == 0, errors
    assert load_checkpoint(tmp_path / "run" / CHECKPOINT).update == 6
    assert [record["update"] for record in read_log(tmp_path / "run" / LOG)] == [1, 2, 3, 4, 5, 6]


# ---- One process


def test_one_process_joins_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    ranks = Ranks.join()
    assert (ranks.rank, ranks.count, ranks.is_first) == (0, 1, True)
    assert not torch.distributed.is_initialized()
    numbers = torch.arange(3.0)
    ranks.sum(numbers)
    assert numbers.tolist() == [0, 1, 2]
    assert ranks.gather(numbers).tolist() == [[0, 1, 2]]
    assert (ranks.any(True), ranks.any(False), ranks.broadcast(b"x")) == (True, False, b"x")
    with pytest.raises(KeyError), ranks.together():
        raise KeyError


def test_a_run_that_begins_or_goes_on(tmp_path: Path) -> None:
    config = small("num_updates=2", *WITH_MEMORY)
    begun = train(tmp_path / "run", config=config, auto_resume=True)
    assert begun.updates == 2
    longer = config.changed("num_updates=4", "ppo.learning_rate=1e-4")
    assert train(tmp_path / "run", config=longer, auto_resume=True).updates == 4
    assert load_checkpoint(tmp_path / "run" / CHECKPOINT).config == longer
    with pytest.raises(doorstep.StateError, match=r"does not fit: network\.memory"):
        train(tmp_path / "run", config=config.changed("network.memory=16"), auto_resume=True)


def test_without_other_processes_there_is_an_error_that_names_them(
    monkeypatch: pytest.MonkeyPatch, run_python: Any
) -> None:
    code = """
import os
os.environ.update(WORLD_SIZE="2", RANK="1")
from doorstep.training import LostRankError, Ranks
try:
    Ranks.join()
except LostRankError as error:
    print(error)
"""
    output = run_python(code)
    assert "cannot reach each other" in output
    assert "MASTER_ADDR" in output
    assert "torchrun" in output


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "folder/file"),
        doorstep.StateError("damaged", hint="take another"),
        doorstep.OutOfMemoryError("too many"),
    ],
)
def test_errors_of_other_ranks_are_errors_of_the_same_class(error: Exception) -> None:
    found = error_of(described(error), 3)
    assert type(found) is type(error)
    assert str(found) == str(error)


def test_other_errors_of_other_ranks_name_the_rank() -> None:
    found = error_of(described(LookupError("what")), 3)
    assert isinstance(found, TrainingError)
    assert str(found) == "rank 3 of the run failed: LookupError: what"


def test_the_device_of_a_rank_follows_from_its_place() -> None:
    assert device_of_rank("cpu") == "cpu"
    with pytest.raises(doorstep.ArgumentError, match=r"simulator\.device is 'cuda:0'"):
        device_of_rank("cuda:0")
