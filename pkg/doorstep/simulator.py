"""A batch of escape rooms, stepped at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

import doorstep._tensors.callbacks  # noqa: F401  native code would import it in the first step: no Ctrl-C is lost there
from doorstep._arguments import (
    WorldSelection,
    check_bytes,
    check_device,
    check_integer,
    check_slots,
    check_weights,
    check_worlds,
    named,
    nearest,
    refuse,
)
from doorstep._level_table import REFERENCE, is_reference, room_for
from doorstep._native import (
    STREAM_OWN,
    TENSORS,
    DeviceKind,
    EventHandle,
    Session,
    fast_calls,
    give_cameras,
    stage_names,
)
from doorstep._native._generated import ActionCheckName
from doorstep._observations import OBSERVATIONS, AnyObservations
from doorstep._properties import CameraProperties, TensorProperties
from doorstep._streams import CurrentStream, check_stream_on, current_device_index
from doorstep._tensor_map import TENSOR_INDEX, TensorMap
from doorstep.cameras import Cameras, settings_of
from doorstep.config import SimulatorConfig
from doorstep.errors import CopyError
from doorstep.event import StepEvent
from doorstep.health import Health
from doorstep.state import StateFields
from doorstep.tensor import Tensor

# What not every simulator needs is imported where it is used: `import doorstep` does not pay for it.
if TYPE_CHECKING:
    from doorstep.levels import Rewards
    from doorstep.levels.choice import AnyLevels
    from doorstep.levels.files import AnyLevel
    from doorstep.render.camera import CameraPose
    from doorstep.render.objects import Snapshot


@final
class Simulator(TensorProperties, CameraProperties):
    """`num_worlds` escape rooms with `num_agents` agents each, stepped at once.

    The tensors (`actions`, `rewards`, `lidar`, ...) are properties: simulator memory, read and written in place.
    Set `actions`, call `step()`, read the other tensors. A step regenerates the worlds whose episode it ends.

    >>> import doorstep
    >>> sim = doorstep.Simulator(4, seed=7)
    >>> sim
    Simulator(4 worlds, 2 agents, seed 7, cpu)
    >>> sim.actions[:] = (1, 0, 2, 0)    # all agents walk slowly ahead
    >>> sim.step()
    >>> sim.rewards.shape
    (4, 2, 1)
    >>> import numpy
    >>> sim.actions = numpy.ones((4, 2, 4), int)    # copies integers of any dtype and library, also [N * A, 4]
    >>> sim.close()

    Args:
        num_worlds: 1 to 2**30.
        seed: 0 to 2**32 - 1. The same seed gives the same levels.
        device: "cpu"; "cuda:K", an NVIDIA GPU by its number; "cuda", PyTorch's current device if PyTorch uses CUDA,
            else GPU 0; "auto", GPU 0 if it can be used, else the CPU (`doorstep doctor` says why).
        num_agents: agents per world, 1 to 8.
        episode_length: steps of an episode, 1 to 1,000,000.
        auto_reset: regenerate a world within the step that ends its episode.
        world_offset: world i is global world `world_offset + i`: simulators with consecutive offsets are shards of one
            large simulator. Levels depend only on seed, global world and episode. `world_offset + num_worlds` is at
            most 2**32.
        num_threads: threads that step, 1 to 1024; None: as many as this process may use. Results do not depend on it.
        action_check: what happens to an action out of range. "clamp": it becomes the nearest legal value and is
            counted in `health`. "raise": `step()` raises and steps no world. "off": values within +-32767 are applied.
        strict: after an error inside a world (see `health`) the next call raises SimulationError.
        observations: the parts of `observations` and `final_observations`, an agent's numbers side by side, in this
            order: names, or (name, scale) for parts that are multiplied by a number above 0. The names are those of
            `doorstep.OBSERVATIONS`, the default, and "physics", the state field, divided by the reference's numbers.
            "by_name": neither tensor exists; where only the others are read, steps are faster so.
        levels: what worlds play: "reference", the fastest; "room_types", "curated", the path of a file, a level, a
            sequence of these, or a mapping of names to levels. Each world draws one at every reset.
        level_weights: how likely each one is, relative to their sum, not negative and not all zero. None: all are
            equally likely.
        reward: what agents are rewarded for, in place of the rewards of every level that is played, the reference's
            included, and as fast. None: the rewards of the levels.
        max_levels: room for this many levels, 0 to 2**20, if `set_levels()` will give more of them later.
        stream: the CUDA stream that all work is ordered on: a doorstep.cuda.Stream, a torch.cuda.Stream, any object
            with `__cuda_stream__()`, or a CUstream as an integer; the simulator keeps a reference to it. None: at every
            call PyTorch's current stream on the device for that thread, if PyTorch uses CUDA, else a stream that the
            simulator owns. On the CPU, and with "auto", it must be None.
        cameras: adds tensors with what every agent sees: `rgb`, `depth`, `segmentation`, `normals`. None: no cameras.

    Raises:
        ArgumentError: an argument is out of range; the message names it, its value and the range.
        OutOfMemoryError: the memory could not be allocated.
        DeviceError: the device cannot be used: NoDriverError, DriverVersionError, DriverFunctionError, NoDeviceError,
            DeviceBusyError. `device="cuda"` never falls back to the CPU.
        LibraryError: a native library is missing or of another version.
        RendererError: the cameras' renderer cannot be used on this machine.
        ShaderError: the cameras' material does not compile.
    """

    __slots__ = (
        "__weakref__",
        "_config",
        "_device",
        "_interventions",
        "_levels",
        "_renderer",
        "_reward",
        "_session",
        "_set_actions",
        "_set_resets",
        "_state",
        "_step_handle",
        "_tensors",
    )

    @named
    def __init__(
        self,
        num_worlds: int,
        *,
        seed: int = 0,
        device: str = "cpu",
        num_agents: int = 2,
        episode_length: int = 200,
        auto_reset: bool = True,
        world_offset: int = 0,
        num_threads: int | None = None,
        action_check: ActionCheckName = "clamp",
        strict: bool = False,
        observations: AnyObservations = OBSERVATIONS,
        levels: AnyLevels = REFERENCE,
        level_weights: Sequence[float] | NDArray[Any] | None = None,
        reward: Rewards | None = None,
        max_levels: int = 0,
        stream: object = None,
        cameras: Cameras | None = None,
    ) -> None:
        self._reward = None if reward is None else _checked_reward(reward)
        played = [] if is_reference(levels) else _found_levels(levels)
        weights = None
        if level_weights is not None:
            if not played:
                refuse("level_weights", "None without `levels`", level_weights)
            weights = check_weights("level_weights", level_weights, len(played))
        self._config = config = SimulatorConfig(
            num_worlds,
            seed=seed,
            device=device,
            num_agents=num_agents,
            episode_length=episode_length,
            auto_reset=auto_reset,
            world_offset=world_offset,
            num_threads=num_threads,
            action_check=action_check,
            strict=strict,
            observations=observations,
            max_levels=room_for(played, max_levels),
            cameras=cameras,
        )
        settings = native_settings(config, stream)
        current_stream = CurrentStream(settings["device_index"]) if stream is None else None
        self._session = Session(settings, current_stream, stream)
        _make_step_fast()
        # The handle that the builtin `step` steps; 0 on a GPU, where it calls _step_in_turn().
        self._step_handle = 0 if self._session.stream else self._session.handle
        info = self._session.info()
        self._device = "cpu" if info.device_kind == DeviceKind.CPU else f"cuda:{info.device_index}"
        self._tensors = TensorMap(self._session, self._device, config)
        self._set_actions = self._session.setter(TENSOR_INDEX["actions"])
        self._set_resets = self._session.setter(TENSOR_INDEX["resets"])
        self._state = StateFields(self._session, self._device)
        self._renderer = ""
        # resets and restores so far: a recording refuses those that it was not told of
        self._interventions = 0
        self._levels: tuple[AnyLevel, ...] = ()  # see levels()
        try:
            if self._reward is not None:
                from doorstep.levels.native import to_native_rewards

                self._session.set_rewards(to_native_rewards(self._reward))
            if played:
                self.set_levels(played, weights)
                self.reset()
            if self._config.cameras is not None:
                self._give(self._config.cameras)
        except BaseException:
            self.close()
            raise

    @classmethod
    def from_config(
        cls,
        config: SimulatorConfig,
        *,
        levels: AnyLevels = REFERENCE,
        level_weights: Sequence[float] | NDArray[Any] | None = None,
        reward: Rewards | None = None,
        stream: object = None,
    ) -> Simulator:
        """A simulator with these rules; `levels`, `level_weights`, `reward` and `stream` as for `Simulator`.

        >>> import doorstep
        >>> config = doorstep.SimulatorConfig(4, num_agents=3)
        >>> doorstep.Simulator.from_config(config)
        Simulator(4 worlds, 3 agents, seed 0, cpu)

        Raises:
            ArgumentError: `config` is not a SimulatorConfig.
        """
        if not isinstance(config, SimulatorConfig):
            refuse("config", "a doorstep.SimulatorConfig", config)
        fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
        return cls(**fields, levels=levels, level_weights=level_weights, reward=reward, stream=stream)

    def _give(self, cameras: Cameras) -> None:
        made = give_cameras(self._session, settings_of(cameras), cameras.outputs)
        self._tensors.add_cameras(made)
        self._renderer = f"{made.renderer.name.lower()} ({made.device})"

    # ---- Stepping ----

    def step(self) -> None:
        """Steps every world once; other Python threads run meanwhile.

        On a GPU this enqueues the step on the stream and returns; later work on that stream is ordered after it. With
        action_check "raise" it first waits for the stream, to read the actions.

        Raises:
            ArgumentError: action_check is "raise" and an action is out of range. No world was stepped.
            SimulationError: strict, and an earlier step counted an error in `health`. No world was stepped.
            RendererError: the worlds were stepped, but the cameras' views could not be drawn.
        """
        self._session.step()

    def _step_in_turn(self) -> None:
        self._session.step()

    def step_async(self) -> StepEvent:
        """Begins a step and returns at once.

        On the CPU, neither read nor write tensors and state until the event's or the simulator's `wait()` has returned.
        On a GPU, work on the same stream is ordered after the step.
        """
        return StepEvent(EventHandle(self._session.step_async()))

    def wait(self) -> None:
        """Waits for the end of all work begun on the simulator."""
        self._session.wait(None)

    def reset(self, worlds: WorldSelection = None, *, seed: int | None = None) -> None:
        """Regenerates worlds without a step: their rewards and dones become 0, their observations are recomputed.

        It returns nothing: observations are tensors of the simulator.

        >>> import doorstep
        >>> sim = doorstep.Simulator(2, seed=7)
        >>> sim.step()
        >>> sim.reset(seed=8)
        >>> sim.hash() == doorstep.Simulator(2, seed=8).hash(), sim.seed
        (True, 8)

        Args:
            worlds: a boolean mask [N], distinct slots, or None for all.
            seed: 0 to 2**32 - 1, with `worlds` None: from now on the simulator's; all worlds are as in a new simulator
                with this seed and the present levels and weights. Tensors stay the simulator's. None: worlds play the
                levels that follow.

        Raises:
            ArgumentError: an argument is out of range. Nothing has changed.
        """
        if seed is not None:
            if worlds is not None:
                refuse("seed", "None if only some worlds are reset", seed)
            self._begin_anew(seed)
            return
        selection = None if worlds is None else check_worlds(worlds, self.num_worlds)
        if selection is not None and selection.dtype == np.uint8:
            self._session.reset_mask(selection)
        else:
            self._session.reset(selection)
        self._interventions += 1

    def _begin_anew(self, seed: int) -> None:
        """All worlds as in a new simulator with this seed."""
        config = self._config.replace(seed=seed)
        with _twin(config.replace(cameras=None), self.levels, self._weights(), self._reward) as new:
            self.restore(new.save())
        self._config = config

    def _weights(self) -> NDArray[np.float32] | None:
        return self.level_weights.copy_to_host() if self._config.max_levels else None

    def _begin(self, worlds: NDArray[np.int64], seeds: NDArray[np.int64], max_steps: int = 0) -> None:
        """Begins in each of the slots the first episode of a simulator of one world with its seed and these levels.

        max_steps: after which the episodes end at the latest; 0: no such limit.
        """
        self._session.begin(worlds, seeds, max_steps)
        self._interventions += 1

    def _resume(self, world: int, saved: bytes) -> None:
        """As `restore()`, of one world without what is pending in it, also if `auto_reset` was another."""
        self._session.resume(world, saved)
        self._interventions += 1

    def set_levels(self, levels: Sequence[AnyLevel], weights: Sequence[float] | NDArray[Any] | None = None) -> None:
        """Replaces the levels that worlds play: each world draws one at every reset, by its row of `level_weights`.

        Worlds keep the levels that they have until their next reset; `reset()` begins the new ones at once. The draw
        depends only on seed, global world and episode.

        >>> import doorstep
        >>> level = doorstep.levels.curated()["one door"]
        >>> sim = doorstep.Simulator(4, levels=["reference", level], level_weights=(0.5, 0.5))
        >>> sim.set_levels([doorstep.levels.reference(), level], weights=(0, 1))
        >>> sim.reset()
        >>> sim.level_indices[:, 0].tolist()
        [1, 1, 1, 1]
        >>> sim.level_weights[0] = (1, 0)    # world 0 plays the other one from its next reset on

        Args:
            levels: 1 to `max_levels` of them; each has a spawn for every agent.
            weights: how likely each one is, relative to their sum, written to all rows of `level_weights`; not
                negative and not all zero. None: all are equally likely.

        Raises:
            ArgumentError: there are too many levels for `max_levels`, a level has fewer spawns than the simulator has
                agents, or the weights do not fit. Nothing has changed.
        """
        from doorstep.levels.native import check_spawns, to_native_array

        table = to_native_array(levels)
        check_spawns(levels, self.num_agents)
        self._session.set_levels(table, None if weights is None else check_weights("weights", weights, len(table)))
        self._levels = (*levels, *self._levels[len(table) :])

    def refresh(self) -> None:
        """Recomputes all observations from the current state, after edits of `state`."""
        self._session.refresh()

    # ---- Pictures ----

    def render(
        self,
        world: int = 0,
        camera: Literal["top", "overview", "follow", "agent"] | CameraPose = "top",
        *,
        agent: int | None = None,
        width: int = 640,
        height: int = 480,
        samples: int = 2,
        shadows: bool = True,
    ) -> NDArray[np.uint8]:
        """A picture of a world for people: uint8 [height, width, 3], ordered after all work begun on the simulator.

        It is drawn on the CPU, also for worlds on a GPU. `Cameras` make the observations of agents.

        >>> import doorstep
        >>> sim = doorstep.Simulator(2)
        >>> sim.render(1, "follow", width=160, height=120).shape
        (120, 160, 3)

        Args:
            world: slot of the world.
            camera: "top": straight down on the whole level; "overview": obliquely on the whole level; "follow": from
                behind an agent, along the level, and above, without the walls that hide it; "agent": through an agent's
                eyes; or a `CameraPose`.
            agent: the agent of "follow" and "agent"; None: the one that got furthest in this episode.
            width: of the picture, pixels, 1 to 4096.
            height: of the picture, pixels, 1 to 4096.
            samples: a pixel is the mean of samples * samples rays, 1 to 8.
            shadows: draw shadows.

        Raises:
            ArgumentError: an argument is out of range.
            SimulationError: what a camera with a name looks at has no finite place, after an edit of the state.
            LibraryError: the rendering library is missing or of another version.
            OutOfMemoryError: there is not enough memory.
        """
        from doorstep.render.drawing import Drawing

        slot = check_integer("world", world, 0, self.num_worlds - 1)
        drawing = Drawing(camera, agent, self.num_agents, width=width, height=height, samples=samples, shadows=shadows)
        (snapshot,) = self._snapshots([slot])
        return drawing.draw(snapshot)

    def _snapshots(self, slots: Iterable[int]) -> list[Snapshot]:
        """Copies of single worlds, for pictures and recordings."""
        from doorstep.render.objects import take_snapshots

        return take_snapshots(self._session, slots, self._level_of)

    def _level_of(self, world: int) -> tuple[str, tuple[tuple[float, float], tuple[float, float]] | None, float]:
        """Of the level that a world plays, its name, the low and the high (x, y) of its goal, if it is a place, and its
        exit."""
        from doorstep.levels.numbers import MAX_COORDINATE

        index = int(self.level_indices.copy_to_host()[world, 0]) if self._config.max_levels else 0
        level, goal = self.levels[index], self.levels[index].goal
        if goal is None or max(goal.max_x, goal.max_y) >= MAX_COORDINATE:
            return level.name, None, level.exit
        return level.name, ((goal.min_x, goal.min_y), (goal.max_x, goal.max_y)), level.exit

    # ---- Save, restore, hash ----

    def save(self, worlds: WorldSelection = None) -> bytes:
        """The complete state of worlds (a mask, slots, or None for all) as bytes.

        Rules, levels to draw from and `reward` are the simulator's, and no part of it.

        >>> import doorstep
        >>> sim = doorstep.Simulator(2)
        >>> saved, before = sim.save(), sim.hash()
        >>> sim.step()
        >>> sim.restore(saved)
        >>> sim.hash() == before
        True
        """
        return self._session.save(self._slots(worlds), self.num_worlds)

    def restore(self, data: bytes | bytearray | memoryview, worlds: WorldSelection = None) -> None:
        """Restores a save into the slots `worlds` (None: 0, 1, ...); they continue bit for bit, on any device.

        Their further steps are rewarded as this simulator says, whatever `reward` the saved one had; returns add that
        to what the worlds have got so far. So one moment can be gone on with under several rewards.

        >>> import doorstep
        >>> sim, other = doorstep.Simulator(2), doorstep.Simulator(2, reward=doorstep.Rewards(idle=-1))
        >>> other.restore(sim.save())
        >>> other.hash() == sim.hash(), other.reward.idle
        (True, -1.0)

        Observations are recomputed. A save does not contain the `final_*` observations: those of the slot stay until
        its next episode ends.

        Raises:
            StateError: the bytes are damaged, not a save, or of other rules or capacities. Nothing has changed.
        """
        self._session.restore(check_bytes("data", data), self._slots(worlds))
        self._interventions += 1

    def hash(self, worlds: WorldSelection = None) -> int:
        """The sum of the worlds' hashes (None: all) modulo 2**64: the hashes of shards add up to that of the whole."""
        return self._session.hash(self._slots(worlds))

    def world_hashes(self) -> NDArray[np.uint64]:
        """uint64 [N]: a hash of each world's state; it does not depend on the slot."""
        return self._session.world_hashes(self.num_worlds)

    # ---- Tensors, state, health ----

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """Every tensor by name, in the order of the documentation."""
        return self._tensors.all()

    def _tensor(self, name: str) -> Tensor:
        return self._tensors[name]

    def _redirector(self, name: str) -> Callable[[NDArray[Any] | None], None]:
        """Lets steps write a tensor into other arrays, without copying; `sim.tensors` does not show them."""
        return self._session.redirector(TENSOR_INDEX[name])

    def _assign(self, name: str, value: object) -> None:
        self._tensors.assign(name, value)

    def bind(self, **tensors: object) -> None:
        """Points tensors at memory that you own: the simulator then reads and writes that memory, without copies.

        The elements are copied there first. Afterwards `sim.actions` and `sim.tensors["actions"]` are new tensors
        over your memory; tensors and arrays taken before still show the old memory, which is no longer written. The
        simulator, and every tensor over your memory, hold a reference to its owner.

        >>> import doorstep, numpy
        >>> sim = doorstep.Simulator(4)
        >>> rewards = numpy.zeros(8, numpy.float32)     # [N * A], also [N, A] or [N, A, 1]
        >>> ended = numpy.zeros((4, 2), bool)
        >>> sim.bind(rewards=rewards, truncations=ended)
        >>> sim.step()
        >>> numpy.shares_memory(sim.rewards.to_numpy(), rewards)
        True
        >>> sim.bind(rewards=None, truncations=None)    # back to the simulator's own memory

        Args:
            tensors: by name, writable tensors of any library on the simulator's device: of the same dtype (or bool for
                uint8), C-contiguous, of the same shape, in which worlds and agents may be one dimension and dimensions
                of 1 at the end may be absent. None: back to the simulator's own memory.

        Raises:
            ArgumentError: a tensor does not fit, or overlaps another one of this simulator. Nothing has changed.
        """
        self._tensors.bind(tensors)

    @property
    def state(self) -> StateFields:
        """The fields of the worlds' state, most of them writable."""
        _ = self._session.memory
        return self._state

    @property
    def health(self) -> Health:
        """Errors counted inside the worlds so far."""
        counts = self._session.health()
        values: dict[str, Any] = {field.name: getattr(counts, field.name) for field in dataclasses.fields(Health)}
        values.update((name, None) for name, value in values.items() if value < 0)  # -1: no culprit
        return Health(**values)

    # ---- Rules and resources ----

    @property
    def config(self) -> SimulatorConfig:
        """The rules as they were given: `Simulator.from_config(sim.config)` makes a simulator of the same kind."""
        return self._config

    @property
    def levels(self) -> tuple[AnyLevel, ...]:
        """The levels from which worlds draw, by `level_indices`; the reference's alone without levels.

        >>> import doorstep
        >>> doorstep.Simulator(2, levels="curated").levels[0].name
        'one door'
        """
        if not self._levels:
            from doorstep.levels import reference

            self._levels = (reference(),)
        return self._levels

    @property
    def reward(self) -> Rewards | None:
        """What replaces the rewards of the levels; None: nothing does."""
        return self._reward

    @property
    def num_worlds(self) -> int:
        """Worlds stepped at once: N in the shapes of the tensors."""
        return self._config.num_worlds

    @property
    def num_agents(self) -> int:
        """Agents per world: A in the shapes of the tensors."""
        return self._config.num_agents

    @property
    def seed(self) -> int:
        """Seed of the levels."""
        return self._config.seed

    @property
    def world_offset(self) -> int:
        """Global number of world 0."""
        return self._config.world_offset

    @property
    def episode_length(self) -> int:
        """Steps of an episode."""
        return self._config.episode_length

    @property
    def cameras(self) -> Cameras | None:
        """The cameras of the agents; None without cameras."""
        return self._config.cameras

    @property
    def renderer(self) -> str | None:
        """The cameras' renderer and its device: "raycast (NVIDIA H200)". None without cameras."""
        return self._renderer or None

    @property
    def device(self) -> str:
        """Where the worlds are: "cpu" or "cuda:K"."""
        return self._device

    @property
    def stream(self) -> int | None:
        """The CUstream that the next call of this thread uses; None on the CPU."""
        _ = self._session.memory
        return self._session.stream.handle() if self._session.stream else None

    @property
    def handle(self) -> int:
        """The `ds_simulator` of the C API, for native code: see `doorstep.capi()`."""
        return self._session.handle

    @property
    def num_threads(self) -> int:
        """Threads that step the worlds."""
        return self._session.info().num_threads

    @property
    def allocated_bytes(self) -> int:
        """Bytes that the simulator allocated, including its tensors."""
        return self._session.info().allocated_bytes

    @property
    def step_count(self) -> int:
        """Steps taken since the simulator was made."""
        return self._session.info().step_count

    # ---- Profile ----

    def start_profile(self) -> None:
        """Sets the time of every stage of a step to 0 and starts to measure it."""
        self._session.set_profiling(True)

    def stop_profile(self) -> dict[str, int]:
        """Stops measuring. Ticks of the processor's time stamp counter per stage, summed over all threads."""
        self._session.set_profiling(False)
        names = stage_names()
        return dict(zip(names, self._session.profile(len(names)), strict=True))

    # ---- Lifetime ----

    def close(self) -> None:
        """Waits for a running step, stops the threads and drops the memory. Tensors that you hold stay valid.

        Every later call except `close()` raises ClosedError.
        """
        self._session.close()
        # Tensors that users hold keep the memory; this object must not, or only `del sim` would free it.
        self._tensors.forget()
        self._state._forget()

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._session.closed

    def __enter__(self) -> Simulator:
        _ = self._session.memory
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    if not TYPE_CHECKING:  # for which every attribute would exist

        def __getattr__(self, name: str) -> Any:
            """Called for what is not found: the error names what was meant."""
            if name.startswith("_") or name in dir(self):
                return object.__getattribute__(self, name)  # raises again
            hint = nearest(name, (known for known in dir(self) if not known.startswith("_")))
            raise AttributeError(f"a Simulator has no {name!r}{hint and f'; {hint}'}", name=name, obj=self)

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"Simulator({self.num_worlds} worlds, {self.num_agents} agents, seed {self.seed}, {self.device}{closed})"

    def _repr_html_(self) -> str:
        """For notebooks: how it was made, and a table of its tensors."""
        import html  # here: `import doorstep` does not pay for it

        heading = f"<code>{html.escape(repr(self))}</code>"
        if self.closed:
            return heading
        rows = [("tensor", "dtype", "shape", "access")]
        rows += [
            (name, str(tensor.dtype), str(list(tensor.shape)), "read-only" if tensor.readonly else "writable")
            for name, tensor in self.tensors.items()
        ]
        table = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        rules = ", ".join(f"{name}={value!r}" for name, value in self.config.to_dict().items())
        return f"{heading}<p>{html.escape(rules)}</p><table>{table}</table>"

    def __reduce__(self) -> Any:
        """Copies and pickles of a simulator on the CPU: its rules, levels and reward, its worlds with their counts of
        `health`, and the values of all tensors, in memory of their own. `step_count` begins at 0."""
        if self._device != "cpu":
            hint = "restore its save() into a simulator made there"
            raise CopyError("a Simulator on a GPU cannot be copied or pickled", hint=hint)
        tensors = self._tensors.all()
        kept = [row.name for row in TENSORS if row.outlives_step and row.name in tensors]
        values = {name: tensors[name].copy_to_host() for name in kept}
        return _unpickled, (self._config, self.levels, self._reward, self.save(), values)

    def _slots(self, worlds: WorldSelection) -> NDArray[np.int64] | None:
        return None if worlds is None else check_slots(worlds, self.num_worlds)


_STEP_IN_PYTHON = Simulator.step


def _make_step_fast() -> None:
    """Makes Simulator.step a builtin, which needs no Python frame, unless fast calls are off or users replaced it."""
    calls = fast_calls()
    if calls is not None and Simulator.step is _STEP_IN_PYTHON:
        doc = f"step($self, /)\n--\n\n{Simulator.step.__doc__}"
        Simulator.step = calls["step_method"](Simulator, doc)  # type: ignore[method-assign]


def _checked_reward(reward: object) -> Rewards | None:
    from doorstep.levels.rules import check_reward

    return check_reward(reward)


def _found_levels(levels: object) -> list[AnyLevel]:
    from doorstep.levels.choice import table_levels

    return table_levels(levels)


def _twin(
    config: SimulatorConfig,
    levels: tuple[AnyLevel, ...],
    weights: NDArray[np.float32] | None,
    reward: Rewards | None,
) -> Simulator:
    """A new simulator with the levels of another one, and with its weights, [N, L]."""
    simulator = Simulator.from_config(config, reward=reward)
    if weights is not None:
        simulator.set_levels(levels)
        simulator.level_weights.copy_from_host(weights)
        simulator.reset()
    return simulator


def _unpickled(
    config: SimulatorConfig,
    levels: tuple[AnyLevel, ...],
    reward: Rewards | None,
    worlds: bytes,
    kept: Mapping[str, NDArray[Any]],
) -> Simulator:
    """kept: the tensors that steps do not write anew; a save lacks the `final_*` among them."""
    simulator = _twin(config, levels, kept.get("level_weights"), reward)
    simulator.restore(worlds)
    _write(simulator, kept)
    return simulator


def _write(simulator: Simulator, values: Mapping[str, NDArray[Any]]) -> None:
    """Gives tensors values, also those that only steps write."""
    memory = {name: np.empty_like(value) for name, value in values.items()}
    simulator.bind(**memory)
    for name, value in values.items():
        memory[name][...] = value
    simulator.bind(**dict.fromkeys(memory))


def native_settings(config: SimulatorConfig, stream: object = None) -> dict[str, Any]:
    """The fields of ds_simulator_config."""
    kind, index = choose_device(config.device)
    fields = config.native_fields()
    del fields["cameras"]
    chosen = _choose_stream(stream, config.device, kind, index)
    return {**fields, "device_kind": kind, "device_index": index, "stream": chosen}


def choose_device(device: str) -> tuple[DeviceKind, int]:
    """Kind and number of a device; "cuda" is PyTorch's current device if PyTorch uses CUDA, else number 0."""
    kind, index = check_device(device)
    if index is None:
        index = current_device_index() if kind == DeviceKind.CUDA else 0
    return kind, index


def resolve_device(device: str) -> str:
    """The same device, whatever is PyTorch's current one."""
    kind, index = choose_device(device)
    return f"cuda:{index}" if kind == DeviceKind.CUDA else device


def _choose_stream(stream: object, device: object, kind: DeviceKind, index: int) -> int:
    if stream is None:
        return STREAM_OWN
    if kind != DeviceKind.CUDA:
        hint = 'the CPU has no streams; with a stream, say which GPU: device="cuda:K"'
        refuse("stream", f"None with device={device!r}", stream, hint)
    return check_stream_on("stream", stream, index)
