"""Runs of several processes learn what one process learns, and end together.

Processes are connected by gloo over the loopback interface; what they do is in `rank_scenarios.py`.
"""

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.forks import server  # noqa: E402
from tests.pkg.training import rank_scenarios  # noqa: E402
from tests.pkg.training.runs import assert_equal_tensors, equal_bits, small  # noqa: E402

from doorstep._run_log import CONFIG, LOG  # noqa: E402
from doorstep._safetensors import read_arrays, split  # noqa: E402
from doorstep.levels import curated  # noqa: E402
from doorstep.training import Ranks, Trainer, load_checkpoint, read_log  # noqa: E402
from doorstep.training.distributed import ConnectedRanks  # noqa: E402
from doorstep.training.run import CHECKPOINT, LOCK, NONFINITE_BATCH, NONFINITE_BATCH_OF_RANK  # noqa: E402
from doorstep.training.worlds import Worlds  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 250  # that processes may take on a busy machine, less than the limit of a test; they take a few
SCENARIO = f"import runpy; runpy.run_module({rank_scenarios.__name__!r}, run_name='__main__')"


def end(fork, status):
    if not status.cache_info().currsize:  # nobody has waited for it
        with contextlib.suppress(ProcessLookupError):
            fork.send_signal(signal.SIGKILL)
        status()


@contextlib.contextmanager
def processes(scenario, folder, count=2):
    """The ranks of a scenario, each as a function that waits for its end: its status, output and errors. At the end all
    are gone. They meet as those of torchrun do, at a port that is open already."""
    folder.mkdir(exist_ok=True)
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": store.port}
    shared |= {"TORCHELASTIC_USE_AGENT_STORE": True, "TORCHELASTIC_RESTART_COUNT": 0}
    with contextlib.ExitStack() as stack:

        def start(rank):
            own = {name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()}
            files = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)]
            how = {"environment": {**os.environ, **own}, "stdout": files[0], "stderr": files[1], "folder": ROOT}
            fork = server("torch").start(SCENARIO, scenario, str(folder), **how)
            status = functools.cache(lambda: fork.wait(SECONDS))
            stack.callback(end, fork, status)
            return lambda: (status(), *(os.pread(file.fileno(), 1 << 20, 0).decode() for file in files))

        yield [start(rank) for rank in range(count)]


def outcomes(scenario, folder, count=2):
    """What each rank of a scenario found."""
    with processes(scenario, folder, count) as started:
        ended = [wait() for wait in started]
    assert [code for code, _, _ in ended] == [0] * count, ended
    return [json.loads(output) for _, output, _ in ended]


def rank_of(rank, count):
    """A rank that reaches no others."""
    ranks = ConnectedRanks.__new__(ConnectedRanks)
    ranks.rank, ranks.count = rank, count
    return ranks


# ---- What they learn


def numbers_of(record):
    return [record["mean_return"] or 0.0, *record["rooms_one"], *record["rooms_all"], *record["losses"].values()]


def test_two_processes_learn_what_one_learns(tmp_path):
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
def test_an_interrupted_run_of_two_processes_goes_on_with_its_bits(tmp_path):
    """Also where only the last process was asked to stop; and with another number of processes."""
    assert outcomes("interruptions", tmp_path) == [[3, 6], [3, 6]]
    whole, parts = (load_checkpoint(tmp_path / name / CHECKPOINT) for name in ("whole", "parts"))
    assert_equal_tensors(whole, parts)
    assert [record["update"] for record in read_log(tmp_path / "parts" / LOG)] == [1, 2, 3, 4, 5, 6]

    checkpoint = load_checkpoint(tmp_path / "third.safetensors")
    alone = Trainer(checkpoint.config)
    alone.restore(checkpoint)
    for _ in range(3):
        alone.update()
    for name, tensor in alone.checkpoint().part("network").items():
        torch.testing.assert_close(tensor, whole.tensors[f"network.{name}"], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("levels", [(), tuple(curated().values())[:3]], ids=["plain", "levels"])
def test_worlds_are_staggered_and_restored_by_any_number_of_ranks_as_by_one(levels):
    config = small("simulator.world_offset=3").simulator

    def played(count, saves, steps):
        """The hashes of all worlds, and their saves."""
        shards = [Worlds(config, rank_of(rank, count), levels) for rank in range(count)]
        for shard in shards:
            if saves is None:
                shard.stagger()
                assert len(np.unique(shard.sim.steps_remaining[:, 0, 0])) == shard.sim.num_worlds
            else:
                shard.restore(saves)
            for _ in range(steps):
                shard.sim.step()
        found = [torch.frombuffer(bytearray(shard.sim.save()), dtype=torch.uint8) for shard in shards]
        return np.concatenate([shard.sim.world_hashes() for shard in shards]).tolist(), torch.stack(found)

    begun = {count: played(count, None, 25) for count in (1, 2, 3, 6)}  # episodes have 20 steps
    assert len({tuple(hashes) for hashes, _ in begun.values()}) == 1
    expected, _ = played(1, None, 35)
    for before, after in ((1, 2), (2, 1), (2, 3), (3, 2), (6, 1), (2, 6)):
        assert played(after, begun[before][1], 10)[0] == expected


# ---- How they end


@pytest.mark.slow
def test_what_fails_on_one_process_fails_on_all(tmp_path):
    """Also where the disk is full when the first one writes a checkpoint, and where the loss of one is not finite."""
    first, second = outcomes("failures", tmp_path)
    expected = {
        "indivisible": "ArgumentError: simulator.num_worlds is 7; it must be a multiple of the number of processes",
        "device": "ArgumentError: simulator.device is 'cuda:1'; it must be 'cpu' or 'cuda' with several processes",
        "begun": "",
        "again": "ArgumentError: .* has a run already",
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

    finite = []
    for found, name in ((first, NONFINITE_BATCH), (second, NONFINITE_BATCH_OF_RANK.format(1))):
        assert found["nan"].startswith("NonFiniteLossError: the loss is nan")
        assert name in found["nan"]
        batch = read_arrays(*split((tmp_path / "poisoned" / name).read_bytes()))
        finite.append(bool(np.isfinite(batch["advantages"]).all()))
    assert finite == [True, False]


@pytest.mark.parametrize("how", ["killed", pytest.param("stopped", marks=pytest.mark.slow)])
def test_a_lost_process_ends_the_others(tmp_path, how):
    with processes("loss", tmp_path / how) as (first, _):
        status, output, errors = first()
    assert status == 0, errors
    assert json.loads(output).startswith("LostRankError: another process of the run has ended, or did not answer")


@pytest.mark.slow
def test_torchrun_restarts_a_run_that_lost_a_process(tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    command, pipe = [*torchrun, "-m", rank_scenarios.__name__, "restarted", str(tmp_path)], subprocess.PIPE
    how = {"cwd": ROOT, "stdout": pipe, "stderr": pipe, "text": True, "start_new_session": True}
    how["env"] = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}  # or new processes find old ones' addresses
    with subprocess.Popen(command, **how) as agent:
        try:
            _, errors = agent.communicate(timeout=SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                agent.send_signal(signal.SIGTERM)  # torchrun ends its processes
    assert agent.returncode == 0, errors
    assert load_checkpoint(tmp_path / "run" / CHECKPOINT).update == 6
    assert [record["update"] for record in read_log(tmp_path / "run" / LOG)] == [1, 2, 3, 4, 5, 6]


def test_without_other_processes_there_is_an_error_that_names_them(run_python):
    code = """
import os
import torch
os.environ.update(WORLD_SIZE="2", RANK="1")
from doorstep.training import LostRankError, Ranks
try:
    Ranks.join()
except LostRankError as error:
    print(error)
"""
    output = run_python(code)
    assert all(words in output for words in ("cannot reach each other", "MASTER_ADDR", "torchrun"))
