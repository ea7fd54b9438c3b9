"""What all environments share: a simulator whose worlds are seen as rows, in the three ways of beginning an episode."""

from __future__ import annotations

import dataclasses
import functools
import operator
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._action_forms import ACTION_FORMS, NUM_ACTIONS, ActionForm
from doorstep._arguments import check_choice, check_flag, check_integer, meant, refuse, refuse_keywords, showing
from doorstep._level_table import REFERENCE
from doorstep._native import ACTIONS, MAX_AGENTS, MAX_SEED, MAX_WORLDS, TENSORS
from doorstep._observations import BY_NAME, OBSERVATIONS, AnyObservations, ObservationsRule, Parts, PartsRule, flat_size
from doorstep._reward import AppliedReward, split_reward
from doorstep.config import SimulatorConfig, as_config
from doorstep.envs._arrays import Arrays, as_array, host_arrays
from doorstep.envs._bounds import bounds_of
from doorstep.envs._ring import Output
from doorstep.errors import ArgumentError, StateError
from doorstep.event import StepEvent
from doorstep.levels.choice import table_levels
from doorstep.levels.files import AnyLevel
from doorstep.render.drawing import Drawing
from doorstep.simulator import Simulator
from doorstep.tensor import Tensor, lasting_view

AgentsView: TypeAlias = Literal["joint", "rows"]
EnvObservations: TypeAlias = AnyObservations | Literal["pixels"]
Autoreset: TypeAlias = Literal["next_step", "same_step", "disabled"]

AGENTS_VIEWS = ("joint", "rows")
PIXELS = "pixels"
AUTORESETS = ("next_step", "same_step", "disabled")
RENDER_MODES = ("rgb_array",)
# Of `Simulator.render`. The time goes into rays: one for each pixel takes a third of the time of four.
RENDER_OPTIONS = {"camera": "overview", "agent": None, "width": 640, "height": 480, "samples": 1, "shadows": True}

# What a copy of Rooms has of the original, besides its simulator.
KEPT = (
    "_agents_are_rows",
    "_ended",
    "_follows_agents",
    "_make_arrays",
    "_needs_start",
    "_parts",
    "_render_options",
    "_reward_function",
    "action_form",
    "autoreset",
    "copies",
    "longest_episode",
    "num_critic_inputs",
    "num_rows",
    "rows_per_world",
)

LEVEL_ARGUMENTS = ("levels", "level_weights", "reward")
# Rules that environments decide, and what to use in their place
DECIDED = {
    "num_worlds": "pass num_envs",
    "auto_reset": "pass autoreset_mode",
    "actions": "here an action always is its four components",
}

FLAT_OBSERVATION = "observations"
# Tensors of one agent's observation; each has a final_ twin.
OBSERVATION_PARTS = tuple(
    row.name.removeprefix("final_")
    for row in TENSORS
    if row.name.startswith("final_") and row.name != f"final_{FLAT_OBSERVATION}"
)


@final
class Element(NamedTuple):
    """A part of a row's observation."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@final
class Outcome(NamedTuple):
    """What a step did, by row. Each has memory of its own, except observations with `copy=False`.

    Attributes:
        observation: an array, or a dictionary of arrays.
        rewards: float32.
        terminations: bool; where the task ended the episode.
        truncations: bool; where the time ended it.
        ended: bool; either of the two.
    """

    observation: Any
    rewards: Any
    terminations: Any
    truncations: Any
    ended: Any


@final
class Rooms:
    """A simulator whose worlds, or whose agents, are the rows of every array.

    `agents="joint"`: a row is a world; its observations have a dimension of agents, its action is the actions of all
    agents side by side, its reward is the mean of the agents' rewards. `agents="rows"`: a row is an agent, those of
    world 0 first. Worlds of one agent are rows of agents in both.

    Without a seed among the rules one is drawn: `config.seed` tells it.

    critic_observations: parts that come last in observations, and that only critics shall see; the environment takes
    them apart. `num_critic_inputs`: how many numbers they are.

    On the CPU they are pickled and copied whole.

    `autoreset="same_step"`: a step that ends an episode begins the next one. `"next_step"`: the following step does,
    and its actions have no effect on these rows. `"disabled"`: the caller begins episodes.
    """

    _running: StepEvent | None
    num_critic_inputs: int = 0

    def __init__(
        self,
        num_rows: int,
        *,
        agents: AgentsView = "joint",
        actions: ActionForm = "multi_discrete",
        observations: EnvObservations = OBSERVATIONS,
        critic_observations: Parts | None = None,
        autoreset: Autoreset = "next_step",
        copy: bool = True,
        arrays: Callable[[str], Arrays] = host_arrays,
        render_options: Mapping[str, Any] | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> None:
        check_choice("agents", agents, AGENTS_VIEWS)
        self.action_form = check_choice("actions", actions, ACTION_FORMS)
        check_choice("autoreset", autoreset, AUTORESETS)
        self.autoreset = autoreset
        self.copies = check_flag("copy", copy)
        self.num_rows = check_integer("num_envs", num_rows, 1, MAX_WORLDS)
        refuse_unknown(rules or {}, DECIDED)
        rules, played = split_levels(with_seed(rules or {}))
        played["reward"], self._reward_function = split_reward(played.get("reward"))
        config = _config_of(self.num_rows, agents, observations, autoreset, rules)
        if critic_observations is not None:
            config, self.num_critic_inputs = _with_critic(config, critic_observations)
        self._agents_are_rows = agents == "rows" or config.num_agents == 1
        self._follows_agents = agents == "rows"
        self._render_options = check_render_options(render_options, config.num_agents)
        self.rows_per_world = config.num_agents if self._agents_are_rows else 1
        self._parts = _parts_of(config, shows_pixels=_are_pixels(observations))
        self.longest_episode = longest_episode(config, played.get("levels", ()))
        self._make_arrays = arrays
        self._needs_start = True
        self._show(Simulator.from_config(config, **played))
        self._ended: Any = self._no_rows()  # by row: the last step ended the episode

    def __getstate__(self) -> dict[str, Any]:
        if self._running is not None:
            raise StateError("a step is running", hint="wait for its outcome before you copy the environment")
        return {"simulator": self._simulator, **{name: getattr(self, name) for name in KEPT}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        simulator = state.pop("simulator")
        self.__dict__.update(state)
        self._show(simulator)

    # ---- What it is ----

    @property
    def simulator(self) -> Simulator:
        """The simulator that steps the worlds.

        Who asks for it may do anything with it: from then on its own memory has the observations, and steps copy them.
        """
        self._return_outputs()
        return self._simulator

    @property
    def config(self) -> SimulatorConfig:
        """The simulator's rules."""
        return self._simulator.config

    @property
    def device(self) -> str:
        """Where the simulator is: "cpu" or "cuda:K"."""
        return self._simulator.device

    @property
    def num_agents(self) -> int:
        return self._simulator.num_agents

    @property
    def may_have_ended(self) -> bool:
        """Whether an episode ended in the last step. Always true on a GPU, which would have to be waited for."""
        return not self._arrays.may_ask or bool(self._ended.any())

    @property
    def action_sizes(self) -> tuple[int, ...]:
        """How many values each component of a row's action has."""
        of_agent = (NUM_ACTIONS,) if self.action_form == "discrete" else tuple(ACTIONS)
        return of_agent * (self.num_agents // self.rows_per_world)

    @property
    def action_shape(self) -> tuple[int, ...]:
        """Of a row's action: the number of its components; nothing if it is one number."""
        return () if self.action_sizes == (NUM_ACTIONS,) else (len(self.action_sizes),)

    @property
    def elements(self) -> dict[str, Element]:
        """The parts of a row's observation by the names of their tensors."""
        tensors = self._simulator.tensors
        return {name: Element(self._shape_of_rows(tensors[name])[1:], tensors[name].dtype) for name in self._parts}

    def bounds(self, name: str) -> tuple[Any, Any]:
        """Lowest and highest numbers of a part of an observation; they broadcast to its shape."""
        dtype = self._simulator.tensors[name].dtype
        if dtype == np.uint8:
            return 0, 255
        if dtype == np.int32:
            return 0, self.longest_episode
        if name != FLAT_OBSERVATION and name not in OBSERVATION_PARTS:  # of cameras: metres, and parts of normals
            return -np.inf, np.inf
        return bounds_of(
            name,
            num_agents=self.num_agents,
            longest_episode=self.longest_episode,
            has_levels=self.config.max_levels > 0,
            observations=self.config.observations,
        )

    # ---- Episodes ----

    def start(self, seed: int | None = None, rows: Any = None) -> Any:
        """Begins the first episode, or others, and returns all observations.

        Args:
            seed: of the levels; None: the levels that follow.
            rows: booleans by row: only these begin an episode. None: all.
        """
        _ = self._simulator.tensors  # raises ClosedError
        if seed is None and rows is None and self._needs_start and self.config.max_levels:
            seed = self.config.seed  # the levels may be others by now
        if seed is not None:
            if rows is not None:
                refuse("seed", "None if only some worlds are reset", seed)
            seed = check_integer("seed", seed, 0, MAX_SEED)
            self._renew_outputs()
            self._simulator.reset(seed=seed)
        elif rows is not None:
            if self._needs_start:
                hint = "call reset() without a mask first"
                raise StateError("no episode has begun", argument="reset_mask", hint=hint)
            if self._running is not None:
                raise StateError("a step is running", argument="reset_mask", hint="wait for its outcome first")
            worlds = self._worlds_of(rows)
            self._return_outputs()  # the observations of the other worlds stay
            self._simulator.reset(worlds)
        elif not self._needs_start:
            self._renew_outputs()
            self._simulator.reset()
        self._needs_start = False
        self._running = None
        self._ended = self._no_rows() if rows is None else self._ended & ~self._arrays.from_caller(rows)
        return self._observe()

    def step(self, actions: Any) -> Outcome:
        """One step of every world; see the class for those whose episode has ended."""
        idle = self._give(actions)
        self._renew_outputs()
        self._simulator.step()
        return self._read(idle)

    def begin(self, actions: Any) -> StepEvent:
        """Begins a step and returns at once. Next is `finish()`, which reads it, or `start()`, which drops it."""
        self._idle = self._give(actions)
        self._renew_outputs()
        self._running = self._simulator.step_async()
        return self._running

    def finish(self) -> Outcome:
        """What the step did that `begin()` began; waits for its end, but for work on a GPU only the stream waits."""
        if self._running is None:
            raise StateError("no step has begun", hint="begin one first")
        if self._arrays.may_ask:
            self._running.wait()
        self._running = None
        return self._read(self._idle)

    def final_observation(self, ended: Any) -> Any:
        """With "same_step": the last observation of the episodes that ended in this step; 0 in other rows."""
        if FLAT_OBSERVATION not in self._parts and self._parts[0] not in OBSERVATION_PARTS:
            raise StateError("cameras draw no view of the episode that ended", hint='use autoreset "next_step"')
        arrays = self._arrays
        flags = arrays.from_caller(ended)
        finals = {name: arrays.to_caller(arrays.rows_where(view, flags)) for name, view in self._final.items()}
        return self._by_name(finals)

    def final_returns(self) -> Any:
        """float32 by row: the sum of rewards of the last ended episode."""
        return self._arrays.to_caller(self._mean_reward(self._returns))

    def final_lengths(self) -> Any:
        """int32 by row: the steps of the last ended episode."""
        return self._arrays.to_caller(self._arrays.repeat(self._lengths, self.rows_per_world))

    def statistics(self, ended: Any) -> dict[str, Any]:
        """What infos say of the episodes that ended in this step; names of masks begin with an underscore."""
        return {
            "episode_returns": self.final_returns(),
            "_episode_returns": ended,
            "episode_lengths": self.final_lengths(),
            "_episode_lengths": ended,
        }

    def render(self, row: int, **options: Any) -> Any:
        """A picture of a row: its world, or, with `agents="rows"`, that agent from behind."""
        world, agent = divmod(row, self.rows_per_world)
        view = {"camera": "follow" if self._follows_agents else "overview", **self._render_options, **options}
        if self._follows_agents and view["camera"] in ("follow", "agent"):
            view.setdefault("agent", agent)
        return self.render_world(world, **view)

    def render_world(self, world: int, **options: Any) -> Any:
        """A picture of a world, with the environment's options, unless others are given."""
        return self._simulator.render(world, **{**RENDER_OPTIONS, **self._render_options, **options})

    def close(self) -> None:
        self._renews = False
        self._simulator.close()

    # ---- Steps of these ----

    def _give(self, actions: Any) -> Any:
        """Gives the simulator what a step reads; returns by row whether the episode has ended."""
        if self._needs_start:
            raise StateError("no episode has begun", hint="call reset() first")
        if self._running is not None:
            raise StateError("a step is running", hint="wait for its outcome first")
        idle = self._ended
        if self.autoreset == "disabled" and self._arrays.may_ask and bool(idle.any()):
            raise StateError(
                f"the episode of row {np.flatnonzero(idle)[0]} has ended",
                argument="actions",
                hint='call reset(), with options={"reset_mask": mask} for some rows only',
            )
        self._set_actions(actions)
        if self.autoreset == "next_step":
            self._resets[:, 0] = idle[:: self.rows_per_world]
        return idle

    def _show(self, simulator: Simulator) -> None:
        """Views of its tensors by row."""
        self._simulator = simulator
        self._running = None
        self._arrays = arrays = self._make_arrays(simulator.device)
        tensors = simulator.tensors
        self._outputs: list[Output] = []
        self._observers = {name: self._observer(tensors[name]) for name in self._parts}
        self._renews = bool(self._outputs)
        self._final = {
            name: self._by_row(arrays.view(tensors[f"final_{name}"]))
            for name in self._parts
            if f"final_{name}" in tensors
        }
        self._rewards, self._returns = (arrays.view(tensors[name])[..., 0] for name in ("rewards", "episode_returns"))
        function = self._reward_function
        views = {name: functools.partial(arrays.view, tensor) for name, tensor in tensors.items()}
        self._apply = None if function is None else AppliedReward(function, views)
        self._terminations, self._truncations = (
            self._first_agent(arrays.as_bool(arrays.view(tensors[name]))[..., 0])
            for name in ("terminations", "truncations")
        )
        self._lengths = arrays.view(tensors["episode_lengths"])[:, 0]
        self._resets = arrays.view(tensors["resets"])

    def _observer(self, tensor: Tensor) -> Callable[[], Any]:
        """What returns a part of the observations."""
        arrays = self._arrays
        if not self.copies:
            return lasting_view(lambda: self._by_row(arrays.shown(tensor)))
        array = self._by_row(arrays.view(tensor))
        if arrays.redirects and tensor.name in (FLAT_OBSERVATION, *OBSERVATION_PARTS):
            output = Output(array, self._simulator._redirector(tensor.name))
            self._outputs.append(output)
            take = output.take
        else:
            take = arrays.copies_of(array)
        return lambda: arrays.to_caller(take())

    # ---- Observations that the simulator writes into the caller's memory ----
    #
    # As long as nobody else can use the simulator. Otherwise a reset or a tensor of it would meet what a caller has.

    def _renew_outputs(self) -> None:
        """Before whatever writes the observations of all worlds: those that callers have are kept."""
        if not self._renews:
            return
        for output in self._outputs:
            output.renew()
        if not self._renews:  # a signal handler or another thread asked for the simulator meanwhile
            for output in self._outputs:
                output.return_home()

    def _return_outputs(self) -> None:
        """From now on the simulator's own memory has the observations, and they are copied for callers."""
        if not self._renews:
            return
        self._renews = False
        try:
            for output in self._outputs:
                output.return_home()
            self._simulator.refresh()  # callers may have changed what they have
        except BaseException:
            self._renews = True
            raise

    def _by_row(self, array: Any) -> Any:
        """[N, A, ...] by row, without a copy."""
        return array.reshape(self._shape_of_rows(array))

    def _shape_of_rows(self, array: Any) -> tuple[int, ...]:
        return (self.num_rows, *array.shape[2:]) if self._agents_are_rows else tuple(array.shape)

    def _first_agent(self, array: Any) -> Any:
        """What is the same for all agents of a world, [N, A], by row."""
        return array.reshape(self.num_rows) if self._agents_are_rows else array[:, 0]

    def _mean_reward(self, array: Any) -> Any:
        if self._agents_are_rows:
            return self._arrays.copy(array.reshape(self.num_rows))
        # mean(1) gives other bits in each library, and takes ten times as long in numpy.
        total = functools.reduce(operator.add, (array[:, agent] for agent in range(self.num_agents)))
        return total * (1 / self.num_agents)

    def _no_rows(self) -> Any:
        return self._terminations & False

    def _observe(self) -> Any:
        return self._by_name({name: observe() for name, observe in self._observers.items()})

    def _by_name(self, parts: dict[str, Any]) -> Any:
        """A part by itself, if it is the only one."""
        return parts if len(self._parts) > 1 else parts[self._parts[0]]

    def _read(self, idle: Any) -> Outcome:
        arrays = self._arrays
        rewards = self._mean_reward(self._rewards if self._apply is None else self._apply())
        terminations, truncations = arrays.copy(self._terminations), arrays.copy(self._truncations)
        if self.autoreset == "next_step" and (not arrays.may_ask or idle.any()):
            arrays.clear(rewards, idle)
            terminations &= ~idle
            truncations &= ~idle
        self._ended = terminations | truncations
        of_rows = (rewards, terminations, truncations, arrays.copy(self._ended))
        return Outcome(self._observe(), *map(arrays.to_caller, of_rows))

    def _set_actions(self, actions: Any) -> None:
        """The simulator's, by row; as "tuple" also a sequence of arrays, one for each component."""
        if self.action_form == "tuple" and isinstance(actions, (tuple, list)):
            actions = self._arrays.join(actions)
        actions = integers("actions", actions, (self.num_rows, *self.action_shape))
        if self.action_form == "discrete":
            self._arrays.decode(actions, self._simulator.actions)
        elif self.rows_per_world == self.num_agents:
            self._simulator.actions = actions
        else:
            self._simulator.actions = actions.reshape(-1, self.num_agents, len(ACTIONS))

    def _worlds_of(self, rows: Any) -> Any:
        """A mask of rows as the mask of their worlds."""
        flags = as_array("reset_mask", rows.cpu() if hasattr(rows, "cpu") else rows)
        if flags.dtype != np.bool_ or flags.shape != (self.num_rows,):
            refuse("reset_mask", f"booleans of the shape [{self.num_rows}]", f"{flags.dtype} {list(flags.shape)}")
        if not flags.any():
            raise ArgumentError("reset_mask is False everywhere; it must choose a row", argument="reset_mask")
        by_world = flags.reshape(-1, self.rows_per_world)
        mixed = np.flatnonzero(by_world.any(1) != by_world.all(1))
        if mixed.size:
            raise ArgumentError(
                f"reset_mask has some of the agents of world {mixed[0]}; it must have all or none of a world",
                argument="reset_mask",
            )
        return by_world[:, 0]


class OverRooms:
    """What environments show of their rooms."""

    _rooms: Rooms

    __repr__ = showing("_rooms.config.num_worlds", "_rooms.config.num_agents", "_rooms.device")

    @property
    def simulator(self) -> Simulator:
        """The simulator whose worlds these are, for as long as the environment exists.

        On the CPU, steps cost a tenth more once it was asked for: it then has observations of its own.
        """
        return self._rooms.simulator

    @property
    def np_random_seed(self) -> int:
        """The seed of the levels: the one that was given, or drawn where none was."""
        return self._rooms.config.seed

    def close(self) -> None:
        """Closes the simulator."""
        self._rooms.close()


class OverDrawnRooms(OverRooms):
    """Environments whose picture is that of the first world."""

    render_mode: str | None

    def render(self) -> NDArray[np.uint8] | None:
        """With render_mode "rgb_array": a picture of the first world, uint8 [height, width, 3]."""
        if self.render_mode is None:
            return None
        picture: NDArray[np.uint8] = self._rooms.render_world(0)
        return picture


def row_of(observation: Any, row: int) -> Any:
    """One row of an array, or of each array of a dictionary."""
    if isinstance(observation, dict):
        return {name: array[row] for name, array in observation.items()}
    return observation[row]


def integers(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """An array of any library as it is, nested sequences as an array of numpy.

    Raises:
        ArgumentError: it has another shape, or no integers.
    """
    array = value if getattr(value, "dtype", None) is not None else as_array(name, value)
    dtype = array.dtype
    are_integers = dtype.kind in "iu" if isinstance(dtype, np.dtype) else "int" in str(dtype)  # numpy's text is slow
    if tuple(array.shape) != shape or not are_integers:
        refuse(name, f"integers of the shape {list(shape)}", f"{array.dtype} of the shape {list(array.shape)}")
    return array


def check_render_mode(mode: str | None, modes: tuple[str, ...] = RENDER_MODES) -> str | None:
    return None if mode is None else check_choice("render_mode", mode, modes)


def check_render_options(options: Mapping[str, Any] | None, num_agents: int) -> dict[str, Any]:
    """Keywords of `Simulator.render`."""
    options = {} if options is None else options
    if not isinstance(options, Mapping) or not RENDER_OPTIONS.keys() >= options.keys():
        refuse("render_options", f"a dictionary with keys of {', '.join(RENDER_OPTIONS)}", options)
    Drawing(num_agents=num_agents, **{**RENDER_OPTIONS, **options})  # refuses what cannot be drawn
    return dict(options)


def split_levels(rules: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rules of a simulator, and the levels and rewards that it plays."""
    others = {name: rules[name] for name in rules if name not in LEVEL_ARGUMENTS}
    played = {name: rules[name] for name in LEVEL_ARGUMENTS if name in rules}
    if levels := table_levels(played.pop("levels", REFERENCE)):
        played["levels"] = levels
    return others, played


def with_seed(rules: Mapping[str, Any]) -> dict[str, Any]:
    """The rules; if they name no seed, with one that is drawn."""
    drawn = {} if rules.get("seed") is not None else {"seed": secrets.randbelow(MAX_SEED + 1)}
    return {**rules, **drawn}


def refuse_unknown(
    rules: Mapping[str, Any], decided: Mapping[str, str], known: Iterable[str] = LEVEL_ARGUMENTS
) -> None:
    """Refuses keywords as Python does; what to use in place of rules that an environment decides is by their names.

    Raises:
        TypeError: a keyword is no rule of a simulator, or one of those that the environment decides.
    """
    names = {field.name for field in dataclasses.fields(SimulatorConfig)} | set(known)
    allowed = sorted(names - decided.keys())
    for name in rules.keys() - set(allowed):
        for likely in (name, *meant(name, names | decided.keys())):
            if likely in decided:
                raise TypeError(f"__init__() got an unexpected keyword argument {name!r}; {decided[likely]}")
    refuse_keywords("__init__", rules, allowed)


def longest_episode(config: SimulatorConfig, levels: Iterable[AnyLevel]) -> int:
    """The most steps of an episode, whatever level is drawn."""
    lengths = [config.episode_length]
    for level in levels:
        length = level.episode_length or config.episode_length
        lengths.append(length[1] if isinstance(length, tuple) else length)
    return max(lengths)


def parts_of_agent(config: SimulatorConfig) -> tuple[str, ...]:
    """The tensors of an agent's observation."""
    if config.has_flat_observations:
        return (FLAT_OBSERVATION,)
    return tuple(name for name in OBSERVATION_PARTS if name != "partner_observations" or config.num_agents > 1)


def rows_of_worlds(num_worlds: int, rules: Mapping[str, Any]) -> int:
    """The rows of so many worlds where a row is an agent."""
    num_agents = check_integer("num_agents", rules.get("num_agents", SimulatorConfig(1).num_agents), 1, MAX_AGENTS)
    return check_integer("num_envs", num_worlds, 1, MAX_WORLDS // num_agents) * num_agents


def _are_pixels(observations: object) -> bool:
    return isinstance(observations, str) and observations == PIXELS


def _config_of(
    num_rows: int, agents: AgentsView, observations: EnvObservations, autoreset: Autoreset, rules: Mapping[str, Any]
) -> SimulatorConfig:
    shows_pixels = _are_pixels(observations)
    changes = {"auto_reset": autoreset == "same_step", "observations": BY_NAME if shows_pixels else observations}
    config = as_config(1, {**rules, **changes})
    if shows_pixels and config.cameras is None:
        refuse("cameras", 'a doorstep.Cameras with observations="pixels"', None)
    if shows_pixels and autoreset == "same_step":
        refuse(
            "autoreset_mode",
            '"next_step" or "disabled" with observations="pixels"',
            autoreset,
            "cameras draw no view of an episode that ended and was replaced in the same step",
        )
    worlds, rest = divmod(num_rows, config.num_agents if agents == "rows" else 1)
    if rest:
        refuse("num_envs", f'a multiple of num_agents, which is {config.num_agents}, with agents="rows"', num_rows)
    return config.replace(num_worlds=worlds)


def _with_critic(config: SimulatorConfig, critic_observations: Parts) -> tuple[SimulatorConfig, int]:
    """The config whose observations have these parts too, and how many numbers they are."""
    parts = PartsRule().check("critic_observations", critic_observations)
    if not config.has_flat_observations:
        refuse("critic_observations", "None where observations are by name", critic_observations)
    config = config.replace(observations=(*config.observations, *parts))
    return config, flat_size(parts, config.num_agents)


def _parts_of(config: SimulatorConfig, *, shows_pixels: bool) -> tuple[str, ...]:
    if not shows_pixels:
        return parts_of_agent(config)
    assert config.cameras is not None
    return config.cameras.outputs


def refuse_pixels(observations: object) -> None:
    """For environments that show no views of cameras."""
    if observations == PIXELS:
        ObservationsRule().check("observations", observations)
