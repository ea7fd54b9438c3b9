"""Sequences of calls of the C API, in two threads that share handles: every function that memory alone suffices for.

An input is a list of calls: the function's number, the thread, and the seed of the arguments. Pointers lead to memory
that is large enough, as every caller must see to; all numbers, handles and contents of structs may be wrong.
"""

from __future__ import annotations

import ctypes
import random
import re
import struct
import threading
from collections.abc import Sequence
from typing import Any

from tests.fuzz.mutations import EDGES, FLOATS, change_bytes

from doorstep._native import _generated as native
from doorstep._native.calls import check
from doorstep._native.library import load
from doorstep.errors import Status
from header_parser import Field, Function, parse_header

CALL = struct.Struct("<HBxI")
MOST_CALLS = 64
BUFFER_BYTES = 1 << 18
MOST_PARAMETERS = 7
# Fields that decide how much memory is taken
GROWING = ("num_worlds", "num_threads", "max_levels", "trace", "queue_capacity", "output_capacity")
NUM_TENSORS = len(native.TENSORS)
FEW = (0, 1, 2, 3)
WAITS = (0, 1, 1000, 10**6)  # nanoseconds
TEXTS = (b"", b"steps", b"trained", b'a="b"', b'a="b",c="d"', b"\xff\xfe", b'a="', b"x" * 300, b'a="\\', b"create_cpu")
# What these need cannot be made up: functions and objects of Python, managed tensors, kernels; or they take seconds.
LEFT_OUT = {
    *("ds_simulator_attach", "ds_dlpack_delete", "ds_capsule_destructor", "ds_kernel_launch", "ds_cuda_compile"),
    *("ds_python_bind", "ds_python_release", "ds_python_release_now", "ds_python_read_tensors"),
    *("ds_python_copy_to_pointer", "ds_python_copy_from_pointer", "ds_python_copy_out", "ds_python_copy_in"),
    *("ds_python_empty_like", "ds_python_zeros_like", "ds_python_tensor_over"),
}
HEADER = parse_header()
FUNCTIONS = [function for function in HEADER.functions if function.name not in LEFT_OUT]
HANDLES = set(HEADER.handles)
STRUCTS: dict[str, Any] = dict(native.STRUCTURES)
FIELDS = {one.name: one.fields for one in HEADER.structs}
RELEASES = {"ds_simulator": "ds_simulator_close", "ds_event": "ds_event_close"}  # others: NAME_release
TYPES = {name: types for name, _, types in native.FUNCTIONS}
# What only an engine, or a batch, needs right; the rest is drawn.
LIKELY = (
    *("ds_simulator_step", "ds_engine_submit", "ds_outputs_take", "ds_engine_take_rows", "ds_engine_create"),
    *("ds_simulator_get_tensor", "ds_simulator_get_memory", "ds_memory_read", "ds_batch_create", "ds_batch_step"),
    *("ds_layer_create", "ds_policy_create", "ds_policy_act", "ds_simulator_step_async", "ds_event_wait"),
)


class CCalls:
    def inputs(self) -> Sequence[bytes]:
        chance, numbers = random.Random(0), {function.name: i for i, function in enumerate(FUNCTIONS)}
        one_of_each = [CALL.pack(number, 0, chance.randrange(2**32)) for number in numbers.values()]
        likely = [CALL.pack(numbers[name], i % 2, i) for i, name in enumerate(LIKELY * 3)]
        return [b"".join(likely), *(b"".join(one_of_each[at : at + 40]) for at in range(0, len(one_of_each), 40))]

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        calls = [data[at : at + CALL.size] for at in range(0, len(data), CALL.size)]
        for _ in range(chance.choice((1, 4, 16))):
            at, seed = chance.randrange(len(calls) + 1), chance.randrange(2**32)
            if chance.random() < 0.3 and len(calls) > 8:
                del calls[at : at + 4]
            else:
                calls.insert(at, CALL.pack(chance.randrange(len(FUNCTIONS)), chance.randrange(2), seed))
        return change_bytes(b"".join(calls), chance) if chance.random() < 0.1 else b"".join(calls[-MOST_CALLS:])

    def run(self, data: bytes) -> str:
        calls = [CALL.unpack_from(data, at) for at in range(0, len(data) - CALL.size + 1, CALL.size)][:MOST_CALLS]
        world = _World()
        try:
            threads = [
                threading.Thread(target=_Caller(world, [call for call in calls if call[1] % 2 == number]).run)
                for number in (0, 1)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            world.release()
        if world.failures:
            raise AssertionError("; ".join(world.failures))
        return f"{len(world.accepted)} functions succeeded"

    def close(self) -> None:
        pass


class _World:
    """Handles that both threads use, by type, and memory that lives until all is released."""

    def __init__(self) -> None:
        self.handles: dict[str, list[int]] = {name: [] for name in HANDLES}
        self.released: list[int] = [0, 1, 2**64 - 1]
        self.kept: list[Any] = []
        self.failures: list[str] = []
        self.accepted: set[str] = set()
        self.save = b""
        self._make_some()

    def _make_some(self) -> None:
        """A simulator without levels and one with them, an engine of the caller's actions, and their parts."""
        library = load()
        for levels in (0, 2):
            config = native.SimulatorConfig(struct_size=ctypes.sizeof(native.SimulatorConfig))
            check(library.ds_simulator_config_default(ctypes.byref(config)))
            config.num_worlds, config.num_threads, config.episode_length, config.max_levels = 2, 1, 4, levels
            self._add("ds_simulator", library.ds_simulator_create, ctypes.byref(config))
            self._add("ds_config", library.ds_simulator_config_create, ctypes.byref(config))
        self.save = _save_of(self.handles["ds_simulator"][0])
        self._add("ds_saved_state", library.ds_saved_state_create, self.save, len(self.save))
        self._add("ds_memory", library.ds_simulator_get_memory, self.handles["ds_simulator"][0])
        self._add("ds_metrics", library.ds_metrics_create, 0)
        rollout = native.RolloutConfig(struct_size=ctypes.sizeof(native.RolloutConfig))
        check(library.ds_rollout_config_default(ctypes.byref(rollout)))
        rollout.simulator = self.handles["ds_config"][0]
        rollout.queue_capacity, rollout.output_capacity = 8, 8
        self._add("ds_config", library.ds_rollout_config_create, ctypes.byref(rollout))
        self._add("ds_engine", library.ds_engine_create, self.handles["ds_config"][-1], None, 0)
        for is_limited in (0, 1):
            self._add("ds_outputs", library.ds_engine_open_outputs, self.handles["ds_engine"][0], is_limited)

    def _add(self, kind: str, function: Any, *arguments: Any) -> None:
        handle = ctypes.c_uint64()
        check(function(*arguments, ctypes.byref(handle)))
        self.handles[kind].append(handle.value)

    def release(self) -> None:
        """Everything once; what has been released already is refused."""
        library = load()
        for handle in self.handles["ds_engine"]:
            library.ds_engine_close(handle)
            library.ds_engine_join(handle, 10**10)
        for kind, handles in self.handles.items():
            for handle in handles:
                getattr(library, RELEASES.get(kind, f"{kind}_release"))(handle)

def _save_of(simulator: int) -> bytes:
    size = ctypes.c_uint64()
    check(load().ds_simulator_save_size(simulator, 1, ctypes.byref(size)))
    buffer, worlds = ctypes.create_string_buffer(size.value), ctypes.c_int64(0)
    check(load().ds_simulator_save(simulator, ctypes.byref(worlds), 1, buffer, size.value))
    return buffer.raw


class _Caller:
    """Makes the calls of one thread, with buffers of its own."""

    def __init__(self, world: _World, calls: Sequence[tuple[int, int, int]]) -> None:
        self._world, self._calls = world, calls
        self._buffers = [ctypes.create_string_buffer(BUFFER_BYTES) for _ in range(MOST_PARAMETERS + 2)]
        world.kept.append(self._buffers)

    def run(self) -> None:
        for number, _, seed in self._calls:
            function = FUNCTIONS[number % len(FUNCTIONS)]
            try:
                self._call(function, random.Random(seed))
            except Exception as error:  # in a thread it would be printed only
                self._world.failures.append(f"{function.name}: {type(error).__name__}: {error}")

    def _call(self, function: Function, chance: random.Random) -> None:
        arguments = [self._argument(function, parameter, chance) for parameter in function.parameters]
        result = getattr(load(), function.name)(*[argument for argument, _ in arguments])
        if function.result != "ds_status":
            return
        if result not in iter(Status):
            self._world.failures.append(f"{function.name} returned {result}")
        if result == Status.INTERNAL:
            self._world.failures.append(f"{function.name}: {last_error()}")
        if result not in (Status.OK, Status.PENDING):
            if not last_error():
                self._world.failures.append(f"{function.name} returned {result} without a message")
            return
        self._world.accepted.add(function.name)
        if function.name == "ds_dlpack_export":
            (_, _), (_, _), (versioned, _), (_, managed) = arguments
            load().ds_dlpack_delete(managed, versioned)
        for parameter, (_, made) in zip(function.parameters, arguments, strict=True):
            self._keep(function, parameter, made)

    def _keep(self, function: Function, parameter: Field, made: Any) -> None:
        """New handles are released at the end, at the latest."""
        kind = parameter.type.removesuffix("*")
        if kind in HANDLES and parameter.type.endswith("*"):
            self._world.handles[kind] += [handle for handle in made if handle]
        if function.name == "ds_outputs_take" and parameter.name == "taken_outputs":
            self._world.handles["ds_memory"] += [output.data for output in made if output.data]
        if function.name == "ds_engine_take_rows" and parameter.name == "rows":
            self._world.handles["ds_memory"].append(made.data)

    def _argument(self, function: Function, parameter: Field, chance: random.Random) -> tuple[Any, Any]:
        """What is passed, and what will have been written there."""
        kind, name = parameter.type, parameter.name
        if kind in HANDLES:
            return self._handle(kind, chance), None
        if kind == "const char*":
            return chance.choice(TEXTS), None
        if kind == "ds_release_owner":
            return None, None
        if kind.endswith("*"):
            if chance.random() < 0.04:
                return None, []
            return self._pointer(function, parameter, chance)
        return self._number(function, kind, name, chance), None

    def _number(self, function: Function, kind: str, name: str, chance: random.Random) -> Any:
        if name == "timeout_ns":
            return chance.choice(WAITS)
        if kind == "double":
            return chance.choice(FLOATS)
        if name in ("bytes", "nbytes", "count", "most", "num_heads", "to", "from", "trace_capacity"):
            if function.name in ("ds_simulator_restore", "ds_saved_state_create") and chance.random() < 0.8:
                return len(self._world.save) if name == "bytes" else 1
            sizes = (*FEW, 16, 64, 4096, BUFFER_BYTES) if name.endswith("bytes") else FEW
            return chance.choice(sizes)
        if function.name == "ds_engine_set_policy" and name == "policy":
            return chance.choice((0, 1, self._handle("ds_policy", chance)))
        if chance.random() < 0.7:
            return chance.choice(FEW)
        bits = 32 if "32" in kind else 64
        number = chance.choice(EDGES) % 2**bits
        return number if kind.startswith("u") or number < 2 ** (bits - 1) else number - 2**bits

    def _handle(self, kind: str, chance: random.Random) -> int:
        own, how = self._world.handles[kind], chance.random()
        if own and how < 0.9:
            return chance.choice(own[:2] if how < 0.5 else own)
        if how < 0.96:
            return chance.choice([handle for handles in self._world.handles.values() for handle in handles])
        return chance.choice((*self._world.released, chance.randrange(2**64)))

    def _pointer(self, function: Function, parameter: Field, chance: random.Random) -> tuple[Any, Any]:
        name = re.sub(r"^const |\*+$", "", parameter.type)
        is_input = parameter.type.startswith("const ")
        if parameter.type.endswith("**"):
            address = ctypes.c_void_p()
            wanted = TYPES[function.name][function.parameters.index(parameter)]
            at = ctypes.byref(address)
            return (at if wanted is ctypes.c_void_p else ctypes.cast(at, wanted)), address
        if name in HANDLES:
            array = (ctypes.c_uint64 * 8)(*([self._handle(name, chance) for _ in range(8)] if is_input else []))
            return array, array
        if name in STRUCTS:
            made = self._struct_or_array(function, parameter, name, is_input, chance)
            is_one = isinstance(made, ctypes.Structure)
            return ctypes.pointer(made) if is_one else ctypes.cast(made, ctypes.POINTER(STRUCTS[name])), made
        if function.name in ("ds_simulator_restore", "ds_saved_state_create") and parameter.name == "data":
            data = bytearray(self._world.save.ljust(BUFFER_BYTES, b"\0"))
            if chance.random() < 0.3:
                data[chance.randrange(len(self._world.save))] ^= 1 << chance.randrange(8)
            made = ctypes.create_string_buffer(bytes(data))
            return ctypes.cast(made, ctypes.c_void_p), made
        buffer = self._buffers[function.parameters.index(parameter)]  # outputs of a call do not overlap
        if is_input:  # distinct indices, small numbers or edges
            words = [chance.choice((i, i, chance.choice(FEW), chance.choice(EDGES) % 2**31)) for i in range(16)]
            ctypes.memmove(buffer, struct.pack("<16q", *words), 128)
        return ctypes.cast(buffer, ctypes.c_void_p), buffer

    # ---- Structs

    def _struct_or_array(
        self, function: Function, parameter: Field, name: str, is_input: bool, chance: random.Random
    ) -> Any:
        """One, or as many as a count after it says, at most."""
        is_array = any(one.name in ("count", "most") for one in function.parameters)
        array = (STRUCTS[name] * (max(FEW) + 1))()
        self._world.kept.append(array)
        for one in array:
            self._fill(one, name, is_input, chance)
        return array if is_array else array[0]

    def _fill(self, one: Any, name: str, is_input: bool, chance: random.Random) -> None:
        default = getattr(load(), f"{name}_default", None)
        if "struct_size" in dict(one._fields_):
            one.struct_size = ctypes.sizeof(one)
        if not is_input:
            pass
        elif default is not None:
            default(ctypes.byref(one))
            if name == "ds_simulator_config":
                one.num_worlds, one.num_threads = chance.choice((1, 2, 4)), 1
        else:
            self._fill_likely(one, name, chance)
        if is_input and chance.random() < 0.6:
            for _ in range(chance.choice((1, 1, 3))):
                self._spoil(one, name, chance)
        if "struct_size" in dict(one._fields_) and chance.random() < 0.03:
            one.struct_size = chance.choice((0, 1, 8, 2**32 - 1))

    def _fill_likely(self, one: Any, name: str, chance: random.Random) -> None:
        """Numbers that suit each other, and the buffers, in every struct that has addresses."""
        for field in FIELDS[name]:
            if field.length or field.name in ("struct_size", "padding"):
                continue
            if field.type in HANDLES:
                setattr(one, field.name, self._handle(field.type, chance) if chance.random() < 0.3 else 0)
            elif field.type.endswith("*") and name not in ("ds_binding", "ds_attachment"):
                self._point(one, name, field, chance)
            elif field.type in ("int32_t", "int64_t", "uint32_t") and chance.random() < 0.5:
                setattr(one, field.name, chance.choice(FEW))
        if name == "ds_batch":
            self._fill_batch(one, chance)
        if name == "ds_tensor_info":
            tensor = chance.randrange(16)
            load().ds_simulator_get_tensor(self._handle("ds_simulator", chance), tensor, ctypes.byref(one))
        if name == "ds_layer_config":
            one.kind, one.function, one.device_kind = chance.choice((0, 0, 1, 9, 14, 25)), type(one.function)(), 0
            one.num_inputs, one.num_outputs = chance.choice(((2, 19), (2, 2), (0, 0), (19, 19), (94, 19)))
            one.device_index = 0
        if name == "ds_policy_call":
            one.observation_stride, one.state_stride, one.rows = 94, 8, None
        if name == "ds_episode_start":
            one.world, one.state = chance.choice(FEW), chance.choice((0, 0, self._handle("ds_saved_state", chance)))
        if name == "ds_episode_request":
            one.replica, one.reader = -1, chance.choice((0, 1))

    def _point(self, one: Any, name: str, field: Field, chance: random.Random) -> None:
        target = re.sub(r"^const |\*+$", "", field.type)
        if target in ("ds_level", "ds_level_rewards"):
            level = (native.Level * 4)(*(native.Level(struct_size=ctypes.sizeof(native.Level)) for _ in range(4)))
            for each in level:
                load().ds_level_default(ctypes.byref(each))
            made: Any = level if target == "ds_level" else level[0].rewards
        else:
            made = self._buffers[chance.randrange(MOST_PARAMETERS)]
        self._world.kept.append(made)
        kind = dict(one._fields_)[field.name]
        if chance.random() < 0.8:
            address = ctypes.addressof(made)
            setattr(one, field.name, address if kind is ctypes.c_void_p else ctypes.cast(address, kind))

    def _fill_batch(self, one: Any, chance: random.Random) -> None:
        """Blocks and tensors have memory that nothing else writes to."""
        one.num_worlds, one.num_agents, one.episode_length = 2, chance.choice((1, 2)), 4
        one.device_kind = one.device_index = one.stream = one.action_check = 0
        one.auto_reset, one.max_levels = chance.choice(((0, 0), (1, 0), (1, 2)))
        one.scratch = one.trouble = one.reward = one.observations = None
        address = ctypes.addressof(self._buffers[-2])
        step = (BUFFER_BYTES - 64) // NUM_TENSORS // 64 * 64
        tensors = (ctypes.c_void_p * NUM_TENSORS)()
        for i in range(NUM_TENSORS):
            tensors[i] = address + (-address % 64) + i * step
        self._world.kept.append(tensors)
        worlds = ctypes.addressof(self._buffers[-1])
        one.worlds, one.tensors = worlds + (-worlds % 64), ctypes.addressof(tensors)

    def _spoil(self, one: Any, name: str, chance: random.Random) -> None:
        """Another value of a field. Where addresses are, numbers stay small: buffers end somewhere."""
        fields = [field for field in FIELDS[name] if field.name != "struct_size"]
        field = chance.choice(fields)
        has_addresses = any(each.type.endswith("*") for each in fields)
        kind = dict(one._fields_)[field.name]
        if field.type.endswith("*"):
            setattr(one, field.name, kind())
        elif field.type in HANDLES:
            setattr(one, field.name, self._handle(field.type, chance))
        elif field.type in STRUCTS:
            part = getattr(one, field.name)
            self._spoil(chance.choice(part) if field.length else part, field.type, chance)
        elif field.type in ("float", "double") and not field.length:
            setattr(one, field.name, chance.choice(FLOATS))
        elif not field.length and field.type in ("int32_t", "int64_t", "uint32_t", "uint64_t"):
            grows = field.name in GROWING
            value = chance.choice((-1, *FEW)) if has_addresses or grows else chance.choice(EDGES)
            setattr(one, field.name, kind(value).value)


def last_error() -> str:
    error = native.Error(struct_size=ctypes.sizeof(native.Error))
    check(load().ds_last_error(ctypes.byref(error)))
    return (error.message or b"").decode(errors="replace")


