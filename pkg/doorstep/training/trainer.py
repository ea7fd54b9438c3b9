"""`Trainer`: a training run in memory. `train()`: one in a folder, which can be interrupted and resumed."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, final

import torch

from doorstep._arguments import refuse, showing
from doorstep._copies import Owner
from doorstep._level_table import is_reference
from doorstep._reward import RewardFunction
from doorstep.errors import StateError
from doorstep.policy import Policy
from doorstep.training.acting import make_actor
from doorstep.training.checkpoint import Checkpoint, check_checkpoint, misfit, named
from doorstep.training.config import TrainingConfig
from doorstep.training.distributed import Ranks
from doorstep.training.errors import TrainingError
from doorstep.training.graphs import recorded
from doorstep.training.level_sampler import LevelSampler
from doorstep.training.levels import TrainingLevels, arenas_of, levels_of
from doorstep.training.logs import Record, summarize_episodes
from doorstep.training.networks import ActorCritic
from doorstep.training.normalization import RunningMoments, make_observation_moments
from doorstep.training.ppo import Learner
from doorstep.training.retries import Retries
from doorstep.training.rollout import Rollout
from doorstep.training.trained import stored_policy
from doorstep.training.worlds import Worlds

LEAST_VALUE_DEVIATION = 1e-4
Function = TypeVar("Function", bound=Callable[..., Any])


def under_no_mode(function: Function) -> Function:
    """The function outside of `inference_mode()` and `no_grad()`, wherever it is called."""
    return torch.inference_mode(False)(function)  # type: ignore[no-any-return]


@contextmanager
def _torch_threads(number: int | None) -> Iterator[None]:
    """PyTorch's number of threads, which holds for the whole process, as it was before afterwards; None: unchanged."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@final
class Trainer(Owner, remedy="make another one of its config, and restore() its checkpoint()"):
    """A run: worlds, a network, and what it learned so far.

    >>> from doorstep.training import Trainer, TrainingConfig
    >>> trainer = Trainer(TrainingConfig().changed("simulator.num_worlds=8", "ppo.num_minibatches=1"))
    >>> record = trainer.update()
    >>> record.update, record.world_steps
    (1, 256)
    >>> checkpoint = trainer.checkpoint()
    >>> later = Trainer(checkpoint.config)
    >>> later.restore(checkpoint)
    >>> later.update().losses == trainer.update().losses
    True
    >>> [record.update for record in trainer.log], trainer.policy
    ([1, 2], Policy(94 inputs, 7 layers))

    With several ranks, all make a trainer of the same config, and call its methods together. Each steps its share of
    the worlds; networks and records are the same on all.

    Attributes:
        config: of the run, all ranks together.
        reward_function: what is learned from in place of the rewards of the worlds: a function of a step's tensors, as
            environments take it; None: those of the worlds.
        ranks: the processes of the run.
        network: what is trained.
        worlds: where it acts, this rank's share of them.
        updates: how many were made.
        world_steps: steps of worlds so far.
        seconds: that `update()` took so far.
        log: the records of the updates that it made, in order.
        policy: a `doorstep.Policy` of what was learned so far, with a copy of the weights; a StateError of a network
            that sees pixels.

    Raises:
        ArgumentError, DeviceError, OutOfMemoryError: as `doorstep.Simulator`; or the levels are refused; or the number
            of worlds is not a multiple of the number of ranks.
        OSError: the file with the levels cannot be read.
    """

    __repr__ = showing("updates", "world_steps", "seconds")

    @under_no_mode
    def __init__(
        self, config: TrainingConfig, ranks: Ranks | None = None, reward_function: RewardFunction | None = None
    ) -> None:
        if not isinstance(config, TrainingConfig):
            refuse("config", "a doorstep.training.TrainingConfig", config)
        if not isinstance(ranks, (Ranks, type(None))):
            refuse("ranks", "None or a doorstep.training.Ranks", ranks)
        self.config = config
        self.reward_function = reward_function
        self.ranks = ranks = ranks or Ranks()
        arenas = arenas_of(config)
        self.worlds = worlds = Worlds(
            config.worlds, ranks, levels_of(arenas), config.reward, reward_function, config.num_critic_inputs
        )
        levels = self._levels = TrainingLevels(arenas, worlds.device)
        self._sampler = None if is_reference(config.levels) else LevelSampler(config, levels, worlds)
        self._retries = Retries(config, worlds, ranks) if config.experience.retries else None
        with _torch_threads(config.num_threads):
            self.network = make_network(config, worlds.shape).to(worlds.device)
        self.updates, self.world_steps, self.seconds = 0, 0, 0.0
        self.log: list[Record] = []
        self._learner = Learner(config, self.network, ranks)
        self._generator = torch.Generator(worlds.device).manual_seed(config.seed)
        self._actor = make_actor(config, self.network, self._learner.evaluate, self._generator, ranks)
        self._rollout = Rollout(config, worlds, levels, self._retries, self.network.memory_size, ranks)
        self._value_moments = RunningMoments((), config.ppo.value_decay, LEAST_VALUE_DEVIATION).to(worlds.device)
        self._observation_moments = make_observation_moments(config, worlds.shape)
        if self._observation_moments is not None:
            self._observation_moments.to(worlds.device)
        runs_on_host = self._retries is not None or reward_function is not None
        is_recorded = config.experience.cuda_graph and not runs_on_host
        self._step_worlds = recorded(self._step_worlds_once, worlds.device, self._generator, is_recorded)
        if config.experience.staggered:
            worlds.stagger()

    @under_no_mode
    def update(self) -> Record:
        """Gathers a rollout and learns from it.

        Raises:
            NonFiniteLossError: a loss or gradient is not finite.
            LostRankError: another rank has ended, or does not answer.
            TrainingError: the curriculum returned something else than weights, or `worlds.after_step` would be recorded
                into a CUDA graph.
        """
        if self.worlds.after_step and self.config.experience.cuda_graph and self.worlds.device.type == "cuda":
            message = "worlds.after_step is a function, which a CUDA graph would not call in every step"
            raise TrainingError(message, hint="set experience.cuda_graph=false")
        with _torch_threads(self.config.num_threads), torch.autocast(self.worlds.device.type, enabled=False):
            return self._update()

    def _update(self) -> Record:
        begin = time.perf_counter()
        self._collect()
        self._rollout.judge(self._learner.evaluate, self._value_moments, is_evaluated=self._actor.evaluates)
        progress = min(self.updates / self.config.num_updates, 1)
        losses = self._learner.update(self._rollout.sequences(), progress, self._generator)
        episodes = summarize_episodes(self._rollout, self._levels, self.config.simulator.num_agents, self.ranks)
        success, levels = None, {}
        if self._sampler is not None:
            levels = self._sampler.update(self._rollout, self.ranks)
            success = self._sampler.success()
        seconds = time.perf_counter() - begin
        self.updates += 1
        self.world_steps += self.config.steps_per_update
        self.seconds += seconds
        record = Record(
            update=self.updates,
            world_steps=self.world_steps,
            seconds=self.seconds,
            world_steps_per_second=self.config.steps_per_update / seconds,
            losses={**losses, "explained_variance": self._rollout.explained_variance},
            success=success,
            levels=levels,
            **vars(episodes),
        )
        self.log.append(record)
        return record

    @property
    @under_no_mode
    def policy(self) -> Policy:
        if self.config.sees_pixels:
            raise StateError("the network sees pixels, which no doorstep.Policy can evaluate")
        tensors = {name: tensor.cpu() for name, tensor in named(self._learned()).items()}
        return stored_policy(Checkpoint(self.config, self.updates, self.world_steps, self.seconds, tensors)).policy()

    def _collect(self) -> None:
        self._rollout.begin(self._observation_moments)
        self._step_worlds()

    def _step_worlds_once(self) -> None:
        first_step = self.updates * self.config.experience.num_steps
        self._rollout.collect(self._actor, first_step, self._observation_moments, self._generator)

    # ---- Stopping and going on

    @under_no_mode
    def checkpoint(self) -> Checkpoint:
        """Everything that the run needs to go on, as copies; the same on all ranks.

        Raises:
            TrainingError: the weights of the ranks have come to differ.
        """
        self._check_equal_weights()
        optimizer = self._learner.optimizer.state_dict()["state"]
        parts = {**self._parts(), **{f"optimizer.{index}": entry for index, entry in optimizer.items()}}
        copies = {name: tensor.detach().clone() for name, tensor in named(parts).items()}
        function = "" if self.reward_function is None else name_of(self.reward_function)
        return Checkpoint(self.config, self.updates, self.world_steps, self.seconds, copies, reward_function=function)

    def _parts(self) -> dict[str, Mapping[str, torch.Tensor]]:
        """The tensors of a checkpoint by part and name, without those of the optimiser, which begins without any. What
        each rank has of its own is that of all."""
        retries = {} if self._retries is None else self._retries.state_dict()
        return {
            **self._learned(),
            "levels": {} if self._sampler is None else self._sampler.state_dict(),
            "retries": {name: self.ranks.gather(tensor).flatten(0, 1) for name, tensor in retries.items()},
            "rollout": {
                "starts": self.ranks.gather(self._rollout.starts[-1]).flatten(0, 1),
                "memory": self.ranks.gather(self._rollout.memory[-1]).flatten(0, 1),
            },
            "run": {"worlds": self.worlds.save(), "generator": self._generator.get_state()},
        }

    def _learned(self) -> dict[str, Mapping[str, torch.Tensor]]:
        """The parts of a checkpoint that `begin_with()` takes."""
        moments = self._observation_moments
        return {
            "network": self.network.state_dict(),
            "value_moments": self._value_moments.state_dict(),
            "observation_moments": {} if moments is None else moments.state_dict(),
        }

    @under_no_mode
    def restore(self, checkpoint: Checkpoint) -> None:
        """Goes on from a checkpoint, of any number of ranks. On the CPU, with the same versions and numbers of threads
        and ranks, all that follows has the bits of the run that made it.

        Raises:
            ArgumentError: it is no `Checkpoint`.
            StateError: it is of another network, or of other worlds or levels, or has numbers that no run has. Nothing
                has changed.
        """
        check_checkpoint(checkpoint)
        for name in ("num_worlds", "num_agents"):
            here, there = (getattr(config.simulator, name) for config in (self.config, checkpoint.config))
            if here != there:
                hint = "a run keeps its worlds; Trainer.begin_with() takes what was learned to others"
                raise misfit(f"simulator.{name} is {here:,} here, and it is {there:,} there", hint)
        checkpoint.check({**self._parts(), **self._optimizer_parts(checkpoint)}, {"run.worlds"})
        checkpoint.check_finite()
        self._check_generator(checkpoint.tensors["run.generator"])
        if self._sampler is not None:
            self._sampler.check(checkpoint)
        with self.ranks.together():
            if self._retries is not None:
                self._retries.check(checkpoint)
            self.worlds.restore(checkpoint.tensors["run.worlds"])
        self._load_learned(checkpoint)
        if self._sampler is not None:
            self._sampler.restore(checkpoint)
        if self._retries is not None:
            self._retries.restore(checkpoint)
        own = self.ranks.rows(self.config.num_rows)
        self._rollout.starts[-1] = checkpoint.tensors["rollout.starts"][own]
        self._rollout.memory[-1] = checkpoint.tensors["rollout.memory"][own]
        self._generator.set_state(checkpoint.tensors["run.generator"])
        self._restore_optimizer(checkpoint)
        self.updates, self.world_steps = checkpoint.update, checkpoint.world_steps
        self.seconds = checkpoint.seconds

    @under_no_mode
    def begin_with(self, checkpoint: Checkpoint) -> None:
        """Takes the network and the running moments of a checkpoint, and nothing else: worlds, schedules and the
        optimiser begin anew, and may be others.

        Raises:
            ArgumentError: it is no `Checkpoint`.
            StateError: it is of another network, or has numbers that are not finite. Nothing has changed.
        """
        check_checkpoint(checkpoint)
        checkpoint.check(self._learned())
        checkpoint.check_finite()
        self._load_learned(checkpoint)

    def _load_learned(self, checkpoint: Checkpoint) -> None:
        self.network.load_state_dict(checkpoint.part("network"))
        self._value_moments.load_state_dict(checkpoint.part("value_moments"))
        if self._observation_moments is not None:
            self._observation_moments.load_state_dict(checkpoint.part("observation_moments"))

    def _check_generator(self, state: torch.Tensor) -> None:
        try:
            torch.Generator(self.worlds.device).set_state(state)
        except RuntimeError as error:
            raise misfit(f"run.generator is not the state of a random generator: {error}") from error

    def _restore_optimizer(self, checkpoint: Checkpoint) -> None:
        state = self._learner.optimizer.state_dict()
        count = len(state["param_groups"][0]["params"])
        parts = [checkpoint.part(f"optimizer.{index}") for index in range(count)]
        # the optimizer keeps and changes the tensors that it is given
        state["state"] = {i: {name: tensor.clone() for name, tensor in part.items()} for i, part in enumerate(parts)}
        self._learner.optimizer.load_state_dict(state)

    def _optimizer_parts(self, checkpoint: Checkpoint) -> dict[str, Mapping[str, torch.Tensor]]:
        """The moments of Adam, of parameters of which the checkpoint has any."""
        parts = ((f"optimizer.{index}", parameter) for index, parameter in enumerate(self.network.parameters()))
        moments = ("exp_avg", "exp_avg_sq")
        return {
            part: {"step": torch.zeros((), dtype=torch.float32), **dict.fromkeys(moments, parameter)}
            for part, parameter in parts
            if checkpoint.part(part)
        }

    def _check_equal_weights(self) -> None:
        checksum = 0
        for tensor in self.network.state_dict().values():
            checksum = zlib.crc32(tensor.cpu().numpy(), checksum)
        if len(self.ranks.gather(torch.tensor(checksum, device="cpu")).unique()) > 1:
            raise TrainingError(
                "the processes of the run have come to have different weights",
                hint="resume with processors of one kind, and the same versions and number of threads on all",
            )


def name_of(function: RewardFunction) -> str:
    """For people: where a function is defined."""
    kind = function if hasattr(function, "__qualname__") else type(function)
    return f"{kind.__module__}.{kind.__qualname__}"


def make_network(config: TrainingConfig, shape: tuple[int, ...]) -> ActorCritic:
    """The network before training, on the CPU; its weights follow from the config's seed. The caller's random numbers
    stay as they are, on every device."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(config.seed)
        return ActorCritic(config.network, shape, config.num_critic_inputs)
