"""The custom calls of XLA, called with frames made by hand; and the structs of their frames, against XLA's header."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.interop.xla_frames import NO_REWARD_NO_PARTS, HandlerError, Tensor, ask_metadata, call
from tests.scenes import random_actions

import doorstep
from doorstep._native import TENSORS, DeviceKind, batch_info

PROJECT = Path(__file__).resolve().parents[2]
NAMES = [row.name for row in TENSORS]
INVALID_ARGUMENT, FAILED_PRECONDITION, INTERNAL = 3, 9, 13


def tensor(array: Any) -> Tensor:
    return Tensor(array.ctypes.data, array.shape, str(array.dtype), array)


def aligned(shape: tuple[int, ...], dtype: str) -> Any:
    """A zeroed array that begins a cache line."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


class Rooms:
    """Two worlds of two agents with rewards and the lidar at the end of the episode as outputs."""

    def __init__(self) -> None:
        info = batch_info(DeviceKind.CPU, 0, 2, 2)
        self.worlds = aligned((2, info.world_bytes // 4), "uint32")
        self.scratch = aligned((2 * 8192,), "uint8")
        self.rewards, self.final_lidar = aligned((2, 2, 1), "float32"), aligned((2, 2, 30, 2), "float32")
        self.actions, self.resets = aligned((2, 2, 4), "int32"), aligned((2, 1), "int32")

    def results(self, *outputs: Any) -> list[Tensor]:
        return [tensor(array) for array in (self.worlds, self.scratch, *outputs)]

    def create(self, seed: int, offset: int = 0) -> None:
        call(
            "create_cpu",
            [tensor(np.array([seed, offset], np.uint32))],
            self.results(self.rewards),
            [0, 2, 5, 1, 0, 0, *NO_REWARD_NO_PARTS, NAMES.index("rewards")],
        )

    def step_call(self) -> dict[str, Any]:
        return {
            "name": "step_cpu",
            "arguments": [tensor(array) for array in (self.worlds, self.actions, self.resets, self.final_lidar)],
            "results": self.results(self.rewards, self.final_lidar),
            "rules": [0, 2, 5, 1, 0, 1, *NO_REWARD_NO_PARTS, NAMES.index("rewards"), NAMES.index("final_lidar")],
        }


def test_calls_step_worlds() -> None:
    rooms = Rooms()
    rooms.create(3, 8)
    with doorstep.Simulator(2, seed=3, world_offset=8, episode_length=5) as sim:
        for step, actions in enumerate(random_actions(1, 12, 2)):
            rooms.actions[:] = sim.actions.to_numpy()[:] = actions
            rooms.resets[:] = sim.resets.to_numpy()[:] = [[0], [step == 3]]
            sim.step()
            call(**rooms.step_call())
            assert rooms.rewards.tobytes() == sim.rewards.to_numpy().tobytes()
            assert rooms.final_lidar.tobytes() == sim.final_lidar.to_numpy().tobytes()
            assert (rooms.actions == actions).all()
            assert rooms.resets[1, 0] == (step == 3)


def test_scratch_memory_may_begin_anywhere() -> None:
    rooms, elsewhere = Rooms(), Rooms()
    elsewhere.scratch = elsewhere.scratch[64:]
    for each in (rooms, elsewhere):
        each.create(3)
        call(**each.step_call())
    assert rooms.worlds.tobytes() == elsewhere.worlds.tobytes()
    assert rooms.rewards.tobytes() == elsewhere.rewards.tobytes()


def test_outputs_without_elements_are_checked_too() -> None:
    info = batch_info(DeviceKind.CPU, 0, 1, 1)
    worlds, scratch = aligned((1, info.world_bytes // 4), "uint32"), aligned((8192,), "uint8")
    words = tensor(np.array([0, 0], np.uint32))
    rules = [0, 1, 5, 1, 0, 0, *NO_REWARD_NO_PARTS, NAMES.index("partner_observations")]
    results = [tensor(worlds), tensor(scratch), Tensor(0, (1, 1, 0, 3), "float32")]
    call("create_cpu", [words], results, rules)
    for wrong in (replaced(results[2], dtype="int32"), replaced(results[2], shape=(1, 1, 1, 3))):
        with pytest.raises(HandlerError) as caught:
            call("create_cpu", [words], [*results[:2], wrong], rules)
        assert "partner_observations: wrong" in caught.value.args[1]


@pytest.mark.parametrize(
    ("name", "traits"),
    [("create_cpu", 0), ("step_cpu", 0), ("create_cuda", 1), ("step_cuda", 1), ("initialize_cuda", 1)],
)
def test_handlers_tell_their_version_and_whether_a_graph_may_hold_them(name: str, traits: int) -> None:
    metadata = ask_metadata(name)
    assert (metadata.version.major, metadata.version.minor, metadata.traits) == (0, 1, traits)


def test_unknown_handlers_are_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="no handler is named nothing"):
        ask_metadata("nothing")


def replaced(tensor: Tensor, **changes: Any) -> Tensor:
    return Tensor(**{**vars(tensor), **changes})


BROKEN: list[tuple[str, Any, int, str]] = [
    ("no rules", lambda c: c.update(rules=None), INVALID_ARGUMENT, "rules: missing"),
    ("few rules", lambda c: c.update(rules=[0, 2]), INVALID_ARGUMENT, "rules: wrong"),
    ("other device", lambda c: c["rules"].__setitem__(0, 1), INTERNAL, "device kind differs"),
    ("no such agents", lambda c: c["rules"].__setitem__(1, 9), INVALID_ARGUMENT, "rules: out of range"),
    ("other agents", lambda c: c["rules"].__setitem__(1, 3), INVALID_ARGUMENT, "rewards: wrong"),
    ("no such length", lambda c: c["rules"].__setitem__(2, 0), INVALID_ARGUMENT, "episode_length is 0"),
    ("no such output", lambda c: c["rules"].__setitem__(-2, 99), INVALID_ARGUMENT, "rules: out of range"),
    ("one more output", lambda c: c["rules"].append(4), INVALID_ARGUMENT, "terminations: missing"),
    ("one less output", lambda c: c["rules"].pop(), INVALID_ARGUMENT, "outputs: more"),
    ("no results", lambda c: c.update(results=[]), INVALID_ARGUMENT, "worlds: wrong"),
    ("no arguments", lambda c: c.update(arguments=[]), INVALID_ARGUMENT, "worlds: missing"),
    ("one more argument", lambda c: c["arguments"].append(c["arguments"][1]), INVALID_ARGUMENT, "arguments: more"),
    ("little scratch", lambda c: c["results"].__setitem__(1, replaced(c["results"][1], shape=(64,))), INVALID_ARGUMENT,
     "scratch: too small"),
    ("few actions", lambda c: c["arguments"].__setitem__(1, replaced(c["arguments"][1], shape=(1, 2, 4))),
     INVALID_ARGUMENT, "actions: wrong"),
    ("float actions", lambda c: c["arguments"].__setitem__(1, replaced(c["arguments"][1], dtype="float32")),
     INVALID_ARGUMENT, "actions: wrong"),
    ("worlds not aliased", lambda c: c["arguments"].__setitem__(0, replaced(c["arguments"][0], address=64)),
     INVALID_ARGUMENT, "worlds: must be aliased"),
    ("lidar not aliased", lambda c: c["arguments"].__setitem__(3, replaced(c["arguments"][3], address=64)),
     INVALID_ARGUMENT, "final_lidar: must be aliased"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "code", "message"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_calls_that_fit_no_batch_are_errors_and_change_nothing(spoil: Any, code: int, message: str) -> None:
    rooms = Rooms()
    rooms.create(0)
    before = rooms.worlds.copy()
    broken = rooms.step_call()
    spoil(broken)
    with pytest.raises(HandlerError) as caught:
        call(**broken)
    assert caught.value.args[0] == code
    assert message in caught.value.args[1]
    assert (rooms.worlds == before).all()


def test_memory_without_worlds_is_an_error() -> None:
    rooms = Rooms()
    with pytest.raises(HandlerError) as caught:
        call(**rooms.step_call())
    assert caught.value.args[0] == FAILED_PRECONDITION
    assert "worlds[0] of 2 is not a valid world" in caught.value.args[1]


# ---- Declarations

OURS = PROJECT / "native/src/interop/xla/xla_ffi.h"


def structs_of(text: str) -> dict[str, list[tuple[str, str]]]:
    """Fields of each struct in order: type and name, without XLA's prefix."""
    text = re.sub(r"//.*", "", text.replace("XLA_FFI_", ""))
    text = re.sub(r"_API_STRUCT_FIELD\((\w+)\)", r"function* \1", text)
    text = re.sub(r"Error\* \(\*(\w+)\)\([^)]*\)", r"function* \1", text)
    found = {}
    for name, body in re.findall(r"struct (\w+) \{(.*?)\n\s*\}", text, re.DOTALL):
        declared = [line.strip() for line in body.split(";") if line.strip()]
        fields = [re.fullmatch(r"(?:const |struct )?(.*?)\s*(\w+)", line) for line in declared]
        found[name] = [(match.group(1).replace(" ", ""), match.group(2)) for match in fields if match]
    return found


def enumerators_of(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)u?\b", text)}


def test_our_structs_are_the_beginnings_of_xlas() -> None:
    jax = pytest.importorskip("jax")
    theirs = structs_of((Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h").read_text())
    ours = structs_of(OURS.read_text())
    assert len(ours) == 15
    # Never called by us, and renamed once
    theirs["Api"] = [(type_, field.replace("TypeId_Register", "Type_Register")) for type_, field in theirs["Api"]]
    ours["Api"] = [("function*" if type_ == "void*" else type_, field) for type_, field in ours["Api"]]
    for name, fields in ours.items():
        assert theirs[name][: len(fields)] == fields, name
        assert len(theirs[name]) == len(fields) or name in ("Api", "Metadata"), name  # those grow


def test_our_constants_are_xlas() -> None:
    jax = pytest.importorskip("jax")
    theirs = enumerators_of((Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h").read_text())
    ours = enumerators_of(OURS.read_text())
    pairs = {
        "kExtensionMetadata": "XLA_FFI_Extension_Metadata",
        "kErrorInvalidArgument": "XLA_FFI_Error_Code_INVALID_ARGUMENT",
        "kErrorResourceExhausted": "XLA_FFI_Error_Code_RESOURCE_EXHAUSTED",
        "kErrorFailedPrecondition": "XLA_FFI_Error_Code_FAILED_PRECONDITION",
        "kErrorInternal": "XLA_FFI_Error_Code_INTERNAL",
        "kS32": "XLA_FFI_DataType_S32",
        "kS64": "XLA_FFI_DataType_S64",
        "kU8": "XLA_FFI_DataType_U8",
        "kU32": "XLA_FFI_DataType_U32",
        "kF32": "XLA_FFI_DataType_F32",
        "kF64": "XLA_FFI_DataType_F64",
        "kArgBuffer": "XLA_FFI_ArgType_BUFFER",
        "kRetBuffer": "XLA_FFI_RetType_BUFFER",
        "kAttrArray": "XLA_FFI_AttrType_ARRAY",
        "kStageExecute": "XLA_FFI_ExecutionStage_EXECUTE",
        "kCommandBufferCompatible": "XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE",
    }
    assert ours == {our_name: theirs[their_name] for our_name, their_name in pairs.items()}


def test_our_functions_are_xlas() -> None:
    jax = pytest.importorskip("jax")
    theirs = (Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h").read_text().replace("XLA_FFI_", "")
    ours, handlers = OURS.read_text(), (OURS.parent / "handlers.cpp").read_text()
    called = re.findall(r"Error\* \(\*(\w+)\)\(([^)]*)\);", ours)
    assert len(called) == 3
    for name, parameters in [*called, ("Handler", "CallFrame* call_frame")]:
        assert re.search(rf"typedef Error\* {name}\(\s*{re.escape(parameters)}\);", theirs), name
    assert "using Handler = Error*(CallFrame* call_frame);" in ours
    assert "using Handler_Traits = uint32_t;" in ours
    assert "typedef uint32_t Handler_Traits;" in theirs
    sizes = re.findall(r"DS_XLA_STRUCT_SIZE(\(\w+, \w+\))", handlers)
    assert len(sizes) == 3
    assert all(f"DEFINE_STRUCT_TRAITS{size};" in theirs for size in sizes)
