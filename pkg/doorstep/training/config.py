"""`TrainingConfig`: everything that decides a training run, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, final

from doorstep._arguments import check_weights, refuse
from doorstep._configs import Config, Integer, Number, PolymorphicConfig, Registry, registered
from doorstep._configs.changes import apply_changes, split_changes
from doorstep._level_table import is_reference
from doorstep._native import MAX_SEED
from doorstep._observations import BY_NAME, OBSERVATIONS, Parts, PartsRule, flat_size, part_names
from doorstep.config import SimulatorConfig
from doorstep.levels import GeneratedLevel, Level, Rewards
from doorstep.levels.choice import find_levels
from doorstep.levels.field import PlayedLevels
from doorstep.levels.reward_terms import RewardTerms

MAX_COUNT = 2**31 - 1
MAX_UNITS = 2**16

# Agents in a batch up to which the library evaluates an actor alone, and PyTorch all values afterwards, in one batch,
# faster than PyTorch evaluates both in every step. Measured on one core with 2 x 128 units: rollouts take 0.75 of the
# time at 8 to 32 agents, as long at 128 to 256 (64 with an LSTM), 1.3 at 512.
NATIVE_ROWS = 64


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(PolymorphicConfig):
    """The network that all agents share. Use one of its subclasses.

    Pixels go through convolutions before the hidden layers; that follows from the simulator's cameras.
    """

    registry = Registry("network")

    widths: Annotated[tuple[int, ...], Integer(1, MAX_UNITS), "Units of each hidden layer."] = (128, 128)
    activation: Annotated[Literal["relu", "tanh", "silu"], "After each hidden layer."] = "relu"
    layer_norm: Annotated[bool, "Normalise the units of each hidden layer before the activation."] = True


@registered
@final
@dataclass(frozen=True, kw_only=True)
class MLPNetwork(NetworkConfig):
    """Hidden layers alone."""

    type: ClassVar[str] = "mlp"

    separate_critic: Annotated[bool, "Values have hidden layers of their own, instead of those of the actor."] = False


@registered
@final
@dataclass(frozen=True, kw_only=True)
class LSTMNetwork(NetworkConfig):
    """Hidden layers, and a memory after them that lasts for an episode."""

    type: ClassVar[str] = "lstm"

    memory: Annotated[int, Integer(1, MAX_UNITS), "Units of the LSTM."] = 64


@final
@dataclass(frozen=True, kw_only=True)
class ExperienceConfig(Config):
    """How experience is gathered.

    Agents observe how many steps remain, so the value of a state is that of the steps that are left, and nothing
    follows the last one: time_limit="terminal". With "bootstrap" the value of the final observation is added.
    """

    num_steps: Annotated[int, Integer(1, MAX_COUNT), "Steps of every world between two updates."] = 32
    retries: Annotated[
        float,
        Number(low=0, high=0.5),
        "Share of the episodes that begin in the middle of one that failed after an agent had reached the last room. "
        "Logs do not count them.",
    ] = 0.0
    staggered: Annotated[bool, "Begin with worlds at different times of their episodes."] = True
    time_limit: Annotated[
        Literal["terminal", "bootstrap"],
        "What follows an episode that ran out of steps: nothing, or what its final observation is worth.",
    ] = "terminal"
    inference: Annotated[
        Literal["auto", "native", "torch"],
        "Evaluates the network while worlds are stepped: doorstep.Policy, on the CPU, or PyTorch; "
        "auto: native on the CPU; for more than 64 agents only where a doorstep.Policy computes values too: in "
        "float32, of a critic without hidden layers of its own.",
    ] = "auto"
    normalize_observations: Annotated[bool, "Scale each observed number by its running mean and deviation."] = True
    cuda_graph: Annotated[bool, "On a GPU, record the steps of a rollout once, and replay them."] = True


@final
@dataclass(frozen=True, kw_only=True)
class PPOConfig(Config):
    """How the network learns from experience, by proximal policy optimisation (Schulman et al., 2017)."""

    gamma: Annotated[float, Number(low=0, high=1), "What a reward is worth a step earlier."] = 0.998
    gae_lambda: Annotated[float, Number(low=0, high=1), "Of generalised advantage estimation."] = 0.95
    clip_range: Annotated[
        float, Number(low=0), "How far the probability of an action may move in an update, as a ratio."
    ] = 0.2
    num_epochs: Annotated[int, Integer(1, MAX_COUNT), "Passes over the data of a rollout."] = 1
    num_minibatches: Annotated[int, Integer(1, MAX_COUNT), "Parts of a pass, a step of the optimiser each."] = 8
    chunk_length: Annotated[
        int,
        Integer(1, MAX_COUNT),
        "Steps through which gradients flow back in time, for networks with memory; divides num_steps.",
    ] = 8
    learning_rate: Annotated[float, Number(low=0), "Of Adam."] = 2e-3
    final_learning_rate: Annotated[
        float | None, Number(low=0), "At the last update, reached linearly; none: the learning rate stays."
    ] = 2e-4
    entropy_coefficient: Annotated[float, Number(low=0), "Of the entropy bonus."] = 0.005
    final_entropy_coefficient: Annotated[
        float | None, Number(low=0), "At the last update, reached linearly; none: the coefficient stays."
    ] = 3e-4
    value_coefficient: Annotated[float, Number(low=0), "Of the loss of values."] = 0.5
    clip_value_loss: Annotated[bool, "Limit how far values move in an update, by clip_range."] = False
    max_gradient_norm: Annotated[float, Number(low=0), "Longer gradients are scaled down to it."] = 0.5
    value_decay: Annotated[
        float,
        Number(low=0, high=0.999999),
        "Of the running mean and deviation that normalise values, from one update to the next.",
    ] = 0.99


@dataclass(frozen=True, kw_only=True)
class CurriculumConfig(PolymorphicConfig):
    """How likely worlds draw each level. Use one of its subclasses, or one of yours, see `register_curriculum()`."""

    registry = Registry("curriculum", "register_curriculum")

    window: Annotated[
        int, Integer(2, MAX_COUNT), "Episodes of a level after which an older one weighs 1/e in its success rate."
    ] = 50


@registered
@final
@dataclass(frozen=True, kw_only=True)
class UniformCurriculum(CurriculumConfig):
    """All levels are equally likely."""

    type: ClassVar[str] = "uniform"


@registered
@final
@dataclass(frozen=True, kw_only=True)
class LearnabilityCurriculum(CurriculumConfig):
    """Levels that are neither solved nor hopeless are more likely."""

    type: ClassVar[str] = "learnability"

    uniform_share: Annotated[
        float, Number(low=0, high=1), "Share of the draws in which all levels are equally likely."
    ] = 0.2


@final
@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Config):
    """Everything that decides a training run.

    >>> from doorstep.training import TrainingConfig
    >>> config = TrainingConfig().changed(num_updates=50, num_worlds=256, learning_rate=5e-4)
    >>> config.simulator.num_worlds, config.ppo.learning_rate
    (256, 0.0005)
    >>> config.changed("network.type=lstm").network
    LSTMNetwork(widths=(128, 128), activation='relu', layer_norm=True, memory=64)
    >>> TrainingConfig.from_json(config.to_json()) == config
    True

    Actors see the simulator's `observations`; with "by_name" and without cameras these are the default ones, and with
    cameras they are pixels. Critics see `critic_observations` too, which policies do not need. Small networks gain
    little from more threads of PyTorch than one, and threads that wait for each other are many times slower where other
    programs use the cores; results depend on their number in the last bits.

    Raises:
        ArgumentError: a value is out of range, or parts contradict each other; the message names the field.
    """

    simulator: Annotated[
        SimulatorConfig, "The worlds. With cameras the network sees their pixels, otherwise its `observations`."
    ] = field(default_factory=lambda: SimulatorConfig(256))
    levels: Annotated[
        str | tuple[Level | GeneratedLevel, ...],
        PlayedLevels(),
        "What is played: reference, room_types, curated, or the path of a file with levels, which the config then has; "
        "in Python all that a Simulator takes. Sets simulator.max_levels.",
    ] = "reference"
    level_weights: Annotated[
        tuple[float, ...] | None,
        Number(low=0),
        "How likely each level is, relative to their sum; a curriculum multiplies them. None: all are equally likely.",
    ] = None
    reward: Annotated[
        Rewards | None, RewardTerms(), "What agents are rewarded for, in place of the rewards of the levels."
    ] = None
    critic_observations: Annotated[
        Parts | None,
        PartsRule(),
        "Parts that critics see beside what actors see, such as physics. Critics then have hidden layers of their own.",
    ] = None
    curriculum: Annotated[CurriculumConfig, "How likely worlds draw each level."] = field(
        default_factory=UniformCurriculum
    )
    network: Annotated[NetworkConfig, "What is trained."] = field(default_factory=MLPNetwork)
    experience: Annotated[ExperienceConfig, "How experience is gathered."] = field(default_factory=ExperienceConfig)
    ppo: Annotated[PPOConfig, "How it is used."] = field(default_factory=PPOConfig)
    num_updates: Annotated[int, Integer(1, MAX_COUNT), "Rollouts, and as many updates."] = 4000
    seed: Annotated[
        int, Integer(0, MAX_SEED), "Of the first weights, the actions and the order of data; worlds have their own."
    ] = 0
    precision: Annotated[
        Literal["float32", "bfloat16"], "Of the network while it learns; bfloat16 only where that is safe (autocast)."
    ] = "float32"
    compile: Annotated[bool, "Compile the network with torch.compile."] = False
    num_threads: Annotated[
        int | None, Integer(1, 1024), "Threads of PyTorch while the run computes; none: those that it has."
    ] = 1
    checkpoint_every: Annotated[int, Integer(1, MAX_COUNT), "Updates between two checkpoints."] = 50

    def _check(self) -> None:
        simulator, experience = self.simulator, self.experience
        if not simulator.auto_reset:
            refuse("simulator.auto_reset", "True", False, "training steps worlds whose episodes follow each other")
        if simulator.has_flat_observations == self.sees_pixels:
            observations = BY_NAME if self.sees_pixels else OBSERVATIONS
            object.__setattr__(self, "simulator", simulator.replace(observations=observations))
        if self.critic_observations is not None:
            self._check_critic(self.critic_observations)
        if self.sees_pixels and experience.time_limit == "bootstrap":
            refuse("experience.time_limit", "'terminal' with cameras, which have no view of what was last", "bootstrap")
        if is_reference(self.levels) and not isinstance(self.curriculum, UniformCurriculum):
            refuse("curriculum", "'uniform' with levels='reference', which is one level", self.curriculum)
        if is_reference(self.levels) and self.level_weights is not None:
            refuse("level_weights", "none with levels='reference', which is one level", self.level_weights)
        if self.level_weights is not None:
            check_weights("level_weights", self.level_weights, len(find_levels(self.levels)))
        if experience.num_steps % self.chunk_length:
            requirement = f"a divisor of experience.num_steps, which is {experience.num_steps}"
            refuse("ppo.chunk_length", requirement, self.ppo.chunk_length)
        if self.ppo.num_minibatches > self.num_sequences:
            requirement = f"at most the number of sequences in a rollout, {self.num_sequences}"
            refuse("ppo.num_minibatches", requirement, self.ppo.num_minibatches)
        if experience.inference == "native" and (self.sees_pixels or simulator.device != "cpu"):
            refuse("experience.inference", "'torch' or 'auto' with cameras or on a GPU", "native")

    def _check_critic(self, observations: Parts) -> None:
        if self.sees_pixels:
            refuse("critic_observations", "none with cameras", observations)
        seen = [part for part in part_names(observations) if part in part_names(self.simulator.observations)]
        if seen:
            requirement = "parts that simulator.observations does not have"
            refuse("critic_observations", requirement, observations, f"critics see {seen[0]!r} too, as actors do")
        if not self.num_critic_inputs:
            refuse("critic_observations", "parts that have values with simulator.num_agents=1", observations)

    @property
    def worlds(self) -> SimulatorConfig:
        """The rules of the worlds that a run steps: what critics see comes last in their observations."""
        if self.critic_observations is None:
            return self.simulator
        observations = (*self.simulator.observations, *self.critic_observations)
        return self.simulator.replace(observations=observations)

    @property
    def num_critic_inputs(self) -> int:
        """Numbers of an observation that only the critic sees, the last ones."""
        return flat_size(self.critic_observations or (), self.simulator.num_agents)

    @property
    def sees_pixels(self) -> bool:
        """Whether the network sees what cameras show."""
        return self.simulator.cameras is not None

    @property
    def infers_natively(self) -> bool:
        """Whether the library's own code evaluates the network in rollouts."""
        if self.experience.inference == "auto":
            is_faster = self.judges_natively or self.num_rows <= NATIVE_ROWS
            return is_faster and self.simulator.device == "cpu" and not self.sees_pixels
        return self.experience.inference == "native"

    @property
    def judges_natively(self) -> bool:
        """Whether that code gives log-probabilities and values as well, so that nothing is evaluated again."""
        has_separate_critic = isinstance(self.network, MLPNetwork) and self.network.separate_critic
        return self.precision == "float32" and not has_separate_critic and not self.num_critic_inputs

    @property
    def num_rows(self) -> int:
        """Agents in all worlds."""
        return self.simulator.num_worlds * self.simulator.num_agents

    @property
    def steps_per_update(self) -> int:
        """Steps of worlds in a rollout."""
        return self.experience.num_steps * self.simulator.num_worlds

    @property
    def chunk_length(self) -> int:
        """Steps that the update evaluates in sequence: those of `ppo` with memory, else one."""
        return self.ppo.chunk_length if isinstance(self.network, LSTMNetwork) else 1

    @property
    def num_sequences(self) -> int:
        """Independent sequences of `chunk_length` steps in the data of a rollout."""
        return self.steps_per_update * self.simulator.num_agents // self.chunk_length

    def changed(self, *changes: str, **values: Any) -> TrainingConfig:
        """The config with other values of some fields, such as gamma=0.99, or, as the command line has them,
        "gamma=0.99" and "network.widths=64,64".

        A field is named by its path, or by its own name if no other field has it; of a part some fields may be given
        as files have them, simulator={"num_worlds": 16}, or another one. All changes are made at once; of two
        for one field the later counts. Another "network.type" begins with its defaults, and other `levels` without
        `level_weights`.

        Raises:
            ArgumentError: a change has no "=", names no field, or its value is refused.
        """
        given = {**split_changes(changes), **values}
        if "levels" in given:
            given = {"level_weights": None, **given}
        return apply_changes(self, given)
