"""`Policy`: a network that chooses actions, evaluated by the native library."""

from __future__ import annotations

import functools
import itertools
import math
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doorstep._arguments import check_choice, check_integer, refuse
from doorstep._copies import Owner
from doorstep._native import ACTIONS, MAX_SEED, MAX_WORLDS
from doorstep._native._generated import MAX_AGENTS, DeviceKind, LayerConfig, LayerKind, Precision, WeightType
from doorstep._native.policies import (
    SAMPLING,
    SAMPLING_KEY,
    LayerHandle,
    LayerWeights,
    PolicyHandle,
    PolicyRows,
    PreparedAct,
)
from doorstep._observations import Parts
from doorstep.policy.arrays import Arrays, Floats, HostArrays, TorchArrays, upload_beside_capture
from doorstep.policy.sampling import SamplingParams, check_sampling
from doorstep.policy.shapes import SHAPE_NUMBERS, array_shapes

if TYPE_CHECKING:
    import torch

    from doorstep.policy.torch_weights import ModuleWeights

MAX_STEP = 2**32 - 1
MAX_FIRST_WORLD = 2**31


@final
class PolicyLayer(Owner, remedy="copy its policy"):
    """A layer of a policy. It keeps its weights alive, also after its policy has gone.

    Attributes:
        kind: "linear", "layer_norm", "rms_norm", "lstm", "gru", "conv", "max_pool", "avg_pool", "attention", the name
            of an activation ("tanh", "gelu_tanh", ...), or, of a residual or a branch, "keep", "take", "add", "append".
        num_inputs, num_outputs: sizes of a row, of all its tokens; both are None for activations, which take any size.
    """

    __slots__ = ("_handle", "kind", "num_inputs", "num_outputs")

    def __init__(self, handle: LayerHandle) -> None:
        config: LayerConfig = handle.config()
        self._handle = handle
        self.kind = LayerKind(config.kind).name.lower()
        self.num_inputs = config.num_inputs or None
        self.num_outputs = config.num_outputs or config.num_inputs or None

    @property
    def native_handle(self) -> int:
        """The `ds_layer` of the C API, valid while this object exists."""
        return self._handle.value

    def __repr__(self) -> str:
        sizes = f", {self.num_inputs} -> {self.num_outputs}" if self.num_inputs else ""
        return f"PolicyLayer({self.kind}{sizes})"


@final
class Policy:
    """A network that reads what agents observe and chooses their actions, evaluated by the library where its weights
    are, on the CPU or on a GPU.

    `doorstep.load_policy()` makes policies. Those of modules of PyTorch read the weights in place: after a step of an
    optimiser the next call uses the new weights. What gives the module other tensors or other memory (`net.to()`,
    `net.share_memory()`, `load_state_dict(assign=True)`, `parameter.data = ...`) makes the next call a `StateError`. No
    thread may change or move weights while a call runs, as for calls of PyTorch. Module and policy may be dropped in
    any order. Copies and pickles have copies of the weights, as `freeze()`, and choose the same actions next.

    An agent's logits have the same bits in batches of any size, on every thread, processor and device, unless their
    `precision` is "bfloat16". All arithmetic is in single precision. Calls from several threads run at the same time.

    On a GPU a call is one kernel on PyTorch's current stream, which does not wait for the host; arguments and results
    are on that GPU, results are tensors of PyTorch. It may be captured into a CUDA graph, which may be launched as long
    as the policy exists.

    >>> import doorstep, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(94, 64), torch.nn.Tanh(), torch.nn.Linear(64, 19))
    >>> policy = doorstep.load_policy(net)
    >>> sim = doorstep.Simulator(16)
    >>> for _ in range(10):
    ...     sim.actions = policy(sim.observations)
    ...     sim.step()
    >>> policy.forward(sim.observations).shape
    (16, 2, 19)

    Attributes:
        precision: how values are multiplied with weights: "float32" or "bfloat16", as in `load_policy()`.
        num_inputs: numbers of an agent's observation.
        observations: the parts of the simulator that it was trained with, as `SimulatorConfig.observations`; None: it
            was not told, as for a module of PyTorch.
        state_size: numbers of an agent's state; 0: it has no memory.
        has_value: whether it has a value head, as `doorstep.policy.Heads` may: episodes in a rollout engine can record
            what it gives. Calls of the policy do not evaluate it.
    """

    __slots__ = (
        "__weakref__", "_arrays", "_cached", "_count_step", "_handle", "_layers", "_prepared", "_sampling", "_seed",
        "_upload", "_weights", "has_value", "num_inputs", "observations", "precision", "state_size",
    )  # fmt: skip

    def __init__(
        self,
        handle: PolicyHandle,
        sampling: SamplingParams,
        arrays: Arrays | None = None,
        weights: ModuleWeights | None = None,
        observations: Parts | None = None,
    ) -> None:
        """Policies are made by `load_policy()`. weights: of a module; None: the policy's own. observations: that it was
        trained with; None: not known."""
        if not isinstance(handle, PolicyHandle):
            raise TypeError("policies are made by doorstep.load_policy()")
        info = handle.info()
        on_cpu = info.device_kind == DeviceKind.CPU
        self._arrays: Arrays = arrays or (HostArrays() if on_cpu else TorchArrays(info.device_index))
        self._upload = _Uploads(self._arrays, handle)
        self._cached = functools.lru_cache(maxsize=16)(self._upload.make)
        self._handle = handle
        self._layers = tuple(PolicyLayer(handle.layer(index)) for index in range(info.num_layers))
        self._sampling = sampling
        self._seed = secrets.randbits(32)
        self._count_step = itertools.count().__next__
        self._prepared: PreparedAct | None = None  # act() by default, of rows like those of the call before
        self._weights = weights
        self.precision = Precision(info.precision).name.lower()
        self.num_inputs: int = info.num_inputs
        self.observations = observations
        self.state_size: int = info.state_size
        self.has_value = bool(info.has_value)

    def freeze(self) -> Policy:
        """A policy with copies of all weights as they are now, which no optimiser changes. On a GPU the copies follow
        the work begun on PyTorch's current stream.

        Raises:
            StateError: as `forward()`.
        """
        weights = self._weights
        if weights is None or weights.device != "cpu":
            self._check_weights()
            frozen = self._handle.freeze(self._arrays.stream())
            return Policy(frozen, self._sampling, self._arrays, observations=self.observations)
        copy = weights.policy_of(weights.copy())
        return Policy(copy, self._sampling, self._arrays, observations=self.observations)

    def with_sampling(self, sampling: SamplingParams) -> Policy:
        """The policy of the same weights that chooses in another way, from the first step on."""
        return Policy(self._handle, sampling, self._arrays, self._weights, self.observations)

    def with_precision(self, precision: str) -> Policy:
        """The policy of the same weights that multiplies in another precision.

        Args:
            precision: as in `load_policy()`.

        Raises:
            ArgumentError: the policy's device does not have the precision.
        """
        layers = [layer._handle for layer in self._layers]
        chosen = Precision[check_precision(precision).upper()]
        handle = PolicyHandle.create(layers, self._handle.info().num_heads, chosen)
        return Policy(handle, self._sampling, self._arrays, self._weights, self.observations)

    def seeded(self, seed: int) -> Policy:
        """A policy of the same weights whose random numbers follow from a seed, unless `sampling.seed` is given.

        Args:
            seed: 0 to 2**32 - 1.

        Raises:
            ArgumentError: it is something else.
        """
        seed = check_integer("seed", seed, 0, MAX_SEED)
        sampling = self._sampling
        return self.with_sampling(sampling.replace(seed=seed) if sampling.seed is None else sampling)

    def _check_weights(self) -> None:
        """Refuses to read weights that are no longer where they were: their memory may be gone."""
        if self._weights is not None:
            self._weights.check()

    # ---- Evaluating ----

    def forward(self, observations: Any, state: Any = None) -> Any:
        """Computes logits.

        Args:
            observations: float32 [..., num_inputs], contiguous, on the policy's device: a tensor of a simulator, a
                numpy array, a tensor of PyTorch.
            state: float32 [..., state_size], contiguous and writable; updated in place. Zeros at the start of an
                episode. None: zeros, which are dropped.

        Returns:
            float32 [..., 19]: the logits of all components side by side, as in `doorstep.ACTIONS`; an array of numpy,
            on a GPU a tensor of PyTorch.

        Raises:
            ArgumentError: an array has a wrong shape or dtype, or is elsewhere.
            StateError: the module has another tensor than the policy reads, or its memory was moved or freed; the
                message names it.
        """
        rows, shape, _kept = self._rows(observations, state)
        logits = self._arrays.empty((*shape, sum(ACTIONS)), np.float32)
        self._handle.forward(rows, self._arrays.address(logits))
        return logits

    def act(
        self,
        observations: Any,
        state: Any = None,
        *,
        sampling: SamplingParams | None = None,
        step: ArrayLike | torch.Tensor | None = None,
        seeds: ArrayLike | None = None,
        first_world: int = 0,
    ) -> Any:
        """Chooses actions. An action depends on the agent's observation and state, on its world's seed, on the step
        and on the agent's index, and on nothing else.

        Where a network gives NaN or infinity the action is the neutral one; `nonfinite_rows` counts that.

        Args:
            observations: float32 [N, A, num_inputs], as in `forward()`. Rows [R, num_inputs] are R worlds with an
                agent; further dimensions before N are more worlds.
            state: float32 [N, A, state_size], as in `forward()`.
            sampling: None: the policy's.
            step: of each world, integers [N], or one for all: 0 to 2**32 - 1. With the same step and seed the same
                random numbers are drawn again. None: counts the calls without one. A tensor of one int32 on the
                policy's GPU is read when the kernel runs: add 1 to it in a CUDA graph, so that every replay draws anew.
            seeds: of each world, integers [N], 0 to 2**32 - 1, on the host. None: they follow from `sampling.seed` and
                the world's index.
            first_world: index of the first world, 0 to 2**31: shards of a larger number of worlds draw what one
                simulator of all would draw. Without effect where seeds are given.

        Returns:
            int32 [N, A, 4] (or [R, 4], ...), as in `doorstep.ACTIONS`; an array of numpy, on a GPU a tensor of PyTorch.

        Raises:
            ArgumentError: as `forward()`, or a step, a seed or first_world is out of range.
            StateError: as `forward()`.
        """
        is_default = state is None and sampling is None and step is None and seeds is None
        if is_default and type(first_world) is int and first_world == 0:
            return self._act_by_default(observations)
        return self._act(observations, state, sampling, step, seeds, first_world)

    def _act_by_default(self, observations: Any) -> Any:
        """act() of observations alone. What a call needs beside them is kept for the next one of the same shape."""
        prepared = self._prepared
        if prepared is not None:
            self._check_weights()
            actions = np.empty(prepared.shape, np.int32)
            if prepared.run(observations, actions, self._count_step):
                return actions
        made = self._act(observations, None, None, None, None, 0)
        if self._arrays.device == "cpu" and self.state_size == 0:
            self._prepared = self._prepare(made.shape)
        return made

    def _prepare(self, shape: tuple[int, ...]) -> PreparedAct | None:
        """shape: of the actions."""
        rows = PolicyRows(math.prod(shape[:-1]), 0, self.num_inputs, None, 0)
        keys, _ = self._keys(self._sampling, _worlds_and_agents(shape[:-1]), 0, None, 0)
        chosen = self._cached(_sampling_rows, self._sampling, rows.num_rows)
        return self._handle.prepare_act(rows, shape, (chosen, keys), sampling=chosen.address, keys=keys.address)

    def _act(
        self,
        observations: Any,
        state: Any,
        sampling: SamplingParams | None,
        step: ArrayLike | torch.Tensor | None,
        seeds: ArrayLike | None,
        first_world: int,
        **outputs: Any,
    ) -> Any:
        """outputs: contiguous float32 arrays of a number for each agent, which get `log_probs` and `values`."""
        sampling = check_sampling(sampling) or self._sampling
        rows, shape, _kept = self._rows(observations, state)
        first_world = check_integer("first_world", first_world, 0, MAX_FIRST_WORLD)
        keys, numbers = self._keys(sampling, _worlds_and_agents(shape), step, seeds, first_world)
        actions = self._arrays.empty((*shape, len(ACTIONS)), np.int32)
        chosen = self._cached(_sampling_rows, sampling, rows.num_rows)
        self._upload.keep_in_capture(chosen, keys)
        numbers["actions"] = self._arrays.address(actions)
        for name, array in outputs.items():
            numbers[name] = self._arrays.address(array)
        self._handle.act(rows, sampling=chosen.address, keys=keys.address, **numbers)
        return actions

    def _keys(
        self, sampling: SamplingParams, shape: tuple[int, int], step: Any, seeds: Any, first_world: int
    ) -> tuple[_Uploaded, dict[str, int]]:
        """The keys of all agents, and what is added to their steps."""
        seed = self._seed if sampling.seed is None else sampling.seed
        numbers = {}
        if step is None:
            numbers["step"] = self._count_step() & MAX_STEP
        elif self._is_counter(step):
            numbers["step_counter"] = self._arrays.address(step)
        elif isinstance(step, int) or np.ndim(step) == 0:
            numbers["step"] = check_integer("step", step, 0, MAX_STEP)
        of_worlds = None if numbers else _check_words("step", step, shape[0])
        if of_worlds is None and seeds is None:
            return self._cached(_world_keys, seed, *shape, first_world), numbers
        keys = _world_keys(seed, *shape, first_world) if seeds is None else _seed_keys(seeds, *shape)
        if of_worlds is not None:
            keys["step"] = of_worlds[:, None]
        return self._upload(keys), numbers

    def _is_counter(self, step: Any) -> bool:
        """Whether it is a number in a GPU's memory."""
        if self._arrays.device == "cpu" or str(getattr(step, "device", "cpu")) != self._arrays.device:
            return False
        if str(step.dtype) != "torch.int32" or math.prod(step.shape) != 1:
            refuse("step", "a tensor of one int32", f"{step.dtype} {list(step.shape)}")
        return True

    def __call__(self, observations: Any, state: Any = None) -> Any:
        """Chooses actions as `act()` does by default, in the form that all policies have.

        Args:
            observations: float32 [..., num_inputs], as in `forward()`.
            state: float32 [..., state_size], which stays as it is; None: zeros.

        Returns:
            The actions, int32 [..., 4]; for a network with memory the actions and the next state.

        Raises:
            ArgumentError, StateError: as `forward()`.
        """
        if self.state_size == 0:
            return self.act(observations, state)
        if state is None:
            state = self._arrays.zeros((*observations.shape[:-1], self.state_size))
        else:
            state = self._arrays.copy(state)
        return self.act(observations, state), state

    def initial_state(self, num_worlds: int, num_agents: int) -> Any:
        """The state at the start of an episode: zeros [num_worlds, num_agents, state_size] on the policy's device.

        Raises:
            ArgumentError: a number is not one of a simulator.
        """
        worlds = check_integer("num_worlds", num_worlds, 1, MAX_WORLDS)
        return self._arrays.zeros((worlds, check_integer("num_agents", num_agents, 1, MAX_AGENTS), self.state_size))

    # ---- Describing ----

    @property
    def sampling(self) -> SamplingParams:
        """How `act()` chooses where it is not told."""
        return self._sampling

    @property
    def device(self) -> str:
        """Where the weights are: "cpu", "cuda:0"."""
        return self._arrays.device

    @property
    def layers(self) -> tuple[PolicyLayer, ...]:
        """The layers in the order of their evaluation; each may outlive the policy."""
        return self._layers

    @property
    def native_handle(self) -> int:
        """The `ds_policy` of the C API, valid while this object exists."""
        return self._handle.value

    @property
    def nonfinite_rows(self) -> int:
        """How many agents have got the neutral action so far because their logits were not finite, in calls of this
        object; on a GPU, in those whose work has ended. In a rollout engine their episodes fail instead."""
        return self._handle.info().nonfinite_rows

    def __repr__(self) -> str:
        memory = f", state of {self.state_size}" if self.state_size else ""
        return f"Policy({self.num_inputs} inputs, {len(self._layers)} layers{memory})"

    def __reduce__(self) -> Any:
        """Copies and pickles have copies of the weights as they are now, and draw the same random numbers next."""
        self._check_weights()
        layers = [_stored(layer._handle.config(), self._arrays) for layer in self._layers]
        info = self._handle.info()
        step = int(repr(self._count_step.__self__).strip("count()"))  # type: ignore[attr-defined]  # takes none
        made_of = layers, info.num_heads, Precision(info.precision), self._arrays.device
        return _unpickled, (*made_of, self._sampling, self.observations, self._seed, step)

    # ---- Rows ----

    def _rows(self, observations: Any, state: Any) -> tuple[PolicyRows, tuple[int, ...], tuple[Floats, ...]]:
        """The rows of a call, the shape that they have, and what keeps their memory."""
        self._check_weights()
        stream = self._arrays.stream()
        inputs = self._arrays.read("observations", observations, stream, written=False)
        if inputs.shape[-1:] != (self.num_inputs,):
            refuse("observations", f"of shape [..., {self.num_inputs}]", list(inputs.shape))
        shape = inputs.shape[:-1]
        count = math.prod(shape)
        if self.state_size == 0:
            if state is not None:
                refuse("state", "None: this policy has no memory", state)
            return PolicyRows(count, inputs.address, self.num_inputs, None, 0, stream), shape, (inputs,)
        given = self._arrays.zeros((*shape, self.state_size)) if state is None else state
        states = self._arrays.read("state", given, stream, written=True)
        if states.shape != (*shape, self.state_size):
            refuse("state", f"of shape {[*shape, self.state_size]}", list(states.shape))
        rows = PolicyRows(count, inputs.address, self.num_inputs, states.address, self.state_size, stream)
        return rows, shape, (inputs, states)


# ---- Copies and pickles ----


def _stored(config: LayerConfig, arrays: Arrays) -> tuple[Any, ...]:
    """The numbers of a layer, and the bytes of its arrays by their names."""
    from doorstep.interop import copy_from_pointer  # it loads the library, as `import doorstep` does not

    shape = {name: getattr(config.shape, name) for name in SHAPE_NUMBERS if getattr(config.shape, name)}
    numbers, found = (LayerKind(config.kind), config.num_inputs, config.num_outputs), {}
    size = 2 if config.weight_type == WeightType.BFLOAT16 else 4
    for name, sizes in array_shapes(*numbers, shape).items():
        if getattr(config, name):
            copied = arrays.empty((math.prod(sizes) * size,), np.uint8)
            copy_from_pointer(copied, getattr(config, name), copied.nbytes)
            found[name] = copied if arrays.device == "cpu" else copied.cpu().numpy()
    return *numbers, config.parameter, shape, WeightType(config.weight_type), found


def _unpickled(
    layers: list[tuple[Any, ...]], num_heads: int, precision: Precision, device: str, *chosen: Any
) -> Policy:
    kind, index = (DeviceKind.CPU, 0) if device == "cpu" else (DeviceKind.CUDA, int(device.removeprefix("cuda:")))
    arrays: Arrays = HostArrays() if kind == DeviceKind.CPU else TorchArrays(index)
    handles = []
    for *numbers, weight_type, found in layers:
        own = {name: arrays.upload(np.array(array)) for name, array in found.items()}  # aligned
        addresses = {name: arrays.address(array) for name, array in own.items()}
        weights = LayerWeights(weight_type, kind, index, **addresses, owner=own)
        handles.append(LayerHandle.create(*numbers, weights))  # type: ignore[call-arg]
    sampling, observations, seed, step = chosen
    policy = Policy(PolicyHandle.create(handles, num_heads, precision), sampling, arrays, observations=observations)
    policy._seed, policy._count_step = seed, itertools.count(step).__next__
    return policy


class _Uploaded(NamedTuple):
    """An array in a policy's memory, and its address there."""

    array: Any
    address: int


class _Uploads:
    """A function: an array of the host in a policy's memory."""

    def __init__(self, arrays: Arrays, handle: PolicyHandle) -> None:
        self._arrays = arrays
        self._handle = handle

    def __call__(self, array: NDArray[np.void]) -> _Uploaded:
        arrays = self._arrays
        made = upload_beside_capture(array, arrays) if arrays.is_capturing() else arrays.upload(array)
        return _Uploaded(made, arrays.address(made))

    def make(self, make: Callable[..., NDArray[np.void]], *arguments: Any) -> _Uploaded:
        """What `make` gives for these arguments."""
        return self(make(*arguments))

    def keep_in_capture(self, *uploads: _Uploaded) -> None:
        """A graph reads them whenever it is launched, so what a captured call is given stays as long as the policy."""
        if self._arrays.is_capturing():
            self._handle.keep(*(one.array for one in uploads))


# ---- Arguments ----


def check_precision(precision: object) -> str:
    """Refuses what is no precision."""
    return check_choice("precision", precision, tuple(one.name.lower() for one in Precision))


def _worlds_and_agents(shape: tuple[int, ...]) -> tuple[int, int]:
    """How many worlds and agents rows of this shape are."""
    return (math.prod(shape[:-1]), shape[-1]) if len(shape) > 1 else (math.prod(shape), 1)


def _check_words(name: str, value: Any, num_worlds: int) -> NDArray[np.uint32]:
    """Integers of 32 bits [N]."""
    requirement = f"integers [{num_worlds}], 0 to {MAX_SEED}"
    try:
        words = np.asarray(value)
    except Exception:  # whatever an array-like raises when it cannot become an array
        refuse(name, requirement, value)
    if words.dtype.kind not in "iu" or words.shape != (num_worlds,):
        refuse(name, requirement, value)
    if words.size and not 0 <= int(words.min()) <= int(words.max()) <= MAX_SEED:
        refuse(name, requirement, value)
    return words.astype(np.uint32)


def _sampling_rows(sampling: SamplingParams, count: int) -> NDArray[np.void]:
    row = np.array(sampling.native_row(), SAMPLING)
    return np.full(count, row)


def _world_keys(seed: int, num_worlds: int, num_agents: int, first_world: int = 0) -> NDArray[np.void]:
    """Keys without steps: a world's key is the seed and its index."""
    keys = np.zeros((num_worlds, num_agents), SAMPLING_KEY)
    keys["key"][..., 0] = seed
    keys["key"][..., 1] = np.arange(first_world, first_world + num_worlds)[:, None]
    keys["agent"] = np.arange(num_agents)
    return keys


def _seed_keys(seeds: Any, num_worlds: int, num_agents: int) -> NDArray[np.void]:
    """The same for seeds of worlds: each is the first world of its seed."""
    keys = _world_keys(0, num_worlds, num_agents)
    keys["key"][..., 0] = _check_words("seeds", seeds, num_worlds)[:, None]
    keys["key"][..., 1] = 0
    return keys
