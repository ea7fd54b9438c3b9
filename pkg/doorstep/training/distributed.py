"""Runs of several processes: each, a rank, steps an equal share of the worlds, and all learn from the data of all.

`torchrun` starts the processes. What a run computes does not depend on their number, up to the rounding of sums:
levels, actions and the order of data follow from the numbers that worlds have in the whole run.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, final

import torch
import torch.distributed

from doorstep._arguments import refuse, showing
from doorstep._environment import environment_integer
from doorstep.config import SimulatorConfig
from doorstep.errors import ERROR_CLASSES, DoorstepError, LibraryError
from doorstep.simulator import Simulator
from doorstep.training.errors import LostRankError, TrainingError

# How long a rank waits for the others. Ranks that end are noticed at once; only one that hangs, or whose machine has
# vanished, takes this long. Longer than what a single rank does while the others wait: it writes checkpoints and logs.
TIMEOUT = timedelta(minutes=10)


class Ranks:
    """The processes of a run. `Ranks()` is a run of one process, for which most of this does nothing;
    `Ranks.join()` are those that torchrun started.

    Methods whose description begins with "Together" are called by all ranks, in the same order.

    >>> from doorstep.training import Ranks, Trainer, preset
    >>> ranks = Ranks.join()
    >>> ranks.rank, ranks.count, ranks.is_first
    (0, 1, True)
    >>> config = preset("default").changed("simulator.num_worlds=8", "ppo.num_minibatches=1")
    >>> Trainer(config, ranks).update().world_steps
    256

    Attributes:
        rank: the number of this process, from 0.
        count: of processes.
    """

    rank: int = 0
    count: int = 1

    __repr__ = showing("rank", "count")

    @staticmethod
    def join() -> Ranks:
        """Together: the processes that torchrun started, or that have a default process group of torch.distributed
        already; one process where neither is the case. The process group lasts until the process ends.

        Raises:
            ArgumentError: a variable that torchrun sets, such as WORLD_SIZE, is no number, or out of range.
            LibraryError: this PyTorch has no torch.distributed.
            LostRankError: the others cannot be reached.
        """
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return ConnectedRanks() if torch.distributed.get_world_size() > 1 else Ranks()
        count = environment_integer("WORLD_SIZE", 1, low=1)
        if count == 1 or environment_integer("RANK", -1, high=count - 1) < 0:
            return Ranks()
        environment_integer("MASTER_PORT", 0, high=2**16 - 1)  # which torch.distributed reads
        connect()
        return ConnectedRanks()

    @property
    def is_first(self) -> bool:
        """Whether this rank writes the files and shows how the run goes."""
        return self.rank == 0

    # ---- Shares

    def rows(self, total: int) -> slice:
        """This rank's share of so many rows, a multiple of the number of ranks."""
        size = total // self.count
        return slice(self.rank * size, (self.rank + 1) * size)

    def shard(self, config: SimulatorConfig) -> SimulatorConfig:
        """The simulator of this rank's share of the worlds, on this rank's device.

        Raises:
            ArgumentError: the number of worlds is not a multiple of the number of ranks, or the device is one GPU for
                several ranks.
        """
        return config

    # ---- Numbers of all ranks

    def sum(self, *tensors: torch.Tensor) -> None:
        """Together: replaces tensors of one dtype and device by their sums over all ranks, which have equal bits on
        each."""

    def any(self, flag: bool) -> bool:
        """Together: whether the flag of any rank is true."""
        return flag

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """Together: the tensors of all ranks, which have one shape and dtype: [count, *shape]."""
        return tensor[None]

    def broadcast(self, data: bytes | None) -> bytes | None:
        """Together: what the first rank passes."""
        return data

    @contextmanager
    def together(self) -> Iterator[None]:
        """Together: a block that fails on all ranks if it fails on one, with the same error."""
        yield


@final
class ConnectedRanks(Ranks):
    """The processes of torch.distributed's default process group."""

    def __init__(self) -> None:
        self.rank = torch.distributed.get_rank()
        self.count = torch.distributed.get_world_size()

    def shard(self, config: SimulatorConfig) -> SimulatorConfig:
        if config.num_worlds % self.count:
            requirement = f"a multiple of the number of processes, which is {self.count}"
            refuse("simulator.num_worlds", requirement, config.num_worlds)
        rows = self.rows(config.num_worlds)
        device = device_of_rank(config.device)
        return config.replace(
            num_worlds=rows.stop - rows.start,
            world_offset=config.world_offset + rows.start,
            device=device,
            num_threads=config.num_threads or threads_of_rank(),
        )

    def sum(self, *tensors: torch.Tensor) -> None:
        total = torch.cat([tensor.reshape(-1) for tensor in tensors])
        reach_others(lambda: torch.distributed.all_reduce(total))
        for tensor, part in zip(tensors, total.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def any(self, flag: bool) -> bool:
        return self._largest(int(flag)) > 0

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.numel():
            return tensor.expand(self.count, *tensor.shape)
        own = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        parts = [torch.empty_like(own) for _ in range(self.count)]
        reach_others(lambda: torch.distributed.all_gather(parts, own))
        return torch.stack(parts).view(tensor.dtype).reshape(self.count, *tensor.shape)

    def broadcast(self, data: bytes | None) -> bytes | None:
        return self._broadcast_from(0, data)

    @contextmanager
    def together(self) -> Iterator[None]:
        failure: Exception | None = None
        try:
            yield
        except LostRankError:
            raise  # it cannot be told to the others, who find out themselves
        except Exception as error:
            failure = error
        failed = self._largest(0 if failure is None else self.rank + 1) - 1
        if failed < 0:
            return
        message = self._broadcast_from(failed, None if failure is None else described(failure))
        assert message is not None
        raise error_of(message, failed) if failure is None else failure

    def _largest(self, number: int) -> int:
        largest = torch.tensor(number, device="cpu")
        reach_others(lambda: torch.distributed.all_reduce(largest, torch.distributed.ReduceOp.MAX))
        return int(largest)

    def _broadcast_from(self, rank: int, data: bytes | None) -> bytes | None:
        size = torch.tensor(-1 if data is None else len(data), device="cpu")
        reach_others(lambda: torch.distributed.broadcast(size, rank))
        if size <= 0:
            return None if size < 0 else b""
        sent = torch.empty(int(size), dtype=torch.uint8, device="cpu")
        if self.rank == rank:
            sent = torch.frombuffer(bytearray(data or b""), dtype=torch.uint8)
        reach_others(lambda: torch.distributed.broadcast(sent, rank))
        return bytes(sent.numpy())


# ---- Connections


def connect() -> None:
    """Makes the default process group of the processes that torchrun started: gloo for tensors on the CPU, NCCL for
    those on GPUs."""
    if not torch.distributed.is_available():
        raise LibraryError("several processes need torch.distributed, which this PyTorch was built without")
    # Its default arguments hold the process group if PyTorch imports it afterwards: then the group's threads outlive
    # `disconnect()`, and abort the process when they release a tensor while Python ends.
    importlib.import_module("torch.distributed.nn")
    keep_to_this_machine()
    has_gpus = torch.cuda.is_available() and torch.distributed.is_nccl_available()
    try:
        torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if has_gpus else "gloo", timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        raise LostRankError(
            f"the processes of the run cannot reach each other: {error}",
            hint="start all with torchrun; set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 where it may restart them, and "
            "GLOO_SOCKET_IFNAME to the network interface that leads to the others",
        ) from error
    atexit.register(disconnect)


def disconnect() -> None:
    """Ends the default process group."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def keep_to_this_machine() -> None:
    """Lets gloo use the loopback interface if all processes are on this machine, whose name may lead nowhere."""
    if environment_integer("LOCAL_WORLD_SIZE", 0) != environment_integer("WORLD_SIZE", 1):
        return
    for _, name in socket.if_nameindex():
        if name in ("lo", "lo0"):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)


def reach_others(call: Callable[[], Any]) -> None:
    """Makes a call of torch.distributed.

    Raises:
        LostRankError: it failed, as it does if a rank has ended, or does not take part within `TIMEOUT`.
    """
    try:
        call()
    except RuntimeError as error:
        raise LostRankError(
            f"another process of the run has ended, or did not answer within {TIMEOUT}",
            hint="resume from the last checkpoint; torchrun --max-restarts does so with --auto-resume",
        ) from error


def device_of_rank(device: str) -> str:
    """ "cuda" and "auto" are the GPU of the rank's number on its machine."""
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return "cpu"
    if device not in ("cuda", "auto"):
        refuse("simulator.device", "'cpu' or 'cuda' with several processes, each of which takes a GPU", device)
    index = environment_integer("LOCAL_RANK", 0)
    torch.cuda.set_device(index)  # where NCCL works
    return f"cuda:{index}"


def threads_of_rank() -> int:
    """This rank's part of the processors that the processes of its machine share."""
    with Simulator(1) as sim:
        return max(1, sim.num_threads // environment_integer("LOCAL_WORLD_SIZE", 1, low=1))


# ---- Errors of other ranks


def described(error: Exception) -> bytes:
    """An error as JSON, for other ranks."""
    if isinstance(error, OSError):
        filename = None if error.filename is None else os.fsdecode(error.filename)
        return json.dumps({"os": [error.errno, error.strerror, filename]}).encode()
    if isinstance(error, DoorstepError):
        return json.dumps({"status": error.status, "text": str(error)}).encode()
    return json.dumps({"text": f"{type(error).__name__}: {error}"}).encode()


def error_of(message: bytes, rank: int) -> Exception:
    """The error of another rank, as this one raises it."""
    values = json.loads(message)
    if "os" in values:
        return OSError(*values["os"])
    if values.get("status"):
        return ERROR_CLASSES[values["status"]](values["text"])
    return TrainingError(f"rank {rank} of the run failed: {values['text']}")
