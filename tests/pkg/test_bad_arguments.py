"""A bad argument raises ArgumentError, which names it, its value and the range; nothing has changed or leaked."""

import re
import types
from typing import Any

import numpy as np
import pytest
from tests.driver import no_driver

import doorstep
from doorstep._arguments import shown

NOT_INTEGERS: list[Any] = [1.5, 2.0, np.float32(3), "8", b"8", None, [1], True, np.True_, np.arange(2)]

CONSTRUCTOR: list[tuple[str, list[Any], str]] = [
    ("num_worlds", [0, -1, 2**30 + 1, 2**40, 2**70, np.int64(0), *NOT_INTEGERS], "1 to 1073741824"),
    ("seed", [-1, 2**32, 2**64, 2**70, *NOT_INTEGERS], "0 to 4294967295"),
    ("world_offset", [-1, 2**32 - 1, 2**63, *NOT_INTEGERS], "0 to 4294967294"),
    ("num_agents", [0, 9, -(2**70), *NOT_INTEGERS], "1 to 8"),
    ("episode_length", [0, 1_000_001, 2**32 + 200, *NOT_INTEGERS], "1 to 1000000"),
    ("num_threads", [0, -1, 1025, *[value for value in NOT_INTEGERS if value is not None]], "1 to 1024"),
    ("stream", [0, 1, -1, 2**64, *[value for value in NOT_INTEGERS if value is not None]], "None with device='cpu'"),
    ("auto_reset", [1, 0, "yes", None], "True or False"),
    ("strict", [1, None], "True or False"),
    ("observations", ["lidar", 5, [], None, {"lidar": 1}], "a sequence of parts"),
    ("observations", [("lidar", "lidar"), ("lidar", ("lidar", 0.5))], "with each part at most once"),
    ("action_check", ["CLAMP", "", 0, None, ["off"]], "'clamp', 'raise', 'off'"),
    (
        "device",
        ["gpu", "CPU", "cpu:0", "auto:1", "cuda:", "cuda:-1", "cuda:x", "cuda:\u0663", "cuda:" + "9" * 30, "", 0, None],
        "'cpu', 'cuda', 'cuda:K' (K = 0, 1, ...) or 'auto'",
    ),
]
CONSTRUCTOR_CASES = [
    pytest.param(name, value, allowed, id=f"{name}={value!r}")
    for name, values, allowed in CONSTRUCTOR
    for value in values
]


@pytest.mark.parametrize(("name", "value", "allowed"), CONSTRUCTOR_CASES)
def test_constructor_names_argument_value_and_range(name: str, value: Any, allowed: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        doorstep.Simulator(**{"num_worlds": 2, name: value})
    message = str(caught.value)
    assert caught.value.argument == name
    assert message.startswith(f"{name} is {value!r}"[:50])
    assert allowed in message


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("code of a user")


def laughs(depth: int) -> list[Any]:
    """A list of 10 ** depth lists, in a few hundred bytes."""
    made: list[Any] = []
    for _ in range(depth):
        made = [made] * 10
    return made


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 10_000, "'" + "x" * 56 + "..."),
        (b"x" * 10_000, "b'" + "x" * 55 + "..."),
        (list(range(100)), str(list(range(100)))[:57] + "..."),
        (laughs(50), "[" * 51 + "], [],..."),
        ({"a": (1,), "b": [{}, ()], 3: "c"}, "{'a': (1,), 'b': [{}, ()], 3: 'c'}"),
        (10**5000, "an integer of 16610 bits"),
        ([10**5000, -(10**5000)], "[an integer of 16610 bits, an integer of 16610 bits]"),
        (Unprintable(), "a Unprintable"),
        ("\ud800", r"'\ud800'"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_value_is_shown_in_messages_in_a_few_characters(value: Any, text: str) -> None:
    assert shown(value) == text
    with pytest.raises(doorstep.ArgumentError, match=f"^num_worlds is {re.escape(text)}; it must be an integer"):
        doorstep.Simulator(value)


def test_num_worlds_is_required_and_the_rest_is_by_keyword() -> None:
    with pytest.raises(TypeError):
        doorstep.Simulator()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        doorstep.Simulator(2, 0)  # type: ignore[call-arg]


class ForeignStream:
    """An object of another library that says which stream it is, or something that is none."""

    def __init__(self, described: object) -> None:
        self.described = described

    def __cuda_stream__(self) -> object:
        return self.described

    def __repr__(self) -> str:
        return f"ForeignStream({self.described})"


BAD_STREAMS: list[tuple[Any, str]] = [
    *[(value, "0 to 18446744073709551614") for value in (-1, 2**64 - 1, 2**64, 2**70)],
    *[(value, "__cuda_stream__") for value in NOT_INTEGERS if value is not None and not isinstance(value, np.ndarray)],
    (ForeignStream((1, 5)), "(0, handle)"),
    (ForeignStream(5), "(0, handle)"),
    (ForeignStream((0,)), "(0, handle)"),
    (ForeignStream((0, None)), "__cuda_stream__"),
    (ForeignStream((0, -1)), "0 to 18446744073709551614"),
    (types.SimpleNamespace(cuda_stream="7"), "__cuda_stream__"),
]


@pytest.mark.parametrize(("stream", "allowed"), BAD_STREAMS, ids=repr)
def test_a_stream_that_is_none_is_refused_before_a_driver_is_looked_for(stream: Any, allowed: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        doorstep.Simulator(2, device="cuda", stream=stream)
    assert caught.value.argument == "stream"
    assert allowed in str(caught.value)


def test_a_stream_of_another_device_is_refused() -> None:
    class OnDeviceOne:
        cuda_stream = 7
        device = types.SimpleNamespace(index=1)

    with pytest.raises(doorstep.ArgumentError, match="it is a stream of cuda:1") as caught:
        doorstep.Simulator(2, device="cuda:0", stream=OnDeviceOne())
    assert caught.value.argument == "stream"


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_a_stream_asks_for_an_explicit_gpu(device: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"None with device='{device}'") as caught:
        doorstep.Simulator(2, device=device, stream=ForeignStream((0, 7)))
    assert "cuda:K" in caught.value.hint


@no_driver
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7"])
def test_without_a_driver_a_gpu_is_an_error_that_says_what_to_do(device: str) -> None:
    with pytest.raises(doorstep.NoDriverError, match=r"libcuda\.so\.1") as caught:
        doorstep.Simulator(2, device=device, stream=7 if device == "cuda" else None)
    assert "NVIDIA driver" in caught.value.hint
    assert 'device="cpu"' in caught.value.hint


@no_driver
def test_without_a_driver_the_automatic_device_is_the_cpu() -> None:
    with doorstep.Simulator(2, device="auto") as sim:
        assert sim.device == "cpu"
        assert sim.stream is None
        sim.step()


WORLDS: list[tuple[Any, str]] = [
    ([4], "0 to 3"),
    ([-1], "0 to 3"),
    ([0, 2**40], "0 to 3"),
    ([0, 2**70], "0 to 3"),
    (np.array([2**63], dtype=np.uint64), "0 to 3"),
    ([1, 2, 1], "twice"),
    ([True, False], "shape (4,)"),
    (np.ones((4, 1), dtype=bool), "shape (4,)"),
    (np.ones(5, dtype=bool), "shape (4,)"),
    ([0.0, 1.0], "0 to 3"),
    (["0"], "0 to 3"),
    ([[0, 1]], "0 to 3"),
    ([[0], [1, 2]], "0 to 3"),
    (0, "0 to 3"),
    ("all", "0 to 3"),
    (object, "0 to 3"),
    (np.empty((0, 2), dtype=np.int64), "0 to 3"),
]
CALLS = {
    "reset": lambda sim, worlds: sim.reset(worlds),
    "save": lambda sim, worlds: sim.save(worlds),
    "hash": lambda sim, worlds: sim.hash(worlds),
    "restore": lambda sim, worlds: sim.restore(sim.save([0, 1, 2]), worlds),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("worlds", "allowed"), WORLDS, ids=repr)
def test_bad_worlds_are_named_and_nothing_changes(call: Any, worlds: Any, allowed: str) -> None:
    with doorstep.Simulator(4) as sim:
        before = sim.hash()
        with pytest.raises(doorstep.ArgumentError) as caught:
            call(sim, worlds)
        assert caught.value.argument == "worlds"
        assert allowed in str(caught.value)
        assert sim.hash() == before


@pytest.mark.parametrize("data", ["text", None, 5, [1, 2], object], ids=repr)
def test_restore_of_something_that_is_not_bytes_names_data(data: Any) -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(doorstep.ArgumentError, match="bytes-like") as caught:
        sim.restore(data)
    assert caught.value.argument == "data"


@pytest.mark.parametrize("timeout", [-1, -0.5, float("nan"), float("inf"), 10**400, "1", True, [1]], ids=repr)
def test_bad_timeouts_are_named(timeout: Any) -> None:
    with doorstep.Simulator(2) as sim:
        event = sim.step_async()
        with pytest.raises(doorstep.ArgumentError, match="seconds") as caught:
            event.wait(timeout)
        assert caught.value.argument == "timeout"


def test_a_flat_observation_that_was_left_out_names_observations() -> None:
    with doorstep.Simulator(2, observations="by_name") as sim:
        assert "observations" not in sim.tensors
        for name in ("observations", "final_observations"):
            with pytest.raises(doorstep.ArgumentError, match=f"'{name}'") as caught:
                getattr(sim, name)
            assert caught.value.argument == "observations"


def test_tensors_cannot_be_replaced() -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(TypeError):
        sim.tensors["actions"] = sim.rewards  # type: ignore[index]
