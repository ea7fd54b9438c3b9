"""A batch of escape rooms, stepped at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import (
    check_bytes,
    check_choice,
    check_device,
    check_flag,
    check_integer,
    check_slots,
    check_worlds,
    refuse,
)
from doorstep._native import (
    MAX_AGENTS,
    MAX_EPISODE_LENGTH,
    MAX_THREADS,
    MAX_WORLDS,
    STREAM_OWN,
    ActionCheck,
    DeviceKind,
    EventHandle,
    Session,
    fast_calls,
    give_cameras,
    stage_names,
)
from doorstep._properties import CameraProperties, TensorProperties
from doorstep._streams import CurrentStream, check_stream_on, current_device_index
from doorstep._tensor_map import TENSOR_INDEX, TensorMap
from doorstep.cameras import Cameras, settings_of
from doorstep.event import Event
from doorstep.health import Health
from doorstep.render.camera import CameraPose
from doorstep.render.drawing import render
from doorstep.state import State
from doorstep.tensor import Tensor

Worlds: TypeAlias = "Sequence[int] | Sequence[bool] | NDArray[Any] | Tensor | None"

MAX_SEED = 2**32 - 1
MAX_GLOBAL_WORLDS = 2**32


@final
class Simulator(TensorProperties, CameraProperties):
    """`num_worlds` escape rooms with `num_agents` agents each, stepped at once.

    The tensors (`actions`, `rewards`, `lidar`, ...) are properties: simulator memory, read and written in place.
    Write or set `actions`, call `step()`, read the rest. Worlds whose episode ended are regenerated within the step.

    >>> import doorstep
    >>> sim = doorstep.Simulator(4, seed=7)
    >>> sim
    Simulator(4 worlds, 2 agents, seed 7, cpu)
    >>> sim.actions.to_numpy()[:] = (1, 0, 2, 0)    # walk slowly ahead
    >>> sim.step()
    >>> sim.rewards.shape
    (4, 2, 1)
    >>> import numpy
    >>> sim.actions = numpy.ones((4, 2, 4), numpy.int32)    # copies: any library's tensor, also [N * A, 4]
    >>> sim.close()

    Args:
        num_worlds: 1 to 2**30.
        seed: 0 to 2**32 - 1. The same seed gives the same levels.
        device: "cpu"; "cuda:K", an NVIDIA GPU by its number; "cuda", PyTorch's current device if PyTorch uses CUDA,
            else number 0; "auto", GPU number 0 if it can be used, else the CPU (`doorstep doctor` says why).
        num_agents: agents per world, 1 to 8.
        episode_length: steps of an episode, 1 to 1,000,000.
        auto_reset: regenerate a world within the step that ends its episode.
        world_offset: world i is global world `world_offset + i`, so that shards together are one large simulator.
            Levels depend only on seed, global world and episode. The sum with num_worlds is at most 2**32.
        num_threads: threads that step, 1 to 1024; None: as many as this process may use. Results do not depend on it.
        action_check: what happens to an action out of range. "clamp": moved to the nearest legal value and counted in
            `health`. "raise": `step()` raises and nothing is stepped. "off": any value within +-32767 is applied.
        strict: trouble inside a world (see `health`) makes the next call raise SimulationError.
        flat_observations: also write `observations`, all parts side by side, and `final_observations`.
        stream: the CUDA stream that everything is ordered on: a doorstep.cuda.Stream, a torch.cuda.Stream, any object
            with `__cuda_stream__()`, or a CUstream as an integer; it is kept alive. None: at every call PyTorch's
            current stream on the device for that thread, if PyTorch uses CUDA, else a stream of the simulator's own.
            On the CPU, and with "auto", it must be None.
        cameras: what every agent sees becomes tensors too: `rgb`, `depth`, `segmentation`, `normals`. None: nothing is
            drawn.

    Raises:
        ArgumentError: an argument is out of range; the message names it, its value and the range.
        OutOfMemoryError: the memory cannot be had.
        DeviceError: the device cannot be used: NoDriverError, DriverVersionError, DriverFunctionError, NoDeviceError,
            DeviceBusyError. An explicit "cuda" never becomes the CPU.
        LibraryError: a native library is missing or of another version.
        RendererError: what is to draw for the cameras cannot be used here.
        ShaderError: the cameras' material does not compile.
    """

    __slots__ = (
        "__weakref__",
        "_cameras",
        "_device",
        "_renderer",
        "_session",
        "_set_actions",
        "_set_resets",
        "_settings",
        "_state",
        "_step_handle",
        "_tensors",
    )

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
        action_check: Literal["clamp", "raise", "off"] = "clamp",
        strict: bool = False,
        flat_observations: bool = False,
        stream: object = None,
        cameras: Cameras | None = None,
    ) -> None:
        if cameras is not None and not isinstance(cameras, Cameras):
            refuse("cameras", "a doorstep.Cameras or None", cameras)
        num_worlds = check_integer("num_worlds", num_worlds, 1, MAX_WORLDS)
        device_kind, device_index = _choose_device(device)
        choice = check_choice("action_check", action_check, tuple(member.name.lower() for member in ActionCheck))
        self._settings = {
            "device_kind": device_kind,
            "device_index": device_index,
            "num_worlds": num_worlds,
            "seed": check_integer("seed", seed, 0, MAX_SEED),
            "world_offset": check_integer("world_offset", world_offset, 0, MAX_GLOBAL_WORLDS - num_worlds),
            "num_agents": check_integer("num_agents", num_agents, 1, MAX_AGENTS),
            "episode_length": check_integer("episode_length", episode_length, 1, MAX_EPISODE_LENGTH),
            "num_threads": 0 if num_threads is None else check_integer("num_threads", num_threads, 1, MAX_THREADS),
            "auto_reset": check_flag("auto_reset", auto_reset),
            "action_check": ActionCheck[choice.upper()],
            "strict": check_flag("strict", strict),
            "flat_observations": check_flag("flat_observations", flat_observations),
            "stream": _choose_stream(stream, device, device_kind, device_index),
        }
        self._session = Session(self._settings, CurrentStream(device_index) if stream is None else None, stream)
        _make_step_fast()
        # What the builtin `step` steps; 0 on a GPU, where it goes through _step_in_turn().
        self._step_handle = 0 if self._session.stream else self._session.handle
        info = self._session.info()
        self._device = "cpu" if info.device_kind == DeviceKind.CPU else f"cuda:{info.device_index}"
        self._tensors = TensorMap(self._session, self._device, bool(self._settings["flat_observations"]))
        self._set_actions = self._session.setter(TENSOR_INDEX["actions"])
        self._set_resets = self._session.setter(TENSOR_INDEX["resets"])
        self._state = State(self._session, self._device)
        self._cameras, self._renderer = cameras, ""
        if cameras is not None:
            self._give(cameras)

    def _give(self, cameras: Cameras) -> None:
        try:
            made = give_cameras(self._session, settings_of(cameras), cameras.outputs)
        except BaseException:
            self.close()
            raise
        self._tensors.add_cameras(made)
        self._renderer = f"{made.renderer.name.lower()} ({made.device})"

    # ---- Stepping ----

    def step(self) -> None:
        """Steps every world once; other Python threads run meanwhile.

        On a GPU the step is only begun, on the stream: what is begun on that stream afterwards sees its results. With
        action_check "raise" it first waits until the stream has come to the actions, to look at them.

        Raises:
            ArgumentError: action_check is "raise" and an action is out of range. Nothing was stepped.
            SimulationError: strict, and an earlier step met trouble. Nothing was stepped.
            RendererError: the step was taken, but the cameras' views of it could not be drawn.
        """
        self._session.step()

    def _step_in_turn(self) -> None:
        self._session.step()

    def step_async(self) -> Event:
        """Begins a step and returns at once.

        On the CPU, leave the tensors and the state alone until the event or `wait()` says it has ended. On a GPU,
        work on the same stream needs no waiting.
        """
        return Event(EventHandle(self._session.step_async()))

    def wait(self) -> None:
        """Waits for the end of everything begun on the simulator."""
        self._session.wait(None)

    def reset(self, worlds: Worlds = None) -> None:
        """Regenerates worlds at once, without simulating: rewards and dones become 0, observations are refreshed.

        Args:
            worlds: a boolean mask [N], distinct slots, or None for all.
        """
        selection = None if worlds is None else check_worlds(worlds, self.num_worlds)
        if selection is not None and selection.dtype == np.uint8:
            self._session.reset_mask(selection)
        else:
            self._session.reset(selection)

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
        """A picture of a world as it is after everything begun on the simulator, for people: uint8 [height, width, 3].

        It is drawn on the CPU whatever the device. What agents are to see comes from `Cameras`.

        >>> import doorstep
        >>> sim = doorstep.Simulator(2)
        >>> sim.render(1, "follow", width=160, height=120).shape
        (120, 160, 3)

        Args:
            world: slot of the world.
            camera: "top": straight down on the whole level; "overview": obliquely on the whole level; "follow": from
                behind an agent, along the level, and above, without the walls that hide it; "agent": through an agent's
                eyes; or a `CameraPose`.
            agent: whom "follow" and "agent" are about; None: the one that got furthest in this episode.
            width: of the picture, pixels, 1 to 4096.
            height: of the picture, pixels, 1 to 4096.
            samples: a pixel is the mean of samples * samples rays, 1 to 8.
            shadows: whether the light throws any.

        Raises:
            ArgumentError: an argument is out of range.
            LibraryError: the library that draws is missing or of another version.
            OutOfMemoryError: the memory cannot be had.
        """
        return render(
            self, world, camera, agent, width=width, height=height, samples=samples, shadows=shadows
        )

    # ---- Save, restore, hash ----

    def save(self, worlds: Worlds = None) -> bytes:
        """Everything that decides the future of the worlds (a mask, slots, or None for all), as bytes.

        >>> import doorstep
        >>> sim = doorstep.Simulator(2)
        >>> saved, before = sim.save(), sim.hash()
        >>> sim.step()
        >>> sim.restore(saved)
        >>> sim.hash() == before
        True
        """
        return self._session.save(self._slots(worlds), self.num_worlds)

    def restore(self, data: bytes | bytearray | memoryview, worlds: Worlds = None) -> None:
        """Restores a save into the slots `worlds` (None: 0, 1, ...); they continue bit for bit, on any device.

        Observations are recomputed. The `final_*` observations are no part of a save: they keep what the slot showed
        until its next episode ends.

        Raises:
            StateError: the bytes are damaged or foreign, or come from other rules or capacities. Nothing has changed.
        """
        self._session.restore(check_bytes("data", data), self._slots(worlds))

    def hash(self, worlds: Worlds = None) -> int:
        """The hashes of the worlds (None: all) added up modulo 2**64, so that shards' hashes add up to the whole's."""
        return self._session.hash(self._slots(worlds))

    def world_hashes(self) -> NDArray[np.uint64]:
        """uint64 [N]: a hash of each world's state, whatever its slot."""
        return self._session.world_hashes(self.num_worlds)

    # ---- Tensors, state, health ----

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """Every tensor by name, in the order of the documentation."""
        return self._tensors.all()

    def _tensor(self, name: str) -> Tensor:
        return self._tensors[name]

    def _assign(self, name: str, value: object) -> None:
        self._tensors.assign(name, value)

    def bind(self, **tensors: object) -> None:
        """Makes tensors lie in memory of yours: from now on the simulator reads and writes it, and copies nothing.

        What a tensor holds is copied there first. `sim.actions`, `sim.tensors["actions"]` and what is made of them show
        the new memory from now on; tensors and arrays taken before show the old one, which is written no more. Your
        memory is kept alive as long as the simulator, or any tensor over it, uses it.

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
    def state(self) -> State:
        """The inside of the worlds, as writable views."""
        _ = self._session.memory
        return self._state

    @property
    def health(self) -> Health:
        """Trouble met so far."""
        counts = self._session.health()
        return Health(
            clamped_actions=counts.clamped_actions,
            dropped_contacts=counts.dropped_contacts,
            nonfinite_values=counts.nonfinite_values,
            repaired_indices=counts.repaired_indices,
            culprit_world=_unless_negative(counts.culprit_world),
            culprit_body=_unless_negative(counts.culprit_body),
            culprit_step=_unless_negative(counts.culprit_step),
        )

    # ---- What it was made with ----

    @property
    def num_worlds(self) -> int:
        """Worlds stepped at once: N in the shapes of the tensors."""
        return self._settings["num_worlds"]

    @property
    def num_agents(self) -> int:
        """Agents per world: A in the shapes of the tensors."""
        return self._settings["num_agents"]

    @property
    def seed(self) -> int:
        """What the levels are drawn from."""
        return self._settings["seed"]

    @property
    def world_offset(self) -> int:
        """Global number of world 0."""
        return self._settings["world_offset"]

    @property
    def episode_length(self) -> int:
        """Steps of an episode."""
        return self._settings["episode_length"]

    @property
    def cameras(self) -> Cameras | None:
        """The cameras that the agents carry, as given; None without."""
        return self._cameras

    @property
    def renderer(self) -> str | None:
        """What draws for the cameras, and on what: "raycast (NVIDIA H200)". None without cameras."""
        return self._renderer or None

    @property
    def device(self) -> str:
        """Where the worlds are: "cpu" or "cuda:K"."""
        return self._device

    @property
    def stream(self) -> int | None:
        """The CUstream that the next call of this thread goes to; None on the CPU."""
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
        """Everything the simulator allocated, tensors included."""
        return self._session.info().allocated_bytes

    @property
    def step_count(self) -> int:
        """Steps taken since the simulator was made."""
        return self._session.info().step_count

    # ---- Profile ----

    def start_profile(self) -> None:
        """Begins to count, from zero, the time spent in each stage of a step."""
        self._session.set_profiling(True)

    def stop_profile(self) -> dict[str, int]:
        """Ends counting. Ticks of the processor's time stamp counter per stage, over all threads."""
        self._session.set_profiling(False)
        names = stage_names()
        return dict(zip(names, self._session.profile(len(names)), strict=True))

    # ---- Life ----

    def close(self) -> None:
        """Ends the simulator: waits for a running step and stops its threads. Tensors already taken stay valid.

        Afterwards every call raises ClosedError, except this one.
        """
        self._session.close()
        # What users have taken holds the memory; this object must not, or `del` would be needed to get it back.
        self._tensors.forget()
        self._state._forget()

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._session.closed

    def __enter__(self) -> Simulator:
        _ = self._session.memory
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"Simulator({self.num_worlds} worlds, {self.num_agents} agents, seed {self.seed}, {self.device}{closed})"

    def __reduce__(self) -> Any:
        raise TypeError("a Simulator cannot be pickled; send sim.save() and restore it into a simulator made there")

    def _slots(self, worlds: Worlds) -> NDArray[np.int64] | None:
        return None if worlds is None else check_slots(worlds, self.num_worlds)


_STEP_IN_PYTHON = Simulator.step


def _make_step_fast() -> None:
    """Makes Simulator.step a builtin, which needs no frame, unless fast calls are switched off or users replaced it."""
    calls = fast_calls()
    if calls is not None and Simulator.step is _STEP_IN_PYTHON:
        doc = f"step($self, /)\n--\n\n{Simulator.step.__doc__}"
        Simulator.step = calls["step_method"](Simulator, doc)  # type: ignore[method-assign]


def _choose_device(device: object) -> tuple[DeviceKind, int]:
    kind, index = check_device(device)
    if index is None:
        index = current_device_index() if kind == DeviceKind.CUDA else 0
    return kind, index


def _choose_stream(stream: object, device: object, kind: DeviceKind, index: int) -> int:
    if stream is None:
        return STREAM_OWN
    if kind != DeviceKind.CUDA:
        hint = 'the CPU has no streams; with a stream, say which GPU: device="cuda:K"'
        refuse("stream", f"None with device={device!r}", stream, hint)
    return check_stream_on("stream", stream, index)


def _unless_negative(value: int) -> int | None:
    return None if value < 0 else value
